"""The places of one or several processes as a tree: folders and files coloured by what the process sees of them.

Folders are read as they are opened and all files are counted, both in threads; the drawing goes on meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt, Signal

from gatewright.workspace.api import PlaceUse, View
from gatewright_gui.pages.access.files.level import MIXED_ICON, MIXED_WORD, LevelMark
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.confinement import USE_WORDS, Room, RoomPlace
from gatewright_gui.session.room_picture import PlaceCount, RoomEntry, RoomListing, ViewCount

NAME, SEES, FILES = range(3)
HEADERS = (mark("Place"), mark("Sees"), mark("Files"))
MARK = Qt.ItemDataRole.UserRole + 1
"""LevelMark of a row; None for a row that only says something."""
KIND = Qt.ItemDataRole.UserRole + 2
PLACE = Qt.ItemDataRole.UserRole + 3
"""The place that a row is or lies in: the number of its room, RoomPlace."""
Kind = Literal["room", "place", "folder", "file", "note"]
PlaceKey = tuple[str, str]
"""Name of the room, place as it is written."""
_VIEWS: Mapping[View, tuple[str, str, Literal["none", "read_only", "read_write"]]] = {
    View.ABSENT: (mark("hidden"), "eye-off", "none"),
    View.READ: (mark("read"), "eye", "read_only"),
    View.WRITE: (mark("change"), "pencil", "read_write"),
}
_MEANINGS: Mapping[View, str] = {
    View.ABSENT: mark("it is not there for the server, by name either"),
    View.READ: mark("it is read, and cannot be changed"),
    View.WRITE: mark("it is read, changed and deleted without asking"),
}
USE_ICONS = {PlaceUse.READ: "eye", PlaceUse.WRITE: "pencil", PlaceUse.SNAPSHOT: "copy"}
USE_MEANINGS: Mapping[PlaceUse, str] = {
    PlaceUse.READ: mark("it reads what levels let be read, and changes nothing"),
    PlaceUse.WRITE: mark("it also changes and deletes, without asking, where a level is read and write or full access"),
    PlaceUse.SNAPSHOT: mark("it works in a copy of its own; what levels allow is written back"),
}


@dataclass(slots=True)
class _Node:
    """A row."""

    key: int
    kind: Kind
    name: str
    path: str = ""
    room: int = 0
    place: RoomPlace | None = None
    parent: "_Node | None" = None
    row: int = 0
    is_folder: bool = False
    is_asked: bool = False
    children: list["_Node"] = field(default_factory=list["_Node"])


class RoomTreeModel(QAbstractItemModel):
    """With several rooms each is a row over its places. What was read and counted of a path stays until `forget`."""

    folder_wanted = Signal(object)
    """Path of a folder that is to be read: str."""
    recoloured = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rooms: tuple[Room, ...] = ()
        self._nodes: dict[int, _Node] = {}
        self._next = 0
        self._root = self._new("room", "")
        self._listings: dict[str, RoomListing | str] = {}
        self._counts: dict[PlaceKey, PlaceCount] = {}

    def set_rooms(self, rooms: Sequence[Room]) -> None:
        """Show these; rows that were asked for before are filled at once."""
        self.beginResetModel()
        self._nodes, self.rooms = {}, tuple(rooms)
        self._root = self._new("room", "")
        for number, room in enumerate(self.rooms):
            top = self._root
            if len(self.rooms) > 1:
                top = self._add(self._root, self._new("room", room.name, room=number))
            for place in room.places:
                node = self._new("place", place.words, place.path, number, place)
                node.is_folder = True
                self._add(top, node)
            if not room.places:
                self._add(top, self._new("note", tr("no place: it sees none of your files"), room=number))
        self.endResetModel()

    def forget(self) -> None:
        """Have what is on the disk looked at anew."""
        self._listings, self._counts = {}, {}

    def set_listing(self, path: str, listing: RoomListing | str) -> None:
        """The entries of a folder, or why it cannot be read."""
        self._listings[path] = listing
        for node in [one for one in self._nodes.values() if one.path == path and one.is_asked and not one.children]:
            self._fill(node, listing)

    def set_count(self, room: Room, place: RoomPlace, count: PlaceCount) -> None:
        """Set how many files a place has; an answer for a room that is shown no more is dropped."""
        if room in self.rooms:
            self._counts[room.name, place.written] = count
            self.recoloured.emit()

    def drop_counts(self) -> None:
        """They are counted anew."""
        self._counts = {}
        self.recoloured.emit()

    @property
    def total(self) -> ViewCount | None:
        """All files of all places together; None until each was counted."""
        sums = ViewCount()
        for room in self.rooms:
            for place in room.places:
                count = self._counts.get((room.name, place.written))
                found = count.folders.get(place.path) if count is not None else None
                if found is None:
                    return None
                sums = ViewCount(sums.hidden + found.hidden, sums.read + found.read, sums.write + found.write)
        return sums

    @property
    def is_truncated(self) -> bool:
        """True where some place has more files than are counted."""
        return any(count.truncated for count in self._counts.values())

    def place_index(self, room: str, written: str) -> QModelIndex:
        """The row of a place; an invalid index where it has none."""
        for node in self._nodes.values():
            is_place = node.place is not None and node.kind == "place" and node.place.written == written
            if is_place and self.rooms[node.room].name == room:
                return self._index(node)
        return QModelIndex()

    def address(self, index: Index) -> tuple[Kind, int, str]:
        """The kind of a row, the number of its room, its path."""
        node = self._node(index)
        return node.kind, node.room, node.path

    def open_paths(self) -> Mapping[tuple[int, str], QModelIndex]:
        """The rows that have rows, by room and path."""
        return {(node.room, node.path): self._index(node) for node in self._nodes.values() if node.children}

    # Qt

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """The index of a child."""
        children = self._node(parent).children if parent.column() <= 0 else []
        if 0 <= row < len(children) and 0 <= column < len(HEADERS):
            return self.createIndex(row, column, children[row].key)
        return QModelIndex()

    def parent(self, index: Index | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The row that a row lies below."""
        if index is None:
            return super().parent()
        node = self._nodes.get(index.internalId()) if index.isValid() else None
        return self._index(node.parent) if node is not None and node.parent is not None else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Rows that are known."""
        return 0 if parent.column() > 0 else len(self._node(parent).children)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Name, what is seen of it, how many files."""
        del parent
        return len(HEADERS)

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """A folder that was not read may have some."""
        node = self._node(parent)
        return parent.column() <= 0 and (bool(node.children) or (node.is_folder and not node.is_asked))

    def canFetchMore(self, parent: Index) -> bool:  # noqa: N802
        """Tell whether a folder is still to be read."""
        node = self._node(parent)
        return parent.column() <= 0 and node.is_folder and not node.is_asked

    def fetchMore(self, parent: Index) -> None:  # noqa: N802
        """Ask for a folder; what is known of it is shown at once."""
        node = self._node(parent)
        if not self.canFetchMore(parent):
            return
        node.is_asked = True
        known = self._listings.get(node.path)
        if known is None:
            self.folder_wanted.emit(node.path)
        else:
            self._fill(node, known)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        is_name = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return tr(HEADERS[section]) if is_name else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what the delegate draws from."""
        node = self._node(index)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(node, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return self._tip(node)
            case Qt.ItemDataRole.AccessibleTextRole if index.column() == NAME:
                return ", ".join(filter(None, (self._text(node, column) for column in range(len(HEADERS)))))
            case _ if role == MARK:
                return self._mark(node)
            case _ if role == KIND:
                return node.kind
            case _ if role == PLACE:
                return (node.room, node.place) if node.place is not None else None
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Notes can be read, not chosen."""
        can = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return can if index.isValid() and self._node(index).kind != "note" else Qt.ItemFlag.ItemIsEnabled

    # inside

    def _new(self, kind: Kind, name: str, path: str = "", room: int = 0, place: RoomPlace | None = None) -> _Node:
        self._next += 1
        node = self._nodes[self._next] = _Node(self._next, kind, name, path, room, place)
        return node

    def _node(self, index: Index) -> _Node:
        return self._nodes.get(index.internalId(), self._root) if index.isValid() else self._root

    def _index(self, node: _Node) -> QModelIndex:
        return QModelIndex() if node.parent is None else self.createIndex(node.row, NAME, node.key)

    def _add(self, parent: _Node, node: _Node) -> _Node:
        node.parent, node.row = parent, len(parent.children)
        parent.children.append(node)
        return node

    def _fill(self, node: _Node, listing: RoomListing | str) -> None:
        rows = [self._new("note", listing)] if isinstance(listing, str) else self._entries(node, listing)
        if not rows:
            rows = [self._new("note", tr("the folder is empty"))]
        self.beginInsertRows(self._index(node), 0, len(rows) - 1)
        for row in rows:
            self._add(node, row)
        self.endInsertRows()

    def _entries(self, node: _Node, listing: RoomListing) -> list[_Node]:
        rows = [self._entry(node, entry) for entry in listing.entries]
        if listing.more:
            rows.append(self._new("note", tr("{count} more: they are counted, not listed", count=f"{listing.more:,}")))
        return rows

    def _entry(self, parent: _Node, entry: RoomEntry) -> _Node:
        shown = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        node = self._new("folder" if entry.is_folder else "file", shown, entry.path, parent.room, parent.place)
        node.is_folder = entry.is_folder
        return node

    def _count(self, node: _Node) -> ViewCount | None:
        if node.place is None:
            return None
        count = self._counts.get((self.rooms[node.room].name, node.place.written))
        return count.folders.get(node.path) if count is not None else None

    def _mark(self, node: _Node) -> LevelMark | None:
        """Of a place what it is given for; of a folder what is seen of its files; of a file what is seen of it."""
        if node.kind == "place" and node.place is not None:
            use = node.place.use
            return LevelMark(tr(USE_WORDS[use]), USE_ICONS[use], "read_only" if use is PlaceUse.READ else "read_write")
        if node.kind not in {"folder", "file"}:
            return None
        count = self._count(node) if node.kind == "folder" else None
        if count is not None and len(count.views) > 1:
            return LevelMark(tr(MIXED_WORD), MIXED_ICON, "neutral")
        word, icon, role = _VIEWS[self._view(node, count)]
        return LevelMark(tr(word), icon, role)

    def _view(self, node: _Node, count: ViewCount | None) -> View:
        if count is not None and count.views:
            return next(iter(count.views))
        return self.rooms[node.room].views.view(node.path, folder=node.is_folder)

    def _text(self, node: _Node, column: int) -> str:
        if column == NAME:
            return node.name
        if column == SEES:
            mark = self._mark(node)
            return mark.word if mark is not None else ""
        if node.place is not None and node.kind == "place":
            whole = self._counts.get((self.rooms[node.room].name, node.place.written))
            if whole is not None and whole.fault:
                return whole.fault
        count = self._count(node) if node.is_folder else None
        return count.words if count is not None else ""

    def _tip(self, node: _Node) -> str:
        if node.kind == "place" and node.place is not None:
            return "\n".join(filter(None, (node.path, tr(USE_MEANINGS[node.place.use]), node.place.warning)))
        if node.kind not in {"folder", "file"}:
            return node.name
        count = self._count(node) if node.kind == "folder" else None
        if count is not None and len(count.views) > 1:
            told = tr(
                "{hidden} hidden, {read} to read, {write} to change",
                hidden=f"{count.hidden:,}",
                read=f"{count.read:,}",
                write=f"{count.write:,}",
            )
        else:
            told = tr(_MEANINGS[self._view(node, count)])
        return f"{node.path}\n{told}"
