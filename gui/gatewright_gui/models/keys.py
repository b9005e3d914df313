"""The keys of the app by page, as rows of a table. It binds none of them; `docs/app.md` lists the same.

A part of the list is told first on the pages that it belongs to.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFont

from gatewright_gui.qt.language import key_names, mark, tr
from gatewright_gui.qt.table_model import FlatModel, Index

KEYS, DOES = range(2)


class KeyRow(NamedTuple):
    """One or several keys, and what they do."""

    keys: str
    does: str


class KeyPart(NamedTuple):
    """The keys of a part of the app; `pages` are the keys of the pages where they hold, none where they hold on all."""

    title: str
    pages: tuple[str, ...]
    rows: tuple[KeyRow, ...]


PARTS = (
    KeyPart(
        mark("Everywhere"),
        (),
        (
            KeyRow("F1", mark("lists the keys, those of the page first")),
            KeyRow(
                "Ctrl+K",
                mark(
                    "searches agents, tools, operations, sources, problems and commands; "
                    "> before the words: commands only"
                ),
            ),
            KeyRow(
                "Ctrl+1 ... Ctrl+6",
                mark("Home, Access, Try, Activity, Servers, Policy file"),
            ),
            KeyRow("Ctrl+Z, Ctrl+Shift+Z", mark("undo, redo; the menu and the tooltip say what")),
            KeyRow("Ctrl+S, Ctrl+Shift+S", mark("save (press twice: the first shows the changes), save as a new file")),
            KeyRow("Ctrl+Shift+X", mark("publishes the policy: for a program, a team, MCP clients, coding agents")),
            KeyRow("Ctrl+O, Ctrl+R", mark("open, read again from disk")),
            KeyRow("Ctrl+Shift+N", mark("opens another policy file in a window of its own")),
            KeyRow("Ctrl+F", mark("searches the page, or the text with the keyboard focus")),
            KeyRow("Ctrl+,", mark("preferences: theme, size of text, messages, what saving shows, long lines")),
            KeyRow("Ctrl+=, Ctrl+-, Ctrl+0", mark("larger, smaller, normal text")),
            KeyRow("Ctrl+Shift+.", mark("stops all agents in every process at once; again: they go on")),
            KeyRow("Ctrl+Q", mark("quits, and asks about unsaved changes")),
        ),
    ),
    KeyPart(
        mark("Home"),
        ("home",),
        (
            KeyRow("K", mark("in the list of what could hurt: makes the operation ask first")),
            KeyRow("Up, Down, Left, Right", mark("in the picture: to another agent or effect")),
            KeyRow("Space, Escape", mark("shows only related parts, shows all")),
        ),
    ),
    KeyPart(
        mark("Access, Tools"),
        ("tools",),
        (
            KeyRow(
                "Alt+A, Alt+K, Alt+D",
                mark("on, ask first, off for what is selected; Alt+K again: on; letters alone find a row by its name"),
            ),
            KeyRow("Space", mark("ticks or unticks; a mixed tool is turned off")),
            KeyRow(
                "Left, Right", mark("close and open a tool or a group of tools; Left again goes to the row above it")
            ),
            KeyRow("Ctrl+A, Ctrl+I", mark("selects all shown rows, inverts the selection")),
            KeyRow("Ctrl+M", mark("tree or matrix")),
            KeyRow("Ctrl+Shift+F, Ctrl+Shift+P", mark("filters, presets")),
            KeyRow("Ctrl+N", mark("add an agent")),
            KeyRow("Ctrl+D, F2, Del", mark("in the list of agents: duplicate, rename, remove")),
            KeyRow("Enter, Del", mark("in Limits, and in what an agent is granted: edit the value, remove the row")),
        ),
    ),
    KeyPart(
        mark("Preview and other texts"),
        ("tools", "text"),
        (
            KeyRow("F3, Shift+F3", mark("next and previous match")),
            KeyRow("Ctrl+Shift+[, Ctrl+Shift+]", mark("fold, unfold where the cursor is")),
            KeyRow("Ctrl+Shift+-, Ctrl+Shift++", mark("fold, unfold everything")),
            KeyRow("Ctrl+Shift+C", mark("copies all shown text")),
        ),
    ),
    KeyPart(
        mark("Access, Files"),
        ("files",),
        (
            KeyRow("Alt+Up, Alt+Down", mark("moves the rule")),
            KeyRow("F2, Ins, Del", mark("edits the pattern, adds a rule, removes it")),
            KeyRow("Enter", mark("on a file: goes to the rule that decides it")),
            KeyRow("Ctrl+Return", mark("on a rule: shows the files that it decides")),
            KeyRow("F3, Shift+F3", mark("next and previous of them")),
            KeyRow("F4", mark("who can touch the file or folder")),
            KeyRow("F5", mark("counts again")),
            KeyRow("Shift+F1", mark("explains the levels")),
        ),
    ),
    KeyPart(
        mark("Access, Rules"),
        ("rules",),
        (
            KeyRow("Alt+Up, Alt+Down", mark("moves the rule, or the step of a composition")),
            KeyRow("Enter, Ins, Del", mark("edits the rule or step, adds one, removes it")),
        ),
    ),
    KeyPart(
        mark("Access, Memory"),
        ("memory",),
        (
            KeyRow("Ctrl+Return", mark("in a value: saves it")),
            KeyRow("Ctrl+Z, Ctrl+Shift+Z", mark("in a value: takes typing back, types it again")),
        ),
    ),
    KeyPart(
        mark("Try"),
        ("try",),
        (
            KeyRow("Ctrl+Return, Ctrl+Shift+Return", mark("decide, run")),
            KeyRow("Ctrl+Shift+E, Ctrl+Shift+V", mark("fills in an example, puts in a provider's whole call")),
            KeyRow("Ctrl+Shift+I, Ctrl+Space, F8", mark("in the JSON: format, complete, go to error")),
            KeyRow("Alt+Return", mark("in the form: the choices for a field (left out, default, null, as JSON)")),
            KeyRow("Alt+Up, Alt+Down, Alt+Del", mark("in the form: moves or removes an item of a list")),
            KeyRow("Down, F4", mark("in a field for a path: lists the files, browses")),
            KeyRow("Enter, F2, Ctrl+D", mark("in the history: run again, edit, compare two")),
            KeyRow("Ctrl+Shift+Del, Ctrl+Shift+L", mark("a fresh copy for the next run, live mode")),
        ),
    ),
    KeyPart(
        mark("Activity"),
        ("activity",),
        (
            KeyRow(
                "Left, Right, Escape", mark("on the timeline: another stretch of time, all times; with Shift several")
            ),
        ),
    ),
    KeyPart(
        mark("Servers"),
        ("servers",),
        (
            KeyRow("Enter", mark("trusts a server, puts a gate before a coding agent or client, shows its calls")),
            KeyRow("Del", mark("removes a server, or the gate before a coding agent")),
        ),
    ),
    KeyPart(
        mark("Policy file, Text"),
        ("text",),
        (
            KeyRow("Ctrl+Return", mark("applies the typed text, as one edit")),
            KeyRow("F8", mark("goes to the next error in the text")),
            KeyRow("Ctrl+Z, Ctrl+Shift+Z", mark("takes typing back, types it again")),
        ),
    ),
    KeyPart(
        mark("A call that asks"),
        ("try", "activity"),
        (
            KeyRow("F6", mark("goes to the question of a call that waits")),
            KeyRow("Alt+1, Alt+2, Alt+3, Alt+4", mark("deny, allow once, for a while, for this session")),
        ),
    ),
)


def parts_for(page: str) -> tuple[KeyPart, ...]:
    """Those of a page, then those that hold everywhere, then the others."""
    here = [part for part in PARTS if page in part.pages]
    everywhere = [part for part in PARTS if not part.pages]
    return (*here, *everywhere, *[part for part in PARTS if part.pages and page not in part.pages])


class KeysModel(FlatModel):
    """Each part's title in a row of its own, below it its keys; only what fits the words that are searched."""

    headers = (mark("Key"), mark("What it does"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[KeyPart, ...] = PARTS
        self._words: tuple[str, ...] = ()
        self._shown: list[KeyPart | KeyRow] = list(self._fitting())

    def set_page(self, page: str) -> None:
        """Tell the keys of a page first."""
        self._parts = parts_for(page)
        self._tell()

    def set_search(self, text: str) -> None:
        """Show the rows that have every word, in the keys, in what they do, or in the title over them."""
        self._words = tuple(text.casefold().split())
        self._tell()

    def _tell(self) -> None:
        self.beginResetModel()
        self._shown = list(self._fitting())
        self.endResetModel()

    def _fitting(self) -> Iterator[KeyPart | KeyRow]:
        for part in self._parts:
            rows = [
                row
                for row in part.rows
                if self._fits(f"{key_names(row.keys)} {tr(row.does)} {tr(part.title)}".casefold())
            ]
            if rows:
                yield part
                yield from rows

    def _fits(self, text: str) -> bool:
        return all(word in text for word in self._words)

    @property
    def title_rows(self) -> tuple[int, ...]:
        """The rows that are titles."""
        return tuple(at for at, row in enumerate(self._shown) if isinstance(row, KeyPart))

    def count(self) -> int:
        """Titles and keys."""
        return len(self._shown)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """A title cannot be chosen."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        is_title = isinstance(self._shown[index.row()], KeyPart)
        return Qt.ItemFlag.ItemIsEnabled if is_title else super().flags(index)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words; a title is bold."""
        if not index.isValid():
            return None
        row = self._shown[index.row()]
        if isinstance(row, KeyPart):
            return _title(row, index.column(), role)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return key_names(row.keys) if index.column() == KEYS else tr(row.does)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{key_names(row.keys)}: {tr(row.does)}"
            case _:
                return None


def _title(part: KeyPart, column: int, role: int) -> Any:
    if role == Qt.ItemDataRole.FontRole:
        font = QFont()
        font.setWeight(QFont.Weight.DemiBold)
        return font
    wants_words = role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}
    return tr(part.title) if wants_words and column == KEYS else None
