"""One gitignore pattern as git reads it (dir.c, wildmatch.c of git 2.39): its parts and a matcher. It knows no levels.

Text is matched byte by byte, as git does: callers hand in UTF-8 bytes as Latin-1 text (see ``as_bytes_text``).
``?`` and ``[^a]`` therefore stand for one byte. Matching takes time linear in the text: Python's ``re`` where each
piece is atomic (no ``**``), RE2 elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gatewright.base.pattern import compile_linear

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PATTERN = 4096
_SPECIAL = frozenset("*?[\\")
_SLASH = ord("/")


class Wild(Enum):
    """The tokens of a pattern that stand for more than one text; the rest are sets of byte values."""

    STAR = "[^/]*"
    DEEP_STAR = ".*"
    DEEP_FOLDERS = "(?:.*/)?"


Token = frozenset[int] | Wild


@dataclass(frozen=True, slots=True)
class GitPattern:
    """A pattern in parts. ``tokens`` None: git never matches it. ``basename``: it looks at the last component only."""

    folders_only: bool
    basename: bool
    tokens: tuple[Token, ...] | None


def as_bytes_text(text: str) -> str:
    """The UTF-8 bytes of ``text``, each as one character below 256; undecodable file names keep their bytes."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("latin-1")


def parse_git_pattern(written: str) -> GitPattern:
    """The parts of one line of an ignore file, without ``!``."""
    line = as_bytes_text(written.removesuffix("\r"))
    line = "" if line.startswith("#") else _without_trailing_spaces(line)
    folders_only = line.endswith("/")
    body = line.removesuffix("/")
    basename = "/" not in body
    if not body:
        return GitPattern(folders_only, basename=True, tokens=None)
    return GitPattern(folders_only, basename, _tokens(body.removeprefix("/"), basename=basename))


def _without_trailing_spaces(line: str) -> str:
    at, kept = 0, 0
    while at < len(line):
        if line[at] == "\\":
            at += 1
            kept = min(at + 1, len(line))
        elif line[at] != " ":
            kept = at + 1
        at += 1
    return line[:kept]


def _tokens(body: str, *, basename: bool) -> tuple[Token, ...] | None:
    """The tokens; git cuts the literal start off first, so that ``**`` right behind it counts as a whole component."""
    literal = next((at for at, char in enumerate(body) if char in _SPECIAL), len(body))
    tokens: list[Token] = [frozenset({ord(char)}) for char in body[:literal]]
    at = literal
    while at < len(body):
        char = body[at]
        if char == "*":
            token, at = _stars(body, at, start=literal, basename=basename)
        elif char == "?":
            token, at = _any_but_slash(), at + 1
        elif char == "[":
            bracket = _bracket(body, at + 1)
            if bracket is None:
                return None
            token, at = bracket
        else:
            at += char == "\\"
            if at == len(body):
                return None
            token, at = frozenset({ord(body[at])}), at + 1
        tokens.append(token)
    return tuple(tokens)


def _stars(body: str, at: int, *, start: int, basename: bool) -> tuple[Token, int]:
    end = at
    while end < len(body) and body[end] == "*":
        end += 1
    whole = (at == start or body[at - 1] == "/") and (end == len(body) or body.startswith(("/", "\\/"), end))
    if end - at == 1 or basename or not whole:
        return Wild.STAR, end
    return (Wild.DEEP_FOLDERS, end + 1) if body.startswith("/", end) else (Wild.DEEP_STAR, end)


def _any_but_slash() -> frozenset[int]:
    return frozenset(range(1, 256)) - {_SLASH}


def _bracket(body: str, at: int) -> tuple[frozenset[int], int] | None:
    """The set of a bracket expression whose ``[`` stands before ``at``, and the place after it; None: unusable."""
    negated = body[at : at + 1] in {"!", "^"}
    at += negated
    members: set[int] = set()
    before: int | None = None
    first = True
    while first or body[at : at + 1] != "]":
        first = False
        step = _bracket_item(body, at, before)
        if step is None:
            return None
        found, before, at = step
        members |= found
    allowed = _any_but_slash()
    return (allowed - members if negated else allowed & members), at + 1


