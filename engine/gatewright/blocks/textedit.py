"""Find and replace in one text, and unified diffs, in bounded time and size.

A hunk matches at the line that its head names or, failing that, at exactly one other place behind the previous hunk;
models count lines badly, but the lines themselves have to match. Line ends: LF, or CRLF if all of the text has it. The
format is GNU diff's "detailed unified".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.pattern import LinearMatch, compile_linear
from gatewright.blocks.schema import Replace

_GROUP = re.compile(r"\\(.?)", re.DOTALL)
_MAX_PLACES = 100_000
_MAX_PATTERN = 4096


@frozen
class Splice:
    """Inserts ``inserted`` in place of ``removed`` characters from ``start`` on."""

    start: int
    removed: int
    inserted: str


def replacements(text: str, edit: Replace, limit: int) -> tuple[Splice, ...]:
    """Return the splices of an edit in order, without overlap; ``limit``: the most characters of the new text.

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
    raise ToolFailure(f"{what} at {places}: place {edit.nth} does not exist", code="nth-match")


def with_splices(text: str, splices: tuple[Splice, ...]) -> str:
    """Return the text after the splices."""
    parts: list[str] = []
    at = 0
    for splice in splices:
        parts += (text[at : splice.start], splice.inserted)
        at = splice.start + splice.removed
    return "".join((*parts, text[at:]))


def difference(old: str, new: str) -> Splice:
    """Return the one stretch in which two texts differ."""
    first = _common_prefix(old, new)
    tail = min(_common_prefix(old[first:][::-1], new[first:][::-1]), min(len(old), len(new)) - first)
    return Splice(first, len(old) - first - tail, new[first : len(new) - tail])


def _common_prefix(one: str, other: str) -> int:
    """Count the characters at the beginning that both share, by halving."""
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
        yield Splice(start, end - start, "" if is_passed_over else _fill(template, match, most))


def _template(new: str) -> list[str | int]:
    """Split a replacement into text and numbers of groups."""
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


def _fill(template: list[str | int], match: LinearMatch, most: int) -> str:
    """Fill in the replacement of one match; raises ToolFailure above ``most`` characters."""
    try:
        groups = {part: match.group(part) or "" for part in template if isinstance(part, int)}
    except IndexError:
        raise ToolFailure("the replacement names a group that the pattern does not have", code="bad-pattern") from None
    parts = [part if isinstance(part, str) else groups[part] for part in template]
    if sum(map(len, parts)) > most:
        raise _too_much()
    return "".join(parts)


_HEAD = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?")
_PREAMBLE = ("--- ", "+++ ", "diff ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ")
_BARE_LF = re.compile(r"(?<!\r)\n")
_MAX_HUNKS = 2000


@dataclass(slots=True)
class Hunk:
    """One hunk: the line that its head names (from 1), and the counts in its head.

    ``rows``: mark and line in the order of the patch, without line ends; ``old``: the lines that have to match;
    ``at_line``: the line of its head in the patch. ``old_open``, ``new_open``: the patch says that the last of those
    lines has no line end.
    """

    start: int
    old_count: int
    new_count: int
    at_line: int
    rows: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    old: list[str] = field(default_factory=list[str])
    new_seen: int = 0
    old_open: bool = False
    new_open: bool = False


def read_patch(patch: str) -> tuple[Hunk, ...]:
    """Read the hunks of a patch. Raises ToolFailure (``bad-patch``) with the line of the patch."""
    hunks: list[Hunk] = []
    lines = patch.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix("\r")
        if hunks and _takes(hunks[-1], line, number):
            continue
        head = _HEAD.fullmatch(line)
        if head:
            if hunks:
                _check_full(hunks[-1])
            old, new = (1 if count is None else int(count) for count in (head[2], head[4]))
            hunks.append(Hunk(int(head[1]), old, new, number))
        elif hunks or not (line.startswith(_PREAMBLE) or not line.strip()):
            raise _bad(
                number, "this is no part of a hunk; a patch is for one text, and its lines begin with ` `, `-`, `+`"
            )
        if len(hunks) > _MAX_HUNKS:
            raise _bad(number, f"more than {_MAX_HUNKS:,} hunks")
    if not hunks:
        raise ToolFailure("the patch holds no hunk: none of its lines begins with `@@ -`", code="bad-patch")
    _check_full(hunks[-1])
    return tuple(hunks)


