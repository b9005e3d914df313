"""A text field that holds any amount of text: too much of it is kept aside, and said, instead of being laid out."""

from PySide6.QtCore import QEvent, QMimeData, QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QListView, QPlainTextEdit, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look

MAX_LAID_OUT = 200_000
"""Characters that are laid out and can be edited; laying out more would hold up the window."""


class LargeTextEdit(QPlainTextEdit):
    """Use `text` and `set_text`. Typing a key into text that is kept aside does nothing; deleting clears it."""

    edited = Signal()

    def __init__(self, name: str, *, lines: int | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._aside: str | None = None
        self._lines = lines
        self.setAccessibleName(name)
        self.setFont(current_look().mono_font)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(current_look().tokens.space_1)
        if lines is not None:
            self.setFixedHeight(self.sizeHint().height())
        self.textChanged.connect(self.edited)

    @property
    def is_aside(self) -> bool:
        """Tell whether the text is too large to be shown."""
        return self._aside is not None

    @property
    def text(self) -> str:
        """The whole text."""
        return self.toPlainText() if self._aside is None else self._aside

    def set_text(self, text: str) -> None:
        """Hold another text."""
        self.blockSignals(True)
        self._put(text)
        self.blockSignals(False)
        self.edited.emit()

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802
        """Paste; a large text is kept aside."""
        text = source.text()
        if self._aside is None and len(text) + self.document().characterCount() <= MAX_LAID_OUT:
            super().insertFromMimeData(source)
            return
        if self._aside is None and self.toPlainText():
            cursor = self.textCursor()
            whole = self.toPlainText()
            text = whole[: cursor.selectionStart()] + text + whole[cursor.selectionEnd() :]
        self.set_text(text)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Deleting clears a text that is kept aside."""
        if self._aside is not None and event.text() in {"\b", "\x7f"}:
            self.set_text("")
            return
        super().keyPressEvent(event)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A size as high as its lines, where their number was given."""
        hint = super().sizeHint()
        if self._lines is None:
            return hint
        margin = 2 * (self.document().documentMargin() + self.frameWidth()) + 2
        return QSize(hint.width(), round(self._lines * self.fontMetrics().lineSpacing() + margin))

    def _put(self, text: str) -> None:
        self._aside = text if len(text) > MAX_LAID_OUT else None
        self.setReadOnly(self._aside is not None)
        if self._aside is None:
            self.setPlainText(text)
            return
        self.setPlainText(
            tr(
                "{count:,} characters, too many to show: kept aside and sent as they are.\nBackspace clears them.",
                count=len(text),
            )
        )


class TabTakes(QObject):
    """Made for the list of a completer, after that has it. Where nothing is chosen Tab takes the first."""

    def __init__(self, popup: QListView) -> None:
        super().__init__(popup)
        self._popup = popup
        popup.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Tab becomes Return."""
        is_tab = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Tab
        if not is_tab:
            return super().eventFilter(watched, event)
        if not self._popup.currentIndex().isValid():
            self._popup.setCurrentIndex(self._popup.model().index(0, 0, QModelIndex()))
        pressed = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(self._popup, pressed)
        return True
