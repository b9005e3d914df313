"""Things that the program itself brings to a workspace: its tools and sources, from the start and later.

A policy may name every tool that the program ever brought; there are those that it has not withdrawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json
from gatewright.record.process import fork_safe_lock
from gatewright.tools import DefinedTool, Tool, read_definitions
from gatewright.tools.registry import manifest_of
from gatewright.tools.server_tool import ServerTool
from gatewright.workspace.programsource import BlockSource, ProgramSources, StreamSource

if TYPE_CHECKING:
    from gatewright.tools import ToolRegistry

Key = tuple[str, int]


@frozen
class LateTools:
    """Tools that came and went since the start, for another process: a manifest of these, the keys of those."""

    manifest: bytes = b""
    withdrawn: frozenset[Key] = frozenset()


class ProgramTools:
    """The tools of a program, ``given`` at the start; `Workspace.tools`. Methods may be called from any thread."""

    def __init__(self, given: Iterable[Tool] = ()) -> None:
        self.known: tuple[Tool, ...] = tuple(given)
        """All that the program ever brought, in that order."""
        self.absent: dict[str, str] = {}
        """By name why a tool that it brought is not there now."""
        self.late = LateTools()
        self._given = self.known
        self._withdrawn: frozenset[Key] = frozenset()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._lock = fork_safe_lock()
        self._registry: ToolRegistry | None = None
        self._take_in: Callable[[], None] = _nothing

    @property
    def there(self) -> tuple[Tool, ...]:
        """Those that it has not withdrawn."""
        return tuple(tool for tool in self.known if _key(tool) not in self._withdrawn)

    def twin(self) -> ProgramTools:
        """The same tools for a copy of the workspace, which does not follow what comes and goes later."""
        other = ProgramTools(self.known)
        other._lose(self._withdrawn)
        return other

    @classmethod
    def of_late(cls, given: Iterable[Tool], late: LateTools) -> ProgramTools:
        """The tools in another process, which is ``given`` the first of them and knows the others by definition."""
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
        """Tell ``listener`` when tools came or went, in the thread that did it; the answer ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def end() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return end

    def serve(self, registry: ToolRegistry, take_in: Callable[[], None]) -> None:
        """Register what comes later in ``registry``, once ``take_in`` has made it known to the policy, or raised."""
        self._registry, self._take_in = registry, take_in

    def add(self, tool: Tool) -> Callable[[], None]:
        """Register a tool while the workspace is open; the answer withdraws it and may be called more than once.

        Agents without ``tools`` do not see it before somebody edits the policy, as ``new_tools`` says. Raises
        AlreadyRegistered where there is one of that name and major version or a server has one of that name,
        RegistrationError for a declaration with gaps, PolicyInvalid where the policy says of it what does not fit it;
        then nothing has changed.
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
    """Tools and sources of the program that opens a workspace."""

    tools: ProgramTools
    sources: ProgramSources

    @classmethod
    def of(cls, tools: Iterable[Tool] = (), sources: Iterable[BlockSource | StreamSource] = ()) -> Program:
        """Make it of the tools and sources of a start. Raises AlreadyRegistered, RegistrationError."""
        made = cls(ProgramTools(tools), ProgramSources())
        for source in sources:
            made.sources.add(source)
        return made

    @property
    def known(self) -> tuple[Tool, ...]:
        """All tools that it ever brought."""
        return (*self.tools.known, *self.sources.known)

    def twin(self) -> Program:
        """The same for a copy of the workspace, which does not follow what comes and goes later."""
        return Program(self.tools.twin(), self.sources.twin())


def _key(tool: Tool) -> Key:
    return tool.name, tool.major


def _nothing() -> None:
    """Take in nothing: the workspace is being opened."""
