"""Fields for text: judged as one types, for a number, quiet until used, to search with, or as long as one likes."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QModelIndex, QObject, QRect, QSize, QStringListModel, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QApplication,
    QCompleter,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QSpinBox,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionFrame,
    QToolTip,
    QWidget,
)

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import LEFT, line_text, tip_text
from gatewright_gui.qt.widget.item_view import Delegate

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


class NumberField(QSpinBox):
    """Range and unit are given once."""

    def __init__(self, name: str, low: int, high: int, *, unit: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setRange(low, high)
        self.setSuffix(f" {unit}" if unit else "")
        self.lineEdit().setTextMargins(current_look().tokens.space_1, 0, 0, 0)


QUIET = "QLineEdit:!focus:!hover { border-color: transparent; background: transparent; }"


class QuietField(QLineEdit):
    """The maker puts the whole text into the tooltip. ``is_framed``: looks like a field all the time."""

    def __init__(self, parent: QWidget | None = None, *, is_framed: bool = False) -> None:
        super().__init__(parent)
        if not is_framed:
            self.setStyleSheet(QUIET)

    @property
    def shown_text(self) -> str:
        """The text that fits while one is not typing."""
        return line_text(self.fontMetrics(), self.text(), self._inside().width())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The field itself while one types or nothing is in it, else its frame with what fits, from the left."""
        if self.hasFocus() or not self.text():
            super().paintEvent(event)
            return
        option = self._option()
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        painter.setPen(QColor(current_look().palette.text if self.isEnabled() else current_look().palette.disabled))
        flags = LEFT
        painter.drawText(self._inside(), flags, self.shown_text)

    def _option(self) -> QStyleOptionFrame:
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        return option

    def _inside(self) -> QRect:
        inside = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, self._option(), self)
        return inside.adjusted(2, 0, -2, 0)


class SearchField(QLineEdit):
    """Emits `search_changed` at every change. Escape clears, and in an empty field asks to leave it.

    Where what is searched goes with the field, `leaves_at_once` makes the first Escape leave.
    """

    search_changed = Signal(object)
    """The text, without the spaces around it: str."""
    leave_requested = Signal()
    """Escape, in an empty field or one that is left at once."""
    results_requested = Signal()
    """Down: the focus wants to go to the results."""

    def __init__(self, placeholder: str = "Filter", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.leaves_at_once = False
        self.setPlaceholderText(placeholder)
        self.setAccessibleName(placeholder)
        glass = QAction(placeholder, self)
        tie_icon(glass, "search", "muted")
        self.addAction(glass, QLineEdit.ActionPosition.LeadingPosition)
        self._clear = QAction(tr("Clear"), self)
        tie_icon(self._clear, "x", "muted")
        self._clear.triggered.connect(self.clear)
        self.addAction(self._clear, QLineEdit.ActionPosition.TrailingPosition)
        self._clear.setVisible(False)
        self.textChanged.connect(self._tell_search)

    def _tell_search(self, text: str) -> None:
        self._clear.setVisible(bool(text))
        self.search_changed.emit(text.strip())

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape and Down are ours; the rest is typing."""
        if event.key() == Qt.Key.Key_Escape and self.text() and not self.leaves_at_once:
            self.clear()
        elif event.key() == Qt.Key.Key_Escape:
            self.leave_requested.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.results_requested.emit()
        else:
            super().keyPressEvent(event)
