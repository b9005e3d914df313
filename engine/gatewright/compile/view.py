"""One agent's tools as its model sees them, in a provider's format, and the usage rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import Redactor
from gatewright.compile.plan import ToolShape
from gatewright.compile.rule_test import BoundRule
from gatewright.policy.right import ToolRight
from gatewright.schema.check import is_checked_format
from gatewright.schema.formats import ToolListing, format_named
from gatewright.schema.walk import pointer_text, walk
from gatewright.tools.tool import Tool

if TYPE_CHECKING:
    from gatewright.schema.formats import CallReader, ProviderLint
    from gatewright.schema.tokens import TokenCount
    from gatewright.tools.usage import UsageRow, UsageSection

    _Whole = dict[str, tuple[Tool, ToolListing]]
    _Rows = dict[str, "_Row"]


@frozen
class _Listed:
    """The tools in one format, with their material. ``names``: the fitted names."""

    shapes: tuple[ToolShape, ...]
    names: Mapping[str, str]
    tools: list[dict[str, Any]]

    def names_as(self, shapes: tuple[ToolShape, ...]) -> bool:
        """Tell whether the names fit these shapes: the same tools in the same order."""
        if len(shapes) != len(self.shapes):
            return False
        pairs = zip(self.shapes, shapes, strict=True)
        return all(was is now or was.listing.name == now.listing.name for was, now in pairs)


@frozen
class _Row:
    """A row of the usage rules, with its material."""

    shape: ToolShape
    told: tuple[BoundRule, ...]
    hidden: frozenset[str]
    row: UsageRow

    def is_of(self, shape: ToolShape, told: tuple[BoundRule, ...], hidden: frozenset[str]) -> bool:
        """Tell whether the same material would make it."""
        is_redacted_so = self.hidden is hidden or not shape.usage_rule
        return self.shape is shape and self.told is told and is_redacted_so


class AgentView:
    """One agent under one snapshot; it does not follow a new policy. Ask the gate for a new one.

    ``before``: the preceding view, whose unchanged usage rules and unrestricted tools stay.
    """

    def __init__(self, snapshot: AgentSnapshot, before: AgentView | None = None) -> None:
        self.agent_id = snapshot.agent.agent_id
        self._snapshot = snapshot
        self._lists: dict[str, _Listed] = {}
        self._readers: dict[str, CallReader] = {}
        self._lints: dict[str, Mapping[str, tuple[ProviderLint, ...]]] = {}
        self._lists_before: dict[str, _Listed] = {}
        self._rows: _Rows = {}
        self._told_before: UsageSection | None = None
        self._whole_before: _Whole = {}
        if before is not None:
            self._lists_before = {**before._lists_before, **before._lists}
            self._rows, self._told_before = before._rows, before.__dict__.get("_usage", before._told_before)
            self._whole_before = before.__dict__.get("_whole", before._whole_before)

    @property
    def rights(self) -> Mapping[str, ToolRight]:
        """The right on every tool, hidden ones included."""
        return self._snapshot.rights

    @property
    def rights_lacking(self) -> int:
        """The number of tools whose rights are still to be worked out; 0: ``rights`` is ready."""
        return self._snapshot.rights_lacking

    def rights_in_pieces(self) -> Iterator[None]:
        """Work ``rights`` out in pieces of some milliseconds, with room for other work between them."""
        return self._snapshot.rights_in_pieces()

    def listings(self) -> tuple[ToolListing, ...]:
        """The tools that the model sees, in the order of the registry."""
        return self._listings

    def full_listings(self) -> tuple[ToolListing, ...]:
        """Every tool with all its operations, without limits: the preview compares with these."""
        return self._full_listings

    def tools(self, format: str) -> list[dict[str, Any]]:  # noqa: A002 the name that callers write
        """The tools as JSON in ``format`` (see `FORMATS`), each under a name of its own; rendered once.

        Raises NotSupported. The list and its objects are the caller's to extend; deeper parts are shared between
        callers. The gate checks against none of them.
        """
        listed = self._lists.get(format)
        if listed is None:
            listed = self._lists[format] = self._make_list(format)
        return [tool.copy() for tool in listed.tools]

    def restore(self, format: str, name: str, arguments: Any) -> tuple[str, Any]:  # noqa: A002 as in `tools`
        """Translate a model's call of ``tools(format)`` into the tool's own spelling for the gate.

        It undoes a provider's tool name, unwraps wrapped arguments, and drops nulls that stand for omitted arguments.
        ``arguments``: JSON text or an object. It passes unreadable input through for the gate to refuse, and never
        raises for anything that a model sends. Raises NotSupported for an unknown format.
        """
        reader = self._readers.get(format)
        if reader is None:
            reader = self._readers[format] = format_named(format).reader(self._listings)
        return reader.restore(name, arguments)

    def lints(self, format: str) -> Mapping[str, tuple[ProviderLint, ...]]:  # noqa: A002 as in `tools`
        """By tool name, the losses and changes in a provider's spelling; those of all tools under "".

        They include constraints that the gate enforces although no format can express them. Raises NotSupported.
        """
        found = self._lints.get(format)
        if found is None:
            lints = format_named(format).lints_all(self._listings)
            for shape in self._shapes:
                if more := tuple(_unsaid_lints(shape, format)):
                    name = shape.listing.name
                    lints[name] = (*lints.get(name, ()), *more)
            found = self._lints[format] = MappingProxyType(lints)
        return found

    def tokens(self, format: str) -> TokenCount:  # noqa: A002 as in `tools`
        """The tokens that the tools cost, and those that the limits save; ``exact``: counted, not estimated.

        A process's first count loads a vocabulary and takes a second or two; later ones count changed tools only.
        Raises NotSupported.
        """
        from gatewright.schema.tokens import count_tokens

        return count_tokens(self._listings, format, self._full_listings)

    def _make_list(self, form: str) -> _Listed:
        """The list in a format; while no tool comes or goes, unchanged entries stay."""
        spelled, before, shapes = format_named(form), self._lists_before.pop(form, None), self._shapes
        if before is None or not before.names_as(shapes):
            names = spelled.names(self._listings)
            return _Listed(shapes, names, [shape.render(spelled, names[shape.listing.name]) for shape in shapes])
        names = before.names
        tools = before.tools.copy()
        for at, (was, now) in enumerate(zip(before.shapes, shapes, strict=True)):
            if was is not now:
                tools[at] = now.render(spelled, names[now.listing.name])
        return _Listed(shapes, names, tools)

    @once
    def _full_listings(self) -> tuple[ToolListing, ...]:
        return tuple(row[1] for row in self._whole.values())

    @once
    def _whole(self) -> _Whole:
        """By name, every tool with its unrestricted listing; unchanged tools keep theirs."""
        before, self._whole_before = self._whole_before, {}
        shown = {shape.tool.name: shape.listing for shape in self._shapes}
        found: _Whole = {}
        for tool in self._snapshot.tools():
            known = before.get(tool.name)
            if known is None or known[0] is not tool:
                names = frozenset(spec.name for spec in tool.operations) or frozenset({""})
                made = ToolListing(tool.name, tool.description, tool.input_schema(), tool.model_output(names))
                had = shown.get(tool.name)
                is_same = had is not None and had.schema is made.schema and had.description == made.description
                known = (tool, had if had is not None and is_same else made)
            found[tool.name] = known
        return found

    @property
    def usage_rules(self) -> str:
        """The Markdown section on tool usage; empty if nothing is to say."""
        return self._usage.text

    @once
    def instructions(self) -> str:
        """All text beside the tools, as Markdown: the usage rules, and the instructions of the servers of shown tools.

        The operator has accepted the instructions; clauses that name anything hidden of the same server are left out.
        """
        from gatewright.tools.usage import server_section

        said = {shape.tool.origin: shape.tool.instructions for shape in self._shapes if shape.tool.instructions}
        sections = [server_section(origin, self._of_server(origin, text)) for origin, text in said.items()]
        return "\n".join(section for section in (self.usage_rules, *sections) if section)

    def _of_server(self, origin: str, text: str) -> str:
        """A server's text without the clauses that name something hidden of it, or a hidden tool in backticks."""
        shown: set[str] = set()
        every: set[str] = set()
        shapes = {shape.tool.name: shape for shape in self._shapes}
        for tool in self._snapshot.tools():
            if tool.origin != origin:
                continue
            every.update((tool.name, tool.listed_name), (spec.name for spec in tool.operations))
            shape = shapes.get(tool.name)
            if shape is not None:
                shown.update((tool.name, tool.listed_name), shape.shown)
        redactor = Redactor(every - shown, self._snapshot.hidden_tools)
        lines = ((line, redactor.visible(line)) for line in text.splitlines())
        return "\n".join(kept for line, kept in lines if kept == line or any(map(str.isalnum, kept)))

    @once
    def full_usage_rules(self) -> str:
        """The section without limits: every tool's own words with those of all its operations, no rules."""
        from gatewright.tools.usage import UsageRow, usage_rules

        rows: list[UsageRow] = []
        for tool in self._snapshot.tools():
            shown = frozenset(spec.name for spec in tool.operations) or frozenset({""})
            rows.append(UsageRow(tool.name, shown, tool.usage_rule_for(shown)))
        return usage_rules(rows)

    @once
    def _usage(self) -> UsageSection:
        from gatewright.tools.usage import UsageSection

        before, self._told_before = self._told_before, None
        self._rows = {shape.tool.name: self._usage_row(shape) for shape in self._shapes}
        return UsageSection((row.row for row in self._rows.values()), before)

    @once
    def _listings(self) -> tuple[ToolListing, ...]:
        return tuple(shape.listing for shape in self._shapes)

    @once
    def _shapes(self) -> tuple[ToolShape, ...]:
        return tuple(self._snapshot.shapes())

    def _usage_row(self, shape: ToolShape) -> _Row:
        """The row of a tool; the earlier one while its material is the same."""
        from gatewright.tools.usage import UsageRow

        name, hidden = shape.tool.name, self._snapshot.hidden_tools
        told, held = self._snapshot.rules_for_model(name), self._rows.get(name)
        if held is not None and held.is_of(shape, told, hidden):
            return held
        rules = tuple(bound.rule for bound in told if bound.source_id is None)
        of_sources = tuple((bound.source_id, bound.rule) for bound in told if bound.source_id is not None)
        row = UsageRow(name, shape.shown, self._redact(shape.usage_rule), rules, of_sources)
        return _Row(shape, told, hidden, row)

    def _redact(self, usage_rule: str | None) -> str | None:
        """A tool's own words without those about hidden tools."""
        return self._redactor.visible(usage_rule) if usage_rule else usage_rule

    @once
    def _redactor(self) -> Redactor:
        return Redactor((), self._snapshot.hidden_tools)


