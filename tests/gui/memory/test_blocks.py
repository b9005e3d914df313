"""Blocks on the page Memory: looked at, changed, made, archived, brought back, beside agents that write too."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QAbstractItemModel, QPoint, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QLineEdit, QPushButton, QWidget

from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import schema_from_json
from gatewright.blocks.schema import Append, Overwrite
from gatewright.memory import BlockInfo, BlockService, BlockType
from gatewright.policy.verdict import Action, Permission
from gatewright.workspace import Workspace
from gatewright.workspace.trust import TypedTexts
from gatewright_gui.models.access import AccessModel
from gatewright_gui.pages.access.memory import MemoryPage
from gatewright_gui.pages.access.memory.block_list import BlockLine, BlockModel
from gatewright_gui.pages.access.memory.create_dialog import CreateDialog
from gatewright_gui.pages.access.memory.history_pane import StepModel
from gatewright_gui.pages.access.memory.text_dialog import TextDialog
from gatewright_gui.qt.dialog import QuestionDialog
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.block_access import GROUPS, BlockAccess
from gatewright_gui.session.memory import WHO, Blocks
from gatewright_gui.session.opening import folder_of_unsaved
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_document, opened_window, settled, until

LEFT = Qt.MouseButton.LeftButton
POLICY = """\
gatewright = 1

[agents.operator]
tools = ["block", "block_edit"]
capabilities = ["AdvancedEdit"]

[agents.archivist]
tools = ["block", "block_edit"]

[[agents.archivist.tool_rules]]
tool_name = "block_edit"
rule_type = { AllowedOperations = ["append", "replace"] }

[agents.researcher]
tools = ["block"]

