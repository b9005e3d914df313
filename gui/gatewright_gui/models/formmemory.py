"""What a form knows of its places beside the values: texts that are no JSON yet, chosen branches, what waits.

It knows no schemas, and changes no value.
"""

from collections.abc import Mapping
from typing import TypeVar

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.jsonpath import Path

T = TypeVar("T")


class FormMemory:
    """`drafts`: broken JSON as it was typed. `raw`: places that are edited as JSON. `branches`: those that were chosen.

    `implied`: what came into being only to hold another place. `parked`: what waits in case its branch (by its number)
    or an operation that takes it (by the argument's name) comes back.
    """

    def __init__(self) -> None:
        self.drafts: dict[Path, str] = {}
        self.raw: set[Path] = set()
        self.branches: dict[Path, int] = {}
        self.implied: set[Path] = set()
        self.parked: dict[tuple[Path, str | int], JsonValue] = {}

    def is_drafted_below(self, path: Path) -> bool:
        """Whether a place, or one in it, holds broken JSON."""
        return any(draft[: len(path)] == path for draft in self.drafts)

    def forget(self, path: Path) -> None:
        """The place is left out."""
        self.forget_below(path)
        self.drafts.pop(path, None)
        self.raw.discard(path)

    def forget_below(self, path: Path) -> None:
        """The place holds something else now."""
        self.drafts = {at: kept for at, kept in self.drafts.items() if not _is_below(at, path)}
        self.branches = {at: kept for at, kept in self.branches.items() if not _is_below(at, path)}
        self.raw = {at for at in self.raw if not _is_below(at, path)}

    def move_items(self, held: Path, moves: Mapping[int, int | None]) -> None:
        """What is known of the items of a list goes with them; None: it is forgotten."""
        self.drafts = _moved_keys(self.drafts, held, moves)
        self.branches = _moved_keys(self.branches, held, moves)
        self.raw = {to for at in self.raw if (to := _moved(at, held, moves)) is not None}
        self.implied = {to for at in self.implied if (to := _moved(at, held, moves)) is not None}
        parked = [(_moved(at, held, moves), key, kept) for (at, key), kept in self.parked.items()]
        self.parked = {(at, key): kept for at, key, kept in parked if at is not None}


def _is_below(path: Path, held: Path) -> bool:
    return len(path) > len(held) and path[: len(held)] == held


def _moved(path: Path, held: Path, moves: Mapping[int, int | None]) -> Path | None:
    at = path[len(held)] if _is_below(path, held) else None
    if not isinstance(at, int):
        return path
    to = moves.get(at, at)
    return None if to is None else (*held, to, *path[len(held) + 1 :])


def _moved_keys(known: dict[Path, T], held: Path, moves: Mapping[int, int | None]) -> dict[Path, T]:
    return {to: kept for at, kept in known.items() if (to := _moved(at, held, moves)) is not None}
