"""The schema of results: where a tool says it, where its annotations do, and what of it which agent is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, computed_field
from typing_extensions import TypedDict

from gatewright import Gate, ToolRegistry
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Status
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.schema import SchemaChecker
from gatewright.schema.filter import output_without
from gatewright.tools import ToolDefinition
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.defined import DefinedTool
from gatewright.tools.registry import operation, tool
from gatewright.tools.tool import Tool


class Line(BaseModel):
    """One line."""

    text: str
    number: int = Field(ge=1)


class WordCountOutput(BaseModel):
    """What was counted."""

    count: int = Field(alias="wordCount")
    lines: list[Line] = []

    @computed_field
    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return self.count == 0


class Row(TypedDict):
    """A row."""

    name: str


@tool(safety_tier=SafetyTier.READ_ONLY)
async def word_count(text: str) -> WordCountOutput:
    """Counts words."""
    return WordCountOutput(wordCount=len(text.split()), lines=[Line(text=text, number=1)])


def shown_by(policy: str, *tools: Tool) -> Gate:
    registry = ToolRegistry()
    for one in tools:
        registry.register(one)
    loaded = parse_policy(policy, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return Gate(loaded.policy, registry)


def policy_for(name: str, more: str = "") -> str:
    allowed = 'approvals = { side_effecting = "allow", privileged = "allow" }'
    return f'gatewright = 1\n\n[agents.clerk]\ntools = ["{name}"]\n{allowed}\n{more}'


async def test_output_schema_of_a_function_that_returns_a_pydantic_model() -> None:
    schema = word_count.output_schema
    assert schema is not None
    assert set(schema["properties"]) == {"wordCount", "lines", "is_empty"}
    assert set(schema["required"]) == {"wordCount", "is_empty"}
    gate = shown_by(policy_for("word_count"), word_count)

    (listed,) = gate.view("clerk").tools("mcp")
    outcome = await gate.call("clerk", "word_count", {"text": "one two"})

    assert listed["outputSchema"] == schema
    assert outcome.status is Status.ALLOWED
    assert SchemaChecker(schema).is_valid(outcome.raw)


@pytest.mark.parametrize(
    ("returns", "has_schema"),
    [
        (WordCountOutput, True),
        (Row, True),
        (list[Line], True),
        (dict[str, int], True),
        (dict[str, Any], False),
        (dict[str, object], False),
        (list[Any], False),
        (str, False),
    ],
)
def test_annotation_gives_a_schema_where_it_says_more_than_the_type(returns: Any, has_schema: bool) -> None:
    async def give() -> Any:
        """Give it."""

    give.__annotations__["return"] = returns

    assert (tool(give).output_schema is not None) == has_schema


@pytest.mark.parametrize(
    ("returns", "has_schema"),
    [
        *((bare, False) for bare in (str, int, float, bool, JsonValue, "JsonValue", "dict[str, JsonValue]")),
        *((more, True) for more in (str | None, "int | str", "list[int]")),
    ],
)
def test_operation_that_returns_any_json_or_a_bare_type_promises_nothing(returns: Any, has_schema: bool) -> None:
    async def give(self: object) -> Any:
        """Give it."""

    give.__annotations__["return"] = returns
    said = {"name": "given", "description": "Gives.", "safety_tier": SafetyTier.READ_ONLY, "give": operation(give)}
    made = type("Given", (Tool,), {**said, "result_type": ResultType.STRING, "normalization": Normalization.JSON})()

    assert (made.operations[0].output_schema is not None) == has_schema


def test_schema_that_is_given_counts_and_not_the_annotation() -> None:
    given = {"type": "object", "required": ["wordCount"]}

    assert tool(output_schema=given)(word_count.function).output_schema == given


class Notes(Tool):
    """Two operations whose results differ."""

    name = "notes"
    description = "Notes."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    @operation
    async def read(self) -> Line:
        """Read one."""
        return Line(text="tea", number=1)

    @operation
    async def wipe(self) -> Row:
        """Wipe all."""
        return {"name": "wiped"}

    @operation(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    async def count(self) -> dict[str, object]:
        """Count them."""
        return {"n": "three"}


async def test_each_operation_has_its_own_schema_and_the_tool_that_of_all() -> None:
    gate = shown_by(policy_for("notes"), Notes())
    (listed,) = gate.view("clerk").tools("mcp")

    assert (await gate.call("clerk", "notes", {"op": "read"})).status is Status.ALLOWED
    assert (await gate.call("clerk", "notes", {"op": "wipe"})).status is Status.ALLOWED
    refused = await gate.call("clerk", "notes", {"op": "count"})
    assert (refused.status, refused.code) == (Status.FAILED, "output-mismatch")
    assert listed["outputSchema"] == Notes.output_schema
    checker = SchemaChecker(listed["outputSchema"])
    assert all(map(checker.is_valid, ({"text": "a", "number": 1}, {"name": "a"}, {"n": 3})))
    assert not any(map(checker.is_valid, ({"text": "a"}, {"name": 3}, {"n": "3"}, [])))


def test_agent_reads_nothing_of_the_results_of_operations_that_it_does_not_have() -> None:
    rule = '[[agents.clerk.tool_rules]]\ntool_name = "notes"\nrule_type = { AllowedOperations = ["read"] }\n'
    (listed,) = shown_by(policy_for("notes", rule), Notes()).view("clerk").tools("mcp")

    assert listed["outputSchema"] == Notes().operations[0].output_schema


class Later(Notes):
    """One operation of it gives something else, of which nothing is said."""

    @operation
    async def wipe(self) -> JsonValue:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Wipe all."""
        return None


