"""Finds rows, boxes and texts for journeys; it moves no mouse and presses no key."""

import difflib
import json
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QListView, QTableView, QTreeView

from gatewright_gui.pages.access.agents import AGENT_ID
from gatewright_gui.pages.access.tools.tool_delegate import box_rect
from gatewright_gui.qt.widget.code_view import CodeView
from tests.journeys.hand import Hand

NAME = QPoint(140, 12)
"""Within the name of a tool, behind box and switch, counted from the top left corner of its row."""


def agent_row(hand: Hand, name: str) -> tuple[QListView, QModelIndex]:
    """Return the list of agents, and the row of one agent."""
    view = hand.find("agents.list", QListView)
    rows = [view.model().index(row, 0) for row in range(view.model().rowCount())]
    return view, next(row for row in rows if row.data(AGENT_ID) == name)


def tree_row(view: QTreeView, *names: str, column: int = 0) -> QModelIndex:
    """A row of a tree by the names on the way to it; that of a group of tools may be left out."""
    parent = QModelIndex()
    for name in names:
        rows = rows_below(view, parent)
        if not parent.isValid():
            rows += [row for group in rows for row in rows_below(view, group)]
        parent = next(row for row in rows if str(row.data()).rstrip("/") == name)
    return parent.siblingAtColumn(column)


def rows_below(view: QTreeView, parent: QModelIndex) -> list[QModelIndex]:
    """The rows right below one of a tree; at the top for none."""
    return [view.model().index(row, 0, parent) for row in range(view.model().rowCount(parent))]


def box_state(view: QTreeView, *names: str) -> Qt.CheckState:
    """Return the state of a box of the tree."""
    return Qt.CheckState(tree_row(view, *names).data(Qt.ItemDataRole.CheckStateRole))


def box_place(view: QTreeView, *names: str) -> QPoint:
    """The middle of a box, counted from the top left corner of its cell."""
    cell = view.visualRect(tree_row(view, *names))
    return box_rect(cell).center() - cell.topLeft()


def texts(model: QAbstractItemModel, column: int = 0) -> list[str]:
    """Return the texts of a column, from the top."""
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def table_row(view: QTableView, text: str, column: int = 0) -> QModelIndex:
    """Return the first row with this text in a column."""
    return view.model().index(texts(view.model(), column).index(text), column)


def waits(session: QTableView) -> bool:
    """Whether a pause between two calls lasts, as the session shows it."""
    return any(" to wait" in text for text in texts(session.model(), 1))


def shown_text(hand: Hand) -> str:
    """Return the text of the preview."""
    return hand.find("preview.code", CodeView).text


def shown_schema(hand: Hand) -> dict[str, Any]:
    """Return the properties of the schema in the preview."""
    return json.loads(shown_text(hand))["inputSchema"]["properties"]


def changed_lines(before: str, after: str) -> list[str]:
    """Return the removed (-) and added (+) lines."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[0] + line[2:] for line in lines if line[0] in "+-"]
