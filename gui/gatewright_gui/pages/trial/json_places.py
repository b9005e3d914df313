"""Where the parts of a JSON text stand, broken or not: for marks, and for what could be typed at a place."""

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from gatewright.workspace.api import frozen
from gatewright_gui.pages.trial.json_value import Path

Role = Literal["key", "value", "none"]
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+')


@frozen
class Place:
    """Letters `start` to `end` of a value, and `key_start` to `key_end` of its key; -1 where it has none."""

    start: int
    end: int
    key_start: int = -1
    key_end: int = -1


@frozen
class Cursor:
    """The part at a place in the text: a key of the object at `path`, or the value at `path`.

    `start` to `end`: the letters of it that are there already. `keys`: those that the object has already.
    """

    role: Role
    path: Path
    start: int
    end: int
    keys: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Frame:
    path: Path
    is_object: bool
    start: int
    key_at: tuple[int, int] = (-1, -1)
    key: str = ""
    state: Literal["key", "colon", "value", "comma"] = "value"
    index: int = 0
    keys: list[str] = field(default_factory=list[str])

    @property
    def inner(self) -> Path:
        """The path of the value that comes next."""
        return (*self.path, self.key if self.is_object else self.index)


class JsonPlaces:
    """The places of one text; the first of each path counts. `twice`: keys that an object has again."""

    def __init__(self, text: str, cursor: int = -1) -> None:
        self.places: dict[Path, Place] = {}
        self.twice: list[tuple[Path, int, int]] = []
        self.at_cursor = Cursor("value", (), 0, 0)
        self._text = text
        self._cursor = cursor
        self._is_found = False
        self._stack: list[_Frame] = []
        self._key_ends: dict[Path, tuple[int, int]] = {}
        end = 0
        for token in _TOKEN.finditer(text):
            self._gap(end, token.start())
            self._take(token.group(), token.start(), token.end())
            end = token.end()
        self._gap(end, len(text) + 1)
        while self._stack:
            self._close(len(text))

    def nearest(self, path: Path) -> Place:
        """The place of a path, or of what holds it."""
        for size in range(len(path), -1, -1):
            found = self.places.get(path[:size])
            if found is not None:
                return found
        return Place(0, len(self._text))

    def _gap(self, start: int, end: int) -> None:
        """The room between two tokens."""
        if start <= self._cursor <= end:
            self._point(self._cursor, self._cursor)

    def _point(self, start: int, end: int) -> None:
        if self._is_found:
            return
        self._is_found = True
        frame = self._stack[-1] if self._stack else None
        if frame is None:
            self.at_cursor = Cursor("none" if self.places else "value", (), start, end)
        elif frame.is_object and frame.state == "key":
            self.at_cursor = Cursor("key", frame.path, start, end, frozenset(frame.keys))
        elif frame.state == "value":
            self.at_cursor = Cursor("value", frame.inner, start, end)
        else:
            self.at_cursor = Cursor("none", frame.path, start, end)

    def _take(self, token: str, start: int, end: int) -> None:
        is_word = token[0] not in "{}[]:,"
        if is_word and start < self._cursor <= end and not (self._is_closed(token) and self._cursor == end):
            self._point(start, end)
        frame = self._stack[-1] if self._stack else None
        if token in "{[":
            self._open(token == "{", start)
        elif token in "}]":
            if frame is not None:
                self._close(end)
        elif frame is None:
            self.places.setdefault((), Place(start, end))
        elif token == ",":
            frame.index += 1
            frame.state = "key" if frame.is_object else "value"
        elif token == ":":
            frame.state = "value"
        elif frame.is_object and frame.state == "key":
            self._key(frame, token, start, end)
        else:
            self._put(frame.inner, Place(start, end, *frame.key_at))
            frame.state = "comma"

    @staticmethod
    def _is_closed(token: str) -> bool:
        return len(token) > 1 and token[0] == '"' and token[-1] == '"'

    def _key(self, frame: _Frame, token: str, start: int, end: int) -> None:
        frame.key, frame.key_at, frame.state = _word(token), (start, end), "colon"
        if frame.key in frame.keys:
            self.twice.append(((*frame.path, frame.key), start, end))
        frame.keys.append(frame.key)

    def _open(self, is_object: bool, start: int) -> None:
        held = self._stack[-1] if self._stack else None
        path: Path = held.inner if held is not None else ()
        if held is not None:
            self._key_ends[path] = held.key_at
            held.state = "comma"
        self._stack.append(_Frame(path, is_object, start, state="key" if is_object else "value"))

    def _close(self, end: int) -> None:
        frame = self._stack.pop()
        self._put(frame.path, Place(frame.start, end, *self._key_ends.get(frame.path, (-1, -1))))

    def _put(self, path: Path, place: Place) -> None:
        self.places.setdefault(path, place)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def offset_of(text: str, line: int, column: int) -> int:
    """The letter at a line and a column, both from 1; the end of the text beyond it."""
    start = 0
    for _ in range(line - 1):
        found = text.find("\n", start)
        if found < 0:
            return len(text)
        start = found + 1
    return min(start + column - 1, len(text))


def _word(token: str) -> str:
    if token[0] != '"':
        return token
    try:
        value = json.loads(token if token.endswith('"') and len(token) > 1 else token + '"')
    except ValueError:
        return token.strip('"')
    return value if isinstance(value, str) else token