def patch_splices(text: str, patch: str) -> tuple[Splice, ...]:
    """Return the splices of a patch in order. Raises ToolFailure: ``bad-patch``, ``patch-mismatch``."""
    hunks = read_patch(patch)
    ending = "\r\n" if "\r\n" in text and not _BARE_LF.search(text) else "\n"
    lines = _Lines(text, ending)
    splices: list[Splice] = []
    low, offset = 0, 0
    for number, hunk in enumerate(hunks, start=1):
        at = _place(lines, hunk, low, offset, number)
        offset = at - _line_in_head(hunk)
        splices += _splices(lines, hunk, at)
        low = at + len(hunk.old)
    return tuple(splices)


def _takes(hunk: Hunk, line: str, number: int) -> bool:
    """Add the line to the hunk, or return False if it does not belong there."""
    if line.startswith("\\"):
        if not hunk.rows:
            raise _bad(number, "`\\` says that the line before has no line end, and the patch has no line before")
        last = hunk.rows[-1][0]
        hunk.old_open = hunk.old_open or last != "+"
        hunk.new_open = hunk.new_open or last != "-"
        return True
    if len(hunk.old) >= hunk.old_count and hunk.new_seen >= hunk.new_count:
        return False
    mark, rest = line[:1] or " ", line[1:]
    if mark not in " -+":
        return False
    hunk.rows.append((mark, rest))
    hunk.new_seen += mark != "-"
    if mark != "+":
        hunk.old.append(rest)
    if len(hunk.old) > hunk.old_count or hunk.new_seen > hunk.new_count:
        raise _wrong_count(hunk)
    return True


def _check_full(hunk: Hunk) -> None:
    if (len(hunk.old), hunk.new_seen) != (hunk.old_count, hunk.new_count):
        raise _wrong_count(hunk)


def _wrong_count(hunk: Hunk) -> ToolFailure:
    return _bad(
        hunk.at_line,
        f"its head says {hunk.old_count} old and {hunk.new_count} new lines, "
        f"and it has {len(hunk.old)} and {hunk.new_seen}",
    )


def _bad(number: int, words: str) -> ToolFailure:
    return ToolFailure(f"line {number} of the patch: {words}", code="bad-patch")


class _Lines:
    """The lines of a text with their offsets; a last line counts without a line end, unless it is empty."""

    def __init__(self, text: str, ending: str) -> None:
        self.ending = ending
        self.size = len(text)
        self.items = text.split(ending)
        self.is_open = self.items[-1] != ""
        if not self.is_open:
            self.items.pop()
        self.starts = [0]
        for item in self.items:
            self.starts.append(self.starts[-1] + len(item) + len(ending))
        self._where: dict[str, list[int]] | None = None

    def begin(self, line: int) -> int:
        """Return the offset of a line; behind the last line the end of the text."""
        return min(self.starts[min(line, len(self.items))], self.size)

    def holds(self, wanted: list[str], at: int) -> bool:
        """Tell whether the text has these lines from line ``at`` (from 0) on."""
        return at >= 0 and self.items[at : at + len(wanted)] == wanted

    def places(self, wanted: list[str], low: int) -> list[int]:
        """Find these lines from line ``low`` on, at most two places."""
        if self._where is None:
            self._where = {}
            for at, item in enumerate(self.items):
                self._where.setdefault(item, []).append(at)
        rarest = min(range(len(wanted)), key=lambda number: len(self._lines(wanted[number])))
        found: list[int] = []
        for at in self._lines(wanted[rarest])[:1000]:
            if at - rarest >= low and self.holds(wanted, at - rarest):
                found.append(at - rarest)
                if len(found) == 2:
                    break
        return found

    def _lines(self, item: str) -> list[int]:
        return (self._where or {}).get(item, [])


