"""The part Compositions of the page Policy in the real window: a tool made of calls, from nothing to its first run."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QScrollArea, QWidget

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.composition import CompositionStep
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.rules.compositions_pane import CompositionsPane
from gatewright_gui.pages.access.rules.step_form import StepForm
from gatewright_gui.pages.access.rules.step_list import GETS, VERDICT
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.session.argument import Argument, ArgumentKind
from gatewright_gui.session.composing import StepPicture
from gatewright_gui.session.verbs.rights import tick_tool
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled, until

POLICY = """\
gatewright = 1

[agents.clerk]
tools = ["file", "copy"]
sources = ["docs"]
approvals = { "file.append" = "ask" }

[[agents.clerk.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "append"] }

[[compositions]]
name = "copy"
input = { properties = { path = { type = "string" } }, required = ["path"] }
steps = [
  # it reads
  { tool = "file", arguments = { op = "read", path = "$input.path" } },
  # it writes
  { tool = "file", arguments = { op = "append", path = "b.md", content = "$steps.0.data.content" } },
]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
_UNASKED = POLICY.replace('approvals = { "file.append" = "ask" }\n', "").replace(', "copy"', "")
BARE = _UNASKED[: _UNASKED.index("[[compositions]]")] + _UNASKED[_UNASKED.index("[[sources]]") :]


def written(folder: Path, text: str) -> Path:
    (folder / "desk/docs").mkdir(parents=True)
    (folder / "desk/docs/a.md").write_text("one\n", "utf-8")
    (folder / "desk/policy.toml").write_text(text, "utf-8")
    return folder / "desk/policy.toml"


async def shown(window: MainWindow) -> CompositionsPane:
    window.selection.show_everyone(on=True)
    window.show_page("rules")
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    QTest.mouseClick(page.part.button("compositions"), Qt.MouseButton.LeftButton)
    await settled(window)
    await until(lambda: not page.compositions.model.count() or page.compositions.form.rows)
    return page.compositions


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(written(tmp_path, POLICY), tmp_path) as made:
        await shown(made)
        yield made


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(written(tmp_path, BARE), tmp_path) as made:
        yield made


def pane_of(window: MainWindow) -> CompositionsPane:
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    return page.compositions


