"""Tools whose input is a pydantic model: an enum field, a tagged union, or neither."""

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from gatewright.base.errors import RegistrationError, ToolFailure, WeMustFix
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import Action, SafetyTier
from gatewright.schema import SchemaChecker
from gatewright.tools import PathParameter, Role, ToolExecutionContext
from tests.engine.tools.declared import CONTEXT, ObjectTool


class Step(StrEnum):
    START = "start"
    STOP = "stop"


class FlatInput(BaseModel):
    operation: Step = Field(description="What to do: `start` or `stop`.")
    target: Annotated[str, PathParameter()] = Field(description="What it is for.")
    force: bool = False


class Engine(ObjectTool):
    name = "engine"
    input_model = FlatInput
    safety_tier = SafetyTier.SIDE_EFFECTING
    operation_tiers = {"stop": SafetyTier.PRIVILEGED}  # noqa: RUF012
    operation_actions = {"stop": (Action.DELETE,)}  # noqa: RUF012

    async def run(self, arguments: FlatInput, context: ToolExecutionContext) -> JsonValue:
        return {"done": str(arguments.operation), "force": arguments.force, "by": context.agent_id}


class Put(BaseModel):
    operation: Literal["put"]
    label: str
    value: str


class Drop(BaseModel):
    operation: Literal["drop"]
    label: str


class Store(ObjectTool):
    name = "store"
    input_model = RootModel[Annotated[Put | Drop, Field(discriminator="operation")]]

    async def run(self, arguments: RootModel[Put | Drop], context: ToolExecutionContext) -> JsonValue:
        return {"did": arguments.root.operation, "label": arguments.root.label}


class Question(BaseModel):
    query: str
    limit: int = 10


class Ask(ObjectTool):
    name = "ask"
    input_model = Question

    async def run(self, arguments: Question, context: ToolExecutionContext) -> JsonValue:
        return {"query": arguments.query, "limit": arguments.limit}


def test_enum_field_gives_the_operations() -> None:
    engine = Engine()

    assert engine.operation_field == "operation"
    assert [(spec.name, spec.tier, spec.actions) for spec in engine.operations] == [
        ("start", SafetyTier.SIDE_EFFECTING, ()),
        ("stop", SafetyTier.PRIVILEGED, (Action.DELETE,)),
    ]
    assert [(p.name, p.required, p.role) for p in engine.parameters("stop")] == [
        ("target", True, Role.PATH),
        ("force", False, Role.PLAIN),
    ]


def test_schema_of_an_enum_model_is_filtered_like_a_strangers() -> None:
    schema = Engine().schema_for(frozenset({"start"}))

    assert schema is not None
    assert "stop" not in json.dumps(schema)
    assert SchemaChecker(schema).is_valid({"operation": "start", "target": "a"})
    assert not SchemaChecker(schema).is_valid({"operation": "stop", "target": "a"})
    assert Engine().schema_for(frozenset({"start", "stop"})) == Engine().input_schema()
    assert Engine().schema_for(frozenset()) is None


def test_tagged_union_gives_each_operation_its_own_parameters() -> None:
    store = Store()

    assert {spec.name: [p.name for p in spec.parameters] for spec in store.operations} == {
        "put": ["label", "value"],
        "drop": ["label"],
    }
    schema = store.schema_for(frozenset({"drop"}))
    assert schema is not None
    assert "put" not in json.dumps(schema)
    assert "value" not in json.dumps(schema)


def test_missing_arguments_follow_the_model() -> None:
    issues = Store().missing_arguments("put", {"operation": "put", "label": "a"})

    assert [(issue.pointer, issue.message) for issue in issues] == [("/value", "`put` needs `value`")]


async def test_model_reaches_run_with_its_defaults() -> None:
    result = await Engine().execute("start", {"operation": "start", "target": "a"}, CONTEXT)

    assert result == {"done": "start", "force": False, "by": "tester"}
    assert await Store().execute("drop", {"operation": "drop", "label": "x"}, CONTEXT) == {"did": "drop", "label": "x"}


async def test_arguments_of_another_operation_than_the_decided_one_never_run() -> None:
    with pytest.raises(WeMustFix):
        await Store().execute("put", {"operation": "drop", "label": "x"}, CONTEXT)


async def test_arguments_that_do_not_fit_the_model_are_a_failure() -> None:
    with pytest.raises(ToolFailure, match="field required at `target`"):
        await Engine().execute("start", {"operation": "start"}, CONTEXT)


async def test_model_without_operations_is_a_plain_tool() -> None:
    ask = Ask()

    assert ask.operations == ()
    assert not ask.facts().has_operations
    assert ask.schema_for(frozenset({""})) == ask.input_schema()
    assert [p.name for p in ask.parameters("")] == ["query", "limit"]
    assert await ask.execute("", {"query": "why"}, CONTEXT) == {"query": "why", "limit": 10}


def refused(members: dict[str, Any]) -> str:
    with pytest.raises(RegistrationError) as error:
        type("Bad", (ObjectTool,), {"name": "bad", **members})
    return str(error.value)


async def run(self: object, arguments: Any, context: ToolExecutionContext) -> JsonValue:
    return None


def test_model_needs_an_async_run() -> None:
    assert "no `async def run(self, arguments, context)`" in refused({"input_model": FlatInput})


def test_facts_on_unknown_operations_are_refused() -> None:
    tiers = {"begin": SafetyTier.READ_ONLY}

    message = refused({"input_model": FlatInput, "run": run, "operation_tiers": tiers})
    assert message == "tool `bad`: `begin` is no operation of the input model"


def test_declared_field_without_operations_is_refused() -> None:
    message = refused({"input_model": Question, "run": run, "operation_field": "query"})

    assert message == "tool `bad`: the input model offers no operations at `query`"


def test_model_that_is_no_object_is_refused() -> None:
    assert "the input model is no object" in refused({"input_model": RootModel[list[int]], "run": run})
