"""A call that takes its time: seen at work, cancelled for good; and the frame around the window in live mode."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import Tool, tool
from gatewright_gui.pages.trial import TrialPage, stages
from gatewright_gui.session.console import MAX_STREAMED
from gatewright_gui.session.live import LiveMode
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.live_frame import WIDTH, LiveFrame
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened, opened, until

ROW = stages.STAGE_NAMES.index("execute")


class Slow:
    """What the tool saw, told across threads."""

    def __init__(self) -> None:
        self.begun, self.cancelled = threading.Event(), threading.Event()

    async def wait(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "never"


SLOW = Slow()


@tool(safety_tier=SafetyTier.READ_ONLY)
async def dawdle() -> str:
    """Take all the time there is."""
    return await SLOW.wait()


@tool(safety_tier=SafetyTier.READ_ONLY)
async def trickle() -> AsyncIterator[str]:
    """Give some lines, and no end."""
    for number in range(2_000):
        yield f"line {number}\n"
    yield await SLOW.wait()


def slow_tools() -> tuple[Tool, ...]:
    return dawdle, trickle


@pytest.fixture
def slow() -> Slow:
    SLOW.begun.clear()
    SLOW.cancelled.clear()
    return SLOW


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo", Opener(slow_tools)) as made:
        assert rights.tick_tool(made.document, "operator", "dawdle", on=True)
        assert rights.tick_tool(made.document, "operator", "trickle", on=True)
        yield made


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        made.request.mode.set_current("json")
        made.request.tool.setEditText("dawdle")
        made.request.raw.set_text("{}")
        yield made


async def test_stages_stand_there_one_by_one_while_the_call_runs(page: TrialPage, slow: Slow) -> None:
    page.run()
    await until(slow.begun.is_set)
    model = page.outcome.model
    await until(lambda: model.state_at(ROW) == "working")
    assert [str(model.state_at(row)) for row in range(ROW)] == ["allow"] * ROW
    assert [str(model.state_at(row)) for row in range(ROW + 1, model.rowCount())] == ["waiting"] * 3
    await until(lambda: model.index(ROW, stages.TIME).data())
    assert model.index(ROW, stages.TIME).data().endswith(" ms")
    await until(page.outcome.strip.isVisible)
    assert not page.run_button.isEnabled()
    assert not page.history.again_button.isEnabled()


async def test_cancel_really_ends_the_running_tool(page: TrialPage, slow: Slow) -> None:
    page.run()
    await until(slow.begun.is_set)
    await until(page.cancel_button.isVisible)
    QTest.mouseClick(page.cancel_button, Qt.MouseButton.LeftButton)
    await until(lambda: not page.console.is_busy)
    await until(slow.cancelled.is_set)
    record = page.console.records[0]
    assert (record.status, record.stage) == ("cancelled", "execute")
    assert "what the tool had done by then stays done" in record.reason
    assert page.outcome.model.state_at(ROW) == "cancelled"
    assert page.outcome.result.none.isVisible()
    assert page.run_button.isEnabled()


async def test_pieces_of_a_stream_are_seen_as_they_come_until_the_call_is_cancelled(
    page: TrialPage, slow: Slow
) -> None:
    page.request.tool.setEditText("trickle")
    page.run()
    await until(slow.begun.is_set)
    result = page.outcome.result
    await until(lambda: result.text.isVisible() and result.text.editor.toPlainText().endswith("line 1999\n"))
    assert len(result.text.editor.toPlainText()) <= MAX_STREAMED
    page.cancel()
    await until(lambda: not page.console.is_busy)
    await until(slow.cancelled.is_set)
    assert result.none.isVisible()


@pytest.mark.parametrize("where", ["run", "tool", "stages", "editor"])
async def test_escape_gives_up_the_running_call_from_anywhere_in_the_console(
    page: TrialPage, slow: Slow, where: str
) -> None:
    parts = {"run": page, "tool": page.request.tool, "stages": page.outcome.stages, "editor": page.request.raw.editor}
    assert "Esc" in page.cancel_button.toolTip()
    page.run()
    await until(slow.begun.is_set)
    QTest.keyClick(parts[where], Qt.Key.Key_Escape)
    await until(lambda: not page.console.is_busy)
    await until(slow.cancelled.is_set)


async def test_escape_is_taken_by_what_is_nearer_to_the_keys_first(page: TrialPage, slow: Slow) -> None:
    page.run()
    await until(slow.begun.is_set)
    search = page.history.bar.search
    search.setText("read")
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""
    assert page.console.is_busy


async def test_live_mode_frames_the_window_and_lets_clicks_through(page: TrialPage) -> None:
    body = QWidget()
    QVBoxLayout(body)
    live = LiveMode(body)
    frame = LiveFrame(body, live)
    body.resize(300, 200)
    body.show()
    assert not frame.isVisible()
    live.enter()
    assert frame.isVisible()
    assert frame.geometry() == body.rect()
    body.resize(400, 250)
    assert frame.geometry() == body.rect()
    assert body.childAt(150, 1) is not frame
    painted = body.grab().toImage()
    assert painted.pixelColor(0, 100) == painted.pixelColor(WIDTH - 1, 50)
    assert painted.pixelColor(0, 100) != painted.pixelColor(WIDTH + 20, 100)
    live.leave()
    assert not frame.isVisible()
    body.close()
    assert page.live_bar.isHidden()
