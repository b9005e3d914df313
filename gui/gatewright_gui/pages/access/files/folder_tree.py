"""The real folder of a source as a tree that is read as it is opened, with the level of each entry.

It asks for folders by `folder_wanted` and is told by `set_listing`. Levels are worked out
when a row is drawn, so that another set of rules recolours any tree at once. Over 450 lines, because
the rows of a page and what Qt asks of them have to agree and are read together.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt, Signal

from gatewright.workspace.api import Permission, Verdict, frozen
from gatewright_gui.pages.access.files.blocks import look_of, sentence_of, words_of
from gatewright_gui.pages.access.files.folder_levels import FilesBelow
from gatewright_gui.pages.access.files.level import LevelMark, mark_below, mark_of, mark_of_verdicts
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.file_state import FileStanding, FolderStanding, Standings
from gatewright_gui.session.files import FolderEntry, FolderListing, PathLevel, inside

NAME, LEVEL, RULE, STATE = range(4)
HEADERS = (mark("Name"), mark("Level"), mark("Decided by"), mark("State"))
PAGE = 500
"""Entries of one folder that are rows at a time: the view looks at each of them whenever rows come or go."""
PATH_LEVEL = Qt.ItemDataRole.UserRole + 1
"""PathLevel of a row; None for a row that only says something."""
RELATIVE = Qt.ItemDataRole.UserRole + 2
"""Path from the base; a folder's ends with `/`."""
KIND = Qt.ItemDataRole.UserRole + 3
"""`folder`, `file` or `note`."""
SHOWN = Qt.ItemDataRole.UserRole + 4
"""FolderRow: all that is drawn of a row."""
_ENTRY = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
_FLAGS = {
    "folder": _ENTRY,
    "file": _ENTRY | Qt.ItemFlag.ItemNeverHasChildren,
    "note": Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemNeverHasChildren,
}
_ANSWERED = frozenset(
    map(
        int,
        (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.ToolTipRole,
            Qt.ItemDataRole.AccessibleTextRole,
            PATH_LEVEL,
            RELATIVE,
            KIND,
            SHOWN,
        ),
    )
)
"""A view asks for a dozen roles of every cell that it paints: most end at one look into this."""
State = Literal["unread", "reading", "read"]
Judge = Callable[[str, Permission], Verdict]
"""What an operation comes to at a path that has this level."""
Below = Callable[[str], FilesBelow | None]
"""Which levels the files of a folder have, whose path ends with `/`; None where that is not known."""


@frozen
class FolderRow:
    """A row as it is drawn; `mark` is None for a row that only says something, and of a folder what its files have."""

    name: str
    kind: Literal["folder", "file", "note"]
    mark: LevelMark | None = None
    rule_word: str = ""
    state: str = ""
    state_icon: str | None = None
    state_role: Role | None = None


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
    given: tuple[LevelMark, str] | None = None
    """What its row says: the level, and what decided."""
    given_at: int = -1
    first: int = 0
    page: int | None = None
    """Of a note: the entry that the page it leads to begins with."""


