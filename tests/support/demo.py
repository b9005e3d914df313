"""The demo workspace for tests: made once in a process and then copied, since making its memory waits for the disk."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from gatewright.gate import STATE_FOLDER, key_folder
from gatewright.memory.block_store import adopt_memory
from gatewright.workspace import create_workspace


def copy_demo(folder: Path) -> Path:
    """Copy the demo into a new folder and return its policy file."""
    shutil.copytree(_made_demo(), folder)
    adopt_memory(folder / STATE_FOLDER, key_folder())
    return folder / "policy.toml"


@cache
def _made_demo() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gatewright-demo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return create_workspace(folder / "demo", "demo").parent