def _line_in_head(hunk: Hunk) -> int:
    """Return the line (from 0) that the head names; without old lines the head names the line before."""
    return hunk.start if hunk.old_count == 0 else hunk.start - 1


def _place(lines: _Lines, hunk: Hunk, low: int, offset: int, number: int) -> int:
    """Find the line (from 0) where the hunk applies. Raises ToolFailure (``patch-mismatch``)."""
    at = _line_in_head(hunk)
    old = hunk.old
    if not old:
        at += offset
        if not low <= at <= len(lines.items):
            raise ToolFailure(
                f"hunk {number} of the patch goes behind line {at}, and the text has {len(lines.items)} lines",
                code="patch-mismatch",
            )
        return at
    for place in (at, at + offset):
        if place >= low and lines.holds(old, place):
            return place
    found = lines.places(old, low)
    if len(found) == 1:
        return found[0]
    raise _mismatch(lines, hunk, number, several=bool(found))


def _mismatch(lines: _Lines, hunk: Hunk, number: int, *, several: bool) -> ToolFailure:
    if several:
        words = "its lines stand at several places and not at the line it names: give more of the surroundings"
        return ToolFailure(f"hunk {number} of the patch: {words}", code="patch-mismatch")
    at = _line_in_head(hunk)
    for step, line in enumerate(hunk.old):
        here = lines.items[at + step] if 0 <= at + step < len(lines.items) else None
        if here != line:
            where = f"line {at + step + 1} of the text"
            words = f"{where} is not what the patch expects there" if here is not None else f"{where} does not exist"
            return ToolFailure(
                f"hunk {number} of the patch does not match, and nothing was changed: {words}", code="patch-mismatch"
            )
    return ToolFailure(
        f"hunk {number} of the patch stands before the end of the hunk above it: hunks go in order",
        code="patch-mismatch",
    )


def _splices(lines: _Lines, hunk: Hunk, at: int) -> list[Splice]:
    """Split the hunk's changes into runs, so that context lines stay untouched."""
    ends_text = at + len(hunk.old) >= len(lines.items)
    splices: list[Splice] = []
    run_start, removed, added = at, 0, list[str]()
    for mark, line in [*hunk.rows, (" ", "")]:
        if mark == "-":
            removed += 1
        elif mark == "+":
            added.append(line)
        else:
            if removed or added:
                splices.append(_run(lines, run_start, removed, added))
            run_start, removed, added = run_start + removed + 1, 0, []
    return _open_ended(lines, hunk, splices) if ends_text else splices


def _run(lines: _Lines, start: int, removed: int, added: list[str]) -> Splice:
    first = lines.begin(start)
    inserted = "".join(f"{line}{lines.ending}" for line in added)
    if added and start == len(lines.items) and lines.is_open:
        inserted = lines.ending + inserted  # behind a last line without an end
    return Splice(first, lines.begin(start + removed) - first, inserted)


def _open_ended(lines: _Lines, hunk: Hunk, splices: list[Splice]) -> list[Splice]:
    """Adapt the hunk at the end of the text: the patch decides whether the last line has an end, else the text does."""
    stays_open = hunk.new_open or (lines.is_open and not hunk.old_open)
    last = splices[-1] if splices else None
    reaches_end = last is not None and last.start + last.removed == lines.size
    if last is None or not reaches_end:  # the last line is context: the patch changes only its end
        if stays_open == lines.is_open or not (hunk.old_open or hunk.new_open):
            return splices
        if stays_open:
            return [*splices, Splice(lines.size - len(lines.ending), len(lines.ending), "")]
        return [*splices, Splice(lines.size, 0, lines.ending)]
    if not stays_open:
        return splices
    if last.inserted.endswith(lines.ending):
        return [*splices[:-1], Splice(last.start, last.removed, last.inserted.removesuffix(lines.ending))]
    if last.inserted or not last.start or last.removed == 0:
        return splices
    # the last lines are removed: the line above becomes the last, without an end
    start = last.start - len(lines.ending)
    return [*splices[:-1], Splice(start, last.removed + len(lines.ending), "")]
