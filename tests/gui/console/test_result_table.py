"""Results that list equal objects are tables; through the page and the real gate."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, tool
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial.result_table import ResultTableView
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.verbs import rights
from tests.gui.console.standing import console_page, settled
from tests.gui.files.support import Opened, opened

LONG = "first words of a note\nand " + "more words " * 40
RESULTS: dict[str, dict[str, object]] = {
    "notes": {
        "success": True,
        "message": "2 results",
        "data": {
            "hits": [
                {"body": LONG, "score": 0.831251, "size_bytes": 12_345, "pinned": True, "role": None, "tags": ["a"]},
                {"body": "<b>short</b>", "score": 2.5, "size_bytes": 7, "pinned": False, "role": "user", "extra": 1},
                {"body": "last", "score": 1, "size_bytes": 8, "pinned": False, "role": "user"},
            ],
            "by_meaning": False,
        },
    },
    "none": {"success": True, "message": "nothing fits", "data": {"hits": []}},
    "text": {"success": True, "message": "text", "data": {"content": LONG, "parts": [{"line": 1}]}},
    "mixed": {"success": True, "data": [{"a": 1}, "b"]},
    "server": {"result": [{"name": "one"}, {"name": "two"}]},
}


@tool(safety_tier=SafetyTier.READ_ONLY)
async def look(kind: str) -> dict[str, object]:
    """Give back a result."""
    return RESULTS[kind]


def look_tools() -> tuple[Tool, ...]:
    return (look,)


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo", Opener(look_tools)) as made:
        assert rights.tick_tool(made.document, "operator", "look", on=True)
        yield made


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


async def ran(page: TrialPage, kind: str) -> CallRecord:
    page.request.mode.set_current("json")
    page.request.tool.setEditText("look")
    page.request.raw.set_text(json.dumps({"kind": kind}))
    page.run()
    return await settled(page, len(page.console.records) + 1)


def cells(table: ResultTableView) -> list[list[str]]:
    model = table.model
    return [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


async def test_hits_of_a_search_are_a_table_under_its_sentence(page: TrialPage) -> None:
    await ran(page, "notes")
    table = page.outcome.result.table
    assert table.isVisible()
    assert table.words.text() == "2 results; by_meaning: no; only in the tree: tags, extra"
    tester = QAbstractItemModelTester(table.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert table.model.headers == ("body", "pinned", "role", "score", "size_bytes")
    first, second, third = cells(table)
    assert first[1:] == ["yes", "-", "0.8313", "12,345 bytes"]
    assert first[0].startswith("first words of a note and more words")
    assert second == ["<b>short</b>", "no", "user", "2.5", "7 bytes"]
    assert third[3] == "1"
    assert tester.model() is table.model


async def test_long_text_of_a_row_is_whole_in_the_tooltip_and_below_once_it_is_chosen(page: TrialPage) -> None:
    await ran(page, "notes")
    table = page.outcome.result.table
    cell = table.model.index(0, 0)
    assert cell.data(Qt.ItemDataRole.ToolTipRole) == LONG
    assert not table.whole.isVisible()
    QTest.mouseClick(
        table.table.viewport(), Qt.MouseButton.LeftButton, pos=table.table.visualRect(cell).topLeft() + QPoint(4, 4)
    )
    assert table.whole.isVisible()
    assert table.whole.text == LONG


async def test_empty_list_is_said(page: TrialPage) -> None:
    await ran(page, "none")
    table = page.outcome.result.table
    assert table.isVisible()
    assert table.words.text() == "nothing fits"
    assert table.empty.isVisible()
    assert not table.table.isVisible()


async def test_list_as_a_server_gives_it_is_a_table(page: TrialPage) -> None:
    await ran(page, "server")
    assert cells(page.outcome.result.table) == [["one"], ["two"]]


@pytest.mark.parametrize("kind", ["text", "mixed"])
async def test_result_that_is_no_list_of_objects_has_no_table(page: TrialPage, kind: str) -> None:
    await ran(page, kind)
    result = page.outcome.result
    assert result.text.isVisible()
    assert not result.parts.button("table").isEnabled()
    assert "no objects" in result.parts.button("table").toolTip()


async def test_text_and_tree_of_a_listed_result_are_a_click_away(page: TrialPage) -> None:
    await ran(page, "notes")
    result = page.outcome.result
    QTest.mouseClick(result.parts.button("tree"), Qt.MouseButton.LeftButton)
    assert result.tree.isVisible()
    QTest.mouseClick(result.parts.button("table"), Qt.MouseButton.LeftButton)
    assert result.table.isVisible()
