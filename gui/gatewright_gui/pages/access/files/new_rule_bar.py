"""The line in which a new rule is written: pattern, level, and where it will stand."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import Permission, PermissionRule
from gatewright_gui.pages.access.files.level import level_combo
from gatewright_gui.pages.access.files.rule_model import PermissionRuleModel
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look, role_colour
from gatewright_gui.qt.widget import IconButton
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.session.file_index import PatternCount


class PatternEdit(QLineEdit):
    """A field that knows at each key whether its pattern can be used."""

    checked = Signal(object)
    """What is wrong with the text, or None: str | None."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        named(self, "files.pattern", spoken=tr("Pattern"))
        self.setFont(current_look().mono_font)
        self.setFrame(False)
        self.fault: str | None = None
        self.textChanged.connect(self._check)

    def _check(self, text: str) -> None:
        self.fault = PermissionRuleModel.fault_of(text)
        self.setProperty("kind", "error" if self.fault else None)
        self.style().unpolish(self)
        self.style().polish(self)
        self.setToolTip(self.fault or "")
        self.checked.emit(self.fault)


class NewRuleBar(QWidget):
    """Hidden until `begin`. Return says what was written, Escape leaves; who adds the rule hides the bar."""

    written = Signal(object, object)
    """PermissionRule and the row before which it is to stand: int."""
    left = Signal()
    """It was given up."""
    typed = Signal(object, object)
    """The row before which the rule is to stand, and its pattern as it is typed: int, str. Also for another level."""
    ended = Signal()
    """Nothing is written any more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = 0
        self._where = named(Label(), kind="small")
        self.pattern = named(PatternEdit(self), "files.newpattern", spoken=tr("Pattern of the new rule"))
        self.pattern.setFrame(True)
        self.pattern.checked.connect(self._show_fault)
        self.pattern.textChanged.connect(self._tell)
        self.pattern.installEventFilter(self)
        self.level = named(level_combo(self), "files.newlevel", spoken=tr("Level of the new rule"))
        self.level.installEventFilter(self)
        self.count = named(Label(), "files.newcount", kind="small")
        self._found: PatternCount | None = None
        self.change = named(Label(wraps=True), "files.newchange", kind="small")
        """Which files would have another level; those that it opens first."""
        self._opens = IconLabel("triangle-alert", "ask", size=14)
        self.level.currentIndexChanged.connect(self._tell_change)
        self.level.currentIndexChanged.connect(self._tell)
        self._fault = named(Label(wraps=True), kind="error")
        self.add_button = named(QPushButton(tr("Add")), "files.addrule", spoken=tr("Add the rule (Return)"))
        self.add_button.clicked.connect(self._add)
        self.leave_button = named(IconButton("x", tr("Add no rule (Esc)")), "files.leaverule")
        self.leave_button.clicked.connect(self.leave)
        fields = row_of(self._where, stretch(self.pattern), self.level, self.add_button, self.leave_button, space=2)
        column_of(
            fields,
            self.count,
            row_of(self._opens, stretch(self.change), space=1),
            self._fault,
            into=self,
            space=1,
            margins=(2, 1, 2, 2),
        )
        current_look().changed.connect(self.update)
        self.hide()

    def begin(self, row: int, where: str, pattern: str) -> None:
        """Ask for a rule that will stand before `row`."""
        self._row = row
        self._where.setText(where)
        self.level.setCurrentIndex(self.level.findData(str(Permission.READ_ONLY)))
        self.pattern.setText(pattern)
        self._fault.hide()
        self.show()
        self._tell()
        self.pattern.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.pattern.selectAll()

    def show_count(self, count: PatternCount | None) -> None:
        """Show what the pattern would decide; None while that is not known."""
        self._found = count
        self.count.setText(count.sentence if count is not None else "")
        self._tell_change()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing is written any more."""
        super().hideEvent(event)
        self.ended.emit()

    def leave(self) -> None:
        """Give it up."""
        if not self.isHidden():
            self.hide()
            self.left.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Return and Escape in a field."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape:
                self.leave()
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._add()
                return True
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A bar in the accent, so that it is seen where one writes."""
        del event
        QPainter(self).fillRect(0, 0, 3, self.height(), role_colour("accent"))

    def _tell(self) -> None:
        if not self.isHidden():
            self.typed.emit(self._row, self.pattern.text())

    def _tell_change(self) -> None:
        level, found = Permission(str(self.level.currentData())), self._found
        self.change.setText(found.change_words(level) if found is not None else "")
        self.change.setVisible(bool(self.change.text()))
        self._opens.setVisible(found is not None and bool(found.openings(level)))

    def _add(self) -> None:
        text = self.pattern.text().strip()
        self._show_fault(self.pattern.fault if text else tr("an empty pattern matches nothing"))
        if not self._fault.isHidden():
            return
        self.written.emit(PermissionRule(text, Permission(str(self.level.currentData()))), self._row)

    def _show_fault(self, fault: str | None) -> None:
        self._fault.setText(fault or "")
        self._fault.setVisible(bool(fault))
        self.add_button.setEnabled(not fault)
