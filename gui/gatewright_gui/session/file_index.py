"""Every file of a source as names in memory: which rule decides each, and how many files each rule and level has.

The disk is walked once; other rules are asked again without it. Both take long and belong in a thread. Links
are not followed.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from gatewright.workspace.api import (
    FileSource,
    Permission,
    PermissionRule,
    PermissionRules,
    Source,
    ToolFailure,
    WorkspaceError,
    entries_of,
    frozen,
    is_leftover,
    is_more_open,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.courtesy import Stop
from gatewright_gui.session.verdict import permission_words

if TYPE_CHECKING:
    from gatewright.workspace.api import Overlay

Progress = Callable[[int], None]


DEFAULT, PROTECTED, ELSEWHERE = -1, -2, -3
"""In place of a rule's index: the default, protection, another source; of the last less the number of its level."""


PROTECTED_WORD = "protected"


_LEVELS = tuple(Permission)


_LOOK_EVERY = 128


_TOLD = 3
"""So many files whose level would change are named."""


_CHUNK = 256
"""Paths that rules are asked for at a time: between two of them it is looked whether they are still wanted."""


class StoppedError(Exception):
    """It is not wanted any more."""


@frozen
class FolderNames:
    """The names right in one folder. `prefix`: its path from the base with `/` at its end, empty for the base."""

    prefix: str
    names: tuple[str, ...]
    inodes: Sequence[int]
    folders: tuple[str, ...]
    device: int = 0


@frozen
class FileIndex:
    """Folders in the order of the walk. `truncated`: there is more. `unreadable`: folders."""

    folders: tuple[FolderNames, ...]
    files: int
    unreadable: int = 0
    truncated: bool = False


@frozen
class Decided:
    """Which rule decides each file. `codes`: of each folder of the index; `counts`: files of each code.

    `patterns`: of the rules; `below`: the codes of all files below a folder, by its prefix, where all were counted.
    """

    index: FileIndex
    codes: tuple[Sequence[int], ...]
    counts: Mapping[int, int]
    patterns: tuple[str, ...] = ()
    below: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])

    def level_counts(self, rules: Sequence[PermissionRule], default: Permission) -> dict[str, int]:
        """Files by the word of their level, by the levels that rules and default have now."""
        found: Counter[str] = Counter()
        for code, count in self.counts.items():
            found[level_word(code, rules, default)] += count
        return dict(found)


@frozen
class LevelBefore:
    """Files that a rule would decide and that have this level without it; ``first``: some of them."""

    level: Permission
    files: int
    first: tuple[str, ...]


@frozen
class PatternCount:
    """The number of files that a pattern matches, and of those that it would decide where it stands.

    ``counts``: how many each rule would decide then, by its index, and the default; ``before``: the levels that the
    files of this one have without it.
    """

    matches: int
    decides: int
    truncated: bool = False
    counts: Mapping[int, int] = field(default_factory=dict[int, int])
    before: tuple[LevelBefore, ...] = ()

    def openings(self, level: Permission) -> tuple[LevelBefore, ...]:
        """Of which of its files a level would be more open than what they have."""
        return tuple(one for one in self.before if is_more_open(level, one.level))

    def change_words(self, level: Permission) -> str:
        """The changes of its files under that level: those that it opens first, each of some, and how many more."""
        opened = self.openings(level)
        others = [one for one in self.before if one not in opened and one.level is not level]
        said = [
            tr("{change}, more open", change=f"{path}: {permission_words(one.level)} -> {permission_words(level)}")
            if one in opened
            else f"{path}: {permission_words(one.level)} -> {permission_words(level)}"
            for one in (*opened, *others)
            for path in one.first
        ]
        left = sum(one.files for one in (*opened, *others)) - len(said[:_TOLD])
        more = [tr("{count} more", count=f"{left:,}")] if left and said else []
        return "; ".join([*said[:_TOLD], *more])

    @property
    def sentence(self) -> str:
        """The count in words."""
        if not self.matches:
            return tr("matches no file now")
        files = counted(self.matches, "file", "files")
        if self.truncated:
            files = tr("more than {files}", files=files)
        if self.decides == self.matches:
            one = self.matches == 1
            text = tr("{files}, it is decided by it") if one else tr("{files}, all decided by it")
        else:
            text = tr("{files}, {count} of them decided by it") if self.decides else tr("{files}, none decided by it")
        return text.format(files=files, count=f"{self.decides:,}")


@frozen
class Tried:
    """A source as it would be with a rule that is being typed: its rules, compiled, and what each would decide."""

    source: Source
    rules: PermissionRules
    decided: Decided
    count: PatternCount


def level_word(code: int, rules: Sequence[PermissionRule], default: Permission) -> str:
    """The word of the level that a code stands for."""
    if code == PROTECTED:
        return PROTECTED_WORD
    if code <= ELSEWHERE:
        return str(_LEVELS[ELSEWHERE - code])
    return str(default if code == DEFAULT or code >= len(rules) else rules[code].permission)


def level_of(code: int, rules: Sequence[PermissionRule], default: Permission) -> Permission:
    """The level that a code stands for; what is protected has none."""
    word = level_word(code, rules, default)
    return Permission.NONE if word == PROTECTED_WORD else Permission(word)


