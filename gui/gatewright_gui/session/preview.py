"""What an agent's model sees, as text: schema in a provider's format and usage rules; what differs in both from
what it would see unrestricted, or saw by the policy as it was last saved; and how each provider takes it.

It runs beside the window and returns values. Over 450 lines, because all of it is read off one list of shown tools.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from gatewright.workspace.api import CatalogType, GatewrightError, Level, ToolRight, Workspace, frozen, host_of
from gatewright_gui.qt.fold import Foldable
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.linediff import ChangedLetters, letter_changes
from gatewright_gui.session.readable import operation_lines, readable_text

if TYPE_CHECKING:
    from gatewright.workspace.api import AgentView, Format, ToolListing

TO_DO: Mapping[str, str] = {
    "too-many-tools": mark("turn tools off for this agent until they are few enough, or send them in several requests"),
    "reference": mark("mend the schema where the tool comes from; until then turn the tool off for this agent"),
    "not-strict": mark("nothing, if strict mode is not needed: the gate checks every call itself"),
    "object-only": mark("declare the type in the schema of the tool, if other values than objects are needed"),
    "dropped": mark("nothing; if models often get it wrong, say it in the description of the parameter"),
    "other-keys": mark("nothing; if models often make keys up, name the allowed ones in the description"),
    "json-text": mark("nothing; one plain type in place of the choice would be sent as it is"),
    "description": mark("nothing; shorten the description where the tool comes from, if its end matters most"),
    "root-wrapped": mark("nothing; hand calls through the adapter or `restore`, which unwraps them"),
    "format": mark("nothing; a pattern in place of the format would be checked by the provider too"),
    "name": mark("nothing; hand calls through the adapter or `restore`, which knows the own name"),
}
"""By the code of a lint: what the operator can do. What is not here goes by its level."""


TO_DO_BY_LEVEL: Mapping[Level, str] = {
    "refused": mark("mend it where the tool comes from, or turn the tool off for this agent"),
    "looser": mark("nothing; the gate refuses what the provider lets through"),
    "narrower": mark("widen the schema where the tool comes from, if those calls are needed"),
    "note": mark("nothing"),
}


LEVELS: tuple[Level, ...] = ("refused", "looser", "narrower", "note")
LEVEL_WORDS: dict[Level, str] = {
    "refused": mark("refused"),
    "looser": mark("not enforced"),
    "narrower": mark("narrower"),
    "note": mark("note"),
}
"""What the window says for each level."""
"""The worst first."""


PROVIDER_WORDS: Mapping[str, str] = {
    "mcp": "MCP",
    "openai": "OpenAI",
    "openai-responses": "Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "genai": "GenAI",
}


@frozen
class LintRow:
    """One lint on one tool; an empty `tool` means all of them together. `line`: in the schema text, from 1."""

    level: Level
    tool: str
    code: str
    pointer: str
    reason: str
    advice: str
    line: int | None = None

    @property
    def to_do(self) -> str:
        """The words for what the operator can do about it; `nothing` where all is well as it is."""
        if self.level == "refused" and self.code == "key":
            return tr("rename the parameter where the tool comes from, or turn the tool off for this agent")
        return tr(TO_DO.get(self.code, TO_DO_BY_LEVEL[self.level]))


@frozen
class ProviderState:
    """The reception of what is shown by one provider: `level` is the worst, None when nothing has to be said."""

    provider: str
    level: Level | None
    count: int

    @property
    def words(self) -> str:
        """`ok`, `1 note`, `2 refused`, `1 not enforced`: how many there are of the worst."""
        if self.level is None:
            return tr("ok")
        return level_words(self.level, self.count)


def level_words(level: Level, count: int) -> str:
    """The number of lints of a level, in words: `1 note`, `3 not enforced`."""
    return counted(count, "note", "notes") if level == "note" else f"{count:,} {tr(LEVEL_WORDS[level])}"


def lint_rows(view: "AgentView", provider: str, tool: str | None) -> tuple[LintRow, ...]:
    """The lints of a provider on one tool, or on all of them; the worst first."""
    found = [
        LintRow(lint.level, name, lint.code, lint.pointer, lint.reason, lint.advice)
        for name, lints in view.lints(provider).items()
        if tool is None or name == tool
        for lint in lints
    ]
    return tuple(sorted(found, key=lambda row: LEVELS.index(row.level)))


def provider_states(view: "AgentView", tool: str | None) -> tuple[ProviderState, ...]:
    """The reception of one tool, or of all of them, by every provider."""
    from gatewright.workspace.api import FORMATS

    states: list[ProviderState] = []
    for name in FORMATS:
        rows = lint_rows(view, name, tool)
        worst = rows[0].level if rows else None
        states.append(ProviderState(name, worst, sum(row.level == worst for row in rows)))
    return tuple(states)


Base = Literal["unrestricted", "saved"]
"""With what it is compared: what the model would see if nothing were limited, or what it saw at the last save."""


MAX_SHOWN = 1_000_000
"""Characters of a schema that are shown; more would hold up the window. Copying takes all of it."""


MAX_DIFFERENCE = 150_000
"""Characters of a difference, of which nothing comes folded."""


NOT_SAVED = mark("the policy had no agent `{agent}` when it was last saved: all that its model sees is new")


_LINE_BREAK = re.compile(r"(?<!\\)(?:\\\\)*\\n(?!\")")
"""`\\n` in JSON text, unless its backslash is itself an escaped one, or the string ends behind it."""


@frozen
class Counts:
    """The share of the catalog that the model sees."""

    shown_tools: int
    all_tools: int
    shown_operations: int
    all_operations: int
    observed: tuple[str, ...] = ()
    """The part that the model sees only until it is enforced again: tools, and operations as in ``file.delete``."""


@frozen
class Difference:
    """A unified diff and how many lines it adds and takes away; `letters` are what changed within lines.

    Each hunk says behind its places which tool it belongs to. An empty `text`: there is no difference.
    """

    text: str = ""
    added: int = 0
    removed: int = 0
    letters: tuple[ChangedLetters, ...] = ()

    @property
    def words(self) -> str:
        """`+3 −12`: lines that came and went; empty where there is no difference."""
        return f"+{self.added:,} −{self.removed:,}" if self.text else ""


@frozen
class Comparison:
    """The differences for one agent, or one of its tools.

    `obstacle`: why it cannot be told; `remark`: what has to be known to read it.
    """

    agent_id: str
    tool: str | None
    provider: str
    base: Base
    change: Difference = field(default_factory=Difference)
    obstacle: str = ""
    remark: str = ""


@frozen
class Preview:
    """Texts for one agent, or for one of its tools; `lints` are the chosen provider's."""

    agent_id: str
    tool: str | None
    schema: Foldable
    usage_rules: str
    counts: Counts
    provider: str = ""
    lints: tuple[LintRow, ...] = ()
    unsent: str = ""
    """What is shown in place of what the model does not get; empty where it gets the tool."""
    readable: str = ""
    """The same to be read by a person, with what the model is not sent."""
    places: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Of one tool the lines of the schema text (from 1) that name each operation; as `readable_places`."""
    readable_places: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    whole_schema: str = ""
    """The schema, where what is shown of it is cut."""
    narrowing: tuple[str, ...] = ()
    """The coding agents that show their model what is shown here, by their titles."""
    whole: tuple[str, ...] = ()
    """Those that show their model all of their tools whatever the policy says."""

    @property
    def is_empty(self) -> bool:
        """Tell whether the model sees nothing of what was asked for."""
        return not self.whole_schema


def provider_formats() -> tuple[str, ...]:
    """The formats a preview can have."""
    from gatewright.workspace.api import FORMATS

    return tuple(FORMATS)


def preview(workspace: Workspace, agent_id: str, tool: str | None, provider: str) -> Preview:
    """The texts for one agent; limited to one tool when `tool` is given."""
    view, unsent = workspace.view(agent_id), ""
    rights, observed = view.rights, view.observed
    narrowing, all_shown = _hosts(workspace, rights, tool)
    if tool is not None and tool in rights and rights[tool].is_hidden:
        view, unsent = _if_sent(workspace, agent_id, rights[tool])
        unsent = tr("Off: the gate refuses its calls. If it were on:") if all_shown else unsent
    names = [listing.name for listing in view.listings()]
    chosen = [index for index, name in enumerate(names) if tool in (None, name)]
    shaped = view.tools(provider)
    shown = [shaped[index] for index in chosen] or _whole(view, tool if unsent else None, provider)
    sent_names = [names[index] for index in chosen]
    lints = () if unsent else lint_rows(view, provider, tool)
    schema = Foldable.json(_cut(whole := _schema(shown, one=tool is not None), MAX_SHOWN))
    sent = [one for one in view.listings() if tool in (None, one.name)]
    sent = sent or [one for one in view.full_listings() if unsent and one.name == tool]
    told = _cut(readable_text(sent, rights), MAX_SHOWN) if shown else ""
    facts = rights[tool].facts if tool is not None and tool in rights else None
    operations = facts.operations if facts is not None and facts.has_operations else ()
    return Preview(
        agent_id,
        tool,
        schema,
        view.instructions if tool is None else _rules_of(view.usage_rules, tool),
        _counts(rights, observed),
        provider,
        tuple(replace(lint, line=_line(lint, sent_names, shown, one=tool is not None)) for lint in lints),
        unsent,
        told,
        operation_lines(operations, schema.lines),
        operation_lines(operations, told.split("\n")),
        whole,
        narrowing,
        all_shown,
    )


def _hosts(
    workspace: Workspace, rights: Mapping[str, ToolRight], tool: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The coding agents whose own tools these are: those that let our hook narrow what models see, and the others."""
    chosen = [one for name, one in rights.items() if name == tool or (tool is None and not one.is_hidden)]
    origins = {right.facts.origin for right in chosen}
    found: dict[bool, list[str]] = {True: [], False: []}
    for catalog in workspace.policy.catalogs:
        if catalog.kind is CatalogType.HOST and catalog.catalog_id in origins:
            with suppress(GatewrightError):  # another program's tools, which is no coding agent that we know
                host = host_of(catalog.catalog_id)
                found[host.narrows].append(host.title)
    return tuple(found[True]), tuple(found[False])


