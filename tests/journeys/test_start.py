"""That the app starts as a person starts it, paints its window, and ends when it is told to."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from tests.journeys.hand import screen
from tests.support.patience import pause_until
from tests.support.xvfb import Display

pytestmark = pytest.mark.journey

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from gatewright.cli.main import script; sys.exit(script())"


def _installed(folder: Path) -> Path:
    """The entry points of the project as an installation would declare them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"gatewright-{declared['version']}.dist-info"
    info.mkdir(parents=True)
    points = declared["entry-points"]["gatewright.apps"]
    rows = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[gatewright.apps]\n{rows}\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gatewright\nVersion: {declared['version']}\n")
    return folder


@contextmanager
def _app(display: Display, folder: Path, *words: str) -> Generator["subprocess.Popen[str]", None, None]:
    sources = [str(_installed(folder / "installed")), *(str(ROOT / name) for name in ("engine", "gui", "resources"))]
    environ = {**display.environ(), "PYTHONPATH": os.pathsep.join(sources)}
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _wait(display: Display, process: "subprocess.Popen[str]", words: str) -> str:
    """The id of the window with these words in its title, once it is there."""
    found: list[str] = []

    def is_there() -> bool:
        assert process.poll() is None, process.communicate()
        search = ["xdotool", "search", "--onlyvisible", "--name", words]
        said = subprocess.run(search, env=display.environ(), capture_output=True, text=True, check=False)
        found[:] = said.stdout.split()
        return bool(found)

    pause_until(is_there, f"a window named `{words}`")
    return found[0]


def _colours() -> int:
    image = screen()
    return len({image.pixel(x, y) for x in range(0, 1280, 5) for y in range(0, 800, 5)})


def _is_painted() -> bool:
    QApplication.processEvents()
    return _colours() > 30


def _end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    return process.returncode, said


def test_command_shows_the_welcome_and_ends_when_told(display: Display, qapp: QApplication, tmp_path: Path) -> None:
    with _app(display, tmp_path, "gui") as process:
        _wait(display, process, "Gatewright")
        pause_until(_is_painted, "the window to be painted")

        status, said = _end(process)

    assert status in {0, 128 + signal.SIGTERM}
    assert "Traceback" not in said


def test_command_opens_the_workspace_it_is_given(
    display: Display, qapp: QApplication, policy: Path, tmp_path: Path
) -> None:
    with _app(display, tmp_path, "gui", str(policy.parent)) as process:
        window = _wait(display, process, "Field notes")
        size = display.xdotool("getwindowgeometry", "--shell", window)

        status, said = _end(process)

    assert "WIDTH=1280" in size
    assert "HEIGHT=800" in size
    assert status in {0, 128 + signal.SIGTERM}
    assert "Traceback" not in said
