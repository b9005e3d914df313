"""A unified diff for a person who has to say yes, in bounded time and size. It knows no file.

The head holds the SHA-256 of the new text, so that a diff that was cut still stands for exactly one content.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from gatewright.sources.filetext import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_LINES = 400
_MAX_CHARS = 65_536
_CONTEXT = 3


def diff_text(relative: str, old: str, new: str) -> str:
    """The difference from ``old`` to ``new``, empty when they are equal."""
    if old == new:
        return ""
    first = _line_start(old, _common(old, new))
    tail = _common(old[first:][::-1], new[first:][::-1])
    last = _line_end(old, len(old) - tail)
    before, after = old[first:last], new[first : len(new) - (len(old) - last)]
    digest = digest_of(new.encode("utf-8", "replace"))
    offset = old.count("\n", 0, first)
    text = f"--- {relative}\n+++ {relative} sha256:{digest}\n" + "".join(_hunks(before, after, offset))
    rest = f"\n[diff cut, {len(before) + len(after):,} characters differ]\n"
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + rest


def _common(one: str, other: str) -> int:
    """How many characters both begin with; by halves, so that long equal texts cost next to nothing."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _line_start(text: str, at: int) -> int:
    """Where the context of the line of ``at`` begins."""
    for _ in range(_CONTEXT + 1):
        at = text.rfind("\n", 0, max(at, 0))
        if at < 0:
            return 0
    return at + 1


def _line_end(text: str, at: int) -> int:
    """Where the context of the line before ``at`` ends."""
    for _ in range(_CONTEXT + 1):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at


def _hunks(old: str, new: str, offset: int) -> Iterator[str]:
    counts = _line_count(old), _line_count(new)
    if sum(counts) > _MAX_LINES:
        start = offset + 1
        yield f"@@ -{start},{counts[0]} +{start},{counts[1]} @@\n"
        yield from (_line("-", line) for line in _lines(old[:_MAX_CHARS]))
        yield from (_line("+", line) for line in _lines(new[:_MAX_CHARS]))
        return
    before, after = _lines(old), _lines(new)
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        low, high = group[0], group[-1]
        old_at, new_at = offset + low[1] + 1, offset + low[3] + 1
        yield f"@@ -{old_at},{high[2] - low[1]} +{new_at},{high[4] - low[3]} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in before[i1:i2])
                continue
            yield from (_line("-", line) for line in before[i1:i2])
            yield from (_line("+", line) for line in after[j1:j2])


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    return [*lines[:-1], lines[-1][:-1]] if lines[-1] != "\n" else lines[:-1]


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _line(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ no line end\n"
