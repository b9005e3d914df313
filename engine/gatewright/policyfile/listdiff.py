"""How one list becomes another: what stays, changes, goes and comes. It does not know what is listed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence


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


def steps(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterator[Step]:
    """The steps from ``before`` to ``after``. A replaced stretch is paired one to one, unless something moved."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    middle = SequenceMatcher(None, before[head : len(before) - tail], after[head : len(after) - tail], autojunk=False)
    yield from _keeps(0, 0, head)
    moved = set(before) & set(after)
    for tag, i, i_end, j, j_end in middle.get_opcodes():
        span = (i + head, i_end + head, j + head, j_end + head)
        if tag == "equal":
            yield from _keeps(span[0], span[2], i_end - i)
        else:
            yield from _replaced(before, after, moved, *span)
    yield from _keeps(len(before) - tail, len(after) - tail, tail)


def _replaced(
    before: Sequence[Hashable], after: Sequence[Hashable], moved: set[Hashable], i: int, i_end: int, j: int, j_end: int
) -> Iterator[Step]:
    if moved.isdisjoint(before[i:i_end]) and moved.isdisjoint(after[j:j_end]):
        paired = min(i_end - i, j_end - j)
        yield from _keeps(i, j, paired)
        i, j = i + paired, j + paired
    if i < i_end:
        yield Step("delete", i, i_end, j, j)
    if j < j_end:
        yield Step("insert", i, i_end, j, j_end)


def _keeps(i: int, j: int, count: int) -> Iterator[Step]:
    return (Step("keep", i + k, i + k + 1, j + k, j + k + 1) for k in range(count))


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
