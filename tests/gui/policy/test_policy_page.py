"""The page Policy in the real window: rules made, tried on recorded calls, changed, moved, removed."""

import time
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QPushButton, QScrollArea, QToolButton, QWidget

from gatewright.policy import agentedit, policyedit
from gatewright.policy.document import Questions
from gatewright.policy.verdict import DiscordEndpoint, Mode
from gatewright.workspace import Workspace
from gatewright.workspace.api import PolicyRule, Times, Verdict
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.rules.rule_list import NAME, WHEN, RuleListModel, rule_sentence
from gatewright_gui.pages.access.rules.tried_table import CALL
from gatewright_gui.pages.access.tools.agent_rules import Column
from gatewright_gui.pages.access.tools.limits_pane import LimitsPane
from gatewright_gui.session.settings_table import SECTIONS, Setting
from gatewright_gui.session.verbs.policy import add_rule
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import drag, opened_window, settled, until

POLICY = """\
gatewright = 1

[agents.clerk]
tools = ["file", "memory_search"]
sources = ["docs"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"

# the first one
[[policy.rules]]
name = "no scripts"
effect = "deny"
tools = ["file"]
when = { properties = { path = { pattern = '\\.sh$' } } }

[[policy.rules]]
name = "deep"
effect = "ask"
when = { minProperties = 9 }
"""


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    """A workspace with two recorded calls."""
    folder = tmp_path / "desk"
    (folder / "docs/drafts").mkdir(parents=True)
    for name in ("a.md", "drafts/b.md"):
        (folder / "docs" / name).write_text("one\n", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    with Workspace.open(folder) as workspace:
        for name in ("a.md", "drafts/b.md"):
            assert (await workspace.call("clerk", "file", {"op": "read", "path": name})).decision.verdict == "allow"
    async with opened_window(folder / "policy.toml", tmp_path) as made:
        made.selection.show_everyone(on=True)
        made.show_page("rules")
        await settled(made)
        yield made


def page_of(window: MainWindow) -> RulesPage:
    page = window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    return page


def part(window: MainWindow, kind: type[QWidget], name: str) -> QWidget:
    found = page_of(window).findChild(kind, f"policy.{name}")
    assert found is not None, name
    return found


def write(window: MainWindow, name: str, text: str) -> None:
    field = part(window, QLineEdit, name)
    assert isinstance(field, QLineEdit)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text) if text else QTest.keyClick(field, Qt.Key.Key_Delete)


def press(window: MainWindow, name: str) -> None:
    QTest.mouseClick(part(window, QWidget, name), Qt.MouseButton.LeftButton)


def names(window: MainWindow) -> list[str]:
    return [rule.name for rule in window.document.policy.rules]


async def test_the_whole_form_fits_the_smallest_window(window: MainWindow) -> None:
    window.resize(1024, 640)
    await settled(window)
    pane = page_of(window).rules
    pane.view.setCurrentIndex(pane.view.model().index(0, 0))
    await settled(window)
    area = pane.form.findChild(QScrollArea)
    assert area is not None
    await until(lambda: area.horizontalScrollBar().maximum() == 0)
    assert pane.tried_view.columnWidth(CALL) >= 60
    assert pane.tried_view.horizontalScrollBar().maximum() == 0


@pytest.mark.parametrize("size", [(1280, 800), (1024, 768)])
async def test_an_agents_grants_and_all_fields_of_a_rule_show_at_once(
    window: MainWindow, size: tuple[int, int]
) -> None:
    window.resize(*size)
    window.selection.show_everyone(on=False)
    window.selection.choose_agent("clerk")
    await settled(window)
    page = page_of(window)
    pane, grants = page.rules, page.agent.view
    assert pane.view.chosen == ()
    assert grants.isColumnHidden(Column.WHERE)  # nothing of it stands in the file
    await until(lambda: 0 <= grants.viewport().height() - grants.verticalHeader().length() < 30)
    pane.show_rule(0)
    await settled(window)
    area = pane.form.findChild(QScrollArea)
    assert area is not None
    await until(lambda: area.verticalScrollBar().maximum() == 0)
    pane.view.clearSelection()
    await until(lambda: 0 <= grants.viewport().height() - grants.verticalHeader().length() < 30)


