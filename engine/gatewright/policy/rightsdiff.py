"""What an edit changes of an agent's rights, row by row, between two policies.

Boxes are compared as every layer leaves them; limits, sources and capabilities as they are written.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from gatewright.base.frozen import frozen
from gatewright.policy.rule import AllowedOperations
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gatewright.policy.document import Agent
    from gatewright.policy.kinds.capability import Capability
    from gatewright.policy.right import OperationRight, ToolRight
    from gatewright.policy.rule import ToolRule


class RightState(StrEnum):
    """What a box and all layers come to. ``OVERRULED``: ticked, and turned off by another layer."""

    OFF = "off"
    OVERRULED = "off by another layer"
    ASKS = "asks first"
    ON = "on"


class ChangeKind(StrEnum):
    """What becomes of an operation; ``WRITTEN``: the box differs and the model sees no difference."""

    ON = "turned on"
    ASKS = "asks first now"
    FREE = "no longer asks"
    OFF = "turned off"
    WRITTEN = "off either way"


@frozen
class RightChange:
    """One operation that changes; an empty ``operation`` is a tool without any."""

    agent_id: str
    tool: str
    operation: str
    before: RightState
    after: RightState

    @property
    def kind(self) -> ChangeKind:
        """What becomes of it."""
        match self.after:
            case RightState.OFF | RightState.OVERRULED:
                return ChangeKind.OFF if self.before in _SEEN else ChangeKind.WRITTEN
            case RightState.ASKS:
                return ChangeKind.ASKS
            case RightState.ON:
                return ChangeKind.FREE if self.before is RightState.ASKS else ChangeKind.ON


@frozen
class AgentDiff:
    """Everything that an edit changes of one agent. ``None`` for sources: every source."""

    agent_id: str
    rows: tuple[RightChange, ...] = ()
    limits_gone: tuple[ToolRule, ...] = ()
    limits_come: tuple[ToolRule, ...] = ()
    sources: tuple[tuple[str, ...] | None, tuple[str, ...] | None] | None = None
    capabilities: tuple[tuple[Capability, ...], tuple[Capability, ...]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing would differ that is worth a row."""
        return self == AgentDiff(self.agent_id)

    def counts(self) -> Mapping[ChangeKind, int]:
        """How many rows of each kind."""
        return Counter(row.kind for row in self.rows)


_SEEN = {RightState.ON, RightState.ASKS}


def agent_diff(old: Agent, new: Agent, was: Mapping[str, ToolRight], now: Mapping[str, ToolRight]) -> AgentDiff:
    """What differs between an agent and itself after an edit, with its right on every tool before and after."""
    gone, come = _limits(old, new)
    return AgentDiff(
        new.agent_id,
        tuple(changed_rights(new.agent_id, was, now)),
        gone,
        come,
        None if old.sources == new.sources else (old.sources, new.sources),
        None if old.capabilities == new.capabilities else (old.capabilities, new.capabilities),
    )


def standing(right: OperationRight) -> RightState:
    """Of one operation."""
    if right.verdict is Verdict.DENY:
        return RightState.OVERRULED if right.ticked else RightState.OFF
    return RightState.ASKS if right.verdict is Verdict.ASK else RightState.ON


def changed_rights(agent_id: str, was: Mapping[str, ToolRight], now: Mapping[str, ToolRight]) -> Iterator[RightChange]:
    """Every operation whose tick or verdict differs, of the tools that stand in both."""
    for name, right in now.items():
        held = was.get(name)
        if held is None or held is right:
            continue
        old = {row.operation: row for row in held.operations}
        for row in right.operations:
            one = old.get(row.operation)
            if one is not None and one is not row and (change := _change(agent_id, name, one, row)):
                yield change


def _change(agent_id: str, tool: str, one: OperationRight, other: OperationRight) -> RightChange | None:
    if one.ticked == other.ticked and one.verdict is other.verdict:
        return None
    return RightChange(agent_id, tool, one.operation, standing(one), standing(other))


def _limits(old: Agent, new: Agent) -> tuple[tuple[ToolRule, ...], tuple[ToolRule, ...]]:
    if old.tool_rules == new.tool_rules:
        return (), ()
    was, now = _other_rules(old), _other_rules(new)
    return tuple(rule for rule in was if rule not in now), tuple(rule for rule in now if rule not in was)


def _other_rules(agent: Agent) -> list[ToolRule]:
    return [rule for rule in agent.tool_rules if not isinstance(rule.rule_type, AllowedOperations)]
