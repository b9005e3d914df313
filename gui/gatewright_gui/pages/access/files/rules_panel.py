"""The ordered rules of a source, edited in place."""

from functools import partial

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from gatewright.workspace.api import Permission, PermissionRule, Source
from gatewright_gui.pages.access.files import rule_model
from gatewright_gui.pages.access.files.new_rule_bar import NewRuleBar
from gatewright_gui.pages.access.files.rule_header import RuleHeader
from gatewright_gui.pages.access.files.rule_model import Insertion, PermissionRuleModel
from gatewright_gui.pages.access.files.rule_table import RuleTable, edit_at_once, idle_chip_width
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget import MessageBar, ProgressStrip
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.message_bar import FootBars
from gatewright_gui.session.document import Document
from gatewright_gui.session.file_index import PatternCount
from gatewright_gui.session.files import Hits
from gatewright_gui.session.verbs import sources


class RulesPanel(QWidget):
    """Table, buttons, and what is said about them."""

    count_cancelled = Signal()
    pattern_typed = Signal(object, object)
    """What a pattern that is being typed would decide is to be counted: row (or `Insertion`), text."""
    typing_ended = Signal()
    files_asked = Signal(object)
    """The files that this row decides are to be shown: int."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document, self._source = document, Source("", "")
        """The source as it is shown; one that is nowhere while none is."""
        self._refused: tuple[PermissionRule, str] | None = None
        self._next: PermissionRule | None = None
        """The rule above which the new one is to stand; None: it is to be the last."""
        self._suggestion = ""
        self._above: int | None = None
        self.model = PermissionRuleModel(self, self)
        self.header = RuleHeader(self)
        self.table = RuleTable(self.model, self)
        self._new: NewRuleBar | None = None
        self.message = MessageBar()
        self.strip = ProgressStrip()
        self.fault = named(Label(wraps=True), "files.fault", kind="error")
        self.trial = named(Label(wraps=True), "files.trial")
        self.trial.setContentsMargins(8, 2, 8, 4)
        self.roots = named(Label(wraps=True), "files.roots", kind="small")
        """Folders that are no sources: where levels do not hold."""
        self._lay_out()
        self._connect()
        self._update_buttons()

    # what is shown

    @property
    def new(self) -> NewRuleBar:
        """The line for a new rule, made when it is first needed: most come here to look."""
        if self._new is None:
            new = self._new = NewRuleBar(self)
            new.written.connect(self._add)
            new.left.connect(self._back_to_table)
            new.typed.connect(self._new_typed)
            new.ended.connect(self.typing_ended)
            self._column.insertWidget(self._column.indexOf(self.table), new)
        return self._new

    def show_roots(self, line: str, whole: str) -> None:
        """Say where levels do not hold; nothing of no line."""
        self.roots.setText(line)
        self.roots.setToolTip(tip_text(whole))
        self.roots.setVisible(bool(line))

    def start_over(self, source: Source | None) -> None:
        """Another source."""
        self._source = source or Source("", "")
        self._hide_new()
        self.message.dismiss()
        self.model.start_over(source)
        self.table.fit()
        self._update_buttons()

    def refresh(self, source: Source) -> None:
        """The same source, changed."""
        before, self._source = self._source, source
        self.model.set_source(source)
        self.table.fit()
        if _order(before) != _order(source):
            self._hide_new()  # the row that it names is another one now
        self._update_buttons()
        self._show_hits()

    def set_hits(self, hits: Hits | None) -> None:
        """Counts, or None while they are made."""
        self.model.set_hits(hits)
        if hits is not None:
            self.table.fit()
        self._show_hits()

    def show_not_counted(self, note: str, why: str) -> None:
        """There are no counts."""
        self.model.forget_hits()
        self.header.set_note(note)
        self.header.setToolTip(why)

    def show_deciding(self, row: int | None) -> None:
        """Mark the row that decides and bring it into view."""
        self.model.set_deciding(row)
        if row is not None:
            self.table.scrollTo(self.model.index(row, rule_model.PATTERN))

    def suggest(self, pattern: str, above: int) -> None:
        """The pattern that the next added rule begins with, and the row above which it decides, until one is chosen."""
        self._suggestion, self._above = pattern, above

    def show_trial(self, row: int | None, count: PatternCount | None) -> None:
        """Show what a pattern that is typed would decide; None while it is counted. No row: nothing is typed."""
        is_new = isinstance(row, Insertion)
        if self._new is not None:
            self._new.show_count(count if is_new else None)
        self.model.set_trial(row, count)
        shown = row is not None and not is_new and count is not None
        self.trial.setText(tr("Pattern: {what}", what=count.sentence) if shown and count is not None else "")
        self.trial.setVisible(shown and self.fault.isHidden())

    @property
    def written_level(self) -> Permission:
        """The level of the new rule that is being written."""
        return Permission(str(self._new.level.currentData())) if self._new is not None else Permission.NONE

    def go_to(self, row: int) -> None:
        """Choose a row and give it the keys."""
        row = max(0, min(row, self.model.default_row))
        self.table.setCurrentIndex(self.model.index(row, rule_model.PATTERN))
        self.table.scrollTo(self.model.index(row, rule_model.PATTERN))
        self._back_to_table()

    # what the table asks for

    def set_rule(self, rule: PermissionRule, after: PermissionRule) -> bool:
        """Give a rule another pattern, level or comment."""
        return sources.set_rule(self._document, self._source, rule, after)

    def set_level(self, rule: PermissionRule, level: Permission) -> bool:
        """Give a rule another level."""
        return sources.set_level(self._document, self._source, rule, level)

    def set_default(self, level: Permission) -> bool:
        """Give what no rule matches another level."""
        return sources.set_default_level(self._document, self._source, level)

    def _move_to(self, to: int) -> None:
        """Move the chosen rules so that the first of them stands at `to`, and keep them chosen."""
        rows = self.table.chosen
        others = [rule for row, rule in enumerate(self.model.rules) if row not in rows]
        before = others[to] if to < len(others) else None
        if sources.move_rules(self._document, self._source, self._chosen_rules, before):
            flag = QItemSelectionModel.SelectionFlag
            top, bottom = self.model.index(to, 0), self.model.index(to + len(rows) - 1, 0)
            self.table.setCurrentIndex(self.model.index(to, rule_model.PATTERN))
            self.table.selectionModel().select(QItemSelection(top, bottom), flag.ClearAndSelect | flag.Rows)
            self._update_buttons()

    @property
    def _chosen_rules(self) -> list[PermissionRule]:
        return [self.model.rules[row] for row in self.table.chosen]

    # acts

    def add_rule(self) -> None:
        """Ask for a rule above the suggested one, else below all that say more than a broad one does, where it opens
        nothing that another rule closes; it is added once it is written.
        """
        self._begin_rule(self.model.safe_row if self._above is None else self._above)

    def _begin_rule(self, row: int) -> None:
        at = row if 0 <= row < self.model.default_row else self.model.default_row
        where = tr("above rule {number}", number=at + 1) if at < self.model.default_row else tr("as the last rule")
        self._next = self.model.rule_at(at)
        self.new.begin(at, where, self._suggestion or "new/**")

    def _add(self, rule: PermissionRule, at: int) -> None:
        if sources.add_rule(self._document, self._source, rule, self._next):
            self._hide_new()
            self.table.setCurrentIndex(self.model.index(at, rule_model.PATTERN))
            self._back_to_table()

    def _back_to_table(self) -> None:
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def remove_rule(self) -> None:
        """Remove the chosen rules."""
        rows = self.table.chosen
        if rows and sources.remove_rules(self._document, self._source, self._chosen_rules):
            self.table.setCurrentIndex(self.model.index(min(rows[0], self.model.default_row), rule_model.PATTERN))

    def move_rule(self, step: int) -> None:
        """Move the chosen rules up (-1) or down (1); those with others between them come together."""
        rows = self.table.chosen
        if not rows:
            return
        to = rows[0] + step
        if 0 <= to <= self.model.default_row - len(rows):
            self._move_to(to)

    def show_files(self) -> None:
        """Show the files that the current row decides."""
        row = self.table.currentIndex().row()
        if row >= 0:
            self.files_asked.emit(row)

    def add_above_chosen(self) -> None:
        """Ask for a rule above the chosen one: the key of the table speaks of the table's row."""
        self._above = None
        self._begin_rule(self.table.currentIndex().row())

    def _open_menu(self, at: QPoint) -> None:
        """Offer what can be done with the row there, and with the rules that are chosen."""
        under = self.table.indexAt(at)
        index = under if under.isValid() else self.table.currentIndex()
        if not index.isValid():
            return
        if not self.table.selectionModel().isSelected(index):
            self.table.setCurrentIndex(index)
        menu = popup_menu(self)
        rows, last, by = self.table.chosen, self.model.default_row, self.model.rule_row(index.row()).shadowed_by
        pattern, level = (index.siblingAtColumn(column) for column in (rule_model.PATTERN, rule_model.LEVEL))
        rules = counted(len(rows), "rule", "rules")
        up, down, remove = tr("Move up"), tr("Move down"), tr("Remove")
        if len(rows) > 1:
            up, down = tr("Move {rules} up", rules=rules), tr("Move {rules} down", rules=rules)
            remove = tr("Remove {rules}", rules=rules)

        add_action(menu, f"{tr('Show the files that it decides')}\tCtrl+Return", self.show_files)
        if by is not None:
            add_action(menu, tr("Go to rule {number}, which hides it", number=by + 1), partial(self.go_to, by))
        menu.addSeparator()
        add_action(
            menu, f"{tr('Edit the pattern')}\tF2", partial(edit_at_once, self.table, pattern), can=index.row() < last
        )
        add_action(menu, tr("Change the level"), partial(edit_at_once, self.table, level))
        add_action(menu, f"{tr('Add a rule above')}\tIns", self.add_above_chosen)
        menu.addSeparator()
        add_action(menu, f"{up}\tAlt+Up", partial(self.move_rule, -1), can=bool(rows) and rows[0] > 0)
        add_action(menu, f"{down}\tAlt+Down", partial(self.move_rule, 1), can=bool(rows) and rows[0] + len(rows) < last)
        add_action(menu, f"{remove}\tDel", self.remove_rule, can=bool(rows))
        menu.popup(self.table.viewport().mapToGlobal(at))

    def _hide_new(self) -> None:
        self._above = None
        if self._new is not None:
            self._new.hide()

    def _new_typed(self, row: int, text: str) -> None:
        self.pattern_typed.emit(Insertion(row), text)

    def _edit_again(self) -> None:
        if self._refused is None:
            return
        rule, text = self._refused
        self.message.dismiss()
        row = self.model.row_of(rule)
        if row < 0:
            return
        index = self.model.index(row, rule_model.PATTERN)
        edit_at_once(self.table, index)
        editor = self.table.indexWidget(index)
        if isinstance(editor, QLineEdit):
            editor.setText(text)
            editor.setModified(True)

    def _refuse(self, row: int, text: str, fault: str) -> None:
        rule = self.model.rule_at(row)
        self._refused = (rule, text) if rule is not None else None
        self.fault.hide()
        self.message.show_message("error", tr("not taken: {reason}", reason=fault), action=tr("Edit again"))

    def _show_fault(self, fault: str | None) -> None:
        self.fault.setText(fault or "")
        self.fault.setVisible(bool(fault))
        self.trial.setVisible(not fault and bool(self.trial.text()))

    def _editor_closed(self, _editor: QWidget, _hint: object) -> None:
        self._show_fault(None)
        self.typing_ended.emit()

    def _row_chosen(self, _row: QModelIndex, _before: QModelIndex) -> None:
        self._above = None
        self._update_buttons()

    def _edit_cell(self, index: QModelIndex) -> None:
        """Return edits the cell, as F2 does."""
        if index.flags() & Qt.ItemFlag.ItemIsEditable:
            edit_at_once(self.table, index)

    def _follow_click(self, index: QModelIndex) -> None:
        self._above = None
        if QApplication.keyboardModifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier):
            return
        if index.column() == rule_model.LEVEL:
            edit_at_once(self.table, index)
            return
        row = self.model.rule_row(index.row())
        if index.column() == rule_model.COMMENT and row.shadowed_by is not None:
            left = self.table.visualRect(index).left()
            if self.table.pressed_at.x() - left <= idle_chip_width(row.idle_words):
                self.go_to(row.shadowed_by)

    def _show_hits(self) -> None:
        self.header.show_hits(self.model.hits, len(self.model.dead_rows))

    def _update_buttons(self, *_selected: object) -> None:
        rows = self.table.chosen
        header = self.header
        header.add_button.setEnabled(self.model.rowCount() > 0)
        header.remove_button.setEnabled(bool(rows))
        header.up_button.setEnabled(bool(rows) and rows[0] > 0)
        header.down_button.setEnabled(bool(rows) and rows[0] + len(rows) < self.model.default_row)
        header.files_button.setEnabled(self.table.currentIndex().isValid())

    # the parts

    def _connect(self) -> None:
        header, table, delegate = self.header, self.table, self.table.delegate
        header.add_button.clicked.connect(self.add_rule)
        header.remove_button.clicked.connect(self.remove_rule)
        header.up_button.clicked.connect(lambda: self.move_rule(-1))
        header.down_button.clicked.connect(lambda: self.move_rule(1))
        header.files_button.clicked.connect(self.show_files)
        delegate.pattern_checked.connect(self._show_fault)
        delegate.pattern_refused.connect(self._refuse)
        delegate.pattern_typed.connect(self.pattern_typed)
        delegate.closeEditor.connect(self._editor_closed)
        table.clicked.connect(self._follow_click)
        table.returned.connect(self._edit_cell)
        table.move_asked.connect(self.move_rule)
        table.move_requested.connect(self._move_to)
        table.remove_asked.connect(self.remove_rule)
        table.add_asked.connect(self.add_above_chosen)
        table.files_asked.connect(self.show_files)
        table.customContextMenuRequested.connect(self._open_menu)
        table.selectionModel().currentChanged.connect(self._row_chosen)
        table.selectionModel().selectionChanged.connect(self._update_buttons)
        self.message.action_requested.connect(self._edit_again)
        self.strip.cancel_requested.connect(self.count_cancelled)

    def _lay_out(self) -> None:
        tokens = current_look().tokens
        words = tr("The first pattern that matches a file decides.")
        order = named(Label(words, wraps=True), kind="small")
        for label in (self.fault, self.trial, self.roots):
            label.hide()
        self.roots.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_2)
        self._column = column_of(
            self.header,
            row_of(stretch(order), margins=(2, 1)),
            stretch(self.table),
            self.fault,
            self.trial,
            self.roots,
            into=self,
        )
        FootBars(self, self.strip, self.message)


def _order(source: Source) -> list[int]:
    """Which rules stand there, whatever they say."""
    return [rule.identity for rule in source.permission_rules]
