"""What one agent's model is shown: tools in a provider's format, and the usage rules. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gatewright.gate import ruleset
from gatewright.gate.jsoncopy import copied
from gatewright.schema.formats import ToolListing, format_named
from gatewright.tools.usage import UsageRow, usage_rules

if TYPE_CHECKING:
    from gatewright.gate.plan import ToolPlan
    from gatewright.gate.snapshot import AgentSnapshot
    from gatewright.policy.right import ToolRight


class AgentView:
    """One agent under one snapshot; it does not change when the policy does. Ask the gate for a new one."""

    def __init__(self, snapshot: AgentSnapshot) -> None:
        self.agent_id = snapshot.agent.agent_id
        self._snapshot = snapshot
        self._rendered: dict[str, list[dict[str, Any]]] = {}

    @property
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included."""
        return self._snapshot.rights

    def listings(self) -> tuple[ToolListing, ...]:
        """The tools that the model sees, in the order of the registry."""
        return self._listings

    def unrestricted_listings(self) -> tuple[ToolListing, ...]:
        """Every tool with all its operations, as if nothing were limited: what the preview compares with."""
        return tuple(
            ToolListing(tool.name, tool.description, tool.input_schema())
            for tool in (plan.tool for plan in self._snapshot.plans())
        )

    def tools(self, format: str) -> list[dict[str, Any]]:  # noqa: A002 the name that callers write
        """The tools as JSON in ``format`` (mcp, openai, anthropic); rendered once. Raises NotSupported.

        The list and its objects are the caller's, to add to; what lies deeper is shared between callers. Nothing in it
        is what the gate checks against.
        """
        rendered = self._rendered.get(format)
        if rendered is None:
            form = format_named(format)
            rendered = self._rendered[format] = [copied(form.render(listing)) for listing in self._listings]
        return [dict(tool) for tool in rendered]

    @cached_property
    def usage_rules(self) -> str:
        """The Markdown section on tool usage; empty when there is nothing to say."""
        return usage_rules([self._usage_row(plan) for plan in self._shown()])

    @cached_property
    def _listings(self) -> tuple[ToolListing, ...]:
        return tuple(plan.shape.listing for plan in self._shown() if plan.shape is not None)

    def _shown(self) -> Iterator[ToolPlan]:
        return (plan for plan in self._snapshot.plans() if plan.closed is None)

    def _usage_row(self, plan: ToolPlan) -> UsageRow:
        tool, shown = plan.tool, frozenset(plan.operations)
        rules = ruleset.bound_rules(self._snapshot.agent, tool.tool_rules, tool.name, tool.major)
        return UsageRow(tool.name, shown, tool.usage_rule_for(shown), tuple(bound.rule for bound in rules))
