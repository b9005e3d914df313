from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from gatewright.schema.formats import FORMATS, format_named
from gatewright_gui.models.tokens import TokenColumn
from gatewright_gui.models.tooltree import Column
from gatewright_gui.pages.preview.preview_pane import COUNTING, PreviewPane
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, cell, click, demo, opened_window, settled

LEFT, PLAIN = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as opened:
        yield opened


async def chosen(window: MainWindow, agent_id: str, tool: str = "file") -> PreviewPane:
    window.selection.choose_agent(agent_id)
    agents_page(window).tools.show_row(tool, None)
    await settled(window)
    return agents_page(window).preview


async def test_every_provider_says_how_it_takes_the_tool_and_a_click_chooses_its_format(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    listings = window.document.workspace.view("operator").listings()

    for name in FORMATS:
        button = preview.providers.buttons[name]
        QTest.mouseClick(button, LEFT, PLAIN, button.rect().center())
        await settled(window)

        lints = format_named(name).lints_all(listings).get("file", ())
        assert preview.provider == name
        assert [row.code for row in preview.lints.model.rows] == [lint.code for lint in lints] or len(lints) > 1
        assert (": ok" in button.accessibleName()) == (not lints)
        assert preview.lints.isVisible() == bool(lints)


async def test_click_on_a_note_chooses_the_tool_and_shows_its_line(window: MainWindow) -> None:
    preview = await chosen(window, "operator", "block")
    preview.scope.set_current("agent")
    preview.choose_format("openai")
    preview.part.set_current("difference")
    await settled(window)
    row = next(row for row, lint in enumerate(preview.lints.model.rows) if lint.tool == "file")
    lint = preview.lints.model.rows[row]
    rect = preview.lints.view.visualRect(preview.lints.model.index(row))

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
    assert cell(window, "file", None, Column.TOKENS).data() == f"{before.per_tool['file']:,}"
    assert preview.token_rule.text == "exact"
    assert before.encoding in preview.token_rule.toolTip()

    click(window, "file", "delete")
    await settled(window)

    after = window.document.workspace.view("operator").tokens("openai")
    assert after.per_tool["file"] < before.per_tool["file"]
    assert cell(window, "file", None, Column.TOKENS).data() == f"{after.per_tool['file']:,}"
    assert preview.tokens.text.startswith(f"{after.per_tool['file']:,} of {before.per_tool['file']:,} tokens")


async def test_sum_of_the_token_table_stays_on_top_and_a_row_chooses_its_tool(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.part.set_current("tokens")
    table = preview.table
    assert table.isVisible()
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        for column in TokenColumn:
            table.sortByColumn(column, order)
            assert table.sorted.index(0, 0).data() == "all tools"
    row = next(row for row in range(table.sorted.rowCount()) if table.sorted.index(row, 0).data() == "tracker")

    QTest.mouseClick(table.viewport(), LEFT, PLAIN, table.visualRect(table.sorted.index(row, 0)).center())

    assert window.selection.tool == "tracker"


async def test_estimate_is_marked(window: MainWindow) -> None:
    preview = await chosen(window, "operator")
    preview.choose_format("gemini")
    await settled(window)

    assert preview.tokens.text.startswith("~")
    assert preview.token_rule.text.startswith("estimate")
    assert str(cell(window, "file", None, Column.TOKENS).data()).startswith("~")
