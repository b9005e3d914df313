"""The program's own contributions to a workspace: its tools and sources, from the start and later.

A source runs while the policy has a row for it, ``type = "host"`` with its id. Adding it asks its code for tools and
rules once, in the thread of the program.

A policy may name every tool that the program ever brought; withdrawn ones no longer exist.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json
from gatewright.policy.document import Policy, Source, SourceType
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import names_tool
from gatewright.record.process import fork_safe_lock
from gatewright.sources.known import MOST_AT_WORK, OwnSource
from gatewright.sources.manager import SourceManager
from gatewright.sources.stream import StreamCode, Tell
from gatewright.tools import DefinedTool, Tool, ToolRegistry, read_definitions
from gatewright.tools.registry import manifest_of
from gatewright.tools.server_tool import ServerTool


class ProgramSource(Protocol):
    """The methods that all sources of a program have."""

    @property
    def source_id(self) -> str:
        """The id, as in the policy."""
        ...

    def tools(self) -> Iterable[Tool]:
        """Return the tools for agents that have the source.

        Arguments marked with `PathParameter` are its keys, and ``actions`` describes each operation.
        """
        ...

    def required_tools(self) -> Iterable[ToolRule]:
        """Return the rules that always hold for these tools."""
        ...


@runtime_checkable
class BlockSource(ProgramSource, Protocol):
    """A source of texts by key (``open/42``), which ``block load`` gives to agents."""

    def load(self, key: str) -> str:
        """Return the text of a key; it may block. Raises ToolFailure, in words for the model, for an unknown key."""
        ...


@runtime_checkable
class StreamSource(ProgramSource, Protocol):
    """A source that reports added, changed and removed keys.

    A thread of ours calls both methods, which may block.
    """

    def start(self, tell: Tell) -> None:
        """Begin to call ``tell(key, change)``, from any thread, since somebody listens."""
        ...

    def stop(self) -> None:
        """Stop, since nobody listens or somebody paused it."""
        ...


@frozen
class _Added:
    """A source as it was added. ``places``: the limit of its simultaneous loads."""

    load: Callable[[str], object] | None
    stream: StreamCode | None
    tools: tuple[Tool, ...]
    places: threading.Semaphore


class ProgramSources:
    """The sources of a program. Any thread may call."""

    def __init__(self) -> None:
        self.known: tuple[Tool, ...] = ()
        """The tools of all sources that the program ever brought."""
        self.absent: dict[str, str] = {}
        """Why a tool is missing, by its name."""
        self._added: dict[str, _Added] = {}
        self._lock = fork_safe_lock()
        self._take_in: Callable[[], None] | None = None

    @property
    def ids(self) -> frozenset[str]:
        """Return the ids of the present sources."""
        return frozenset(self._added)

    def twin(self) -> ProgramSources:
        """Return the same sources for a copy of the workspace, which ignores later changes."""
        other = ProgramSources()
        other.known, other._added = self.known, dict(self._added)
        return other

    def serve(self, take_in: Callable[[], None]) -> None:
        """Apply later changes through ``take_in``, which puts them in force, or raises."""
        self._take_in = take_in

    def add(self, source: ProgramSource) -> Callable[[], None]:
        """Add a source like `WorkspaceSources.add`."""
        source_id, made = _read(source)
        with self._lock:
            if source_id in self._added:
                raise AlreadyRegistered(f"the program has added a source `{source_id}` already")
            before, known = self._added, self.known
            self._added = {**before, source_id: made}
            keys = {(tool.name, tool.major) for tool in made.tools}
            others = [tool for one in before.values() for tool in one.tools]
            self.known = (*(one for one in known if one in others or (one.name, one.major) not in keys), *made.tools)
            try:
                if self._take_in is not None:
                    self._take_in()
            except BaseException:
                self._added, self.known = before, known
                raise
        return lambda: self._remove(source_id, made)

    def _remove(self, source_id: str, made: _Added) -> None:
        with self._lock:
            if self._added.get(source_id) is not made:
                return
            self._added = {name: one for name, one in self._added.items() if one is not made}
            if self._take_in is not None:
                self._take_in()

    def running(self, policy: Policy) -> dict[str, _Added]:
        """Return the present sources that have a row in the policy."""
        rows = {one.source_id for one in policy.sources if one.kind is SourceType.HOST}
        found = {name: one for name, one in self._added.items() if name in rows}
        there = {tool.name for one in found.values() for tool in one.tools}
        self.absent.update(
            {tool.name: f"`{tool.name}` comes with source `{tool.source}`, which does not run" for tool in self.known}
        )
        for name in there:
            self.absent.pop(name, None)
        return found


class WorkspaceSources(SourceManager):
    """The sources of a workspace, with those of the program."""

    program: ProgramSources
    own_streams: tuple[tuple[Source, StreamCode], ...] = ()

    def add(self, source: BlockSource | StreamSource) -> Callable[[], None]:
        """Add a source of the program; the result removes it, and may be called repeatedly.

        It runs, and its tools exist, while the policy has ``[[sources]]`` with its id and ``type = "host"``. Raises
        AlreadyRegistered for another source of that id or another tool of the same name, RegistrationError for an
        invalid source or incomplete tools, PolicyInvalid if the policy's settings do not fit a tool; then nothing has
        changed.
        """
        return self.program.add(source)

    def follow_program(self, policy: Policy) -> tuple[Tool, ...]:
        """Run the program's sources that the policy has, and return their tools."""
        running, rows = self.program.running(policy), {one.source_id: one for one in policy.sources}
        self.own_streams = tuple((rows[name], one.stream) for name, one in running.items() if one.stream is not None)
        self.follow_own(OwnSource(rows[name], one.load, one.places) for name, one in running.items())
        return tuple(tool for one in running.values() for tool in one.tools)