def press(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def write(field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def line(box: QComboBox) -> QLineEdit:
    edit = box.lineEdit()
    assert edit is not None
    return edit


def source(pane: CompositionsPane, name: str, words: str) -> None:
    """Choose where an argument comes from, by the keyboard."""
    box = pane.form.rows[name].source
    box.setFocus()
    wanted = box.findText(words)
    assert wanted >= 0, [box.itemText(at) for at in range(box.count())]
    while box.currentIndex() != wanted:
        QTest.keyClick(box, Qt.Key.Key_Down if box.currentIndex() < wanted else Qt.Key.Key_Up)


def texts(pane: CompositionsPane, column: int) -> list[str]:
    return [pane.steps.index(at, column).data() for at in range(pane.steps.count())]


async def looked_at(window: MainWindow) -> None:
    """Wait until what the worker says of the composition as it is now is on the screen."""
    pane = pane_of(window)
    await until(lambda: pane.is_looked_at)


async def test_a_tool_is_made_of_calls_from_nothing(bare: MainWindow) -> None:
    pane = await shown(bare)
    press(pane.empty.action_button)
    assert pane.name.hasFocus()
    write(pane.name, "note")
    write(pane.about, "Notes something.")
    press(pane.input.add_button)
    write(pane.input.rows[0].name, "text")
    await looked_at(bare)
    source(pane, "op", "value")
    write(line(pane.form.rows["op"].what), "append")
    await until(lambda: "content" in pane.form.rows)
    source(pane, "path", "value")
    write(line(pane.form.rows["path"].what), "a.md")
    source(pane, "content", "from the input")
    write(line(pane.form.rows["content"].what), "text")
    await looked_at(bare)

    (made,) = bare.document.policy.compositions
    assert (made.name, made.description) == ("note", "Notes something.")
    assert made.steps[0].arguments == {"op": "append", "path": "a.md", "content": "$input.text"}
    assert texts(pane, GETS) == ['op = "append",  path = "a.md",  content ← input.text']
    undone = 0
    while bare.document.undo_stack.canUndo():
        bare.document.undo()
        undone += 1
    assert undone == 7
    assert not bare.document.policy.compositions
    assert bare.document.workspace.text() == BARE
    while bare.document.undo_stack.canRedo():
        bare.document.redo()
    assert bare.document.policy.compositions == (made,)

    assert tick_tool(bare.document, "clerk", "note", on=True)
    assert await bare.document.save()
    outcome = await bare.document.workspace.call("clerk", "note", {"text": "two"})
    assert outcome.status == "allowed", outcome.output
    assert [step.status for step in outcome.steps] == ["allowed"]


async def test_the_steps_say_what_flows_where_and_what_the_agent_gets(window: MainWindow) -> None:
    pane = pane_of(window)
    window.selection.choose_agent("clerk")
    await until(lambda: all(texts(pane, VERDICT)))
    assert texts(pane, GETS)[1].endswith("content ← result of step 1, data.content")
    assert texts(pane, VERDICT) == ["allow", "ask first"]
    assert pane.tier.text() == "tier: side effects; the call itself for clerk: allow"


async def test_a_step_moves_by_keys_and_its_references_follow(window: MainWindow) -> None:
    pane = pane_of(window)
    pane.steps_view.setFocus()
    QTest.keyClick(pane.steps_view, Qt.Key.Key_Insert)
    assert len(window.document.policy.compositions[0].steps) == 3
    pane.steps_view.setFocus()
    QTest.keyClick(pane.steps_view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(pane.steps_view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    steps = window.document.policy.compositions[0].steps
    assert steps[2].arguments["content"] == "$steps.1.data.content"
    assert pane.steps_view.currentIndex().row() == 0


async def test_no_step_moves_before_the_one_that_it_needs_and_the_step_says_so(window: MainWindow) -> None:
    pane = pane_of(window)
    pane.steps_view.choose(1)
    press(pane.up_button)
    assert pane.form.fault.text() == "the second step needs the result of the first, before it"
    assert window.document.workspace.text() == POLICY


async def test_what_is_refused_stays_in_its_field_with_the_reason(window: MainWindow) -> None:
    pane = pane_of(window)
    await looked_at(window)
    row = pane.form.rows["path"]
    write(line(row.what), "pth")
    assert row.fault.text() == "input has no pth"
    assert line(row.what).text() == "pth"
    write(pane.form.tool, "copy")
    assert "may not come to itself" in pane.form.tool_fault.text()
    write(pane.name, "file")
    assert pane.fault.text().startswith("there is a tool file already")
    assert pane.name.text() == "file"
    assert window.document.workspace.text() == POLICY


async def test_another_name_of_an_argument_is_followed_by_the_steps(window: MainWindow) -> None:
    pane = pane_of(window)
    write(pane.input.rows[0].name, "from")
    (row,) = window.document.policy.compositions
    assert row.steps[0].arguments["path"] == "$input.from"
    assert row.input["required"] == ["from"]
    press(pane.input.way.button("json"))
    pane.input.code.set_text('{"properties": {"at": {}}}')
    press(pane.input.apply_button)
    assert pane.input.fault.text() == "input has no from"
    assert window.document.policy.compositions == (row,)


async def test_a_condition_is_applied_or_said_to_be_none(window: MainWindow) -> None:
    pane = pane_of(window)
    pane.form.when.setFocus()
    QTest.keyClicks(pane.form.when, '{ properties.input.required = ["path"] }')
    press(pane.form.when_button)
    assert window.document.policy.compositions[0].steps[0].when == {"properties": {"input": {"required": ["path"]}}}
    QTest.keyClicks(pane.form.when, "x")
    press(pane.form.when_button)
    assert pane.form.fault.isVisible()


async def test_a_tool_is_renamed_copied_and_removed_with_what_is_said_of_it(window: MainWindow) -> None:
    pane = pane_of(window)
    write(pane.name, "put")
    assert window.document.policy.agents["clerk"].tools == ("file", "put")
    press(pane.copy_button)
    assert [one.name for one in window.document.policy.compositions] == ["put", "put_1"]
    assert pane.name.text() == "put_1"
    press(pane.remove_button)
    assert [one.name for one in window.document.policy.compositions] == ["put"]
    press(pane.remove_button)
    assert window.document.policy.agents["clerk"].tools == ("file",)
    assert pane.empty.isVisible()


async def test_it_is_run_in_the_console_with_an_example(window: MainWindow) -> None:
    press(pane_of(window).run_button)
    await settled(window)
    assert window.shelf.current_key == "try"
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    await until(lambda: console.request.tool_name == "copy")
    asked = console.request.request()
    assert asked is not None
    assert json.loads(asked.text) == {"path": "example"}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (853, 533)])
async def test_all_of_it_fits_the_window(window: MainWindow, width: int, height: int) -> None:
    pane = pane_of(window)
    window.resize(width, height)
    await settled(window)
    (area,) = pane.findChildren(QScrollArea)
    await until(lambda: area.horizontalScrollBar().maximum() == 0)


async def test_the_tree_of_tools_leads_to_the_steps(window: MainWindow) -> None:
    press(pane_of(window).remove_button)
    window.document.undo()
    window.navigator.go_to_composition("copy")
    await settled(window)
    assert window.shelf.current_key == "rules"
    assert pane_of(window).name.text() == "copy"


KINDS: tuple[ArgumentKind, ...] = ("text", "number", "whole", "truth", "list", "any")
TEMPLATES: st.SearchStrategy[JsonValue] = st.recursive(
    st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.text(st.characters(exclude_categories=["C"]), max_size=8)
    | st.sampled_from(
        ["$input", "$input.a.b", "$steps.0", "$steps.1.x.0", "$$x", "$$$", "$5", "$", "3", "true", " x "]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab$", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.dictionaries(st.sampled_from("abcd"), TEMPLATES, max_size=4),
    kinds=st.lists(st.sampled_from(KINDS), min_size=3, max_size=3),
    when=st.sampled_from([None, True, {"properties": {"input": {"required": ["a"]}}}]),
)
def test_a_form_that_nobody_touched_says_the_step_that_it_shows(
    qapp: QApplication, arguments: dict[str, JsonValue], kinds: list[ArgumentKind], when: dict[str, JsonValue] | None
) -> None:
    """Also where the step holds what its tool would not take, and arguments that its tool does not name."""
    assert qapp
    taken = {name: Argument(name, kind) for name, kind in zip("abc", kinds, strict=True)}
    step = CompositionStep("file", arguments, when)
    form = StepForm()
    form.set_step(2, step, ("a", "b"), [StepPicture({}, ("x",)), StepPicture({}, ()), StepPicture(taken, ())])
    assert form.said == step
    form.deleteLater()
