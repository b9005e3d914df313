"""The list of tools that a call may name, and why a call of the named one comes to nothing.

It keeps a name and never a place in the list: any name can be typed.
"""

from collections.abc import Iterable

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QWidget

from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget import IconLabel, ProseLine
from gatewright_gui.session.calls import ShownTool

HIDDEN, UNKNOWN = "Not shown to this agent", "No tool of this name"
_LEAST_LETTERS = 8
_NAME = Qt.ItemDataRole.UserRole


class ToolChoice(QComboBox):
    """Ask `name` and `tool`; `named` tells that the name is another one, `activated` that somebody chose it."""

    named = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.tool")
        self.setAccessibleName("Tool")
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_LEAST_LETTERS)
        self.setMaxVisibleItems(24)
        self.setPlaceholderText("Choose a tool")
        self._tools: dict[str, ShownTool] = {}
        self._rows = QStandardItemModel(self)
        self.setModel(self._rows)
        self.currentTextChanged.connect(self.named)
        current_look().changed.connect(self._recolour)

    @property
    def name(self) -> str:
        """The chosen tool, or what was typed."""
        return self.currentText().strip()

    @property
    def tool(self) -> ShownTool | None:
        """The tool of that name."""
        return self._tools.get(self.name)

    @property
    def is_known(self) -> bool:
        """Whether it is known which tools there are."""
        return bool(self._tools)

    def of_name(self, name: str) -> ShownTool | None:
        """A tool of the list."""
        return self._tools.get(name)

    def set_tools(self, tools: Iterable[ShownTool]) -> None:
        """Offer these. The name stays; without one the first tool that the agent sees is chosen."""
        self._tools = {tool.name: tool for tool in tools}
        first = next((tool.name for tool in self._tools.values() if tool.is_shown), "")
        self.set_name(self.name or ("" if self.isEditable() else first))

    def set_name(self, name: str) -> None:
        """Name a tool, whether there is one or not."""
        before = self.name
        with QSignalBlocker(self):
            self._fill(name)
        if self.name != before:
            self.named.emit()

    def set_free(self, *, free: bool) -> None:
        """Whether any name can be typed."""
        name = self.name
        with QSignalBlocker(self):
            self.setEditable(free)
            line = self.lineEdit()
            if line is not None:
                line.setPlaceholderText("tool name")
            self._fill(name)

    def _recolour(self, _theme: object) -> None:
        self._fill(self.name)

    def _fill(self, wanted: str) -> None:
        with QSignalBlocker(self):
            self._rows.clear()
            shown = [tool for tool in self._tools.values() if tool.is_shown]
            hidden = [tool for tool in self._tools.values() if not tool.is_shown]
            self._rows.invisibleRootItem().appendRows([_item(tool) for tool in shown])
            if hidden:
                self._rows.appendRow(_heading(HIDDEN))
                self._rows.invisibleRootItem().appendRows([_item(tool) for tool in hidden])
            if wanted and wanted not in self._tools and not self.isEditable():
                if self.is_known:
                    self._rows.appendRow(_heading(UNKNOWN))
                self._rows.appendRow(_row(wanted, "circle-help"))
            self.setCurrentIndex(self.findData(wanted, _NAME))
            if self.isEditable():
                self.setEditText(wanted)


def _item(tool: ShownTool) -> QStandardItem:
    made = _row(tool.name, "" if tool.is_shown else "eye-off")
    made.setToolTip(tip_text(tool.description))
    return made


def _row(name: str, icon: str) -> QStandardItem:
    made = QStandardItem(name)
    made.setData(name, _NAME)
    if icon:
        made.setIcon(current_look().icon(icon, "muted"))
    return made


def _heading(text: str) -> QStandardItem:
    made = QStandardItem(text)
    made.setFlags(Qt.ItemFlag.NoItemFlags)
    made.setFont(current_look().small_font)
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
        """What it says."""
        return self._said.text

    def tell_of(self, choice: ToolChoice) -> None:
        """Look at what is named."""
        tool = choice.tool
        is_named = bool(choice.name) and choice.is_known
        said = "no tool has this name" if tool is None and is_named else ""
        if tool is not None and tool.hidden is not None:
            said = f"not shown to the model: {tool.hidden}"
        self._icon.set_icon("circle-help" if tool is None else "eye-off", "ask")
        self._said.set_text(said)
        self.setVisible(bool(said))
