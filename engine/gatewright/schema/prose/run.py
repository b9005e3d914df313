"""Runs of single words (`list/get/create`, `'a', 'b', or 'c'`): the hidden ones leave, the joints are set anew.

It does not know sentences; a run of hidden names only is left for the sentence around it to settle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gatewright.schema.prose.words import Words

_ITEM = r"[`'\"“‘\\]*[A-Za-z_][\w:.-]*(?<![.:-])\\?[`'\"”’]?(?:\s\([^()]{1,60}\))?"
_JOINT = r"(?:\s*,\s*(?:and/or|and|or)\s+|\s*,\s+|\s*[/|+]\s*|\s+(?:and/or|and|or|&)\s+)"
_RUN = re.compile(rf"(?<![\w/.@-])(?:{_ITEM})(?:{_JOINT}{_ITEM})+(?![\w/@])")
_PIECES = re.compile(rf"({_JOINT})")
_WORD = re.compile(r"[A-Za-z_][\w:.-]*(?<![.:-])")
_NOT_ITEMS = frozenset(
    re.findall(
        r"\w+",
        """
    a an the it this that these those then not no in on at of to for from by with as is are be if when while which
    its their your you we they he she also only never always all any each every other but so otherwise plus
    optional required
    """,
    )
)
_BEFORE_PAIR = re.compile(
    r"(?:^|[:(\[—–;,.]\s*|\b(?:to|for|on|can|must|or|only|not|does not|cannot)\s+)$", re.IGNORECASE
)
_PREPOSITIONS = frozenset(["on", "to", "from", "with", "by", "in", "at", "of", "into", "up", "out", "off", "as"])
_MODALS = frozenset(
    ["can", "may", "must", "will", "should", "would", "could", "cannot", "does", "did", "has", "is", "was"]
)
_ADVERBS = frozenset(["also", "only", "then", "never", "always"])
_SINGULAR = {"are": "is", "have": "has", "were": "was", "do": "does"}


@dataclass(frozen=True, slots=True)
class _Run:
    items: tuple[str, ...]
    joints: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(match.group() if (match := _WORD.search(item)) else item for item in self.items)


def cut_runs(text: str, words: Words) -> str:
    """``text`` with the hidden members of its runs taken out, where others remain."""
    position = 0
    while match := _RUN.search(text, position):
        before, after = text[: match.start()], text[match.end() :]
        cut = _replacement(match.group(), before, after, words)
        position = match.end()
        if cut is None:
            continue
        replaced, rest, is_single = cut
        if is_single:
            before = re.sub(r"\b(?:both|either)\s+$", "", before, flags=re.IGNORECASE)
            after = _in_singular(after, is_subject=_is_start(before, match.group())) if not rest else after
        text = before + replaced + rest + after
        position = len(before) + len(replaced)
    return text


def _replacement(run_text: str, before: str, after: str, words: Words) -> tuple[str, str, bool] | None:
    """The run anew, what stood at its end without belonging to it, and whether one item is left; None: leave it."""
    pieces = _PIECES.split(run_text)
    if not all(pieces[::2]):
        return None
    first, last = 0, len(pieces) - 1
    while first < last - 1 and _head(pieces[first]) in _NOT_ITEMS:
        first += 2
    while last > first and _head(pieces[last]) in _NOT_ITEMS:
        last -= 2
    lead, rest = "".join(pieces[:first]), "".join(pieces[last + 1 :])
    run = _Run(tuple(pieces[first : last + 1 : 2]), tuple(pieces[first + 1 : last : 2]))
    dropped = _dropped(run, before + lead, rest + after, words)
    if not dropped or len(dropped) == len(run.items):
        return None
    kept = [item for index, item in enumerate(run.items) if index not in dropped]
    joined = _joined(run, dropped, kept)
    if 0 in dropped and run.items[0][:1].isupper() and not (before + lead).strip():
        joined = joined[:1].upper() + joined[1:]
    return lead + joined, rest, len(kept) == 1


def _head(piece: str) -> str:
    match = _WORD.search(piece)
    return match.group().lower() if match else ""


def _dropped(run: _Run, before: str, after: str, words: Words) -> frozenset[int]:
    """The positions to take out; none when the run does not look like a list of alternatives."""
    names = [words.is_name(word) for word in run.words]
    test = words.is_hidden if all(names) else words.is_strict
    dropped = frozenset(index for index, word in enumerate(run.words) if test(word))
    joined = "".join(run.joints)
    linked = bool(re.search(r"\b(?:and|or)\b|[/|+&]", joined))
    pair = len(run.items) == 2
    if _is_quoted(run) != _has_quotes(run):
        return frozenset()
    if not dropped or len(run.items) < 2 or any(word.lower() in _NOT_ITEMS for word in run.words):
        return frozenset()
    if pair and not linked and not (all(names) and (_is_quoted(run) or re.match(r"\s*(?:[.);:]|$)", after))):
        return frozenset()
    if pair and sum(names) == 1 and ("," in joined or not _BEFORE_PAIR.search(before)):
        return frozenset()
    if len(run.items) - 1 in dropped and _head_of_tail(after) in _PREPOSITIONS and not _is_quoted(run):
        return frozenset()
    return dropped


def _head_of_tail(after: str) -> str:
    match = re.match(r"\s+([a-z]+)\b", after)
    return match.group(1) if match else ""


def _is_quoted(run: _Run) -> bool:
    return all(item[0] in "`'\"\\“‘" for item in run.items)


def _has_quotes(run: _Run) -> bool:
    return any(item[0] in "`'\"\\“‘" for item in run.items)


def _joined(run: _Run, dropped: frozenset[int], kept: list[str]) -> str:
    last = run.joints[-1]
    conjunction = re.search(r"\b(?:and/or|and|or)\b", last)
    plain = all(joint.strip() == "," for joint in run.joints[:-1])
    if conjunction and plain and len(run.items) > 1:
        return join_items(kept, conjunction.group(), oxford="," in last)
    result = kept[0]
    remaining = [index for index in range(len(run.items)) if index not in dropped]
    for item, last_kept, index in zip(kept[1:], remaining, remaining[1:], strict=False):
        between = run.joints[last_kept:index]
        result += next((joint for joint in between if "," in joint), between[-1]) + item
    return result


def join_items(items: list[str], conjunction: str, *, oxford: bool) -> str:
    """English enumeration; an empty ``conjunction`` joins with commas alone."""
    if len(items) == 1:
        return items[0]
    if not conjunction:
        return ", ".join(items)
    comma = "," if oxford and len(items) > 2 else ""
    return f"{', '.join(items[:-1])}{comma} {conjunction} {items[-1]}"


def _is_start(before: str, run_text: str) -> bool:
    """Whether the run is the subject of what follows: names in small letters where a clause begins."""
    return run_text[0] in "`'\"" or run_text[0].islower() if re.search(r"(?:^|[.;:]\s+)$", before) else False


def _in_singular(after: str, *, is_subject: bool) -> str:
    """What follows a run that shrank to one name, its number made to agree."""
    after = re.sub(r"^(\s+)(operation|action|mode|command)s\b", r"\1\2", after)
    match = re.match(r"((?:\s+(?:also|only|then|never|always|both))*\s+)([a-z]+)\b", after) if is_subject else None
    if match is None or match.group(2) in _MODALS | _PREPOSITIONS | _ADVERBS:
        return after
    verb = match.group(2)
    adverbs = match.group(1).replace(" both", "")
    return adverbs + _singular(verb) + _with_singular_verbs(after[match.end() :])


def _with_singular_verbs(rest: str) -> str:
    """Further verbs of the same subject: `and both require`, `and are`."""
    end = re.search(r"[.;]", rest)
    clause, beyond = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    clause = re.sub(r"\band both ([a-z]+)\b", lambda match: f"and {_singular(match.group(1))}", clause)
    return re.sub(r"\band (are|have|were)\b", lambda match: f"and {_SINGULAR[match.group(1)]}", clause) + beyond


def _singular(verb: str) -> str:
    return _SINGULAR.get(verb, _third_person(verb))


def _third_person(verb: str) -> str:
    if verb.endswith("s"):
        return verb
    if verb.endswith(("sh", "ch", "x", "z", "o")):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"
