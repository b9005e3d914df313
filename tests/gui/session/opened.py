"""What tests of the app share: a demo workspace of their own, windows on it, waiting. It checks nothing itself."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QModelIndex, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright_gui.app.build import build_window
from gatewright_gui.pages.access.agent_pane import AgentPane
from gatewright_gui.pages.access.page import AccessPage
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.access.tools.tool_delegate import Part, ask_rect, box_rect, mend_rect, on_rect
from gatewright_gui.pages.access.tools.tool_tree import Column
from gatewright_gui.qt.widget.item_view import OrderedTable
from gatewright_gui.session.document import Document
from gatewright_gui.session.message import Message
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.support.demo import copy_demo
from tests.support.patience import pause_until, until


def demo(folder: Path) -> Path:
    """A fresh copy of the demo; its policy file."""
    return copy_demo(folder / "demo")


def turn_until(holds: Callable[[], object], what: str) -> None:
    """Let the events of the application come, without a loop of asyncio, until something holds."""
    pause_until(lambda: QApplication.processEvents() or holds(), what)


async def settled(window: MainWindow) -> None:
    """Until every answer that is under way has come."""
    await until(lambda: not window.tasks.names)
    await asyncio.sleep(0)


class Said:
    """Collects what a document says."""

    def __init__(self, document: Document) -> None:
        self.messages: list[Message] = []
        document.said.connect(self.messages.append)

    @property
    def last(self) -> str:
        return self.messages[-1].text if self.messages else ""


@asynccontextmanager
async def opened_document(policy: Path) -> AsyncGenerator[Document]:
    """A document on a policy, closed at the end."""
    document = Document()
    await document.open(policy)
    try:
        yield document
    finally:
        document.close()


@asynccontextmanager
async def opened_window(policy: Path, home: Path) -> AsyncGenerator[MainWindow]:
    """A shown window on a policy, shut at the end; what only takes rights away is saved without a question."""
    preferences = Preferences(home / "preferences.ini")
    preferences.reviews_gains_only = True
    window = await build_window(policy, preferences=preferences, theme="light")
    try:
        window.resize(1280, 800)
        window.show()
        await settled(window)
        yield window
    finally:
        await end(window)


async def end(window: MainWindow) -> None:
    """Shut a window and destroy it here and now."""
    window.close_now()
    await window.shut()
    window.deleteLater()
    QApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)


def agents_page(window: MainWindow) -> ToolsPage:
    page = window.shelf.page("tools")
    assert isinstance(page, ToolsPage)
    return page


def agents_pane(window: MainWindow) -> AgentPane:
    page = window.shelf.place("tools")
    assert isinstance(page, AccessPage)
    return page.agents


def cell(window: MainWindow, tool: str, operation: str | None, column: Column = Column.NAME) -> QModelIndex:
    """A cell of the tree as it is shown."""
    pane = agents_page(window).tools
    return pane.rows.mapFromSource(pane.model.index_of(tool, operation)).siblingAtColumn(column)


def click(window: MainWindow, tool: str, operation: str | None, part: Part = Part.BOX) -> None:
    """A mouse click on a part of a row: its box, a half of its switch, its fact or the button there."""
    view = agents_page(window).tools.view
    view.scrollTo(cell(window, tool, operation))
    index = cell(window, tool, operation, Column.FACT if part in {Part.MEND, Part.FILES} else Column.NAME)
    rect = view.visualRect(index)
    rects = {Part.BOX: box_rect, Part.ON: on_rect, Part.ASK: ask_rect}
    place = mend_rect(rect, index) if part is Part.MEND else rects.get(part, QRect)(rect)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place.center())


def ticked(window: MainWindow, tool: str, operation: str | None) -> Qt.CheckState:
    """What a row's box shows."""
    return Qt.CheckState(cell(window, tool, operation).data(Qt.ItemDataRole.CheckStateRole))


def broken(policy: Path) -> str:
    """Put two errors into a policy file; the text as it was."""
    text = policy.read_text("utf-8")
    mended = text.replace('"ContinueLoop"', '"ContinuLoop"').replace('"list", "load"', '"list", "lod"', 1)
    assert mended != text
    policy.write_text(mended, "utf-8")
    return text


def forget(folder: Path) -> None:
    """Remove a workspace from the disk."""
    shutil.rmtree(folder)


def drag(table: OrderedTable, patch: pytest.MonkeyPatch, row: int, to: Callable[[], QPoint]) -> list[int | None]:
    """Drag a row by the mouse and drop it; where the line was drawn before the drop.

    The platform without a screen has no dragging of its own: once the drag begins its events are handed over here.
    """
    viewport, lines = table.viewport(), list[int | None]()
    start = table.visualRect(table.model().index(row, 0)).center()
    move, buttons, none = Qt.DropAction.MoveAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier

    def own(_event: object) -> bool:
        return True

    def carried(_table: object, actions: Qt.DropAction) -> None:
        assert actions == move
        data = table.model().mimeData(table.selectedIndexes())
        table.dragEnterEvent(QDragEnterEvent(to(), move, data, buttons, none))
        over = QDragMoveEvent(to(), move, data, buttons, none)
        table.dragMoveEvent(over)
        assert over.isAccepted()
        lines.append(table.drop_at)
        table.dropEvent(QDropEvent(QPointF(to()), move, data, buttons, none))

    patch.setattr(type(table), "startDrag", carried)
    patch.setattr(table, "is_own", own)
    QTest.mousePress(viewport, buttons, none, start)
    for step in (8, 24):  # as events with the button held: nothing here may turn the loop within a coroutine
        at = QPointF(start + QPoint(0, step))
        moved = QMouseEvent(QEvent.Type.MouseMove, at, viewport.mapToGlobal(at), Qt.MouseButton.NoButton, buttons, none)
        QApplication.sendEvent(viewport, moved)
    QTest.mouseRelease(viewport, buttons, none, to())
    return lines