def _if_sent(workspace: Workspace, agent_id: str, right: ToolRight) -> "tuple[AgentView, str]":
    """The view of the agent if a tool were ticked, and what to say of it."""
    from gatewright.workspace.api import EditRefused, apply, rights

    try:
        edit = rights.tick_tool(workspace.policy, workspace.catalog, agent_id, right.facts.name, on=True)
        view = workspace.view_under(apply(workspace.policy, edit), agent_id) or workspace.view(agent_id)
    except EditRefused:
        view = workspace.view(agent_id)
    after = view.rights[right.facts.name]
    if not after.is_hidden:
        return view, tr("Hidden from the model: not ticked. If it were on:")
    reason = next((op.reasons[0].text for op in after.operations if op.is_overruled), "").replace("`", "")
    if not any(op.ticked for op in right.operations):
        if not reason:
            return view, tr("Hidden from the model: not ticked, and blocked besides. If it were on:")
        return view, tr("Hidden from the model: not ticked; besides: {reason}. If it were on:", reason=reason)
    if not reason:
        return view, tr("Hidden from the model: blocked. If it were on:")
    return view, tr("Hidden from the model: {reason}. If it were on:", reason=reason)


def _whole(view: "AgentView", tool: str | None, provider: str) -> list[dict[str, Any]]:
    """A tool that is blocked even if it is ticked, as if nothing were limited; nothing for None."""
    from gatewright.workspace.api import format_named

    return [format_named(provider).render(one) for one in view.full_listings() if one.name == tool]


