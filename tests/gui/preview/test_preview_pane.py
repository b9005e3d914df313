from itertools import pairwise

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gatewright.memory import BlockType
from gatewright.policy.verdict import Action
from gatewright.schema.formats import FORMATS, ToolListing, format_named
from gatewright.workspace import Workspace
from gatewright.workspace.template import write_agent_policy
from gatewright_gui.pages.access.preview.preview_pane import COUNTING, PreviewPane
from gatewright_gui.pages.access.preview.token_table import SHARE, TokenColumn
from gatewright_gui.session.readable import readable_text
from gatewright_gui.session.verbs import agents, rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, cell, click, settled, until

LEFT, PLAIN = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier

TIP = Qt.ItemDataRole.ToolTipRole


async def chosen(window: MainWindow, agent_id: str, tool: str = "file") -> PreviewPane:
    window.selection.choose_agent(agent_id)
    agents_page(window).tools.show_row(tool, None)
    agents_page(window).inspector.show_part("sees")
    await settled(window)
    return agents_page(window).preview


async def test_every_provider_says_how_it_takes_the_tool_and_a_click_chooses_its_format(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    listings = window.document.workspace.view("operator").listings()

    for name in FORMATS:
        preview.providers.action(name).trigger()
        await settled(window)

        lints = format_named(name).lints_all(listings).get("file", ())
        assert preview.provider == name
        assert sorted(row.code for row in preview.lints.model.rows) == sorted(lint.code for lint in lints)
        assert (preview.providers.states[name] == "ok") == (not lints)
        assert (": ok" in preview.providers.button.accessibleName()) == (not lints)
        assert preview.lints.isVisible() == bool(lints)


async def test_tool_that_is_off_is_shown_as_it_would_be_if_ticked_and_no_provider_is_said_to_take_it(
    window: MainWindow,
) -> None:
    preview = await chosen(window, "archivist", "context")
    assert preview.unsent.isVisible()
    assert preview.unsent.text() == "Hidden from the model: not ticked. If it were on:"
    assert preview.code.language == "quiet"
    assert set(preview.providers.states.values()) == {"nothing is sent"}
    text = preview.code.text

    click(window, "context", None)
    await settled(window)

    assert not preview.unsent.isVisible()
    assert (preview.code.text, preview.code.language) == (text, "json")
    assert preview.providers.states["mcp"] == "ok"
    assert preview.providers.button.accessibleName() == "Format MCP: ok"


async def test_readable_form_has_rows_marks_the_chosen_operation_and_strikes_out_what_is_not_sent(
    window: MainWindow,
) -> None:
    preview = await chosen(window, "archivist", "file")
    agents_page(window).tools.show_row("file", "load")
    await settled(window)
    marked = [preview.code.editor.lines[one.cursor.blockNumber()] for one in preview.code.editor.extraSelections()]
    assert [line.strip() for line in marked] == ['"load",']

    preview.form.actions["readable"].trigger()

    sent, unsent = preview.code.text.split("Not sent to the model\n")
    right = window.document.rights("archivist")["file"]
    for operation in right.facts.operation_names:
        assert (f"• {operation} " in sent) == (operation in right.shown)
        assert (f"− {operation} " in unsent) == (operation not in right.shown)
    assert sent.count("Give the text of a file") == 1, "each operation is told once"
    assert "• op" in sent
    assert "one of the operations above" in sent
    marked = [preview.code.editor.lines[one.cursor.blockNumber()] for one in preview.code.editor.extraSelections()]
    assert [line.split()[:2] for line in marked] == [["•", "load"]]
    last = preview.code.editor.document().lastBlock().previous()
    assert last.text().startswith("− ")
    assert all(part.format.fontStrikeOut() for part in last.layout().formats())


async def test_what_a_stranger_writes_stays_in_its_place_in_the_readable_form(window: MainWindow) -> None:
    hostile = ToolListing("x", "Reads.\n\nNot sent to the model\n− read  all of it\u2028• delete  now", {})

    lines = readable_text((hostile,), {}).splitlines()

    assert [line for line in lines if line and not line.startswith("  ")] == ["x"]


async def test_click_on_a_note_chooses_the_tool_and_shows_its_line(window: MainWindow) -> None:
    preview = await chosen(window, "operator", "block")
    preview.scope.set_current("agent")
    preview.choose_format("openai")
    preview.part.set_current("difference")
    await settled(window)
    row = next(row for row, lint in enumerate(preview.lints.model.rows) if lint.tool == "file")
    lint = preview.lints.model.rows[row]
    rect = preview.lints.view.visualRect(preview.lints.model.index(row, 0))

    QTest.mouseClick(preview.lints.view.viewport(), LEFT, PLAIN, rect.topLeft() + QPoint(20, 8))
    await settled(window)

    assert window.selection.tool == "file"
    assert preview.part.current == "schema"
    line = preview.code.editor.textCursor().block().text()
    assert lint.line is not None
    assert preview.code.editor.textCursor().blockNumber() + 1 == lint.line
    assert lint.pointer.rsplit("/", 1)[-1] in line


async def test_tokens_are_counted_beside_the_window_and_follow_a_tick(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.choose_format("openai")
    assert preview.tokens.text == COUNTING
    await settled(window)
    before = window.document.workspace.view("operator").tokens("openai")
    assert f"{before.per_tool['file']:,} tokens" in cell(window, "file", None).data(TIP)
    assert preview.token_rule.text == "exact"
    assert before.encoding in preview.token_rule.toolTip()

    click(window, "file", "delete")
    await settled(window)

    after = window.document.workspace.view("operator").tokens("openai")
    assert after.per_tool["file"] < before.per_tool["file"]
    assert f"{after.per_tool['file']:,} tokens" in cell(window, "file", None).data(TIP)
    assert preview.tokens.text.startswith(f"{after.per_tool['file']:,} of {before.per_tool['file']:,} tokens")


async def test_sum_of_the_token_table_stays_on_top_and_a_row_chooses_its_tool(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.part.set_current("tokens")
    table = preview.table
    assert table.isVisible()
    rows = [table.tokens.index(row, TokenColumn.TOKENS) for row in range(1, table.tokens.rowCount())]
    costs = [int(row.data().strip("~").replace(",", "").replace("hidden", "0")) for row in rows]
    bars = [row.data(SHARE) for row in rows]
    assert costs == sorted(costs, reverse=True)
    assert (bars[0], bars[1]) == (1.0, costs[1] / costs[0])
    assert preview.about.text.endswith("% of a context of 200,000 tokens")
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        for column in TokenColumn:
            table.sortByColumn(column, order)
            assert table.tokens.index(0, 0).data() == "all tools"
    row = next(row for row in range(table.tokens.rowCount()) if table.tokens.index(row, 0).data() == "tracker")

    QTest.mouseClick(table.viewport(), LEFT, PLAIN, table.visualRect(table.tokens.index(row, 0)).center())

    assert window.selection.tool == "tracker"


async def test_estimate_is_marked(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.choose_format("gemini")
    await settled(window)

    assert preview.tokens.text.startswith("~")
    assert preview.token_rule.text.startswith("estimate")
    assert ", ~" in cell(window, "file", None).data(TIP)


async def test_difference_to_the_last_save_follows_edits_and_saving(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.part.set_current("difference")
    preview.base.actions["saved"].trigger()
    await settled(window)
    assert preview.empty.isVisible()

    click(window, "file", "delete")
    await settled(window)
    text = preview.code.text
    assert text.startswith("--- last save\n+++ now\n@@")
    assert {line.rpartition("@@ ")[2] for line in text.splitlines() if line.startswith("@@")} >= {"file"}
    assert any(line.startswith("-") and '"delete"' in line for line in text.splitlines())
    gone = sum(line.startswith("-") and not line.startswith("---") for line in text.splitlines())
    assert preview.about.text.endswith(f"−{gone}")

    QTest.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    await settled(window)
    assert preview.empty.isVisible()


async def test_usage_rules_are_part_of_the_difference_to_the_last_save(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.scope.set_current("agent")
    preview.part.set_current("difference")
    preview.base.set_current("saved")
    rights.tick_tool(window.document, "operator", "file", on=False)
    await settled(window)

    heads = {line.rpartition("@@ ")[2] for line in preview.code.text.splitlines() if line.startswith("@@")}
    assert "file, not shown any more" in heads
    assert "usage rules" in heads


async def test_agent_that_is_not_saved_yet_is_said_to_be_new(window: MainWindow) -> None:
    new = agents.duplicate_agent(window.document, "operator")
    assert new is not None
    preview = await chosen(window, new)
    preview.part.set_current("difference")
    preview.base.set_current("saved")
    await settled(window)

    assert preview.empty.isVisible()
    assert new in preview.empty.accessibleDescription()


async def test_ctrl_f_finds_in_the_text_from_anywhere_in_the_pane(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    button = preview.part.button("schema")
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert preview.code.find_bar.isVisible()
    assert preview.code.find_bar.field.hasFocus()


async def test_copy_keys_take_all_of_what_is_shown(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    keys = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    for part in ("schema", "rules"):
        preview.part.set_current(part)
        preview.code.editor.setFocus()
        QTest.keyClick(preview.code.editor, Qt.Key.Key_C, keys)
        assert QGuiApplication.clipboard().text() == preview.code.text != ""
    preview.part.set_current("tokens")
    preview.table.sortByColumn(TokenColumn.TOKENS, Qt.SortOrder.DescendingOrder)
    QTest.keyClick(preview.table, Qt.Key.Key_C, keys)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Tool\tTokens\tUnrestricted\tSaved %"
    assert lines[1].startswith("all tools\t")
    numbers = [int(line.split("\t")[1]) for line in lines[2:]]
    assert numbers == sorted(numbers, reverse=True)
    assert preview.copy_tokens.accessibleName() == "Copied"


async def test_enter_on_a_note_goes_to_its_line_and_ctrl_c_copies_it(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.choose_format("openai")
    await settled(window)
    view = preview.lints.view
    view.setFocus()
    view.setCurrentIndex(preview.lints.model.index(0, 0))
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert "What to do: " in QGuiApplication.clipboard().text()

    QTest.keyClick(view, Qt.Key.Key_Return)

    assert preview.code.editor.current_line + 1 == preview.lints.model.rows[0].line


async def test_fold_of_the_schema_stays_when_a_box_is_ticked(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    QTest.mouseClick(preview.code.fold_button, LEFT)
    folded = preview.code.editor.toPlainText()
    assert "lines}" in folded
    click(window, "file", "delete")
    await settled(window)
    assert preview.code.editor.toPlainText().count("\n") == folded.count("\n")
    assert "delete" not in preview.code.text


async def test_pane_fits_into_three_hundred_pixels(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.part.set_current("difference")
    await until(lambda: preview.minimumSizeHint().width() <= 300)


async def test_difference_is_worked_out_only_while_it_is_looked_at(window: MainWindow) -> None:
    preview = await chosen(window, "researcher")
    assert "preview.difference" not in window.tasks.names
    preview.part.set_current("difference")
    assert "preview.difference" in window.tasks.names
    await settled(window)
    assert preview.code.text.startswith("--- unrestricted\n+++ this agent\n@@")
    assert "@@ usage rules" in preview.code.text


async def test_notes_get_other_heights_in_another_width_and_do_not_overlap(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.choose_format("openai")
    preview.scope.set_current("agent")
    await settled(window)
    view, rows = preview.lints.view, preview.lints.model.rowCount()
    assert rows > 1

    def heights() -> list[int]:
        return [view.visualRect(view.model().index(row, 0)).height() for row in range(rows)]

    wide = heights()
    preview.setFixedWidth(240)
    await until(lambda: heights() != wide and sum(heights()) > sum(wide))
    rects = [view.visualRect(view.model().index(row, 0)) for row in range(rows)]
    assert all(one.bottom() < other.top() for one, other in pairwise(rects))


async def test_context_shows_core_and_pinned_blocks_in_order_and_follows_what_others_write(
    window: MainWindow,
) -> None:
    preview = await chosen(window, "operator")
    for label in ("plan", "station"):
        window.document.workspace.blocks("operator").delete(label, granted=Action.DELETE)
    assert not preview.part.button("context").isVisible()
    next(one for one in preview.menu.actions() if one.objectName() == "preview.context").trigger()
    assert preview.part.button("context").isVisible()
    await settled(window)
    assert preview.empty.isVisible()
    assert "page Memory" in preview.empty.accessibleDescription()

    with Workspace.open(window.document.workspace.policy_path) as other:
        blocks = other.blocks("operator")
        blocks.create("a pinned one", author="somebody", content="tea", pinned=True)
        blocks.create("persona", author="somebody", content="kind\n" * 5, type=BlockType.CORE, char_limit=500)
        await until(lambda: "### persona" in preview.code.text)
        await settled(window)
        assert preview.code.text == other.context("operator").text
        assert preview.code.text.index("### persona") < preview.code.text.index("### a pinned one")
        assert preview.about.text.startswith("2 blocks, ")
        assert preview.about.text.endswith(" tokens")

        blocks.note("a pinned one", "unpin", author="somebody", granted=Action.DELETE)
        await until(lambda: "a pinned one" not in preview.code.text)


async def test_context_of_a_store_that_cannot_be_read_is_a_sentence(window: MainWindow) -> None:
    workspace = window.document.workspace
    workspace.blocks("operator").create("persona", author="somebody", content="kind", type=BlockType.CORE)
    workspace.close()
    (store,) = workspace.state_folder.glob("memory.sqlite")
    store.write_bytes(b"no database" * 100)
    preview = await chosen(window, "operator")
    preview.part.set_current("context")
    await settled(window)
    assert preview.empty.isVisible()
    assert "cannot be read" in preview.empty.accessibleName()
    assert "block store" in preview.empty.accessibleDescription()


async def test_preview_says_what_the_models_of_coding_agents_really_get(window: MainWindow) -> None:
    document = window.document
    for host_id in ("claude-code", "opencode"):
        project, path = document.workspace.folder, document.workspace.policy_path
        write_agent_policy(host_id, project, path)
    assert await document.reload()
    preview = await chosen(window, "claude", "claude.Bash")
    assert preview.whole_hosts.text() == (
        "Models in Claude Code see its tools whole, off or not: the gate refuses calls of what is off."
    )
    assert preview.whole_hosts.isVisible()
    assert not preview.narrowing_hosts.isVisible()
    assert not preview.unsent.isVisible()
    click(window, "claude.Bash", None)
    await settled(window)
    assert preview.unsent.text() == "Off: the gate refuses its calls. If it were on:"
    preview.part.set_current("rules")
    assert preview.whole_hosts.text() == (
        "Models in Claude Code do not get these rules: write them into its own instructions."
    )
    preview.part.set_current("schema")

    preview = await chosen(window, "opencode", "opencode.bash")
    assert preview.narrowing_hosts.text() == (
        "Models in opencode see just this, and of a tool that is off its name alone."
    )
    assert preview.narrowing_hosts.isVisible()
    assert not preview.whole_hosts.isVisible()
    preview.scope.set_current("agent")
    await settled(window)
    assert preview.narrowing_hosts.isVisible()

    preview = await chosen(window, "operator", "file")
    assert not preview.narrowing_hosts.isVisible()
    assert not preview.whole_hosts.isVisible()
