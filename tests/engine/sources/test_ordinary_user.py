"""Rooms hold for an ordinary user what they hold for whoever runs these tests."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.support import bubblewrap

NOBODY = 65534
HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
_CAN = "import os, sys; sys.exit(not os.access(os.path.realpath(sys.executable), os.X_OK))"


def as_nobody() -> list[str]:
    """The command of Python as a user without rights; empty where there is none, or no Python that it may run."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.getuid() != 0:
        return []
    user = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if subprocess.run([*user, python, "-c", _CAN], capture_output=True, check=False).returncode == 0:
            return [*user, python]
    return []


@pytest.mark.skipif(not as_nobody(), reason="the tests run as an ordinary user, or no other can run Python here")
@pytest.mark.skipif(bool(bubblewrap.why_not()), reason=bubblewrap.why_not())
def test_rooms_of_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chown(folder, NOBODY, NOBODY)
        paths = [sysconfig.get_path("purelib"), *(str(CHECKOUT / name) for name in ("engine", "gui", "resources", ""))]
        environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1", "HOME": folder}
        done = subprocess.run(
            [
                *(*as_nobody(), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={folder}/tests"),
                *("-k", "not [1 and not [2 and not [3 and not [4 and not [5"),
                *(str(HERE / name) for name in ("test_roomplan.py", "test_roomwatch.py", "test_roomcopy.py")),
            ],
            cwd=CHECKOUT,
            env={**environment, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout + done.stderr or "[100%]" in done.stdout
    assert "skipped" not in done.stdout
