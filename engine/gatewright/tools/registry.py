"""Which tools there are, by name and major version, while they come and go.

Writers take turns; readers look at a snapshot that never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.base.once import once
from gatewright.policy.right import ToolFacts
from gatewright.record.process import fork_safe_lock
from gatewright.tools.tool import Tool

Key = tuple[str, int]


@dataclass(frozen=True)
class _Snapshot:
    """The tools of one revision; put in order when they are first listed, since many may come one by one."""

    tools: dict[Key, Tool] = field(default_factory=dict[Key, Tool])

    @once
    def ordered(self) -> tuple[Tool, ...]:
        """By name and major."""
        return tuple(self.tools[key] for key in sorted(self.tools))

    @once
    def lists_operations(self) -> bool:
        """Whether a function lists the operations of any."""
        return any(tool.lists_operations for tool in self.tools.values())

    @once
    def facts(self) -> tuple[ToolFacts, ...]:
        """What policies need to know of them, in the same order."""
        return tuple(tool.facts() for tool in self.ordered)


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
    """Tools in the order of name and major; ``revision`` tells whoever holds what came of them that they changed.

    It grows with every change, after the change: whoever reads it first and then the tools has at least those.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._snapshot = _Snapshot()
        self.revision = 0

    def register(self, tool: Tool) -> Callable[[], None]:
        """Add ``tool``; the answer withdraws it again and may be called more than once.

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
        """Ask every tool again whose operations a function lists; one that has others now counts as registered anew."""
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
        """The tool of that name: of that major, or of the highest; None when there is none."""
        tools = self._snapshot.tools
        if major is not None:
            return tools.get((name, major))
        majors = [found for held, found in tools if held == name]
        return tools[name, max(majors)] if majors else None

    def tools(self) -> tuple[Tool, ...]:
        """All tools, by name and major."""
        return self._snapshot.ordered

    def keys(self) -> frozenset[Key]:
        """Name and major version of every tool."""
        return frozenset(self._snapshot.tools)

    def facts(self) -> tuple[ToolFacts, ...]:
        """What policies need to know of all tools, in the same order; asked of each tool once per revision."""
        return self._snapshot.facts

    def manifest(self) -> dict[str, object]:
        """The definitions of all tools, in the same order, as JSON values; `read_definitions` reads them back."""
        from gatewright.tools.manifest import manifest_of

        return manifest_of(self.tools())

    def write_manifest(self, path: str | Path) -> None:
        """Write them to ``path``, whole or not at all. Raises OSError."""
        from gatewright.tools.manifest import write_manifest

        write_manifest(self.tools(), Path(path))

    def _withdraw(self, key: Key) -> None:
        with self._lock:
            self._replace({held: other for held, other in self._snapshot.tools.items() if held != key})

    def _replace(self, tools: dict[Key, Tool]) -> None:
        self._snapshot = _Snapshot(tools)
        self.revision += 1
