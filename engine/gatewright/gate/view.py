"""What one agent's model is shown: tools in a provider's format, and the usage rules. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gatewright.gate.message import Redactor
from gatewright.schema.formats import CallReader, ToolListing, format_named
from gatewright.schema.tokens import TokenCount, count_tokens
from gatewright.tools.usage import UsageRow, UsageSection

if TYPE_CHECKING:
    from gatewright.gate.shape import ToolShape
    from gatewright.gate.snapshot import AgentSnapshot
    from gatewright.policy.right import ToolRight


class AgentView:
    """One agent under one snapshot; it does not change when the policy does. Ask the gate for a new one.

    ``before``: the view that this one follows, for what of its usage rules stays.
    """

    def __init__(self, snapshot: AgentSnapshot, before: AgentView | None = None) -> None:
        self.agent_id = snapshot.agent.agent_id
        self._snapshot = snapshot
        self._rendered: dict[str, list[dict[str, Any]]] = {}
        self._readers: dict[str, CallReader] = {}
        self._told_before = before._told() if before is not None else None

    @property
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included."""
        return self._snapshot.rights

    def listings(self) -> tuple[ToolListing, ...]:
        """The tools that the model sees, in the order of the registry."""
        return self._listings

    def unrestricted_listings(self) -> tuple[ToolListing, ...]:
        """Every tool with all its operations, as if nothing were limited: what the preview compares with."""
        return self._unrestricted

    def tools(self, format: str) -> list[dict[str, Any]]:  # noqa: A002 the name that callers write
        """The tools as JSON in ``format`` (see `FORMATS`); rendered once. Raises NotSupported.

        The list and its objects are the caller's, to add to; what lies deeper is shared between callers. Nothing in it
        is what the gate checks against.
        """
        rendered = self._rendered.get(format)
        if rendered is None:
            format_named(format)
            rendered = self._rendered[format] = [shape.rendered(format) for shape in self._snapshot.shapes()]
        return [tool.copy() for tool in rendered]

    def restore(self, format: str, name: str, arguments: Any) -> tuple[str, Any]:  # noqa: A002 as in `tools`
        """A call as a model makes it of ``tools(format)``, in the tool's own spelling: what the gate takes.

        A provider's name for the tool is undone, arguments that were wrapped are unwrapped, and nulls that stand for
        arguments left out go. ``arguments``: JSON text or an object. What cannot be read is handed through, for the
        gate to refuse; it never raises for what a model sends. Raises NotSupported for an unknown format.
        """
        reader = self._readers.get(format)
        if reader is None:
            reader = self._readers[format] = format_named(format).reader(self._listings)
        return reader.restore(name, arguments)

    def tokens(self, format: str) -> TokenCount:  # noqa: A002 as in `tools`
        """What the tools cost in tokens, and what the limits save; ``exact`` says whether it is an estimate.

        The first count of a process loads a vocabulary and takes a second or two. Raises NotSupported.
        """
        return count_tokens(self._listings, format, self._unrestricted)

    @cached_property
    def _unrestricted(self) -> tuple[ToolListing, ...]:
        plans = self._snapshot.plans()
        return tuple(ToolListing(p.tool.name, p.tool.description, p.tool.input_schema()) for p in plans)

    @property
    def usage_rules(self) -> str:
        """The Markdown section on tool usage; empty when there is nothing to say."""
        return self._usage.text

    @cached_property
    def _usage(self) -> UsageSection:
        before, self._told_before = self._told_before, None
        return UsageSection(map(self._usage_row, self._snapshot.shapes()), before)

    def _told(self) -> UsageSection | None:
        """The section as it was last made, here or before."""
        return self.__dict__.get("_usage", self._told_before)

    @cached_property
    def _listings(self) -> tuple[ToolListing, ...]:
        return tuple(shape.listing for shape in self._snapshot.shapes())

    def _usage_row(self, shape: ToolShape) -> UsageRow:
        name = shape.tool.name
        told = self._snapshot.rules.told(name)
        rules = tuple(bound.rule for bound in told if bound.source_id is None)
        of_sources = tuple((bound.source_id, bound.rule) for bound in told if bound.source_id is not None)
        return UsageRow(name, shape.shown, self._redacted(shape.usage_rule), rules, of_sources)

    def _redacted(self, usage_rule: str | None) -> str | None:
        """A tool's own words without those about tools that are hidden."""
        return self._redactor.kept(usage_rule) if usage_rule else usage_rule

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor((), self._snapshot.hidden_tools)