def _read(source: ProgramSource) -> tuple[str, _Added]:
    """Ask a source for its id, tools and rules. Raises RegistrationError."""
    load = source.load if isinstance(source, BlockSource) else None
    stream = source if isinstance(source, StreamSource) else None
    if load is None and stream is None:
        wanted = "`source_id`, `tools`, `required_tools` and `load`, or `start` and `stop`"
        raise RegistrationError(f"`{type(source).__name__}` is no source: it has to have {wanted}")
    source_id = source.source_id
    if type(source_id) is not str or not source_id.strip():  # pyright: ignore[reportUnnecessaryComparison]
        raise RegistrationError("the `source_id` of a source is a text")
    tools, rules = tuple(source.tools()), tuple(source.required_tools())
    for rule in rules:
        if not any(names_tool(rule.tool_name, tool) for tool in tools):
            raise RegistrationError(f"source `{source_id}` has no tool `{rule.tool_name}`, which its rules name")
    made = tuple(_bind(tool, source_id, rules) for tool in tools)
    return source_id, _Added(load, stream, made, threading.Semaphore(MOST_AT_WORK))


def _bind(tool: Tool, source_id: str, rules: tuple[ToolRule, ...]) -> Tool:
    if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RegistrationError(f"`{type(tool).__name__}` of source `{source_id}` is no tool")
    theirs = tuple(rule for rule in rules if names_tool(rule.tool_name, tool))
    found = tool.of_source(source_id, theirs)
    for operation in found.facts().operations:
        if not operation.actions:
            what = f"`{operation.name}` of `{tool.name}`" if operation.name else f"`{tool.name}`"
            raise RegistrationError(f"{what} has to say by `actions` what it does to the keys of source `{source_id}`")
    found.check()
    return found


Key = tuple[str, int]


@frozen
class LateTools:
    """The tools that came and went since the start, for another process: a manifest of the new ones, the keys of the
    others.
    """

    manifest: bytes = b""
    withdrawn: frozenset[Key] = frozenset()