def _unsaid_lints(shape: ToolShape, form: str) -> Iterator[ProviderLint]:
    from gatewright.schema.formats import ProviderLint

    for name, why in shape.unsaid:
        if not why:
            continue
        reason = f"the constraint on `{name}` is not in the shown schema: {why}"
        pointer, advice = (
            pointer_text(("properties", name)),
            "the gate checks it, so put it in the tool's description too",
        )
        yield ProviderLint("constraint-not-shown", format_named(form).provider, pointer, reason, advice, "looser")
    for pointer, why in shape.tool.unchecked_arguments:
        reason = f"the pattern of the tool's own schema is neither shown nor checked: {why}"
        advice = "constrain the argument in the policy where it matters"
        yield ProviderLint("pattern-not-checked", format_named(form).provider, pointer, reason, advice, "looser")
    if shape.open_why:
        reason = f"arguments that the schema does not name pass: {shape.open_why}"
        advice = "constrain each argument that matters, and look at what the tool does with others"
        yield ProviderLint("arguments-open", format_named(form).provider, "", reason, advice, "note")
    for pointer, node in walk(shape.listing.schema) if shape.check_formats else ():
        if is_checked_format(kind := node.get("format")):
            reason, advice = f"in this spelling `format` is only a note: any text fits `{kind}`", "the gate checks it"
            at = pointer_text((*pointer, "format"))
            yield ProviderLint("format", format_named(form).provider, at, reason, advice, "looser")
