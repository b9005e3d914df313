"""Strangers' tools behind a gate: what is shown, what may be called and what the model is told."""

from collections.abc import Mapping
from typing import Any

import pytest

from gatewright import Gate, ToolRegistry
from gatewright.base.jsonvalue import JsonValue
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import DefinedTool, ToolDefinition, ToolExecutionContext
from tests.engine.tools.test_defined import BATCH, KEYED, flat

NESTED = {**flat(request={**flat(op={"enum": ["insert", "delete"]}), "required": ["op"]}), "required": ["request"]}
POLICY = """gatewright = 1

[defaults]
approvals = { privileged = "allow" }

[agents.clerk]
tools = ["batch", "nested", "keyed", "still"]
tool_rules = [
  { tool_name = "batch", rule_type = { AllowedOperations = ["insert"] } },
  { tool_name = "nested", rule_type = { AllowedOperations = ["insert"] } },
  { tool_name = "keyed", rule_type = { AllowedOperations = ["move"] } },
]
"""


async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue:
    return {"by": context.agent_id}


@pytest.fixture
def gate() -> Gate:
    registry = ToolRegistry()
    words = "Moves rows about; `delete` removes them."
    for name, schema in (("batch", BATCH), ("nested", NESTED), ("keyed", KEYED)):
        registry.register(DefinedTool(ToolDefinition(name, words, schema), origin="remote", runner=run))
    registry.register(DefinedTool(ToolDefinition("still", "", flat()), origin="remote"))
    loaded = parse_policy(POLICY, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return Gate(loaded.policy, registry)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("batch", {"operations": [{"op": "insert"}, {"op": "insert"}]}),
        ("nested", {"request": {"op": "insert"}}),
        ("keyed", {"move": {"to": "b"}}),
    ],
)
async def test_shown_operation_is_executed_wherever_its_field_stands(
    gate: Gate, name: str, arguments: dict[str, Any]
) -> None:
    outcome = await gate.call("clerk", name, arguments)

    assert outcome.output == '{"by":"clerk"}'


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("batch", {"operations": [{"op": "insert"}, {"op": "delete"}]}, "must be one of `insert`"),
        ("batch", {"operations": [{"op": "Insert"}]}, "must be one of `insert`"),
        ("nested", {"request": {"op": "delete"}}, "`request.op` must be one of `insert`"),
        ("nested", {"request": {}}, "`request.op` is missing: it must be one of `insert`"),
        ("nested", {}, "`request.op` is missing: it must be one of `insert`"),
        ("keyed", {"copy": {"to": "b"}}, "must be one of `move`"),
        ("keyed", {}, "must be one of `move`"),
    ],
)
async def test_any_other_is_denied_with_words_that_name_no_hidden_one(
    gate: Gate, name: str, arguments: dict[str, Any], words: str
) -> None:
    outcome = await gate.call("clerk", name, arguments)

    assert outcome.status == "denied"
    assert words in str(outcome.output)
    assert "delete" not in str(outcome.output)
    assert "copy" not in str(outcome.output)


def test_description_of_each_tool_loses_its_own_hidden_operations(gate: Gate) -> None:
    shown = {row["name"]: row["description"] for row in gate.view("clerk").tools("mcp")}

    assert "delete" not in shown["batch"] + shown["nested"]
    assert "delete" in shown["keyed"]


async def test_tool_that_nobody_runs_fails_and_says_so(gate: Gate) -> None:
    outcome = await gate.call("clerk", "still", {})

    assert outcome.status == "failed"
    assert "`still` cannot be executed here" in str(outcome.output)
