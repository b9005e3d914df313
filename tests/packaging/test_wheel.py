"""What pip gets: what the wheel holds, and that the engine in it works without Qt and without the checkout.

That it installs into an empty environment and what the extras add is shown by `packaging/verify`.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.checkout import ROOT, SOURCES

DATA = {".csv", ".json", ".log", ".md", ".mo", ".otf", ".po", ".qss", ".sql", ".svg", ".toml", ".ttf", ".txt", ".mjs"}
BESIDE_CODE = {"gatewright/py.typed", "gatewright_resources/fonts/LICENSE", "gatewright_resources/icons/LICENSE"}
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from gatewright.cli.main import main
status = main(sys.argv[2:])
import gatewright
strangers = [name for name in sys.modules if name.partition(".")[0] in ("PySide6", "shiboken6", "gatewright_gui")]
print(gatewright.__file__, *strangers, file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built as a distribution would: from the source archive, not from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, "sdist", folder)
    (folder / "source").mkdir()
    subprocess.run(["tar", "-xzf", next(folder.glob("*.tar.gz")), "-C", folder / "source"], check=True)
    (source,) = (folder / "source").iterdir()
    build(source, "wheel", folder)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def build(source: Path, target: str, folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    return folder


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *map(str, SOURCES.values())],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]
    wanted = {path.partition("/")[2] for path in paths if path != "gui/gatewright_gui/pages/README.md"}
    about = {name for name in wheel.namelist() if name.partition("/")[0].endswith(".dist-info")}

    assert set(wheel.namelist()) - about == wanted
    assert {name.partition("/")[2] for name in about} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }


def test_the_wheel_holds_modules_known_data_and_no_test(wheel: zipfile.ZipFile) -> None:
    packages = [name for name in wheel.namelist() if not name.partition("/")[0].endswith(".dist-info")]
    data = {name for name in packages if not name.endswith(".py")}

    assert data >= BESIDE_CODE
    assert not [name for name in data - BESIDE_CODE if Path(name).suffix not in DATA]
    assert not [name for name in data - BESIDE_CODE if not name.startswith("gatewright_resources/")]
    assert not [name for name in packages if "test" in Path(name).name.split("_") or "/tests/" in name]


def gatewright(installed: Path, *words: str, cwd: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", before + RUN, str(installed), *words],
        cwd=cwd,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_wheel_works_without_qt_and_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    decide = ("decide", "demo", "--agent", "archivist", "--json", "--tool", "file", "--args")
    runs = [
        gatewright(installed, *words, cwd=tmp_path)
        for words in (
            ("init", "demo", "--template", "demo"),
            ("check", "demo"),
            (*decide, '{"op": "read", "path": "notes/species.md"}'),
            (*decide, '{"op": "read", "path": "secrets/station-key.txt"}'),
            ("selfcheck", "demo", "--json"),
        )
    ]

    assert [run.returncode for run in runs] == [0, 0, 0, 4, 0], runs
    assert {run.stderr.splitlines()[-1] for run in runs} == {str(installed / "gatewright" / "__init__.py")}
    assert [json.loads(run.stdout)["verdict"] for run in runs[2:4]] == ["allow", "deny"]
    assert json.loads(runs[4].stdout)["differences"] == []


@pytest.mark.parametrize("words", [("gui",), ("tour", "--out", "tour")])
def test_the_app_says_what_to_install_where_qt_is_not(installed: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    run = gatewright(installed, *words, cwd=tmp_path, before="import sys; sys.modules['PySide6'] = None")

    assert run.returncode == 2, run
    assert "pip install 'gatewright[gui]'" in run.stderr


def test_the_package_runs_as_a_module(installed: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-m", "gatewright", "--version"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert (run.returncode, run.stdout.count("."), run.stderr) == (0, 2, "")