def walk(source: FileSource, stop: Stop, progress: Progress, *, limit: int) -> FileIndex:
    """Every file below the base. Raises WorkspaceError where the base cannot be read, StoppedError."""
    seen = unreadable = files = 0
    truncated = False
    found: list[FolderNames] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting and not truncated:
        parts = waiting.pop()
        names: list[str] = []
        inodes: array[int] = array("Q")
        folders: list[str] = []
        passed: list[tuple[int, int]] = []
        try:
            with entries_of(source.folder, parts, passed=passed) as entries:
                for entry in entries:
                    if seen >= limit:
                        truncated = True
                        break
                    seen += 1
                    if seen % _LOOK_EVERY == 0:
                        if stop():
                            raise StoppedError
                        progress(seen)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_file(follow_symlinks=False) and not is_leftover(entry.name):
                        names.append(entry.name)
                        inodes.append(entry.inode())
        except ToolFailure as failure:
            if not parts:
                raise WorkspaceError(f"`{source.base}`: {failure}") from None
            unreadable += 1
        prefix = "/".join(parts) + "/" if parts else ""
        found.append(FolderNames(prefix, tuple(names), inodes, tuple(folders), passed[-1][0] if passed else 0))
        files += len(names)
        waiting += [(*parts, name) for name in folders]
    return FileIndex(tuple(found), files, unreadable, truncated)


def decide(index: FileIndex, overlay: "Overlay", rules: PermissionRules, stop: Stop) -> Decided:
    """Which rule decides each file. Raises StoppedError."""
    codes: list[Sequence[int]] = []
    counts: Counter[int] = Counter()
    for folder in index.folders:
        if overlay.plain is not None and overlay.plain(folder.prefix, folder.inodes):
            own = _by_rules(folder, rules, stop)
        else:
            own = _by_overlay(folder, overlay, stop)
        codes.append(own)
        counts.update(own)
    patterns = tuple(rule.pattern for rule in rules.rules)
    return Decided(index, tuple(codes), counts, patterns, {} if index.truncated else codes_below(index, codes, stop))


def codes_below(index: FileIndex, codes: Sequence[Sequence[int]], stop: Stop) -> dict[str, frozenset[int]]:
    """Of folders that hold files, themselves or deeper. A folder was walked before those in it. Raises StoppedError."""
    none: frozenset[int] = frozenset()
    found: dict[str, frozenset[int]] = {}
    same: dict[frozenset[int], frozenset[int]] = {}
    for number in range(len(codes) - 1, -1, -1):
        if number % _CHUNK == 0 and stop():
            raise StoppedError
        prefix = index.folders[number].prefix
        all_codes = found.get(prefix, none).union(codes[number])
        if not all_codes:
            continue
        for place in (prefix, _above(prefix)):
            joined = found.get(place, none) | all_codes
            found[place] = same.setdefault(joined, joined)
    return found


def _above(prefix: str) -> str:
    """The prefix of the folder that a folder lies in."""
    return prefix[: prefix.rfind("/", 0, -1) + 1]


def try_pattern(decided: Decided, tried: Source, at: int, source: Source, stop: Stop) -> Tried:
    """The files that the rule at `at` of a source as tried would match and decide; what no rule opens is left out.

    ``source``: as it is, with the rules that ``decided`` was made of. Raises StoppedError.
    """
    rules = tried.permission_rules
    alone, together = PermissionRules([rules[at]]), PermissionRules(rules, tried.default_permission)
    matches, counts = 0, Counter[int]()
    before: dict[Permission, tuple[int, tuple[str, ...]]] = {}
    all_codes: list[Sequence[int]] = []
    for folder, codes in zip(decided.index.folders, decided.codes, strict=True):
        own = array("i", codes)
        all_codes.append(own)
        deciders = zip(_by_rules(folder, alone, stop), _by_rules(folder, together, stop), codes, strict=True)
        for number, (matched, decider, code) in enumerate(deciders):
            matches += matched == 0
            if code <= PROTECTED:
                continue
            own[number] = decider
            counts[decider] += 1
            if decider == at:
                level = level_of(code, source.permission_rules, source.default_permission)
                files, first = before.get(level, (0, ()))
                before[level] = files + 1, first if files >= _TOLD else (*first, folder.prefix + folder.names[number])
    levels = tuple(LevelBefore(level, *found) for level, found in before.items())
    count = PatternCount(matches, counts[at], decided.index.truncated, dict(counts), levels)
    below = {} if decided.index.truncated else codes_below(decided.index, all_codes, stop)
    every = Counter[int]()
    for own in all_codes:
        every.update(own)
    patterns = tuple(rule.pattern for rule in rules)
    return Tried(tried, together, Decided(decided.index, tuple(all_codes), every, patterns, below), count)


def _by_rules(folder: FolderNames, rules: PermissionRules, stop: Stop) -> Sequence[int]:
    """Codes of the files of a folder where the rules decide alone."""
    none = len(rules.rules)
    found: array[int] = array("i")
    for start in range(0, len(folder.names), _CHUNK):
        if stop():
            raise StoppedError
        indexes = rules.indexes([folder.prefix + name for name in folder.names[start : start + _CHUNK]])
        found.extend([DEFAULT if index == none else index for index in indexes])
    return found


def _by_overlay(folder: FolderNames, overlay: "Overlay", stop: Stop) -> Sequence[int]:
    found: array[int] = array("i")
    for number, (name, inode) in enumerate(zip(folder.names, folder.inodes, strict=True)):
        if number % _CHUNK == 0 and stop():
            raise StoppedError
        level = overlay.level_of(folder.prefix + name, False, ((folder.device, inode),))
        if level.protected:
            found.append(PROTECTED)
        elif level.source_id is not None:
            found.append(ELSEWHERE - _LEVELS.index(level.permission))
        else:
            found.append(DEFAULT if level.index is None else level.index)
    return found