def _bracket_item(body: str, at: int, before: int | None) -> tuple[frozenset[int], int | None, int] | None:
    """One member, range or class at ``at``: the bytes, what a following ``-`` starts from, and the next place."""
    char = body[at : at + 1]
    if char == "-" and before is not None and body[at + 1 : at + 2] not in {"", "]"}:
        at += 1 + (body[at + 1] == "\\")
        return (frozenset(range(before, ord(body[at]) + 1)), None, at + 1) if at < len(body) else None
    if body.startswith("[:", at):
        close = body.find("]", at + 2)
        if close < 0:
            return None
        if close > at + 2 and body[close - 1] == ":":
            named = _CLASSES.get(body[at + 2 : close - 1])
            return None if named is None else (named, None, close + 1)
    at += char == "\\"
    if at >= len(body):
        return None
    return frozenset({ord(body[at])}), ord(body[at]), at + 1


def _ascii(*spans: tuple[str, str]) -> frozenset[int]:
    return frozenset(code for low, high in spans for code in range(ord(low), ord(high) + 1))


_CLASSES = {
    "alnum": _ascii(("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": _ascii(("A", "Z"), ("a", "z")),
    "blank": frozenset({ord(" "), ord("\t")}),
    "cntrl": _ascii(("\x01", "\x1f"), ("\x7f", "\x7f")),
    "digit": _ascii(("0", "9")),
    "graph": _ascii(("!", "~")),
    "lower": _ascii(("a", "z")),
    "print": _ascii((" ", "~")),
    "punct": _ascii(("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": frozenset(map(ord, " \t\n\r")),
    "upper": _ascii(("A", "Z")),
    "xdigit": _ascii(("0", "9"), ("A", "F"), ("a", "f")),
}


def literal_of(tokens: tuple[Token, ...]) -> str | None:
    """The one text that the tokens match, or None when there are several."""
    chars: list[str] = []
    for token in tokens:
        if isinstance(token, Wild) or len(token) != 1:
            return None
        chars.append(chr(next(iter(token))))
    return "".join(chars)


def regex_of(tokens: tuple[Token, ...]) -> str:
    """A regular expression for ``fullmatch`` with DOTALL, in syntax that both ``re`` and RE2 read."""
    return "".join(token.value if isinstance(token, Wild) else _byte_class(token) for token in tokens)


def _byte_class(members: frozenset[int]) -> str:
    if len(members) == 1:
        return _escape(next(iter(members)))
    if not members:
        return r"[^\x00-\xff]"
    if _SLASH not in members and len(members) == 254:
        return "[^/]"
    codes = sorted(members)
    starts = [code for code in codes if code - 1 not in members]
    ends = [code for code in codes if code + 1 not in members]
    return "[" + "".join(f"\\x{low:02x}-\\x{high:02x}" for low, high in zip(starts, ends, strict=True)) + "]"


def _escape(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "/_") else f"\\x{code:02x}"


def shallow_regex_of(tokens: tuple[Token, ...]) -> str | None:
    """The same for ``re`` without nested backtracking, or None with ``**``.

    Inside one component the leftmost place of a piece between two stars is as good as any, so it is made atomic.
    """
    out: list[str] = []
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token is Wild.STAR:
            pieces.append([])
        elif isinstance(token, Wild):
            return None
        elif token == frozenset({_SLASH}):
            out.append(_component(pieces) + "/")
            pieces = [[]]
        else:
            pieces[-1].append(_byte_class(token))
    return "".join(out) + _component(pieces)


def _component(pieces: list[list[str]]) -> str:
    first, *rest = ["".join(piece) for piece in pieces]
    if not rest:
        return first
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1] if piece)
    return f"{first}{middle}[^/]*{rest[-1]}"


def matcher_of(tokens: tuple[Token, ...]) -> Callable[[str], object | None]:
    """A function that says whether a whole text (as bytes text) matches."""
    shallow = shallow_regex_of(tokens)
    if shallow is not None:
        return re.compile(shallow, re.DOTALL).fullmatch
    return compile_linear(f"(?s){regex_of(tokens)}").fullmatch
