"""How one list becomes another: what stays, changes, goes, comes and moves. It does not know what is listed.

Rows are paired only where they are alike: a row in the place of one that went is a new row, so that what an author
wrote about the old one is never left standing above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Likeness(Generic[T]):
    """What makes two rows the same one. ``same`` names a row; what follows holds for rows that have changed too.

    ``kin``, the strictest first: the same row wherever it stands. ``in_place``: only between the same neighbours.
    What one of them calls None is like nothing.
    """

    same: Callable[[T], Hashable]
    kin: tuple[Callable[[T], Hashable], ...] = ()
    in_place: tuple[Callable[[T], Hashable], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """``keep``: old ``i`` is new ``j`` (perhaps changed). ``delete``: old ``i`` up to ``i_end`` goes.

    ``insert``: new ``j`` up to ``j_end`` comes before old ``i_end``; the old one before it that stays is ``i - 1``.
    """

    what: Literal["keep", "delete", "insert"]
    i: int
    i_end: int
    j: int
    j_end: int


def equal(row: Hashable) -> Hashable:
    """Rows that never change: equal is the same."""
    return row


def steps(before: Sequence[T], after: Sequence[T], alike: Likeness[T]) -> Iterator[Step]:
    """The steps from ``before`` to ``after``, in their order."""
    i = j = 0
    for i_kept, j_kept in _Pairing(before, after, alike).pairs():
        yield from _between(i, i_kept, j, j_kept)
        yield Step("keep", i_kept, i_kept + 1, j_kept, j_kept + 1)
        i, j = i_kept + 1, j_kept + 1
    yield from _between(i, len(before), j, len(after))


def moves(before: Sequence[T], after: Sequence[T], plan: Sequence[Step], alike: Likeness[T]) -> Mapping[int, int]:
    """New to old place of the rows that go at one place and come at another."""
    gone = [i for step in plan if step.what == "delete" for i in range(step.i, step.i_end)]
    come = [j for step in plan if step.what == "insert" for j in range(step.j, step.j_end)]
    found: dict[int, int] = {}
    for name_of in (alike.same, *alike.kin):
        waiting: dict[Hashable, list[int]] = {}
        for i in reversed(gone):
            waiting.setdefault(name_of(before[i]), []).append(i)
        for j in come:
            if j not in found and (name := name_of(after[j])) is not None and waiting.get(name):
                found[j] = waiting[name].pop()
        taken = set(found.values())
        gone = [i for i in gone if i not in taken]
    return found


def _between(i: int, i_end: int, j: int, j_end: int) -> Iterator[Step]:
    if i < i_end:
        yield Step("delete", i, i_end, j, j)
    if j < j_end:
        yield Step("insert", i, i_end, j, j_end)


class _Pairing(Generic[T]):
    """Which rows stay in their order: first those that are the same, between them those that are alike."""

    def __init__(self, before: Sequence[T], after: Sequence[T], alike: Likeness[T]) -> None:
        self._before, self._after, self._same = before, after, alike.same
        self._levels = (alike.same, *alike.kin, *alike.in_place)
        self._in_both = {alike.same(row) for row in before} & {alike.same(row) for row in after}

    def pairs(self) -> Iterator[tuple[int, int]]:
        return self._stretch(0, len(self._before), 0, len(self._after), 0)

    def _stretch(self, i: int, i_end: int, j: int, j_end: int, level: int) -> Iterator[tuple[int, int]]:
        if i == i_end or j == j_end or level == len(self._levels):
            return
        old, new = self._names(self._before[i:i_end], level), self._names(self._after[j:j_end], level)
        at_i, at_j = i, j
        for i_run, j_run, length in _runs(old, new):
            yield from self._stretch(at_i, i + i_run, at_j, j + j_run, level + 1)
            yield from ((i + i_run + k, j + j_run + k) for k in range(length))
            at_i, at_j = i + i_run + length, j + j_run + length
        yield from self._stretch(at_i, i_end, at_j, j_end, level + 1)

    def _names(self, rows: Sequence[T], level: int) -> list[Hashable]:
        """A row that stays elsewhere as it is, or has no name, is like no other."""
        if level == 0:
            return list(map(self._same, rows))
        name_of = self._levels[level]
        free = [None if self._same(row) in self._in_both else name_of(row) for row in rows]
        return [object() if name is None else name for name in free]


def _runs(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """Where equal stretches begin in both, and how long they are."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    yield 0, 0, head
    for i, j, length in middle.get_matching_blocks():
        yield i + head, j + head, length
    yield len(old) - tail, len(new) - tail, tail


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
