"""The real folder of a source as a tree that is read as it is opened, with the level of each entry.

It does not read the disk: it asks for folders by `folder_wanted` and is told by `set_listing`. Levels are worked out
when a row is drawn, so that another set of rules recolours any tree at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from gatewright.policy.permission import Permission
from gatewright_gui.models.level import mark_of
from gatewright_gui.session.files import FolderEntry, FolderListing, PathLevel

Index = QModelIndex | QPersistentModelIndex
NAME, LEVEL, RULE = range(3)
HEADERS = ("Name", "Level", "Decided by")
PATH_LEVEL = Qt.ItemDataRole.UserRole + 1
"""PathLevel of a row; None for a row that only says something."""
RELATIVE = Qt.ItemDataRole.UserRole + 2
"""Path from the base; a folder's ends with `/`."""
KIND = Qt.ItemDataRole.UserRole + 3
"""`folder`, `file` or `note`."""
_ENTRY = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
_FLAGS = {
    "folder": _ENTRY,
    "file": _ENTRY | Qt.ItemFlag.ItemNeverHasChildren,
    "note": Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemNeverHasChildren,
}
State = Literal["unread", "reading", "read"]


@dataclass(slots=True)
class _Node:
    """A row. A note is a row that says something about its folder."""

    key: int
    name: str
    relative: str
    kind: Literal["folder", "file", "note"]
    protected: bool = False
    unusable: str | None = None
    parent: "_Node | None" = None
    row: int = 0
    state: State = "unread"
    listing: FolderListing | None = None
    children: list["_Node"] = field(default_factory=list["_Node"])
    level: PathLevel | None = None
    generation: int = -1


