"""The view of one agent's model: its tools in a provider's format, and the usage rules, one bullet for each tool.

The caller decides what is visible; the usage rules leave out conditions and groups that name anything hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gatewright import schema
from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.base.printable import printable
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import Redactor
from gatewright.compile.plan import ToolShape
from gatewright.compile.rule_test import BoundRule
from gatewright.policy import rule as kinds
from gatewright.policy.right import ToolRight
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, ToolRule
from gatewright.policy.rulekind import join_names
from gatewright.policy.verdict import split_name
from gatewright.schema.check import is_checked_format
from gatewright.schema.operation import ToolListing
from gatewright.schema.walk import pointer_text, walk
from gatewright.tools.tool import Tool

HEADING = "## Tool Usage Rules"
MAX_SAID = 4_096
"""The most characters of a server's instructions that the model reads."""
Shown = Mapping[str, frozenset[str]]
"""The operations that the model sees, by tool name; ``{""}`` for a tool without operations."""


@frozen
class UsageRow:
    """A visible tool: its usage rule (see ``Tool.usage_rule_for``) and the rules on it, in the order of the text.

    ``source_rules``: source id and rule, for calls on files of that source.
    """

    name: str
    shown: frozenset[str]
    usage_rule: str | None = None
    rules: tuple[ToolRule, ...] = ()
    source_rules: tuple[tuple[str, ToolRule], ...] = ()


@frozen
class _Bullet:
    """The text about a tool; ``is_alone``: the text does not depend on the other visible tools."""

    row: UsageRow
    text: str | None
    is_alone: bool


class UsageSection:
    """The usage rules of the visible tools. ``before``: an earlier section, whose unchanged bullets serve again."""

    def __init__(self, rows: Iterable[UsageRow], before: UsageSection | None = None) -> None:
        shown_rows = sorted((row for row in rows if row.shown), key=lambda row: row.name)
        shown = {row.name: row.shown for row in shown_rows}
        old = before._bullets if before is not None else {}
        is_same = before is not None and before._shown == shown
        self._shown = shown
        self._bullets: dict[str, _Bullet] = {}
        for row in shown_rows:
            held = old.get(row.name)
            if held is None or not (is_same or held.is_alone) or (held.row is not row and held.row != row):
                held = _bullet(row, shown)
            self._bullets[row.name] = held

    @once
    def text(self) -> str:
        """The section, its tools in alphabetical order; empty without any text."""
        bullets = [bullet.text for bullet in self._bullets.values() if bullet.text]
        return "\n".join([HEADING, "", *bullets]) + "\n" if bullets else ""


def usage_rules(rows: Iterable[UsageRow]) -> str:
    """Return the section for the visible tools, alphabetically; empty without any text."""
    return UsageSection(rows).text


