"""Which letters changed between a removed line of a unified diff and the added line that takes its place."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_PART = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
MAX_LINE = 5_000
"""Longer lines are not compared letter by letter."""


@dataclass(frozen=True, slots=True)
class ChangedLetters:
    """Letters `start` to `end` (code points) of a line (from 0) are what is new, or what is gone."""

    line: int
    start: int
    end: int
    is_added: bool


def letter_changes(diff: str) -> tuple[ChangedLetters, ...]:
    """Runs of removed lines are paired with the run of added lines behind them, in order."""
    lines = diff.split("\n")
    found: list[ChangedLetters] = []
    for removed, added in _runs(lines):
        for old, new in zip(removed, added, strict=False):
            found.extend(_compare(lines, old, new))
    return tuple(found)


def line_numbers(diff: str) -> tuple[str, ...]:
    """The name of each line of a unified diff: its number in the newer text, of a removed one that in the older.

    Where a part begins, and what stands before the first, has none; () where no part says where it begins.
    """
    old = new = 0
    found: list[str] = []
    for line in diff.split("\n"):
        begins = _PART.match(line)
        if begins is not None:
            old, new = int(begins[1]), int(begins[2])
        is_numbered = begins is None and new > 0 and line[:1] in {" ", "+", "-"}
        found.append((str(old) if line[0] == "-" else str(new)) if is_numbered else "")
        old += is_numbered and line[0] != "+"
        new += is_numbered and line[0] != "-"
    return tuple(found) if any(found) else ()


def _runs(lines: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    removed: list[int] = []
    for mark, group in groupby(range(len(lines)), key=lambda at: _mark(lines[at])):
        run = list(group)
        if mark == "+" and removed:
            yield removed, run
        removed = run if mark == "-" else []


def _mark(line: str) -> str:
    return "" if line.startswith(("---", "+++")) else line[:1]


def _compare(lines: Sequence[str], old: int, new: int) -> Iterator[ChangedLetters]:
    before, after = lines[old], lines[new]
    if max(len(before), len(after)) > MAX_LINE:
        return
    limit = min(len(before), len(after)) - 1
    start = 1 + _common_length(limit, lambda first, last: before[1 + first : 1 + last] == after[1 + first : 1 + last])
    ends, others = len(before), len(after)
    tail = _common_length(
        limit + 1 - start,
        lambda first, last: before[ends - last : ends - first] == after[others - last : others - first],
    )
    indent = len(before) - 1 - len(before[1:].lstrip())
    if start + tail <= 2 + indent:
        return  # nothing in common: the colours of the whole lines say it already
    for line, text, is_added in ((old, before, False), (new, after, True)):
        if start < len(text) - tail:
            yield ChangedLetters(line, start, len(text) - tail, is_added)


def _common_length(most: int, is_same: Callable[[int, int], bool]) -> int:
    """The number of letters that are shared, by halving: slices compare far quicker than letters one by one."""
    low, high = 0, max(most, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if is_same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
