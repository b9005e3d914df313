"""A field for a path that need not exist, which completes the names that do.

Tab completes as a shell does, Down lists what fits.
"""

from functools import partial
from os.path import commonprefix

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.menu import add_action, popup_menu
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget import SearchField

MAX_LISTED = 20
_NAMED = 3


class PathField(SearchField):
    """Asks for the names of a folder when one types a path in it."""

    folder_wanted = Signal(object)
    """The folder whose names could complete what is typed, without `/` at its end: str."""
    hint_changed = Signal(object)
    """How what is typed could go on, in words; empty for nothing: str."""

    def __init__(self, placeholder: str, parent: QWidget | None = None) -> None:
        super().__init__(placeholder, parent)
        self._names: tuple[str, tuple[str, ...]] | None = None
        self._menu: QMenu | None = None
        self.setFont(current_look().mono_font)
        self.textEdited.connect(self._ask)
        self.textChanged.connect(self._hint)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Paths that what is typed could become; a folder's ends with `/`."""
        head, _, tail = self.text().rpartition("/")
        if self._names is None or self._names[0] != head or not self.text():
            return ()
        prefix = f"{head}/" if head else ""
        folded = tail.casefold()
        return tuple(prefix + name for name in self._names[1] if name.casefold().startswith(folded) and name != tail)

    def set_names(self, folder: str, names: tuple[str, ...]) -> None:
        """The names in a folder, those of folders with `/` at the end."""
        self._names = (folder, names)
        self._hint()

    def forget_names(self) -> None:
        """Another source, or another state of the disk."""
        self._names = None

    def complete(self) -> bool:
        """Go on as far as all that fit agree; False where that is nowhere."""
        found = self.candidates
        common = commonprefix(found)  # noqa: RUF071  # character by character is meant
        if not found or (len(common) <= len(self.text()) and len(found) > 1):
            return False
        self._take(found[0] if len(found) == 1 else common)
        return True

    def event(self, event: QEvent) -> bool:
        """Tab completes while there is something to complete."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_tab = event.key() == Qt.Key.Key_Tab and not event.modifiers()
            if is_tab and self.complete():
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Down lists what fits."""
        if event.key() == Qt.Key.Key_Down and self.candidates:
            self._list()
        else:
            super().keyPressEvent(event)

    def _list(self) -> None:
        menu = self._menu = popup_menu(self, "files.completions")
        found = self.candidates
        for path in found[:MAX_LISTED]:
            add_action(menu, button_text(path), partial(self._take, path))
        if len(found) > MAX_LISTED:
            add_action(menu, tr("and {count:,} more", count=len(found) - MAX_LISTED), None)
        menu.popup(self.mapToGlobal(QPoint(0, self.height())))
        menu.setActiveAction(menu.actions()[0])

    def _take(self, path: str) -> None:
        self.setText(path)
        self._ask(path)

    def _ask(self, text: str) -> None:
        head = text.rpartition("/")[0]
        if text and not text.startswith("/") and (self._names is None or self._names[0] != head):
            self.folder_wanted.emit(head)

    def _hint(self, _text: str = "") -> None:
        found = self.candidates
        if not found:
            self.hint_changed.emit("")
            return
        named, rest = ", ".join(found[:_NAMED]), len(found) - _NAMED
        if rest > 0:
            named = tr("{names} and {count:,} more", names=named, count=rest)
        self.hint_changed.emit(
            tr("Tab: {names}", names=named) if len(found) == 1 else tr("Tab or Down: {names}", names=named)
        )
