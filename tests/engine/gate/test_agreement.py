"""A call passes operation and schema exactly when it is valid against the schema that the model was shown."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.gate import Gate
from gatewright.policy.capability import AdvancedEdit
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import Permission, Verdict
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool
from tests.agreement.compare import passes
from tests.engine.gate.world import POLICY, World
from tests.support.patience import in_time

SLOW = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(["", "a.md", "file:x"]),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=1))


def builtin() -> tuple[Tool, ...]:
    from gatewright.builtins import builtin_tools, file_tool

    return (*builtin_tools(), file_tool())


TOOLS = {tool.name: tool for tool in builtin() if tool.operations}


def gate_for(tool: Tool, shown: frozenset[str]) -> Gate:
    registry = ToolRegistry()
    registry.register(tool)
    limits = (ToolRule(tool.name, AllowedOperations(shown)),)
    agent = Agent("a", tools=(tool.name,), tool_rules=limits, capabilities=(AdvancedEdit(),))
    source = Source("docs", "docs", Permission.ADMIN)
    return Gate(Policy(agents={"a": agent}, sources=(source,)), registry)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, frozenset[str], dict[str, Any]]:
    tool = TOOLS[draw(st.sampled_from(sorted(TOOLS)))]
    names = sorted(spec.name for spec in tool.operations)
    shown = frozenset(draw(st.sets(st.sampled_from(names), min_size=1)))
    parameters = sorted({p.name for name in names for p in tool.parameters(name)})
    given_names = draw(st.sets(st.sampled_from([*parameters, "stranger"])))
    arguments: dict[str, Any] = {name: draw(VALUES) for name in sorted(given_names)}
    operations = st.sampled_from([*names, *names, "READ", " read", ""])
    if draw(st.integers(0, 9)):
        arguments[tool.operation_field] = draw(st.one_of(operations, operations, SCALARS))
    return tool.name, shown, arguments


@SLOW
@given(cases())
def test_call_passes_exactly_when_it_fits_the_shown_schema(case: tuple[str, frozenset[str], dict[str, Any]]) -> None:
    name, shown, arguments = case
    gate = gate_for(TOOLS[name], shown)
    oracle: Any = jsonschema.Draft202012Validator(gate.view("a").listings()[0].schema)

    assert passes(gate, name, arguments) == oracle.is_valid(arguments)


@SLOW
@given(cases())
def test_call_of_a_hidden_operation_is_denied_and_its_name_not_told(
    case: tuple[str, frozenset[str], dict[str, Any]],
) -> None:
    name, shown, arguments = case
    tool = TOOLS[name]
    hidden = frozenset(spec.name for spec in tool.operations) - shown
    decision = gate_for(tool, shown).decide("a", name, arguments)
    told = {operation for operation in hidden if f"`{operation}`" in (decision.model_message or "")}

    assert not told - {parameter.name for operation in shown for parameter in tool.parameters(operation)}
    if arguments.get(tool.operation_field) in hidden:
        assert (decision.verdict, decision.stage) == (Verdict.DENY, "operation")


@pytest.fixture(scope="module")
def open_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    world = World(folder, POLICY)
    yield world
    world.close()


def nested(depth: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return {"text": value}


HOSTILE: dict[str, Any] = {
    "deep array": '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep object": '{"a":' * 100_000,
    "deep value": nested(5_000),
    "ten megabytes": json.dumps({"text": "x" * 10_000_000}),
    "ten megabytes as a value": {"text": "x" * 10_000_000},
    "ten megabytes of bytes": b'{"text": "' + b"x" * 10_000_000 + b'"}',
    "not a number": '{"text": NaN}',
    "not a number as a value": {"text": float("nan")},
    "infinity": '{"text": 1e999}',
    "same key twice": '{"text": "a", "text": "b"}',
    "lone surrogate": '{"text": "\\ud800"}',
    "lone surrogate as a value": {"text": "\ud800"},
    "lone surrogate in a key": {"\udfff": 1},
    "huge integer": '{"text": ' + "9" * 5_000 + "}",
    "huge integer as a value": {"text": 10**400},
    "trailing data": '{"text": "a"} {"text": "b"}',
    "no object": "[1, 2]",
    "not utf-8": b'{"text": "\xff"}',
    "byte order mark": '\ufeff{"text": "a"}',
    "not json": "text=a",
    "no json type": {"text": object()},
    "number for a name": {1: "a"},
    "nothing": None,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arguments_are_denied_with_a_reason_quickly(open_world: World, name: str) -> None:
    open_world.decide("echo", {"text": "warm"})
    began = time.process_time()
    decision = open_world.decide("echo", HOSTILE[name])
    elapsed_s = time.process_time() - began

    assert (decision.verdict, decision.stage) == (Verdict.DENY, "parse")
    assert decision.code != "internal-error"
    assert decision.reason
    assert len(decision.model_message or "") < 500
    assert in_time(elapsed_s, 0.5)  # the figure to reach is 0.05; this fails on gross faults only


@pytest.mark.parametrize("name", ["deep array", "lone surrogate as a value", "huge integer as a value", "nothing"])
async def test_hostile_call_is_recorded_and_raises_nothing(open_world: World, name: str) -> None:
    outcome = await open_world.call("echo", HOSTILE[name])

    assert outcome.output.startswith("Tool execution failed:")
    assert open_world.row_kinds()[-1] == "ToolDenied"


class Cyclic(dict[str, Any]):
    """A value that holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self["text"] = self


@settings(max_examples=300, deadline=None)
@given(
    tool=st.one_of(st.sampled_from(["file", "echo", "counter", "vault", "fail"]), st.text()),
    arguments=st.one_of(
        st.text(),
        st.binary(),
        st.dictionaries(
            st.text(),
            st.recursive(
                SCALARS | st.floats(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=20,  # size is tried above; to draw a hundred takes longer than to decide
            ),
        ),
        st.builds(Cyclic),
    ),
)
def test_nothing_that_a_model_sends_makes_the_gate_raise(open_world: World, tool: str, arguments: Any) -> None:
    decision = open_world.decide(tool, arguments)
    outcome = asyncio.run(open_world.call(tool, arguments))

    assert decision.verdict in set(Verdict)
    assert decision.code != "internal-error", decision.reason
    assert isinstance(outcome.output, str)