def server_section(catalog_id: str, instructions: str) -> str:
    """Quote a server's words about its tools, so that they do not look like ours; empty without words."""
    text = printable(instructions, keep="\n\t").strip()
    if len(text) > MAX_SAID:
        text = f"{text[:MAX_SAID].rstrip()} [...]"
    lines = [f"> {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f"## Instructions of the server `{catalog_id}`", "", *lines]) + "\n" if lines else ""


def _bullet(row: UsageRow, shown: Shown) -> _Bullet:
    told = {row.usage_rule: None} if row.usage_rule else {}
    ends = any(isinstance(rule.rule_type, kinds.ExitLoop) and not rule.conditions for rule in row.rules)
    for source_id, rule in (*(("", rule) for rule in row.rules), *row.source_rules):
        if ends and not source_id and isinstance(rule.rule_type, kinds.ContinueLoop):
            continue  # every call is the last one
        sentence = rule_sentence(rule, shown, tool_name=row.name)
        if sentence is not None:
            told[f"For files of source `{source_id}`: {_lower_first(sentence)}" if source_id else sentence] = None
    text = f"- `{row.name}`: {' '.join(' '.join(told).split())}" if told else None
    rules = [rule.rule_type for rule in (*row.rules, *(rule for _, rule in row.source_rules))]
    return _Bullet(row, text, not any(kind.names_tools or isinstance(kind, kinds.ExclusiveGroups) for kind in rules))


def rule_sentence(rule: ToolRule, shown: Shown, *, tool_name: str | None = None) -> str | None:
    """Describe ``rule`` for calls of ``tool_name`` (the rule's own tool if None); None if it needs no words.

    A rule for named operations begins with the visible ones. Each tool of a group gets the group's rule, whichever tool
    the rule is on.
    """
    subject = split_name(rule.tool_name)[0]
    name = tool_name or subject
    operations = shown.get(name, frozenset())
    limited = rule.operations if subject in (name, ANY_TOOL) else None
    visible = sorted((limited or frozenset()) & operations)
    if limited and not visible:
        return None
    sentence = _sentence(rule, name, operations, shown)
    if sentence is None or not limited:
        return sentence
    return f"For {join_names(visible, 'and')}: {_lower_first(sentence)}"


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _sentence(rule: ToolRule, name: str, operations: frozenset[str], shown: Shown) -> str | None:
    kind = rule.rule_type
    if isinstance(kind, kinds.AllowedOperations):
        return kind.usage_words(sorted(kind.operations & operations))
    if isinstance(kind, kinds.ExclusiveGroups):
        groups = (_visible(group, shown) for group in kind.groups if any(one.startswith(name) for one in group))
        own = (group for group in groups if any(_owner(one, shown) == name for one in group))
        return " ".join(filter(None, map(kind.usage_words, own))) or None
    return kind.usage_words(_visible(rule.conditions, shown))


def _visible(names: Iterable[str], shown: Shown) -> list[str]:
    """Return the ``names`` (``tool`` or ``tool.operation``, without majors) that the model sees, each once."""
    found: dict[str, None] = {}
    for name in (split_name(written)[0] for written in names if not written.startswith(OPERATION_CONDITION)):
        owner = _owner(name, shown)
        if owner == name or (owner is not None and name[len(owner) + 1 :] in shown[owner]):
            found[name] = None
    return list(found)


def _owner(name: str, shown: Shown) -> str | None:
    """Return the visible tool that ``tool`` or ``tool.operation`` names; the longest name wins."""
    if name in shown:
        return name
    return max((tool for tool in shown if name.startswith(f"{tool}.")), key=len, default=None)


if TYPE_CHECKING:
    from gatewright.schema.formats import CallReader, ProviderLint, TokenCount

    _Whole = dict[str, tuple[Tool, ToolListing]]
    _Rows = dict[str, "_Row"]


@frozen
class _Listed:
    """The tools in one format, with what they were made of. ``names``: the fitted names."""

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
    """A row of the usage rules, with what it was made of."""

    shape: ToolShape
    told: tuple[BoundRule, ...]
    hidden: frozenset[str]
    row: UsageRow

    def is_of(self, shape: ToolShape, told: tuple[BoundRule, ...], hidden: frozenset[str]) -> bool:
        """Tell whether the same material would make this row."""
        is_redacted_so = self.hidden is hidden or not shape.usage_rule
        return self.shape is shape and self.told is told and is_redacted_so


def _hidden_again(rights: Mapping[str, ToolRight], enforced: Mapping[str, ToolRight]) -> Iterator[str]:
    for name, after in enforced.items():
        gone = rights[name].shown - after.shown if name in rights else ()
        if gone and after.is_hidden:
            yield name
        else:
            yield from (f"{name}.{operation}" for operation in after.facts.operation_names if operation in gone)


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
        """The right on every tool, including hidden ones."""
        return self._snapshot.rights

    @property
    def enforced_rights(self) -> Mapping[str, ToolRight]:
        """The ``rights`` as they would be if nothing were only observed; empty if all is enforced."""
        enforced = self._snapshot.enforced
        return {} if enforced is None else enforced.rights

    @property
    def rights_lacking(self) -> int:
        """The number of tools whose rights are still to be computed; at 0 those in force and the enforced are ready."""
        enforced = self._snapshot.enforced
        return self._snapshot.rights_lacking + (0 if enforced is None else enforced.rights_lacking)

    @property
    def observed(self) -> tuple[str, ...]:
        """The tools, and operations as in ``file.delete``, that the model sees only until they are enforced again."""
        return tuple(_hidden_again(self.rights, self.enforced_rights))

    def rights_in_pieces(self) -> Iterator[None]:
        """Compute the rights, in force and enforced, in pieces of some milliseconds, with room for other work."""
        if self._snapshot.enforced is not None:
            yield from self._snapshot.enforced.rights_in_pieces()
        yield from self._snapshot.rights_in_pieces()

    def listings(self) -> tuple[ToolListing, ...]:
        """The tools that the model sees, in the order of the registry."""
        return self._listings

    def full_listings(self) -> tuple[ToolListing, ...]:
        """Every tool with all its operations and without limits, for comparison in the preview."""
        return self._full_listings

    def tools(self, format: str) -> list[dict[str, Any]]:  # noqa: A002 the name that callers write
        """The tools as JSON in ``format`` (see `FORMATS`), each under a name of its own; rendered once.

        Raises NotSupported. The caller may extend the list and its objects; deeper parts are shared between callers.
        The gate uses none of them.
        """
        listed = self._lists.get(format)
        if listed is None:
            listed = self._lists[format] = self._make_list(format)
        return [tool.copy() for tool in listed.tools]

    def restore(self, format: str, name: str, arguments: Any) -> tuple[str, Any]:  # noqa: A002 as in `tools`
        """Translate a model's call of ``tools(format)`` into the tool's own spelling for the gate.

        It undoes a provider's tool name, unwraps wrapped arguments, and drops nulls that stand for omitted arguments.
        ``arguments``: JSON text or an object. Unreadable input passes unchanged, since the gate refuses it; nothing
        that a model sends raises. Raises NotSupported for an unknown format.
        """
        reader = self._readers.get(format)
        if reader is None:
            reader = self._readers[format] = schema.format_named(format).reader(self._listings)
        return reader.restore(name, arguments)

    def lints(self, format: str) -> Mapping[str, tuple[ProviderLint, ...]]:  # noqa: A002 as in `tools`
        """By tool name, the losses and changes in a provider's spelling; those of all tools under "".

        They include constraints that the gate enforces although no format can express them. Raises NotSupported.
        """
        found = self._lints.get(format)
        if found is None:
            lints = schema.format_named(format).lints_all(self._listings)
            for shape in self._shapes:
                if more := tuple(_unsaid_lints(shape, format)):
                    name = shape.listing.name
                    lints[name] = (*lints.get(name, ()), *more)
            found = self._lints[format] = MappingProxyType(lints)
        return found

    def tokens(self, format: str) -> TokenCount:  # noqa: A002 as in `tools`
        """The tokens that the tools cost, and those that the limits save; ``exact``: counted, not estimated.

        The first count of a process loads a vocabulary and takes a second or two; later ones count only changed tools.
        Raises NotSupported.
        """
        from gatewright.schema.formats import count_tokens

        return count_tokens(self._listings, format, self._full_listings)

    def _make_list(self, form: str) -> _Listed:
        """The list in a format; unchanged entries stay unless the set of tools changes."""
        spelled, before, shapes = schema.format_named(form), self._lists_before.pop(form, None), self._shapes
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
        """By name, every tool with its unrestricted listing; unchanged tools keep their listing."""
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
        """The Markdown section on tool usage; empty without words to say."""
        return self._usage.text

    @once
    def instructions(self) -> str:
        """All text beside the tools, as Markdown: the usage rules, and the instructions of the servers of shown tools.

        The operator has accepted the instructions; a clause that names anything hidden of the same server is dropped.
        """
        said = {shape.tool.origin: shape.tool.instructions for shape in self._shapes if shape.tool.instructions}
        sections = [server_section(origin, self._of_server(origin, text)) for origin, text in said.items()]
        return "\n".join(section for section in (self.usage_rules, *sections) if section)

    def _of_server(self, origin: str, text: str) -> str:
        """A server's text without the clauses that name something hidden of the server, or a hidden tool in
        backticks.
        """
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
        """The section without limits: every tool's own words with those of all its operations, and no rules."""
        rows: list[UsageRow] = []
        for tool in self._snapshot.tools():
            shown = frozenset(spec.name for spec in tool.operations) or frozenset({""})
            rows.append(UsageRow(tool.name, shown, tool.usage_rule_for(shown)))
        return usage_rules(rows)

    @once
    def _usage(self) -> UsageSection:
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
        """The row of a tool; the earlier row if its material is the same."""
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
        yield ProviderLint(
            "constraint-not-shown", schema.format_named(form).provider, pointer, reason, advice, "looser"
        )
    for pointer, why in shape.tool.unchecked_arguments:
        reason = f"the pattern of the tool's own schema is neither shown nor checked: {why}"
        advice = "constrain the argument in the policy where it matters"
        yield ProviderLint("pattern-not-checked", schema.format_named(form).provider, pointer, reason, advice, "looser")
    if shape.open_why:
        reason = f"arguments that the schema does not name pass: {shape.open_why}"
        advice = "constrain each argument that matters, and look at what the tool does with others"
        yield ProviderLint("arguments-open", schema.format_named(form).provider, "", reason, advice, "note")
    for pointer, node in walk(shape.listing.schema) if shape.check_formats else ():
        if is_checked_format(kind := node.get("format")):
            reason, advice = f"in this spelling `format` is only a note: any text fits `{kind}`", "the gate checks it"
            at = pointer_text((*pointer, "format"))
            yield ProviderLint("format", schema.format_named(form).provider, at, reason, advice, "looser")
