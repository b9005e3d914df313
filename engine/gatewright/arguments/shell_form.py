"""The texts that a word of a shell command may become, and the files that each of them may name.

In a word, a control character stands for a sign that the shell would act on, and half of a surrogate pair for an
expansion. A command can hold neither, so one text carries both the known and the unknown parts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

from gatewright.arguments.path import MAX_NAME_BYTES
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.base.pattern import compile_linear

MAX_FORMS = 64
"""The most texts that one word may become, over all values of its variables."""
MAX_FORM_CHARS = 128 * 1024
"""The most characters of all forms in one command, and of what its braces expand to."""
_MAX_WORDS = 1_000
"""The most words that one word with braces may become."""
_MAX_NESTED = 20
WRITE_PLAINLY = "write the command in plain shell: simple commands with `|`, `&&`, `||` and `;`, and quoted words"
_SIGNS = "*?[]!^{},~"
MARKS = {sign: chr(0x0E + at) for at, sign in enumerate(_SIGNS)}
SPLIT = "\x18"
"""The mark for blanks in a variable's value, which end a word."""
WITHOUT_MARKS = {ord(mark): sign for sign, mark in MARKS.items()}
OPEN, _COMMA, _CLOSE, HOME = (MARKS[sign] for sign in "{,}~")
_GLOBS = "".join(MARKS[sign] for sign in "*?[]!^")
GLOB = late_regex(f"[{re.escape(_GLOBS)}]")
MARKED = late_regex(f"([{re.escape(''.join(MARKS.values()))}\ud800-\udfff])")
_BRACE = late_regex(f"[{OPEN}{_COMMA}{_CLOSE}]")
TO_GLOBS = {ord(sign): MARKS[sign] for sign in "*?[]"}
FIRST_HOLE, MAX_HOLES = 0xD800, 0x800
_TOKEN = late_regex(r"[^\s;|&()<>`'\"$={}]+")

_RANGE = late_regex(r"(?:(-?[0-9]{1,3})\.\.(-?[0-9]{1,3})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?[0-9]{1,3}))?")
_SIGN = late_regex(r"[=@:,;]")
"""Signs behind or between which a program may take a part of an argument for a name."""
_MAX_SIGNS = 16


@frozen
class CommandRefused:
    """The reason for refusing a command: ``reason`` for the operator, ``hint`` for the model, which echoes nothing."""

    code: str
    reason: str
    hint: str


