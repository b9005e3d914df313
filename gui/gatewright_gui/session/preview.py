"""What an agent's model sees, as text: schema in a provider's format, usage rules, difference against unrestricted.

It does not know widgets; it runs beside the window and returns values.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from gatewright.policy.right import ToolRight
from gatewright.schema.formats import FORMATS, Format, ToolListing, format_named
from gatewright.workspace import Workspace
from gatewright_gui.session.jsonplace import line_of, schema_steps, steps_of
from gatewright_gui.session.lints import LintRow, ProviderState, lint_rows, provider_states

MAX_SHOWN = 300_000
"""Characters of one text; more would hold up the window, and nobody reads it there."""

_LINE_BREAK = re.compile(r"(?<!\\)(?:\\\\)*\\n(?!\")")
"""`\\n` in JSON text, unless its backslash is itself an escaped one, or the string ends behind it."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of the catalog the model sees."""

    shown_tools: int
    all_tools: int
    shown_operations: int
    all_operations: int


@dataclass(frozen=True, slots=True)
class Preview:
    """Texts for one agent, or for one of its tools; `lints` are the chosen provider's."""

    agent_id: str
    tool: str | None
    schema: str
    usage_rules: str
    difference: str
    counts: Counts
    provider: str = ""
    lints: tuple[LintRow, ...] = ()
    turned_off: str = ""
    """Why a ticked tool is hidden all the same; empty when it is not ticked."""

    @property
    def is_empty(self) -> bool:
        """Whether the model sees nothing of what was asked for."""
        return not self.schema


def provider_formats() -> tuple[str, ...]:
    """The formats a preview can have."""
    return tuple(FORMATS)


def preview(workspace: Workspace, agent_id: str, tool: str | None, provider: str) -> Preview:
    """The texts for one agent; limited to one tool when `tool` is given."""
    view, form = workspace.view(agent_id), format_named(provider)
    listings = view.listings()
    chosen = [index for index, listing in enumerate(listings) if tool is None or listing.name == tool]
    after = [listings[index] for index in chosen]
    before = [listing for listing in view.unrestricted_listings() if tool is None or listing.name == tool]
    shaped = view.tools(provider)
    shown = [shaped[index] for index in chosen]
    lints = lint_rows(view, provider, tool)
    return Preview(
        agent_id,
        tool,
        _schema(shown, one=tool is not None),
        view.usage_rules if tool is None else _rules_of(view.usage_rules, tool),
        _difference(form, before, after),
        _counts(view.rights),
        provider,
        _placed(lints, [listing.name for listing in after], shown, one=tool is not None),
        _turned_off(view.rights.get(tool or "")),
    )


@dataclass(frozen=True, slots=True)
class Reception:
    """How every provider takes one of an agent's tools, or all of them."""

    agent_id: str
    tool: str | None
    states: tuple[ProviderState, ...]


def reception(workspace: Workspace, agent_id: str, tool: str | None) -> Reception:
    """Ask every provider's spelling; the first time takes long where there are many tools."""
    return Reception(agent_id, tool, provider_states(workspace.view(agent_id), tool))


def _turned_off(right: ToolRight | None) -> str:
    overruled = [op for op in right.operations if op.is_overruled] if right else []
    return overruled[0].reasons[0].text if overruled else ""


def _schema(tools: Sequence[Mapping[str, Any]], *, one: bool) -> str:
    if not tools:
        return ""
    return _cut(_json(tools[0] if one and len(tools) == 1 else list(tools)))


def _placed(
    lints: Iterable[LintRow], names: list[str], tools: Sequence[Mapping[str, Any]], *, one: bool
) -> tuple[LintRow, ...]:
    """The lints with the lines of the schema text that they speak of."""
    return tuple(replace(lint, line=_line(lint, names, tools, one=one)) for lint in lints)


def _line(lint: LintRow, names: list[str], tools: Sequence[Mapping[str, Any]], *, one: bool) -> int | None:
    if lint.tool not in names:
        return None
    at = names.index(lint.tool)
    steps = (*schema_steps(tools[at]), *steps_of(lint.pointer)) if lint.pointer else ("name",)
    return line_of(tools[at], steps) if one else line_of(tools, (str(at), *steps))


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


def _difference(form: Format, before: Iterable[ToolListing], after: Iterable[ToolListing]) -> str:
    """One unified diff over all tools; each hunk says behind its places which tool it belongs to."""
    old, new = _lines_by_tool(form, before), _lines_by_tool(form, after)
    hunks: list[str] = []
    for name in [*old, *(name for name in new if name not in old)]:
        diff = difflib.unified_diff(old.get(name, []), new.get(name, []), n=3, lineterm="")
        note = name if name in new else f"{name}, not shown at all"
        hunks += [f"{line} {note}" if line.startswith("@@") else line for line in list(diff)[2:]]
    return _cut("\n".join(["--- unrestricted", "+++ this agent", *hunks]) + "\n") if hunks else ""


def _lines_by_tool(form: Format, listings: Iterable[ToolListing]) -> dict[str, list[str]]:
    return {
        listing.name: [part for line in _json(form.render(listing)).split("\n") for part in _parts(line)]
        for listing in listings
    }


def _parts(line: str) -> list[str]:
    """A line of JSON, broken behind every line break that a string in it stands for, so that a diff shows only the
    lines of a long description that changed.
    """
    first, *rest = _LINE_BREAK.sub(lambda found: f"{found.group()}\n", line).split("\n")
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return [first, *(indent + part for part in rest)]


def _counts(rights: Mapping[str, ToolRight]) -> Counts:
    tools = [right for right in rights.values() if not right.is_hidden]
    return Counts(
        len(tools),
        len(rights),
        sum(not op.is_hidden for right in tools for op in right.operations),
        sum(len(right.operations) for right in rights.values()),
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"`{type(value).__name__}` is not JSON")


def _cut(text: str) -> str:
    if len(text) <= MAX_SHOWN:
        return text
    end = text.rfind("\n", 0, MAX_SHOWN) + 1
    return f"{text[:end]}... cut here: {text.count(chr(10), end):,} more lines; choose one tool to see it whole\n"
