"""The guided tour as a command: the real window on a copy of a workspace, its pictures, and what did not hold."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from PySide6.QtCore import QMessageLogContext, QSettings, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright_gui.app.build import build_window
from gatewright_gui.app.main import NO_DISPLAY, has_display
from gatewright_gui.app.scenes import SCENES, SIZE, Tour
from gatewright_gui.qt import loop
from gatewright_gui.session.opening import POLICY_NAME, open_workspace, write_demo
from gatewright_gui.settings import Preferences

REPORT_NAME = "tour.json"
CHECKS_FAILED, INVALID, UNUSABLE = 1, 1, NO_DISPLAY


def run(workspace: Path | None, out: Path) -> int:
    """Make the tour: pictures, the exported policy and `tour.json` in `out`; 0 when every check holds.

    It works on a copy of the workspace, or on the demo. It is for a process of its own: the copy has keys of its own.
    """
    try:
        folder = _prepare(out)
    except OSError as error:
        return _refuse(f"cannot write to `{out}`: {error.strerror or error}", UNUSABLE)
    if folder is None:
        return _refuse(f"`{out}` holds a `{POLICY_NAME}` that is not from a tour; choose another folder", UNUSABLE)
    if not has_display(os.environ, sys.platform):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    try:
        with _copy_of(workspace) as (policy, preferences):
            return _make(policy, preferences, folder)
    except PolicyInvalid as error:
        for problem in error.problems:
            place = f"{problem.place.line}:{problem.place.column}: " if problem.place else ""
            sys.stderr.write(f"{place}{problem.message}\n")
        return _refuse(f"`{workspace}` has errors; there is nothing to show", INVALID)
    except WorkspaceError as error:
        return _refuse(str(error), UNUSABLE)


def _refuse(message: str, status: int) -> int:
    sys.stderr.write(f"no tour: {message}\n")
    return status


def _prepare(out: Path) -> Path | None:
    """Make the folder, without what an earlier tour left; None where it holds a policy of somebody's own."""
    out.mkdir(parents=True, exist_ok=True)
    folder = out.resolve()
    if (folder / POLICY_NAME).exists() and not (folder / REPORT_NAME).exists():
        return None
    with tempfile.TemporaryFile(dir=folder):
        pass
    pictures = [*folder.glob("[0-9][0-9]-*-light.png"), *folder.glob("[0-9][0-9]-*-dark.png")]
    for file in (*pictures, folder / REPORT_NAME, folder / POLICY_NAME):
        file.unlink(missing_ok=True)
    return folder


@contextmanager
def _copy_of(workspace: Path | None) -> Generator[tuple[Path, Preferences], None, None]:
    """The policy file of a copy, away from the files, keys and settings of the user. Raises WorkspaceError."""
    with tempfile.TemporaryDirectory(prefix="gatewright-tour-", ignore_cleanup_errors=True) as holder:
        place = Path(holder)
        os.environ.pop("GATEWRIGHT_STATE", None)
        os.environ["GATEWRIGHT_KEYS"] = str(place / "keys")
        QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, str(place / "settings"))
        preferences = Preferences(place / "preferences.ini")
        if workspace is None:
            yield write_demo(place / "demo"), preferences
            return
        with open_workspace(workspace, False) as opened:
            copy = opened.sandbox()
        try:
            yield copy.folder / opened.policy_path.name, preferences
        finally:
            copy.close()


def _make(policy: Path, preferences: Preferences, out: Path) -> int:
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    app = QApplication(sys.argv[:1])
    qInstallMessageHandler(_tell_of_qt)
    began_s = time.monotonic()
    steps = loop.run(app, lambda: _show(policy, preferences, out))
    (out / REPORT_NAME).write_text(json.dumps({"steps": steps}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    checks: list[bool] = [check["ok"] for step in steps for check in step["checks"]]
    seconds = time.monotonic() - began_s
    print(f"{len(steps)} pictures, {sum(checks)} of {len(checks)} checks hold, {seconds:.1f} s: {out}", flush=True)
    return 0 if all(checks) else CHECKS_FAILED


async def _show(policy: Path, preferences: Preferences, out: Path) -> list[dict[str, Any]]:
    window = await build_window(policy, preferences=preferences, theme="light")
    tour = Tour(window, out)
    done = asyncio.get_running_loop().create_future()

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        tour.faults.append(f"{kind.__name__}: {error}")
        hook(kind, error, trace)

    def play() -> None:  # not in a task: every click lets the tasks of the window run
        try:
            for scene in SCENES:
                tour.play(scene)
        finally:
            done.set_result(None)

    hook, sys.excepthook = sys.excepthook, note
    window.show()
    window.resize(*SIZE)
    window.activateWindow()
    QTimer.singleShot(0, play)
    try:
        await done
    finally:
        sys.excepthook = hook
        window.hide()
        await window.shut()
    return tour.steps


def _tell_of_qt(_kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    if "This plugin does not support" not in message:  # what a platform without a screen says of sizes
        sys.stderr.write(f"{message}\n")
