"""Edits the servers in a client's file, in its own notation: JSON with comments, or the TOML of Codex.

Only the lines of the servers change. In TOML a server is a table, perhaps with tables below it, or keys with dots; a
table in braces on one line is left to its author.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from gatewright.base import jsonvalue
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue

if TYPE_CHECKING:
    from gatewright.policyfile.scan import Item

Span = tuple[int, int]
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Notation(Protocol):
    """One notation: the whole value, the names of the servers, and their edits. Each raises WorkspaceError."""

    empty: str
    """The text of a file without anything."""

    def value(self, text: str) -> JsonValue:
        """Read the whole file."""
        ...

    def names(self, text: str, keys: Sequence[str]) -> list[str]:
        """List the servers as often as they stand there."""
        ...

    def drop(self, text: str, keys: Sequence[str], name: str) -> str:
        """Remove a server."""
        ...

    def put(self, text: str, keys: Sequence[str], name: str, entry: dict[str, JsonValue]) -> str:
        """Add a server."""
        ...

    def values(self, text: str, keys: Sequence[str], holders: Sequence[str]) -> Iterator[Span]:
        """Yield the places of the values in those tables (`env`) of each server."""
        ...


class JsonNotation:
    """JSON, with comments and commas at the end."""

    empty = "{}\n"

    def value(self, text: str) -> JsonValue:
        """Read the whole file."""
        return jsonvalue.read_json(text)

    def names(self, text: str, keys: Sequence[str]) -> list[str]:
        """List the servers as often as they stand there."""
        return [member.key for member in jsonvalue.members(text, tuple(keys))]

    def drop(self, text: str, keys: Sequence[str], name: str) -> str:
        """Remove a server."""
        return jsonvalue.drop(text, tuple(keys), name)

    def put(self, text: str, keys: Sequence[str], name: str, entry: dict[str, JsonValue]) -> str:
        """Add a server."""
        return jsonvalue.put(text, tuple(keys), name, entry)

    def values(self, text: str, keys: Sequence[str], holders: Sequence[str]) -> Iterator[Span]:
        """Yield the places of the values in those tables of each server."""
        servers = [(*keys, server.key) for server in jsonvalue.members(text, tuple(keys))]
        ways = [(*server, inner.key) for server in servers for inner in jsonvalue.members(text, server)]
        ways += [(*way, "env") for way in ways if way[-1] == "command"]
        for way in ways:
            if way[-1] in holders:
                yield from ((member.value, member.end) for member in jsonvalue.members(text, way))


class TomlNotation:
    """The TOML of Codex."""

    empty = ""

    def value(self, text: str) -> JsonValue:
        """Read the whole file."""
        try:
            return cast("JsonValue", tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n")))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise WorkspaceError(f"it is not TOML: {error}") from None

    def names(self, text: str, keys: Sequence[str]) -> list[str]:
        """List the servers, each once: TOML has no others."""
        from gatewright.policyfile.scan import scan

        held = scan(text).find(tuple(keys))
        return [] if held is None else list(held.members)

    def drop(self, text: str, keys: Sequence[str], name: str) -> str:
        """Remove a server."""
        from gatewright.policyfile.scan import scan

        way = (*keys, name)
        spans: list[Span] = []
        for section in scan(text).sections:
            if section.path[: len(way)] == way:
                spans.append((section.start, section.end))
                continue
            for one in section.statements:
                path = (*section.path, *one.keys)
                if path[: len(way)] == way:
                    spans.append((one.start, one.item.end))
                elif way[: len(path)] == path:
                    raise WorkspaceError(f"`{'.'.join(one.keys)}` stands on one line: write each server as a table")
        for start, end in sorted(spans, reverse=True):
            begin, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
            text = text[:begin] + (text[stop + 1 :] if stop >= 0 else "")
        return text

    def put(self, text: str, keys: Sequence[str], name: str, entry: dict[str, JsonValue]) -> str:
        """Add a server as a table at the end."""
        newline = "\r\n" if "\r\n" in text else "\n"
        lines = [f"[{'.'.join(map(_key, (*keys, name)))}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in entry.items()]
        before = text if not text or text.endswith("\n") else text + newline
        gap = newline if before.strip() and not before.endswith(newline * 2) else ""
        return f"{before}{gap}{newline.join(lines)}{newline}"

    def values(self, text: str, keys: Sequence[str], holders: Sequence[str]) -> Iterator[Span]:
        """Yield the places of the values in those tables of each server."""
        from gatewright.policyfile.scan import scan

        held = scan(text).find(tuple(keys))
        for server in held.members.values() if held is not None else ():
            for key, item in server.members.items():
                if key in holders:
                    yield from _leaves(item)


def _leaves(item: Item) -> Iterator[Span]:
    from gatewright.policyfile.scan import Kind

    if item.kind in {Kind.TABLE, Kind.INLINE}:
        for member in item.members.values():
            yield from _leaves(member)
    else:
        yield item.start, item.end


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _toml(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_toml(held)}' for key, held in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


JSON, TOML = JsonNotation(), TomlNotation()


def notation_of(text: str) -> Notation:
    """Tell the notation of a client's file."""
    start = text.strip("\ufeff \t\r\n")[:2]
    is_json = start[:1] in {"", "{", '"'} or start in {"//", "/*"} or (start[:1] == "[" and not start[1:].isalpha())
    return JSON if is_json else TOML


_BRACED, _FILLED = re.compile(r"\{(env|file):([^{}]*)\}"), re.compile(r"\$\{(env|file):([^{}]*)\}")
"""Placeholders as opencode writes them, and as most others do."""


def plain_entry(entry: JsonValue) -> JsonValue:
    """Return an entry in the words that most clients use."""
    if not isinstance(entry, dict):
        return entry
    made = dict(entry)
    if made.get("type") in {"local", "remote"}:  # of opencode
        made = cast("dict[str, JsonValue]", json.loads(_BRACED.sub(r"${\1:\2}", json.dumps(made))))
    if isinstance(words := made.get("command"), list):
        made |= {"command": words[0] if words else "", "args": words[1:]}
    for key, plain in (("environment", "env"), ("http_headers", "headers")):
        if isinstance(made.get(key), dict):
            made[plain] = {**_table(made.get(plain)), **_table(made.pop(key))}
    variables: list[tuple[str, str, JsonValue]] = [
        ("headers", header, f"${{{name}}}") for header, name in _table(made.pop("env_http_headers", None)).items()
    ]
    if made.pop("bearer_token_env_var", None):
        variables.append(("headers", "Authorization", ""))  # `Bearer ` and the token; only Codex puts these together
    names = made.pop("env_vars", None)
    variables += [("env", str(name), f"${{env:{name}}}") for name in (names if isinstance(names, list) else ())]
    for key, name, value in variables:
        made[key] = {**_table(made.get(key)), name: value}
    return made


def _table(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def braced(env: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return variables with their placeholders as opencode writes them."""
    return cast("dict[str, JsonValue]", json.loads(_FILLED.sub(r"{\1:\2}", json.dumps(dict(env)))))
