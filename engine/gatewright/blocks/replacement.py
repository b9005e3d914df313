"""Find and replace in a text as splices, in linear time and bounded size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.pattern import LinearMatch, compile_linear

if TYPE_CHECKING:
    from gatewright.blocks.edit import Replace

_GROUP = re.compile(r"\\(.?)", re.DOTALL)
_MAX_PLACES = 100_000
_MAX_PATTERN = 4096


@frozen
class Splice:
    """``inserted`` in the place of ``removed`` characters from ``start`` on."""

    start: int
    removed: int
    inserted: str


def replacements(text: str, edit: Replace, limit: int) -> tuple[Splice, ...]:
    """The splices of an edit, in order, not overlapping; ``limit``: characters that the text may have afterwards.

    Raises ToolFailure: ``no-match``, ``nth-match``, ``bad-pattern``, ``bad-arguments``, ``too-large``.
    """
    _check(edit)
    splices: list[Splice] = []
    length = len(text)
    most = limit + length
    count = 0
    for splice in _regex(text, edit, most) if edit.regex else _literal(text, edit):
        count += 1
        if edit.nth is not None and count < edit.nth:
            continue
        splices.append(splice)
        length += len(splice.inserted) - splice.removed
        if not edit.everywhere:
            break
        if count >= _MAX_PLACES or length > most:
            raise _too_much()
    if splices:
        return tuple(splices)
    what = "the pattern matches" if edit.regex else "the old text stands"
    if not count:
        raise ToolFailure(f"{what} nowhere in the block (0 places)", code="no-match")
    places = "1 place" if count == 1 else f"{count} places"
    raise ToolFailure(f"{what} at {places}: there is no place {edit.nth}", code="nth-match")


def with_splices(text: str, splices: tuple[Splice, ...]) -> str:
    """The text after the splices."""
    parts: list[str] = []
    at = 0
    for splice in splices:
        parts += (text[at : splice.start], splice.inserted)
        at = splice.start + splice.removed
    return "".join((*parts, text[at:]))


def difference(old: str, new: str) -> Splice:
    """The one run in which two texts differ."""
    first = _common_prefix(old, new)
    tail = min(_common_prefix(old[first:][::-1], new[first:][::-1]), min(len(old), len(new)) - first)
    return Splice(first, len(old) - first - tail, new[first : len(new) - tail])


def _common_prefix(one: str, other: str) -> int:
    """How many characters both begin with, by halves."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _check(edit: Replace) -> None:
    if not edit.old:
        raise ToolFailure("the text to be replaced is empty", code="bad-arguments")
    if edit.nth is not None and (edit.nth < 1 or edit.everywhere):
        raise ToolFailure("`nth` counts places from 1, and does not go with replacing everywhere", code="bad-arguments")
    if edit.regex and len(edit.old) > _MAX_PATTERN:
        raise ToolFailure(f"the pattern is longer than {_MAX_PATTERN:,} characters", code="bad-pattern")


def _too_much() -> ToolFailure:
    return ToolFailure("this would replace too much at once: replace fewer places", code="too-large")


def _literal(text: str, edit: Replace) -> Iterator[Splice]:
    at = text.find(edit.old)
    while at >= 0:
        yield Splice(at, len(edit.old), edit.new)
        at = text.find(edit.old, at + len(edit.old))


def _regex(text: str, edit: Replace, most: int) -> Iterator[Splice]:
    try:
        pattern = compile_linear(edit.old)
    except ValueError as error:
        raise ToolFailure(f"the pattern cannot be used: {error}", code="bad-pattern") from None
    template = _template(edit.new)
    for number, match in enumerate(pattern.finditer(text), start=1):
        start, end = match.span()
        is_passed_over = edit.nth is not None and number < edit.nth
        yield Splice(start, end - start, "" if is_passed_over else _filled(template, match, most))


def _template(new: str) -> list[str | int]:
    """The parts of a replacement: text, and numbers of groups."""
    parts: list[str | int] = []
    at = 0
    for found in _GROUP.finditer(new):
        parts.append(new[at : found.start()])
        mark = found.group(1)
        if mark not in "0123456789\\" or not mark:
            raise ToolFailure(
                "in the replacement a backslash goes before a group's number or another backslash",
                code="bad-pattern",
            )
        parts.append("\\" if mark == "\\" else int(mark))
        at = found.end()
    return [*parts, new[at:]]


def _filled(template: list[str | int], match: LinearMatch, most: int) -> str:
    """The replacement of one match; raises ToolFailure where it has more than ``most`` characters."""
    try:
        groups = {part: match.group(part) or "" for part in template if isinstance(part, int)}
    except IndexError:
        raise ToolFailure("the replacement names a group that the pattern does not have", code="bad-pattern") from None
    parts = [part if isinstance(part, str) else groups[part] for part in template]
    if sum(map(len, parts)) > most:
        raise _too_much()
    return "".join(parts)
