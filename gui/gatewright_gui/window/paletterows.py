"""The rows of the command palette: what the window and the page can do now, and every place. It shows none of them."""

from collections.abc import Iterable

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from gatewright_gui.models.palette import PaletteEntry
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.places import Kind, Place, places_of

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
