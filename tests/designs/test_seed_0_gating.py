"""The design of operation gating, row by row: what is allowed is what is shown, and what is not is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gatewright import (
    OperationNotAllowed,
    PolicyInvalid,
    RegistrationError,
    Tool,
    ToolRegistry,
    ToolRule,
    operation,
    tool,
    violation_of,
)
from gatewright.policy.rule import AllowedOperations
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import filter_operations
from gatewright.schema.walk import Schema
from gatewright.tools import Normalization, ResultType
from gatewright.workspace import Workspace
from tests.designs.world import World, agent, level, only, opened, source

READ_ONLY = SafetyTier.READ_ONLY
modes = ["status", "open"]


class Choice(BaseModel):
    """An enum in a model."""

    operation: Literal["get", "put"]
    key: str = ""


class Get(BaseModel):
    operation: Literal["get"]
    key: str


class Put(BaseModel):
    operation: Literal["put"]
    key: str
    value: str


class Union(BaseModel):
    """A tagged union."""

    request: Annotated[Get | Put, Field(discriminator="operation")]


class Plain(Tool, abstract=True):
    description = "Keeps values."
    safety_tier = READ_ONLY
    result_type = ResultType.ANY
    normalization = Normalization.JSON

    async def run(self, arguments: BaseModel, context: object) -> Any:
        return arguments.model_dump()


class ByEnum(Plain):
    name = "by_enum"
    input_model = Choice
    operation_field = "operation"


class ByUnion(Plain):
    name = "by_union"
    input_model = Union
    operation_field = "request.operation"


class Counter(Plain):
    """Operations as methods, with a schema that it trims itself."""

    name = "counter"

    @operation
    async def show(self) -> int:
        """Show it."""
        return 1

    @operation
    async def add(self, by: int = 1) -> int:
        """Count up."""
        return by

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        schema = super().schema_for(shown)
        return None if schema is None else {**schema, "title": f"{len(shown)} operations"}


@tool(normalization=Normalization.JSON, result_type=ResultType.ANY, safety_tier=READ_ONLY, operations=lambda: modes)
async def valve(op: str) -> str:
    """Work the valve."""
    return op


POLICY = (
    agent("able", ["file", "by_enum", "by_union", "counter", "valve", "search"])
    + agent(
        "limited",
        ["file", "counter"],
        rules=only("limited", "file", "read", "append") + only("limited", "counter", "show"),
    )
    + agent("twice", ["file"], rules=only("twice", "file", "read", "append") + only("twice", "file", "append", "save"))
    + agent("fed", ["file"], "sources = ['narrow']", rules=only("fed", "file", "read", "append", "save"))
    + source("docs", "docs")
    + level("secret/**", "none")
    + source(
        "narrow",
        "inbox",
        more='required_tools = [{ tool_name = "file", rule_type = { AllowedOperations = ["read", "append"] } }]\n',
    )
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(tmp_path_factory.mktemp("gating"), POLICY, tools=[ByEnum(), ByUnion(), Counter(), valve]) as made:
        (made.folder / "docs/a.md").write_text("one\n")
        (made.folder / "inbox/a.md").write_text("one\n")
        yield made


def operations(schema: dict[str, Any], field: str = "op") -> list[str]:
    return list(schema["properties"][field]["enum"])


def codes(policy: str, tmp_path: Any) -> dict[str, str]:
    """The problems of a policy, by code."""
    with pytest.raises(PolicyInvalid) as caught, opened(tmp_path, policy):
        pass
    return {one.code: str(one) for one in caught.value.problems}


def test_allowed_operations_narrow_the_schema(world: World) -> None:
    schema = world.shown("limited")["file"]["inputSchema"]
    assert operations(schema) == ["append", "read"]
    assert {"old", "new", "patch", "line"} & set(schema["properties"]) == set()
    assert {"old", "new", "line"} < set(world.shown("able")["file"]["inputSchema"]["properties"])


def test_usage_sentence(world: World) -> None:
    assert "`append` and `read`" in world.workspace.view("limited").usage_rules


def test_operations_are_declared(world: World) -> None:
    found = {
        name: set(right.shown)
        for name, right in ((r.facts.name, r) for r in world.workspace.view("able").rights.values())
    }
    assert (found["by_enum"], found["by_union"]) == ({"get", "put"}, {"get", "put"})
    assert (found["counter"], found["valve"]) == ({"show", "add"}, {"status", "open"})


def test_own_filter_hook(world: World) -> None:
    assert world.shown("limited")["counter"]["inputSchema"]["title"] == "1 operations"
    assert world.shown("able")["counter"]["inputSchema"]["title"] == "2 operations"


@pytest.mark.parametrize("form", ["mcp", "openai", "openai-responses", "anthropic", "gemini", "genai"])
def test_registry_view_with_rules_in_each_format(world: World, form: str) -> None:
    said = json.dumps(world.workspace.view("limited").tools(form))
    assert '"append"' in said
    assert '"replace"' not in said


def test_invalid_operation_is_caught(tmp_path: Any) -> None:
    wrong = codes(agent("a", ["file"], rules=only("a", "file", "raed")) + source("docs", "docs"), tmp_path)
    assert "did you mean `read`" in "".join(wrong.values())

    class Odd(Counter):
        name = "odd"
        tool_rules = (ToolRule("odd", AllowedOperations(frozenset({"raed"}))),)

    with pytest.raises(RegistrationError):
        ToolRegistry().register(Odd())


def test_rule_on_a_tool_without_operations(tmp_path: Any) -> None:
    assert "operations-on-plain-tool" in codes(agent("a", ["search"], rules=only("a", "search", "all")), tmp_path)


@pytest.mark.parametrize(
    "field", [{"enum": ["get", "put"]}, {"oneOf": [{"const": "get"}, {"const": "put"}]}], ids=["enum", "oneOf const"]
)
def test_helper_filters_and_leaves_its_input(field: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"operation": field}, "required": ["operation"]}
    before = copy.deepcopy(schema)
    filtered = filter_operations(schema, {"get"})
    assert "put" not in json.dumps(filtered)
    assert "get" in json.dumps(filtered)
    assert schema == before


def test_context_and_view_for_each_agent(world: World) -> None:
    assert world.workspace.context("limited").agent_id == "limited"
    assert world.shown("limited").keys() < world.shown("able").keys()


def test_default_is_everything(world: World) -> None:
    right = next(r for r in world.workspace.view("able").rights.values() if r.facts.name == "file")
    assert {"read", "append", "save", "delete", "replace"} <= set(right.shown)


def test_toml_shape_of_the_design(tmp_path: Any) -> None:
    rules = '[[tool_rules]]\ntool_name = "file"\nrule_type = { AllowedOperations = ["read", "append"] }\npriority = 0\n'
    (tmp_path / "policy.toml").write_text(f'name = "limited"\n{rules}{source("docs", ".")}')
    with Workspace.open(tmp_path, keys=tmp_path.parent / f"{tmp_path.name}-keys", trust=True) as workspace:
        schema: Any = workspace.view("limited").tools("mcp")
        assert operations(next(one["inputSchema"] for one in schema if one["name"] == "file")) == ["append", "read"]


def test_runtime_check_and_the_type_of_its_violation(world: World) -> None:
    decision = world.call("file", agent="limited", op="save", path="a.md").decision
    assert violation_of(decision) == OperationNotAllowed("file", "save", ("append", "read"))


def test_required_tools_of_a_source(world: World) -> None:
    assert operations(world.shown("fed")["file"]["inputSchema"]) == ["append", "read"]


def test_wildcard_is_refused(tmp_path: Any) -> None:
    assert codes(agent("a", ["file"], rules=only("a", "*", "read")) + source("docs", "docs"), tmp_path)


def test_rules_merge_to_what_all_of_them_allow(world: World) -> None:
    assert operations(world.shown("twice")["file"]["inputSchema"]) == ["append"]


def test_dynamic_operations(world: World) -> None:
    assert world.result("valve", op="open") == "open"
    modes.remove("open")
    try:
        world.workspace.reload()
        assert operations(world.shown("able")["valve"]["inputSchema"]) == ["status"]
        assert world.refused("valve", op="open") == "operation-unknown"
    finally:
        modes.append("open")
        world.workspace.reload()
