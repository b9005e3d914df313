"""The copy that a tour works on, away from the files, keys and settings of the user. It shows nothing."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSettings

from gatewright_gui.app.touring.report import REPORT_NAME
from gatewright_gui.app.touring.scene import clear_pictures
from gatewright_gui.session.opening import POLICY_NAME, open_workspace, write_demo

_STATE, _KEYS = "GATEWRIGHT_STATE", "GATEWRIGHT_KEYS"
MAX_WATCHED = 2_000


@dataclass(frozen=True, slots=True)
class Ground:
    """`policy`: of the copy. `watched`: files that must not change, with their content."""

    policy: Path
    preferences: Path
    watched: dict[Path, bytes]


class OutRefused(Exception):
    """The folder for the pictures cannot be used."""


def prepare_out(out: Path) -> Path:
    """Make the folder for the pictures, without those of an earlier tour. Raises OutRefused."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = out.resolve()
        if (folder / POLICY_NAME).exists() and not (folder / REPORT_NAME).exists():
            raise OutRefused(f"`{out}` holds a `{POLICY_NAME}` that is not from a tour; choose another folder")
        with tempfile.TemporaryFile(dir=folder):
            pass
        clear_pictures(folder)
        (folder / REPORT_NAME).unlink(missing_ok=True)
        (folder / POLICY_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise OutRefused(f"cannot write to `{out}`: {error.strerror or error}") from None
    return folder


@contextmanager
def ground_of(workspace: Path | None) -> Generator[Ground, None, None]:
    """A copy of the workspace, or the demo. Raises WorkspaceError or PolicyInvalid when it cannot be opened."""
    holder = Path(tempfile.mkdtemp(prefix="gatewright-tour-"))
    kept = {name: os.environ.get(name) for name in (_STATE, _KEYS)}
    os.environ.pop(_STATE, None)
    os.environ[_KEYS] = str(holder / "keys")
    QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, str(holder / "settings"))
    try:
        if workspace is None:
            policy = write_demo(holder / "demo")
            yield Ground(policy, holder / "preferences.ini", _contents(policy.parent))
            return
        opened = open_workspace(workspace, False)
        try:
            copy = opened.sandbox()
        finally:
            opened.close()
        try:
            policy = copy.folder / opened.policy_path.name
            watched = {opened.policy_path: opened.policy_path.read_bytes(), **_contents(copy.folder)}
            yield Ground(policy, holder / "preferences.ini", watched)
        finally:
            copy.close()
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(holder, ignore_errors=True)


def _contents(folder: Path) -> dict[Path, bytes]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and ".gatewright" not in file.parts]
    return {file: file.read_bytes() for file in files[:MAX_WATCHED]}
