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

from PySide6.QtCore import QMessageLogContext, QSettings, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from gatewright.workspace.api import WorkspaceError
from gatewright_gui.app.build import build_window
from gatewright_gui.app.main import has_display
from gatewright_gui.app.scenes import SCENES
from gatewright_gui.app.scenes.player import SIZE, Tour
from gatewright_gui.qt import loop
from gatewright_gui.qt.language import VARIABLE
from gatewright_gui.session.opening import POLICY_NAME, Opener, write_demo
from gatewright_gui.settings import Preferences

REPORT_NAME = "tour.json"


def run(workspace: Path | None, out: Path) -> int:
    """Make the tour: pictures, the exported policy and `tour.json` in `out`; 0 when every check holds, else 1.

    It shows a copy of the workspace, or the demo. It is for a process of its own: the copy has keys of its own. Raises
    WorkspaceError, PolicyInvalid. It speaks English.
    """
    folder = _prepare(out)
    os.environ[VARIABLE] = "en"
    if not has_display(os.environ, sys.platform):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    app = QApplication(sys.argv[:1])
    qInstallMessageHandler(_tell_of_qt)
    began_s = time.monotonic()
    with _copy_of(workspace) as (policy, preferences):
        tour = loop.run(app, lambda: _play(policy, preferences, folder))
    report = json.dumps({"steps": tour.steps}, indent=2, ensure_ascii=False)
    (folder / REPORT_NAME).write_text(f"{report}\n", "utf-8")
    checks: list[bool] = [check["ok"] for step in tour.steps for check in step["checks"]]
    held, seconds = f"{sum(checks)} of {len(checks)} checks hold", time.monotonic() - began_s
    print(f"{len(tour.steps)} pictures, {held}, {seconds:.1f} s: {folder}", flush=True)
    return 0 if all(checks) else 1


def _prepare(out: Path) -> Path:
    """Make the folder, without what an earlier tour left. Raises WorkspaceError where it is not for a tour."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = out.resolve()
        if (folder / POLICY_NAME).exists() and not (folder / REPORT_NAME).exists():
            raise WorkspaceError(f"`{out}` holds a `{POLICY_NAME}` that is not from a tour; choose another folder")
        with tempfile.TemporaryFile(dir=folder):
            pass
        pictures = [*folder.glob("[0-9][0-9]-*-light.png"), *folder.glob("[0-9][0-9]-*-dark.png")]
        for file in (*pictures, folder / REPORT_NAME, folder / POLICY_NAME):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{out}`: {error.strerror or error}") from None
    return folder


@contextmanager
def _copy_of(workspace: Path | None) -> Generator[tuple[Path, Preferences], None, None]:
    """The policy file of a copy, away from the files, keys and settings of the user."""
    with tempfile.TemporaryDirectory(prefix="gatewright-tour-", ignore_cleanup_errors=True) as holder:
        place = Path(holder)
        os.environ.pop("GATEWRIGHT_STATE", None)
        QSettings.setPath(QSettings.Format.NativeFormat, QSettings.Scope.UserScope, str(place / "settings"))
        preferences = Preferences(place / "preferences.ini")
        copy = None
        if workspace is not None:
            with Opener().open(workspace) as opened:  # by the keys of the user: its memory is theirs
                copy = opened.sandbox()
        os.environ["GATEWRIGHT_KEYS"] = str(place / "keys")
        if copy is None:
            yield write_demo(place / "demo"), preferences
            return
        try:
            policy = copy.folder / copy.workspace.policy_path.name
            with Opener().open(policy) as shown:
                copy.hand_memory_to(shown)
            yield policy, preferences
        finally:
            copy.close()


async def _play(policy: Path, preferences: Preferences, out: Path) -> Tour:
    window = await build_window(policy, preferences=preferences, theme="light")
    tour, done = Tour(window, out), asyncio.get_running_loop().create_future()

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
    return tour


def _tell_of_qt(_kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    if "This plugin does not support" not in message:  # what a platform without a screen says of sizes
        sys.stderr.write(f"{message}\n")
