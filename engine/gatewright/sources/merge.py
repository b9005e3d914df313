"""The merge of two texts that grew from one, line by line, and the places where both changed.

Its time is bounded: lines that stand once in both texts are the anchors (the longest run of them in order), small gaps
are compared fully, and a large gap without anchors counts as one change. A coarser comparison never loses a change; it
only turns more places into conflicts. Changes conflict where they overlap or touch, unless they are equal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from gatewright.base.frozen import frozen
from gatewright.blocks.difftext import lines_of

_SMALL = 40_000
_DEPTH = 40

Span = tuple[int, int, int, int]
"""A change: lines ``a:b`` of the one text became lines ``c:d`` of the other, from 0."""


@frozen
class MergeConflict:
    """A place where both changed. Lines count from 1; ``base_line`` is the first line of the passage in the common
    text.
    """

    base_line: int
    mine_line: int
    other_line: int
    base: str
    mine: str
    other: str


@frozen
class Merged:
    """The merged ``text``, None where changes conflict."""

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


def merge_texts(base: str, mine: str, other: str) -> Merged:
    """Merge ``mine`` and ``other``. A change of all line endings on one side carries over."""
    endings = [_ending(text) for text in (base, mine, other)]
    if None in endings or len(set(endings)) == 1:
        return _merge_lines(base, mine, other)
    found = _merge_lines(*(text.replace("\r\n", "\n") for text in (base, mine, other)))
    ending = endings[2] if endings[1] == endings[0] else endings[1]
    return found if found.text is None or ending != "\r\n" else Merged(found.text.replace("\n", "\r\n"))


def changes(old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Return the changes from ``old`` to ``new``, in order; two changes have at least one equal line between them."""
    return list(_gaps(old, new, (0, len(old), 0, len(new)), _DEPTH))


def _ending(text: str) -> str | None:
    """Return the one line ending of a text; None if it has none, or several."""
    crlf, total = text.count("\r\n"), text.count("\n")
    if total == 0:
        return None
    return "\r\n" if crlf == total else ("\n" if crlf == 0 and "\r" not in text else None)


def _merge_lines(base: str, mine: str, other: str) -> Merged:
    texts = lines_of(base), lines_of(mine), lines_of(other)
    out: list[str] = []
    conflicts: list[MergeConflict] = []
    at = 0
    for group in _groups(changes(texts[0], texts[1]), changes(texts[0], texts[2])):
        out += texts[0][at : group.start]
        at = group.end
        one, two = group.lines(texts[1], 0), group.lines(texts[2], 1)
        before = texts[0][group.start : group.end]
        if two in (one, before):
            out += one
        elif one == before:
            out += two
        else:
            begins = (group.start + 1, group.begin(0) + 1, group.begin(1) + 1)
            conflicts.append(MergeConflict(*begins, "".join(before), "".join(one), "".join(two)))
    out += texts[0][at:]
    return Merged(None, tuple(conflicts)) if conflicts else Merged("".join(out))


@dataclass(slots=True)
class _Group:
    """Changes of both sides that overlap or touch, over lines ``start:end`` of the common text."""

    start: int
    end: int
    sides: tuple[list[Span], list[Span]]
    offsets: tuple[int, int]

    def begin(self, side: int) -> int:
        """Return the first line of the group in the text of a side."""
        return self.start + self.offsets[side]

    def lines(self, text: Sequence[str], side: int) -> list[str]:
        """Return the lines of a side in the group."""
        grown = sum((d - c) - (b - a) for a, b, c, d in self.sides[side])
        return list(text[self.begin(side) : self.end + self.offsets[side] + grown])


def _groups(mine: list[Span], other: list[Span]) -> Iterator[_Group]:
    both = sorted([(span, 0) for span in mine] + [(span, 1) for span in other])
    offsets = [0, 0]
    group: _Group | None = None
    for span, side in both:
        if group is None or span[0] > group.end:
            if group is not None:
                yield group
            group = _Group(span[0], span[1], ([], []), (offsets[0], offsets[1]))
        group.end = max(group.end, span[1])
        group.sides[side].append(span)
        offsets[side] += (span[3] - span[2]) - (span[1] - span[0])
    if group is not None:
        yield group


def _gaps(old: Sequence[str], new: Sequence[str], span: Span, depth: int) -> Iterator[Span]:
    """Yield the changes within a span."""
    a, b, c, d = _trim(old, new, span)
    if (b - a) * (d - c) <= _SMALL:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_opcodes():
            if tag != "equal":
                yield a + i1, a + i2, c + j1, c + j2
    else:
        anchors = _anchors(old, new, (a, b, c, d)) if depth else []
        if not anchors:
            yield a, b, c, d
            return
        for i, j in [*anchors, (b, d)]:
            yield from _gaps(old, new, (a, i, c, j), depth - 1)
            a, c = i + 1, j + 1


def _trim(old: Sequence[str], new: Sequence[str], span: Span) -> Span:
    a, b, c, d = span
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """Return pairs of equal lines that stand once in both, rising in both: the longest such run."""
    a, b, c, d = span
    seen_old, seen_new = Counter(old[a:b]), Counter(new[c:d])
    where = {new[j]: j for j in range(c, d) if seen_new[new[j]] == 1}
    pairs = [(i, where[old[i]]) for i in range(a, b) if seen_old[old[i]] == 1 and old[i] in where]
    tails: list[int] = []
    last: list[int] = []
    back: list[int] = []
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        back.append(last[at - 1] if at else -1)
        if at == len(tails):
            tails.append(j)
            last.append(number)
        else:
            tails[at], last[at] = j, number
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = back[number]
    return run[::-1]
