"""Levels of paths by gitignore patterns: first match wins, else the default. It knows no disk and no base folder.

A path is relative to the base, with ``/``; a trailing ``/`` says folder. It is made canonical first (``./``, doubled
slashes, inner ``..``); an absolute path, or one that leaves the base, is outside and gets none. A pattern matches as
``git check-ignore`` says: itself, or any folder above it. Case counts, whatever the file system says. Symlinks are
not looked at. Over 400 lines, because the compiled forms of a rule and the two ways to ask them, one path and many of
a folder, have to agree and are read together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gatewright.policy.document import PermissionRule
from gatewright.policy.permission import Permission
from gatewright.policy.wildmatch import (
    MAX_PATTERN,
    GitPattern,
    Token,
    Wild,
    as_bytes_text,
    literal_of,
    matcher_of,
    parse_git_pattern,
    shallow_regex_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_CACHED_CHARS = 12_000_000
_RECORD_CHARS = 100
_GLOB_CHARS = 8
_DOTTED = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
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
        patterns = [parse_git_pattern(rule.pattern) for rule in self.rules]
        self._as_file = _Table(patterns, folder=False)
        self._as_folder = _Table(patterns, folder=True)
        self._base = self._folder("", self._none, self._as_file.path_globs, self._as_folder.path_globs)
        self._folders: dict[str, _Folder] = {}
        self._kept_chars = 0

    def level(self, path: str) -> Permission:
        """The level of a path; none outside the base."""
        index = self._index(path)
        return Permission.NONE if index is None else self._levels[index]

    def explain(self, path: str) -> Explanation:
        """The level of a path and the rule that gives it."""
        index = self._index(path)
        if index is None:
            return Explanation(Permission.NONE, outside=True)
        if index == self._none:
            return Explanation(self.default)
        return Explanation(self._levels[index], index, self.rules[index].pattern)

    def levels(self, paths: Iterable[str]) -> list[Permission]:
        """The levels of many paths; the verdicts of their folders are kept between calls."""
        return list(map((*self._levels, Permission.NONE).__getitem__, self.indexes(paths)))

    def indexes(self, paths: Iterable[str]) -> list[int]:
        """The deciding rules of many paths: the number of rules for the default, -1 outside."""
        found: list[int] = []
        add, first, known = found.append, self._as_file.first_file, self._folders
        for path in paths:
            head, _, name = path.rpartition("/")
            above = known.get(head) if head and path.isascii() else None
            if above is None or name in _DOTTED:  # not known yet, or to be made canonical first
                index = self._index(path)
                add(-1 if index is None else index)
                known = self._folders
            else:
                add(first(above.files, name))
        return found

    def hits(self, paths: Iterable[str]) -> list[int]:
        """How many of the paths each rule decides; behind the rules' counts those of the default and of outside."""
        counts = [0] * (self._none + 2)
        for index in self.indexes(paths):
            counts[index] += 1
        return counts

    def _index(self, path: str) -> int | None:
        """The deciding rule, the number of rules for the default, None outside."""
        if "//" in path or "/." in path or path.startswith((".", "/")) or not path:
            canonical = _canonical(path)
            if canonical is None:
                return None
            path = canonical
        if not path.isascii():
            path = as_bytes_text(path)
        folder = path.endswith("/")
        if folder:
            path = path[:-1]
        if not path:
            return self._none
        head, _, name = path.rpartition("/")
        above = self._folders.get(head) or self._enter(head)
        if above.inherited == 0:
            return 0
        if folder:
            return self._as_folder.first(above.folder_globs, above.inherited, head, name, path)
        return self._as_file.first_file(above.files, name)

    def _enter(self, path: str) -> _Folder:
        """The folder's record, made together with those of the folders above it."""
        if self._kept_chars > _CACHED_CHARS:
            self._folders, self._kept_chars = {}, 0
        folders, wanted = self._folders, [path]
        record = folders.setdefault("", self._base)
        while wanted[-1]:
            head = wanted[-1].rpartition("/")[0]
            known = folders.get(head)
            if known is not None:
                record = known
                break
            wanted.append(head)
        for here in reversed(wanted):
            if here and here not in folders:
                head, _, name = here.rpartition("/")
                index = self._as_folder.first(record.folder_globs, record.inherited, head, name, here)
                made = self._below(record, index, here)
                self._kept_chars += len(here) + _RECORD_CHARS + _GLOB_CHARS * made.own_globs(record)
                folders[here] = made
            record = folders[here]
        return record

    def _below(self, above: _Folder, inherited: int, path: str) -> _Folder:
        """A folder in another one; what can match there can match here."""
        prefix = path + "/"
        return self._folder(path, inherited, _possible(above.file_globs, prefix), _possible(above.folder_globs, prefix))

    def _folder(
        self, path: str, inherited: int, file_globs: tuple[_PathGlob, ...], folder_globs: tuple[_PathGlob, ...]
    ) -> _Folder:
        files = self._as_file.files_in(path, inherited, file_globs)
        return _Folder(inherited, file_globs, folder_globs, files)