class Refusal(Exception):
    """Stops the reader; ``refused`` goes back to the caller."""

    def __init__(self, code: str, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.refused = CommandRefused(f"shell-{code}", reason, hint)

    @classmethod
    def of(cls, refused: CommandRefused) -> Refusal:
        """Wrap a refusal that another reader returned."""
        made = cls(refused.code, refused.reason, refused.hint)
        made.refused = refused
        return made


def plain(form: str) -> str:
    """Return a form of a word with its marks as signs again."""
    return form.translate(WITHOUT_MARKS)


def places_in(form: str) -> list[str] | None:
    """Return the files that a form of a word may name, whole or behind an option or sign: `-fn`, `if=n`, `x=@n`.

    A pattern names the folders that it begins in, and itself where nothing fits it. None: it may lead above them.
    """
    found = GLOB.search(form)
    if found is None:
        return [one for one in _names(form) if one]
    folder = form[: form.rfind("/", 0, found.start()) + 1]
    if any(map(_may_climb, form[len(folder) :].split("/"))):
        return None
    written = _names(plain(form))
    return [*(one.rstrip("/") or one[:1] or "." for one in _names(folder)), *(one for one in written if one)]


def _names(text: str) -> list[str]:
    """Return the text, and the parts of it behind signs or an option."""
    found = [text, *_SIGN.split(text), *(text[sign.end() :] for sign in islice(_SIGN.finditer(text), _MAX_SIGNS))]
    if text.startswith("-") and not text.startswith("--"):
        end = len(text.partition("/")[0])
        found += (text[at:] for at in range(max(2, end - MAX_NAME_BYTES), end + 1))
    return found


def _may_climb(step: str) -> bool:
    """Tell whether a step of a pattern is `..` or may match it: some shells let `.*` do that."""
    rest = step[1:]
    return step[:1] == "." and (
        MARKS["["] in rest or (rest.count(".") <= 1 and all(c in _GLOBS or c == "." for c in rest) and rest != "")
    )


def programs_in(form: str, known: Iterable[str]) -> Iterator[str]:
    """Yield the ``known`` programs that a form of a word may name, by a path or within a command."""
    for token in _TOKEN.findall(form):
        bare = token.rpartition("/")[2].lower()
        if GLOB.search(bare) is None:
            if bare in known:
                yield bare
            continue
        fits = compile_linear("".join(_pattern(bare)))
        yield from (name for name in known if fits.fullmatch(name))


def _pattern(pattern: str) -> Iterator[str]:
    """Yield the regular expression for all that a pattern may match; brackets may match any letter."""
    for piece in re.split(f"({MARKS['[']}[^{MARKS[']']}]*{MARKS[']']}?|[{re.escape(_GLOBS)}])", pattern):
        mark = piece[:1]
        if mark == MARKS["["]:
            yield "." if piece.endswith(MARKS["]"]) else ".*"
        elif mark and mark in _GLOBS:
            yield {MARKS["*"]: ".*", MARKS["?"]: "."}.get(mark, re.escape(mark.translate(WITHOUT_MARKS)))
        else:
            yield re.escape(piece)


def spread(text: str, left: int) -> list[str]:
    """Expand the braces of a text."""
    closing: dict[int, int] = {}
    commas: dict[int, list[int]] = {}
    opened: list[int] = []
    for found in _BRACE.finditer(text):
        at = found.start()
        if found[0] == OPEN:
            opened.append(at)
            commas[at] = []
        elif opened and found[0] == _CLOSE:
            if len(opened) > _MAX_NESTED:
                raise Refusal("too-deep", "braces in braces, too deep", WRITE_PLAINLY)
            closing[opened.pop()] = at
        elif opened:
            commas[opened[-1]].append(at)

    def between(start: int, stop: int) -> list[str]:
        found, at = [""], start
        for opening in starts[bisect_left(starts, start) : bisect_left(starts, stop)]:
            if opening < at:
                continue
            end, before = closing[opening], text[at:opening]
            inner = alternatives(opening, end)
            if len(found) * len(inner) > _MAX_WORDS or len(found) * sum(map(len, inner)) > left:
                raise Refusal("too-many-words", "braces that stand for too many words", "use shorter commands")
            found = [f"{one}{before}{more}" for one in found for more in inner]
            at = end + 1
        return [one + text[at:stop] for one in found]

    def alternatives(opening: int, end: int) -> list[str]:
        if cuts := commas[opening]:
            edges = zip((opening, *cuts), (*cuts, end), strict=True)
            return [one for start, stop in edges for one in between(start + 1, stop)]
        if found := _RANGE.fullmatch(text, opening + 1, end):
            return _sequence(found)
        return [f"{{{one}}}" for one in between(opening + 1, end)]

    starts = sorted(closing)
    return between(0, len(text))


def _sequence(found: re.Match[str]) -> list[str]:
    """Return the numbers or letters of `{1..9}`, `{a..e..2}`."""
    first, last, start, stop, step = found.groups()
    by = abs(int(step or 1)) or 1
    if start:
        low, high = ord(start), ord(stop)
        return [chr(code) for code in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]
    low, high = int(first), int(last)
    width = (
        max(len(first), len(last))
        if any(one.lstrip("-")[:1] == "0" and len(one.lstrip("-")) > 1 for one in (first, last))
        else 0
    )
    return [f"{n:0{width}}" for n in (range(low, high + 1, by) if low <= high else range(low, high - 1, -by))]