[agents.newcomer]
tools = []
"""
D = TypeVar("D", bound=QDialog)


class Bench:
    """A window on the page Memory, and somebody else with a hand on the same memory."""

    def __init__(self, window: MainWindow, other: Workspace) -> None:
        self.window, self.other = window, other

    @property
    def page(self) -> MemoryPage:
        page = self.window.shelf.page("memory")
        assert isinstance(page, MemoryPage)
        return page

    @property
    def theirs(self) -> BlockService:
        return self.other.blocks("operator")

    def info(self, label: str) -> BlockInfo:
        return self.theirs.info(label)

    def press(self, name: str, where: QWidget | None = None) -> None:
        button = (where or self.page).findChild(QPushButton, name)
        assert button is not None
        assert button.isEnabled(), f"`{name}` cannot be pressed"
        assert button.isVisible(), f"`{name}` is not there"
        QTest.mouseClick(button, LEFT)

    async def part(self, key: str) -> None:
        QTest.mouseClick(self.page.blocks.detail.part.button(key), LEFT)
        await settled(self.window)

    async def choose(self, label: str) -> None:
        """Click a row of the list."""
        pane = self.page.blocks
        await until(lambda: pane.model.find(label) >= 0)
        index = pane.model.index(pane.model.find(label), 0)
        pane.view.scrollTo(index)
        QTest.mouseClick(pane.view.viewport(), LEFT, pos=pane.view.visualRect(index).center())
        await until(lambda: self.shown == label)
        await settled(self.window)

    @property
    def shown(self) -> str:
        content = self.page.blocks.detail.content
        return content.label if content is not None else ""

    def line(self, label: str) -> BlockLine:
        model = self.page.blocks.model
        return model.rows[model.find(label)]

    def type(self, text: str) -> None:
        """Type over the whole value."""
        editor = self.page.blocks.detail.value.editor
        editor.setFocus()
        QTest.keyClick(editor, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClicks(editor, text)


def place(folder: Path) -> Path:
    """A workspace whose agents remember nothing yet; its policy file."""
    policy = folder / "policy.toml"
    policy.write_text(POLICY, encoding="utf-8")
    return policy


@asynccontextmanager
async def remembering(policy: Path, home: Path, other: Workspace) -> AsyncGenerator[Bench]:
    """A window on the page Memory that shows the first block of the agent `operator`."""
    async with opened_window(policy, home) as window:
        window.selection.choose_agent("operator")
        window.show_page("memory")
        made = Bench(window, other)
        await until(lambda: made.shown == "persona")
        await settled(window)
        yield made


async def dialog_of(kind: type[D]) -> D:
    def found() -> list[D]:
        return [one for one in QApplication.topLevelWidgets() if isinstance(one, kind) and one.isVisible()]

    await until(lambda: bool(found()))
    return found()[0]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    policy = place(tmp_path)
    with Workspace.open(policy) as other:
        blocks = other.blocks("operator")
        blocks.create("persona", author="agent:operator", content="kind", type=BlockType.CORE, char_limit=60)
        blocks.create("tea", author="agent:operator", content="Earl Grey", permission=Permission.PARTNER)
        async with remembering(policy, tmp_path, other) as made:
            yield made


async def test_list_says_of_each_block_what_it_is_and_what_the_agent_may_do(bench: Bench) -> None:
    view = bench.page.blocks.view
    assert view.hasFocus()
    of = bench.page.findChild(ElidedLabel, "memory.of")
    assert of is not None
    assert of.text.startswith("Memory of operator: texts that last from call to call")
    assert view.selectionModel().isSelected(view.currentIndex()), "the row of the block that is shown is filled"
    blocks = bench.other.blocks("")
    blocks.create("rules", author="x", content="no shoes", permission=Permission.READ_ONLY)
    await until(lambda: bench.page.blocks.model.find("rules") >= 0)
    await settled(bench.window)

    assert bench.line("persona").facts.startswith("text · 4 of 60 characters · always seen · changed ")
    assert "read and write" not in bench.line("persona").facts, "what the agent may do stands beside it"
    assert [bench.line(label).may[0] for label in ("persona", "tea", "rules")] == [
        "read and write",
        "ask to change",
        "read only",
    ]
    assert "shared" in bench.line("rules").facts
    assert bench.page.blocks.detail.place.text.endswith("Always in the model's sight: 1 of 1")

    bench.window.selection.choose_agent("newcomer")
    await settled(bench.window)
    assert [line.row.label for line in bench.page.blocks.model.rows] == ["rules"]
    assert bench.line("rules").may[0] == "no tool for it"


async def test_value_is_typed_saved_and_taken_back_as_edits_of_the_operator(bench: Bench) -> None:
    value = bench.page.blocks.detail.value
    bench.type("kind and exact")
    assert bench.line("persona").has_draft
    assert value.note.text == "14 of 60 characters, not saved"
    assert bench.theirs.value("persona") == "kind"
    QTest.keyClick(value.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await settled(bench.window)
    assert bench.theirs.value("persona") == "kind and exact"
    assert not bench.line("persona").has_draft
    assert bench.theirs.history("persona")[-1].author == WHO

    bench.press("memory.undo")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "kind"
    assert value.editor.text == "kind"
    bench.press("memory.redo")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "kind and exact"


async def test_value_over_the_limit_is_refused_with_a_sentence_and_stays_typed(bench: Bench) -> None:
    bench.type("x" * 61)
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.page.blocks.detail.bar.isVisible()
    bench.page.blocks.refresh()
    await settled(bench.window)
    assert bench.page.blocks.detail.bar.isVisible()
    assert "60" in bench.page.blocks.detail.bar.text
    assert bench.page.blocks.detail.value.editor.text == "x" * 61
    assert bench.theirs.value("persona") == "kind"
    bench.press("memory.revert")
    assert bench.page.blocks.detail.value.editor.text == "kind"


async def test_what_an_agent_writes_shows_at_once_and_never_goes_over_what_is_typed(bench: Bench) -> None:
    detail = bench.page.blocks.detail
    bench.theirs.edit("persona", Append(", brief"), author="agent:operator", granted=Action.DELETE)
    await until(lambda: detail.value.editor.text == "kind, brief")

    bench.type("mine")
    bench.theirs.edit("persona", Append("!"), author="agent:operator", granted=Action.DELETE)
    await until(detail.bar.isVisible)
    assert detail.bar.text.startswith("operator changed it meanwhile")
    assert detail.value.editor.text == "mine"
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "kind, brief!"
    assert detail.value.editor.text == "mine"

    QTest.mouseClick(detail.bar.other_button, LEFT)
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "mine"
    assert not detail.bar.isVisible()

    bench.type("second thoughts")
    bench.theirs.edit("persona", Append("?"), author="agent:operator", granted=Action.DELETE)
    await until(detail.bar.isVisible)
    QTest.mouseClick(detail.bar.action_button, LEFT)
    await settled(bench.window)
    assert detail.value.editor.text == "mine?"


async def test_what_was_typed_stays_with_its_block_while_another_is_looked_at(bench: Bench) -> None:
    bench.type("unsaved")
    await bench.choose("tea")
    assert bench.page.blocks.detail.value.editor.text == "Earl Grey"
    assert bench.line("persona").has_draft
    await bench.choose("persona")
    assert bench.page.blocks.detail.value.editor.text == "unsaved"
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "unsaved"


async def test_what_was_typed_is_there_in_the_next_window_and_never_goes_over_what_others_wrote(tmp_path: Path) -> None:
    policy = place(tmp_path)
    with Workspace.open(policy) as other:
        for label in ("persona", "tea"):
            other.blocks("operator").create(label, author="agent:operator", content="kind")
        async with remembering(policy, tmp_path, other) as first:
            first.type("typed over the first")
            await first.choose("tea")
            first.type("typed over tea")
        first.theirs.edit("tea", Append("!"), author="agent:operator", granted=Action.DELETE)

        async with remembering(policy, tmp_path, other) as second:
            await until(lambda: second.line("persona").has_draft and second.line("tea").has_draft)
            value = second.page.blocks.detail.value
            await until(lambda: value.editor.text == "typed over the first")
            second.press("memory.save")
            await settled(second.window)
            assert second.theirs.value("persona") == "typed over the first"
            await second.choose("tea")
            assert value.editor.text == "typed over tea"
            assert second.page.blocks.detail.bar.text.startswith("operator changed it meanwhile")
            second.press("memory.save")
            await settled(second.window)
            assert second.theirs.value("tea") == "kind!"

        async with remembering(policy, tmp_path, other) as third:
            await until(lambda: third.line("tea").has_draft)
            assert not third.line("persona").has_draft
            await third.choose("tea")
            third.press("memory.revert")
        assert not list(folder_of_unsaved().iterdir())


async def test_what_is_typed_is_on_disk_a_moment_later_for_whoever_kills_the_window(
    bench: Bench, tmp_path: Path
) -> None:
    bench.type("typed")
    texts = TypedTexts(folder_of_unsaved(), tmp_path / "policy.toml")
    await until(lambda: [typed.text for typed in texts.read().values()] == ["typed"])
    (file,) = folder_of_unsaved().iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    bench.press("memory.revert")
    await until(lambda: not texts.read())


async def test_history_shows_every_change_and_brings_an_earlier_value_back_as_a_new_edit(bench: Bench) -> None:
    bench.theirs.edit("persona", Overwrite("rude"), author="agent:operator", granted=Action.DELETE)
    bench.theirs.note("persona", "pin", author="somebody", granted=Action.DELETE)
    await bench.part("history")
    history = bench.page.blocks.detail.history
    await until(lambda: history.model.count() == 3)
    cells = [[history.model.index(row, column).data() for column in (0, 2, 3)] for row in range(3)]
    assert cells == [["3", "somebody", "pin"], ["2", "operator", "overwrite"], ["1", "operator", "create"]]

    history.view.setCurrentIndex(history.model.index(1, 0))
    await settled(bench.window)
    assert "-kind" in history.code.text
    assert "+rude" in history.code.text
    history.view.setCurrentIndex(history.model.index(2, 0))
    QTest.mouseClick(history.part.button("then"), LEFT)
    await settled(bench.window)
    assert history.code.text == "kind"

    bench.press("memory.bring_back")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "kind"
    assert [step.kind for step in bench.theirs.history("persona")] == ["create", "overwrite", "pin", "overwrite"]
    assert history.model.count() == 4
    assert history.step is not None
    assert history.step.number == 1, "who looks at an old step goes on looking at it"

    history.view.setCurrentIndex(history.model.index(0, 0))
    bench.theirs.edit("persona", Append("!"), author="agent:operator", granted=Action.DELETE)
    await until(lambda: history.step is not None and history.step.number == 5)


async def test_settings_change_only_what_was_changed(bench: Bench) -> None:
    await bench.choose("tea")
    await bench.part("settings")
    form = bench.page.blocks.detail.settings
    assert not form.apply_button.isEnabled()
    QTest.keyClicks(form.fields.about, "what they drink")
    form.fields.level.setCurrentIndex(form.fields.level.findData(Permission.READ_ONLY))
    QTest.mouseClick(form.fields.pinned, LEFT, pos=QPoint(8, form.fields.pinned.height() // 2))
    bench.press("memory.apply")
    await settled(bench.window)
    record = bench.info("tea").record
    assert (record.description, record.permission, record.pinned) == ("what they drink", Permission.READ_ONLY, True)
    assert (record.type, record.char_limit) == (BlockType.WORKING, None)
    assert bench.line("tea").may[0] == "read only"
    assert "Always in the model's sight: 2 of 2" in bench.page.blocks.detail.place.text
    assert not form.apply_button.isEnabled()
    assert bench.window.impact.text == "tea is now read only: agents read it"


async def test_block_is_archived_and_taken_out_and_deleted_after_a_question(bench: Bench) -> None:
    await bench.choose("tea")
    bench.press("memory.archive")
    await settled(bench.window)
    assert bench.info("tea").record.type is BlockType.ARCHIVAL
    assert bench.line("tea").may[0] == "read only"
    bench.press("memory.archive")
    await settled(bench.window)
    assert bench.info("tea").record.type is BlockType.WORKING

    bench.press("memory.delete")
    dialog = await dialog_of(QuestionDialog)
    bench.press("choice-keep", dialog)
    await settled(bench.window)
    assert bench.info("tea").record.label == "tea"
    bench.press("memory.delete")
    bench.press("choice-delete", await dialog_of(QuestionDialog))
    await settled(bench.window)
    assert [record.label for record in bench.theirs.list()] == ["persona"]
    assert bench.shown == "persona"


async def test_block_with_fields_is_made_in_a_form_and_edited_as_json(bench: Bench) -> None:
    bench.press("memory.new")
    dialog = await dialog_of(CreateDialog)
    assert not dialog.accept_button.isEnabled()
    QTest.keyClicks(dialog.label, "mood")
    dialog.kind.setCurrentIndex(dialog.kind.findData("map"))
    name = dialog.schema.findChild(QLineEdit, "console.form.fields.0.name")
    assert name is not None
    clear(name)
    QTest.keyClicks(name, "8")
    assert "`8` cannot name a field" in dialog.fault.text()
    assert not dialog.accept_button.isEnabled()
    clear(name)
    QTest.keyClicks(name, "now")
    now = dialog.value.findChild(QLineEdit, "console.form.now")
    assert now is not None
    QTest.keyClicks(now, "calm")
    bench.press("memory_new.accept", dialog)
    await until(lambda: bench.shown == "mood")
    await settled(bench.window)
    assert bench.theirs.value("mood") == {"now": "calm"}
    assert bench.info("mood").record.owner == "agent:operator"

    value = bench.page.blocks.detail.value
    QTest.mouseClick(value.mode.button("json"), LEFT)
    value.editor.set_text('{"now": ')
    assert "no JSON" in value.note.text
    assert not value.save_button.isEnabled()
    QTest.mouseClick(value.mode.button("form"), LEFT)
    assert value.mode.current == "json"
    assert value.editor.text == '{"now": '
    value.editor.set_text('{"now": "merry"}')
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.theirs.value("mood") == {"now": "merry"}
    assert value.draft is None


def clear(field: QWidget) -> None:
    QTest.mouseClick(field, LEFT)
    QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(field, Qt.Key.Key_Delete)


async def test_value_with_parts_is_corrected_in_a_form_that_leaves_its_log_alone(bench: Bench) -> None:
    person = [{"name": "city", "type": "text", "read_only": True}, {"name": "visits", "type": "counter"}]
    sections = [
        {"name": "who", "schema": {"type": "map", "fields": person}},
        {"name": "todo", "schema": {"type": "list", "item_type": "text"}, "description": "what is left"},
        {"name": "seen", "schema": {"type": "log"}},
        {"name": "facts", "schema": {"type": "text"}},
    ]
    content: JsonValue = {"who": {"city": "Porto", "visits": 2}, "todo": ["call"], "facts": "tea"}
    schema = schema_from_json({"type": "composite", "sections": sections})
    bench.theirs.create("about", schema, author="agent:operator", content=content)
    await bench.choose("about")
    value = bench.page.blocks.detail.value

    def field(name: str) -> QWidget:
        found = value.form.findChild(QWidget, f"console.form.{name}")
        assert found is not None, name
        return found

    clear(field("who.city"))
    QTest.keyClicks(field("who.city"), "Lisbon")
    clear(field("who.visits"))
    clear(field("facts"))
    assert "not saved" in value.note.text
    await bench.choose("tea")
    await bench.choose("about")
    city = field("who.city")
    assert isinstance(city, QLineEdit)
    assert city.text() == "Lisbon"
    QTest.keyClick(field("who.city"), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: value.draft is None)
    changed = {"who": {"city": "Lisbon", "visits": 0}, "todo": ["call"], "seen": [], "facts": ""}
    assert bench.theirs.value("about") == changed

    bench.theirs.create("towns", schema_from_json({"type": "list", "max_items": 2}), author="x", content=["Porto"])
    await bench.choose("towns")
    remove = value.form.findChild(QAbstractButton, "console.form.items.0.remove")
    assert remove is not None
    QTest.mouseClick(remove, LEFT)
    bench.press("memory.save")
    await until(lambda: value.draft is None)
    assert bench.theirs.value("towns") == []
    bench.theirs.edit("towns", Append("Faro"), author="agent:operator", granted=Action.DELETE)
    await until(lambda: json.loads(value.text) == ["Faro"])


async def test_label_that_is_taken_is_refused_with_a_sentence_and_another_can_be_typed(bench: Bench) -> None:
    bench.press("memory.new")
    dialog = await dialog_of(CreateDialog)
    QTest.keyClicks(dialog.label, "tea")
    bench.press("memory_new.accept", dialog)
    await until(lambda: dialog.fault.text() == "a block with that label exists already")
    QTest.keyClicks(dialog.label, " too")
    bench.press("memory_new.accept", dialog)
    await until(lambda: bench.shown == "tea too")


async def test_log_is_only_added_to(bench: Bench) -> None:
    bench.theirs.create("diary", schema_from_json({"type": "log"}), author="x", content=["began"], type=BlockType.LOG)
    await bench.choose("diary")
    value = bench.page.blocks.detail.value
    assert value.view.isVisible()
    assert "began" in value.view.text
    assert not value.save_button.isVisible()
    bench.press("memory.add_entry")
    dialog = await dialog_of(TextDialog)
    QTest.keyClicks(dialog.editors["text"], "went on")
    bench.press("memory_text.accept", dialog)
    await settled(bench.window)
    entries = bench.theirs.value("diary")
    assert isinstance(entries, list)
    assert [entry["message"] for entry in entries if isinstance(entry, dict)] == ["began", "went on"]


async def test_text_of_a_megabyte_is_shown_and_a_part_of_it_replaced(bench: Bench) -> None:
    bench.theirs.create("big", author="x", content="a line of it\n" * 80_000 + "the end\n")
    await bench.choose("big")
    value = bench.page.blocks.detail.value
    assert value.view.isVisible()
    assert "1,040,008 characters" in value.note.text
    bench.press("memory.replace")
    dialog = await dialog_of(TextDialog)
    QTest.keyClicks(dialog.editors["old"], "the end")
    QTest.keyClicks(dialog.editors["new"], "no end")
    bench.press("memory_text.accept", dialog)
    await settled(bench.window)
    text = bench.theirs.value("big")
    assert isinstance(text, str)
    assert text.endswith("a line of it\nno end\n")
    assert bench.theirs.history("big")[-1].author == WHO


async def test_text_of_more_lines_than_can_be_laid_out_at_once_is_shown_to_read(bench: Bench) -> None:
    bench.theirs.create("tall", author="x", content="-\n" * 6_000)
    await bench.choose("tall")
    value = bench.page.blocks.detail.value
    assert value.view.isVisible()
    assert value.note.text.startswith("12,000 characters, too large to be typed in as a whole")


async def test_who_may_touch_a_shared_block_is_what_the_gate_says(bench: Bench) -> None:
    bench.other.blocks("").create("rules", author="x", content="no shoes", permission=Permission.PARTNER)
    await bench.choose("rules")
    await bench.part("access")
    table = bench.page.blocks.detail.access
    workspace = bench.window.document.workspace
    asked = {
        ("block", "info"): {},
        ("block", "load"): {},
        ("block", "pin"): {},
        ("block_edit", "append"): {"content": "x"},
        ("block_edit", "replace"): {"old": "no", "new": "some"},
    }
    compared = 0
    for row in range(table.rows.count()):
        access = table.rows.row_at(row)
        assert isinstance(access, BlockAccess)
        told = {(one.right.tool, one.right.operation): one.verdict for one in access.operations}
        for (tool, op), more in asked.items():
            decision = workspace.gate.decide(access.agent_id, tool, {"op": op, "label": "rules", **more})
            assert decision.verdict is told[tool, op], (access.agent_id, tool, op, decision.reason)
            compared += 1
    assert compared == 20
    cell = table.rows.index(0, 3)
    assert cell.data() == "ask first"
    assert "its level asks: changes ask" in cell.data(Qt.ItemDataRole.ToolTipRole)


async def test_filter_finds_words_of_label_type_and_level_and_an_empty_place_says_what_to_do(bench: Bench) -> None:
    QTest.keyClick(bench.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert bench.page.blocks.filter.hasFocus()
    QTest.keyClicks(bench.page.blocks.filter, "working changes")
    assert [line.row.label for line in bench.page.blocks.model.rows] == ["tea"]
    assert bench.page.blocks.header.accessibleName() == "Blocks"
    bench.page.blocks.filter.setText("nothing like it")
    assert bench.page.blocks.none_fits.isVisible()
    bench.page.blocks.filter.clear()
    assert len(bench.page.blocks.model.all) == 2

    bench.window.selection.choose_agent("newcomer")
    await settled(bench.window)
    assert bench.page.blocks.empty.isVisible()
    assert "Make one" in bench.page.blocks.empty.accessibleDescription()


async def test_store_that_cannot_be_read_is_a_sentence_and_what_was_typed_stays(bench: Bench) -> None:
    bench.type("unsaved")
    workspace = bench.window.document.workspace
    (workspace.state_folder / "memory.sqlite").rename(workspace.state_folder / "away.sqlite")
    (workspace.state_folder / "memory.sqlite").write_bytes(b"no database" * 100)
    await until(bench.page.blocks.bar.isVisible)
    assert "cannot be read" in bench.page.blocks.bar.text
    assert bench.page.blocks.detail.value.editor.text == "unsaved"
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.page.blocks.detail.bar.isVisible()
    assert bench.page.blocks.detail.value.editor.text == "unsaved"

    (workspace.state_folder / "away.sqlite").replace(workspace.state_folder / "memory.sqlite")
    await until(lambda: not bench.page.blocks.bar.isVisible())
    bench.press("memory.save")
    await settled(bench.window)
    assert bench.theirs.value("persona") == "unsaved"


async def test_store_that_somebody_holds_is_a_sentence_and_nothing_is_lost(bench: Bench) -> None:
    bench.type("unsaved")
    with bench.other.blocks("operator")._shelf.store.exclusive():  # pyright: ignore[reportPrivateUsage]
        bench.press("memory.save")
        await until(bench.page.blocks.detail.bar.isVisible)
    await settled(bench.window)
    assert "locked by another process" in bench.page.blocks.detail.bar.text
    assert bench.page.blocks.detail.value.editor.text == "unsaved"


async def test_models_keep_their_promises_while_blocks_come_change_and_go(tmp_path: Path) -> None:
    policy = place(tmp_path)
    models: tuple[QAbstractItemModel, ...] = (lines := BlockModel(), steps := StepModel(), who := AccessModel(GROUPS))
    fatal = QAbstractItemModelTester.FailureReportingMode.Fatal
    testers = [QAbstractItemModelTester(model, fatal) for model in models]
    async with opened_document(policy) as document:
        blocks, own = Blocks(document), document.workspace.blocks("operator")
        for number in range(4):
            own.create(f"block {number}", author="x", content="text")
            own.edit("block 0", Append("!"), author="x", granted=Action.DELETE)
            found = await blocks.list("operator")
            lines.set_lines(tuple(BlockLine(row) for row in found.rows))
            steps.set_rows(reversed((await blocks.content("operator", "block 0")).steps))
            who.set_rows(tuple(row.access_of("operator", {}, set()) for row in found.rows))
        assert (lines.rowCount(), steps.rowCount(), who.rowCount()) == (4, 5, 4)
        lines.set_filter("2")
        own.delete("block 2", granted=Action.DELETE)
        lines.set_lines(tuple(BlockLine(row) for row in (await blocks.list("operator")).rows))
        assert lines.rowCount() == 0
        steps.set_rows(reversed((await blocks.content("operator", "block 1")).steps))
        who.set_rows(())
        await asyncio.sleep(0)
    assert testers


LONG = "line\n" * 6_000
"""A text that is too long to be typed over: parts of it are replaced, and it is added to."""
VERBS = ("memory.delete", "memory.add_entry", "memory.replace")


@pytest.mark.parametrize("anew", [False, True], ids=["gone", "made anew"])
@pytest.mark.parametrize("verb", VERBS)
async def test_what_was_agreed_to_for_a_block_is_not_done_to_another_one_of_its_label(
    bench: Bench, verb: str, anew: bool
) -> None:
    bench.theirs.create("note", author="x", content=LONG)
    await bench.choose("note")
    bench.press(verb)
    if verb == "memory.delete":
        dialog, button = await dialog_of(QuestionDialog), "choice-delete"
    else:
        dialog, button = await dialog_of(TextDialog), "memory_text.accept"
        for name, editor in dialog.editors.items():
            editor.setPlainText("line" if name == "old" else "more")
    bench.theirs.delete("note", granted=Action.DELETE)
    if anew:
        bench.theirs.create("note", author="x", content=f"another {LONG}")
    bench.press(button, dialog)
    await settled(bench.window)
    await until(bench.window.message.isVisible)
    wanted = "another one has its label" if anew else "no block has that label"
    assert wanted in bench.window.message.text
    assert [record.label for record in bench.theirs.list()] == ["note", "persona", "tea"][0 if anew else 1 :]
    if anew:
        assert bench.theirs.value("note") == f"another {LONG}"
