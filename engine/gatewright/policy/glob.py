"""Levels of paths by gitignore patterns: the first match wins, else the default.

A path is relative to the base, with ``/``; a ``/`` at the end means a folder. Each path is first made canonical
(``./``, doubled slashes, inner ``..``); an absolute path, or one that leaves the base, is outside and has level none. A
pattern matches as in ``git check-ignore`` (dir.c, wildmatch.c of git 2.39): the path itself, or any folder above it.
Case counts on every file system, and symlinks stay unresolved.

Text matches byte by byte, as in git, so ``?`` and ``[^a]`` match one byte: each character of a pattern's parts, of its
regular expression and of the subject (``byte_text``) is one byte of UTF-8. pathspec tries all patterns at once
(``base.firstmatch``), the test for canonical paths first. This module parses patterns itself because pathspec reads
lines differently from git (`policy`), and because rooms, Seatbelt and the search for useless rules need the parts of a
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache

from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.policy.document import PermissionRule
from gatewright.policy.verdict import Permission

MAX_PATTERN = 4096
_MAX_STEPS = 100
"""The most folders of a pattern to distinguish when searching for matches below a folder."""
_SPECIAL = frozenset("*?[\\")
_SLASH_ALONE = frozenset({ord("/")})
_NOTHING = r"[^\x00-\xff]"
"""A regular expression that matches no byte."""
_LAST_SPACES = re.compile(r"(\\.?)| +\Z", re.DOTALL)
"""The spaces at the end of a line unless escaped, or an escape, which stays."""
_CLASS = re.compile(r"\[:([^\]]*):\]")


class Wild(Enum):
    """Tokens of a pattern that match more than one text; all other tokens are sets of byte values."""

    STAR = "[^/]*"
    DEEP_STAR = ".*"
    DEEP_FOLDERS = "(?:.*/)?"


Token = frozenset[int] | Wild


@frozen
class GitPattern:
    """A pattern in parts.

    ``tokens`` None: git never matches it. ``basename``: it is compared with the last component only.
    """

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
    """Parse one line of an ignore file: a pattern without ``!``."""
    line = _LAST_SPACES.sub(r"\1", byte_text(written.removesuffix("\r")))
    body = line.removesuffix("/")
    return GitPattern(line != body, "/" not in body, _tokens(body.removeprefix("/")))


def _tokens(body: str) -> tuple[Token, ...] | None:
    """The tokens of a pattern.

    Like git, it cuts off the literal start first, so that ``**`` right behind it is a whole component.
    """
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
    """The set of the bracket expression whose ``[`` precedes ``at``, and the place behind it; None if malformed."""
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
    """Read one member, range or class at ``at``; return its bytes, the start for a following ``-``, and the next
    place.
    """
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
    """A regular expression that finds a canonical path (as bytes) that the pattern covers.

    The pattern covers its own path and everything below. The path of a folder ends with ``/``.
    """
    if pattern.tokens is None:
        return _NOTHING
    words = [token.value if isinstance(token, Wild) else _byte_class(token) for token in pattern.tokens]
    if pattern.tokens and isinstance(pattern.tokens[-1], Wild) and _is_whole(pattern.tokens[:-1]):
        words[-1] = f"[^/]{words[-1]}"  # else `docs/*` would match `docs/`
    above = Wild.DEEP_FOLDERS.value if pattern.basename else ""
    return f"^{above}{''.join(words)}" + ("/" if pattern.folders_only else "(?:/|$)")


def _is_whole(before: Sequence[Token]) -> bool:
    """Tell whether a new component begins behind these tokens."""
    last = next((token for token in reversed(before) if token is not Wild.DEEP_FOLDERS), _SLASH_ALONE)
    return last == _SLASH_ALONE


def above_regex(pattern: GitPattern) -> str:
    """A regular expression that finds a folder (as bytes) below which the pattern may match.

    It may find more such folders, never fewer.
    """
    if pattern.tokens is None:
        return _NOTHING
    if pattern.basename:
        return ""
    steps = [""]
    for token in pattern.tokens:
        if isinstance(token, Wild) and token is not Wild.STAR:
            return _nest([*steps[:-1], f"{steps[-1]}.*"])
        if token == _SLASH_ALONE:
            if len(steps) == _MAX_STEPS:
                return _nest([*steps, ".*"])
            steps.append("")
        else:
            steps[-1] += token.value if isinstance(token, Wild) else _byte_class(token)
    return _nest(steps[:-1])


def _nest(steps: list[str]) -> str:
    """A regular expression for nothing, the first step, the first two steps, and so on."""
    return f"^(?:{'(?:/'.join(steps)}{')?' * len(steps)}$" if steps else "^$"


def literal_path(pattern: GitPattern) -> str | None:
    """The one path that the pattern names, or the one name in every folder (``basename``); None with wildcards."""
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


_DOTTED = frozenset({"", ".", ".."})
_NOT_CANONICAL = r"^(?:/|\.\.?(?:/|$)|$)|//|/\.\.?(?:/|$)"
"""A regular expression that finds a path that is not canonical; one ``/`` at the end is fine."""


@frozen
class Explanation:
    """The level of a path and the rule that decides it (``index`` from 0).

    Without a rule the default decided, or the path is ``outside``.
    """

    permission: Permission
    index: int | None = None
    pattern: str | None = None
    outside: bool = False


def check_pattern(pattern: str) -> str | None:
    """The fault of a pattern, or None. A pattern that git could never match protects nothing and counts as a fault."""
    if pattern.startswith("!"):
        return f"`{pattern}`: `!` is not supported, put the exception above the rule that it is an exception to"
    if len(pattern) > MAX_PATTERN:
        return f"a pattern is longer than {MAX_PATTERN} characters"
    if any(char in pattern for char in "\n\0"):
        return "a pattern holds a line break or NUL"
    if not pattern.strip(" \r"):
        return "an empty pattern matches nothing"
    if pattern.startswith("#"):
        return f"`{pattern}` is a comment and matches nothing, write `\\{pattern}` for a name that starts with `#`"
    if pattern.strip(" \r").strip("/") == "":
        return f"`{pattern}` matches nothing, write `*` for everything"
    if not _DOTTED.isdisjoint(pattern.strip(" \r").removesuffix("/").removeprefix("/").split("/")):
        why = "it has a `.`, `..` or empty component, and no path in a source has one"
        return f"`{pattern}` matches nothing: {why} (begin with `/` for the top of the source)"
    if parse_git_pattern(pattern).tokens is None:
        return f"`{pattern}` matches nothing: it ends within `[...]` or after a backslash"
    return None


class PermissionRules:
    """Rules in order and a default, immutable. Raises ValueError for a pattern that ``check_pattern`` refuses."""

    def __init__(self, rules: Iterable[PermissionRule] = (), default: Permission = Permission.READ_ONLY) -> None:
        self.rules = tuple(rules)
        self.default = default
        for rule in self.rules:
            problem = check_pattern(rule.pattern)
            if problem is not None:
                raise ValueError(problem)
        self._none = len(self.rules)
        self._levels = (*(rule.permission for rule in self.rules), default)

    def level(self, path: str) -> Permission:
        """The level of a path; none outside the base."""
        index = self._index(path)
        return Permission.NONE if index < 0 else self._levels[index]

    def explain(self, path: str) -> Explanation:
        """The level of a path and the rule that decides it."""
        index = self._index(path)
        if index < 0:
            return Explanation(Permission.NONE, outside=True)
        if index == self._none:
            return Explanation(self.default)
        return Explanation(self._levels[index], index, self.rules[index].pattern)

    def levels(self, paths: Iterable[str]) -> list[Permission]:
        """The levels of many paths."""
        return list(map((*self._levels, Permission.NONE).__getitem__, self.indexes(paths)))

    def indexes(self, paths: Iterable[str]) -> list[int]:
        """The rules that decide many paths; the number of rules stands for the default, -1 for outside."""
        return list(map(self._index, paths))

    @once
    def _first(self) -> Callable[[str], int]:
        """The search for the first pattern that matches, with ``_NOT_CANONICAL`` in front; the first path builds it."""
        from gatewright.base.firstmatch import FirstMatch

        regexes = [path_regex(parse_git_pattern(rule.pattern)) for rule in self.rules]
        return FirstMatch([_NOT_CANONICAL, *regexes]).first

    def _index(self, path: str) -> int:
        """The rule that decides: the number of rules stands for the default, -1 for outside."""
        found = self._first(path if path.isascii() else byte_text(path))
        if found:
            return found - 1
        canonical = _canonical(path)
        if canonical is None:
            return -1
        return self._first(byte_text(canonical)) - 1 if canonical else self._none


def _canonical(path: str) -> str | None:
    if path.startswith("/"):
        return None
    parts: list[str] = []
    for part in (written := path.split("/")):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in _DOTTED:
            parts.append(part)
    return "/".join(parts) + ("/" if written[-1] in _DOTTED and parts else "")
