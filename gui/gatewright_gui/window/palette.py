"""The command palette: its box, and its rows of what the window and the page can do now, and of every place."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QListView,
    QMenu,
    QStackedWidget,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.models.palette import PaletteEntry, PaletteModel
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import SearchField
from gatewright_gui.session.document import Document
from gatewright_gui.session.navigator import Kind, Place, places_of

ICONS: dict[Kind, str] = {
    "agent": "bot",
    "tool": "wrench",
    "operation": "circle-dot",
    "source": "folder-tree",
    "problem": "triangle-alert",
}
_NOT_THERE = frozenset({"action.palette"})


def palette_rows(document: Document, actions: Iterable[QAction], page: QWidget | None) -> tuple[PaletteEntry, ...]:
    """Commands of the page, then the ways to the other pages, then commands of the window, then the places."""
    found = page.findChildren(QAction) if page is not None else []
    # not a row of a menu that happens to be open, nor the button inside a field, which has no name
    of_page = [action for action in found if action.objectName() and not isinstance(action.parent(), QMenu)]
    others = sorted(actions, key=lambda action: not _goes(action))
    commands = dict.fromkeys(action for action in (*of_page, *others) if action.isEnabled() and action.text())
    rows = [_command(action) for action in commands if action.objectName() not in _NOT_THERE]
    return (*rows, *map(_place, places_of(document)))


def _goes(action: QAction) -> bool:
    return action.objectName().startswith("action.page.")


def _command(action: QAction) -> PaletteEntry:
    going = _goes(action)
    text = tr("Go to {page}", page=action.text()) if going else action.text()
    keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return PaletteEntry(
        "command", text.replace("&", ""), action.statusTip(), "arrow-right" if going else "command", keys, action
    )


def _place(place: Place) -> PaletteEntry:
    text = f"{place.name}.{place.operation}" if place.operation else place.name
    return PaletteEntry(place.kind, text.replace("`", ""), place.detail, ICONS[place.kind], "", place)


Index = QModelIndex | QPersistentModelIndex
WIDTH, HEIGHT = 620, 420
KINDS: Mapping[str, str] = {
    "agent": mark("Agent"),
    "tool": mark("Tool"),
    "operation": mark("Operation"),
    "source": mark("Source"),
    "problem": mark("Problem"),
}
"""The words for what the row of a place is; a command is told by its icon."""
_PAD = 10
_MOVES = {Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}


class PaletteDelegate(Delegate):
    """Icon, words, what it is; the keys at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One row."""
        del option, index
        return QSize(WIDTH, current_look().tokens.row_height + 2)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """All of it in one line; what has no room is cut at its end."""
        entry = index.data(ROW)
        widget: QWidget | None = getattr(option, "widget", None)
        if not isinstance(entry, PaletteEntry) or widget is None:
            return
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        size = look.tokens.icon_size
        place = QRect(rect.left() + _PAD, rect.center().y() - size // 2, size, size)
        look.icon(entry.icon, "muted").paint(painter, place)
        painter.save()
        left, right = place.right() + 1 + _PAD, rect.right() - _PAD
        painter.setPen(QColor(look.palette.muted))
        painter.setFont(look.small_font)
        last = entry.keys or (tr(KINDS[entry.kind]) if entry.kind in KINDS else "")
        wide = painter.fontMetrics().horizontalAdvance(last)
        painter.drawText(QRect(right - wide, rect.top(), wide + 1, rect.height()), LEFT, last)
        right -= wide + 2 * _PAD
        painter.setFont(widget.font())
        painter.setPen(QColor(look.palette.text))
        left += _draw(painter, QRect(left, rect.top(), right - left, rect.height()), entry.text) + _PAD
        painter.setPen(QColor(look.palette.muted))
        painter.setFont(look.small_font)
        _draw(painter, QRect(left, rect.top(), right - left, rect.height()), entry.detail)
        painter.restore()


def _draw(painter: QPainter, place: QRect, text: str) -> int:
    """Draw a line cut to its room; how wide it is."""
    if place.width() <= 0 or not text:
        return 0
    cut = line_text(painter.fontMetrics(), text.partition("\n")[0], place.width())
    painter.drawText(place, LEFT, cut)
    return painter.fontMetrics().horizontalAdvance(cut)


class CommandPalette(QFrame):
    """Lies over the window while one types; it closes when something is chosen, on Escape, or when the keys leave it.

    `entries` is asked each time it opens.
    """

    chosen = Signal(object)
    """The target of the chosen PaletteEntry."""

    def __init__(self, window: QWidget, entries: Callable[[], Sequence[PaletteEntry]]) -> None:
        super().__init__(window)
        tokens = current_look().tokens
        self.setObjectName("palette")
        self.setProperty("kind", "popup")
        self.setAccessibleName(tr("Command palette"))
        self._entries = entries
        self._before: QWidget | None = None
        self.model = PaletteModel(self)
        self.search = SearchField(tr("Search agents, tools, sources, problems and commands"))
        self.search.setObjectName("palette.search")
        self.view = QListView()
        self.view.setObjectName("palette.list")
        self.view.setAccessibleName(tr("What fits"))
        self.view.setModel(self.model)
        self.view.setItemDelegate(PaletteDelegate(self.view))
        self.view.setUniformItemSizes(True)
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._nothing = Label(tr("No matches. Start with > to search commands only."))
        self._nothing.setProperty("kind", "muted")
        self._nothing.setMargin(tokens.space_3)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._nothing)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_2, tokens.space_2, tokens.space_2, tokens.space_2)
        column.setSpacing(tokens.space_2)
        column.addWidget(self.search)
        column.addWidget(self._stack, 1)
        self.search.search_changed.connect(self._search)
        self.search.leave_requested.connect(self.close_palette)
        self.search.installEventFilter(self)
        self.view.clicked.connect(self._choose_row)
        window.installEventFilter(self)
        self.hide()

    def open_palette(self) -> None:
        """Come up with an empty field."""
        if self.isVisible():
            self.search.selectAll()
            return
        self._before = QApplication.focusWidget()
        self.model.set_entries(self._entries())
        self.search.clear()
        self._search("")
        self._place()
        self.show()
        self.raise_()
        self.search.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_palette(self) -> None:
        """Go away; the keys go back to where they were."""
        if not self.isVisible():
            return
        before, self._before = self._before, None
        had_keys = self.search.hasFocus()
        self.hide()
        if had_keys and before is not None and before.isVisible():
            before.setFocus(Qt.FocusReason.PopupFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Arrows move in the list and Enter chooses while the keys stay in the field."""
        if watched is self.search:
            if event.type() == QEvent.Type.FocusOut and self.isVisible():
                self.close_palette()
            if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
                return self._key(event)
        elif event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _key(self, event: QKeyEvent) -> bool:
        if event.key() in _MOVES:
            QApplication.sendEvent(self.view, event)
            return True
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._choose(self.view.currentIndex().row())
            return True
        if event.key() == Qt.Key.Key_Escape:
            self.close_palette()
            return True
        return event.key() in {Qt.Key.Key_Tab, Qt.Key.Key_Backtab}

    def _search(self, text: object) -> None:
        self.model.set_search(str(text))
        self.view.setCurrentIndex(self.model.index(0, 0))
        self._stack.setCurrentWidget(self.view if self.model.rowCount() else self._nothing)

    def _choose_row(self, index: QModelIndex) -> None:
        self._choose(index.row())

    def _choose(self, row: int) -> None:
        entry = self.model.row_at(row)
        if entry is not None:
            self.close_palette()
            self.chosen.emit(entry.target)

    def _place(self) -> None:
        window = self.parentWidget()
        if window is not None:
            margin = current_look().tokens.space_4
            self.resize(min(WIDTH, window.width() - 2 * margin), min(HEIGHT, window.height() - 4 * margin))
            self.move((window.width() - self.width()) // 2, margin * 3)
