"""What the command palette lists, and which rows fit what is typed, the best first. It runs and shows nothing."""

from collections.abc import Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt

from gatewright_gui.qt.table_model import RowModel

MAX_ROWS = 100
"""Nobody reads on: who sees the end of the list types another letter."""
COMMANDS_ONLY = ">"


class PaletteEntry(NamedTuple):
    """One row. `kind` is said beside it, `keys` at the right; `target` is what choosing it hands back.

    A tuple, since there are tens of thousands.
    """

    kind: str
    text: str
    detail: str
    icon: str
    keys: str
    target: object


class PaletteModel(RowModel[PaletteEntry]):
    """At most `MAX_ROWS` of the entries; without a text the first ones."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: Sequence[PaletteEntry] = ()
        self._keys: list[str] = []

    def set_entries(self, entries: Sequence[PaletteEntry]) -> None:
        """Everything that can be chosen; among equals the earlier one comes first."""
        self._entries = entries
        self._keys = [f"{entry.text}\0{entry.kind} {entry.detail}".casefold() for entry in entries]
        self.set_search("")

    def set_search(self, text: str) -> None:
        """Show what has every word of the text; `>` before it leaves commands only."""
        only = text.startswith(COMMANDS_ONLY)
        words = text.removeprefix(COMMANDS_ONLY).casefold().split()
        self.set_rows(self._entries[at] for _, at in nsmallest(MAX_ROWS, self._ranking(words, only=only)))

    def _ranking(self, words: Sequence[str], *, only: bool) -> list[tuple[int, int]]:
        return [
            (_rank(key, words), at)
            for at, key in enumerate(self._keys)
            if all(word in key for word in words) and not (only and self._entries[at].kind != "command")
        ]

    def cell(self, row: PaletteEntry, column: int, role: int) -> Any:
        """The words."""
        del column
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.text
            case Qt.ItemDataRole.ToolTipRole:
                return row.detail or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(part for part in (row.text, row.kind, row.keys, row.detail) if part)
            case _:
                return None


def _rank(key: str, words: Sequence[str]) -> int:
    """0 where the name is just that, up to 4 where only the description has it."""
    if not words:
        return 0
    name, _, _ = key.partition("\0")
    wanted = " ".join(words)
    if name == wanted:
        return 0
    if name.startswith(words[0]):
        return 1
    if all(f" {word}" in f" {name.replace('_', ' ').replace('.', ' ')}" for word in words):
        return 2
    return 3 if all(word in name for word in words) else 4
