"""The guided tour: drives the real window through the main job, takes pictures, compares what it shows with the engine.

It works on a copy, and calls nothing of the window: everything is done by mouse and keyboard.
"""

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright_gui.app.build import build_window
from gatewright_gui.app.main import NO_DISPLAY, has_display
from gatewright_gui.app.touring import programme
from gatewright_gui.app.touring.driver import DriveError
from gatewright_gui.app.touring.ground import Ground, OutRefused, ground_of, prepare_out
from gatewright_gui.app.touring.scene import SIZE, Scene
from gatewright_gui.qt import loop
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow

CHECKS_FAILED, INVALID, UNUSABLE = 1, 1, NO_DISPLAY
_NOISE = ("This plugin does not support",)


def run(workspace: Path | None, out: Path, only: Collection[str] | None = None) -> int:
    """Make the tour: pictures, the exported policy and `tour.json` in `out`; 0 when every check holds.

    `only`: the parts of the programme to make.
    """
    try:
        folder = prepare_out(out)
    except OutRefused as error:
        return _refuse(str(error), UNUSABLE)
    if not has_display(os.environ, sys.platform):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    try:
        with ground_of(workspace) as ground:
            return _make(ground, folder, only)
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


def _make(ground: Ground, out: Path, only: Collection[str] | None) -> int:
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    began = time.monotonic()
    with _quiet_platform():
        scene = loop.run(app, lambda: _live(ground, out, only))
    report = scene.report
    report.write(out)
    checks = [check for step in report.steps for check in step.checks]
    good = sum(check.ok for check in checks)
    seconds = time.monotonic() - began
    print(f"{len(report.steps)} steps, {good} of {len(checks)} checks hold, {seconds:.1f} s: {out}", flush=True)
    return 0 if report.is_ok else CHECKS_FAILED


async def _live(ground: Ground, out: Path, only: Collection[str] | None) -> Scene:
    window = await build_window(ground.policy, preferences=Preferences(ground.preferences), theme="light")
    scene = Scene(window, out)
    done = asyncio.get_running_loop().create_future()

    def drive() -> None:  # not in a task: every click lets the tasks of the window run
        try:
            with _watched_hook(scene):
                tour(scene, ground, only)
        except Exception as error:  # noqa: BLE001  # whatever breaks the tour off has to stand in its report
            traceback.print_exc()
            with scene.step("broken-off") as step:
                step.check(f"the tour goes on: {type(error).__name__}: {error}", ok=False)
        finally:
            done.set_result(None)

    _place(window)
    QTimer.singleShot(0, drive)
    try:
        await done
    finally:
        window.hide()
        await window.shut()
    return scene


def _place(window: MainWindow) -> None:
    window.show()
    window.resize(*SIZE)
    window.activateWindow()


def tour(scene: Scene, ground: Ground, only: Collection[str] | None = None) -> None:
    """All steps, light first; or only some parts of it."""
    with suppress(DriveError):  # without a window manager no window may ever be active; the clicks find it all the same
        scene.driver.until(scene.window.isActiveWindow, "the window to be active", 2.0)
    programme.make(scene, ground, only)


@contextmanager
def _watched_hook(scene: Scene) -> Generator[None, None, None]:
    """What a slot of the window raises fails the step."""

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        scene.faults.append(f"{kind.__name__}: {error}")
        kept(kind, error, trace)

    kept, sys.excepthook = sys.excepthook, note
    try:
        yield
    finally:
        sys.excepthook = kept


@contextmanager
def _quiet_platform() -> Generator[None, None, None]:
    """Leave out what a platform without a screen says of sizes."""

    def tell(_kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        if not any(word in message for word in _NOISE):
            sys.stderr.write(f"{message}\n")

    kept = qInstallMessageHandler(tell)
    try:
        yield
    finally:
        qInstallMessageHandler(kept)
