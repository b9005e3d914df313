"""The steps on the Agents page: agent, boxes, preview, why, search. They are made by mouse and keyboard only."""

import json
import re

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QListView, QPushButton

from gatewright.policy.right import Layer
from gatewright.policy.verdict import Verdict
from gatewright_gui.app.touring import ways
from gatewright_gui.app.touring.driver import CTRL, CTRL_SHIFT
from gatewright_gui.app.touring.report import Step
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.app.touring.subject import Subject, operation_field
from gatewright_gui.app.touring.ways import choose_row, click_box, names, right_of
from gatewright_gui.models.agents import AGENT_ID
from gatewright_gui.models.reasons import WHY, Why
from gatewright_gui.models.tooltree import Column
from gatewright_gui.pages.agents.tool_delegate import ask_rect
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel

START_SECONDS = 30.0
ON, OFF, MIXED = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked


def open_window(scene: Scene) -> None:
    """The window as it comes up."""
    with scene.step("open", "agents", "preview") as step:
        scene.settle(START_SECONDS)
        found = scene.driver.find("status.selfcheck", QPushButton)
        wanted = scene.document.workspace.selfcheck()
        scene.driver.until(lambda: found.text().startswith("self-check ") and " of " in found.text(), "the self-check")
        agrees = f"self-check {wanted.checked - len(wanted.differences):,} of {wanted.checked:,}"
        step.equal("the foot of the window tells the engine's self-check", found.text(), agrees)
        step.equal("the self-check finds no difference", len(wanted.differences), 0)
        agents = scene.driver.find("agents.list", QListView).model()
        listed = [agents.index(row, 0).data(AGENT_ID) for row in range(agents.rowCount())]
        step.equal("the list holds the agents of the policy", listed, [a.agent_id for a in scene.document.agents])


def choose_agent(scene: Scene, subject: Subject) -> None:
    """Click an agent in the list."""
    with scene.step("choose-agent", "agents", "preview") as step:
        ways.choose_agent(scene, subject.agent_id)
        step.equal("the title names the agent", scene.driver.find("agents.title", QLabel).text(), subject.agent_id)
        _compare_boxes(scene, subject, step)


def open_tool(scene: Scene, subject: Subject) -> None:
    """Click the arrow before the tool, and the tool."""
    with scene.step("open-tool", "agents", "preview") as step:
        tree = scene.tree
        if tree.isExpanded(scene.row(subject.tool)):
            scene.driver.click_branch(tree, scene.row(subject.tool))
            step.check("its arrow closes the tool", not tree.isExpanded(scene.row(subject.tool)))
        scene.driver.click_branch(tree, scene.row(subject.tool))
        step.check("its arrow opens the tool", tree.isExpanded(scene.row(subject.tool)))
        facts = scene.document.rights(subject.agent_id)[subject.tool].facts
        shown = scene.visible_rows(scene.row(subject.tool))
        step.equal("below it are the operations that the engine knows", shown, list(facts.operation_names))


def preview_before(scene: Scene, subject: Subject) -> None:
    """Choose the tool: its schema beside it."""
    with scene.step("preview-before", "agents", "preview") as step:
        choose_row(scene, subject.tool)
        _compare_preview(scene, subject, step)
        step.check(f"the schema names `{subject.operation}`", names(scene.text_of("preview.code"), subject.operation))
        _compare_counts(scene, subject, step)


def untick(scene: Scene, subject: Subject) -> None:
    """Click the box of one operation."""
    with scene.step("untick", "agents", "preview") as step:
        before = _counter(scene)
        click_box(scene, subject.tool, subject.operation)
        scene.settle()
        step.equal(f"the box of `{subject.operation}` is empty", scene.box(subject.tool, subject.operation), OFF)
        step.equal(f"the box of `{subject.tool}` is mixed", scene.box(subject.tool), MIXED)
        step.equal("one operation less is on", _counter(scene), before - 1)
        right = right_of(scene, subject.agent_id, subject.tool, subject.operation)
        step.check("the engine denies the operation", right.is_hidden and not right.ticked)
        selector = operation_field(scene.document, subject)
        decided = scene.document.workspace.decide(subject.agent_id, subject.tool, {selector: subject.operation})
        step.equal(
            "the gate denies a call of it, and where", (decided.verdict, decided.stage), (Verdict.DENY, "operation")
        )
        step.check("there is something to save", scene.driver.find("top.save").isEnabled())


