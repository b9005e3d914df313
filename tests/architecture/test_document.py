"""docs/architecture.md and the docstrings of the rooms: each file that they name exists, and the drawing is true."""

import ast
import re
import tomllib

import pytest

from tests.support.checkout import ROOT

TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
TOPS = (ROOT, ROOT / "engine/gatewright", ROOT / "gui/gatewright_gui")
ROOMS = "\n".join(
    ast.get_docstring(ast.parse(door.read_text("utf-8"))) or ""
    for top in TOPS[1:]
    for door in sorted(top.rglob("__init__.py"))
)
NAMED = sorted(set(re.findall(r"`([\w./]+(?:\.py|\.md|/))`", f"{TEXT}\n{ROOMS}")))
PAGE_LINES = 105


def is_there(named: str) -> bool:
    return any((top / named).exists() for top in TOPS) or any(
        path.as_posix().endswith(f"/{named}") for top in TOPS[1:] for path in top.rglob(named.rsplit("/", 1)[-1])
    )


def test_the_document_is_one_page() -> None:
    assert len(TEXT.splitlines()) <= PAGE_LINES


@pytest.mark.parametrize("named", NAMED)
def test_what_the_document_names_is_there(named: str) -> None:
    assert is_there(named)


@pytest.mark.parametrize(("drawn", "container"), [("ENGINE", "gatewright"), ("GUI", "gatewright_gui")])
def test_drawing_of_the_floors_is_what_the_contracts_keep(drawn: str, container: str) -> None:
    found = re.search(rf"^{drawn} +((?:.+\n)(?: +.+\n)*)", TEXT, re.MULTILINE)
    assert found is not None
    floors = [sorted(part.strip() for part in floor.split("|")) for floor in found[1].replace("\n", " ").split(">")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one.get("containers") == [container])
    assert floors == [sorted(part.strip() for part in layer.split("|")) for layer in layers]
