"""The guided tour: drives the real window through the main job, takes pictures, compares what it shows with the engine.

It works on a copy, and calls nothing of the window: everything is done by mouse and keyboard.
"""

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright_gui.app.build import build_window
from gatewright_gui.app.main import NO_DISPLAY, has_display
from gatewright_gui.app.touring import agent_steps, console_steps, file_steps, policy_steps, schema_steps
from gatewright_gui.app.touring.driver import DriveError
from gatewright_gui.app.touring.ground import Ground, OutRefused, ground_of, prepare_out
from gatewright_gui.app.touring.report import Theme
from gatewright_gui.app.touring.scene import SIZE, Scene
from gatewright_gui.app.touring.subject import Subject, choose_subject
from gatewright_gui.qt import loop
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow

CHECKS_FAILED, INVALID, UNUSABLE = 1, 1, NO_DISPLAY
A_POINT_OF_THE_RAIL = (4, 400)
_NOISE = ("This plugin does not support",)


def run(workspace: Path | None, out: Path) -> int:
    """Make the tour: pictures, the exported policy and `tour.json` in `out`; 0 when every check holds."""
    try:
        folder = prepare_out(out)
    except OutRefused as error:
        return _refuse(str(error), UNUSABLE)
    if not has_display(os.environ, sys.platform):
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    try:
        with ground_of(workspace) as ground:
            return _make(ground, folder)
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


def _make(ground: Ground, out: Path) -> int:
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    began = time.monotonic()
    with _quiet_platform():
        scene = loop.run(app, lambda: _live(ground, out))
    report = scene.report
    report.write(out)
    checks = [check for step in report.steps for check in step.checks]
    good = sum(check.ok for check in checks)
    seconds = time.monotonic() - began
    print(f"{len(report.steps)} steps, {good} of {len(checks)} checks hold, {seconds:.1f} s: {out}", flush=True)
    return 0 if report.is_ok else CHECKS_FAILED


async def _live(ground: Ground, out: Path) -> Scene:
    window = await build_window(ground.policy, preferences=Preferences(ground.preferences), theme="light")
    scene = Scene(window, out)
    done = asyncio.get_running_loop().create_future()

    def drive() -> None:  # not in a task: every click lets the tasks of the window run
        try:
            with _watched_hook(scene):
                tour(scene, ground)
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


def tour(scene: Scene, ground: Ground) -> None:
    """All steps, light first."""
    with suppress(DriveError):  # without a window manager no window may ever be active; the clicks find it all the same
        scene.driver.until(scene.window.isActiveWindow, "the window to be active", 2.0)
    agent_steps.open_window(scene)
    subject = choose_subject(scene.document)
    if subject is None:
        agent_steps.show_again(scene, None, "schema", "agents")
    else:
        for step in (
            agent_steps.choose_agent,
            agent_steps.open_tool,
            agent_steps.preview_before,
            agent_steps.untick,
            agent_steps.preview_after,
            agent_steps.usage_rules,
            agent_steps.difference,
            agent_steps.formats,
            agent_steps.ask_first,
            agent_steps.why,
            agent_steps.why_line,
        ):
            step(scene, subject)
        agent_steps.search(scene)
        agent_steps.click_mixed(scene, subject)
        agent_steps.undo_redo(scene, subject)
        agent_steps.reset(scene, subject)
        schema_steps.provider_notes(scene, subject)
        schema_steps.tokens(scene, subject)
        schema_steps.declare(scene)
    agent_steps.other_layer(scene)
    file_steps.show_files(scene)
    file_steps.change_level(scene)
    file_steps.deciding_rule(scene)
    file_steps.try_path(scene)
    if subject is not None:
        console_steps.denied_call(scene, subject)
        console_steps.rule_of_denied(scene)
        console_steps.allowed_call(scene, subject)
        console_steps.asking_call(scene, subject, allow=False, name="call-refused")
        console_steps.standing_approval(scene, subject, "approval-standing")
    policy_steps.show_text(scene)
    policy_steps.show_difference(scene)
    policy_steps.undo_everything(scene)
    policy_steps.show_problems(scene)
    _switch_theme(scene, "dark")
    _in_the_dark(scene, subject)
    _switch_theme(scene, "light")
    policy_steps.export(scene)
    policy_steps.untouched(scene, ground.watched)


def _switch_theme(scene: Scene, wanted: Theme) -> None:
    with scene.step(f"to-{wanted}", "problems") as step:
        scene.driver.click("top.theme")
        scene.settle()
        step.equal("the theme is the other one", scene.theme, wanted)
        lightness = scene.window.grab().toImage().pixelColor(*A_POINT_OF_THE_RAIL).lightness()
        step.equal(f"the window is {wanted}", "light" if lightness > 128 else "dark", wanted)


def _in_the_dark(scene: Scene, subject: Subject | None) -> None:
    """The pages once more, in the other theme."""
    for part, name in (("schema", "agents"), ("rules", "usage-rules"), ("difference", "difference")):
        agent_steps.show_again(scene, subject, part, name)
    if subject is not None:
        schema_steps.provider_notes(scene, subject)
        schema_steps.tokens(scene, subject)
        schema_steps.declare(scene)
    file_steps.show_files(scene)
    file_steps.deciding_rule(scene)
    if subject is not None:
        console_steps.asking_call(scene, subject, allow=True, name="call-approved")
        console_steps.standing_approval(scene, subject, "approval-standing")
        console_steps.show_again(scene)
    policy_steps.show_text(scene)
    policy_steps.show_difference(scene)
    policy_steps.show_problems(scene)


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
