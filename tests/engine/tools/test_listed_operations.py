"""Operations that a function lists: asked at registration and whenever a gate takes over a policy, gated as listed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from gatewright.base.errors import RegistrationError
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Gate, Status, selfcheck
from gatewright.policy.document import Agent, Policy
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import FunctionTool, Normalization, Tool, ToolExecutionContext, ToolRegistry, operation, tool
from gatewright.workspace import Workspace
from tests.engine.tools.declared import ObjectTool

Listing = list[Any]


class Meter(ObjectTool):
    """A meter whose reset can be locked away."""

    name = "meter"
    description = "Measures. Use `reset` with care."
    safety_tier = SafetyTier.READ_ONLY

    def __init__(self, now: Listing) -> None:
        self.now = now
        self.count = 0

    def operations(self) -> Iterable[str]:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """What there is now."""
        if self.now == ["broken"]:
            raise ZeroDivisionError
        return self.now

    @operation
    async def show(self) -> JsonValue:
        """Show the count."""
        self.count += 1
        return {"count": self.count}

    @operation
    async def reset(self, value: int = 0) -> JsonValue:
        """Start again."""
        self.count = value
        return {"count": self.count}


class Choice(BaseModel):
    op: Literal["show", "reset"]
    value: int = 0


class Modelled(ObjectTool):
    """The same with a model."""

    name = "meter"
    description = "Measures. Use `reset` with care."
    safety_tier = SafetyTier.READ_ONLY
    input_model = Choice

    def __init__(self, now: Listing) -> None:
        self.now = now

    def operations(self) -> Iterable[str]:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """What there is now."""
        if self.now == ["broken"]:
            raise ZeroDivisionError
        return self.now

    async def run(self, arguments: Choice, context: ToolExecutionContext) -> JsonValue:
        """Answer what was asked for."""
        assert context.agent_id
        return {"count": arguments.value}


def function(now: Listing) -> FunctionTool:
    def listed() -> Iterable[str]:
        if now == ["broken"]:
            raise ZeroDivisionError
        return now

    @tool(name="meter", safety_tier=SafetyTier.READ_ONLY, normalization=Normalization.JSON, operations=listed)
    async def meter(op: str, value: int = 0) -> dict[str, int]:
        """Measures. Use `reset` with care."""
        assert op
        return {"count": value}

    return meter


MAKERS = pytest.mark.parametrize("make", [Meter, Modelled, function], ids=["methods", "model", "function"])


def gate_of(made: Tool, *rules: ToolRule) -> tuple[Gate, ToolRegistry]:
    registry = ToolRegistry()
    registry.register(made)
    return Gate(Policy(agents={"a": Agent("a", tool_rules=rules)}), registry), registry


def shown(gate: Gate) -> list[str]:
    rows = gate.view("a").tools("mcp")
    return sorted(rows[0]["inputSchema"]["properties"]["op"]["enum"]) if rows else []


def denial(gate: Gate, **arguments: Any) -> tuple[str, str] | None:
    decision = gate.decide("a", "meter", arguments)
    return (decision.stage, decision.code) if decision.verdict is Verdict.DENY else None


@MAKERS
def test_only_what_the_function_lists_is_shown_and_let_through(make: Any) -> None:
    gate, _ = gate_of(make(["show"]))

    assert shown(gate) == ["show"]
    assert denial(gate, op="show") is None
    assert denial(gate, op="reset") == ("operation", "operation-unknown")
    named = "reset" in json.dumps(gate.view("a").tools("mcp"))
    assert named == (make is function)  # of a function nobody knows the operations that it does not list
    assert gate.problems() == ()
    assert selfcheck(gate).differences == ()


@MAKERS
def test_what_is_listed_anew_counts_from_the_next_reload_on(make: Any) -> None:
    now = ["show"]
    gate, registry = gate_of(make(now))
    digest, revision = registry.tools()[0].digest, registry.revision

    now.append("reset")
    assert shown(gate) == ["show"]
    gate.reload(gate.policy)
    assert shown(gate) == ["reset", "show"]
    assert denial(gate, op="reset") is None
    assert registry.tools()[0].digest != digest
    assert registry.revision == revision + 1

    gate.reload(replace(gate.policy, name="edited"))
    assert registry.revision == revision + 1
    now.remove("show")
    gate.reload(replace(gate.policy, name="edited again"))
    assert shown(gate) == ["reset"]
    assert denial(gate, op="show") == ("operation", "operation-unknown")


BAD: list[tuple[Listing, str]] = [
    (["broken"], "its function `operations` raised ZeroDivisionError"),
    ([], "its function `operations` answered no names"),
    ([7], "its function `operations` answered something that is no name"),
    (["no name"], "`no name` of tool `meter` is no operation name"),
]


@MAKERS
@pytest.mark.parametrize(("answer", "why"), BAD)
def test_an_answer_that_cannot_be_closes_the_tool_and_is_a_stated_problem(make: Any, answer: Listing, why: str) -> None:
    now: Listing = ["show"]
    gate, registry = gate_of(make(now))
    revision = registry.revision

    now[:] = answer
    gate.reload(gate.policy)

    assert shown(gate) == []
    assert denial(gate, op="show") == ("lookup", "operations-unusable")
    assert len(gate.problems()) == 1
    assert why in gate.problems()[0].text
    assert selfcheck(gate).differences == ()
    gate.reload(gate.policy)
    assert registry.revision == revision + 1
    now[:] = ["show"]
    gate.reload(gate.policy)
    assert (shown(gate), gate.problems()) == (["show"], ())


@MAKERS
def test_a_bad_answer_at_registration_closes_the_tool_too(make: Any) -> None:
    gate, _ = gate_of(make(["broken"]))

    assert denial(gate, op="show") == ("lookup", "operations-unusable")
    assert [reason.code for reason in gate.problems()] == ["operations-unusable"]


@MAKERS
def test_a_workspace_reads_its_file_by_what_is_listed_and_closes_the_tool_when_that_fails(
    make: Any, tmp_path: Path
) -> None:
    now, file = ["show", "reset"], tmp_path / "policy.toml"
    rule = '{{ tool_name = "meter", rule_type = {{ AllowedOperations = ["{}"] }} }}'
    text = 'gatewright = 1\n[agents.a]\ntools = ["meter"]\ntool_rules = [' + rule + "]\n"
    file.write_text(text.format("show"), encoding="utf-8")
    with Workspace.open(file, tools=[make(now)], keys=tmp_path / "keys") as workspace:
        now.remove("show")
        file.write_text(text.format("reset"), encoding="utf-8")
        workspace.reload()
        assert shown(workspace.gate) == ["reset"]

        now[:] = ["broken"]
        assert [one for one in workspace.reload() if one.is_error] == []
        assert [reason.code for reason in workspace.gate.problems()] == ["operations-unusable"]
        assert shown(workspace.gate) == []


def test_an_operation_that_is_neither_a_method_nor_of_the_model_closes_the_tool() -> None:
    for made in (Meter(["show", "drain"]), Modelled(["show", "drain"])):
        gate, _ = gate_of(made)

        assert "`drain`, which it does not have" in gate.problems()[0].text
        assert shown(gate) == []


async def test_the_state_of_a_tool_stays_one_however_often_its_operations_change() -> None:
    now = ["show"]
    meter = Meter(now)
    gate, _ = gate_of(meter)
    await gate.call("a", "meter", {"op": "show"})
    now.append("reset")
    gate.reload(gate.policy)
    outcome = await gate.call("a", "meter", {"op": "show"})

    assert (outcome.status, outcome.output) == (Status.ALLOWED, '{"count":2}')
    assert meter.count == 2


async def test_a_function_gets_the_operation_as_its_argument() -> None:
    gate, _ = gate_of(function(["show"]))

    assert (await gate.call("a", "meter", {"op": "show", "value": 3})).output == '{"count":3}'


@MAKERS
def test_a_rule_limits_what_is_listed_and_closes_the_tool_where_that_is_gone(make: Any) -> None:
    now = ["show", "reset"]
    gate, _ = gate_of(make(now), ToolRule("meter", AllowedOperations(frozenset({"reset"}))))
    assert shown(gate) == ["reset"]

    now.remove("reset")
    gate.reload(gate.policy)

    assert shown(gate) == []
    assert len(gate.problems()) == 1


def test_what_cannot_list_operations_is_refused_when_it_is_defined() -> None:
    async def later() -> list[str]:
        return ["show"]

    def max_of(one: str, two: str) -> list[str]:
        return [one, two]

    async def plain(value: int) -> dict[str, int]:
        """Do it."""
        return {"value": value}

    members: dict[str, Any] = {
        "description": "x",
        "input_model": type("M", (BaseModel,), {"__annotations__": {"a": int}}),
    }
    with pytest.raises(RegistrationError, match="has no parameter `op`"):
        tool(operations=lambda: ["show"])(plain)
    with pytest.raises(RegistrationError, match="is a plain function"):
        tool(operations=later)(plain)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RegistrationError, match="takes nothing"):
        tool(operations=lambda one: [one])(plain)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownLambdaType]
    with pytest.raises(RegistrationError, match="takes nothing, or the tool"):
        type("Bad", (Meter,), {"operations": max_of})
    with pytest.raises(RegistrationError, match="no operations to choose from"):
        type("Bad", (Modelled,), {**members, "name": "bad", "operations": lambda: ["a"], "run": Modelled.run})
