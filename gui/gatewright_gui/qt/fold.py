"""Which lines of indented JSON belong together, and what is left of a text where some of them are folded away."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from gatewright_gui.qt.language import counted

_OPENING, _CLOSING = "{[", "}]"
_NAME = '"name": "'
_NAME_WITHIN = 6
"""How many lines of an object in a list are looked at for its name."""
_RETURN = re.compile("\r\n?")
_BREAKS = {0x2029: "\u2028", 0xFDD0: "\ufffd", 0xFDD1: "\ufffd"}
"""What a text document would take for the end of a line, within one: a break that stays in its line, or no letter."""


class Fold(NamedTuple):
    """Lines `first` to `last` (from 0) are one object or list; `path` stays the same when others come or go.

    A tuple: the preview of 1,000 tools has 9,000 of them, which come from the worker process while the window waits.
    """

    first: int
    last: int
    path: str
    name: str = ""
    """Of a part of a list: what it calls itself."""

    @property
    def inner(self) -> int:
        """The number of lines between the brackets."""
        return self.last - self.first - 1


@dataclass(slots=True)
class _Open:
    line: int
    path: str
    name: str = ""
    children: int = 0
    names: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Foldable:
    """A text in lines, with what can be folded of it by first lines. To be made beside the window where it is long."""

    text: str
    lines: Sequence[str]
    folds: Mapping[int, Fold] = field(default_factory=dict[int, Fold])

    @classmethod
    def plain(cls, text: str) -> Self:
        """Nothing can be folded."""
        return cls(text, _lines(text))

    @classmethod
    def json(cls, text: str) -> Self:
        """Every object and list that has lines of its own can be folded; the text is indented already."""
        lines = _lines(text)
        return cls(text, lines, {fold.first: fold for fold in _json_folds(lines)})

    @property
    def below_root(self) -> frozenset[str]:
        """Every fold but the outermost: what folding all of it closes."""
        return frozenset(fold.path for fold in self.folds.values() if fold.path)

    @property
    def first_level(self) -> frozenset[str]:
        """The folds right below the outermost one."""
        return frozenset(fold.path for fold in self.folds.values() if fold.path.count("/") == 1)


def _lines(text: str) -> list[str]:
    """The lines, as many as a text document makes of them."""
    if "\r" in text:
        text = _RETURN.sub("\n", text)
    return (text if text.isascii() else text.translate(_BREAKS)).split("\n")


def _json_folds(lines: Sequence[str]) -> list[Fold]:
    """In the order of their first lines."""
    found: list[Fold] = []
    stack: list[_Open] = []
    for number, line in enumerate(lines):
        end = line[-1:]
        if not end:
            continue
        if end in _OPENING:
            stack.append(_part_at(lines, number, stack[-1] if stack else None))
        elif stack and (line[-2:-1] if end == "," else end) in _CLOSING and line.lstrip()[:1] in _CLOSING:
            done = stack.pop()
            if number - done.line > 1:
                found.append(Fold(done.line, number, done.path, done.name))
    return sorted(found, key=lambda fold: fold.first)


def _part_at(lines: Sequence[str], number: int, parent: _Open | None) -> _Open:
    """The part that opens here, and the way to it: by keys, and in lists by name where the parts have one."""
    if parent is None:
        return _Open(number, "")
    parent.children += 1
    line = lines[number].lstrip()
    if line.startswith('"'):
        key = line[1 : line.rfind('":')]
        return _Open(number, f"{parent.path}/{key}")
    name = _name(lines, number) or ""
    step = name if name and name not in parent.names else f"{name}#{parent.children}"
    parent.names.add(step)
    return _Open(number, f"{parent.path}/{step}", name)


def _name(lines: Sequence[str], number: int) -> str | None:
    for line in lines[number + 1 : number + 1 + _NAME_WITHIN]:
        words = line.lstrip()
        if words.startswith(_NAME):
            return words[len(_NAME) :].partition('"')[0]
    return None


def summary(fold: Fold) -> str:
    """The words between the brackets of a closed fold."""
    lines = f"… {counted(fold.inner, 'line', 'lines')}"
    return f' "{fold.name}" {lines} ' if fold.name else lines


class Folded:
    """A text with some of its folds closed: the rows that are left, and which line of the text each of them is."""

    def __init__(self, whole: Foldable, closed: Collection[str] = ()) -> None:
        self.whole = whole
        self.closed = frozenset(closed)
        self.rows: Sequence[str] = whole.lines
        self._starts: list[int] | None = None
        """The line of each row; None where every line is a row."""
        shut = [fold for fold in whole.folds.values() if fold.path in self.closed] if self.closed else []
        if shut:
            self._fold(shut)

    def _fold(self, shut: Iterable[Fold]) -> None:
        starts: list[int] = []
        rows: list[str] = []
        lines, done = self.whole.lines, 0
        for fold in shut:
            if fold.first < done:
                continue
            starts.extend(range(done, fold.first + 1))
            rows.extend(lines[done : fold.first])
            rows.append(f"{lines[fold.first]}{summary(fold)}{lines[fold.last].lstrip()}")
            done = fold.last + 1
        starts.extend(range(done, len(lines)))
        rows.extend(lines[done:])
        self._starts, self.rows = starts, rows

    def line_of(self, row: int) -> int:
        """The line of the text (from 0) that a row begins with."""
        return row if self._starts is None else self._starts[min(row, len(self._starts) - 1)]

    def row_of(self, line: int) -> int:
        """The row that a line is in; where it is folded away, that of the fold."""
        return line if self._starts is None else bisect_right(self._starts, line) - 1

    def is_shown(self, line: int) -> bool:
        """Tell whether the line begins a row of its own."""
        if self._starts is None:
            return True
        at = bisect_left(self._starts, line)
        return at < len(self._starts) and self._starts[at] == line

    def fold_at(self, row: int) -> Fold | None:
        """The fold that begins in a row."""
        return self.whole.folds.get(self.line_of(row))

    def is_closed(self, fold: Fold) -> bool:
        """Tell whether its lines are folded away."""
        return fold.path in self.closed

    def around(self, line: int) -> tuple[Fold, ...]:
        """Every fold that a line is in, the innermost last."""
        return tuple(fold for fold in self.whole.folds.values() if fold.first <= line <= fold.last)

    def hiding(self, line: int) -> frozenset[str]:
        """The paths of the closed folds that a line is folded away in."""
        return frozenset(fold.path for fold in self.around(line) if fold.first < line and self.is_closed(fold))

    def whole_text(self, first_row: int, last_row: int) -> str:
        """The whole text of rows, with what is folded away in them."""
        lines = self.whole.lines
        after = self.line_of(last_row + 1) if last_row + 1 < len(self.rows) else len(lines)
        return "\n".join(lines[self.line_of(first_row) : after])
