"""A field in a cell that says while one types whether its text can be taken, and what offers texts for a field."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QStringListModel, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCompleter, QLineEdit, QListView, QStyledItemDelegate, QToolTip, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.large_text import TabTakes

TOLD_MS = 60_000


class ValueField(QLineEdit):
    """`fault` says what is wrong with a text; empty: nothing."""

    def __init__(self, fault: Callable[[str], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fault = fault
        self.refused = fault("")
        self.setFrame(False)
        self.textChanged.connect(self._check)

    def tell(self) -> None:
        """Show what is wrong below the field."""
        below = self.mapToGlobal(self.rect().bottomLeft())
        QToolTip.showText(below, tip_text(self.refused.replace("`", "")), self, self.rect(), TOLD_MS)

    def _check(self, text: str) -> None:
        self.refused = self._fault(text)
        self.setProperty("kind", "error" if self.refused else "")
        self.setAccessibleDescription(self.refused)
        self.style().unpolish(self)
        self.style().polish(self)
        if self.refused and self.hasFocus():
            self.tell()
        else:
            QToolTip.hideText()


def completer_of(field: QLineEdit, texts: QStringListModel) -> QCompleter:
    """A completer of the texts that contain what is typed into a field, in a list of which Tab takes the first."""
    made = QCompleter(texts, field)
    made.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
    made.setFilterMode(Qt.MatchFlag.MatchContains)
    made.setMaxVisibleItems(12)
    popup = QListView()
    popup.setItemDelegate(Delegate(popup))
    current_look().dress(popup)
    made.setPopup(popup)
    TabTakes(popup)
    return made


class ValueDelegate(Delegate):
    """Enter with a text that would be refused stays in the field; leaving it then changes nothing."""

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:  # noqa: N802
        """Hold Enter back, and take nothing wrong along when the field is left."""
        if not isinstance(editor, ValueField) or not editor.refused:
            return super().eventFilter(editor, event)
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                editor.tell()
                return True
        elif event.type() == QEvent.Type.FocusOut and editor.isVisible():
            self.closeEditor.emit(editor, QStyledItemDelegate.EndEditHint.RevertModelCache)
            return False
        return super().eventFilter(editor, event)
