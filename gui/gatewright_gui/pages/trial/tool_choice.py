"""The list of tools that a call may name, and why a call of the named one comes to nothing.

It keeps a name and never a place in the list: any name can be typed. In the open list typing leaves what fits.
"""

from collections.abc import Iterable
from typing import cast

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QListView, QWidget

from gatewright.workspace.api import Catalog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget import IconLabel, ProseLine
from gatewright_gui.session.calls import ShownTool
from gatewright_gui.session.tool_groups import by_origin, group_of

HIDDEN, UNKNOWN = mark("Not shown to this agent"), mark("No tool of this name")
_LEAST_LETTERS = 8
_NAME, _WORDS = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
"""The name of a tool; what it is found by, which headings have not."""


class ToolChoice(QComboBox):
    """Ask `name` and `tool`; `named` tells that the name is another one, `activated` that somebody chose it."""

    named = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.tool")
        self.setAccessibleName(tr("Tool"))
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_LEAST_LETTERS)
        self.setMaxVisibleItems(24)
        self.setPlaceholderText(tr("Choose a tool"))
        self._tools: dict[str, ShownTool] = {}
        self._catalogs: tuple[Catalog, ...] = ()
        self._typed = ""
        self._known = 0
        """How many rows there are without one for a name that no tool has."""
        self._rows = QStandardItemModel(self)
        self.setModel(self._rows)
        self._list = cast(QListView, self.view())
        self._list.installEventFilter(self)
        self.setToolTip(tr("In the open list, type to find a tool by its name or its catalog"))
        self.currentTextChanged.connect(self.named)
        current_look().changed.connect(self._recolour)

    @property
    def name(self) -> str:
        """The chosen tool, or what was typed, to the letter: a model may write a blank behind a name."""
        return self.currentText()

    @property
    def tool(self) -> ShownTool | None:
        """The tool of that name."""
        return self._tools.get(self.name)

    @property
    def is_known(self) -> bool:
        """Tell whether it is known which tools there are."""
        return bool(self._tools)

    def of_name(self, name: str) -> ShownTool | None:
        """A tool of the list."""
        return self._tools.get(name)

    def set_tools(self, tools: Iterable[ShownTool], catalogs: Iterable[Catalog] = ()) -> None:
        """Offer these. The name stays; without one the first tool that the agent sees is chosen."""
        name, self._catalogs = self.name, tuple(catalogs)
        self._tools = {tool.name: tool for tool in tools}
        first = next((tool.name for tool in self._tools.values() if tool.is_shown), "")
        self._fill(name)
        self.set_name(name or ("" if self.isEditable() else first))

    def set_name(self, name: str) -> None:
        """Name a tool, whether there is one or not."""
        before = self.name
        self._point_at(name)
        if self.name != before:
            self.named.emit()

    def set_free(self, *, free: bool) -> None:
        """Set whether any name can be typed."""
        name = self.name
        with QSignalBlocker(self):
            self.setEditable(free)
            line = self.lineEdit()
            if line is not None:
                line.setPlaceholderText(tr("tool name"))
            self._point_at(name)

    def _recolour(self, _theme: object) -> None:
        self._fill(self.name)

    def _fill(self, wanted: str) -> None:
        with QSignalBlocker(self):
            self._rows.clear()
            self._rows.appendRow(_heading(""))  # what is typed
            groups = by_origin(self._tools.values(), lambda tool: tool.origin, self._catalogs)
            for is_shown in (True, False):
                for origin, tools in groups.items():
                    self._append(origin if len(groups) > 1 else "", [one for one in tools if one.is_shown == is_shown])
            self._known = self._rows.rowCount()
            self._point_at(wanted)

    def _append(self, origin: str, tools: list[ShownTool]) -> None:
        group = group_of(origin, self._catalogs)
        words = (group.words if origin else "", "" if not tools or tools[0].is_shown else tr(HIDDEN))
        if tools and any(words):
            self._rows.appendRow(_heading(" \u00b7 ".join(filter(None, words))))
        self._rows.invisibleRootItem().appendRows([_item(tool, group.words) for tool in tools])

    def _point_at(self, wanted: str) -> None:
        with QSignalBlocker(self):
            self._rows.setRowCount(self._known)
            if wanted and wanted not in self._tools and not self.isEditable():
                if self.is_known:
                    self._rows.appendRow(_heading(tr(UNKNOWN)))
                self._rows.appendRow(_row(wanted, "circle-help"))
            self.setCurrentIndex(self.findData(wanted, _NAME))
            if self.isEditable():
                self.setEditText(wanted)

    # what is typed in the open list

    def showPopup(self) -> None:  # noqa: N802
        """Open the list, whole."""
        self._type("")
        super().showPopup()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Letters, Backspace and Escape while the list is open."""
        if watched is self._list and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._take(event)
        return super().eventFilter(watched, event)

    def _take(self, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Backspace:
            self._type(self._typed[:-1])
        elif event.key() == Qt.Key.Key_Escape and self._typed:
            self._type("")
        elif event.text().isprintable() and (self._typed + event.text()).strip():
            self._type(self._typed + event.text())
        else:
            return False
        return True

    def _type(self, text: str) -> None:
        """Leave the tools that have every word in their name or that of their group; headings stay above them."""
        self._typed, words, found, heading = text, text.casefold().split(), list[int](), 0
        for row in range(1, self._rows.rowCount()):
            said = self._rows.item(row).data(_WORDS)
            fits = said is not None and all(word in said for word in words)
            self._list.setRowHidden(row, not fits)
            if said is None:
                heading = row
            elif fits:
                found.append(row)
                self._list.setRowHidden(heading, False)
        told = tr("{text}: {count:,} of {all:,} tools", text=text, count=len(found), all=len(self._tools))
        self._rows.item(0).setText(told)
        self._list.setRowHidden(0, not text)
        if text and found:
            self._list.setCurrentIndex(self._rows.index(found[0], 0))
            self._list.scrollToTop()


def _item(tool: ShownTool, group: str) -> QStandardItem:
    made = _row(tool.name, "" if tool.is_shown else "eye-off", group)
    made.setToolTip(tip_text(tool.description))
    return made


def _row(name: str, icon: str, group: str = "") -> QStandardItem:
    made = QStandardItem(name)
    made.setData(name, _NAME)
    made.setData(f"{name} {group}".casefold(), _WORDS)
    if icon:
        made.setIcon(current_look().icon(icon, "muted"))
    return made


def _heading(text: str) -> QStandardItem:
    made = QStandardItem(text)
    made.setFlags(Qt.ItemFlag.NoItemFlags)
    made.setFont(current_look().small_font)
    made.setForeground(QColor(current_look().palette.muted))
    return made


class ToolNote(QWidget):
    """Hidden for a tool that the agent sees."""

    def __init__(self) -> None:
        super().__init__()
        self._icon = IconLabel("eye-off", "ask", size=14)
        self._said = named(ProseLine(), "console.note")
        row_of(self._icon, stretch(self._said), into=self, space=2, margins=(2, 0, 2, 2))
        self.hide()

    @property
    def text(self) -> str:
        """The text that it says."""
        return self._said.text

    def tell_of(self, choice: ToolChoice) -> None:
        """Look at what is named."""
        tool = choice.tool
        is_named = bool(choice.name) and choice.is_known
        said = tr("no tool has this name") if tool is None and is_named else ""
        if tool is not None and tool.hidden is not None:
            said = tr("not shown to the model: {reason}", reason=tool.hidden)
        self._icon.set_icon("circle-help" if tool is None else "eye-off", "ask")
        self._said.set_text(said)
        self.setVisible(bool(said))
