"""Levels of paths by gitignore patterns: first match wins, else the default.

A path is relative to the base, with ``/``; a trailing ``/`` says folder. It is made canonical first (``./``, doubled
slashes, inner ``..``); an absolute path, or one that leaves the base, is outside and gets none. A pattern matches as
``git check-ignore`` says: itself, or any folder above it. Case counts, whatever the file system says; symlinks are
not looked at.

pathspec asks all patterns at once (``base.firstmatch``), and, before them, whether the path is canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gatewright.base.frozen import frozen
from gatewright.base.once import once
from gatewright.policy.document import PermissionRule
from gatewright.policy.permission import Permission
from gatewright.policy.wildmatch import MAX_PATTERN, byte_text, parse_git_pattern, path_regex

_DOTTED = frozenset({"", ".", ".."})
_NOT_CANONICAL = r"^(?:/|\.\.?(?:/|$)|$)|//|/\.\.?(?:/|$)"
"""A regular expression that is found in a path with such a part; one ``/`` at the end says folder."""


@frozen
class Explanation:
    """The level of a path and the deciding rule (``index`` from 0); both None: the default, or ``outside``."""

    permission: Permission
    index: int | None = None
    pattern: str | None = None
    outside: bool = False


def check_pattern(pattern: str) -> str | None:
    """What is wrong with a pattern, or None. One that git could never match protects nothing: wrong."""
    if pattern.startswith("!"):
        return f"`{pattern}`: `!` is not supported, put the exception above the rule that it is taken from"
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
    """Rules in order and a default. Immutable; raises ValueError for a pattern that ``check_pattern`` refuses."""

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
        """The level of a path and the rule that gives it."""
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
        """The deciding rules of many paths: the number of rules for the default, -1 outside."""
        return list(map(self._index, paths))

    @once
    def _first(self) -> Callable[[str], int]:
        """The first pattern found in a path, behind ``_NOT_CANONICAL``; made when a path is first asked about."""
        from gatewright.base.firstmatch import FirstMatch

        regexes = [path_regex(parse_git_pattern(rule.pattern)) for rule in self.rules]
        return FirstMatch([_NOT_CANONICAL, *regexes]).first

    def _index(self, path: str) -> int:
        """The deciding rule, the number of rules for the default, -1 outside."""
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