def preview_after(scene: Scene, subject: Subject) -> None:
    """The schema without the operation."""
    with scene.step("preview-after", "agents", "preview") as step:
        choose_row(scene, subject.tool)
        text = scene.text_of("preview.code")
        step.check(f"the schema does not name `{subject.operation}`", bool(text) and not names(text, subject.operation))
        _compare_preview(scene, subject, step)
        _compare_counts(scene, subject, step)


def usage_rules(scene: Scene, subject: Subject) -> None:
    """The text for the system prompt."""
    with scene.step("usage-rules", "agents", "preview") as step:
        scene.choose("preview.scope", "agent")
        scene.choose("preview.part", "rules")
        wanted = scene.document.workspace.view(subject.agent_id).usage_rules
        step.equal("the usage rules are the engine's", scene.text_of("preview.code").strip(), wanted.strip())
        step.check(f"they do not name `{subject.operation}`", not names(wanted, subject.operation))


def difference(scene: Scene, subject: Subject) -> None:
    """What the limits of the agent take away."""
    with scene.step("difference", "agents", "preview") as step:
        scene.choose("preview.scope", "tool")
        scene.choose("preview.part", "difference")
        lines = scene.text_of("preview.code").splitlines()
        taken = [line for line in lines if line.startswith("-") and not line.startswith("---")]
        given = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
        step.check(
            f"a line that is taken away names `{subject.operation}`", any(names(t, subject.operation) for t in taken)
        )
        step.check("no line that is put in does", not any(names(g, subject.operation) for g in given))


def formats(scene: Scene, subject: Subject) -> None:
    """The schema as another provider takes it, chosen by keyboard."""
    with scene.step("provider-format", "agents", "preview") as step:
        scene.choose("preview.part", "schema")
        combo = scene.driver.find("preview.format", QComboBox)
        before, was = scene.text_of("preview.code"), combo.currentIndex()
        scene.driver.click(combo)
        scene.driver.until(lambda: bool(scene.driver.popups()), "the list of formats")
        scene.driver.key(Qt.Key.Key_Down)
        scene.driver.key(Qt.Key.Key_Return)
        scene.driver.until(lambda: combo.currentIndex() != was, "another format")
        scene.settle()
        step.check("the text is another one", scene.text_of("preview.code") != before)
        _compare_preview(scene, subject, step)


def ask_first(scene: Scene, subject: Subject) -> None:
    """Click the hand of an operation."""
    with scene.step("ask-first", "agents", "preview") as step:
        if subject.asking is None:
            step.not_here("no other operation of the tool is simply on")
            return
        cell = scene.row(subject.tool, subject.asking, Column.ASK)
        at = ask_rect(scene.tree.visualRect(cell).translated(-scene.tree.visualRect(cell).topLeft())).center()
        scene.driver.click_cell(scene.tree, cell, at)
        scene.settle()
        shown = scene.row(subject.tool, subject.asking, Column.VERDICT).data()
        step.equal(f"`{subject.asking}` asks first", shown, "ask first")
        step.equal(
            "the engine says so", right_of(scene, subject.agent_id, subject.tool, subject.asking).verdict, Verdict.ASK
        )


def why(scene: Scene, subject: Subject) -> None:
    """The reasons of a row; the first leads to its line."""
    with scene.step("why", "agents", "preview") as step:
        choose_row(scene, subject.tool, subject.operation)
        view = scene.driver.find("agents.why.list", QListView)
        shown = [view.model().index(row, 0).data(WHY) for row in range(view.model().rowCount())]
        told = [why.text for why in shown if isinstance(why, Why)]
        reasons = right_of(scene, subject.agent_id, subject.tool, subject.operation).reasons
        step.equal("the reasons are the engine's, in its order", told[: len(reasons)], [r.text for r in reasons])
        step.check("there is a reason", bool(told))
        first = shown[0] if shown else None
        line = first.line if isinstance(first, Why) else None
        address = reasons[0].address if reasons else None
        place = scene.document.workspace.place(address) if address is not None else None
        step.equal("the first reason has the line of the policy", line, place.line if place is not None else None)


def why_line(scene: Scene, subject: Subject) -> None:
    """Click the reason."""
    with scene.step("why-line", "toml") as step:
        view = scene.driver.find("agents.why.list", QListView)
        first = view.model().index(0, 0).data(WHY)
        if not isinstance(first, Why) or first.line is None:
            step.not_here(f"no reason of `{subject.operation}` stands in the file")
            return
        scene.driver.click_cell(view, view.model().index(0, 0))
        scene.driver.until(lambda: scene.window.shelf.current_key == "toml", "the TOML page")
        scene.settle()
        cursor = _cursor_line(scene)
        step.equal("the TOML page shows that line", cursor, first.line)


