"""The places of tables, keys, values and elements in a TOML text, as offsets, and the place of a syntax error.

tomllib has read the text already; the scan only finds places, so it follows the grammar of valid TOML, and stops at the
first error with its findings so far. It never recurses: nesting costs no stack. A syntax error is reported where the
author left something open, not where the reader gave up.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import NoReturn

from gatewright.base.errors import BOM, RawPath
from gatewright.base.late import late_regex

Span = tuple[int, int]

_GAP = late_regex(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACE = late_regex(r"[ \t]*+")
_KEY = late_regex(r'[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'')
_PLAIN_KEY = late_regex(r"([A-Za-z0-9_-]++)[ \t]*+=[ \t]*+")
_STRING = late_regex(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'',
    re.DOTALL,
)
_SCALAR = late_regex(r"\d{4}-\d\d-\d\d[ ]\d\d:[^\s,\]}#]++|[^\s,\]}#]++")


_GAP_MARKS = frozenset(" \t\r\n#")


class Kind(Enum):
    """The notation of an item."""

    SCALAR = auto()
    ARRAY = auto()
    INLINE = auto()
    TABLE = auto()
    TABLES = auto()


@dataclass(slots=True, eq=False)
class Item:
    """One value, table or array of tables. ``start`` and ``end`` span the value, or the header of a table.

    ``key_start`` is the start of its key (or header); ``comma`` is the comma behind it, -1 without one.
    """

    kind: Kind
    start: int
    end: int
    key_start: int
    comma: int = -1
    has_header: bool = False
    members: dict[str, Item] = field(default_factory=dict[str, "Item"])
    elements: list[Item] = field(default_factory=list["Item"])

    @property
    def is_scalar(self) -> bool:
        """True for a text, number, boolean or time."""
        return self.kind is Kind.SCALAR

    @property
    def rows(self) -> list[Item]:
        """The elements of an array, or of an array of tables; none for anything else."""
        return self.elements if self.kind in {Kind.TABLES, Kind.ARRAY} else []


_NO_MEMBERS: dict[str, Item] = {}
_NO_ELEMENTS: list[Item] = []
# all scalars share it, and it stays empty


@dataclass(slots=True, eq=False)
class Statement:
    """One ``key = value`` line of a table. ``segments`` are the spans of the parts of its key."""

    keys: tuple[str, ...]
    segments: tuple[Span, ...]
    item: Item

    @property
    def start(self) -> int:
        """The start of its key."""
        return self.segments[0][0]


@dataclass(slots=True, eq=False)
class Section:
    """A header and the statements below it, up to the next header; the first one has no header and an empty path."""

    path: RawPath
    start: int
    header_end: int
    segments: tuple[Span, ...] = ()
    statements: list[Statement] = field(default_factory=list[Statement])

    @property
    def end(self) -> int:
        """The end of the last statement, or of the header; comments behind it do not count."""
        return self.statements[-1].item.end if self.statements else self.header_end


@dataclass(slots=True, eq=False)
class Tree:
    """A scanned text. ``duplicates`` are the places of repeated keys and headers."""

    text: str
    root: Item
    sections: list[Section]
    duplicates: list[int]

    def find(self, path: RawPath) -> Item | None:
        """The item at ``path``, or None."""
        item, depth = self.nearest(path)
        return item if depth == len(path) else None

    def nearest(self, path: RawPath) -> tuple[Item, int]:
        """The deepest existing item on ``path``, and the number of parts of the path that lead to it."""
        item = self.root
        for depth, part in enumerate(path):
            if isinstance(part, str):
                child = item.members.get(part)
            else:
                child = item.elements[part] if 0 <= part < len(item.elements) else None
            if child is None:
                return item, depth
            item = child
        return item, len(path)


@lru_cache(2)  # one entry for the text under edit, one for the result of the last edit
def scan(text: str) -> Tree:
    """Scan a text, a broken one up to the error."""
    scanner = _Scanner(text)
    with contextlib.suppress(_Broken, IndexError):
        scanner.run()
    return scanner.tree


def key_span(text: str, position: int) -> Span:
    """The span of the key that begins at ``position``."""
    found = _KEY.match(text, position)
    return found.span() if found else (position, position)


class _Broken(Exception):
    """The text is not TOML from here on."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text, self._end = text, len(text)
        start = len(BOM) if text.startswith(BOM) else 0
        root = Item(Kind.TABLE, start, start, start)
        self.tree = Tree(text, root, [Section((), start, start)], [])

    def run(self) -> None:
        text, position, table = self._text, self.tree.root.start, self.tree.root
        while (position := self._gap(position)) < self._end:
            if text[position] == "[":
                position, table = self._header(position)
            else:
                keys, spans, start = self._key_and_mark(position)
                item = self._value(start)
                self._insert(table, keys, spans, item)
                self.tree.sections[-1].statements.append(Statement(keys, spans, item))
                position = item.end

    def _gap(self, position: int) -> int:
        if self._text[position : position + 1] not in _GAP_MARKS:
            return position
        found = _GAP.match(self._text, position)
        return found.end() if found else position

    def _expect(self, position: int, wanted: str) -> int:
        found = _SPACE.match(self._text, position)
        position = found.end() if found else position
        if not self._text.startswith(wanted, position):
            raise _Broken
        return position + len(wanted)

    def _key(self, position: int) -> tuple[tuple[str, ...], tuple[Span, ...], int]:
        keys: list[str] = []
        spans: list[Span] = []
        while True:
            found = _SPACE.match(self._text, position)
            word = _KEY.match(self._text, found.end() if found else position)
            if word is None:
                raise _Broken
            keys.append(key_of(word.group()))
            spans.append(word.span())
            space = _SPACE.match(self._text, word.end())
            end = space.end() if space else word.end()
            if self._text[end : end + 1] != ".":
                return tuple(keys), tuple(spans), word.end()
            position = end + 1

    def _key_and_mark(self, position: int) -> tuple[tuple[str, ...], tuple[Span, ...], int]:
        """Read a key and its ``=``; return the parts, their spans, the start of the value."""
        if plain := _PLAIN_KEY.match(self._text, position):
            return (plain[1],), (plain.span(1),), plain.end()
        keys, spans, end = self._key(position)
        return keys, spans, self._gap(self._expect(end, "="))

    def _header(self, position: int) -> tuple[int, Item]:
        marks = 2 if self._text.startswith("[[", position) else 1
        keys, spans, end = self._key(position + marks)
        end = self._expect(end, "]" * marks)
        table, path = self.tree.root, list[str | int]()
        for key in keys[:-1]:
            table = self._step(table, key, position, path)
        table = (
            self._entry(table, keys[-1], position, path) if marks == 2 else self._own(table, keys[-1], position, path)
        )
        table.start = table.key_start = position
        table.end, table.has_header = end, True
        self.tree.sections.append(Section(tuple(path), position, end, spans))
        return end, table

    def _step(self, table: Item, key: str, position: int, path: list[str | int]) -> Item:
        child = table.members.get(key)
        if child is None:
            child = table.members[key] = Item(Kind.TABLE, position, position, position)
        path.append(key)
        if child.kind is Kind.TABLES:
            path.append(len(child.elements) - 1)
            return child.elements[-1]
        if child.kind is not Kind.TABLE:
            self._stop_at_second(position)
        return child

    def _own(self, table: Item, key: str, position: int, path: list[str | int]) -> Item:
        held = table.members.get(key)
        if held is not None and (held.has_header or held.kind is not Kind.TABLE):
            self._stop_at_second(position)
        return self._step(table, key, position, path)

    def _entry(self, table: Item, key: str, position: int, path: list[str | int]) -> Item:
        held = table.members.setdefault(key, Item(Kind.TABLES, position, position, position))
        if held.kind is not Kind.TABLES:
            self._stop_at_second(position)
        held.elements.append(Item(Kind.TABLE, position, position, position))
        path += [key, len(held.elements) - 1]
        return held.elements[-1]

    def _stop_at_second(self, position: int) -> NoReturn:
        self.tree.duplicates.append(position)
        raise _Broken

    def _insert(self, table: Item, keys: tuple[str, ...], spans: tuple[Span, ...], item: Item) -> None:
        for key, span in zip(keys[:-1], spans[:-1], strict=True):
            table = self._step(table, key, span[0], [])
        item.key_start = spans[0][0]
        if keys[-1] in table.members:
            self._stop_at_second(spans[0][0])
        table.members[keys[-1]] = item

    def _value(self, position: int) -> Item:
        boxes: list[Item] = []
        item = self._begin(position)
        while True:
            if item.end:
                position = item.end
            else:
                boxes.append(item)
                position = item.start + 1
            while boxes:
                box, position = boxes[-1], self._gap(position)
                if self._text[position] == "," and item is not box:
                    item.comma = position
                    position = self._gap(position + 1)
                if self._text[position] != ("]" if box.kind is Kind.ARRAY else "}"):
                    if box.kind is Kind.ARRAY:
                        item = self._begin(position)
                    else:
                        keys, spans, start = self._key_and_mark(position)
                        item = self._begin(start)
                        self._insert(box, keys, spans, item)
                    box.elements.append(item)
                    break
                item, position = boxes.pop(), position + 1
                item.end = position
            else:
                return item

    def _begin(self, position: int) -> Item:
        mark = self._text[position]
        if mark == "[":
            return Item(Kind.ARRAY, position, 0, position)
        if mark == "{":
            return Item(Kind.INLINE, position, 0, position)
        found = (_STRING if mark in "\"'" else _SCALAR).match(self._text, position)
        if found is None:
            raise _Broken
        return Item(Kind.SCALAR, position, found.end(), position, -1, False, _NO_MEMBERS, _NO_ELEMENTS)