def compare_agent(workspace: Workspace, agent_id: str, tool: str | None, provider: str, base: Base) -> Comparison:
    """The differences in the schemas and usage rules of one agent; limited to one tool when `tool` is given."""
    from gatewright.workspace.api import format_named

    view, form = workspace.view(agent_id), format_named(provider)
    answer = Comparison(agent_id, tool, provider, base)
    if base == "unrestricted":
        before, told = view.full_listings(), view.full_usage_rules
        sides, said = (tr("unrestricted"), tr("this agent")), ("", tr("not shown at all"))
    else:
        saved = workspace.saved_view(agent_id)
        if saved is None:
            return replace(answer, obstacle=tr(NOT_SAVED, agent=agent_id))
        before, told = saved.listings(), saved.usage_rules
        answer = replace(answer, remark=workspace.saved_view_remark())
        saved_side = tr("last save")
        sides = (f"{saved_side}; {answer.remark}" if answer.remark else saved_side, tr("now"))
        said = (tr("shown now"), tr("not shown any more"))
    schemas = _changes(form, _of(tool, before), _of(tool, view.listings()), said)
    old, new = (_rules(rules, tool).splitlines() for rules in (told, view.usage_rules))
    rules: list[_Changed] = [(tr("usage rules"), old, new)] if old != new else []
    return replace(answer, change=_difference(sides, [*schemas, *rules]))


def _of(tool: str | None, listings: "Iterable[ToolListing]") -> "list[ToolListing]":
    return [listing for listing in listings if tool in (None, listing.name)]


