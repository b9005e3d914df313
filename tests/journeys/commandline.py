"""The command line of the interpreter that runs the journeys, without an installation."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from gatewright.cli.main import script; sys.exit(script())"


async def gatewright(*words: str) -> tuple[int, Any]:
    """Run `gatewright WORDS --json`; return its exit status and its output."""
    sources = os.pathsep.join(str(ROOT / name) for name in ("engine", "gui", "resources"))
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", COMMAND, *words, "--json"],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)
