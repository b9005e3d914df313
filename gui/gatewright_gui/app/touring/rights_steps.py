"""The steps on presets and copied rights: what would change is shown, made, undone. By mouse and keyboard only."""

from dataclasses import dataclass

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtWidgets import QListView, QPushButton

from gatewright.policy.right import OperationRight
from gatewright.policy.rightsdiff import Standing
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import DriveError
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.models import rightchanges
from gatewright_gui.qt.widget.item_view import TableView

PRESET, COPY = "agents.preset.read_only", "agents.copy_rights"
Standings = dict[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Before:
    """How things stood before the dialog, and what it listed."""

    agent_id: str
    standings: Standings
    listed: Standings
    edits: int


def preset(scene: Scene, subject: Subject) -> None:
    """Read-only, for one agent."""
    before: Before | None = None
    with scene.step("preset-dialog", "agents") as step:
        _open(scene, subject, PRESET)
        step.check("it names the agent", subject.agent_id in _chosen(scene))
        before = _listed(scene, subject.agent_id, step)
    if before is None:
        return
    with scene.step("preset", "agents", "preview") as step:
        _accept(scene, before, step)
        rights = scene.document.rights(subject.agent_id).values()
        ticked = {op.tier for right in rights for op in right.operations if op.ticked}
        step.check("only what reads is on", ticked <= {SafetyTier.READ_ONLY})
    _undone(scene, "preset-undone", before)


def copy_rights(scene: Scene, subject: Subject) -> None:
    """To the agent that differs most."""
    before: Before | None = None
    target = _target(scene, subject)
    with scene.step("copy-dialog", "agents") as step:
        if target is None:
            step.not_here("there is no other agent")
            return
        _open(scene, subject, COPY)
        step.equal("nobody is chosen at first", _chosen(scene), [])
        accept = scene.driver.find("rights.accept", QPushButton)
        step.check("so nothing can be copied yet", not accept.isEnabled())
        _tick(scene, target)
        before = _listed(scene, target, step)
    if before is None or target is None:
        return
    with scene.step("copy-rights", "agents", "preview") as step:
        _accept(scene, before, step)
        ways.choose_agent(scene, target)
        step.equal("both have the same boxes", _ticked(scene, target), _ticked(scene, subject.agent_id))
    _undone(scene, "copy-undone", before)
    ways.choose_agent(scene, subject.agent_id)


def show_again(scene: Scene, subject: Subject) -> None:
    """Both dialogs in the theme that is on; nothing is made."""
    for key, name in ((PRESET, "preset-dialog"), (COPY, "copy-dialog")):
        target = _target(scene, subject)
        with scene.step(name, "agents") as step:
            if key == COPY and target is None:
                step.not_here("there is no other agent")
                continue
            _open(scene, subject, key)
            if key == COPY and target is not None:
                _tick(scene, target)
            _wait(scene)
            step.check("it lists what would change", scene.driver.find("rights.changes").isVisible())
        ways.leave_dialog(scene, "rights")


def _open(scene: Scene, subject: Subject, action: str) -> None:
    scene.go_to("agents")
    ways.choose_agent(scene, subject.agent_id)
    ways.menu(scene, "agents.preset", action)
    ways.wait_for_dialog(scene, "rights")
    _wait(scene)


def _wait(scene: Scene) -> None:
    scene.driver.until(lambda: "agents.rights.lines" not in scene.window.tasks.names, "what would change")


def _changes(scene: Scene) -> QAbstractItemModel:
    return scene.driver.find("rights.changes", TableView).model()


def _chosen(scene: Scene) -> list[str]:
    model = scene.driver.find("rights.agents", QListView).model()
    rows = [model.index(row, 0) for row in range(model.rowCount())]
    on = Qt.CheckState.Checked.value
    return [str(row.data()) for row in rows if _state(row.data(Qt.ItemDataRole.CheckStateRole)) == on]


def _state(value: object) -> object:
    return value.value if isinstance(value, Qt.CheckState) else value


def _tick(scene: Scene, agent_id: str) -> None:
    view = scene.driver.find("rights.agents", QListView)
    rows = [view.model().index(row, 0) for row in range(view.model().rowCount())]
    found = next((row for row in rows if row.data() == agent_id), None)
    if found is None:
        raise DriveError(f"the dialog does not offer `{agent_id}`")
    scene.driver.click_cell(view, found)
    if agent_id not in _chosen(scene):
        scene.driver.key(Qt.Key.Key_Space)
    scene.driver.until(lambda: agent_id in _chosen(scene), f"`{agent_id}` to be ticked")
    _wait(scene)


def _listed(scene: Scene, agent_id: str, step: Step) -> Before:
    """What the dialog lists, with how things stand: what it says of now has to be so."""
    model = _changes(scene)
    standings, listed = _standings(scene, agent_id), Standings()
    now: Standings = {}
    places = {_words(*place): place for place in standings}
    for row in range(model.rowCount()):
        index = model.index(row, rightchanges.WHAT)
        place = places.get(str(index.data()))
        was, then = index.data(rightchanges.BEFORE), index.data(rightchanges.AFTER)
        if place is not None and was is not None:
            now[place], listed[place] = str(was), str(then)
    step.check("it lists changes", bool(listed))
    step.equal("what it says of now is so", now, {place: standings[place] for place in now})
    step.check("they can be made", scene.driver.find("rights.accept").isEnabled())
    return Before(agent_id, standings, listed, scene.document.undo_stack.index())


def _accept(scene: Scene, before: Before, step: Step) -> None:
    policy = scene.document.policy
    scene.driver.click("rights.accept")
    scene.driver.until(lambda: ways.dialog(scene, "rights") is None, "the dialog to close")
    scene.driver.until(lambda: scene.document.policy != policy, "the edit")
    scene.settle()
    after = _standings(scene, before.agent_id)
    changed = {place: after[place] for place in after if after[place] != before.standings.get(place)}
    step.equal("what the engine says changed is what was listed", changed, before.listed)
    step.equal("it is one edit", scene.document.undo_stack.index(), before.edits + 1)


def _undone(scene: Scene, name: str, before: Before) -> None:
    with scene.step(name, "agents") as step:
        ways.undo(scene)
        step.equal("one undo takes all of it back", _standings(scene, before.agent_id), before.standings)


def _standings(scene: Scene, agent_id: str) -> Standings:
    rights = scene.document.rights(agent_id)
    return {(tool, op.operation): _standing(op) for tool, right in rights.items() for op in right.operations}


def _standing(op: OperationRight) -> str:
    if op.is_overruled:
        return str(Standing.OVERRULED)
    if op.is_hidden:
        return str(Standing.OFF)
    return str(Standing.ASKS if op.verdict is Verdict.ASK else Standing.ON)


def _ticked(scene: Scene, agent_id: str) -> set[tuple[str, str]]:
    rights = scene.document.rights(agent_id)
    return {(tool, op.operation) for tool, right in rights.items() for op in right.operations if op.ticked}


def _words(tool: str, operation: str) -> str:
    return f"{tool}.{operation}" if operation else tool


def _target(scene: Scene, subject: Subject) -> str | None:
    here = _ticked(scene, subject.agent_id)
    others = [agent.agent_id for agent in scene.document.agents if agent.agent_id != subject.agent_id]
    return max(others, key=lambda name: len(_ticked(scene, name) ^ here), default=None)
