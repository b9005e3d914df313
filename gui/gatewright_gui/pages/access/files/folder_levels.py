"""Which levels the files below a folder have, by the last count."""

from collections.abc import Callable, Sequence

from gatewright.workspace.api import Permission, Source, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.file_index import DEFAULT, ELSEWHERE, PROTECTED, PROTECTED_WORD, Decided, level_word
from gatewright_gui.session.verdict import permission_words

_NAMED = 2
"""Deciders that are named in a narrow column."""
_STRICTEST_FIRST = (PROTECTED_WORD, *map(str, Permission))


@frozen
class FilesBelow:
    """`words`: of the levels that the files have, the strictest first; `rule_word`: what decides them, in a word."""

    words: Sequence[str]
    rule_word: str

    @property
    def levels(self) -> tuple[Permission, ...]:
        """The same as levels; what is protected has none."""
        return tuple(Permission.NONE if word == PROTECTED_WORD else Permission(word) for word in self.words)

    @property
    def sentence(self) -> str:
        """The levels in words."""
        *most, last = (
            tr(word) if word == PROTECTED_WORD else permission_words(Permission(word)) for word in self.words
        )
        if not most:
            return tr("every file in it: {level}", level=last)
        return tr("files in it: {levels}", levels=", ".join((*most, last)))


class FolderLevels:
    """Of one count, by the levels that the rules give now.

    With other patterns than were counted nothing is known until they are counted again, but that a folder is mixed
    stays said meanwhile: nothing jumps to and fro.
    """

    def __init__(self, decided: Decided, source: Callable[[], Source | None]) -> None:
        self._decided, self._source = decided, source
        self._seen: Source | None = None
        self._is_old = False
        self._meant: dict[int, tuple[str, int]] = {}
        self._found: dict[frozenset[int], FilesBelow | None] = {}

    def __call__(self, folder: str) -> FilesBelow | None:
        """Of a folder, whose path ends with `/`; None where nothing is known or no file is below it."""
        source, codes = self._source(), self._decided.below.get(folder)
        if source is None or codes is None:
            return None
        if source is not self._seen:
            self._seen, self._found = source, {}
            self._is_old = self._decided.patterns != tuple(rule.pattern for rule in source.permission_rules)
            self._meant = _meant(self._decided, source)
        if codes not in self._found:
            self._found[codes] = self._files_below(codes)
        return self._found[codes]

    def _files_below(self, codes: frozenset[int]) -> FilesBelow | None:
        if not codes <= self._meant.keys():
            return None  # a rule that is gone decided some of them
        told = [self._meant[code] for code in codes]
        words = {word for word, _ in told}
        if self._is_old and len(words) == 1:
            return None
        named = "..." if self._is_old else _deciders({at for _, at in told})
        return FilesBelow(tuple(word for word in _STRICTEST_FIRST if word in words), named)


def _meant(decided: Decided, source: Source) -> dict[int, tuple[str, int]]:
    """The meaning of each code of the count now: the word of a level, and a rule's index or what is in its place."""
    rules, default = source.permission_rules, source.default_permission
    stands = {rule.pattern: at for at, rule in reversed([*enumerate(rules)])}
    found: dict[int, tuple[str, int]] = {}
    for code in decided.counts:
        now = stands.get(decided.patterns[code]) if code >= 0 else max(code, ELSEWHERE)
        if now is not None:
            found[code] = (level_word(now if code >= 0 else code, rules, default), now)
    return found


def _deciders(found: set[int]) -> str:
    rules = sorted(at for at in found if at >= 0)
    others = [tr(word) for code, word in _OTHERS.items() if code in found]
    if len(rules) + len(others) > _NAMED:
        return counted(len(rules), "rule", "rules") if not others else tr("several")
    numbers = ", ".join(str(at + 1) for at in rules)
    if rules:
        text = tr("rule {number}", number=numbers) if len(rules) == 1 else tr("rules {numbers}", numbers=numbers)
        others.insert(0, text)
    return ", ".join(others)


_OTHERS = {DEFAULT: mark("default"), PROTECTED: mark("protected"), ELSEWHERE: mark("other source")}
