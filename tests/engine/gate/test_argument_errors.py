"""What a model reads when its arguments do not fit: every error with its place and what is allowed, nothing hidden."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import RegistrationError
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.schema.walk import walk
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.tool import Tool
from tests.engine.gate.constrained_calls import Maker, corpora_tools, gate_for

HEAD = "Tool execution failed: the arguments do not fit the schema:"
LINE = re.compile(r"/[^:]*: \S.*")
VAGUE = re.compile(r"given schemas|none of the alternatives|something in this long value|does not fit `")

PLACE: dict[str, Any] = {"type": "string", "enum": ["shelf", "desk"]}


def variant(name: str, **properties: Any) -> dict[str, Any]:
    required = ["action", *properties]
    return {
        "type": "object",
        "properties": {"action": {"const": name}, **properties},
        "required": required,
        "additionalProperties": False,
    }


UNION: dict[str, Any] = {
    "type": "object",
    "oneOf": [
        variant("move", to=PLACE, steps={"type": "array", "items": {"type": "integer", "minimum": 1}}),
        variant("mark", colour={"type": "string"}),
        variant("destroy", why={"type": "string"}),
    ],
}


def union() -> Tool:
    return DefinedTool(ToolDefinition("things", "Handles things.", UNION), origin="stranger")


def told(arguments: dict[str, Any], *rules: ToolRule, shown: tuple[str, ...] = ("move", "mark")) -> list[str]:
    decision = gate_for(union(), frozenset(shown), *rules).decide("a", "things", arguments)
    assert decision.verdict is Verdict.DENY
    return (decision.model_message or "").split("\n")


def test_every_error_of_the_branch_that_the_operation_names_is_told() -> None:
    lines = told({"action": "move", "to": "floor", "steps": [1, 0, "x"]})

    assert lines == [
        HEAD,
        '/to: must be one of `"shelf"`, `"desk"`',
        "/steps/1: must be at least 1",
        "/steps/2: must be an integer",
    ]


def test_key_of_another_branch_is_refused_with_the_keys_of_the_one_named() -> None:
    lines = told({"action": "mark", "colour": "red", "to": "desk"})

    assert lines == [HEAD, "/: a key that was sent does not exist here; the keys are `action`, `colour`"]


@pytest.mark.parametrize("arguments", [{"action": "destroy"}, {"action": "Move"}, {"action": 3}])
def test_operation_that_is_hidden_or_unknown_gets_the_names_that_there_are(arguments: dict[str, Any]) -> None:
    assert told(arguments) == ["Tool execution failed: `action` must be one of `mark`, `move`"]


def test_operation_that_is_missing_gets_the_names_that_there_are_too() -> None:
    assert told({}) == ["Tool execution failed: `action` is missing: it must be one of `mark`, `move`"]


def test_limit_on_one_branch_is_told_with_what_is_allowed() -> None:
    limit = ToolRule("things", ArgumentConstraints({"to": {"enum": ["desk", "roof"]}}), ("operation:move",))
    lines = told({"action": "move", "to": "shelf", "steps": []}, limit)

    assert lines[0] == "Tool execution failed: the arguments are limited:"
    assert lines[1].startswith("/to: must be one of")
    assert '`"desk"`' in lines[1]


def strangers(corpora: Path) -> list[Tool]:
    """Real tools with unions, and what schema libraries emit."""
    found = [tool for tool in corpora_tools(corpora) if has_union(tool)]
    rows = json.loads((corpora / "library_schema_shapes.json").read_text(encoding="utf-8"))
    for number, row in enumerate(rows):
        try:
            found.append(DefinedTool(ToolDefinition(f"library_{number}", "Does it.", row["schema"]), origin="stranger"))
        except RegistrationError:
            continue
    return found


def has_union(tool: Tool) -> bool:
    return any("oneOf" in node or "anyOf" in node for _, node in walk(tool.input_schema()))


def test_errors_of_real_unions_say_where_and_what_and_name_nothing_hidden(corpora: Path) -> None:
    maker, seen = Maker(7), 0
    for tool in strangers(corpora):
        for _ in range(6):
            shown = maker.shown(tool)
            gate = gate_for(tool, shown)
            for listing in gate.view("a").listings():
                sent = maker.call(listing.schema)
                odd: list[Any] = [1, "?", [], {}]
                spoiled = {name: maker.random.choice([value, *odd]) for name, value in sent.items()}
                decision = gate.decide("a", tool.name, spoiled)
                if decision.verdict is Verdict.DENY and decision.stage in ("operation", "schema"):
                    seen += 1
                    check(tool, shown, decision.stage, decision.model_message or "")

    assert seen > 200


def check(tool: Tool, shown: frozenset[str], stage: str, text: str) -> None:
    lines = text.split("\n")
    hidden = {spec.name for spec in tool.operations} - shown

    assert not VAGUE.search(text), f"{tool.name}: {text}"
    assert stage == "operation" or all(LINE.fullmatch(line) for line in lines[1:]), f"{tool.name}: {text}"
    assert stage == "operation" or len(lines) > 1
    assert not [name for name in hidden if f"`{name}`" in text or f'"{name}"' in text], f"{tool.name}: {text}"
