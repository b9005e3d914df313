"""The pane around a table of rules: buttons, a menu of what can be added, the lines at which the rows stand."""

from collections.abc import Callable
from typing import Generic

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractItemView, QMenu, QPushButton, QWidget

from gatewright_gui.pages.access.tools.rule_table import R, RuleDelegate, RuleRows, RuleTable
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.session.filetext import lines_of


class RulesPane(QWidget, Generic[R]):
    """A table of rules with the buttons of its header; whoever holds the pane lays the header out."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, context: PageContext, name: str, add: QPushButton, remove: IconButton) -> None:
        super().__init__()
        self.setObjectName(name)
        self._context = context
        self.header = SectionHeader("")
        self.menu = QMenu(self)
        self.add_button = named(add, f"{name}.add")
        self.add_button.setMenu(self.menu)
        tie_icon(self.add_button, "plus", "muted")
        self.remove_button = named(remove, f"{name}.remove")
        self.header.add_control(self.add_button)
        self.header.add_control(self.remove_button)

    def set_table(self, view: RuleTable, rows: RuleRows[R], delegate: RuleDelegate, stretched: int) -> None:
        """The table of the pane, and the column that gets the room that is left."""
        self._table, self._rows = view, rows
        named(view, f"{self.objectName()}.list")
        view.setModel(rows)
        view.setItemDelegate(delegate)
        view.settle(stretched)
        view.add_requested.connect(self.open_menu)
        view.remove_requested.connect(self.remove_current)
        view.edit_requested.connect(self.edit_current)
        view.line_clicked.connect(self.go)
        view.selectionModel().currentChanged.connect(self.current_changed)
        # once the view is done with the field
        delegate.closeEditor.connect(lambda: QTimer.singleShot(0, self, self._editor_closed))
        self.remove_button.clicked.connect(self.remove_current)
        self.menu.aboutToShow.connect(self.fill_menu)

    # what a subclass does

    def fill_menu(self) -> None:
        """Offer what can be added."""
        raise NotImplementedError

    def remove_current(self) -> None:
        """Take the current row away."""
        raise NotImplementedError

    def edit_current(self) -> None:
        """Edit the current row."""
        raise NotImplementedError

    def editor_closed(self) -> None:
        """An editor is gone, and no other one is open."""

    # what is shown

    @property
    def current(self) -> R | None:
        """The current row."""
        return self._rows.row_at(self._table.currentIndex().row())

    def current_changed(self, *_: object) -> None:
        """Another row is the current one, or it is another."""
        self.remove_button.setEnabled(self.current is not None and self.current.is_own)

    def find_lines(self) -> None:
        """Ask where the rows stand in the file."""
        if self._rows.addresses:
            self._context.tasks.start(self._find_lines(), f"{self.objectName()}.lines", replace=True)

    async def _find_lines(self) -> None:
        addresses = self._rows.addresses
        lines = await self._context.deriver.derive(lines_of, addresses)
        if lines is not None:
            path = self._context.document.path
            self._rows.set_lines(lines, path.name if path else "")
            self._table.fit()

    # what is asked for

    def open_menu(self) -> None:
        """Show what can be added, below its button."""
        if self.add_button.isEnabled():
            self.add_button.showMenu()

    def edit_cell(self, row: int, column: int) -> None:
        """Make a cell the current one and open its editor."""
        index = self._rows.index(row, column)
        self._table.show_row(row, column)
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            self._table.edit(index)

    def soon(self, act: Callable[[], object]) -> None:
        """Once the menu is gone, so that it does not take the keys from a field."""
        QTimer.singleShot(0, self, act)

    def go(self, row: int) -> None:
        """Go to the line of a row."""
        line = self._rows.line_at(row)
        if line is not None:
            self.line_requested.emit(line)

    def _editor_closed(self) -> None:
        if self._table.state() != QAbstractItemView.State.EditingState:
            self._rows.drop_draft()
            self.editor_closed()
            self._table.keep_keys()
