"""The steps below the tree: limits, constraints, capabilities, what asks first. By mouse and keyboard only."""

from collections.abc import Sequence
from typing import TypeVar

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton, QTableView

from gatewright.policy.capability import Capability, CapabilityKind, kind_of
from gatewright.policy.document import Agent
from gatewright.policy.rule import ArgumentConstraints, MaxCalls, RateLimit, RuleKind
from gatewright.policy.ruleedit import taken_fields
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import CTRL, DriveError
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject
from gatewright_gui.models import agentrules, limitlist
from gatewright_gui.models.agentrules import AgentRow
from gatewright_gui.models.callexample import example_values
from gatewright_gui.models.callform import CallForm
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.calls import shown_tools

CALLS, RATE = "5", "10 per 1 min"
PATTERN, FITS, FITS_NOT = "^notes/", "notes/new.md", "drafts/new.md"
K = TypeVar("K", bound=RuleKind)
LIMITS, RULES = "agents.limits.list", "agents.rules.list"


def calls(scene: Scene, subject: Subject) -> None:
    """Add a limit in its row; what is wrong is said while one types."""
    with scene.step("limit-calls", "agents") as step:
        _enter(scene, subject, "limits")
        _add(scene, "calls", CALLS)
        added = _own(scene, subject, MaxCalls)
        step.equal(f"`{_operation(subject)}` may be called so often", [k.calls for k in added], [int(CALLS)])
        _compare_row(scene, step, f"{CALLS} calls in a session")
    with scene.step("limit-edited", "agents") as step:
        _enter(scene, subject, "limits")
        view = scene.driver.find(LIMITS, QTableView)
        scene.driver.click_cell(view, _row(view, f"{CALLS} calls in a session"))
        scene.driver.key(Qt.Key.Key_Return)
        scene.driver.key(Qt.Key.Key_A, CTRL)
        scene.driver.type("12")
        scene.driver.key(Qt.Key.Key_Return)
        scene.settle()
        step.equal("the new number is in the policy", [k.calls for k in _own(scene, subject, MaxCalls)], [12])
        _compare_row(scene, step, "12 calls in a session")


def rate(scene: Scene, subject: Subject) -> None:
    """A rate beside it; then both are undone."""
    with scene.step("limit-rate", "agents") as step:
        _enter(scene, subject, "limits")
        _add(scene, "rate", RATE)
        added = _own(scene, subject, RateLimit)
        step.equal("the rate is in the policy", [(k.calls, k.per_s) for k in added], [(10, 60.0)])
        _compare_row(scene, step, f"{RATE}, over all sessions")
        step.check("undo has a name", "limit" in scene.document.undo_stack.undoText())
    with scene.step("limits-undone", "agents") as step:
        ways.undo(scene, 3)
        left = [*_own(scene, subject, RateLimit), *_own(scene, subject, MaxCalls)]
        step.equal("three undos take all of it back", left, [])


def constraint(scene: Scene, subject: Subject) -> None:
    """What an argument may be: a pattern, and an example that it denies."""
    made = False
    with scene.step("constraint-dialog", "agents") as step:
        made = _constrain(scene, subject, step)
        if made:
            step.check("it can be made", scene.driver.find("constraint.accept", QPushButton).isEnabled())
    if not made:
        return
    with scene.step("constraint", "agents", "preview") as step:
        scene.driver.click("constraint.accept")
        scene.driver.until(lambda: ways.dialog(scene, "constraint") is None, "the dialog to close")
        scene.driver.until(lambda: bool(_own(scene, subject, ArgumentConstraints)), "the constraint")
        scene.settle()
        verdicts = [_decide(scene, subject, path) for path in (FITS, FITS_NOT)]
        step.check("what fits is not denied by a rule", verdicts[0] != (Verdict.DENY, "rules"))
        step.equal("what does not is", verdicts[1], (Verdict.DENY, "rules"))
    with scene.step("constraint-undone", "agents") as step:
        ways.undo(scene)
        step.equal("one undo takes it back", _own(scene, subject, ArgumentConstraints), [])


def capability(scene: Scene, subject: Subject) -> None:
    """Grant a capability that has no scope, and take it back."""
    before = scene.document.policy.agents[subject.agent_id].capabilities
    kind = next((k for k in (CapabilityKind.CLOCK_READ, CapabilityKind.ADVANCED_EDIT) if k not in _kinds(before)), None)
    with scene.step("capability", "agents") as step:
        _enter(scene, subject, "agent")
        if kind is None:
            step.not_here("the agent has every capability without a scope")
            return
        ways.menu(scene, "agents.rules.add", "Grant", f"agents.rules.grant.{kind}")
        scene.driver.until(lambda: kind in _kinds(_agent(scene, subject).capabilities), "the grant")
        scene.settle()
        step.equal("the others stay as they were", _agent(scene, subject).capabilities[: len(before)], before)
        row = _row(scene.driver.find(RULES, QTableView), str(kind), agentrules.Column.WHAT)
        step.check("it has a row", row.isValid())
        ways.undo(scene)
        step.equal("one undo takes it back", _agent(scene, subject).capabilities, before)


