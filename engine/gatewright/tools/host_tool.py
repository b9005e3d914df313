"""Tools that a coding agent runs itself, after it has asked the gate: their definitions say what their arguments are.

The levels of sources hold for every path in the arguments, a patch's included; a grant of files must cover those
outside of the agent's sources. A definition that nobody trusts can only add to what the gate finds by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Unpack

from gatewright.arguments.path import parent_of_glob
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import late_regex, once
from gatewright.policy.right import PathArgument, ToolFacts
from gatewright.policy.verdict import Action, PathUse
from gatewright.schema.walk import Schema, as_object, objects
from gatewright.tools.declaration import ResourceBounds, SideEffect, kinds_of_effects
from gatewright.tools.defined import DefinedTool, Given
from gatewright.tools.definition import ArgumentUse, ToolDefinition
from gatewright.tools.parameter import CommandParameter, Mark, Marker, NamedPath, UrlParameter, at_of, values_at
from gatewright.tools.tool import Tool

LONGEST_S = 2 * 60 * 60.0
"""The time in which a coding agent must report the end of a call, unless the definition sets another."""
MAX_PATCHED = 1_000
_ON_FILES = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
_PATHS = {
    ArgumentUse.READ: PathUse.READ,
    ArgumentUse.SEARCH: PathUse.READ,
    ArgumentUse.WRITE: PathUse.WRITE,
    ArgumentUse.DELETE: PathUse.DELETE,
}
_NAMING = frozenset({ArgumentUse.MATCH, ArgumentUse.PATCH, ArgumentUse.FOLDER})
_READING = frozenset({Action.READ})
_PATCHING = frozenset({Action.APPEND, Action.OVERWRITE, Action.DELETE})


class HostTool(DefinedTool, abstract=True):
    """A tool that the program with the policy runs itself, known by its definition.

    If that is trusted and says what its arguments are, any other argument is a text that is never a path.
    """

    def __init__(self, definition: ToolDefinition, **given: Unpack[Given]) -> None:
        uses, conduct = definition.arguments or {}, definition.conduct
        self._uses = {place: (use, at_of(place)) for place, use in uses.items()}
        if definition.arguments is None:
            super().__init__(definition, **given)
            return
        self.in_folder = True
        folder = next((str(at[0]) for use, at in self._uses.values() if use is ArgumentUse.FOLDER), "")
        markers: dict[ArgumentUse, Marker] = {
            ArgumentUse.URL: UrlParameter(),
            ArgumentUse.SEND: UrlParameter(effect="write"),
            ArgumentUse.COMMAND: CommandParameter(in_folder=True, folder=folder),
        }
        marks: dict[str, tuple[Mark, ...]] = {}
        for use, (name, *below) in filter(itemgetter(1), self._uses.values()):
            if use in markers:
                marks[str(name)] = (*marks.get(str(name), ()), Mark(tuple(below), markers[use]))
        self._marks = marks
        effects = conduct.side_effects or frozenset[SideEffect]()
        given["side_effects"], given["capabilities"] = effects, kinds_of_effects(effects - _ON_FILES)
        super().__init__(definition, **given)
        self.outside = SideEffect.NET_READ in effects
        self.resource_bounds = ResourceBounds(LONGEST_S) if conduct.bounds == ResourceBounds() else conduct.bounds
        if given.get("trusted", False):
            self._knows_texts = True
            used = {str(at[0]) for _, at in self._uses.values() if at}
            there = {one.name for name in self._names for one in self.parameters(name)}
            self.texts = frozenset(there - used)

    _knows_texts = False

    def facts(self) -> ToolFacts:
        """Return the facts of every tool, with the paths that the definition names."""
        return self._host_facts

    @once
    def _host_facts(self) -> ToolFacts:
        facts = super().facts()
        uses = {place: _PATHS[use] for place, (use, at) in self._uses.items() if at and use in _PATHS}
        said = tuple(PathArgument(place, use, "declared") for place, use in uses.items())
        patches = any(use is ArgumentUse.PATCH for use, _ in self._uses.values())
        disk = _PATCHING if patches else _READING if "." in self._uses else frozenset[Action]()
        rows = (
            replace(
                row,
                paths=said if self._knows_texts else (*row.paths, *said),
                disk_actions=row.disk_actions | disk,
                deletes=row.deletes or patches,
                needs_grant=any(use in _PATHS or use in _NAMING for use, _ in self._uses.values()),
            )
            for row in facts.operations
        )
        return replace(facts, operations=tuple(rows))

    def paths_in(self, arguments: Mapping[str, JsonValue]) -> Iterator[NamedPath]:
        """Yield the paths in patches, the folders of patterns, and the folder that a tool reads without being told.

        Raises ToolFailure if one cannot be told.
        """
        if "." in self._uses:
            yield NamedPath((".",), ".", Action.READ)
        texts = [
            (use, pointer, text)
            for use, at in self._uses.values()
            if use in _NAMING
            for pointer, text in values_at(dict(arguments), at)
            if isinstance(text, str)
        ]
        for use, pointer, text in texts:
            if use is not ArgumentUse.PATCH:
                is_pattern = use is ArgumentUse.MATCH
                path = self._folder_of(text, arguments) if is_pattern else text
                yield NamedPath((*pointer, 0), path, Action.READ, contents=is_pattern)
                continue
            for number, (path, action) in enumerate(files_of_patch(text)):
                yield NamedPath((*pointer, number), path, action, contents=False)

    def endings_in(self, arguments: Mapping[str, JsonValue]) -> tuple[str, ...] | None:
        """Return the endings of the files to search, if a pattern is as plain as ``*.py`` or ``src/**/*.{c,h}``."""
        narrowing = [at for use, at in self._uses.values() if use in {ArgumentUse.MATCH, ArgumentUse.FILTER}]
        texts = [text for at in narrowing for _, text in values_at(dict(arguments), at)]
        found = [_ENDINGS.fullmatch(text) if isinstance(text, str) else None for text in texts]
        if not found or None in found:
            return None
        listed = ((one[1] or one[2]).split(",") for one in found if one is not None)
        return tuple(f".{ending.lower()}" for endings in listed for ending in endings)

    def _folder_of(self, pattern: str, arguments: Mapping[str, JsonValue]) -> str:
        """Return the folder of the files that may fit a pattern, which starts in the folder to search."""
        folder = parent_of_glob(pattern) or pattern
        if ".." in pattern[len(folder) :] or _ELSEWHERE.search(pattern):
            text = "the pattern may lead out of its folder; write `..` or `/` at its beginning"
            raise ToolFailure(text, code="unreadable-path")
        searched = (arguments.get(str(at[0])) for use, at in self._uses.values() if at and use is ArgumentUse.SEARCH)
        start = next((one for one in searched if isinstance(one, str)), ".")
        return folder if folder.startswith(("/", "~")) else f"{start}/{folder}"


_HEADS = {"add file": Action.OVERWRITE, "update file": Action.OVERWRITE, "delete file": Action.DELETE}
_ENDINGS = late_regex(r"(?:\.?\w[\w.-]*/|\*\*/)*\*\.(?:(\w+)|\{(\w+(?:,\w+)*)\})", re.ASCII)
_ELSEWHERE = late_regex(r"^\s|[{,|(]\s*[/~]")
"""A beginning, or an alternative, of a pattern by which some program leaves the folder to search."""
_PLAIN_PATH = late_regex(r" [^\s:](?:[^:]*[^\s:])?")
"""A path that every reader of patches understands alike."""
_FRAME = frozenset({"begin patch", "end patch", "end of file"})


def files_of_patch(patch: str) -> tuple[tuple[str, Action], ...]:
    """Return each file that a patch in the form of ``*** Begin Patch`` names, with the action there.

    A line that may be a heading counts as one, wherever it stands. Raises ToolFailure for another form.
    """
    found: list[tuple[str, Action]] = []
    for line in patch.split("\n"):
        said = line.strip()
        if not said.startswith("***"):
            continue
        head, colon, path = said[3:].strip().partition(":")
        head, path, is_plain = " ".join(head.lower().split()), path[1:], _PLAIN_PATH.fullmatch(path) is not None
        if head in _HEADS and is_plain:
            found.append((path, _HEADS[head]))
        elif head == "move to" and is_plain and found:
            found += ((found[-1][0], Action.DELETE), (path, Action.OVERWRITE))
        elif colon or head not in _FRAME:
            raise ToolFailure("a heading of the patch is unknown; use its plain form", code="unreadable-patch")
    if not found or len(found) > MAX_PATCHED:
        text = "the patch names no file" if not found else f"the patch names more than {MAX_PATCHED:,} files"
        raise ToolFailure(f"{text}; write it with `*** Begin Patch`", code="unreadable-patch")
    return tuple(dict.fromkeys(found))


MCP_NAMES = "mcp__{server}__{tool}"
"""The name by which most coding agents call a tool of an MCP server."""
_NOT_IN_NAMES = late_regex(r"[^A-Za-z0-9_-]")


def names_for_host(tools: Iterable[Tool], catalog_id: str, mcp_names: str) -> dict[str, frozenset[str]]:
    """Return the names in the policy for each name that a coding agent may call, servers' tools included.

    ``mcp_names``: how it names these. A name that may mean several tools is ambiguous.
    """
    own: dict[str, frozenset[str]] = {}
    others: dict[str, frozenset[str]] = {}
    for tool in tools:
        if tool.origin == catalog_id:
            own[tool.listed_name] = frozenset({tool.name})
        elif not tool.in_folder:
            server, listed = (_NOT_IN_NAMES.sub("_", text) for text in (tool.origin, tool.listed_name))
            name = mcp_names.format(server=server, tool=listed)
            others[name] = others.get(name, frozenset()) | {tool.name}
    return {**others, **own}


def with_tools(manifest: Schema, names: Iterable[str]) -> Schema:
    """Return a manifest with these tools: a new one takes any arguments and is privileged, and one that is there takes
    arguments that its schema lacks.
    """
    rows = {str(row.get("name")): row for row in objects(manifest.get("tools"))}
    for name in names:
        new: Schema = {"name": name, "description": _UNKNOWN, "inputSchema": {"type": "object"}}
        there = rows.get(name, new)
        schema = {**(as_object(there.get("inputSchema")) or {}), "additionalProperties": True}
        rows[name] = {**there, "inputSchema": schema}
    return {**manifest, "tools": list(rows.values())}


def with_accepted(ours: Schema, there: Schema) -> Schema:
    """Return our manifest with the tools that were accepted in an earlier copy of it, and that it lacks."""
    rows = objects(ours.get("tools"))
    known = {row.get("name") for row in rows}
    added = [row for row in objects(there.get("tools")) if row.get("description") == _UNKNOWN]
    return {**ours, "tools": [*rows, *(row for row in added if row.get("name") not in known)]}


_UNKNOWN = "A tool that is known by its name alone."
