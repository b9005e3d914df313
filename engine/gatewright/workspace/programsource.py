"""Sources that a program brings: what they have to have, and which of them run under the policy in force.

One runs while the policy has a row for it, ``type = "host"`` with its id. Its code is asked for tools and rules once,
when it is added, in the thread of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.base.frozen import frozen
from gatewright.policy.document import Policy, SourceType
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import names_tool
from gatewright.record.process import fork_safe_lock
from gatewright.sources.manager import SourceManager
from gatewright.sources.ownsource import MOST_AT_WORK, OwnSource
from gatewright.tools import Tool

if TYPE_CHECKING:
    from gatewright.policy.document import Source
    from gatewright.sources.stream import StreamCode, Tell


class ProgramSource(Protocol):
    """The part that every source of a program has."""

    @property
    def source_id(self) -> str:
        """The id, as the policy has it."""
        ...

    def tools(self) -> Iterable[Tool]:
        """The tools that agents get who have the source.

        What they mark with `PathParameter` are its keys, and each of their operations says what it does by ``actions``.
        """
        ...

    def required_tools(self) -> Iterable[ToolRule]:
        """Rules that always hold for these tools."""
        ...


@runtime_checkable
class BlockSource(ProgramSource, Protocol):
    """A source of texts by key (``open/42``), which ``block load`` gives to agents."""

    def load(self, key: str) -> str:
        """The text of a key; it may block. Raises ToolFailure, in words for the model, where there is none."""
        ...


@runtime_checkable
class StreamSource(ProgramSource, Protocol):
    """A source that tells which keys came, changed and went. Both are called in a thread of ours and may block."""

    def start(self, tell: Tell) -> None:
        """Begin to call ``tell(key, change)``, from any thread; somebody listens."""
        ...

    def stop(self) -> None:
        """Cease to: nobody listens any more, or somebody paused it."""
        ...


@frozen
class _Added:
    """A source as it was when it was added. ``places``: how many of its texts may be under way."""

    load: Callable[[str], object] | None
    stream: StreamCode | None
    tools: tuple[Tool, ...]
    places: threading.Semaphore


class ProgramSources:
    """The sources of a program. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.known: tuple[Tool, ...] = ()
        """The tools of all sources that the program ever brought."""
        self.absent: dict[str, str] = {}
        """By name why a tool of one is not there now."""
        self._added: dict[str, _Added] = {}
        self._lock = fork_safe_lock()
        self._take_in: Callable[[], None] | None = None

    @property
    def ids(self) -> frozenset[str]:
        """The ids of those that were added and not removed."""
        return frozenset(self._added)

    def twin(self) -> ProgramSources:
        """The same sources for a copy of the workspace, which does not follow what comes and goes later."""
        other = ProgramSources()
        other.known, other._added = self.known, dict(self._added)
        return other

    def serve(self, take_in: Callable[[], None]) -> None:
        """Have ``take_in`` put in force what comes and goes later, or raise."""
        self._take_in = take_in

    def add(self, source: ProgramSource) -> Callable[[], None]:
        """As `WorkspaceSources.add`."""
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
        """Those that the policy has a row for, and their tools among those that are there."""
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
    """The sources of a workspace, to which the program adds its own."""

    program: ProgramSources
    own_streams: tuple[tuple[Source, StreamCode], ...] = ()

    def add(self, source: BlockSource | StreamSource) -> Callable[[], None]:
        """Add a source of the program; the answer removes it and may be called more than once.

        It runs, and its tools are there, while the policy has ``[[sources]]`` with its id and ``type = "host"``.
        Raises AlreadyRegistered for another source of that id or another tool of a name, RegistrationError for what is
        no source or has tools with gaps, PolicyInvalid where the policy says of a tool what does not fit it; then
        nothing has changed.
        """
        return self.program.add(source)

    def follow_program(self, policy: Policy) -> tuple[Tool, ...]:
        """Run those of the program that the policy has; their tools."""
        running, rows = self.program.running(policy), {one.source_id: one for one in policy.sources}
        self.own_streams = tuple((rows[name], one.stream) for name, one in running.items() if one.stream is not None)
        self.follow_own(OwnSource(rows[name], one.load, one.places) for name, one in running.items())
        return tuple(tool for one in running.values() for tool in one.tools)


def _read(source: ProgramSource) -> tuple[str, _Added]:
    """Id, tools and rules of a source, which is asked for them here. Raises RegistrationError."""
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
        if not any(names_tool(rule.tool_name, tool.name, tool.major) for tool in tools):
            raise RegistrationError(f"source `{source_id}` has no tool `{rule.tool_name}`, which its rules name")
    made = tuple(_bound(tool, source_id, rules) for tool in tools)
    return source_id, _Added(load, stream, made, threading.Semaphore(MOST_AT_WORK))


def _bound(tool: Tool, source_id: str, rules: tuple[ToolRule, ...]) -> Tool:
    if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RegistrationError(f"`{type(tool).__name__}` of source `{source_id}` is no tool")
    theirs = tuple(rule for rule in rules if names_tool(rule.tool_name, tool.name, tool.major))
    found = tool.of_source(source_id, theirs)
    for operation in found.facts().operations:
        if not operation.actions:
            what = f"`{operation.name}` of `{tool.name}`" if operation.name else f"`{tool.name}`"
            raise RegistrationError(f"{what} has to say by `actions` what it does to the keys of source `{source_id}`")
    found.check()
    return found
