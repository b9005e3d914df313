"""Compares two texts line by line: a unified diff for a person, and a merge of two texts that come from one.

The diff's head has the SHA-256 of the new text, so that even a cut diff identifies the content.

The time is bounded: lines that occur once in both texts are the anchors (the longest run of them in order), small gaps
are compared fully, and a large gap without anchors counts as one change. A coarser comparison never loses a change; it
only turns more places into conflicts. Changes conflict where they overlap or touch, unless they are equal.
"""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from gatewright.base.frozen import frozen
from gatewright.blocks.textedit import difference

_MAX_LINES = 400
_MAX_CHARS = 65_536
_CONTEXT = 3


def diff_text(name: str, old: str, new: str) -> str:
    """The difference from ``old`` to ``new``, empty when they are equal."""
    if old == new:
        return ""
    changed = difference(old, new)
    start, end = _line_start(old, changed.start), _line_end(old, changed.start + changed.removed)
    before, after = old[start:end], new[start : len(new) - (len(old) - end)]
    digest = hashlib.sha256(new.encode("utf-8", "replace")).hexdigest()
    rows = "".join(_hunks(before, after, old.count("\n", 0, start)))
    text = f"--- {name}\n+++ {name} sha256:{digest}\n{rows}"
    rest = f"\n[diff cut, {len(before) + len(after):,} characters differ]\n"
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + rest


def _line_start(text: str, at: int) -> int:
    for _ in range(_CONTEXT + 1):
        at = text.rfind("\n", 0, max(at, 0))
        if at < 0:
            return 0
    return at + 1


def _line_end(text: str, at: int) -> int:
    for _ in range(_CONTEXT + 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at


def _hunks(old: str, new: str, offset: int) -> Iterator[str]:
    before, after = lines_of(old), lines_of(new)
    if len(before) + len(after) > _MAX_LINES:
        yield _head(offset, len(before), offset, len(after))
        yield from (_row("-", line) for line in before)
        yield from (_row("+", line) for line in after)
        return
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        low, high = group[0], group[-1]
        yield _head(offset + low[1], high[2] - low[1], offset + low[3], high[4] - low[3])
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_row(" ", line) for line in before[i1:i2])
                continue
            yield from (_row("-", line) for line in before[i1:i2])
            yield from (_row("+", line) for line in after[j1:j2])


def _head(old_at: int, old_count: int, new_at: int, new_count: int) -> str:
    """The head of a hunk; a hunk without lines names the line before it."""
    return f"@@ -{old_at + (old_count > 0)},{old_count} +{new_at + (new_count > 0)},{new_count} @@\n"


def lines_of(text: str) -> list[str]:
    """Split into lines with their ends; only LF ends a line."""
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]]
    return [*whole, lines[-1]] if lines[-1] else whole


def _row(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


_SMALL = 40_000
_DEPTH = 40

Span = tuple[int, int, int, int]
"""A change: lines ``a:b`` of the old text became lines ``c:d`` of the new one, from 0."""


@frozen
class MergeConflict:
    """A place where both sides changed.

    Lines count from 1; ``base_line`` is the first line of the passage in the common text.
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
    """Return pairs of equal lines that occur once in both texts, in the same order in both: the longest such run."""
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
