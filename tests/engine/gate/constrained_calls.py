"""Random constraints on real tools, and calls that nearly fit them, for tests of the narrowed schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from gatewright.base.errors import RegistrationError
from gatewright.gate import Gate
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.read import LOOKUP, OPERATION
from gatewright.gate.stages.rules import SCHEMA
from gatewright.policy.capability import AdvancedEdit
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, ToolRule
from gatewright.policy.verdict import Permission
from gatewright.schema.walk import Schema, as_list, as_object, objects
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import read_definitions
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool

Call = dict[str, Any]


def corpora_tools(corpora: Path) -> list[Tool]:
    """Every tool that real servers list, but those in draft 7 with formats, about which the oracle differs."""
    rows = json.loads((corpora / "mcp_tools.json").read_text(encoding="utf-8"))
    found: list[Tool] = []
    for row in rows:
        text = json.dumps(row["tool"])
        for definition in read_definitions([row["tool"]])[0] if not ("draft-07" in text and '"format"' in text) else ():
            try:
                found.append(DefinedTool(definition, origin="stranger"))
            except RegistrationError:
                continue
    return found


def gate_for(tool: Tool, shown: frozenset[str], *rules: ToolRule) -> Gate:
    registry = ToolRegistry()
    registry.register(tool)
    limits = (ToolRule(tool.name, AllowedOperations(shown)),) if tool.has_operations else ()
    agent = Agent("a", tool_rules=(*limits, *rules), capabilities=(AdvancedEdit(),))
    source = Source("docs", "docs", Permission.ADMIN)
    return Gate(Policy(agents={"a": agent}, sources=(source,)), registry)


def passes(gate: Gate, tool: str, arguments: Call) -> bool:
    """True if the stages lookup, operation and schema let the call pass."""
    state = gate.state("a", tool, arguments)
    state.arguments = arguments
    for stage in (LOOKUP, OPERATION, SCHEMA):
        result = run_stage(stage, state)
        assert not [finding for finding in result.findings if finding.code == "internal-error"]
        if result.findings:
            return False
    return True


class Maker:
    """Makes sets of operations, constraints and calls of tools from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def shown(self, tool: Tool) -> frozenset[str]:
        names = [spec.name for spec in tool.operations] or [""]
        return frozenset(self.random.sample(names, self.random.choice([1, len(names), max(1, len(names) - 1)])))

    def rules(self, tool: Tool, properties: Mapping[str, object]) -> tuple[ToolRule, ...]:
        return tuple(self._rule(tool, properties) for _ in range(self.random.randint(1, 3)))

    def _rule(self, tool: Tool, properties: Mapping[str, object]) -> ToolRule:
        name = self.random.choice(sorted(properties))
        names = [spec.name for spec in tool.operations]
        some = self.random.sample(names, self.random.randint(1, len(names))) if names else []
        conditions = tuple(f"operation:{one}" for one in some) if self.random.random() < 0.4 else ()
        return ToolRule(tool.name, ArgumentConstraints({name: self.constraint(properties[name])}), conditions)

    def constraint(self, own: object, depth: int = 0) -> Schema:
        """Return a constraint, sensible or not, for a value that ``own`` describes."""
        table = as_object(own) or {}
        options, inner, items = table.get("enum"), table.get("properties"), as_object(table.get("items"))
        if depth < 4 and (inner or items) and self.random.random() < 0.7:
            return self._inside(inner, items, depth)
        if options and self.random.random() < 0.6:
            return {"enum": self.random.sample(options, self.random.randint(1, len(options)))}
        return self.random.choice(
            [
                {"enum": ["a", "bb", 1, 2, True, None]},
                {"minimum": self.random.randint(-2, 3)},
                {"maximum": self.random.randint(0, 4)},
                {"pattern": "^[a-m]"},
                {"minLength": 2},
                {"const": self.random.choice(["a", 1, True])},
                {"type": self.random.choice(["string", "integer", "number", "boolean", ["string", "null"]])},
                {"anyOf": [{"maxItems": 1, "maxLength": 3}, {"type": "null"}]},
            ]
        )

    def _inside(self, inner: Schema | None, items: Schema | None, depth: int) -> Schema:
        """Return a constraint on a part of the value, in one of several spellings."""
        if not inner:
            below = {"items": self.constraint(items, depth + 1)}
            return self.random.choice([below, {"maxItems": 1}, {**below, "minItems": 1}])
        name = self.random.choice(sorted(inner))
        below = {"properties": {name: self.constraint(inner[name], depth + 1)}}
        ways = [below, below, {"not": {**below, "required": [name]}}, {"anyOf": [below, {"minProperties": 2}]}]
        return self.random.choice([*ways, {"required": [name]}, {"allOf": [below], "minProperties": 1}])

    def call(self, schema: Schema, depth: int = 0) -> Call:
        """Arguments that often fit ``schema``."""
        known, required = self._known(schema)
        made: Call = {}
        for name, own in known.items():
            if self.random.random() < (0.97 if name in required else 0.4):
                made[name] = self._value(own, depth + 1)
        if depth == 0 and self.random.random() < 0.05:
            made["stranger"] = 1
        return made

    def _known(self, schema: Schema) -> tuple[Schema, set[str]]:
        parts = [schema, *objects(schema.get("allOf"))]
        for keyword in ("anyOf", "oneOf"):
            branches = objects(schema.get(keyword))
            parts += [self.random.choice(branches)] if branches else []
        known: Schema = {}
        required: set[str] = set()
        for part in parts:
            known |= part.get("properties", {})
            required |= set(part.get("required", ()))
        return known, required

    def _value(self, given: object, depth: int) -> Any:
        own = as_object(given) or {}
        if self.random.random() < 0.9:
            options = [own["const"]] if "const" in own else own.get("enum")
            if options:
                return self.random.choice(options)
            branches = own.get("anyOf") or own.get("oneOf")
            if branches:
                return self._value(self.random.choice(branches), depth + 1)
        kind = self.random.choice(as_list(own.get("type")) or [own.get("type")])
        return self._of_type(own, kind if self.random.random() < 0.92 else "anything", depth)

    def _of_type(self, own: Schema, kind: object, depth: int) -> Any:
        match kind:
            case "string":
                return self.random.choice(["a", "bb", "ccc", "zz", "", "https://a.b"])
            case "integer":
                return self.random.randint(-3, 5)
            case "number":
                return self.random.choice([0, 1, 1.5, -2, 3])
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                return [self._value(own.get("items"), depth + 1) for _ in range(self.random.randint(0, 2))]
            case "object":
                return self.call(own, depth + 1) if depth < 5 else {}
            case _:
                odd: list[Any] = [None, 1, "a", True, [], {}, 2.5]
                return self.random.choice(odd)


def satisfies(
    tool: Tool, shown: frozenset[str], rules: tuple[ToolRule, ...], checkers: Mapping[str, Any], arguments: Call
) -> bool:
    """The constraints read by hand: every value given, and every default that stands for one left out."""
    for rule in rules:
        called = tool.operations_of(arguments) or tuple(shown)
        bound = called if rule.operations is None else tuple(one for one in called if one in rule.operations)
        for name, schema in fields_of(rule).items():
            values = [arguments[name]] if name in arguments else defaults(tool, bound, name)
            if (bound or rule.operations is None) and not all(map(checkers[json.dumps(schema)], values)):
                return False
    return True


def defaults(tool: Tool, operations: tuple[str, ...], name: str) -> list[object]:
    """Return the defaults of an omitted field in any of the operations."""
    if tool.has_operations and name == tool.operation_field:
        return [*operations]
    parameters = [one for operation in operations for one in tool.parameters(operation) if one.name == name]
    return [one.default for one in parameters if one.has_default]


def fields_of(rule: ToolRule) -> Mapping[str, Any]:
    """The constraint by field."""
    assert isinstance(rule.rule_type, ArgumentConstraints)
    return rule.rule_type.fields
