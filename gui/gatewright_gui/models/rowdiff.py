"""Rows of a flat model replaced by others so that selection and open editors stay. It does not know what rows are."""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
Held_contra = TypeVar("Held_contra", contravariant=True)


class RowHolder(Protocol[Held_contra]):
    """A model that holds a list of rows."""

    def insert_rows(self, at: int, rows: Sequence[Held_contra]) -> None:
        """Put rows in, between begin and end."""
        ...

    def remove_rows(self, at: int, count: int) -> None:
        """Take rows out, between begin and end."""
        ...

    def replace_rows(self, at: int, rows: Sequence[Held_contra]) -> None:
        """Put rows in the place of as many, and tell that their data changed."""
        ...


def take_rows(holder: RowHolder[T], old: Sequence[T], new: Sequence[T], key: Callable[[T], Hashable]) -> None:
    """Keep what is alike at both ends, by its key, and change the middle."""
    before, after = [key(row) for row in old], [key(row) for row in new]
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    room = shorter - head
    tail = next((i for i in range(room) if before[-1 - i] != after[-1 - i]), room)
    if len(before) - head - tail:
        holder.remove_rows(head, len(before) - head - tail)
    if len(after) - head - tail:
        holder.insert_rows(head, new[head : len(after) - tail])
    holder.replace_rows(0, new)
