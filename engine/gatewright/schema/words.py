"""Which words of a text are the names of hidden operations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gatewright.base.once import once
from gatewright.base.regex import late_regex
from gatewright.schema.shapes.naming import snake

_NEVER = late_regex(r"(?!)")
_QUOTES = "`'\"“”‘’"
_JOINT = r"\s*,\s*(?:(?:and/or|and|or)\s+)?|\s*[/|]\s*|\s+(?:and/or|and|or)\s+"
_JOINTS = late_regex(f"({_JOINT})")
_CLAUSE_END = late_regex(r"\s*(?:\.(?!\w)|[,;:)\]—–]|$|(?:operation|action|mode|command)s?\b)")
_PARTICLE = late_regex(r"\s+(?:on|to|from|with|by|in|at|of|into|up|out|off|as|via)\b", re.IGNORECASE)


class Words:
    """The hidden names, and the names that something allowed bears and that may therefore stay.

    A token is compared without regard to case, since prose writes `Delete` and `DELETE` for `delete`; a kept name is
    compared exactly. Letters, digits and underscores belong to a token, so `list` does not occur in `list_items`.
    A name of several words is also found spelled out: `delete all` for `delete_all`.
    """

    def __init__(self, hidden: Iterable[str], kept: Iterable[str], operations: Iterable[str] | None = None) -> None:
        self.kept = frozenset(kept)
        self.hidden = frozenset(name for name in hidden if name.strip())
        self.operations = self.kept if operations is None else frozenset(operations)
        self._strict = frozenset(name.casefold() for name in self.hidden - self.kept)
        spelled_kept = frozenset(map(_spelled, self.kept))
        self._spelled_hidden = frozenset(map(_spelled, self.hidden - self.kept)) - spelled_kept - {""}
        self._spelled = self._spelled_hidden | (spelled_kept - {""})
        self._pieces = {name.casefold() for name in self.hidden} | {name.split()[0] for name in self._spelled_hidden}

    def may_stand_in(self, text: str) -> bool:
        """Whether the letters of a hidden name, or of its first word, occur at all; mostly they do not."""
        folded = text.casefold()
        return any(map(folded.__contains__, self._pieces))

    def hits(self, text: str) -> bool:
        """Whether a hidden name that nothing allowed bears stands in ``text``."""
        return any(self.is_strict(match.group()) for match in self._tokens.finditer(text)) or any(
            " ".join(match.group().casefold().split()) in self._spelled_hidden for match in self._phrases.finditer(text)
        )

    def is_strict(self, word: str) -> bool:
        """Whether ``word`` itself is such a name."""
        return word not in self.kept and word.casefold() in self._strict

    def cut_enumerations(self, text: str) -> str:
        """``text`` whose plain enumerations of operations (`list, get or drop`) have lost the hidden ones.

        One that would not read well without them, or that holds hidden ones only, stays as it is.
        """
        return text if self._enumerations is None else self._enumerations.sub(self._shortened, text)

    def _shortened(self, match: re.Match[str]) -> str:
        pieces = _JOINTS.split(match.group())
        items, joints = pieces[::2], pieces[1::2]
        kept = [item for item in items if not self._is_hidden(item.strip(_QUOTES))]
        before, after = match.string[: match.start()][-10:], match.string[match.end() :][:40]
        ends = _CLAUSE_END.match(after) and not re.search(r"\b(?:both|either)\s+$", before, re.IGNORECASE)
        leads = len(kept) > 1 and (kept[-1] == items[-1] or not _PARTICLE.match(after))
        if not kept or len(kept) == len(items) or not (leads or ends):
            return match.group()
        if items[0][0].isupper():
            kept[0] = kept[0][:1].upper() + kept[0][1:]
        word = re.search(r"and/or|and|or", joints[-1])
        if word is None or len(kept) == 1:
            return joints[0].join(kept)
        comma = "," if "," in joints[-1] and len(kept) > 2 else ""
        return f"{', '.join(kept[:-1])}{comma} {word.group()} {kept[-1]}"

    def _is_hidden(self, word: str) -> bool:
        return self.is_strict(word) or word in self.hidden

    @once
    def _tokens(self) -> re.Pattern[str]:
        compound = {name for name in self.kept if not re.fullmatch(r"\w+", name)}
        return _any_of((self.hidden - self.kept) | compound) if self._strict else _NEVER

    @once
    def _phrases(self) -> re.Pattern[str]:
        return _any_of(self._spelled if self._spelled_hidden else (), blank=r"\s+")

    @once
    def _enumerations(self) -> re.Pattern[str] | None:
        if not self.hidden:
            return None
        names = "|".join(map(re.escape, sorted(self.hidden | self.operations, key=len, reverse=True)))
        item = rf"[{_QUOTES}]?(?:{names})[{_QUOTES}]?(?!\w)"
        return re.compile(rf"(?<![\w/.@-]){item}(?:(?:{_JOINT}){item})+(?![-/@])", re.IGNORECASE)


def _any_of(names: Iterable[str], blank: str = r"\ ") -> re.Pattern[str]:
    listed = [re.escape(name).replace(r"\ ", blank) for name in sorted(names, key=len, reverse=True)]
    return re.compile(rf"(?<!\w)(?:{'|'.join(listed)})(?!\w)", re.IGNORECASE) if listed else _NEVER


def _spelled(name: str) -> str:
    """`deleteAll`, `delete-all` and `delete_all` as `delete all`; empty for a name of one word."""
    parts = snake(name).split("_")
    return " ".join(parts) if len(parts) > 1 and all(map(str.isalnum, parts)) else ""
