"""Tool rules compiled for one tool of one agent: which limits, starts, consents bind each operation. It counts nothing.

The agent's rules come first, then the tool's own; higher priority before lower, then the order of the file. A rule kind
that is not enforced yet is named, so that the tool can be closed instead of left open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewright.gate.session import Limit
from gatewright.policy.rule import (
    AllowedOperations,
    ContinueLoop,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Needed,
    RequiresConsent,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.toolname import names_tool, split_name

if TYPE_CHECKING:
    from gatewright.base.problem import Address
    from gatewright.policy.document import Agent

ENFORCED = (
    AllowedOperations,
    ContinueLoop,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Needed,
    RequiresConsent,
    StartConstraint,
)


@dataclass(frozen=True, slots=True)
class BoundRule:
    """A rule where it stands. ``address`` None: the tool's own. ``operations`` None: whatever the operation."""

    rule: ToolRule
    address: Address | None
    operations: frozenset[str] | None

    def binds(self, operation: str) -> bool:
        """Whether a call of that operation comes under the rule."""
        return self.operations is None or operation in self.operations


@dataclass(frozen=True, slots=True)
class LimitRule:
    """A MaxCalls or Cooldown as the session tests it."""

    bound: BoundRule
    limit: Limit


@dataclass(frozen=True, slots=True)
class StartRule:
    """A tool that must have succeeded before any other."""

    bound: BoundRule
    tool: str


def bound_rules(agent: Agent, own: Iterable[ToolRule], tool: str, major: int) -> tuple[BoundRule, ...]:
    """Every rule on the tool, most important first."""
    rules = [
        BoundRule(rule, ("agents", agent.agent_id, "tool_rules", index), rule.operations)
        for index, rule in enumerate(agent.tool_rules)
        if names_tool(rule.tool_name, tool, major)
    ]
    rules += [BoundRule(rule, None, rule.operations) for rule in own if names_tool(rule.tool_name, tool, major)]
    return tuple(sorted(rules, key=lambda bound: -bound.rule.priority))


def unenforced(rules: Iterable[BoundRule]) -> BoundRule | None:
    """The first rule that would be ignored: its kind is not enforced, or a tool limits its own operations."""
    for bound in rules:
        own_limit = bound.address is None and isinstance(bound.rule.rule_type, AllowedOperations)
        if own_limit or not isinstance(bound.rule.rule_type, ENFORCED):
            return bound
    return None


def limits_of(rules: Iterable[BoundRule], tool: str, operation: str) -> Iterator[LimitRule]:
    """The counts and gaps that a call of ``operation`` comes under."""
    for bound in rules:
        kind = bound.rule.rule_type
        if not bound.binds(operation):
            continue
        if isinstance(kind, MaxCalls):
            yield LimitRule(bound, Limit(tool, bound.operations, calls=kind.calls))
        elif isinstance(kind, Cooldown):
            yield LimitRule(bound, Limit(tool, bound.operations, gap_s=kind.seconds))


def consents_of(rules: Iterable[BoundRule], operation: str) -> Iterator[tuple[BoundRule, RequiresConsent]]:
    """The consents that a call of ``operation`` needs."""
    for bound in rules:
        kind = bound.rule.rule_type
        if isinstance(kind, RequiresConsent) and bound.binds(operation):
            yield bound, kind


def ends_loop(rules: Iterable[BoundRule], operation: str) -> bool:
    """Whether a successful call of ``operation`` ends the loop; an exit wins over a continue."""
    return any(isinstance(bound.rule.rule_type, ExitLoop) and bound.binds(operation) for bound in rules)


def start_rules(agent: Agent) -> tuple[StartRule, ...]:
    """The agent's start constraints, most important first; one on every tool constrains nothing."""
    found = [
        StartRule(BoundRule(rule, ("agents", agent.agent_id, "tool_rules", index), rule.operations), name)
        for index, rule in enumerate(agent.tool_rules)
        if isinstance(rule.rule_type, StartConstraint) and (name := split_name(rule.tool_name)[0]) != "*"
    ]
    return tuple(sorted(found, key=lambda start: -start.bound.rule.priority))
