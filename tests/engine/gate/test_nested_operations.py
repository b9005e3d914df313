"""Operations that a call names further inside: each comes under what the same operation at the root comes under."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Gate, Session
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import DefinedTool, ToolDefinition, ToolExecutionContext, ToolRegistry

NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"op": {"enum": ["read", "delete"]}, "then": {"$ref": "#/$defs/node"}},
    "required": ["op"],
}
SCHEMA = {**NODE, "$defs": {"node": NODE}}


async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue:
    return {"by": context.agent_id}


def gate_of(agent: str) -> Gate:
    registry = ToolRegistry()
    registry.register(DefinedTool(ToolDefinition("chain", "Does things.", SCHEMA), origin="far", runner=run))
    text = f'gatewright = 1\n[agents.a]\ntools = ["chain"]\n{agent}\n'
    loaded = parse_policy(text, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return Gate(loaded.policy, registry)


def chain(*names: str) -> dict[str, Any]:
    call: dict[str, Any] = {"op": names[-1]}
    for name in reversed(names[:-1]):
        call = {"op": name, "then": call}
    return call


def test_what_is_to_be_asked_is_asked_however_deep_it_stands() -> None:
    gate = gate_of('approvals = { privileged = "allow", "chain.delete" = "ask" }')

    assert gate.decide("a", "chain", chain("read", "read")).verdict is Verdict.ALLOW
    assert gate.decide("a", "chain", chain("read", "read", "delete")).verdict is Verdict.ASK


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_hidden_operation_is_denied_at_operation_and_shown_nowhere(depth: int) -> None:
    rule = '{ tool_name = "chain", rule_type = { AllowedOperations = ["read"] } }'
    gate = gate_of(f'approvals = {{ privileged = "allow" }}\ntool_rules = [{rule}]')

    decision = gate.decide("a", "chain", chain(*["read"] * depth, "delete"))

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "operation")
    assert "delete" not in str(decision.model_message)
    assert "delete" not in str(gate.view("a").tools("mcp"))


async def test_each_time_it_is_named_counts() -> None:
    rule = '{ tool_name = "chain", rule_type = { MaxCalls = 2 }, conditions = ["operation:delete"] }'
    gate, session = gate_of(f'approvals = {{ privileged = "allow" }}\ntool_rules = [{rule}]'), Session("s")
    calls = [chain("read", "delete"), chain("delete", "delete"), chain("read", "delete"), chain("read")]

    outcomes = [(await gate.call("a", "chain", call, session=session)).status for call in calls]

    assert [str(status) for status in outcomes] == ["allowed", "denied", "allowed", "allowed"]


def test_a_copy_of_a_tool_reads_calls_alike() -> None:
    tool = DefinedTool(ToolDefinition("chain", "", SCHEMA), origin="far")
    called = tool.operations_of(chain("read", "delete"))

    assert called == ("read", "delete")
    assert tool.operation_set is not None
    assert deepcopy(tool.operation_set).of(chain("read", "delete")) == called
