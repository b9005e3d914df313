"""A unified diff for the person who approves, in bounded time and size.

The head holds the SHA-256 of the new text, so that a cut diff still stands for exactly one content.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator

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
