"""A unified diff for a person who has to say yes, in bounded time and size. It knows no file.

The head holds the SHA-256 of the new text, so that a diff that was cut still stands for exactly one content.
"""

from __future__ import annotations

import difflib
from itertools import takewhile

from gatewright.sources.filetext import digest_of

_MAX_LINES = 1_000
_MAX_CHARS = 65_536
_CONTEXT = 3


def diff_text(relative: str, old: str, new: str) -> str:
    """The difference from ``old`` to ``new``, empty when they are equal."""
    if old == new:
        return ""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    first, last = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    hunks = _hunks(before[first : len(before) - last], after[first : len(after) - last], first)
    digest = digest_of(new.encode("utf-8", "replace"))
    text = f"--- {relative}\n+++ {relative} sha256:{digest}\n" + "".join(hunks)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}\n[diff cut, {len(text):,} characters in all]\n"


def _common(before: list[str], after: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _hunks(before: list[str], after: list[str], offset: int) -> list[str]:
    if len(before) + len(after) > _MAX_LINES:
        start = offset + 1
        header = f"@@ -{start},{len(before)} +{start},{len(after)} @@\n"
        return [header, *(_line("-", line) for line in before), *(_line("+", line) for line in after)]
    hunks: list[str] = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        low, high = group[0], group[-1]
        old_at, new_at = offset + low[1] + 1, offset + low[3] + 1
        hunks.append(f"@@ -{old_at},{high[2] - low[1]} +{new_at},{high[4] - low[3]} @@\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                hunks.extend(_line(" ", line) for line in before[i1:i2])
                continue
            hunks.extend(_line("-", line) for line in before[i1:i2])
            hunks.extend(_line("+", line) for line in after[j1:j2])
    return hunks


def _line(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ no line end\n"
