"""JSON as editors write it, with comments and trailing commas: reading, and edits that touch nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic_core import from_json

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue

Keys = Sequence[str]
"""Keys from the outermost object to an inner one."""

_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)
_NOT_BREAK = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*")
_REST_OF_LINE = re.compile(r"[ \t]*,?[ \t]*(?://[^\n]*?|/\*[^\n]*?\*/[ \t]*)?(?=\r?\n)")
_INDENTED = re.compile(r'^([ \t]+)"', re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False, parse_constant=int)  # `int` takes no `NaN`


class Member(NamedTuple):
    """A key of an object with its offsets: it begins at ``start``, its value at ``value``, and ends at ``end``."""

    key: str
    start: int
    value: int
    end: int


def plain_json(text: str) -> str:
    """Replace the byte order mark, comments and trailing commas by blanks; every offset stays."""
    return _TRAILING_COMMA.sub(_blank, _without_comments(text))


def read_json(text: str) -> JsonValue:
    """Parse ``text``; of a repeated key the last one wins. Raises WorkspaceError with line and column.

    Its texts may hold control characters and halves of surrogates, so that the caller can name them.
    """
    plain = plain_json(text)
    try:
        return from_json(plain, allow_inf_nan=False)
    except ValueError as error:
        try:
            return _DECODER.decode(plain)
        except (ValueError, RecursionError):
            raise WorkspaceError(f"it is not JSON: {error}") from None


def members(text: str, keys: Keys = ()) -> tuple[Member, ...]:
    """List the members of an object in valid JSON, in order; none if the object is missing."""
    plain = plain_json(text)
    at = _object(plain, keys)
    return () if at is None else tuple(_members(plain, at))


def put(text: str, keys: Keys, key: str, value: JsonValue) -> str:
    """Set a member of an object: replace the one with that key, else add it behind all others."""
    plain = plain_json(text)
    at = _object(plain, keys)
    if at is None:
        return put(text, keys[:-1], keys[-1], {key: value})
    there = tuple(_members(plain, at))
    newline = "\r\n" if "\r\n" in text else "\n"
    found = _INDENTED.search(plain)
    unit = found[1] if found is not None else "  "
    margin: str | None = _line_margin(plain, at) + unit
    if there:
        before = plain[plain.rfind("\n", 0, there[-1].start) + 1 : there[-1].start]
        margin = None if before.strip() else before  # None if the last one shares its line

    def render(what: JsonValue) -> str:
        if margin is None:
            return json.dumps(what, ensure_ascii=False)
        return json.dumps(what, ensure_ascii=False, indent=unit).replace("\n", newline + margin)

    same = next((member for member in reversed(there) if member.key == key), None)
    if same is not None:
        return text[: same.value] + render(value) + text[same.end :]
    written = f"{render(key)}: {render(value)}"
    if not there:
        closing = plain.index("}", at)
        inside = text[at + 1 : closing]
        end = "" if "\n" in inside else newline + _line_margin(plain, at)
        return f"{text[: at + 1]}{newline}{margin}{written}{inside.rstrip(' ') if end else inside}{end}{text[closing:]}"
    last = there[-1]
    rest = _REST_OF_LINE.match(text, last.end) if margin is not None else None
    if rest is None:
        gap = " " if margin is None else newline + margin
        return f"{text[: last.end]},{gap}{written}{text[last.end :]}"
    comma = "" if "," in rest[0].partition("/")[0] else ","
    return f"{text[: last.end]}{comma}{rest[0]}{newline}{margin}{written}{text[rest.end() :]}"


def drop(text: str, keys: Keys, key: str) -> str:
    """Remove a member of an object; comments around it stay, except those behind it on its line."""
    plain = plain_json(text)
    at = _object(plain, keys)
    there = [] if at is None else [*_members(plain, at)]
    index = next((index for index, member in enumerate(there) if member.key == key), None)
    if index is None:
        return text
    member = there[index]
    uncommented = _without_comments(text)
    start, end = member.start, _skip(uncommented, member.end)
    end = end + 1 if uncommented[end] == "," else member.end
    line = text.rfind("\n", 0, start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if not text[line:start].strip() and rest is not None:
        start, end = line, text.index("\n", rest.end()) + 1
    before = text[:start]
    if member is there[-1] and index:
        comma = plain.rindex(",", there[index - 1].end, member.start)
        before = text[:comma] + text[comma + 1 : start]
    return before + text[end:]


def _without_comments(text: str) -> str:
    return _COMMENT.sub(_blank, " " + text[1:] if text.startswith("\ufeff") else text)


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[1] is not None else _NOT_BREAK.sub(" ", found[0])


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return at if found is None else found.end()


def _object(plain: str, keys: Keys) -> int | None:
    """Find the beginning of an object."""
    at = _skip(plain, 0)
    for key in keys:
        there = _members(plain, at) if plain.startswith("{", at) else ()
        at = max((member.value for member in there if member.key == key), default=len(plain))
    return at if plain.startswith("{", at) else None


def _members(plain: str, at: int) -> Iterator[Member]:
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        start = at
        key, at = _DECODER.raw_decode(plain, start)
        value = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        yield Member(key, start, value, end)
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at


def _line_margin(plain: str, at: int) -> str:
    line = plain[plain.rfind("\n", 0, at) + 1 : at + 1]
    return line[: len(line) - len(line.lstrip())]
