"""Real tools behind real gates, with one agent for each set of operations; it makes no calls."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from gatewright.gate import Gate
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, ToolRule
from gatewright.schema import OperationSet, check_schema, discover_operations, inline_references
from gatewright.schema.formats import CallReader, ToolListing, format_named
from gatewright.schema.walk import properties_of
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool
from tests.engine.gate.constrained_calls import Maker

RANDOM_SUBSETS = 2
NARROWED = 3

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """What an agent may do with a tool: the operations (empty: it has none), and constraints on arguments."""

    shown: frozenset[str]
    fields: Json = field(default_factory=dict[str, Any], hash=False)

    def rules(self, tool: Tool) -> tuple[ToolRule, ...]:
        """Return the limit as tool rules."""
        allowed = [ToolRule(tool.name, AllowedOperations(self.shown))] if self.shown else []
        return (*allowed, *([ToolRule(tool.name, ArgumentConstraints(self.fields))] if self.fields else []))


@dataclass(frozen=True, slots=True)
class Cell:
    """One agent's view of one tool."""

    tool: Tool
    gate: Gate
    agent_id: str
    limit: Limit
    found: OperationSet | None

    @property
    def is_hidden(self) -> bool:
        """True if the limit hides the whole tool."""
        return not self.gate.view(self.agent_id).listings()

    @property
    def listing(self) -> ToolListing:
        """Return the tool as this agent's model sees it."""
        return self.gate.view(self.agent_id).listings()[0]

    @property
    def name(self) -> str:
        """The name of the cell in reports."""
        return f"{self.tool.origin}::{self.tool.name} {sorted(self.limit.shown)} {self.limit.fields or ''}"

    def rendered(self, form: str) -> dict[str, Any]:
        """Return the tool in the form that the provider gets."""
        return self.gate.view(self.agent_id).tools(form)[0]

    def reader(self, form: str) -> CallReader:
        """Return the format's reader, which spells calls as the provider would."""
        return format_named(form).reader(self.gate.view(self.agent_id).listings())


@dataclass(frozen=True)
class Stranger:
    """A tool that somebody else wrote. ``said``: the field and operations that an operator has to declare."""

    definition: ToolDefinition
    origin: str
    said: tuple[str, tuple[str, ...]] | None = None

    @cached_property
    def tool(self) -> Tool:
        """Return the tool for a gate."""
        tool = DefinedTool(self.definition, origin=self.origin)
        return tool if self.said is None else tool.with_operations(*self.said)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Operations: all, every single one, all but one, and some at random; then some with a field narrowed."""
        names = tuple(spec.name for spec in self.tool.operations)
        dice = random.Random(f"{self.origin} {self.definition.name}")
        some = [frozenset(dice.sample(names, dice.randint(1, len(names)))) for _ in range(RANDOM_SUBSETS) if names]
        every = [frozenset({name}) for name in names] + [frozenset(names) - {name} for name in names]
        found = [Limit(one) for one in dict.fromkeys([frozenset(names), *every, *some]) if one or not names]
        fields = [self._narrowed(dice) for _ in range(NARROWED)]
        return (*found, *(Limit(dice.choice(found).shown, narrowed) for narrowed in fields if narrowed))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Return one cell for each limit, all behind one gate."""
        registry = ToolRegistry()
        registry.register(self.tool)
        agents = {f"a{i}": Agent(f"a{i}", tool_rules=limit.rules(self.tool)) for i, limit in enumerate(self.limits)}
        gate = Gate(Policy(agents=agents), registry)
        found = self._found() if self.tool.has_operations else None
        return tuple(
            Cell(self.tool, gate, agent_id, one, found) for agent_id, one in zip(agents, self.limits, strict=True)
        )

    def _found(self) -> OperationSet | None:
        schema = self.tool.input_schema()
        return discover_operations(schema, field=self.said[0] if self.said else None)

    def _narrowed(self, dice: random.Random) -> Json:
        """A limit on one field of the root, whatever it holds: a value, a list, the operation or what carries it."""
        known = properties_of(inline_references(self.definition.input_schema))
        if not known:
            return {}
        name = dice.choice(sorted(known))
        return {name: Maker(dice.randrange(1 << 30)).constraint(known[name])}


def strangers(corpora: Path) -> Iterator[Stranger]:
    """Every tool of the corpora whose schema can be used at all, and the shapes that libraries emit."""
    marked = {row["id"]: row for row in _read(corpora, "multi_op_annotations.json")}
    for row in _read(corpora, "mcp_tools.json"):
        tool = row["tool"]
        said, note = None, marked.get(row["id"])
        if note and note["shape"] == "free-string" and note["operations"]:
            said = (note["operation_field"], tuple(note["operations"]))
        yield from _usable(tool["name"], tool.get("description") or "", tool["inputSchema"], row["server"], said)
    for number, row in enumerate(_read(corpora, "library_schema_shapes.json")):
        yield from _usable(f"shape_{number}", row["model"], row["schema"], row["source"], None)


def _usable(
    name: str, description: str, schema: Any, origin: str, said: tuple[str, tuple[str, ...]] | None
) -> Iterator[Stranger]:
    if not check_schema(schema):
        yield Stranger(ToolDefinition(name, description, cast("dict[str, Any]", schema)), origin, said)


def _read(corpora: Path, name: str) -> list[dict[str, Any]]:
    return json.loads((corpora / name).read_text("utf-8"))
