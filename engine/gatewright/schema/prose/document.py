"""A whole description with its layout: headings, lists, paragraphs. It does not look into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gatewright.schema.prose.sentence import clean_sentence, clean_sentences, split_sentences
from gatewright.schema.prose.words import Words

_HEADING = re.compile(r"\s*(#{1,6})\s+")
_ITEM = re.compile(r"(\s*)([-*•+]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"\s*(```|~~~)")
_NEW_LINE_START = re.compile(r"\s*(?:[A-Z#]|[`'\"*]*[\w-]+[`'\"*]*\s*(?:[:=]|\(|—|–|->|→| - ))")
_DEFINED = re.compile(r"[\s\\`'\"*(]*([A-Za-z_][\w-]*)[`'\"*)\\]*\s*(?::|=|\(|—|–|->|→|-\s)")

Kind = Literal["heading", "item", "text", "blank", "fence"]


@dataclass(slots=True)
class _Unit:
    """A piece of layout: ``lead`` the indent with marker, ``body`` the text, ``level`` its indent or heading level."""

    kind: Kind
    lead: str
    body: str
    level: int
    changed: bool = False


def clean_text(
    text: str, hidden: Iterable[str], kept: Iterable[str] = (), *, operations: Iterable[str] | None = None
) -> str:
    """``text`` without what speaks of ``hidden`` operations.

    ``kept`` are the names that may stay although they are hidden too, since a parameter or a legal value bears them;
    ``operations`` the allowed operations among them, all of them when not given.

    Afterwards no hidden name that is not kept stands in it as a whole token. The text comes back as it was when it
    names none, and empty when it spoke of nothing else.
    """
    words = _words(frozenset(hidden), frozenset(kept), None if operations is None else frozenset(operations))
    if not words.hits(text) and not words.borne(text):
        return text
    units = _units(text)
    cleaned = _without_orphans(_cleaned(units, words), units)
    _renumber(cleaned)
    result = "\n".join(unit.lead + unit.body for unit in cleaned)
    result = re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", result).rstrip()
    if "\n" not in text.strip():
        result = result.strip()
    if text[:1].strip():
        result = result.lstrip()
    if not re.search(r"\w", result):
        return ""
    return result if not words.hits(result) else ""


@lru_cache(maxsize=256)
def _words(hidden: frozenset[str], kept: frozenset[str], operations: frozenset[str] | None) -> Words:
    """One pattern for all the texts of a tool."""
    return Words(hidden, kept, operations)


def _units(text: str) -> list[_Unit]:
    units: list[_Unit] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if _FENCE.match(line):
            end = next((at for at in range(index + 1, len(lines)) if _FENCE.match(lines[at])), len(lines) - 1)
            units.append(_Unit("fence", "", "\n".join(lines[index : end + 1]), _indent(line)))
            index = end + 1
            continue
        _add_line(units, line)
        index += 1
    return units


def _add_line(units: list[_Unit], line: str) -> None:
    heading, item = _HEADING.match(line), _ITEM.match(line)
    previous = units[-1] if units else None
    if not line.strip():
        units.append(_Unit("blank", "", line, 0))
    elif heading:
        units.append(_Unit("heading", line[: heading.end()], line[heading.end() :], len(heading.group(1))))
    elif item:
        units.append(_Unit("item", line[: item.end()], line[item.end() :], _indent(line)))
    elif previous and _continues(previous, line):
        previous.body += "\n" + line
    else:
        stripped = line.lstrip()
        units.append(_Unit("text", line[: len(line) - len(stripped)], stripped, _indent(line)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _continues(previous: _Unit, line: str) -> bool:
    if previous.kind == "item":
        return _indent(line) > previous.level
    if previous.kind != "text":
        return False
    return not previous.body.rstrip().endswith((".", ":", "!", "?")) and not _NEW_LINE_START.match(line)


def _cleaned(units: list[_Unit], words: Words) -> list[_Unit]:
    result: list[_Unit] = []
    skipping: _Unit | None = None
    for unit in units:
        if skipping is not None and _belongs(unit, skipping):
            continue
        skipping = None
        cleaned = _clean_unit(unit, words)
        if cleaned is None:
            skipping = unit if unit.kind in ("heading", "item") else None
        else:
            result.append(cleaned)
    return result


def _belongs(unit: _Unit, dropped: _Unit) -> bool:
    """Whether ``unit`` is part of the section or item that was dropped."""
    if dropped.kind == "heading":
        return unit.kind != "heading" or unit.level > dropped.level
    return unit.kind in ("item", "text", "fence") and unit.level > dropped.level


def _clean_unit(unit: _Unit, words: Words) -> _Unit | None:
    if unit.kind == "blank" or not (words.hits(unit.body) or words.borne(unit.body)):
        return unit
    if unit.kind == "fence":
        return unit if not words.hits(unit.body) else None
    defined = _DEFINED.match(unit.body)
    if (
        unit.kind != "text"
        and defined
        and words.is_strict(defined.group(1))
        and not _is_list_of_names(unit.body, words)
    ):
        return None
    body = clean_sentence(unit.body, words) if unit.kind == "heading" else clean_sentences(unit.body, words)
    body = body.lstrip() if unit.body[:1].strip() else body
    return _Unit(unit.kind, unit.lead, body, unit.level, changed=True) if body.strip() else None


def _is_list_of_names(body: str, words: Words) -> bool:
    return len([word for word in re.findall(r"[\w-]+", body.split(":", 1)[0]) if words.is_name(word)]) > 1


def _without_orphans(cleaned: list[_Unit], before: list[_Unit]) -> list[_Unit]:
    """Introductions (`Operations:`) and headings that lost all that they introduced go as well."""
    introduced = {id(unit) for unit, follower in _followed(before) if follower}
    bodies = {(unit.lead, unit.body): id(unit) for unit in before}
    result: list[_Unit] = []
    followed = {id(unit) for unit, follower in _followed(cleaned) if follower}
    for unit in cleaned:
        origin = bodies.get((unit.lead, unit.body), id(unit))
        lost = (origin in introduced or unit.changed) and id(unit) not in followed and _introduces(unit)
        lost = lost or _lost_its_own(unit, cleaned, before)
        if not lost or (unit.changed and not unit.body.rstrip().endswith(":")):
            result.append(unit)
            continue
        rest = "".join(split_sentences(unit.body)[:-1]).rstrip()
        if rest and unit.kind != "heading":
            result.append(_Unit(unit.kind, unit.lead, rest, unit.level))
    return result


def _lost_its_own(unit: _Unit, cleaned: list[_Unit], before: list[_Unit]) -> bool:
    """Whether a heading lost what stood under it, and the next thing opens a section of its own (`Args:`)."""
    if unit.kind != "heading":
        return False
    rest = iter(cleaned)
    any(one is unit for one in rest)
    after = next((one for one in rest if one.kind != "blank"), None)
    opens = after is not None and after.kind == "text" and after.body.rstrip().endswith(":")
    if after is None or not opens or len(after.body.split()) > 2:
        return False
    filled = [one for one in before if one.kind != "blank"]
    places = {id(one): index for index, one in enumerate(filled)}
    return id(unit) in places and id(after) in places and places[id(after)] > places[id(unit)] + 1


def _introduces(unit: _Unit) -> bool:
    return unit.kind == "heading" or (unit.kind in ("text", "item") and unit.body.rstrip().endswith(":"))


def _followed(units: list[_Unit]) -> list[tuple[_Unit, bool]]:
    """Each unit that introduces something, with whether there is something that it introduces."""
    result: list[tuple[_Unit, bool]] = []
    for index, unit in enumerate(units):
        if _introduces(unit):
            after = next((later for later in units[index + 1 :] if later.kind != "blank"), None)
            result.append((unit, after is not None and _is_under(after, unit)))
    return result


def _is_under(after: _Unit, unit: _Unit) -> bool:
    if unit.kind == "heading":
        return after.kind != "heading" or after.level > unit.level
    if unit.kind == "item":
        return after.kind != "heading" and after.level > unit.level
    return after.kind in ("item", "fence") or after.level > unit.level


def _renumber(units: list[_Unit]) -> None:
    """Numbered items count on from the first of their list."""
    expected: dict[int, int] = {}
    for unit in units:
        number = re.match(r"(\s*)(\d{1,3})([.)]\s+)", unit.lead) if unit.kind == "item" else None
        if unit.kind in ("heading", "text") or (unit.kind == "item" and number is None):
            expected = {level: value for level, value in expected.items() if level < unit.level}
        if number:
            wanted = expected.get(unit.level, 1 if int(number.group(2)) <= 2 else int(number.group(2)))
            unit.lead = f"{number.group(1)}{wanted}{number.group(3)}"
            expected[unit.level] = wanted + 1
