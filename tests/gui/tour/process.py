"""Runs the tour as a process of its own, without a display. It checks nothing."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUN = "import sys, pathlib; from gatewright_gui.app.tour import run; "
SECONDS = 180


def tour(
    out: Path, workspace: Path | None = None, *, before: str = "", display: bool = True
) -> subprocess.CompletedProcess[str]:
    """Make the tour; `before` is Python that runs first in the same process."""
    place = f"pathlib.Path({str(workspace)!r})" if workspace is not None else "None"
    code = f"{before}\n{RUN}sys.exit(run({place}, pathlib.Path({str(out)!r})))"
    sources = os.pathsep.join(str(ROOT / name) for name in ("engine", "gui", "resources"))
    environ = {**os.environ, "PYTHONPATH": sources, "PYTHONWARNINGS": "error"}
    if display:
        environ["QT_QPA_PLATFORM"] = "offscreen"
    else:
        for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
            environ.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
    )