class FolderTreeModel(QAbstractItemModel):
    """Lazily read; `refresh` asks again for every folder that was read, and keeps what is open."""

    folder_wanted = Signal(object)
    """Path of a folder from the base, `""` for the base itself: it is to be read."""

    recoloured = Signal()
    """Every level may be another one: whatever is in view is to be drawn anew."""

    rearranged = Signal()
    """Rows of a folder came or went."""

    def __init__(self, level_of: Callable[[str], PathLevel], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._level_of = level_of
        self._generation = 0
        self._nodes: dict[int, _Node] = {}
        self._by_path: dict[str, _Node] = {}
        self._standings = Standings()
        self._news: Mapping[str, str] = {}
        self._below: Below | None = None
        self._judge: Judge | None = None
        self._tried: Callable[[str], PathLevel] | None = None
        self._tried_below: Below | None = None
        self._next_key = 0
        self._root = self._new("", "", "folder")
        self._is_open = False
        self._is_changing = False

    # what is shown

    def start_over(self, *, is_open: bool) -> None:
        """Another folder: nothing of the old one stays. The base is read when it is asked for."""
        self.beginResetModel()
        self._nodes, self._by_path = {}, {}
        self._standings, self._news, self._below = Standings(), {}, None
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

    def set_below(self, below: Below | None) -> None:
        """Say of folders which levels their files have; None: nothing was counted."""
        self._below = below
        self.recolour()

    def show_tried(self, level_of: Callable[[str], PathLevel] | None, below: Below | None) -> None:
        """Colour the rows by rules that are only tried; what is asked of a path is still answered as it is."""
        self._tried, self._tried_below = level_of, below
        self.recolour()

    def set_judge(self, judge: Judge | None) -> None:
        """Show what an operation comes to in place of the levels; None: the levels."""
        self._judge = judge
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, LEVEL, LEVEL)
        self.recolour()

    def below(self, path: str) -> FilesBelow | None:
        """Which levels the files of a folder have, whose path ends with `/`, as far as that is known."""
        return self._below(path) if self._below is not None else None

    def refresh(self) -> None:
        """Ask again for every folder that was read."""
        for node in [n for n in self._nodes.values() if n.state == "read" and n.kind == "folder"]:
            self._want(node)
        if self._is_open and self._root.state == "unread":
            self._want(self._root)

    def refresh_around(self, paths: Iterable[str]) -> None:
        """Ask again for the folders that hold these files: of each the nearest that was asked for."""
        nearest: dict[int, _Node] = {}
        for path in paths:
            folder = path.rpartition("/")[0]
            while folder and ((node := self._find(folder)) is None or node.kind != "folder" or node.state == "unread"):
                folder = folder.rpartition("/")[0]
            found = self._find(folder) or self._root
            nearest[found.key] = found
        for node in nearest.values():
            if node.state != "unread":
                self._want(node)

    def set_listing(self, relative: str, listing: FolderListing) -> None:
        """The entries of a folder; rows that stay keep what is below them."""
        node = self._find(relative)
        if node is None:
            return
        node.state = "read"
        if node.listing is listing:
            return
        node.listing = listing
        self._fill(node)

    def set_failed(self, relative: str, message: str) -> None:
        """A folder cannot be read."""
        node = self._find(relative)
        if node is not None:
            node.state, node.listing = "read", None
            self._merge(node, (), (), [(message, None)])

    def set_standings(self, standings: Standings) -> None:
        """Show which files have a block, and how the two stand to each other."""
        if standings != self._standings:
            self._standings = standings
            self.recoloured.emit()

    @property
    def has_states(self) -> bool:
        """Tell whether there is anything to say in the column of states."""
        return bool(self._standings.files or self._news)

    def set_news(self, news: Mapping[str, str]) -> None:
        """Say of these paths what just happened to them, in a word or two."""
        if news != self._news:
            self._news = dict(news)
            self.recoloured.emit()

    def standing_at(self, index: Index) -> FileStanding | FolderStanding | None:
        """The standing of a file and its block to each other; of a folder the worst of what is below it."""
        node = self._node(index)
        if not index.isValid() or node.kind == "note":
            return None
        known = self._standings.files if node.kind == "file" else self._standings.folders
        return known.get(node.relative)

    def standing_of(self, path: str) -> FileStanding | FolderStanding | None:
        """The standing of a file and its block to each other, whether its folder was read or not."""
        return self._standings.files.get(path)

    def turn_page(self, index: Index) -> QModelIndex:
        """Show the page that a note leads to; its first row, an invalid index where the note leads nowhere."""
        note = self._node(index)
        node = note.parent
        if not index.isValid() or note.page is None or node is None:
            return QModelIndex()
        forward = note.page > node.first
        node.first = note.page
        self._fill(node)
        entries = [child for child in node.children if child.kind != "note"]
        return self._index(entries[0 if forward else -1]) if entries else QModelIndex()

    def reveal(self, path: str) -> QModelIndex:
        """The row of a path; of a large folder that was read the page with it is turned to."""
        relative = path.rstrip("/")
        node = self._find(relative.rpartition("/")[0])
        if relative and relative not in self._by_path and node is not None and node.listing is not None:
            entries = node.listing.entries
            wanted = (not path.endswith("/"), relative.rpartition("/")[2].casefold(), relative)
            # as the entries of a listing are sorted
            at = bisect_left(entries, wanted, key=lambda one: (not one.is_folder, one.name.casefold(), one.relative))
            if at < len(entries) and entries[at].relative == relative:
                node.first = at // PAGE * PAGE
                self._fill(node)
        return self.index_of(path)

    @property
    def is_changing(self) -> bool:
        """Tell whether rows come and go just now: where a view goes then is nobody's choice."""
        return self._is_changing

    def was_read(self, relative: str) -> bool:
        """Tell whether something is known of what is in a folder."""
        node = self._find(relative)
        return node is not None and node.listing is not None

    @property
    def is_reading(self) -> bool:
        """Tell whether the base is not there yet."""
        return self._is_open and self._root.state != "read"

    @property
    def is_empty(self) -> bool:
        """Tell whether the base was read and holds nothing."""
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
        """Name, level, what decided, how file and block stand to each other."""
        del parent
        return len(HEADERS)

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: N802, B008
        """A folder that was not read may have some."""
        if parent.isValid() and parent.column() > 0:
            return False
        node = self._node(parent)
        return node.kind == "folder" and (bool(node.children) or node.state != "read")

    def canFetchMore(self, parent: Index) -> bool:  # noqa: N802
        """Tell whether a folder is still to be read."""
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
            return tr("Verdict") if section == LEVEL and self._judge is not None else tr(HEADERS[section])
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what the delegate draws from."""
        if role not in _ANSWERED or not index.isValid():
            return None
        node = self._node(index)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(node, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return node.name if node.kind == "note" else self._tooltip(node)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(node, index.column())
            case _ if role == SHOWN:
                return self._row_of(node)
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
        return self._by_path.get(relative) if relative else self._root

    def _want(self, node: _Node) -> None:
        if node.state == "unread":
            node.state = "reading"
        self.folder_wanted.emit(node.relative)

    def _level(self, node: _Node, level_of: Callable[[str], PathLevel] | None = None) -> PathLevel:
        path = _model_path(node)
        if node.protected:
            return PathLevel(path, Permission.NONE, protected=True)
        level = (level_of or self._level_of)(path)
        return level if node.unusable is None else replace(level, unusable=node.unusable)

    def _level_mark(self, node: _Node) -> tuple[LevelMark, str]:
        """Of a file its level; of a folder that of its files, without files that of a new one."""
        if node.given is not None and node.given_at == self._generation:
            return node.given
        is_plain_folder = node.kind == "folder" and not node.protected and node.unusable is None
        path, level_of = _model_path(node), self._tried or self._level_of
        ask_below = self._below if self._tried is None else self._tried_below
        below = ask_below(path) if is_plain_folder and ask_below is not None else None
        level = level_of(inside(path)) if is_plain_folder else self._level(node, level_of)
        if self._judge is not None:
            levels = below.levels if below is not None else (level.permission,)
            judged = {self._judge(level.path, one) for one in levels} if not level.is_closed else {Verdict.DENY}
            shown = mark_of_verdicts(judged)
        else:
            shown = mark_below(below) if below is not None else mark_of(level)
        node.given = shown, below.rule_word if below is not None else level.rule_word
        node.given_at = self._generation
        return node.given

    def _row_of(self, node: _Node) -> FolderRow:
        if node.kind == "note":
            return FolderRow(node.name, node.kind)
        given = self._level_mark(node)
        known = self._standings.files if node.kind == "file" else self._standings.folders
        standing = known.get(node.relative)
        if standing is None:
            return FolderRow(node.name, node.kind, *given, self._news.get(node.relative, ""))
        look = look_of(standing.state)
        return FolderRow(node.name, node.kind, *given, words_of(standing), look.icon, look.role)

    def _text(self, node: _Node, column: int) -> str:
        if column == NAME:
            return node.name
        if node.kind == "note":
            return ""
        if column == STATE:
            return words_of(self.standing_at(self._index(node))) or self._news.get(node.relative, "")
        mark, rule_word = self._level_mark(node)
        return mark.word if column == LEVEL else rule_word

    def _tooltip(self, node: _Node) -> str:
        standing = self.standing_at(self._index(node))
        told = f"\n{sentence_of(standing)}" if isinstance(standing, FileStanding) else ""
        news = f"\n{self._news[node.relative]}" if node.relative in self._news else ""
        below = self.below(_model_path(node)) if node.kind == "folder" else None
        files = f"\n{below.sentence}" if below is not None else ""
        return f"{node.relative}\n{self._level(node).sentence}{files}{told}{news}"

    def _spoken(self, node: _Node, column: int) -> str:
        if column != NAME or node.kind == "note":
            return self._text(node, column)
        standing = self.standing_at(self._index(node))
        (mark, rule_word), state = self._level_mark(node), words_of(standing)
        news = self._news.get(node.relative, "")
        told = "".join(f", {words}" for words in (state, news) if words)
        kind = tr("folder") if node.kind == "folder" else tr("file")
        return f"{kind} {node.name}, {mark.word}, {rule_word}{told}"

    # which rows there are: of a large folder one page, as the view asks for every row that it has

    def _fill(self, node: _Node) -> None:
        """Show the page of the folder's entries that is open, and what there is before and behind it."""
        entries = node.listing.entries if node.listing is not None else ()
        node.first = max(0, min(node.first, (len(entries) - 1) // PAGE * PAGE))
        last = min(node.first + PAGE, len(entries))
        above: list[tuple[str, int | None]] = []
        below: list[tuple[str, int | None]] = []
        if node.first:
            above.append((tr("{count:,} entries before these: click to show", count=node.first), node.first - PAGE))
        if last < len(entries):
            below.append((tr("{count:,} more entries: click to show", count=len(entries) - last), last))
        if node.listing is not None and node.listing.is_partial:
            below.append((tr("the first {count:,} entries: the others are being looked at", count=len(entries)), None))
        elif node.listing is not None and node.listing.truncated:
            rest = tr("more than {count:,} entries: the rest is not listed, the filter finds it", count=len(entries))
            below.append((rest, None))
        self._merge(node, entries[node.first : last], above, below)

    def _merge(
        self,
        node: _Node,
        entries: Sequence[FolderEntry],
        above: Sequence[tuple[str, int | None]],
        below: Sequence[tuple[str, int | None]],
    ) -> None:
        """Make the children what they should be, in few runs of rows, keeping those that stay."""
        self._is_changing = True
        wanted = {entry.relative: entry for entry in entries}
        self._remove_gone(node, wanted)
        kept = {child.relative: child for child in node.children}
        row = self._insert(node, 0, [self._note(node, *note) for note in above])
        fresh: list[_Node] = []
        for entry in entries:
            child = kept.get(entry.relative)
            if child is None:
                child = self._child(node, entry)
                fresh.append(child)
            else:
                row = self._insert(node, row, fresh) + 1
                fresh = []
            child.protected, child.unusable = entry.protected, entry.unusable
            child.given = None
        row = self._insert(node, row, fresh)
        self._insert(node, row, [self._note(node, *note) for note in below])
        self._is_changing = False
        self.recoloured.emit()
        self.rearranged.emit()

    def _remove_gone(self, node: _Node, wanted: Mapping[str, FolderEntry]) -> None:
        row = len(node.children) - 1
        while row >= 0:
            if self._stays(node.children[row], wanted):
                row -= 1
                continue
            last = row
            while row >= 0 and not self._stays(node.children[row], wanted):
                row -= 1
            self.beginRemoveRows(self._index(node), row + 1, last)
            for gone in node.children[row + 1 : last + 1]:
                self._forget(gone)
            del node.children[row + 1 : last + 1]
            self._number(node, row + 1)
            self.endRemoveRows()

    @staticmethod
    def _stays(child: _Node, wanted: Mapping[str, FolderEntry]) -> bool:
        entry = wanted.get(child.relative)
        return child.kind != "note" and entry is not None and entry.is_folder == (child.kind == "folder")

    def _insert(self, node: _Node, row: int, nodes: Sequence[_Node]) -> int:
        """Put new rows in before `row`; the row behind them."""
        if nodes:
            self.beginInsertRows(self._index(node), row, row + len(nodes) - 1)
            node.children[row:row] = nodes
            self._number(node, row)
            self.endInsertRows()
        return row + len(nodes)

    def _child(self, node: _Node, entry: FolderEntry) -> _Node:
        child = self._new(entry.name, entry.relative, "folder" if entry.is_folder else "file")
        child.parent = node
        self._by_path[entry.relative] = child
        return child

    def _note(self, node: _Node, text: str, page: int | None) -> _Node:
        note = self._new(text, "", "note")
        note.parent, note.page = node, page
        return note

    @staticmethod
    def _number(node: _Node, first: int) -> None:
        for row in range(first, len(node.children)):
            node.children[row].row = row

    def _forget(self, node: _Node) -> None:
        self._nodes.pop(node.key, None)
        if self._by_path.get(node.relative) is node:
            del self._by_path[node.relative]
        for child in node.children:
            self._forget(child)


def _model_path(node: _Node) -> str:
    return node.relative + "/" if node.kind == "folder" else node.relative
