"""Results and arguments of any size: read beside the window, shown in parts, never in its way."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, tool
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial import json_tree_model as jsontree
from gatewright_gui.pages.trial.result import slow_value
from gatewright_gui.session.calls import MAX_LINE, MAX_SHOWN, CallRecord, cut
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.verbs import rights
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened, opened, until
from tests.gui.watchdog.watching import Watching, gui_watchdog
from tests.support.patience import in_time

__all__ = ["gui_watchdog"]

ROWS = [{"id": number, "name": f"item {number}", "tags": ["a", "b"]} for number in range(5_000)]


@tool(safety_tier=SafetyTier.READ_ONLY)
async def large(kind: str) -> list[object]:
    """Give back much."""
    return {"rows": list[object](ROWS), "line": list[object](["x" * 1_000_000])}[kind]


def large_result_tools() -> tuple[Tool, ...]:
    return (large,)


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo", Opener(large_result_tools)) as made:
        assert rights.tick_tool(made.document, "operator", "large", on=True)
        yield made


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


async def ran(page: TrialPage, kind: str) -> CallRecord:
    page.request.mode.set_current("json")
    page.request.tool.setEditText("large")
    page.request.raw.set_text(json.dumps({"kind": kind}))
    page.run()
    await until(lambda: page.console.records and not page.console.is_busy)
    await until(lambda: page.outcome.result.record is not None)
    return page.console.records[-1]


async def test_long_list_is_shown_as_a_table_and_a_tree_without_holding_up_the_window(page: TrialPage) -> None:
    record = await ran(page, "rows")
    assert record.whole is not None
    result = page.outcome.result
    await until(result.table.isVisible)
    assert result.table.model.rowCount() == len(ROWS)
    result.parts.set_current("tree")
    await until(result.tree.isVisible)
    tree = result.tree
    first = tree.model.index(0, 0)
    assert first.siblingAtColumn(jsontree.VALUE).data() == "5,000 items"
    assert tree.model.rowCount(first) <= jsontree.MAX_ROWS
    tree.search.setText("item 4999")
    await until(lambda: tree.hits and not tree.is_searching)
    assert tree.path.text() == "$[4999].name"
    tree.tree.setCurrentIndex(first)
    tree.open_below()
    await until(lambda: not tree.is_opening)
    assert tree.tree.isExpanded(tree.model.index(0, 0, first))


async def test_reading_a_long_result_again_does_not_hold_up_the_window(page: TrialPage, gui_watchdog: Watching) -> None:
    record = await ran(page, "rows")
    result = page.outcome.result
    await until(result.table.isVisible)
    async with gui_watchdog.during("show a long result"):
        page.outcome.show_record(record)
        await until(lambda: not result.table.isVisible())
        await until(result.table.isVisible)
    result.parts.set_current("tree")
    await until(result.tree.isVisible)
    async with gui_watchdog.during("show a long result as a tree"):
        page.outcome.show_record(record)
        await until(lambda: not result.tree.isVisible())
        await until(result.tree.isVisible)


async def test_endless_line_is_cut_where_it_is_shown_and_kept_whole(page: TrialPage) -> None:
    record = await ran(page, "line")
    result = page.outcome.result
    result.parts.set_current("text")
    shown = result.text.text
    assert max(map(len, shown.splitlines())) < MAX_LINE + 60
    assert "more characters in this line" in shown
    assert record.whole is not None
    assert len(record.whole) > 1_000_000


def test_what_is_left_out_of_a_text_is_said() -> None:
    assert cut("short\u202e") == "short\\u202e"
    assert cut("x" * (MAX_LINE + 7)) == f"{'x' * MAX_LINE} ... 7 more characters in this line"
    assert cut("y\n" * MAX_SHOWN).endswith(f"\n... {MAX_SHOWN:,} more characters")


def test_json_read_slowly_is_the_same_and_says_when_it_is_too_deep() -> None:
    text = json.dumps({"rows": ROWS, "more": [1, -2.5e3, "\u00e4\ud83d", None, True, {}, []]})
    assert slow_value(text) == json.loads(text)
    with pytest.raises(ValueError, match="deep"):
        slow_value("[" * 100_000)
    began = time.process_time()
    with pytest.raises(ValueError, match="Expecting"):
        slow_value('{"a": }')
    assert in_time(time.process_time() - began, 1)
