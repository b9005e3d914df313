"""Patterns in linear time: those from outside, which RE2 runs, and those for paths below one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from gatewright.base.jsonvalue import JsonValue

_ENGINE: Any = cast("Any", re2)


class LinearMatch(Protocol):
    """One match."""

    def group(self, group: int = 0) -> str:
        """The text of a group."""
        ...

    def span(self, group: int = 0) -> tuple[int, int]:
        """Begin and end of a group, in characters; (-1, -1) for a group that took no part."""
        ...


class LinearPattern(Protocol):
    """A compiled pattern; matching takes time linear in the text."""

    def search(self, text: str) -> object | None:
        """A match anywhere in ``text``, or None."""
        ...

    def fullmatch(self, text: str) -> object | None:
        """A match of the whole of ``text``, or None."""
        ...

    def finditer(self, text: str) -> Iterator[LinearMatch]:
        """Every match, from left to right; they do not overlap."""
        ...


def compile_linear(pattern: str) -> LinearPattern:
    """Compile with RE2 syntax; raises ValueError for what RE2 cannot do (look-around, back-references)."""
    options = _ENGINE.Options()
    options.log_errors = False
    try:
        return cast("LinearPattern", _ENGINE.compile(pattern, options=options))
    except _ENGINE.error as error:
        detail = error.args[0] if error.args else error
        text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise ValueError(text) from None


def linear_test(pattern: str) -> Callable[[bytes], list[int]]:
    """Return a fast test for a match: its answer contains 0 for a match, and is empty if RE2 gives up."""
    options = _ENGINE.Options()
    options.log_errors = False
    found = _ENGINE.Set.SearchSet(options)
    for one in (pattern, ""):  # the empty pattern matches every text
        found.Add(one)
    found.Compile()
    match: Callable[[bytes], list[int]] = found.Match
    return match


IN_FOLDER = "in_folder"
_VALUES = frozenset({"const", "enum", "default", "examples"})
_BRANCHES = ("allOf", "anyOf", "oneOf")
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_NAME = r"([^/\\.][^/\\]*|\.[^/\\.][^/\\]*|\.\.[^/\\]+)"
"""One name in a path: neither `.` nor `..`, nor empty."""
_BELOW = f"(/{_NAME})+$"
"""The rest of a path below the folder."""


def folder_pattern(folder: str) -> str:
    """Return the pattern of paths below a folder; it accepts no name `..`, so that none leads out."""
    escaped = re.sub(r"([^\w/ -])", r"\\\1", folder)
    return f"^{escaped}{_BELOW}"


def is_folder(text: str) -> bool:
    """Tell whether a text names a folder without any step up; a leading `/` is fine."""
    return all(name not in {"", ".", ".."} for name in text.removeprefix("/").split("/"))


def folder_of(pattern: object) -> str | None:
    """Return the folder of a pattern that `folder_pattern` made; None for any other value."""
    if not isinstance(pattern, str) or not pattern.startswith("^") or not pattern.endswith(_BELOW):
        return None
    folder = re.sub(r"\\(.)", r"\1", pattern[1 : -len(_BELOW)])
    return folder if is_folder(folder) and folder_pattern(folder) == pattern else None


def folder_words(folder: str) -> str:
    """State the demand on a path in words for every reader."""
    return f"only in `{folder[:200]}/`"


def folders_in(schema: JsonValue) -> list[str]:
    """List the folders that a schema demands of a path or of a list of paths."""
    if not isinstance(schema, dict):
        return []
    folder = folder_of(schema.get("pattern"))
    inner = [*(one for keyword in _BRANCHES for one in _as_list(schema.get(keyword))), schema.get("items")]
    return [*([folder] if folder is not None else ()), *(held for one in inner for held in folders_in(one))]


def texts_in_folders(schema: JsonValue, value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield each text of the value that must lie in a folder, with that folder."""
    if not isinstance(schema, dict):
        return
    folder = folder_of(schema.get("pattern"))
    if folder is not None and isinstance(value, str) and re.search(folder_pattern(folder), value):
        yield folder, value
    for keyword in _BRANCHES:
        for part in _as_list(schema.get(keyword)):
            yield from texts_in_folders(part, value)
    for item in value if isinstance(value, list) else ():
        yield from texts_in_folders(schema.get("items"), item)
    known = schema.get("properties")
    if isinstance(value, dict) and isinstance(known, dict):
        for name in known.keys() & value.keys():
            yield from texts_in_folders(known[name], value[name])


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def with_pattern(schema: JsonValue) -> JsonValue:
    """Replace ``in_folder``, which JSON Schema lacks, by patterns; a schema that names no folder stays the same."""

    def read(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
        folder = node.get(IN_FOLDER)
        if not isinstance(folder, str) or folder_fault(node):
            return node
        pattern = folder_pattern(folder.removesuffix("/"))
        return {"pattern" if key == IN_FOLDER else key: pattern if key == IN_FOLDER else node[key] for key in node}

    return _each(schema, read)


def with_folder(schema: JsonValue) -> JsonValue:
    """Return the schema in the form of the policy file: ``in_folder`` in place of a folder's pattern."""

    def write(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
        folder = folder_of(node.get("pattern"))
        if folder is None:
            return node
        return {IN_FOLDER if key == "pattern" else key: f"{folder}/" if key == "pattern" else node[key] for key in node}

    return _each(schema, write)


def folder_fault(node: Mapping[str, object]) -> str:
    """Explain why ``in_folder`` of a schema cannot be enforced; empty if it can."""
    folder = node[IN_FOLDER]
    if not isinstance(folder, str) or "\\" in folder or not is_folder(folder.removesuffix("/")):
        return "`in_folder` names one folder, such as `notes/`: names with `/` between them, none of them `..`"
    return "`in_folder` and `pattern` stand in two schemas of an `allOf`" if "pattern" in node else ""


def _each(schema: JsonValue, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]) -> JsonValue:
    """Change every schema inside the schema, the inner ones first."""
    if isinstance(schema, list):
        return [_each(one, change) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            found[key] = {name: _each(one, change) for name, one in value.items()}
        else:
            found[key] = value if key in _VALUES else _each(value, change)
    return change(found)