class ProgramTools:
    """The tools of a program, ``given`` at the start; `Workspace.tools`. Any thread may call."""

    def __init__(self, given: Iterable[Tool] = ()) -> None:
        self.known: tuple[Tool, ...] = tuple(given)
        """All tools that the program ever brought, in order."""
        self.absent: dict[str, str] = {}
        """Why a tool is missing, by its name."""
        self.late = LateTools()
        self._given = self.known
        self._withdrawn: frozenset[Key] = frozenset()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._lock = fork_safe_lock()
        self._registry: ToolRegistry | None = None
        self._take_in: Callable[[], None] = _nothing

    @property
    def there(self) -> tuple[Tool, ...]:
        """The tools that the program has not withdrawn."""
        return tuple(tool for tool in self.known if _key(tool) not in self._withdrawn)

    def twin(self) -> ProgramTools:
        """Return the same tools for a copy of the workspace, which ignores later changes."""
        other = ProgramTools(self.known)
        other._lose(self._withdrawn)
        return other

    @classmethod
    def of_late(cls, given: Iterable[Tool], late: LateTools) -> ProgramTools:
        """Rebuild the tools in another process, which has the first ones (``given``) and receives the others as
        definitions.
        """
        found = cls(given)
        if late.manifest:
            definitions, _ = read_definitions(json.loads(late.manifest))
            fresh = [DefinedTool(one, origin=Tool.origin, trusted=True) for one in definitions]
            keys = frozenset(map(_key, fresh))
            found.known = (*(one for one in found.known if _key(one) not in keys), *fresh)
        found._lose(late.withdrawn)
        return found

    def _lose(self, withdrawn: frozenset[Key]) -> None:
        self._withdrawn = withdrawn
        left = {tool.name for tool in self.there}
        gone = {name for name, _ in withdrawn} - left
        self.absent.update({name: f"the program has withdrawn `{name}`" for name in gone})
        for name in left:
            self.absent.pop(name, None)
        came = [tool for tool in self.known if not any(tool is one for one in self._given)]
        self.late = LateTools(canonical_json(manifest_of(came)) if came else b"", withdrawn)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` in the acting thread whenever tools come or go; the result ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def end() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return end

    def serve(self, registry: ToolRegistry, take_in: Callable[[], None]) -> None:
        """Register later tools in ``registry``, after ``take_in`` has announced them to the policy, or raised."""
        self._registry, self._take_in = registry, take_in

    def add(self, tool: Tool) -> Callable[[], None]:
        """Register a tool while the workspace is open; the result withdraws it, and may be called repeatedly.

        Agents without ``tools`` do not see it before somebody edits the policy, as ``new_tools`` says. Raises
        AlreadyRegistered if its name and major version, or its name on a server, is taken, RegistrationError for an
        incomplete declaration, PolicyInvalid if the policy's settings do not fit it; then nothing has changed.
        """
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RegistrationError(f"`{type(tool).__name__}` is no tool")
        tool.check()
        with self._lock:
            registry, key, before = self._registry, _key(tool), self.known
            assert registry is not None
            held = registry.get(tool.name)
            if any(_key(one) == key for one in self.there) or isinstance(held, ServerTool):
                raise AlreadyRegistered(f"tool `{tool.name}` with major version {tool.major} is registered already")
            self.known = (*(one for one in before if _key(one) != key), tool)
            try:
                self._take_in()
                withdraw = registry.register(tool)
            except BaseException:
                self.known = before
                raise
            self._lose(self._withdrawn - {key})
        self._tell()

        def end() -> None:
            with self._lock:
                if not any(one is tool for one in self.there):
                    return
                withdraw()
                self._lose(self._withdrawn | {key})
            self._tell()

        return end

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


@frozen
class Program:
    """The tools and sources of the program that opens a workspace."""

    tools: ProgramTools
    sources: ProgramSources

    @classmethod
    def of(cls, tools: Iterable[Tool] = (), sources: Iterable[BlockSource | StreamSource] = ()) -> Program:
        """Build it from the tools and sources at the start. Raises AlreadyRegistered, RegistrationError."""
        made = cls(ProgramTools(tools), ProgramSources())
        for source in sources:
            made.sources.add(source)
        return made

    @property
    def known(self) -> tuple[Tool, ...]:
        """All tools that the program ever brought."""
        return (*self.tools.known, *self.sources.known)

    def twin(self) -> Program:
        """Return the same tools and sources for a copy of the workspace, which ignores later changes."""
        return Program(self.tools.twin(), self.sources.twin())


def _key(tool: Tool) -> Key:
    return tool.name, tool.major


def _nothing() -> None:
    """Do nothing while the workspace opens."""
