"""One tool of one agent, compiled: what a call looks up instead of reading the policy. It knows no call.

Shapes (the schema for a set of shown operations and its compiled checker) are shared by all agents that see the same.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gatewright.base.errors import GatewrightError
from gatewright.gate import ruleset
from gatewright.gate.call import Finding
from gatewright.gate.message import Redactor
from gatewright.policy.permission import Action
from gatewright.policy.right import Layer, OperationRight, Reason, ToolRight
from gatewright.policy.verdict import Verdict
from gatewright.schema.check import SchemaChecker
from gatewright.schema.formats import ToolListing
from gatewright.tools.parameter import Parameter, Role

if TYPE_CHECKING:
    from gatewright.policy.document import Agent, Policy
    from gatewright.tools.tool import Tool

_MAX_SHAPES = 4096


class ToolShape:
    """What the model sees of a tool when ``shown`` are its operations; the checker is compiled at the first call."""

    def __init__(self, tool: Tool, shown: frozenset[str], schema: dict[str, object]) -> None:
        self.tool = tool
        self.shown = shown
        self.listing = ToolListing(tool.name, tool.description_for(shown), schema)

    @cached_property
    def checker(self) -> SchemaChecker:
        """The compiled schema. Raises SchemaError."""
        return SchemaChecker(self.listing.schema)


class ShapeCache:
    """Shapes by tool, major version and shown operations; safe to use from any thread."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, int, frozenset[str]], ToolShape] = {}
        self._lock = threading.Lock()

    def shape(self, tool: Tool, shown: frozenset[str]) -> ToolShape | None:
        """The shape, or None when nothing is shown. Raises GatewrightError when the tool has no usable schema."""
        key = (tool.name, tool.major, shown)
        found = self._shapes.get(key)
        if found is not None and found.tool is tool:
            return found
        schema = tool.schema_for(shown)
        if schema is None:
            return None
        shape = ToolShape(tool, shown, schema)
        with self._lock:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """One shown operation. ``roles``: its parameters that are paths, labels, sources. ``asks``: why it asks anyhow.

    ``actions``: what it may do to a place, the mildest first.
    """

    name: str
    actions: tuple[Action, ...]
    right: OperationRight
    limits: tuple[ruleset.LimitRule, ...]
    asks: tuple[Finding, ...]
    ends_loop: bool
    roles: tuple[Parameter, ...]


@dataclass(frozen=True)
class ToolPlan:
    """One tool. ``operations``: those shown; ``hidden``: why each other one is denied; ``closed``: why all of it is."""

    tool: Tool
    right: ToolRight
    shape: ToolShape | None
    closed: Finding | None
    operations: Mapping[str, OperationPlan]
    hidden: Mapping[str, Finding]
    timeout_s: float
    max_output_bytes: int
    hidden_tools: frozenset[str] = field(default=frozenset())

    @property
    def has_operations(self) -> bool:
        """Whether a field of the arguments selects the operation."""
        return self.right.facts.has_operations

    @cached_property
    def unknown_operation(self) -> str:
        """The words for an operation that is unknown or hidden: which ones there are."""
        names = ", ".join(f"`{name}`" for name in sorted(self.operations))
        return f"`{self.tool.operation_field}` must be one of {names}"

    @cached_property
    def redactor(self) -> Redactor:
        """Takes what names hidden things out of the tool's failure messages."""
        return Redactor(self.hidden, self.hidden_tools)


def compile_tool(
    policy: Policy, agent: Agent, tool: Tool, right: ToolRight, shapes: ShapeCache, hidden_tools: frozenset[str]
) -> ToolPlan:
    """The plan of one tool; one that cannot be enforced as written is closed, and says why."""
    rules = ruleset.bound_rules(agent, tool.tool_rules, tool.name, tool.major)
    closed, shape = _closed(right, ruleset.unenforced(rules)), None
    if closed is None:
        try:
            shape = shapes.shape(tool, right.shown)
        except GatewrightError as error:
            closed = Finding(Verdict.DENY, "schema-unusable", f"`{tool.name}` has no usable schema: {error}")
    if shape is None and closed is None:
        closed = Finding(Verdict.DENY, "nothing-shown", f"`{tool.name}` has nothing to show")
    shown = [row for row in right.operations if closed is None and not row.is_hidden]
    return ToolPlan(
        tool,
        right,
        shape,
        closed,
        {row.operation: _operation(tool, right, row, rules) for row in shown},
        {row.operation: _denial(row.reasons) for row in right.operations if row.is_hidden},
        _timeout(policy, tool),
        policy.defaults.max_output_bytes,
        hidden_tools,
    )


def _closed(right: ToolRight, unenforced: ruleset.BoundRule | None) -> Finding | None:
    if right.is_hidden:
        return _denial(right.reasons or tuple(r for row in right.operations for r in row.reasons[:1]))
    if unenforced is None:
        return None
    rule = unenforced.rule
    text = f"a {rule.kind} rule on `{right.facts.name}` is not supported yet, so the tool is closed"
    return Finding(Verdict.DENY, "not-supported", text, unenforced.address, rule.rule_id)


def _denial(reasons: tuple[Reason, ...]) -> Finding:
    reason = next((reason for reason in reasons if reason.verdict is Verdict.DENY), None)
    if reason is None:
        return Finding(Verdict.DENY, "hidden", "nothing allows it")
    return Finding(Verdict.DENY, reason.code, reason.text, reason.address)


def _operation(
    tool: Tool, right: ToolRight, row: OperationRight, rules: tuple[ruleset.BoundRule, ...]
) -> OperationPlan:
    declared = next((spec.actions for spec in right.facts.operations if spec.name == row.operation), ())
    return OperationPlan(
        row.operation,
        tuple(action for action in Action if action in declared),
        row,
        tuple(ruleset.limits_of(rules, tool.name, row.operation)),
        tuple(_asks(tool, row, rules)),
        ruleset.ends_loop(rules, row.operation),
        tuple(p for p in tool.parameters(row.operation) if p.role is not Role.PLAIN),
    )


def _asks(tool: Tool, row: OperationRight, rules: tuple[ruleset.BoundRule, ...]) -> list[Finding]:
    """The asks that hold whatever the arguments: consents by priority, then the approvals key or tier."""
    asks: list[Finding] = []
    for bound, kind in ruleset.consents_of(rules, row.operation):
        scope = f" (scope {kind.scope})" if kind.scope else ""
        text = f"`{tool.name}` requires consent{scope}"
        asks.append(Finding(Verdict.ASK, "requires-consent", text, bound.address, bound.rule.rule_id, scope=kind.scope))
    asks += [
        Finding(reason.verdict, reason.code, reason.text, reason.address)
        for reason in row.reasons
        if reason.layer is Layer.APPROVALS and reason.verdict is Verdict.ASK
    ]
    return asks


def _timeout(policy: Policy, tool: Tool) -> float:
    settings = policy.tools.get(tool.name) or policy.tools.get(f"{tool.name}@{tool.major}")
    if settings is not None and settings.timeout_s is not None:
        return settings.timeout_s
    if policy.defaults.timeout_s is not None:
        return policy.defaults.timeout_s
    return tool.resource_bounds.timeout_s
