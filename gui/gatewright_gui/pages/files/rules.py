"""The left part of the Files page: the ordered rules of a source, edited in place. It does not know the folder.

Over 400 lines: the table, its keys, its menu and its buttons say the same things and are read together.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.permission import Permission
from gatewright_gui.models import permissionrules
from gatewright_gui.models.permissionrules import PermissionRuleModel
from gatewright_gui.pages.files.counting import Insertion
from gatewright_gui.pages.files.delegate import RuleDelegate, dead_chip_width, edit_at_once, open_list
from gatewright_gui.pages.files.newrule import NewRuleBar
from gatewright_gui.qt.look import current_look, role_colour, tie_icon
from gatewright_gui.qt.widget import IconButton, MessageBar, ProgressStrip, SectionHeader, TableView
from gatewright_gui.session.courtesy import painting
from gatewright_gui.session.document import Document
from gatewright_gui.session.fileindex import PatternCount
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

    def __init__(self, document: Document, moved: Callable[[int, int], None]) -> None:
        self._document = document
        self._moved = moved
        self.source_id = ""

    def set_rule(self, index: int, rule: PermissionRule) -> bool:
        return sources.set_rule(self._document, self.source_id, index, rule)

    def set_level(self, index: int, level: Permission) -> bool:
        return sources.set_level(self._document, self.source_id, index, level)

    def set_default(self, level: Permission) -> bool:
        return sources.set_default_level(self._document, self.source_id, level)

    def move(self, indexes: tuple[int, ...], to: int) -> bool:
        done = sources.move_rules(self._document, self.source_id, indexes, to)
        if done:
            self._moved(to, len(indexes))
        return done

    def add(self, rule: PermissionRule, index: int) -> bool:
        return sources.add_rule(self._document, self.source_id, rule, index)

    def remove(self, indexes: Iterable[int]) -> bool:
        return sources.remove_rules(self._document, self.source_id, indexes)


class _Table(TableView):
    """Rules are dropped between rows; a list of levels opens with its editor, whichever way that is begun."""

    returned = Signal(object)
    """Return was pressed on this cell: QModelIndex."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pressed_at = QPoint()
        self.drop_at: int | None = None
        """The row before which what is dragged would be dropped."""

    def edit(self, *asked: Any) -> Any:
        """Open an editor. A key that would be handed to a list of levels opens it and chooses nothing."""
        index: QModelIndex = asked[0]
        if len(asked) == _EDIT_BY_VIEW and index.column() == permissionrules.LEVEL:
            asked = (index, asked[1], None)
        done = cast("bool | None", super().edit(*asked))
        open_list(self, index)
        return done

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Kept: a cell can hold more than one thing to click."""
        self.pressed_at = event.position().toPoint()
        super().mousePressEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802
        """Show where it would be dropped; the view scrolls at its edges by itself."""
        super().dragMoveEvent(event)
        is_ours = self.is_own(event)
        self._show_drop(self._drop_row(event) if is_ours else None)
        if is_ours:
            event.setDropAction(Qt.DropAction.MoveAction)
            event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802
        """It is elsewhere."""
        self._show_drop(None)
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """The model moves by a verb; the view must not take the dragged row away."""
        place = self._drop_row(event)
        self._show_drop(None)
        if self.is_own(event):
            self.model().dropMimeData(event.mimeData(), Qt.DropAction.MoveAction, place, 0, QModelIndex())
        event.setDropAction(Qt.DropAction.IgnoreAction)
        event.accept()
        self.setState(QAbstractItemView.State.NoState)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """With a line where what is dragged would be dropped."""
        with painting():
            super().paintEvent(event)
        if self.drop_at is None:
            return
        place = self.visualRect(self.model().index(self.drop_at, 0))
        top = max(place.top() - 1, 0)
        painter = QPainter(self.viewport())
        painter.fillRect(QRect(0, top, self.viewport().width(), 2), role_colour("accent"))
        painter.fillRect(QRect(0, top - 3, 4, 8), role_colour("accent"))

    def is_own(self, event: QDropEvent) -> bool:
        """Whether what is dragged are rows of this table."""
        return event.source() is self and event.mimeData().hasFormat(permissionrules.MIME)

    def _show_drop(self, row: int | None) -> None:
        if row != self.drop_at:
            self.drop_at = row
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Return on a row says so."""
        is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers()
        if is_return and self.currentIndex().isValid() and self.state() != QAbstractItemView.State.EditingState:
            self.returned.emit(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _drop_row(self, event: QDropEvent) -> int:
        """The row before which it is dropped; the default stays the last."""
        last = self.model().rowCount() - 1
        point = event.position().toPoint()
        index = self.indexAt(point)
        if not index.isValid():
            return last
        return min(index.row() + (point.y() > self.visualRect(index).center().y()), last)


class RulesPanel(QWidget):
    """Table, buttons, and what is said about them."""

    source_chosen = Signal(object)
    """Id of a source: str."""
    count_cancelled = Signal()
    pattern_typed = Signal(object, object)
    """What a pattern that is being typed would decide is to be counted: row (or `Insertion`), text."""
    typing_ended = Signal()
    files_asked = Signal(object)
    """The files that this row decides are to be shown: int."""
    add_source_asked = Signal()
    change_source_asked = Signal()
    remove_source_asked = Signal()

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._verbs = _Verbs(document, self._select)
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
        self.new.typed.connect(self._new_typed)
        self.new.ended.connect(self.typing_ended)
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
        self.trial = QLabel()
        self.trial.setObjectName("files.trial")
        self.trial.setTextFormat(Qt.TextFormat.PlainText)
        self.trial.setWordWrap(True)
        self.trial.setContentsMargins(8, 2, 8, 4)
        self.trial.hide()
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

    def show_trial(self, row: int | None, count: PatternCount | None) -> None:
        """What a pattern that is typed would decide; None while it is counted. No row: nothing is typed."""
        is_new = isinstance(row, Insertion)
        self.new.show_count(count if is_new else None)
        self.model.set_trial(None if is_new else row, count)
        shown = row is not None and not is_new and count is not None
        self.trial.setText(f"Pattern: {count.sentence}" if shown and count is not None else "")
        self.trial.setVisible(shown and self.fault.isHidden())

    def go_to(self, row: int) -> None:
        """Choose a row and give it the keys."""
        row = max(0, min(row, self.model.default_row))
        self.table.setCurrentIndex(self.model.index(row, permissionrules.PATTERN))
        self.table.scrollTo(self.model.index(row, permissionrules.PATTERN))
        self._back_to_table()

    @property
    def selected(self) -> tuple[int, ...]:
        """The chosen rules, the default left out."""
        rows = {index.row() for index in self.table.selectionModel().selectedRows()}
        return tuple(sorted(row for row in rows if self.model.rule_at(row) is not None))

    def _select(self, first: int, count: int) -> None:
        """Choose rows that were moved."""
        flag = QItemSelectionModel.SelectionFlag
        top, bottom = self.model.index(first, 0), self.model.index(first + count - 1, 0)
        self.table.setCurrentIndex(self.model.index(first, permissionrules.PATTERN))
        self.table.selectionModel().select(QItemSelection(top, bottom), flag.ClearAndSelect | flag.Rows)
        self._update_buttons()

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
        """Remove the chosen rules."""
        rows = self.selected
        if rows and self._verbs.remove(rows):
            self.table.setCurrentIndex(self.model.index(min(rows[0], self.model.default_row), permissionrules.PATTERN))

    def move_rule(self, step: int) -> None:
        """Move the chosen rules up (-1) or down (1); those with others between them come together."""
        rows = self.selected
        if not rows:
            return
        to = rows[0] + step
        if 0 <= to <= self.model.default_row - len(rows):
            self._verbs.move(rows, to)

    def show_files(self) -> None:
        """Show the files that the current row decides."""
        row = self.table.currentIndex().row()
        if row >= 0:
            self.files_asked.emit(row)

    def _go_to_shadow(self, index: QModelIndex) -> None:
        by = index.data(permissionrules.SHADOWED_BY)
        if by is not None:
            self.go_to(int(by))

    def _open_menu(self, at: QPoint) -> None:
        under = self.table.indexAt(at)
        index = under if under.isValid() else self.table.currentIndex()
        if index.isValid():
            if not self.table.selectionModel().isSelected(index):
                self.table.setCurrentIndex(index)
            self.make_menu(index).popup(self.table.viewport().mapToGlobal(at))

    def make_menu(self, index: QModelIndex) -> QMenu:
        """What can be done with a row."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        row, rows = index.row(), self.selected
        is_rule, by = self.model.rule_at(row) is not None, index.data(permissionrules.SHADOWED_BY)
        pattern = index.siblingAtColumn(permissionrules.PATTERN)
        several = f" {len(rows)} rules" if len(rows) > 1 else ""
        menu.addAction("Show the files that it decides\tCtrl+Return").triggered.connect(self.show_files)
        if by is not None:
            menu.addAction(f"Go to rule {by + 1}, which hides it").triggered.connect(partial(self._to_shadow, index))
        menu.addSeparator()
        edit = menu.addAction("Edit the pattern\tF2")
        edit.setEnabled(is_rule)
        edit.triggered.connect(partial(self._edit_cell, pattern))
        level = menu.addAction("Change the level")
        level.triggered.connect(partial(self._edit_cell, index.siblingAtColumn(permissionrules.LEVEL)))
        menu.addAction("Add a rule above\tIns").triggered.connect(self._add_above_chosen)
        menu.addSeparator()
        for words, act, on in (
            (f"Move{several} up\tAlt+Up", partial(self.move_rule, -1), self.up_button.isEnabled()),
            (f"Move{several} down\tAlt+Down", partial(self.move_rule, 1), self.down_button.isEnabled()),
            (f"Remove{several}\tDel", self.remove_rule, bool(rows)),
        ):
            action = menu.addAction(words)
            action.setEnabled(on)
            action.triggered.connect(partial(_call, act))
        return menu

    def _to_shadow(self, index: QModelIndex, _checked: bool = False) -> None:
        self._go_to_shadow(index)

    def _edit_cell(self, index: QModelIndex, _checked: bool = False) -> None:
        edit_at_once(self.table, index)

    def _new_typed(self, row: int, text: str) -> None:
        self.pattern_typed.emit(Insertion(row), text)

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
        self.trial.setVisible(not fault and bool(self.trial.text()))

    def _choose(self, row: int) -> None:
        self.source_chosen.emit(self.picker.itemData(row))

    def _editor_closed(self, _editor: QWidget, _hint: object) -> None:
        self._show_fault(None)
        self.typing_ended.emit()

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
        if QApplication.keyboardModifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier):
            return
        if index.column() == permissionrules.LEVEL:
            edit_at_once(self.table, index)
        elif index.column() == permissionrules.COMMENT and index.data(permissionrules.SHADOWED_BY) is not None:
            left = self.table.visualRect(index).left()
            if self.table.pressed_at.x() - left <= dead_chip_width(str(index.data(permissionrules.DEAD_WORDS))):
                self._go_to_shadow(index)

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
        rows = self.selected
        self.add_button.setEnabled(self.model.rowCount() > 0)
        self.remove_button.setEnabled(bool(rows))
        self.up_button.setEnabled(bool(rows) and rows[0] > 0)
        self.down_button.setEnabled(bool(rows) and rows[0] + len(rows) < self.model.default_row)
        self.files_button.setEnabled(self.table.currentIndex().isValid())

    def _selection_changed(self, _on: QItemSelection, _off: QItemSelection) -> None:
        self._update_buttons()

    # the parts

    def _make_table(self) -> _Table:
        table = _Table("Levels in order")
        table.setObjectName("files.rules")
        table.setModel(self.model)
        delegate = RuleDelegate(table)
        delegate.pattern_checked.connect(self._show_fault)
        delegate.pattern_refused.connect(self._refuse)
        delegate.pattern_typed.connect(self.pattern_typed)
        delegate.closeEditor.connect(self._editor_closed)
        table.setItemDelegate(delegate)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(_EDITS)
        table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        table.setDropIndicatorShown(False)  # the table draws its own, through all columns
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
        table.selectionModel().selectionChanged.connect(self._selection_changed)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._open_menu)
        for keys, act in (
            ("Alt+Up", lambda: self.move_rule(-1)),
            ("Alt+Down", lambda: self.move_rule(1)),
            ("Del", self.remove_rule),
            ("Ins", self._add_above_chosen),
            ("Ctrl+Return", self.show_files),
        ):
            shortcut = QShortcut(QKeySequence(keys), table, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(act)
        return table

    def _make_source_button(self) -> QToolButton:
        button = self.source_button = QToolButton()
        button.setObjectName("files.sourcemenu")
        button.setAccessibleName("Source: new, settings, remove")
        button.setToolTip("Add a source, change or remove this one")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        tie_icon(button, "settings", "muted")
        menu = QMenu(button)
        menu.addAction("&New source...").triggered.connect(partial(_call, self.add_source_asked.emit))
        menu.addAction("&Settings of this source...").triggered.connect(partial(_call, self.change_source_asked.emit))
        menu.addSeparator()
        menu.addAction("&Remove this source...").triggered.connect(partial(_call, self.remove_source_asked.emit))
        button.setMenu(menu)
        return button

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        self.header = SectionHeader("Levels")
        self.header.add_control(self.picker)
        self.add_button = IconButton("plus", "Add rule (Ins)")
        self.remove_button = IconButton("trash", "Remove rule (Del)")
        self.up_button = IconButton("arrow-up", "Move up (Alt+Up)")
        self.down_button = IconButton("arrow-down", "Move down (Alt+Down)")
        self.files_button = IconButton("list-filter", "Show the files that the rule decides (Ctrl+Return)")
        self.files_button.clicked.connect(self.show_files)
        self.add_button.clicked.connect(self.add_rule)
        self.remove_button.clicked.connect(self.remove_rule)
        self.up_button.clicked.connect(lambda: self.move_rule(-1))
        self.down_button.clicked.connect(lambda: self.move_rule(1))
        for name, button in (
            ("add", self.add_button),
            ("remove", self.remove_button),
            ("up", self.up_button),
            ("down", self.down_button),
            ("showfiles", self.files_button),
        ):
            button.setObjectName(f"files.{name}")
            self.header.add_control(button)
        self.header.add_control(self._make_source_button())
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
        column.addWidget(self.trial)
        column.addWidget(self.strip)


def _call(act: Callable[[], object], _checked: bool = False) -> None:
    act()


def _beside(hits: Hits) -> str:
    """What is not in the counts of the rules."""
    told = [f"{hits.protected:,} files are protected: no rule opens them"] if hits.protected else []
    told += [f"{hits.elsewhere:,} files are decided by another source, which is stricter"] if hits.elsewhere else []
    told += ["folders that cannot be read are not counted"] if hits.unreadable_folders else []
    return "\n".join(told)
