"""Names of operations that a text lists, for a field that takes any text. They are suggestions, nothing is enforced.

It knows how descriptions enumerate (`a, b, or c`, `a | b`, bulleted lists, quoted names), not what fields mean.
"""

from __future__ import annotations

import re

from gatewright.base.regex import late_regex
from gatewright.schema.shapes.naming import is_verb

MAX_NAMES = 60
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:[-:./][A-Za-z0-9_]+)*"
_QUOTE = r"[`'\"*]*"
_NOTE = r"(?:\s\([^()\n]{1,40}\))?"
_ITEM = rf"{_QUOTE}{_NAME}{_QUOTE}{_NOTE}"
_BULLET = late_regex(
    rf"^\s*(?:[-*•+]|\d{{1,2}}[.)])\s+{_QUOTE}({_NAME}){_QUOTE}{_NOTE}\s*(?::|=|—|–|-\s|->|→)", re.MULTILINE
)
_BARE_BULLET = late_regex(rf"^\s*[-*•+]\s+{_QUOTE}({_NAME}){_QUOTE}\s*$", re.MULTILINE)
_PIPES = late_regex(rf"{_ITEM}(?:\s*\|\s*{_ITEM})+")
_COMMAS = late_regex(rf"{_ITEM}(?:\s*,\s*(?:(?:and/or|and|or)\s+)?{_ITEM}|\s+(?:or|and)\s+{_ITEM})+")
_LED = late_regex(rf"(?::|\bone of|\beither|\bsupports?|\bvalues?|\bavailable|\boptions?)\s+{_ITEM}", re.IGNORECASE)
_QUOTED = late_regex(rf"[`'\"]({_NAME})[`'\"]")
_SLASHES = late_regex(rf"(?<![\w/:])({_NAME}(?:\s+/\s+{_NAME})+)")


def suggested_names(*texts: str) -> tuple[str, ...]:
    """The names that the first of ``texts`` lists as what may be said; empty when none lists any."""
    for text in texts:
        for reading in (_bullets, _piped, _in_brackets, _enumerated, _slashed, _quoted):
            names = tuple(dict.fromkeys(reading(text)))
            if 2 <= len(names) <= MAX_NAMES and any(map(is_verb, names)):
                return names
    return ()


def _bullets(text: str) -> list[str]:
    return _BULLET.findall(text) or _BARE_BULLET.findall(text)


def _piped(text: str) -> list[str]:
    match = _PIPES.search(text)
    return _items(match.group(), r"\|") if match else []


def _in_brackets(text: str) -> list[str]:
    """`Operation to perform (query, create, delete)`."""
    for inner in re.findall(r"\(([^()]*)\)", text):
        body = re.sub(r"^\s*(?:e\.g\.,?|i\.e\.,?|one of:?|either)\s+", "", inner)
        if _COMMAS.fullmatch(body.strip(" .:")):
            return _listed(body)
    return []


def _enumerated(text: str) -> list[str]:
    """`Operation to perform: create, delete, or list.`"""
    for lead in _LED.finditer(text):
        start = re.search(rf"{_ITEM}$", lead.group())
        match = _COMMAS.match(text, lead.start() + start.start()) if start else None
        # an enumeration ends where a sentence or a clause does
        if match and re.match(r"\s*(?:[.;)\n(—–]|$|-\s)", text[match.end() :]) is not None:
            return _listed(match.group())
    return []


def _slashed(text: str) -> list[str]:
    match = _SLASHES.search(text)
    return _items(match.group(1), "/") if match else []


def _quoted(text: str) -> list[str]:
    return _QUOTED.findall(text)


def _listed(text: str) -> list[str]:
    return _items(text, r",|\s+(?:or|and)\s+")


def _items(text: str, joint: str) -> list[str]:
    found: list[str] = []
    for piece in re.split(joint, text):
        bare = re.sub(r"\([^()]*\)", "", re.sub(r"^\s*(?:and/or|and|or)\s+", "", piece)).strip(" \t\n`'\"*.")
        if re.fullmatch(_NAME, bare):
            found.append(bare)
    return found