def test_tool_that_gives_something_else_does_not_promise_what_it_was_made_from_promises() -> None:
    assert Later.output_schema is None
    assert Later().model_output(frozenset({"read"})) == Notes().operations[0].output_schema


ISSUES = {
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["list", "purge_all"]}},
    "required": ["action"],
}
NAMING = (
    {"type": "object", "properties": {"purge_all": {"type": "integer"}}},
    {"type": "object", "properties": {"next": {"enum": ["list", "purge_all"]}}},
    {"type": "object", "properties": {"next": {"const": "PURGE_ALL"}}},
    {"type": "object", "properties": {"a": {"anyOf": [{"properties": {"n": {"pattern": "^(list|purge_all)$"}}}]}}},
    {"type": "object", "required": ["purge_all_count"]},
)
SAYING = (
    {"type": "object", "description": "After `purge_all`: nothing.", "properties": {"n": {"type": "integer"}}},
    {"type": "object", "properties": {"n": {"type": "integer", "examples": ["purge_all"], "default": "purge_all"}}},
)


@pytest.mark.parametrize("output", NAMING + SAYING)
def test_output_schema_of_a_strangers_tool_names_no_hidden_operation(output: dict[str, Any]) -> None:
    far = DefinedTool(ToolDefinition("issues", "Issues.", ISSUES, output), origin="there")
    rule = '[[agents.clerk.tool_rules]]\ntool_name = "issues"\nrule_type = { AllowedOperations = ["list"] }\n'

    (whole,) = shown_by(policy_for("issues"), far).view("clerk").tools("mcp")
    (less,) = shown_by(policy_for("issues", rule), far).view("clerk").tools("mcp")

    assert whole["outputSchema"] == output
    assert less["outputSchema"]["type"] == "object"
    assert "purge" not in str(less).casefold()


def test_property_named_like_prose_stays_when_the_prose_goes() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string", "title": "Drop"}, "default": {"const": 1}}}

    assert output_without(schema, {"drop"}) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "default": {"const": 1}},
    }


WORDS = ("a", "b", "wipe", "wipe_all", "x_wipe")
NAMES = st.sampled_from(WORDS)
LEAVES = st.one_of(
    st.just({"type": "integer"}), NAMES.map(lambda name: {"const": name}), NAMES.map(lambda name: {"enum": [name, "c"]})
)


def branching(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(NAMES, inner, max_size=3)
    objects = st.tuples(fields, st.booleans(), st.booleans()).map(
        lambda row: {
            "type": "object",
            "properties": row[0],
            **({"required": sorted(row[0])} if row[1] else {}),
            **({"additionalProperties": False} if row[2] else {}),
        }
    )
    several = st.lists(inner, min_size=1, max_size=3)
    unions = st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), several).map(lambda row: {row[0]: row[1]})
    return st.one_of(
        objects, unions, inner.map(lambda one: {"type": "array", "items": one}), inner.map(lambda one: {"not": one})
    )


SMALL: tuple[Any, ...] = (0, 1, 2, "c", *WORDS)


def objects_of(count: int, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for names in combinations(WORDS, count):
        for held in product(values, repeat=count):
            found: dict[str, Any] = dict(zip(names, held, strict=True))
            yield found


def some_values() -> Iterator[Any]:
    """Values of every form that such a schema tells apart, from small to nested."""
    ones = list(objects_of(1, SMALL))
    yield from (*SMALL, [], *([one] for one in SMALL), *(list(pair) for pair in product(SMALL, repeat=2)))
    yield from ({}, *ones, *objects_of(2, SMALL), *objects_of(3, (1, "c", "wipe")))
    yield from (*([one] for one in ones), *objects_of(1, [*ones, *([one] for one in SMALL)]))
    yield from ([[1]], [["wipe"]], [[{"wipe": 1}]], {"a": {"wipe": {"b": 1}}}, {"wipe": {"a": {"b": "c"}}})


VALUES = tuple(some_values())
PARTS = 20


@given(st.recursive(LEAVES, branching, max_leaves=8), st.integers(0, PARTS - 1))
@settings(max_examples=300, deadline=None)
def test_schema_for_whoever_knows_less_names_nothing_hidden_and_takes_whatever_fitted(
    schema: dict[str, Any], part: int
) -> None:
    less = output_without(schema, {"wipe"})

    if less is None:
        assert "wipe" in str(schema)
        return
    assert "wipe" not in str(less)
    whole, rest = SchemaChecker(schema), SchemaChecker(less)
    assert all(rest.is_valid(value) for value in VALUES[part::PARTS] if whole.is_valid(value))


@pytest.mark.parametrize("check", ["strict", "warn", "off"])
def test_schema_that_nobody_holds_results_against_is_not_shown(check: str) -> None:
    gate = shown_by(policy_for("word_count", f'\n[tools.word_count]\noutput = "{check}"\n'), word_count)
    (listed,) = gate.view("clerk").tools("mcp")

    assert ("outputSchema" in listed) == (check != "off")


@pytest.mark.parametrize("output", [{"type": "array"}, {"type": "string"}, {}])
def test_client_is_told_of_objects_only(output: dict[str, Any]) -> None:
    made = tool(result_type=ResultType.ANY, output_schema=output)(word_count.function)
    (listed,) = shown_by(policy_for("word_count"), made).view("clerk").tools("mcp")

    assert "outputSchema" not in listed