def key_of(word: str) -> str:
    """The name that a key spells, bare or quoted."""
    if word[0] == "'":
        return word[1:-1]
    if word[0] != '"':
        return word
    return unescape(word[1:-1])


def unescape(body: str) -> str:
    """The text that the body of a basic string spells; a bad escape stays unchanged."""
    if "\\" not in body:
        return body
    return _ESCAPE.sub(_escape, body)


_ESCAPE = late_regex(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


def _escape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF else found[0]
    try:
        return str(json.loads(f'"{found[0]}"'))
    except ValueError:
        return found[0]


_ANY_GAP = late_regex(r"(?:\s|#[^\n]*)*")
_VALUE = late_regex(r"[^=\n\[\]]*=[ \t]*")
_NEW = late_regex(r"[ \t]*(?:\[\[?[^\[\],]+\]\]?[ \t]*(?:#.*)?\r?$|[A-Za-z0-9_.\"'-]+[ \t]*=|\r?$)", re.MULTILINE)
_WORD = late_regex(r"[^\s,\]}#=]+")
_SAID: dict[str, str] = {
    "Unclosed array": "a comma is missing before this, or the list is not closed",
    "Expected newline or end of document after a statement": "unexpected text: the value ends before it",
    "Expected '=' after a key in a key/value pair": "a key needs `=` and a value",
    "Invalid statement": "neither a key with a value nor the name of a table in brackets",
    "Expected ']' at the end of a table declaration": "the name of the table is not closed with `]`; a name with "
    "spaces needs quotes",
}
_BRACES = "; a table in braces must fit on one line and end without a comma"


def explain(text: str, offset: int, said: str) -> tuple[int, str]:
    """A better place for the error at ``offset``, and words for the error."""
    if said == "Unterminated string" or "'''" in said:
        return max(text.rfind('"""'), text.rfind("'''"), 0), "this text is not closed"
    last = scan(text).sections[-1]
    gap = _ANY_GAP.match(text, last.end)
    found = _VALUE.match(text, gap.end() if gap else last.end)
    value = found.end() if found is not None else offset  # of the unreadable statement
    if value < offset and "\n" in text[value : offset + 1].replace("\r", "\n"):
        if text[value] in "\"'":
            return value, "this text is not closed on its line"
        if text[value] == "[" and _NEW.match(text, text.rfind("\n", 0, offset) + 1):
            return value, "this list is not closed"
    return offset, _words(text, offset, said)


def _words(text: str, offset: int, said: str) -> str:
    if said == "Invalid value":
        found = _WORD.match(text, offset)
        if found is None:
            return "a value is missing here"
        return f"`{found[0][:40]}` is no value: a text needs quotes" if found[0].isprintable() else "this is no value"
    if said == "Invalid initial character for a key part":
        line = text[text.rfind("\n", 0, offset) + 1 : offset]
        return f"a key is expected here{_BRACES if '{' in line else ''}"
    if said in _SAID:
        return _SAID[said]
    if said.startswith("Illegal character"):
        return (
            f"the character U+{ord(text[offset]):04X} may not stand here" if offset < len(text) else "a bad character"
        )
    if "\\" in said or said == "Invalid hex value":
        return "a backslash begins an escape here: double it, or put the text in single quotes"
    return f"{said[:1].lower()}{said[1:]}"