def _canonical(path: str) -> str | None:
    if path.startswith("/"):
        return None
    written = path.split("/")
    last = written[-1]
    if _DOTTED.isdisjoint(written):
        return path
    parts: list[str] = []
    for part in written:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in _DOTTED:
            parts.append(part)
    return "/".join(parts) + ("/" if last in _DOTTED and parts else "")


@dataclass(frozen=True, slots=True)
class _PathGlob:
    """A pattern with folders and wildcards; ``prefix`` is its literal start, ``name`` what its last component needs.

    ``above``: what the path of the folder, ``/`` last, needs; then whatever has the right name matches (any name, where
    ``name`` is None). Without ``above`` only the whole path tells.
    """

    index: int
    prefix: str
    name: Callable[[str], object | None] | None
    above: Callable[[str], object | None] | None
    matches: Callable[[str], object | None]


@dataclass(frozen=True, slots=True)
class _Files:
    """What decides the files right in one folder. ``best``: what holds for all of them; the rest only where smaller.

    ``names``: patterns that are a path to a file here, by its name. ``globs``, smallest first, match the name,
    ``others`` the whole path, which ``path`` begins.
    """

    best: int
    names: Mapping[str, int] | None
    globs: tuple[tuple[int, Callable[[str], object | None]], ...]
    others: tuple[_PathGlob, ...]
    path: str


@dataclass(frozen=True, slots=True)
class _Folder:
    """What is known of a folder: the rule that decides it, and the globs that can match right in it."""

    inherited: int
    file_globs: tuple[_PathGlob, ...]
    folder_globs: tuple[_PathGlob, ...]
    files: _Files

    def own_globs(self, above: _Folder) -> int:
        """How many places its lists take that it does not share with the folder above."""
        pairs = ((self.file_globs, above.file_globs), (self.folder_globs, above.folder_globs))
        shared = sum(len(mine) for mine, theirs in pairs if mine is not theirs)
        return shared + len(self.files.globs) + len(self.files.others)


def _possible(globs: tuple[_PathGlob, ...], prefix: str) -> tuple[_PathGlob, ...]:
    """Those that can match something below ``prefix``; the same list when that is all of them."""
    kept = [g for g in globs if prefix.startswith(g.prefix) or g.prefix.startswith(prefix)]
    return globs if len(kept) == len(globs) else tuple(kept)