def other_layer(scene: Scene, name: str = "why-policy") -> None:
    """An operation that is ticked, and turned off by a capability or a rule of the policy."""
    with scene.step(name, "agents", "preview") as step:
        scene.go_to("agents")
        found = _overruled(scene)
        if found is None:
            step.not_here("no policy rule or capability turns off what is ticked")
            return
        agent_id, tool, operation, layer = found
        ways.choose_agent(scene, agent_id)
        choose_row(scene, tool, operation)
        step.equal("the box stays ticked", scene.box(tool, operation), ON)
        shown = scene.row(tool, operation, Column.VERDICT).data()
        step.equal("the row says which layer turns it off", shown, f"off: {layer}")
        first = scene.driver.find("agents.why.list", QListView).model().index(0, 0).data(WHY)
        step.check("the reason leads to a line", isinstance(first, Why) and first.line is not None)
        step.check("the model does not see it", not names(scene.text_of("preview.code"), operation))


def _overruled(scene: Scene) -> tuple[str, str, str, str] | None:
    for agent in scene.document.agents:
        for right in scene.document.rights(agent.agent_id).values():
            for row in right.operations:
                layer = row.reasons[0].layer if row.is_overruled else None
                if row.operation and layer in {Layer.CAPABILITY, Layer.POLICY}:
                    return agent.agent_id, right.facts.name, row.operation, str(layer)
    return None


def search(scene: Scene, _subject: Subject) -> None:
    """Ctrl+F, a word, and away with it."""
    every = sum(len(right.operations) for right in scene.document.rights(_agent(scene)).values())
    with scene.step("search", "agents") as step:
        scene.driver.key(Qt.Key.Key_1, CTRL)
        scene.driver.until(lambda: scene.window.shelf.current_key == "agents", "the Agents page")
        scene.driver.key(Qt.Key.Key_F, CTRL)
        field = scene.driver.find("agents.search", QLineEdit)
        word = _search_word(scene)
        scene.driver.type(word)
        step.equal("the keys arrive in the search field", field.text(), word)
        scene.driver.until(lambda: 0 < _shown_operations(scene) < every or every == 1, "fewer rows")
        step.check(f"rows named `{word}` are left", word in _all_rows(scene))
    with scene.step("search-cleared", "agents") as step:
        scene.driver.key(Qt.Key.Key_Escape)
        scene.settle()
        field = scene.driver.find("agents.search", QLineEdit)
        if field.text():
            scene.driver.replace_text(field, "")
        scene.driver.until(lambda: _shown_operations(scene) == every, "all rows")
        step.equal("all rows are back", _shown_operations(scene), every)


def click_mixed(scene: Scene, subject: Subject) -> None:
    """A click on a mixed parent turns all of it off."""
    with scene.step("mixed-all-off", "agents", "preview") as step:
        step.equal("the parent is mixed before", scene.box(subject.tool), MIXED)
        choose_row(scene, subject.tool)
        click_box(scene, subject.tool)
        scene.settle()
        step.equal("its box is empty", scene.box(subject.tool), OFF)
        names = scene.visible_rows(scene.row(subject.tool))
        step.check("every box below is empty", all(scene.box(subject.tool, name) == OFF for name in names))
        right = scene.document.rights(subject.agent_id)[subject.tool]
        step.check("the engine hides the tool", right.is_hidden)
        step.check("the preview says that it is hidden", scene.driver.has("preview.empty"))


def undo_redo(scene: Scene, subject: Subject) -> None:
    """Back, forth and back again by keyboard."""
    with scene.step("undo", "agents", "preview") as step:
        scene.driver.key(Qt.Key.Key_Z, CTRL)
        scene.settle()
        step.equal("the parent is mixed again", scene.box(subject.tool), MIXED)
        step.check(
            "the engine shows the tool again", not scene.document.rights(subject.agent_id)[subject.tool].is_hidden
        )
        _compare_preview(scene, subject, step)
    with scene.step("redo", "agents", "preview") as step:
        scene.driver.key(Qt.Key.Key_Z, CTRL_SHIFT)
        scene.settle()
        step.equal("the parent is off again", scene.box(subject.tool), OFF)
        step.check("the engine hides the tool", scene.document.rights(subject.agent_id)[subject.tool].is_hidden)
        scene.driver.click("top.undo")
        scene.settle()
        step.equal("the button takes it back too", scene.box(subject.tool), MIXED)


