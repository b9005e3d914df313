"""What tests of the app share: a demo workspace of their own, windows on it, waiting. It checks nothing itself."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright_gui.app.build import build_window
from gatewright_gui.pages.agents.agents_page import AgentsPage
from gatewright_gui.pages.agents.tool_tree import Column
from gatewright_gui.session.document import Document
from gatewright_gui.session.message import Message
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.support.demo import copy_demo

PATIENCE_S = 10.0


def demo(folder: Path) -> Path:
    """A fresh copy of the demo; its policy file."""
    return copy_demo(folder / "demo")


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.005)


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
    window.resize(1280, 800)
    window.show()
    await settled(window)
    try:
        yield window
    finally:
        await end(window)


async def end(window: MainWindow) -> None:
    """Shut a window and destroy it here and now."""
    window.close_now()
    await window.shut()
    window.deleteLater()
    QApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)


def agents_page(window: MainWindow) -> AgentsPage:
    page = window.shelf.page("agents")
    assert isinstance(page, AgentsPage)
    return page


def cell(window: MainWindow, tool: str, operation: str | None, column: Column = Column.NAME) -> QModelIndex:
    """A cell of the tree as it is shown."""
    pane = agents_page(window).tools
    return pane.rows.mapFromSource(pane.model.index_of(tool, operation)).siblingAtColumn(column)


def click(window: MainWindow, tool: str, operation: str | None, column: Column = Column.NAME) -> None:
    """A mouse click on a row's box, or on its ask-first switch."""
    view = agents_page(window).tools.view
    view.scrollTo(cell(window, tool, operation))
    rect = view.visualRect(cell(window, tool, operation, column))
    at = QPoint(rect.left() + (10 if column is Column.NAME else 16), rect.center().y())
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


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