@dataclass(slots=True)
class _Forms:
    """Patterns sorted by how they are looked up; a smaller index wins."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    paths: dict[str, int] = field(default_factory=dict[str, int])
    parents: dict[str, int] = field(default_factory=dict[str, int])
    suffixes: dict[str, int] = field(default_factory=dict[str, int])
    name_globs: list[tuple[int, tuple[Token, ...]]] = field(default_factory=list[tuple[int, tuple[Token, ...]]])
    path_globs: list[_PathGlob] = field(default_factory=list["_PathGlob"])

    def add(self, index: int, basename: bool, tokens: tuple[Token, ...]) -> None:
        if not basename and tokens[0] is Wild.DEEP_FOLDERS and _is_component(tokens[1:]):
            basename, tokens = True, tokens[1:]
        literal = literal_of(tokens)
        if literal is not None:
            (self.names if basename else self.paths).setdefault(literal, index)
        elif basename:
            self._add_name_glob(index, tokens)
        else:
            self._add_path_glob(index, tokens)

    def _add_name_glob(self, index: int, tokens: tuple[Token, ...]) -> None:
        suffix = literal_of(tokens[1:]) if tokens[0] is Wild.STAR else None
        if suffix is None:
            self.name_globs.append((index, tokens))
        else:
            self.suffixes.setdefault(suffix, index)

    def _add_path_glob(self, index: int, tokens: tuple[Token, ...]) -> None:
        """``folder/*`` and ``folder/**`` ask for the parent only: what is deeper inherits."""
        parent = literal_of(tokens[:-1])
        if tokens[-1] in {Wild.STAR, Wild.DEEP_STAR} and parent and parent.endswith("/") and parent != "/":
            self.parents.setdefault(parent[:-1], index)
        else:
            self.path_globs.append(
                _PathGlob(index, _prefix(tokens), _last_component(tokens), _above(tokens), matcher_of(tokens))
            )


def _is_component(tokens: tuple[Token, ...]) -> bool:
    slash = ord("/")
    return bool(tokens) and all(
        token is Wild.STAR or (not isinstance(token, Wild) and slash not in token) for token in tokens
    )


def _prefix(tokens: tuple[Token, ...]) -> str:
    end = 0
    while end < len(tokens) and literal_of(tokens[end : end + 1]) is not None:
        end += 1
    return literal_of(tokens[:end]) or ""


def _last_component(tokens: tuple[Token, ...]) -> Callable[[str], object | None] | None:
    """A test of the last component alone, where the pattern has one; it spares the match of the whole path."""
    start = _start_of_last(tokens)
    return None if start is None else matcher_of(tokens[start:])


def _above(tokens: tuple[Token, ...]) -> Callable[[str], object | None] | None:
    """A test of the folder's path with its ``/``, where that and the last component are all that the pattern asks."""
    if tokens[-1] is Wild.DEEP_STAR:
        return _folder_matcher(tokens) if tokens[-2:-1] == (frozenset({ord("/")}),) else None
    start = _start_of_last(tokens)
    return None if start is None else _folder_matcher(tokens[:start])


def _folder_matcher(tokens: tuple[Token, ...]) -> Callable[[str], object | None]:
    """``matcher_of`` for the path of a folder with its ``/``; the usual forms by a look at the text."""
    if tokens[-1] is Wild.DEEP_FOLDERS and (start := literal_of(tokens[:-1])):
        return lambda path: path.startswith(start)
    if tokens[0] is Wild.DEEP_FOLDERS:
        if end := literal_of(tokens[1:]):
            return lambda path: f"/{path}".endswith(f"/{end}")
        if tokens[-1] is Wild.DEEP_STAR and (part := literal_of(tokens[1:-1])):
            return lambda path: f"/{part}" in f"/{path}"
    return matcher_of(tokens)


def _start_of_last(tokens: tuple[Token, ...]) -> int | None:
    """Where the last component begins; None where the pattern does not say."""
    start = len(tokens)
    while start and _is_component(tokens[start - 1 : start]):
        start -= 1
    if start in {0, len(tokens)}:
        return None
    before, earlier = tokens[start - 1], tokens[start - 2 : start - 1]
    if before is Wild.DEEP_STAR or (before is Wild.DEEP_FOLDERS and earlier not in {(), (frozenset({ord("/")}),)}):
        return None
    return start


class _Table:
    """All patterns as they apply to files, or to folders."""

    __slots__ = (
        "_any_name",
        "_in_folder",
        "_lowest",
        "_name_globs",
        "_names",
        "_parents",
        "_paths",
        "_suffixes",
        "_tails",
        "path_globs",
    )

    def __init__(self, patterns: list[GitPattern], *, folder: bool) -> None:
        forms = _Forms()
        for index, pattern in enumerate(patterns):
            if pattern.tokens is not None and (folder or not pattern.folders_only):
                forms.add(index, pattern.basename, pattern.tokens)
        self._names, self._paths, self._parents = forms.names, forms.paths, forms.parents
        self._suffixes, self._tails = tuple(forms.suffixes), tuple(forms.suffixes.items())
        self.path_globs = tuple(forms.path_globs)
        self._name_globs = tuple((index, matcher_of(tokens)) for index, tokens in forms.name_globs)
        shallow = [shallow_regex_of(tokens) or "" for _, tokens in forms.name_globs]
        self._any_name = re.compile("|".join(f"(?:{regex})" for regex in shallow), re.DOTALL).fullmatch

        self._in_folder: dict[str, dict[str, int]] = {}
        for path, index in forms.paths.items():
            head, _, name = path.rpartition("/")
            self._in_folder.setdefault(head, {})[name] = index
        by_name = (*forms.names.values(), *forms.suffixes.values(), *(index for index, _ in forms.name_globs))
        self._lowest = min(by_name, default=len(patterns))

    def files_in(self, folder: str, inherited: int, globs: tuple[_PathGlob, ...]) -> _Files:
        """What decides the files right in ``folder``."""
        best, prefix = min(inherited, self._parents.get(folder, inherited)), f"{folder}/" if folder else ""
        named: list[tuple[int, Callable[[str], object | None]]] = []
        others: list[_PathGlob] = []
        for glob in globs:
            if glob.index >= best:
                break
            if glob.above is None:
                others.append(glob)
            elif glob.above(prefix):
                if glob.name is None:
                    best = glob.index
                else:
                    named.append((glob.index, glob.name))
        return _Files(best, self._in_folder.get(folder), tuple(named), tuple(others), prefix)

    def first_file(self, files: _Files, name: str) -> int:
        """The smallest index that decides the file of that name."""
        best = files.best
        if self._lowest < best:
            found = self._names.get(name)
            if found is not None and found < best:
                best = found
            if name.endswith(self._suffixes):
                best = min([best, *(index for tail, index in self._tails if name.endswith(tail))])
            if self._name_globs and self._any_name(name):
                best = min([best, *(index for index, matches in self._name_globs if index < best and matches(name))])
        if files.names is not None:
            best = min(best, files.names.get(name, best))
        for index, matches in files.globs:
            if index >= best:
                break
            if matches(name):
                best = index
        for glob in files.others:
            if glob.index < best and glob.matches(files.path + name):
                best = glob.index
        return best

    def first(self, globs: tuple[_PathGlob, ...], inherited: int, head: str, name: str, path: str) -> int:
        """The smallest index of ``inherited`` and of the patterns that match ``path`` (= ``head/name``) itself."""
        best = inherited
        found = self._names.get(name)
        if found is not None and found < best:
            best = found
        found = self._parents.get(head)
        if found is not None and found < best:
            best = found
        found = self._paths.get(path)
        if found is not None and found < best:
            best = found
        if name.endswith(self._suffixes):
            best = min([best, *(index for tail, index in self._tails if name.endswith(tail))])
        if self._name_globs and self._any_name(name):
            best = min([best, *(index for index, matches in self._name_globs if index < best and matches(name))])
        for glob in globs:
            if glob.index < best and path.startswith(glob.prefix) and (glob.name is None or glob.name(name)):
                best = glob.index if glob.matches(path) else best
        return best