async def test_a_rule_is_tried_on_recorded_calls_before_it_is_written(window: MainWindow) -> None:
    pane = page_of(window).rules
    press(window, "add")
    write(window, "name", "drafts ask")
    write(window, "tools", "file")
    press(window, "when.add")
    row = pane.form.when.rows[0]
    row.field.setEditText("path")
    await until(lambda: row.field.findText("path") >= 0)
    assert "over" not in [row.relation.itemText(at) for at in range(row.relation.count())]
    row.relation.setCurrentText("in folder")
    QTest.keyClicks(row.value, "drafts")

    def shown() -> list[list[str]]:
        return [[pane.tried.index(at, column).data() for column in (2, 3)] for at in range(pane.tried.count())]

    await until(lambda: shown() == [["allowed", "asked, today allowed"], ["allowed", "allowed"]])  # of the whole name
    assert pane.tried_words.text() == "Of the newest 2 calls that it is for, 1 would differ: 1 asked first"
    assert names(window) == ["no scripts", "deep"]
    press(window, "apply")
    assert names(window) == ["no scripts", "deep", "drafts ask"]
    assert window.document.undo_stack.undoText() == "add policy rule drafts ask"
    assert pane.model.index(2, WHEN).data() == "path in drafts/"
    decided = window.document.workspace.decide("clerk", "file", {"op": "read", "path": "drafts/b.md"})
    assert decided.verdict == "ask"


async def test_a_rule_that_allows_what_goes_on_anyway_says_so(window: MainWindow) -> None:
    pane = page_of(window).rules
    pane.form.effect.set_current("allow")
    await until(
        lambda: pane.form.sentence.text().endswith("It changes nothing now: calls that no rule fits go on anyway.")
    )
    assert window.document.push(lambda policy, _: policyedit.set_field(policy, "default", Verdict.ASK))
    pane.form.name.setText("now of use")
    await until(lambda: "changes nothing" not in pane.form.sentence.text())


async def test_what_is_wrong_with_a_rule_is_told_at_its_place_and_not_written(window: MainWindow) -> None:
    pane = page_of(window).rules
    write(window, "name", "deep")
    write(window, "tools", "fiel")
    row = pane.form.when.rows[0]
    row.value.setText("(")
    apply = part(window, QPushButton, "apply")
    await until(row.fault.isVisible)
    said = [part(window, QLabel, f"{key}.said") for key in ("name", "tools")]
    assert [label.text() for label in said if isinstance(label, QLabel) and label.isVisible()] == [
        "a policy rule is named deep already",
        "no tool is named fiel",
    ]
    assert not apply.isEnabled()
    press(window, "revert")
    await until(lambda: not row.isVisible())
    assert not apply.isEnabled()
    assert names(window) == ["no scripts", "deep"]


async def test_what_the_form_cannot_say_is_edited_as_it_stands_in_the_file(window: MainWindow) -> None:
    pane = page_of(window).rules
    pane.view.setFocus()
    QTest.keyClick(pane.view, Qt.Key.Key_Down)
    assert pane.form.when.way.current == "toml"
    assert pane.form.when.code.text == "{ minProperties = 9 }"
    pane.form.when.code.selectAll()
    QTest.keyClicks(pane.form.when.code, "{ required = ['path'] }")
    pane.form.when.way.set_current("form")
    assert pane.form.when.rows[0].relation.currentText() == "is given"
    await until(pane.form.apply_button.isEnabled)
    press(window, "apply")
    assert window.document.policy.rules[1].when == {"required": ["path"]}
    assert window.document.undo_stack.undoText() == "change policy rule deep"


