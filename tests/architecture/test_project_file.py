"""What the project file promises to pip. Whether a resolver is content is seen when the project is installed."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.checkout import ROOT, SOURCES


def requirements(extra: str | None = None) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines: list[str] = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def admits(name: str, version: str, python: str) -> bool:
    fitting = [
        one
        for one in requirements("gui")
        if one.name == name and (one.marker is None or one.marker.evaluate({"python_version": python}))
    ]
    assert fitting, f"no requirement on {name} for Python {python}"
    return all(one.specifier.contains(version) for one in fitting)


@pytest.mark.parametrize("version", ["6.12.0", "6.12.1", "6.13.0"])
def test_qt_that_loses_references_to_none_is_kept_off_python_311(version: str) -> None:
    assert not admits("PySide6-Essentials", version, "3.11")


def test_sound_qt_is_admitted_everywhere() -> None:
    assert admits("PySide6-Essentials", "6.11.3", "3.11")
    assert admits("PySide6-Essentials", "6.12.0", "3.12")


def test_engine_installs_without_qt() -> None:
    names = {one.name.lower() for one in requirements()}

    assert not names & {"pyside6", "pyside6-essentials", "shiboken6", "qasync"}


@pytest.mark.parametrize("extra", [None, "fleet", "gui", "dev"])
def test_every_requirement_has_a_floor(extra: str | None) -> None:
    bare = [
        one.name
        for one in requirements(extra)
        if one.name != "gatewright" and not any(part.operator in {">=", "=="} for part in one.specifier)
    ]

    assert not bare


@pytest.mark.parametrize("folder", SOURCES.values(), ids=list(SOURCES))
def test_source_roots_hold_one_package_each(folder: Path) -> None:
    beside = {path.name for path in folder.parent.iterdir() if not path.name.startswith((".", "__"))}

    assert beside == {folder.name}
