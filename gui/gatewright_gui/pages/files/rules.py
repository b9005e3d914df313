"""The left part of the Files page: the ordered rules of a source, edited in place. It does not know the folder."""

from typing import Any, cast

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QDropEvent, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.permission import Permission
from gatewright_gui.models import permissionrules
from gatewright_gui.models.permissionrules import PermissionRuleModel
from gatewright_gui.pages.files.delegate import RuleDelegate, edit_at_once, open_list
from gatewright_gui.pages.files.newrule import NewRuleBar
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import IconButton, MessageBar, ProgressStrip, SectionHeader, TableView
from gatewright_gui.session.document import Document
from gatewright_gui.session.files import Hits
from gatewright_gui.session.verbs import sources

_EDITS = (
    QAbstractItemView.EditTrigger.DoubleClicked
    | QAbstractItemView.EditTrigger.EditKeyPressed
    | QAbstractItemView.EditTrigger.AnyKeyPressed
)


_EDIT_BY_VIEW = 3
"""How many arguments `edit` has when the view calls it: index, trigger, event."""


class _Verbs:
    """What the table asks for, sent to the verbs for the source that is shown."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.source_id = ""

    def set_rule(self, index: int, rule: PermissionRule) -> bool:
        return sources.set_rule(self._document, self.source_id, index, rule)

    def set_level(self, index: int, level: Permission) -> bool:
        return sources.set_level(self._document, self.source_id, index, level)

    def set_default(self, level: Permission) -> bool:
        return sources.set_default_level(self._document, self.source_id, level)

    def move(self, index: int, to: int) -> bool:
        return sources.move_rule(self._document, self.source_id, index, to)

    def add(self, rule: PermissionRule, index: int) -> bool:
        return sources.add_rule(self._document, self.source_id, rule, index)

    def remove(self, index: int) -> bool:
        return sources.remove_rule(self._document, self.source_id, index)


class _Table(TableView):
    """Rules are dropped between rows; a list of levels opens with its editor, whichever way that is begun."""

    returned = Signal(object)
    """Return was pressed on this cell: QModelIndex."""

    def edit(self, *asked: Any) -> Any:
        """Open an editor. A key that would be handed to a list of levels opens it and chooses nothing."""
        index: QModelIndex = asked[0]
        if len(asked) == _EDIT_BY_VIEW and index.column() == permissionrules.LEVEL:
            asked = (index, asked[1], None)
        done = cast("bool | None", super().edit(*asked))
        open_list(self, index)
        return done

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """The model moves by a verb; the view must not take the dragged row away."""
        place = self._drop_row(event)
        if event.source() is self and place is not None:
            self.model().dropMimeData(event.mimeData(), Qt.DropAction.MoveAction, place, 0, QModelIndex())
        event.setDropAction(Qt.DropAction.IgnoreAction)
        event.accept()
        self.setState(QAbstractItemView.State.NoState)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Return on a row says so."""
        is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers()
        if is_return and self.currentIndex().isValid() and self.state() != QAbstractItemView.State.EditingState:
            self.returned.emit(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _drop_row(self, event: QDropEvent) -> int | None:
        point = event.position().toPoint()
        index = self.indexAt(point)
        if not index.isValid():
            return self.model().rowCount()
        return index.row() + (point.y() > self.visualRect(index).center().y())


class RulesPanel(QWidget):
    """Table, buttons, and what is said about them."""

    source_chosen = Signal(object)
    """Id of a source: str."""
    count_cancelled = Signal()

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._verbs = _Verbs(document)
        self._refused: tuple[int, str] | None = None
        self._suggestion = ""
        self._above: int | None = None
        self.model = PermissionRuleModel(self._verbs, self)
        self.picker = QComboBox()
        self.picker.setObjectName("files.source")
        self.picker.setAccessibleName("Source")
        self.picker.activated.connect(self._choose)
        self.table = self._make_table()
        self.new = NewRuleBar()
        self.new.written.connect(self._add)
        self.new.left.connect(self._back_to_table)
        self.message = MessageBar()
        self.message.action_requested.connect(self._edit_again)
        self.strip = ProgressStrip()
        self.strip.cancel_requested.connect(self.count_cancelled)
        self.fault = QLabel()
        self.fault.setObjectName("files.fault")
        self.fault.setProperty("kind", "error")
        self.fault.setWordWrap(True)
        self.fault.setTextFormat(Qt.TextFormat.PlainText)
        self.fault.hide()
        self._lay_out()
        self._update_buttons()

    # what is shown

    def show_sources(self, shown: tuple[Source, ...], chosen: str | None) -> None:
        """Offer these sources; the picker hides while there is only one."""
        self.picker.clear()
        for source in shown:
            self.picker.addItem(source.source_id, source.source_id)
        self.picker.setCurrentIndex(self.picker.findData(chosen))
        self.picker.setVisible(len(shown) > 1)
        self.header.set_title("Levels" if len(shown) > 1 else f"Levels of {chosen}" if chosen else "Levels")

    def start_over(self, source: Source | None) -> None:
        """Another source."""
        self._verbs.source_id = source.source_id if source else ""
        self.new.hide()
        self._above = None
        self.message.dismiss()
        self.model.start_over(source)
        self._fit_numbers()
        self._update_buttons()

    def refresh(self, source: Source) -> None:
        """The same source, changed."""
        before = self.model.default_row
        self.model.set_source(source)
        self._fit_numbers()
        if self.model.default_row != before:
            self.new.hide()  # the row that it names is another one now
            self._above = None
        self._update_buttons()
        self._tell()

    def set_hits(self, hits: Hits | None) -> None:
        """Counts, or None while they are made."""
        self.model.set_hits(hits)
        self._tell()

    def show_not_counted(self, note: str, why: str) -> None:
        """There are no counts."""
        self.model.forget_hits()
        self.header.set_note(note)
        self.header.setToolTip(why)

    def show_deciding(self, row: int | None) -> None:
        """Mark the row that decides and bring it into view."""
        self.model.set_deciding(row)
        if row is not None:
            self.table.scrollTo(self.model.index(row, permissionrules.PATTERN))

    def suggest(self, pattern: str, above: int) -> None:
        """The pattern that the next added rule begins with, and the row above which it decides, until one is chosen."""
        self._suggestion, self._above = pattern, above

    def _fit_numbers(self) -> None:
        """Room for the last number: it is never cut."""
        wide = self.table.fontMetrics().horizontalAdvance("0" * len(str(self.model.default_row)))
        self.table.setColumnWidth(permissionrules.NUMBER, max(34, wide + 22))

    # acts

    def add_rule(self) -> None:
        """Ask for a rule above the chosen or the suggested one, or as the last; it is added once it is written."""
        row = self.table.currentIndex().row() if self._above is None else self._above
        at = row if 0 <= row < self.model.default_row else self.model.default_row
        where = f"above rule {at + 1}" if at < self.model.default_row else "as the last rule"
        self.new.begin(at, where, self._suggestion or "new/**")

    def _add(self, rule: PermissionRule, at: int) -> None:
        if self._verbs.add(rule, at):
            self.new.hide()
            self.table.setCurrentIndex(self.model.index(at, permissionrules.PATTERN))
            self._back_to_table()

    def _back_to_table(self) -> None:
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def remove_rule(self) -> None:
        """Remove the chosen rule."""
        row = self.table.currentIndex().row()
        if self.model.rule_at(row) is not None and self._verbs.remove(row):
            self.table.setCurrentIndex(self.model.index(min(row, self.model.default_row), permissionrules.PATTERN))

    def move_rule(self, step: int) -> None:
        """Move the chosen rule up (-1) or down (1)."""
        row = self.table.currentIndex().row()
        to = row + step
        if self.model.rule_at(row) is not None and self.model.rule_at(to) is not None and self._verbs.move(row, to):
            self.table.setCurrentIndex(self.model.index(to, permissionrules.PATTERN))
            self._update_buttons()

    def _edit_again(self) -> None:
        if self._refused is None:
            return
        row, text = self._refused
        self.message.dismiss()
        index = self.model.index(row, permissionrules.PATTERN)
        edit_at_once(self.table, index)
        editor = self.table.indexWidget(index)
        if isinstance(editor, QLineEdit):
            editor.setText(text)
            editor.setModified(True)

    def _refuse(self, row: int, text: str, fault: str) -> None:
        self._refused = (row, text)
        self.fault.hide()
        self.message.show_message("error", f"not taken: {fault}", action="Edit again")

    def _show_fault(self, fault: str | None) -> None:
        self.fault.setText(fault or "")
        self.fault.setVisible(bool(fault))

    def _choose(self, row: int) -> None:
        self.source_chosen.emit(self.picker.itemData(row))

    def _editor_closed(self, _editor: QWidget, _hint: object) -> None:
        self._show_fault(None)

    def _add_above_chosen(self) -> None:
        """The key of the table speaks of the table's row."""
        self._above = None
        self.add_rule()

    def _row_chosen(self, _row: QModelIndex, _before: QModelIndex) -> None:
        self._above = None
        self._update_buttons()

    def _activated(self, index: QModelIndex) -> None:
        """Return edits the cell, as F2 does."""
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            edit_at_once(self.table, index)

    def _clicked(self, index: QModelIndex) -> None:
        self._above = None
        if index.column() == permissionrules.LEVEL:
            edit_at_once(self.table, index)

    def _tell(self) -> None:
        hits, dead = self.model.hits, len(self.model.dead_rows)
        note = f"{len(self.model.dead_rows)} dead" if dead else ""
        if hits is not None:
            more = "more than " if hits.truncated else ""
            closed = f", {hits.unreadable_folders:,} folders unreadable" if hits.unreadable_folders else ""
            note = f"{more}{hits.files:,} files" + (f", {dead} dead" if dead else "") + closed
        self.header.set_note(note)
        self.header.setToolTip(_beside(hits) if hits is not None else "")

    def _update_buttons(self) -> None:
        row = self.table.currentIndex().row()
        is_rule = self.model.rule_at(row) is not None
        self.add_button.setEnabled(self.model.rowCount() > 0)
        self.remove_button.setEnabled(is_rule)
        self.up_button.setEnabled(is_rule and row > 0)
        self.down_button.setEnabled(is_rule and row < self.model.default_row - 1)

    # the parts

    def _make_table(self) -> _Table:
        table = _Table("Levels in order")
        table.setObjectName("files.rules")
        table.setModel(self.model)
        delegate = RuleDelegate(table)
        delegate.pattern_checked.connect(self._show_fault)
        delegate.pattern_refused.connect(self._refuse)
        delegate.closeEditor.connect(self._editor_closed)
        table.setItemDelegate(delegate)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(_EDITS)
        table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        table.setDropIndicatorShown(True)
        table.setDragDropOverwriteMode(False)
        table.setTabKeyNavigation(False)
        header = table.horizontalHeader()
        for column, width in ((permissionrules.NUMBER, 34), (permissionrules.LEVEL, 112), (permissionrules.HITS, 58)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            table.setColumnWidth(column, width)
        table.setColumnWidth(permissionrules.PATTERN, 140)
        header.setMinimumSectionSize(30)
        header.moveSection(permissionrules.NUMBER, 0)
        table.clicked.connect(self._clicked)
        table.returned.connect(self._activated)
        table.selectionModel().currentChanged.connect(self._row_chosen)
        for keys, act in (
            ("Alt+Up", lambda: self.move_rule(-1)),
            ("Alt+Down", lambda: self.move_rule(1)),
            ("Del", self.remove_rule),
            ("Ins", self._add_above_chosen),
        ):
            shortcut = QShortcut(QKeySequence(keys), table, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(act)
        return table

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self.header = SectionHeader("Levels")
        self.header.add_control(self.picker)
        self.add_button = IconButton("plus", "Add rule (Ins)")
        self.remove_button = IconButton("trash", "Remove rule (Del)")
        self.up_button = IconButton("arrow-up", "Move up (Alt+Up)")
        self.down_button = IconButton("arrow-down", "Move down (Alt+Down)")
        self.add_button.clicked.connect(self.add_rule)
        self.remove_button.clicked.connect(self.remove_rule)
        self.up_button.clicked.connect(lambda: self.move_rule(-1))
        self.down_button.clicked.connect(lambda: self.move_rule(1))
        for name, button in (
            ("add", self.add_button),
            ("remove", self.remove_button),
            ("up", self.up_button),
            ("down", self.down_button),
        ):
            button.setObjectName(f"files.{name}")
            self.header.add_control(button)
        order = QLabel("The first pattern that matches wins; what no rule matches gets the default.")
        order.setProperty("kind", "small")
        order.setWordWrap(True)
        foot = QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        foot.addWidget(order, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.message)
        column.addLayout(foot)
        column.addWidget(self.new)
        column.addWidget(self.table, 1)
        column.addWidget(self.fault)
        column.addWidget(self.strip)


def _beside(hits: Hits) -> str:
    """What is not in the counts of the rules."""
    told = [f"{hits.protected:,} files are protected: no rule opens them"] if hits.protected else []
    told += [f"{hits.elsewhere:,} files are decided by another source, which is stricter"] if hits.elsewhere else []
    told += ["folders that cannot be read are not counted"] if hits.unreadable_folders else []
    return "\n".join(told)
