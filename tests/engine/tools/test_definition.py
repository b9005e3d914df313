"""Reading tools off a manifest: what is accepted, what is set aside and why, and that nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.policy.verdict import SafetyTier
from gatewright.tools import DefinedTool, DefinitionProblem, ToolDefinition, read_definitions

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def row(**members: Any) -> dict[str, Any]:
    return {"name": "fetch", "description": "Fetches.", "inputSchema": SCHEMA, **members}


def extras(**members: Any) -> dict[str, Any]:
    return row(_meta={"gatewright": members})


def one(value: object) -> ToolDefinition:
    definitions, problems = read_definitions([value])
    assert problems == ()
    (definition,) = definitions
    return definition


def refused(value: object) -> DefinitionProblem:
    definitions, problems = read_definitions([value])
    assert definitions == ()
    (problem,) = problems
    return problem


def test_list_and_object_with_a_list_are_read_alike() -> None:
    bare, _ = read_definitions([row()])
    held, _ = read_definitions({"tools": [row()], "nextCursor": "x"})

    assert bare == held == (ToolDefinition("fetch", "Fetches.", SCHEMA),)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "fetch", "description": "Fetches.", "input_schema": SCHEMA},
        {"name": "fetch", "description": "Fetches.", "parameters": SCHEMA, "type": "function", "strict": True},
        {"type": "function", "function": {"name": "fetch", "description": "Fetches.", "parameters": SCHEMA}},
        {
            "name": "fetch",
            "description": "Fetches.",
            "inputSchema": SCHEMA,
            "input_schema": SCHEMA,
            "outputSchema": None,
        },
    ],
)
def test_spellings_of_other_providers_give_the_same_definition(value: dict[str, Any]) -> None:
    assert one(value) == one(row())


def test_openai_function_without_parameters_takes_none() -> None:
    definition = one({"type": "function", "function": {"name": "now"}})

    assert definition.input_schema == {"type": "object", "properties": {}}


def test_tool_without_description_is_kept() -> None:
    definition = one({"name": "bare", "inputSchema": SCHEMA})

    assert definition.description == ""
    DefinedTool(definition, origin="remote").check()


def test_what_we_add_is_read() -> None:
    said = one(
        extras(
            version="2.1.0",
            safety_tier="side_effecting",
            operation_tiers={"get": "read_only"},
            operation_field="path",
            operations=["get", "put"],
        )
    )

    assert said.version == "2.1.0"
    assert said.safety_tier is SafetyTier.SIDE_EFFECTING
    assert said.operation_tiers == {"get": SafetyTier.READ_ONLY}
    assert (said.operation_field, said.operations) == ("path", ("get", "put"))


BAD: list[tuple[object, str, str]] = [
    ("fetch", "/0", "a tool must be a JSON object"),
    ({"inputSchema": SCHEMA}, "/0", "the tool has no `name`"),
    (row(name=7), "/0/name", "the tool has no `name`"),
    (row(name="a b"), "/0/name", "`a b` is no tool name"),
    (row(name="x" * 5000), "/0/name", "is no tool name"),
    (row(description=["a"]), "/0/description", "`description` must be a text"),
    ({"name": "fetch"}, "/0", "the tool has no `inputSchema`"),
    (row(inputSchema=[]), "/0/inputSchema", "the schema of a tool must be a JSON object"),
    (row(inputSchema={"type": "array"}), "/0/inputSchema/type", "the root of a tool's schema must be an object"),
    (row(inputSchema={"type": "object", "required": "path"}), "/0/inputSchema/required", "not a valid schema"),
    (row(parameters={"type": "object"}), "/0/parameters", "`parameters` differs from `inputSchema`"),
    (row(_meta=[]), "/0/_meta", "`_meta` must be a JSON object"),
    (row(_meta={"gatewright": 1}), "/0/_meta/gatewright", "`gatewright` must be a JSON object"),
    (extras(saftey_tier="read_only"), "/0/_meta/gatewright", "unknown key `saftey_tier`"),
    (extras(version="1"), "/0/_meta/gatewright/version", "is not of the form `1.2.3`"),
    (extras(safety_tier="ReadOnly"), "/0/_meta/gatewright/safety_tier", "a safety tier is one of `read_only`"),
    (extras(operation_tiers={"get": 1}), "/0/_meta/gatewright/operation_tiers", "a safety tier is one of"),
    (extras(operation_field=1), "/0/_meta/gatewright/operation_field", "must be a text"),
    (extras(operations=["a", "a"]), "/0/_meta/gatewright/operations", "must be a list of different names"),
    (extras(operations=[]), "/0/_meta/gatewright/operations", "must be a list of different names"),
    (extras(operations=[["a"]]), "/0/_meta/gatewright/operations", "must be a list of different names"),
    ({"type": "function", "function": "x"}, "/0/function", "a function must be a JSON object"),
    ({"type": "web_search", "name": "search"}, "/0", "the tool has no `inputSchema`"),
    (row(description="\ud800"), "/0", "half of a surrogate pair"),
    (row(inputSchema={"type": "object", "default": float("nan")}), "/0", "is not finite"),
]


@pytest.mark.parametrize(("value", "pointer", "words"), BAD)
def test_bad_tool_is_set_aside_with_its_place_and_the_reason(value: object, pointer: str, words: str) -> None:
    problem = refused(value)

    assert problem.pointer == pointer
    assert words in problem.message
    assert len(problem.message) < 500


def test_pattern_that_is_not_linear_is_neither_shown_nor_checked_and_told_with_its_place() -> None:
    mail = {"type": "string", "format": "email", "pattern": "^(?!x).*$", "maxLength": 9}
    schema = {"type": "object", "properties": {"a/b": mail}, "required": ["a/b"]}
    (definition,), problems = read_definitions([{"function": {"name": "find", "parameters": schema}}])
    tool = DefinedTool(definition, origin="there")

    assert problems == ()
    assert definition.input_schema == schema
    del mail["pattern"]
    assert tool.input_schema() == schema
    assert tool.unchecked_arguments == (
        ("/properties/a~1b/pattern", "it uses look-around, which cannot run in linear time"),
    )
    (parameter,) = tool.parameters()
    assert (parameter.name, parameter.required) == ("a/b", True)


@pytest.mark.parametrize("output", [3, [], {"type": "objekt"}, {"type": "array"}, {"$ref": "#/$defs/gone"}])
def test_an_output_schema_that_cannot_be_used_costs_only_its_check(output: object) -> None:
    (definition,), problems = read_definitions([row(outputSchema=output)])

    assert problems == ()
    assert definition.output_schema is None
    assert "/outputSchema" in definition.output_fault
    assert "results are not checked" in DefinedTool(definition, origin="there").unchecked_output


def test_one_bad_tool_leaves_the_others() -> None:
    definitions, problems = read_definitions({"tools": [row(name="a"), row(name="b", inputSchema=None), row(name="c")]})

    assert [definition.name for definition in definitions] == ["a", "c"]
    assert [(problem.pointer, problem.name) for problem in problems] == [("/tools/1", "b")]


def test_same_name_twice_keeps_the_first_unless_the_majors_differ() -> None:
    second = {**extras(version="2.0.0"), "description": "Later."}

    definitions, problems = read_definitions([row(), second, row(description="Again.")])

    assert [(d.name, d.version, d.description) for d in definitions] == [
        ("fetch", "1.0.0", "Fetches."),
        ("fetch", "2.0.0", "Later."),
    ]
    assert [problem.pointer for problem in problems] == ["/2"]
    assert "stands twice; the first one is kept" in problems[0].message


@pytest.mark.parametrize("value", [None, 7, "tools", {}, {"tools": {}}, {"tool": []}])
def test_what_is_no_manifest_is_one_problem(value: object) -> None:
    definitions, problems = read_definitions(value)

    assert definitions == ()
    assert [problem.pointer for problem in problems] == [""]


def test_absurd_sizes_are_set_aside() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(5_000):
        deep = {"type": "object", "properties": {"a": deep}}
    wide: dict[str, Any] = {"type": "object", "properties": {f"p{number}": {} for number in range(30_000)}}

    assert "nested deeper than 128 levels" in refused(row(inputSchema=deep)).message
    assert "more than 20,000 values" in refused(row(inputSchema=wide)).message
    assert "more than 20,000 values" in refused(row(description="x" * 2_000_000)).message


def test_manifest_of_very_many_tools_is_cut() -> None:
    definitions, problems = read_definitions([{"name": f"t{number}"} for number in range(5_010)])

    assert definitions == ()
    assert (len(problems), problems[-1].pointer) == (5_001, "/5000")


KEYS = ("name", "tools", "function", "inputSchema", "parameters", "_meta", "gatewright", "operations", "type", "enum")
ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.sampled_from(KEYS)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=4)), inner, max_size=5),
    ),
    max_leaves=20,
)


@given(st.one_of(ANY, st.lists(ANY), st.fixed_dictionaries({"name": st.just("x"), "inputSchema": ANY, "_meta": ANY})))
def test_no_value_makes_it_raise(value: object) -> None:
    for given_value in (value, [value]):
        definitions, problems = read_definitions(given_value)
        for problem in problems:
            json.dumps([problem.pointer, problem.name, problem.message]).encode()
        for definition in definitions:
            assert definition.name
