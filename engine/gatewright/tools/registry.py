"""The registered tools, by name and major version, while they come and go, and their definitions in writing.

Writers take turns; readers look at a snapshot that never changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from gatewright.base.errors import AlreadyRegistered, RegistrationError, SchemaError
from gatewright.base.file import write_atomically
from gatewright.base.late import once
from gatewright.policy.right import ToolFacts
from gatewright.record.process import fork_safe_lock
from gatewright.schema.walk import Schema
from gatewright.tools.definition import EXTRAS
from gatewright.tools.schemashape import definition_shape
from gatewright.tools.tool import Tool

Key = tuple[str, int]


@dataclass(frozen=True)
class _Snapshot:
    """The tools of one revision; sorted on the first listing, since many may come one by one."""

    tools: dict[Key, Tool] = field(default_factory=dict[Key, Tool])

    @once
    def in_order(self) -> tuple[Tool, ...]:
        """The tools by name and major."""
        return tuple(self.tools[key] for key in sorted(self.tools))

    @once
    def lists_operations(self) -> bool:
        """True if a function lists the operations of any tool."""
        return any(tool.lists_operations for tool in self.tools.values())

    @once
    def facts(self) -> tuple[ToolFacts, ...]:
        """The facts for policies, in the same order."""
        return tuple(tool.facts() for tool in self.in_order)


class _Once:
    """An action that is done the first time only, also when two threads ask for it."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._left = [action]

    def __call__(self) -> None:
        try:
            action = self._left.pop()  # atomic: only one thread gets it
        except IndexError:
            return
        action()


class ToolRegistry:
    """Tools in the order of name and major; ``revision`` grows with every change.

    It grows after the change: a reader of the revision, and then of the tools, has at least those.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._snapshot = _Snapshot()
        self.revision = 0

    def register(self, tool: Tool) -> Callable[[], None]:
        """Add ``tool``, and return the function that withdraws it; it may run more than once.

        Raises AlreadyRegistered for the same name and major, RegistrationError for a declaration with gaps.
        """
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"`{type(tool).__name__}` is no tool")
        tool.check()
        key = (tool.name, tool.major)
        tool = tool.with_listed_operations()
        with self._lock:
            if key in self._snapshot.tools:
                raise AlreadyRegistered(f"tool `{tool.name}` with major version {tool.major} is registered already")
            self._replace({**self._snapshot.tools, key: tool})
        return _Once(lambda: self._withdraw(key))

    def list_operations(self) -> None:
        """Ask every tool with listed operations again; one with another list counts as registered anew."""
        if not self._snapshot.lists_operations:
            return
        before = self._snapshot.tools
        asked = {key: tool.with_listed_operations() for key, tool in before.items()}
        if all(asked[key] is tool for key, tool in before.items()):
            return
        with self._lock:
            now = self._snapshot.tools
            self._replace({key: asked[key] if tool is before.get(key) else tool for key, tool in now.items()})

    def get(self, name: str, major: int | None = None) -> Tool | None:
        """Return the tool of that name: of that major, or of the highest; None without one."""
        tools = self._snapshot.tools
        if major is not None:
            return tools.get((name, major))
        majors = [found for held, found in tools if held == name]
        return tools[name, max(majors)] if majors else None

    def tools(self) -> tuple[Tool, ...]:
        """All tools, by name and major."""
        return self._snapshot.in_order

    def keys(self) -> frozenset[Key]:
        """Name and major version of every tool."""
        return frozenset(self._snapshot.tools)

    def facts(self) -> tuple[ToolFacts, ...]:
        """Return the facts of all tools for policies, in the same order; worked out once per revision."""
        return self._snapshot.facts

    def manifest(self) -> dict[str, object]:
        """Return the definitions of all tools, in the same order, as JSON values; `read_definitions` reads them
        back.
        """
        return manifest_of(self.tools())

    def write_manifest(self, path: str | Path) -> None:
        """Write the manifest to ``path``, whole or not at all. Raises OSError."""
        write_manifest(self.tools(), Path(path))

    def _withdraw(self, key: Key) -> None:
        with self._lock:
            self._replace({held: other for held, other in self._snapshot.tools.items() if held != key})

    def _replace(self, tools: dict[Key, Tool]) -> None:
        self._snapshot = _Snapshot(tools)
        self.revision += 1


def manifest_of(tools: Iterable[Tool]) -> dict[str, object]:
    """Return JSON values that `read_definitions` reads back as the same tools, in the given order."""
    return {"tools": [definition_of(tool) for tool in tools]}


def write_manifest(tools: Iterable[Tool], path: Path) -> None:
    """Replace the file at ``path`` by the manifest of ``tools``, whole or not at all. Raises OSError."""
    text = json.dumps(manifest_of(tools), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def definition_of(tool: Tool) -> Schema:
    """Return one tool as MCP lists it, with our own part under ``_meta``."""
    written: Schema = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["inputSchema"] = deepcopy(tool.input_schema())
    if tool.output_schema is not None:
        written["outputSchema"] = deepcopy(tool.output_schema)
    return {**written, "_meta": {EXTRAS: _extras(tool)}}


def _extras(tool: Tool) -> Schema:
    said: Schema = {"version": tool.version, "safety_tier": str(tool.safety_tier)}
    if tool.destroys is not None:
        said["destroys"] = tool.destroys
    if tool.has_operations:
        said["operation_tiers"] = {spec.name: str(spec.tier) for spec in tool.operations}
    if not tool.declares_operations and _is_discovered(tool):
        return said
    names = [spec.name for spec in tool.operations]
    declared = {"operation_field": tool.operation_field, "operations": names} if names else {"operation_field": ""}
    return {**said, **declared}


def _is_discovered(tool: Tool) -> bool:
    """Tell whether discovery alone reads the schema in the same way."""
    try:
        shape = definition_shape(tool.input_schema(), tool.safety_tier, {}, None)
    except SchemaError:
        return False
    found, own = shape.found, tool.operation_set
    if found is None or own is None:
        return found is own
    return (found.names, found.places, found.default) == (own.names, own.places, own.default)
