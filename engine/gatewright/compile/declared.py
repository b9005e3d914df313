"""Tools as the policy declares them: ``[tools.NAME] operation_field`` and ``operations`` put over what a tool is.

A declared tool is made once and kept as long as the tool and the declaration are the same, so that what is compiled
from it stays too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.policy.document import Policy, ToolSettings
from gatewright.policy.right import Layer, Reason, ToolFacts
from gatewright.policy.setting import settings_of
from gatewright.policy.verdict import Verdict
from gatewright.record.fork import fork_safe_lock

if TYPE_CHECKING:
    from gatewright.tools.registry import ToolRegistry
    from gatewright.tools.tool import Tool

UNUSABLE = "operations-unusable"
MOST_KEPT = 16_384
Key = tuple[str, int]
_Declaration = tuple[str | None, tuple[str, ...] | None]


@frozen
class _Made:
    """What a declaration made of a tool, or, with ``problem``, why it could not."""

    of: Tool
    tool: Tool
    facts: ToolFacts
    problem: str = ""


class DeclaredTools:
    """What declarations made of tools, by tool and declaration; safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[tuple[Key, _Declaration], _Made] = {}
        self._lock = fork_safe_lock()

    def made(self, tool: Tool, declared: _Declaration) -> _Made:
        """The tool so read. One that cannot be read so is as it was, with the problem."""
        key = ((tool.name, tool.major), declared)
        with self._lock:
            found = self._held.get(key)
            if found is None or found.of is not tool:
                if len(self._held) >= MOST_KEPT:
                    self._held.clear()
                found = self._held[key] = _made(tool, declared)
        return found


@frozen
class Offer:
    """The tools of one moment, as the policy declares them. ``unusable``: those that are closed, and why."""

    tools: Mapping[Key, Tool] = field(hash=False)
    facts: tuple[ToolFacts, ...]
    unusable: Mapping[Key, Reason] = field(hash=False)


def offered(policy: Policy, registry: ToolRegistry, held: DeclaredTools) -> Offer:
    """Every registered tool, those that the policy declares in that form."""
    tools, facts = {(tool.name, tool.major): tool for tool in registry.tools()}, registry.facts()
    shut = {key: _unlisted(tool) for key, tool in tools.items() if tool.operations_problem}
    if not any(settings.declares for settings in policy.tools.values()):
        return Offer(tools, facts, shut)
    declared = {key: found for key in tools if (found := _settings(policy, key)) is not None}
    made = {key: held.made(tools[key], (found.operation_field, found.operations)) for key, found in declared.items()}
    return Offer(
        {key: made[key].tool if key in made else tool for key, tool in tools.items()},
        tuple(made[key].facts if (key := (row.name, row.major)) in made else row for row in facts),
        {**{key: _closed(policy, key, one.problem) for key, one in made.items() if one.problem}, **shut},
    )


def _unlisted(tool: Tool) -> Reason:
    text = f"the operations of `{tool.name}` are not known, so the tool is closed: {tool.operations_problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text)


def _settings(policy: Policy, key: Key) -> ToolSettings | None:
    found = settings_of(policy, *key)
    return found if found is not None and found.declares else None


def _made(tool: Tool, declared: _Declaration) -> _Made:
    try:
        other = tool.declared(*declared)
        return _Made(tool, other, tool.facts() if other is tool else other.facts())
    except GatewrightError as error:
        return _Made(tool, tool, tool.facts(), str(error) or "it cannot be read so")


def _closed(policy: Policy, key: Key, problem: str) -> Reason:
    name, major = key
    written = f"{name}@{major}" if f"{name}@{major}" in policy.tools else name
    says = "operation_field" if policy.tools[written].operation_field is not None else "operations"
    address = ("tools", written, says)
    text = f"the operations that the policy declares for `{name}` do not fit it, so the tool is closed: {problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text, address)
