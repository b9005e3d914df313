"""Runs `gatewright tour` as a process of its own, without a display. It checks nothing."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUN = "import sys; from gatewright.cli.main import script; sys.exit(script())"


def tour(
    out: Path, workspace: Path | None = None, *, before: str = "", display: bool = True
) -> subprocess.CompletedProcess[str]:
    """Make the tour; `before` is Python that runs first in the same process."""
    words = ["tour", "--out", str(out), *([str(workspace)] if workspace is not None else [])]
    sources = os.pathsep.join(str(ROOT / name) for name in ("engine", "gui", "resources"))
    environ = {**os.environ, "PYTHONPATH": sources, "PYTHONWARNINGS": "error"}
    if display:
        environ["QT_QPA_PLATFORM"] = "offscreen"
    else:
        for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
            environ.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", f"{before}\n{RUN}", *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
