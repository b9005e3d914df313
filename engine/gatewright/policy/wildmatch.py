"""One gitignore pattern as git reads it (dir.c, wildmatch.c of git 2.39): its parts, and a regular expression for them.

Text is matched byte by byte, as git does, so ``?`` and ``[^a]`` stand for one byte: a character of the parts, of the
regular expression and of the text that it is asked about (``byte_text``) is a byte of UTF-8. pathspec's own reading of
a line is not git's (docs/architecture.md), and gives no parts, which rooms, Seatbelt and the search for rules that hide
others need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cache

from gatewright.base.frozen import frozen

MAX_PATTERN = 4096
_MAX_STEPS = 100
"""The most folders of a pattern that are told apart where it is asked what may match below one."""
_SPECIAL = frozenset("*?[\\")
_SLASH_ALONE = frozenset({ord("/")})
_NOTHING = r"[^\x00-\xff]"
"""A regular expression that no byte matches."""
_LAST_SPACES = re.compile(r"(\\.?)| +\Z", re.DOTALL)
"""The spaces at the end of a line, unless they are escaped; or an escape, which is kept."""
_CLASS = re.compile(r"\[:([^\]]*):\]")


class Wild(Enum):
    """The tokens of a pattern that stand for more than one text; the rest are sets of byte values."""

    STAR = "[^/]*"
    DEEP_STAR = ".*"
    DEEP_FOLDERS = "(?:.*/)?"


Token = frozenset[int] | Wild


@frozen
class GitPattern:
    """A pattern in parts. ``tokens`` None: git never matches it. ``basename``: it looks at the last component only."""

    folders_only: bool
    basename: bool
    tokens: tuple[Token, ...] | None


def as_bytes(text: str) -> bytes:
    """The UTF-8 bytes of ``text``; undecodable file names keep their bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def byte_text(text: str) -> str:
    """The bytes of ``text``, each as the character of its value."""
    return text if text.isascii() else as_bytes(text).decode("latin-1")


def parse_git_pattern(written: str) -> GitPattern:
    """The parts of one line of an ignore file that names something, without ``!``."""
    line = _LAST_SPACES.sub(r"\1", byte_text(written.removesuffix("\r")))
    body = line.removesuffix("/")
    return GitPattern(line != body, "/" not in body, _tokens(body.removeprefix("/")))


def _tokens(body: str) -> tuple[Token, ...] | None:
    """The tokens; git cuts the literal start off first, so that ``**`` right behind it counts as a whole component."""
    literal = next((at for at, char in enumerate(body) if char in _SPECIAL), len(body))
    tokens: list[Token] = [frozenset({ord(char)}) for char in body[:literal]]
    at = literal
    while at < len(body):
        char = body[at]
        if char == "*":
            token, at = _stars(body, at, start=literal)
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


def _stars(body: str, at: int, *, start: int) -> tuple[Token, int]:
    end = at
    while end < len(body) and body[end] == "*":
        end += 1
    whole = (at == start or body[at - 1] == "/") and (end == len(body) or body.startswith(("/", "\\/"), end))
    if end - at == 1 or not whole:
        return Wild.STAR, end
    return (Wild.DEEP_FOLDERS, end + 1) if body.startswith("/", end) else (Wild.DEEP_STAR, end)


@cache
def _any_but_slash() -> frozenset[int]:
    return frozenset(range(1, 256)) - _SLASH_ALONE


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
    if (named := _CLASS.match(body, at)) is not None:
        members = _CLASSES.get(named[1])
        return None if members is None else (members, None, named.end())
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


def path_regex(pattern: GitPattern) -> str:
    """A regular expression that is found in a canonical path (its bytes) if the pattern covers it.

    The pattern covers what it names and whatever lies below. The path of a folder ends with ``/``.
    """
    if pattern.tokens is None:
        return _NOTHING
    words = [token.value if isinstance(token, Wild) else _byte_class(token) for token in pattern.tokens]
    if pattern.tokens and isinstance(pattern.tokens[-1], Wild) and _is_whole(pattern.tokens[:-1]):
        words[-1] = f"[^/]{words[-1]}"  # without it `docs/*` would be found in `docs/`
    above = Wild.DEEP_FOLDERS.value if pattern.basename else ""
    return f"^{above}{''.join(words)}" + ("/" if pattern.folders_only else "(?:/|$)")


def _is_whole(before: Sequence[Token]) -> bool:
    """Tell whether a name begins behind these tokens."""
    last = next((token for token in reversed(before) if token is not Wild.DEEP_FOLDERS), _SLASH_ALONE)
    return last == _SLASH_ALONE


def above_regex(pattern: GitPattern) -> str:
    """A regular expression that is found in a folder (its bytes) if the pattern may match something strictly below it.

    It may match more folders than that, never fewer.
    """
    if pattern.tokens is None:
        return _NOTHING
    if pattern.basename:
        return ""
    steps = [""]
    for token in pattern.tokens:
        if isinstance(token, Wild) and token is not Wild.STAR:
            return _nested([*steps[:-1], f"{steps[-1]}.*"])
        if token == _SLASH_ALONE:
            if len(steps) == _MAX_STEPS:
                return _nested([*steps, ".*"])
            steps.append("")
        else:
            steps[-1] += token.value if isinstance(token, Wild) else _byte_class(token)
    return _nested(steps[:-1])


def _nested(steps: list[str]) -> str:
    """Nothing, the first step, or that and the second, and so on."""
    return f"^(?:{'(?:/'.join(steps)}{')?' * len(steps)}$" if steps else "^$"


def literal_path(pattern: GitPattern) -> str | None:
    """The one path that the pattern names, or the one name in every folder (``basename``); None: it has wildcards."""
    codes: list[int] = []
    for token in pattern.tokens if pattern.tokens is not None else (Wild.STAR,):
        if isinstance(token, Wild) or len(token) != 1:
            return None
        codes.extend(token)
    return bytes(codes).decode("utf-8", "surrogateescape")


def _byte_class(members: frozenset[int]) -> str:
    if len(members) == 1:
        return _escape(next(iter(members)))
    if not members:
        return _NOTHING
    codes = sorted(members)
    starts = [code for code in codes if code - 1 not in members]
    ends = [code for code in codes if code + 1 not in members]
    return "[" + "".join(f"\\x{low:02x}-\\x{high:02x}" for low, high in zip(starts, ends, strict=True)) + "]"


def _escape(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "/_") else f"\\x{code:02x}"