def reset(scene: Scene, subject: Subject) -> None:
    """The tool back to its own defaults, and undone."""
    before = scene.document.policy.agents[subject.agent_id]
    with scene.step("reset", "agents", "preview") as step:
        choose_row(scene, subject.tool)
        scene.driver.click("agents.reset")
        ways.wait_for_dialog(scene, "rights")
        scene.driver.until(lambda: scene.driver.find("rights.accept").isEnabled(), "what a reset would change")
        step.check("it lists what would change", scene.driver.find("rights.changes").isVisible())
        scene.driver.click("rights.accept")
        scene.driver.until(lambda: scene.document.policy.agents[subject.agent_id] != before, "the reset")
        scene.settle()
        names = scene.visible_rows(scene.row(subject.tool))
        after = scene.document.policy.agents[subject.agent_id]
        step.check("the agent is another one in the policy", after != before)
        own = scene.document.rights(subject.agent_id)[subject.tool]
        boxes = [scene.box(subject.tool, name) == ON for name in names]
        step.equal("the boxes are as the engine has them", boxes, [op.ticked for op in own.operations])
    with scene.step("reset-undone", "agents", "preview") as step:
        scene.driver.key(Qt.Key.Key_Z, CTRL)
        scene.settle()
        step.equal("one undo brings all of it back", scene.document.policy.agents[subject.agent_id], before)
        step.equal(f"`{subject.operation}` is off", scene.box(subject.tool, subject.operation), OFF)


def show_again(scene: Scene, subject: Subject | None, part: str, name: str) -> None:
    """The page once more, in the theme that is on."""
    with scene.step(name, "agents", "preview") as step:
        scene.go_to("agents")
        if subject is None:
            step.not_here("no agent has a tool with two operations on")
            return
        choose_row(scene, subject.tool, subject.operation)
        scene.choose("preview.part", part)
        _compare_boxes(scene, subject, step)
        if part == "schema":
            _compare_preview(scene, subject, step)
        else:
            step.check("the preview has a text", bool(scene.text_of("preview.code")))


# what several steps do and compare


def _compare_boxes(scene: Scene, subject: Subject, step: Step) -> None:
    rights = scene.document.rights(subject.agent_id).values()
    wanted = {right.facts.name: right.ticked_count for right in rights}
    found: dict[str, int] = {}
    for right in rights:
        tool = right.facts.name
        names = scene.visible_rows(scene.row(tool))
        boxes = [scene.box(tool, name) for name in names] or [scene.box(tool)]
        found[tool] = sum(box == ON for box in boxes)
    step.equal("as many boxes are ticked as the engine has", found, wanted)
    shown = sum(op.ticked and not op.is_hidden for right in rights for op in right.operations)
    step.equal("the counter says how many are on", _counter(scene), shown)


def _compare_preview(scene: Scene, subject: Subject, step: Step) -> None:
    """The schema of the tool that is shown, against the engine's view."""
    form = str(scene.driver.find("preview.format", QComboBox).currentData())
    view = scene.document.workspace.view(subject.agent_id)
    at = [listing.name for listing in view.listings()].index(subject.tool)
    wanted = json.loads(json.dumps(view.tools(form)[at], default=dict))
    step.equal(f"the schema is the engine's for `{form}`", json.loads(scene.text_of("preview.code")), wanted)


def _compare_counts(scene: Scene, subject: Subject, step: Step) -> None:
    rights = scene.document.rights(subject.agent_id).values()
    shown = sum(not op.is_hidden for right in rights for op in right.operations)
    every = sum(len(right.operations) for right in rights)
    text = scene.driver.find("preview.counts", ElidedLabel).text
    step.check(f"the foot of the preview counts {shown} of {every} operations", f"{shown:,} of {every:,} op" in text)


def _counter(scene: Scene) -> int:
    found = re.match(r"([\d,]+) of", scene.driver.find("agents.counter", QLabel).text())
    return int(found[1].replace(",", "")) if found else -1


def _agent(scene: Scene) -> str:
    return scene.window.selection.agent_id or ""


def _search_word(scene: Scene) -> str:
    rights = list(scene.document.rights(_agent(scene)).values())
    return rights[-1].facts.operation_names[0] if rights[-1].facts.has_operations else rights[-1].facts.name


def _all_rows(scene: Scene) -> list[str]:
    tops = scene.visible_rows(QModelIndex())
    return [*tops, *(name for top in tops for name in scene.visible_rows(scene.row(top)))]


def _shown_operations(scene: Scene) -> int:
    tops = scene.visible_rows(QModelIndex())
    return sum(len(scene.visible_rows(scene.row(top))) or 1 for top in tops)


def _cursor_line(scene: Scene) -> int:
    return scene.driver.find("toml.code", CodeView).editor.textCursor().blockNumber() + 1