class FolderTreeModel(QAbstractItemModel):
    """Lazily read; `refresh` asks again for every folder that was read, and keeps what is open."""

    folder_wanted = Signal(object)
    """Path of a folder from the base, `""` for the base itself: it is to be read."""

    recoloured = Signal()
    """Every level may be another one: whatever is in view is to be drawn anew."""

    def __init__(self, level_of: Callable[[str], PathLevel], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._level_of = level_of
        self._generation = 0
        self._nodes: dict[int, _Node] = {}
        self._next_key = 0
        self._root = self._new("", "", "folder")
        self._is_open = False

    # what is shown

    def start_over(self, *, is_open: bool) -> None:
        """Another folder: nothing of the old one stays. The base is read when it is asked for."""
        self.beginResetModel()
        self._nodes.clear()
        self._root = self._new("", "", "folder")
        self._is_open = is_open
        self._generation += 1
        self.endResetModel()
        if is_open:
            self._want(self._root)

    def recolour(self) -> None:
        """The rules changed: every level is worked out anew when its row is drawn."""
        self._generation += 1
        self.recoloured.emit()  # a change of data over many rows would make the view lay every open row out again

    def refresh(self) -> None:
        """Ask again for every folder that was read."""
        for node in [n for n in self._nodes.values() if n.state == "read" and n.kind == "folder"]:
            self._want(node)
        if self._is_open and self._root.state == "unread":
            self._want(self._root)

    def set_listing(self, relative: str, listing: FolderListing) -> None:
        """The entries of a folder; rows that stay keep what is below them."""
        node = self._find(relative)
        if node is None:
            return
        node.state = "read"
        if node.listing == listing:
            return
        node.listing = listing
        notes = [f"more than {len(listing.entries):,} entries, the rest is not listed"] if listing.truncated else []
        self._merge(node, {entry.relative: entry for entry in listing.entries}, notes)

    def set_failed(self, relative: str, message: str) -> None:
        """A folder cannot be read."""
        node = self._find(relative)
        if node is not None:
            node.state, node.listing = "read", None
            self._merge(node, {}, [message])

    @property
    def is_reading(self) -> bool:
        """Whether the base is not there yet."""
        return self._is_open and self._root.state != "read"

    @property
    def is_empty(self) -> bool:
        """Whether the base was read and holds nothing."""
        return self._root.state == "read" and not self._root.children

    def index_of(self, relative: str) -> QModelIndex:
        """The row of a path that was read; an invalid index otherwise."""
        node = self._find(relative.rstrip("/"))
        return self._index(node) if node is not None else QModelIndex()

    def path_at(self, index: Index) -> str | None:
        """The path of a row from the base, a folder's with `/` at its end; None for nothing and for notes."""
        node = self._node(index)
        return _model_path(node) if index.isValid() and node.kind != "note" else None

    def level_at(self, index: Index) -> PathLevel | None:
        """The level of a row."""
        node = self._node(index)
        return self._level(node) if index.isValid() and node.kind != "note" else None

    # Qt

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """The index of a child."""
        if parent.isValid() and parent.column() > 0:
            return QModelIndex()
        children = self._node(parent).children
        if 0 <= row < len(children) and 0 <= column < len(HEADERS):
            return self.createIndex(row, column, children[row].key)
        return QModelIndex()

    def parent(self, index: Index | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The folder of a row."""
        if index is None:
            return super().parent()
        node = self._nodes.get(index.internalId()) if index.isValid() else None
        return self._index(node.parent) if node is not None and node.parent is not None else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Entries that are known."""
        return 0 if parent.isValid() and parent.column() > 0 else len(self._node(parent).children)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Name, level, what decided."""
        del parent
        return len(HEADERS)

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """A folder that was not read may have some."""
        if parent.isValid() and parent.column() > 0:
            return False
        node = self._node(parent)
        return node.kind == "folder" and (bool(node.children) or node.state != "read")

    def canFetchMore(self, parent: Index) -> bool:  # noqa: N802
        """Whether a folder is still to be read."""
        node = self._node(parent)
        return self._is_open and node.kind == "folder" and node.state == "unread"

    def fetchMore(self, parent: Index) -> None:  # noqa: N802
        """Ask for a folder."""
        if self.canFetchMore(parent):
            self._want(self._node(parent))

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return HEADERS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what the delegate draws from."""
        if not index.isValid():
            return None
        node = self._node(index)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(node, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return node.name if node.kind == "note" else f"{node.relative}\n{self._level(node).sentence}"
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(node, index.column())
            case _ if role == PATH_LEVEL:
                return None if node.kind == "note" else self._level(node)
            case _ if role == RELATIVE:
                return None if node.kind == "note" else _model_path(node)
            case _ if role == KIND:
                return node.kind
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Notes can be read, not chosen."""
        return _FLAGS[self._node(index).kind] if index.isValid() else Qt.ItemFlag.NoItemFlags

    # inside

    def _new(self, name: str, relative: str, kind: Literal["folder", "file", "note"]) -> _Node:
        self._next_key += 1
        node = _Node(self._next_key, name, relative, kind)
        self._nodes[node.key] = node
        return node

    def _node(self, index: Index) -> _Node:
        return self._nodes.get(index.internalId(), self._root) if index.isValid() else self._root

    def _index(self, node: _Node) -> QModelIndex:
        return QModelIndex() if node.parent is None else self.createIndex(node.row, NAME, node.key)

    def _find(self, relative: str) -> _Node | None:
        node = self._root
        so_far = ""
        for part in relative.split("/") if relative else ():
            so_far = f"{so_far}/{part}" if so_far else part
            found = next((child for child in node.children if child.relative == so_far), None)
            if found is None:
                return None
            node = found
        return node

    def _want(self, node: _Node) -> None:
        if node.state == "unread":
            node.state = "reading"
        self.folder_wanted.emit(node.relative)

    def _level(self, node: _Node) -> PathLevel:
        if node.level is None or node.generation != self._generation:
            node.level, node.generation = self._work_out(node), self._generation
        return node.level

    def _work_out(self, node: _Node) -> PathLevel:
        path = _model_path(node)
        if node.protected:
            return PathLevel(path, Permission.NONE, protected=True)
        level = self._level_of(path)
        return level if node.unusable is None else replace(level, unusable=node.unusable)

    def _text(self, node: _Node, column: int) -> str:
        if column == NAME:
            return node.name
        if node.kind == "note":
            return ""
        level = self._level(node)
        return mark_of(level).word if column == LEVEL else level.rule_word

    def _spoken(self, node: _Node, column: int) -> str:
        if column != NAME or node.kind == "note":
            return self._text(node, column)
        level = self._level(node)
        return f"{node.kind} {node.name}, {mark_of(level).word}, {level.rule_word}"

    def _merge(self, node: _Node, entries: dict[str, FolderEntry], notes: list[str]) -> None:
        """Make the children what they should be, in few runs of rows, keeping those that stay."""
        parent = self._index(node)
        self._remove_gone(node, parent, entries)
        kept = {child.relative: child for child in node.children}
        merged: list[_Node] = []
        fresh: list[_Node] = []
        for entry in entries.values():
            child = kept.get(entry.relative)
            if child is None:
                child = self._new(entry.name, entry.relative, "folder" if entry.is_folder else "file")
                child.parent = node
                fresh.append(child)
            child.protected, child.unusable, child.level = entry.protected, entry.unusable, None
            merged.append(child)
        for text in notes:
            note = self._new(text, "", "note")
            note.parent = node
            fresh.append(note)
            merged.append(note)
        self._insert_runs(node, parent, merged, {child.key for child in fresh})

    def _remove_gone(self, node: _Node, parent: QModelIndex, entries: dict[str, FolderEntry]) -> None:
        row = len(node.children) - 1
        while row >= 0:
            if self._stays(node.children[row], entries):
                row -= 1
                continue
            last = row
            while row >= 0 and not self._stays(node.children[row], entries):
                row -= 1
            self.beginRemoveRows(parent, row + 1, last)
            for gone in node.children[row + 1 : last + 1]:
                self._forget(gone)
            del node.children[row + 1 : last + 1]
            self._number(node)
            self.endRemoveRows()

    @staticmethod
    def _stays(child: _Node, entries: dict[str, FolderEntry]) -> bool:
        entry = entries.get(child.relative)
        return child.kind != "note" and entry is not None and entry.is_folder == (child.kind == "folder")

    def _insert_runs(self, node: _Node, parent: QModelIndex, merged: list[_Node], fresh: set[int]) -> None:
        row = 0
        while row < len(merged):
            if merged[row].key not in fresh:
                row += 1
                continue
            first = row
            while row < len(merged) and merged[row].key in fresh:
                row += 1
            self.beginInsertRows(parent, first, row - 1)
            node.children[first:first] = merged[first:row]
            self._number(node)
            self.endInsertRows()

    @staticmethod
    def _number(node: _Node) -> None:
        for row, child in enumerate(node.children):
            child.row = row

    def _forget(self, node: _Node) -> None:
        self._nodes.pop(node.key, None)
        for child in node.children:
            self._forget(child)


def _model_path(node: _Node) -> str:
    return node.relative + "/" if node.kind == "folder" else node.relative
