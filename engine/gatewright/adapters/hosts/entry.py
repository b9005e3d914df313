"""Our entry in a host's file of hooks, JSON or TOML: put there and taken out again without a change of anything else.

Comments, order and formatting of the rest stay. Each event of the host gets an element of its own at the end of its
list, so that hooks of others are never touched, and run before ours or after, as the host wants.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from gatewright.adapters.hosts import CLIENT_FILE, NO_GATE, Hook
from gatewright.base.errors import WeMustFix, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, append, drop, put, read_json, take

Elements = Mapping[str, JsonValue]
_KEY = "hooks"
_HEADER = re.compile(r'\[\[\s*hooks\s*\.\s*"?(\w+)"?\s*(\.\s*"?hooks"?\s*)?\]\]')
_BLANK_LINE = re.compile(r"(?:(?<=\n)|\A)\r?\n\Z")
_TABLES = re.compile(r"^(?=[ \t]*\[)", re.MULTILINE)
Groups = list[dict[str, JsonValue]]
_BLANK = "\ufeff \t\r\n"


def shell_line(hook: Hook, fallback: str = "") -> str:
    """Spell the command for a host that starts it in a shell, so that any failure of it is a denial.

    ``fallback``: the words of denial for a host that reads no exit code; else the exit code is 2.
    """
    command = shlex.join(hook.command)
    if fallback:
        return f"{command} || echo {shlex.quote(fallback)}"
    return f"{command} || {{ [ $? -eq 2 ] || echo {shlex.quote(NO_GATE)} >&2; exit 2; }}"


def report_line(hook: Hook) -> str:
    """Spell the command after a call for a host that starts it in a shell."""
    return shlex.join(hook.report.command)


@frozen
class JsonHooks:
    """The entry in a file of JSON. ``elements``: an element for each event; ``top``: other members that the file needs.

    ``switches``: other members that decide about hooks.
    """

    elements: Callable[[Hook], Elements]
    top: Mapping[str, JsonValue]
    switches: tuple[str, ...] = ()

    def put(self, text: str, hook: Hook) -> str:
        """Return the text with our entry. Raises WorkspaceError."""
        value = self._read(text)
        wanted = self.elements(hook)
        if all(_ours(value, event) == [element] for event, element in wanted.items()) and not (
            _events_of_ours(value) - wanted.keys()
        ):
            return text
        after = self.drop(text, text) if text.strip(_BLANK) else "{}\n"
        expected = self._read(after)
        for key, member in self.top.items():
            if key not in expected:
                after = put(after, (), key, member)
                expected[key] = member
        lists = cast("dict[str, JsonValue]", expected.setdefault(_KEY, {}))
        for event, element in wanted.items():
            there = lists.setdefault(event, [])
            if not isinstance(there, list):
                raise WorkspaceError(f"its `{_KEY}.{event}` is not a list")
            after = append(after, (_KEY, event), element)
            there.append(element)
        return _same(after, expected)

    def drop(self, text: str, before: str) -> str:
        """Return the text without our elements; lists and objects go that are empty only without them."""
        value, old = self._read(text), self._read(before)
        hooks = cast("dict[str, list[JsonValue]]", value.get(_KEY, {}))
        kept = cast("dict[str, JsonValue]", old.get(_KEY, {}))
        for event in _events_of_ours(value):
            for index in reversed(range(len(hooks[event]))):
                element = hooks[event][index]
                inner = element.get(_KEY) if isinstance(element, dict) else None
                if _is_ours(element):
                    text = take(text, (_KEY, event), index)
                    del hooks[event][index]
                elif isinstance(inner, list):
                    for place in reversed([number for number, one in enumerate(inner) if _is_ours(one)]):
                        text = take(text, (_KEY, event, index, _KEY), place)
                        del inner[place]
            if not hooks[event] and event not in kept:
                text = drop(text, (_KEY,), event)
                del hooks[event]
        if _KEY in value and not hooks and _KEY not in old:
            text = drop(text, (), _KEY)
            del value[_KEY]
        return _same(text, value)

    def hooks(self, text: str) -> JsonValue:
        """Return what the text says of hooks. Raises WorkspaceError."""
        value = self._read(text)
        return {key: value[key] for key in (_KEY, *self.switches) if key in value}

    def _read(self, text: str) -> dict[str, JsonValue]:
        if not text.strip(_BLANK):
            return {}
        value = read_json(text)
        if not isinstance(value, dict):
            raise WorkspaceError("it is not a JSON object")
        hooks = value.get(_KEY, {})
        if not isinstance(hooks, dict):
            raise WorkspaceError(f"its `{_KEY}` is not an object")
        return value


def table_of(text: str) -> dict[str, JsonValue]:
    """Read an object of JSON; a text that is none counts as empty, since another check reports it."""
    try:
        value = read_json(text) if text.strip(_BLANK) else {}
    except WorkspaceError:
        return {}
    return value if isinstance(value, dict) else {}


def table_at(path: Path) -> dict[str, JsonValue]:
    """Read an object of JSON in a file; empty if it cannot be read."""
    try:
        return table_of(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}


def is_among(folder: Path, places: object) -> bool:
    """Tell whether a folder is one of these places, or below one."""
    names = cast("list[object]", places) if isinstance(places, list) else []
    return any(isinstance(name, str) and folder.is_relative_to(name) for name in names)


def _ours(value: Mapping[str, JsonValue], event: str) -> list[JsonValue]:
    there = cast("Mapping[str, JsonValue]", value.get(_KEY, {})).get(event)
    return [element for element in there if _has_ours(element)] if isinstance(there, list) else []


def _events_of_ours(value: Mapping[str, JsonValue]) -> set[str]:
    return {event for event in cast("Mapping[str, JsonValue]", value.get(_KEY, {})) if _ours(value, event)}


def _has_ours(element: JsonValue) -> bool:
    inner = element.get(_KEY) if isinstance(element, dict) else None
    return _is_ours(element) or (isinstance(inner, list) and any(_is_ours(one) for one in inner))


def _is_ours(element: JsonValue) -> bool:
    """Tell whether an element holds our client and nothing else."""
    if not isinstance(element, dict):
        return False
    inner = element.get(_KEY)
    if isinstance(inner, list):
        return bool(inner) and all(_is_ours(one) for one in inner)
    words = [element.get("command"), element.get("bash")]
    args = element.get("args")
    words += args if isinstance(args, list) else []
    return any(isinstance(word, str) and CLIENT_FILE in word for word in words)


def _same(text: str, value: JsonValue) -> str:
    """Verify that an edit did exactly this, whatever the text looks like."""
    if (read_json(text) if text.strip(_BLANK) else {}) != value:
        raise WeMustFix("the edit of the host's file would change something else")
    return text


@frozen
class TomlHooks:
    """The entry in a file of TOML: tables of their own at its end. ``groups``: for each event; ``switches``: other keys
    that decide about hooks.
    """

    groups: Callable[[Hook], Mapping[str, Groups]]
    switches: tuple[str, ...] = ()

    def put(self, text: str, hook: Hook) -> str:
        """Return the text with our entry. Raises WorkspaceError."""
        value, wanted = read_toml(text), self.groups(hook)
        if {event: ours for event in _lists(value) if (ours := own_groups(value, event))} == wanted:
            return text
        after = self.drop(text, text)
        expected = read_toml(after)
        hooks = cast("dict[str, Groups]", expected.setdefault(_KEY, {}))
        newline = "\r\n" if "\r\n" in after else "\n"
        after += "" if not after or after.endswith("\n") else newline
        for event, groups in wanted.items():
            run = cast("list[dict[str, JsonValue]]", groups[0][_KEY])[0]
            lines = [f"[[hooks.{event}]]", 'matcher = "*"', "", f"[[hooks.{event}.hooks]]"]
            lines += [f"{key} = {json.dumps(held, ensure_ascii=False)}" for key, held in run.items()]
            after += newline * bool(after) + newline.join(lines) + newline
            hooks.setdefault(event, []).extend(groups)
        return _same_toml(after, expected)

    def drop(self, text: str, before: str) -> str:  # noqa: ARG002 - a table that is gone leaves nothing
        """Return the text without our tables; comments behind them stay."""
        value = read_toml(text)
        if not any(own_groups(value, event) for event in _lists(value)):
            return text
        groups: list[list[str]] = []
        for piece in _TABLES.split(text):
            found = _HEADER.match(piece.lstrip(" \t"))
            if found is not None and found[2] is not None and groups:
                groups[-1].append(piece)
            else:
                groups.append([piece])
        after = ""
        for group in groups:
            kept = [group[0], *(piece for piece in group[1:] if CLIENT_FILE not in piece)]
            if len(kept) == len(group):
                after += "".join(group)
            elif len(kept) > 1:
                after += "".join(kept)
            else:
                after = _BLANK_LINE.sub("", after) + _comments_behind(group[-1])
        hooks = cast("dict[str, Groups]", value[_KEY])
        for event in _lists(value):
            hooks[event] = [kept for one in hooks[event] if (kept := _foreign(one)) is not None]
            if not hooks[event]:
                del hooks[event]
        if not hooks:
            del value[_KEY]
        return _same_toml(after, value)

    def hooks(self, text: str) -> JsonValue:
        """Return the hooks of the text, without the trust that Codex writes beside them. Raises WorkspaceError."""
        value = read_toml(text)
        hooks = cast("dict[str, JsonValue]", value.get(_KEY, {}))
        kept = {key: one for key, one in hooks.items() if key != "state"}
        return json.loads(json.dumps([kept, {key: value.get(key) for key in self.switches}], default=str))


def read_toml(text: str) -> dict[str, JsonValue]:
    """Read a file of TOML with hooks. Raises WorkspaceError."""
    try:
        value = cast("dict[str, JsonValue]", tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n")))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise WorkspaceError(f"it is not TOML: {error}") from None
    hooks = value.get(_KEY, {})
    if not isinstance(hooks, dict):
        raise WorkspaceError(f"its `{_KEY}` is not a table")
    if any(not isinstance(group, dict) for event in _lists(value) for group in cast("list[JsonValue]", hooks[event])):
        raise WorkspaceError(f"its `{_KEY}` holds something other than tables")
    return value


def own_groups(value: Mapping[str, JsonValue], event: str) -> Groups:
    """List the groups of an event that hold our entry."""
    hooks = cast("Mapping[str, Groups]", value.get(_KEY, {}))
    return [group for group in hooks.get(event, ()) if _foreign(group) != group]


def _comments_behind(table: str) -> str:
    """Return the last lines of a table that are blank or comments."""
    lines = table.splitlines(keepends=True)
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    return "".join(lines[at:])


def _foreign(group: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return a group without our hooks; None if nothing else is in it."""
    hooks = group.get(_KEY)
    if not isinstance(hooks, list) or not hooks:
        return group
    kept = [one for one in hooks if not _is_ours(one)]
    return {**group, _KEY: kept} if kept else None


def _lists(value: Mapping[str, JsonValue]) -> list[str]:
    hooks = cast("Mapping[str, JsonValue]", value.get(_KEY, {}))
    return [event for event, groups in hooks.items() if isinstance(groups, list)]


def _same_toml(text: str, value: Mapping[str, JsonValue]) -> str:
    """Verify that an edit did exactly this, whatever the text looks like."""
    try:
        if read_toml(text) == value:
            return text
    except WorkspaceError:
        pass
    raise WorkspaceError(f"its `{_KEY}` cannot be edited here: write them as `[[{_KEY}.PreToolUse]]` tables")