async def test_rule_is_dragged_onto_either_half_of_another_one(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = page_of(window).rules.view

    def middle(row: int, shift: int) -> Callable[[], QPoint]:
        return lambda: view.visualRect(view.model().index(row, 0)).center() + QPoint(40, shift)

    assert drag(view, monkeypatch, 0, middle(1, 1)) == [2]
    assert names(window) == ["deep", "no scripts"]
    assert view.chosen == (1,)
    assert drag(view, monkeypatch, 1, middle(0, -1)) == [0]
    assert window.document.workspace.text() == POLICY
    count = window.document.undo_stack.count()
    assert drag(view, monkeypatch, 0, middle(0, 4)) == [1]
    assert window.document.undo_stack.count() == count


async def test_rules_are_moved_and_removed_by_keys_with_their_comments(window: MainWindow) -> None:
    pane = page_of(window).rules
    pane.view.setFocus()
    QTest.keyClick(pane.view, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert names(window) == ["deep", "no scripts"]
    assert pane.view.chosen == (1,)
    text = window.document.workspace.text()
    assert text.index("# the first one") > text.index('"deep"')
    QTest.keyClick(pane.view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert window.document.workspace.text() == POLICY
    QTest.keyClick(pane.view, Qt.Key.Key_Delete)
    assert names(window) == ["deep"]
    QTest.keyClick(pane.view, Qt.Key.Key_Delete)
    empty = part(window, QWidget, "empty")
    assert empty.isVisible()
    assert not part(window, QWidget, "add").isVisible()  # one button, in the middle
    window.document.undo()
    window.document.undo()
    assert names(window) == ["no scripts", "deep"]
    assert not empty.isVisible()


@pytest.mark.parametrize("name", ["allow", "ask", "deny"])
async def test_fields_of_commands_complete_the_first_words_of_the_last_one(window: MainWindow, name: str) -> None:
    window.show_page("settings")
    page = window.shelf.page("settings")
    field = page.findChild(QLineEdit, f"settings.shell.{name}")
    assert field is not None
    field.setFocus()
    field.clear()
    QTest.keyClicks(field, "ls, git pu")
    completer = field.completer()
    found = list[str]()
    while completer.setCurrentRow(len(found)):
        found.append(completer.currentCompletion())
    assert [text.removeprefix("ls, ") for text in found] == ["git push", "git push --force"]


async def test_settings_are_written_field_by_field_and_what_is_wrong_stays_with_its_reason(window: MainWindow) -> None:
    window.show_page("settings")
    page, document = window.shelf.page("settings"), window.document

    def field(name: str) -> QLineEdit:
        found = page.findChild(QLineEdit, f"settings.{name}")
        assert found is not None
        return found

    def enter(name: str, text: str) -> str:
        field(name).setFocus()
        field(name).selectAll()
        QTest.keyClicks(field(name), text)
        QTest.keyClick(field(name), Qt.Key.Key_Return)
        said = page.findChild(QLabel, f"settings.{name}.said")
        assert said is not None
        return said.text() if said.isVisible() else ""

    assert enter("roots.shared", "docs") == ""
    assert enter("shell.allow", "ls, rm -rf*").startswith("rm -rf* ends in * without a blank")
    assert enter("shell.ask", "git push, npm publish:*") == enter("shell.allow", "ls, git status") == ""
    assert document.policy.shell.ask == ("git push", "npm publish:*")
    assert enter("workspace.closed", "~/.ssh, ~ann/x").startswith("~ann/x is the folder of another user")
    assert enter("workspace.closed", "~/.ssh, docs/private") == ""
    assert document.policy.closed == ("~/.ssh", "docs/private")
    assert enter("defaults.max_output_bytes", "many") == "many is no whole number"
    assert enter("defaults.timeout_s", "2 min") == ""
    assert "mailto:ADDRESS" in enter("questions.answer_by", "ann@example.org")
    assert enter("questions.answer_by", "mailto:ann@example.org") == ""
    assert "https://" in enter("questions.link_base", "http://gate.example.org/a")
    assert enter("questions.wait_s", "3 d") == ""
    assert document.policy.questions == Questions(3 * 86_400.0, answer_by=("mailto:ann@example.org",))
    discord = page.findChild(QCheckBox, "settings.discord.on")
    assert discord is not None
    discord.click()
    assert document.policy.endpoints.discord is None
    assert enter("discord.token_env", "not a name").startswith("token_env is the name of an environment variable")
    assert enter("discord.token_env", "DESK_TOKEN") == ""
    assert document.policy.endpoints.discord == DiscordEndpoint("DESK_TOKEN")
    assert document.undo_stack.undoText() == "change endpoints.discord"
    discord.click()
    assert document.policy.endpoints.discord is None
    while document.undo_stack.canUndo():
        document.undo()
    assert document.workspace.text() == POLICY
    assert field("roots.shared").text() == ""


async def test_ask_first_above_a_number_begins_a_policy_rule_for_the_agent_and_the_tool(
    window: MainWindow,
) -> None:
    window.navigator.go_to_tool("clerk", "memory_search", None, "limits")
    await settled(window)
    limits = window.shelf.page("tools").findChild(LimitsPane)
    assert limits is not None
    limits.menu.aboutToShow.emit()
    next(action for action in limits.menu.actions() if action.objectName() == "agents.limits.add.above").trigger()
    await until(lambda: window.shelf.current_key == "rules" and bool(page_of(window).rules.form.when.rows))

    form = page_of(window).rules.form
    row = form.when.rows[0]
    await until(lambda: row.relation.currentText() == "over")
    assert window.focusWidget() is row.value
    assert len(window.document.policy.rules) == 2
    QTest.keyClicks(row.value, "100")
    await until(form.apply_button.isEnabled)
    press(window, "apply")
    rule = window.document.policy.rules[-1]
    assert (rule.effect, rule.agents, rule.tools) == ("ask", ("clerk",), ("memory_search",))
    assert rule.when == {"properties": {"top_k": {"exclusiveMinimum": 100}}, "required": ["top_k"]}


CHOSEN = [setting for section in SECTIONS for setting in section.settings if "enum" in setting.key.form.shape()]


@pytest.mark.parametrize("setting", [pytest.param(one, id=".".join(one.path)) for one in CHOSEN])
def test_a_setting_offers_each_value_that_its_key_of_the_file_takes(setting: Setting) -> None:
    assert setting.kind == "choice"
    assert {str(value) for _, value in setting.choices} == set(map(str, setting.key.form.shape()["enum"]))  # pyright: ignore[reportArgumentType]


def test_rule_with_times_counts_down_to_its_next_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    morning = datetime(2026, 11, 27, 9, 50, tzinfo=UTC).timestamp()
    model = RuleListModel()
    model.set_rows(
        (
            PolicyRule("office", Verdict.DENY, times=Times("UTC", "08:00-18:00")),
            PolicyRule("late", Verdict.ASK, when={"required": ["path"]}, times=Times("UTC", "10:30-12:00", ("fri",))),
            PolicyRule("ever", Verdict.DENY, times=Times("UTC")),
            PolicyRule("plain", Verdict.DENY),
        )
    )
    monkeypatch.setattr(time, "time", lambda: morning)
    when = [model.index(row, WHEN).data() for row in range(4)]
    assert when[0] == "08:00-18:00 (UTC): in force for 8 h 10 min more"
    assert when[1].startswith("10:30-12:00 on fri (UTC): in force in 40 min; ")
    assert when[2:] == ["all day (UTC): in force", "always"]
    monkeypatch.setattr(time, "time", lambda: morning + 3600)
    assert model.index(1, WHEN).data().startswith("10:30-12:00 on fri (UTC): in force for 1 h 10 min more; ")


async def test_an_agent_has_its_grants_above_the_rules_that_touch_it_and_the_others_behind_a_chip(
    window: MainWindow,
) -> None:
    document, page = window.document, page_of(window)
    assert document.push(lambda policy, _: agentedit.add_agent(policy, "guest"))
    assert add_rule(document, PolicyRule("clerk alone", Verdict.ASK, agents=("clerk",)))
    rules, others = page.rules, part(window, QToolButton, "others")

    def shown() -> list[str]:
        return [str(rules.model.index(row, NAME).data()) for row in range(3) if not rules.view.isRowHidden(row)]

    assert isinstance(others, QToolButton)
    assert (shown(), others.isVisible()) == (["no scripts", "deep", "clerk alone"], False)
    window.selection.show_everyone(on=False)
    window.selection.choose_agent("guest")
    await settled(window)
    assert page.agent.isVisible()
    assert not page.part.isVisible()
    assert (shown(), others.text()) == (["no scripts", "deep"], "1 rule is for other agents")
    QTest.mouseClick(others, Qt.MouseButton.LeftButton)
    assert shown() == ["no scripts", "deep", "clerk alone"]

    window.selection.choose_agent("clerk")
    assert (shown(), others.isVisible()) == (["no scripts", "deep", "clerk alone"], False)
    window.selection.choose_agent("guest")
    assert shown() == ["no scripts", "deep"]
    window.navigator.go_to_policy_rule(2)
    assert shown() == ["no scripts", "deep", "clerk alone"]
    assert rules.form.name.text() == "clerk alone"

    press(window, "add")
    write(window, "name", "mine")
    await until(lambda: rules.form.apply_button.isEnabled() and not document.is_busy)
    press(window, "apply")
    assert document.policy.rules[-1].agents == ("guest",)
    window.selection.show_everyone(on=True)
    assert page.part.isVisible()
    assert not page.agent.isVisible()
    assert [str(rules.model.index(row, NAME).data()) for row in range(4)][-1] == "mine"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            PolicyRule("a", Verdict.DENY, tools=("file",), operations=("save", "create")),
            "Denies file.save, file.create to all agents.",
        ),
        (
            PolicyRule("b", Verdict.ASK, agents=("clerk", "guest"), tools=("file",)),
            "Asks first before calls of file by clerk, guest.",
        ),
        (
            PolicyRule("c", Verdict.ALLOW, operations=("read",)),
            "Lets calls of read of any tool by all agents pass; ticks, levels and other rules still hold.",
        ),
        (PolicyRule("d", Verdict.DENY), "Denies every call to all agents."),
        (
            PolicyRule("e", Verdict.DENY, mode=Mode.OBSERVE, observe_until_s=time.time() + 3_600),
            "Denies every call to all agents. For now this is only noted, not enforced.",
        ),
        (PolicyRule("f", Verdict.DENY, mode=Mode.OBSERVE, observe_until_s=1.0), "Denies every call to all agents."),
    ],
)
def test_a_rule_says_in_one_sentence_what_happens_to_which_calls_of_whom(rule: PolicyRule, sentence: str) -> None:
    assert rule_sentence(rule) == sentence


async def test_the_sentence_of_a_rule_follows_what_is_typed_and_agrees_with_the_gate(window: MainWindow) -> None:
    assert window.document.push(lambda policy, _: agentedit.add_agent(policy, "guest"))
    await settled(window)
    pane = page_of(window).rules
    pane.show_rule(0)
    sentence = r"Denies calls of file to all agents when path matches \.sh$ (or no path is given)."
    await until(lambda: pane.form.sentence.text() == sentence)
    for path, verdict in (("a.sh", "deny"), ("a.md", "allow")):
        assert window.document.workspace.decide("clerk", "file", {"op": "read", "path": path}).verdict == verdict
    write(window, "agents", "guest")
    await until(lambda: " to guest when " in pane.form.sentence.text())
    await until(pane.form.apply_button.isEnabled)
    press(window, "apply")
    await settled(window)
    assert window.document.workspace.decide("clerk", "file", {"op": "read", "path": "a.sh"}).verdict == "allow"