@frozen
class Reception:
    """The reception of one of an agent's tools, or all of them, by every provider; no states: nothing is sent."""

    agent_id: str
    tool: str | None
    states: tuple[ProviderState, ...]


def reception(workspace: Workspace, agent_id: str, tool: str | None) -> Reception:
    """Ask every provider's spelling; the first time takes long where there are many tools."""
    view = workspace.view(agent_id)
    is_sent = any(tool in (None, listing.name) for listing in view.listings())
    return Reception(agent_id, tool, provider_states(view, tool) if is_sent else ())


def _schema(tools: Sequence[Mapping[str, Any]], *, one: bool) -> str:
    if not tools:
        return ""
    return _json(tools[0] if one and len(tools) == 1 else list(tools))


def _line(lint: LintRow, names: list[str], tools: Sequence[Mapping[str, Any]], *, one: bool) -> int | None:
    from gatewright_gui.session.jsonplace import line_of, schema_steps, steps_of

    if lint.tool not in names:
        return None
    at = names.index(lint.tool)
    steps = (*schema_steps(tools[at]), *steps_of(lint.pointer)) if lint.pointer else ("name",)
    return line_of(tools[at], steps) if one else line_of(tools, (str(at), *steps))


def _rules(markdown: str, tool: str | None) -> str:
    return markdown if tool is None else _rules_of(markdown, tool)


def _rules_of(markdown: str, tool: str) -> str:
    """The lines of one tool's bullet: from the line that names it to the next bullet."""
    kept: list[str] = []
    inside = False
    for line in markdown.splitlines():
        if line.startswith(("- ", "* ")):
            inside = f"`{tool}`" in line or f"**{tool}**" in line or line[2:].startswith(f"{tool}:")
        if inside or line.startswith("#"):
            kept.append(line)
    return "\n".join(kept) + "\n" if any(not line.startswith("#") for line in kept) else ""


_Changed = tuple[str, list[str], list[str]]
"""A heading, and the lines before and after."""


def _difference(sides: tuple[str, str], changed: Iterable[_Changed]) -> Difference:
    """One unified diff over all tools."""
    hunks: list[str] = []
    for title, old, new in changed:
        diff = difflib.unified_diff(old, new, n=3, lineterm="")
        hunks += [f"{line} {title}" if line.startswith("@@") else line for line in list(diff)[2:]]
    if not hunks:
        return Difference()
    added, removed = (sum(line.startswith(mark) for line in hunks) for mark in "+-")
    text = _cut("\n".join([f"--- {sides[0]}", f"+++ {sides[1]}", *hunks]) + "\n", MAX_DIFFERENCE)
    return Difference(text, added, removed, letter_changes(text))


def _changes(
    form: "Format", before: "Iterable[ToolListing]", after: "Iterable[ToolListing]", said: tuple[str, str]
) -> Iterator[_Changed]:
    """The tools whose listings are not the same; `said`: of one that came, and of one that went."""
    old, new = ({listing.name: listing for listing in listings} for listings in (before, after))
    for name in [*old, *(name for name in new if name not in old)]:
        was, now = old.get(name), new.get(name)
        if was is now or was == now:
            continue
        note = said[0] if was is None else said[1] if now is None else ""
        yield f"{name}, {note}" if note else name, _lines(form, was), _lines(form, now)


def _lines(form: "Format", listing: "ToolListing | None") -> list[str]:
    if listing is None:
        return []
    return [part for line in _json(form.render(listing)).split("\n") for part in _parts(line)]


def _parts(line: str) -> list[str]:
    """A line of JSON, broken behind every line break that a string in it stands for, so that a diff shows only the
    lines of a long description that changed.
    """
    first, *rest = _LINE_BREAK.sub(lambda found: f"{found.group()}\n", line).split("\n")
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return [first, *(indent + part for part in rest)]


def _counts(rights: Mapping[str, ToolRight], observed: tuple[str, ...]) -> Counts:
    tools = [right for right in rights.values() if not right.is_hidden]
    return Counts(
        len(tools),
        len(rights),
        sum(not op.is_hidden for right in tools for op in right.operations),
        sum(len(right.operations) for right in rights.values()),
        observed,
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"`{type(value).__name__}` is not JSON")


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    end = text.rfind("\n", 0, most) + 1
    more = counted(text.count("\n", end), "more line", "more lines")
    return text[:end] + tr("... cut here: {lines}; choose one tool to see it whole", lines=more) + "\n"
