"""Which tools there are, by name and major version, while they come and go. It does not know agents or policies.

Writers take turns; readers look at a snapshot that never changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from gatewright.base.errors import AlreadyRegistered, RegistrationError
from gatewright.policy.right import ToolFacts
from gatewright.tools.tool import Tool

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    tools: dict[Key, Tool] = field(default_factory=dict[Key, Tool])
    facts: list[tuple[ToolFacts, ...]] = field(default_factory=list[tuple[ToolFacts, ...]])


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
        self._lock = threading.Lock()
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
        with self._lock:
            if key in self._snapshot.tools:
                raise AlreadyRegistered(f"tool `{tool.name}` with major version {tool.major} is registered already")
            self._replace({**self._snapshot.tools, key: tool})
        return _Once(lambda: self._withdraw(key))

    def get(self, name: str, major: int | None = None) -> Tool | None:
        """The tool of that name: of that major, or of the highest; None when there is none."""
        tools = self._snapshot.tools
        if major is not None:
            return tools.get((name, major))
        majors = [found for held, found in tools if held == name]
        return tools[name, max(majors)] if majors else None

    def tools(self) -> tuple[Tool, ...]:
        """All tools, by name and major."""
        return tuple(self._snapshot.tools.values())

    def facts(self) -> tuple[ToolFacts, ...]:
        """What policies need to know of all tools, in the same order; asked of each tool once per revision."""
        snapshot = self._snapshot
        if not snapshot.facts:
            snapshot.facts.append(tuple(tool.facts() for tool in snapshot.tools.values()))
        return snapshot.facts[0]

    def _withdraw(self, key: Key) -> None:
        with self._lock:
            self._replace({held: other for held, other in self._snapshot.tools.items() if held != key})

    def _replace(self, tools: dict[Key, Tool]) -> None:
        ordered = dict(sorted(tools.items()))
        self._snapshot = _Snapshot(ordered)
        self.revision += 1