def approval(scene: Scene, subject: Subject) -> None:
    """D on what a tier asks: denied; undone."""
    with scene.step("approval-tier", "agents") as step:
        _enter(scene, subject, "agent")
        view = scene.driver.find(RULES, QTableView)
        rows = [view.model().index(row, agentrules.Column.WHAT) for row in range(view.model().rowCount())]
        held = [(index, index.data(agentrules.ROW)) for index in rows]
        open_ones = [(i, r) for i, r in held if isinstance(r, AgentRow) and r.verdict not in {None, Verdict.DENY}]
        if not open_ones:
            step.not_here("everything is denied already")
            return
        index, row = open_ones[0]
        was = dict(_agent(scene, subject).approvals)
        scene.driver.click_cell(view, index)
        scene.driver.key(Qt.Key.Key_D)
        scene.driver.until(lambda: _agent(scene, subject).approvals.get(row.what) is Verdict.DENY, "the verdict")
        scene.settle()
        value = _row(view, row.what, agentrules.Column.WHAT).siblingAtColumn(agentrules.Column.VALUE)
        step.equal("the row says so", value.data(), "deny")
        ways.undo(scene)
        step.equal("one undo takes it back", dict(_agent(scene, subject).approvals), was)


def show_again(scene: Scene, subject: Subject) -> None:
    """The two parts and the dialog, in the theme that is on."""
    for part, name in (("limits", "limits"), ("agent", "capabilities")):
        with scene.step(name, "agents") as step:
            _enter(scene, subject, part)
            view = scene.driver.find(LIMITS if part == "limits" else RULES, QTableView)
            step.check("it has rows, or says that there are none", view.model().rowCount() or part == "limits")
    with scene.step("constraint-dialog", "agents") as step:
        _constrain(scene, subject, step)
    ways.leave_dialog(scene, "constraint")
    scene.choose("agents.detail.parts", "why")


# what several steps do


def _enter(scene: Scene, subject: Subject, part: str) -> None:
    if scene.window.shelf.current_key != "agents":
        scene.go_to("agents")
    if scene.window.selection.agent_id != subject.agent_id:
        ways.choose_agent(scene, subject.agent_id)
    operation = _operation(subject)
    if not scene.tree.isExpanded(scene.row(subject.tool)):
        scene.driver.click_branch(scene.tree, scene.row(subject.tool))
    ways.choose_row(scene, subject.tool, operation)
    if scene.driver.find("agents.detail.parts", Segmented).current != part:
        scene.choose("agents.detail.parts", part)


def _operation(subject: Subject) -> str:
    return subject.asking or subject.operation


def _add(scene: Scene, key: str, value: str) -> None:
    """From the menu, then typed in place."""
    ways.menu(scene, "agents.limits.add", f"agents.limits.add.{key}")
    view = scene.driver.find(LIMITS, QTableView)
    scene.driver.until(lambda: view.state() == QTableView.State.EditingState, "the field in the row")
    edits = scene.document.undo_stack.index()
    scene.driver.key(Qt.Key.Key_A, CTRL)
    scene.driver.type(value)
    scene.driver.key(Qt.Key.Key_Return)
    scene.driver.until(lambda: scene.document.undo_stack.index() > edits, "the edit")
    scene.settle()


def _constrain(scene: Scene, subject: Subject, step: Step) -> bool:
    """Open the dialog and fill it in; False where the tool takes no path."""
    _enter(scene, subject, "limits")
    if "path" not in _fields(scene, subject):
        step.not_here("the operation takes no path")
        return False
    ways.menu(scene, "agents.limits.add", "agents.limits.add.argument")
    ways.wait_for_dialog(scene, "constraint")
    if scene.driver.find("constraint.argument", QComboBox).currentText() != "path":
        ways.choose_in(scene, "constraint.argument", "path")
    scene.driver.replace_text("constraint.pattern", PATTERN)
    fits = scene.driver.find("constraint.fits", QLabel)
    said: list[bool] = []
    for example in (FITS, FITS_NOT):
        scene.driver.replace_text(scene.driver.find("constraint.example", QLineEdit), example)
        said.append(not fits.text().startswith("denied"))
    step.equal("it says which example fits", said, [True, False])
    return True


def _fields(scene: Scene, subject: Subject) -> tuple[str, ...]:
    facts = scene.document.rights(subject.agent_id)[subject.tool].facts
    return taken_fields(facts, (_operation(subject),))


def _decide(scene: Scene, subject: Subject, path: str) -> tuple[Verdict, str]:
    """What the gate says of a call that is whole but for its path."""
    tool = next(one for one in shown_tools(scene.document.workspace, subject.agent_id) if one.name == subject.tool)
    form = CallForm(tool)
    form.choose_operation(_operation(subject))
    decided = scene.document.workspace.decide(subject.agent_id, subject.tool, {**example_values(form), "path": path})
    return decided.verdict, decided.stage


def _agent(scene: Scene, subject: Subject) -> Agent:
    return scene.document.policy.agents[subject.agent_id]


def _kinds(capabilities: Sequence[Capability]) -> list[CapabilityKind]:
    return [kind_of(one) for one in capabilities]


def _own(scene: Scene, subject: Subject, kind: type[K]) -> list[K]:
    """The agent's own rules of a kind for the operation alone."""
    only = frozenset({_operation(subject)})
    rules = _agent(scene, subject).tool_rules
    return [r.rule_type for r in rules if isinstance(r.rule_type, kind) and r.operations == only]


def _row(view: QTableView, words: str, column: int = limitlist.Column.VALUE) -> QModelIndex:
    model = view.model()
    for row in range(model.rowCount()):
        if str(model.index(row, column).data()) == words:
            return model.index(row, column)
    raise DriveError(f"`{view.objectName()}` has no row `{words}`")


def _compare_row(scene: Scene, step: Step, words: str) -> None:
    view = scene.driver.find(LIMITS, QTableView)
    found = scene.driver.holds_soon(lambda: "line " in _where(view, words), 2.0)
    step.check("its row has the line of the policy where it stands", found)


def _where(view: QTableView, words: str) -> str:
    return str(_row(view, words).siblingAtColumn(limitlist.Column.WHERE).data())
