"""Tools made of definitions, and tools read with the operations that a policy declares."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import SchemaChecker
from gatewright.tools import (
    DefinedTool,
    ResultType,
    Role,
    Tool,
    ToolDefinition,
    ToolExecutionContext,
    ToolRegistry,
    UrlParameter,
    read_definitions,
    tool,
)
from tests.engine.tools.declared import CONTEXT, ObjectTool
from tests.engine.tools.test_manifest import Shelf

TEXT = {"type": "string"}


def flat(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def defined(schema: dict[str, Any], description: str = "", **said: Any) -> DefinedTool:
    definition = ToolDefinition("far", description, schema, **said)
    return DefinedTool(definition, origin="remote", trusted=True)


def names(held: Tool) -> list[str]:
    return [spec.name for spec in held.operations]


ISSUES = {
    **flat(action={"type": "string", "enum": ["list", "create_issue", "delete_issue"]}, title=TEXT, id=TEXT),
    "required": ["action"],
}
WORDS = "Works on issues. Use `create_issue` to open one and `delete_issue` to remove it."
REPLACE = {"type": "object", "properties": {"op": {"const": "replace"}, "text": {"type": "string", "default": "x"}}}
REMOVE = {"type": "object", "properties": {"op": {"const": "remove"}}, "required": ["op"]}
UNION = {"type": "object", "properties": {"file": TEXT}, "required": ["file"], "oneOf": [REPLACE, REMOVE]}
BATCH = flat(operations={"type": "array", "items": {**flat(op={"enum": ["insert", "delete"]}), "required": ["op"]}})
KEYED = {
    "type": "object",
    "oneOf": [
        {"properties": {"move": flat(to=TEXT)}, "required": ["move"], "additionalProperties": False},
        {"properties": {"copy": flat(to=TEXT)}, "required": ["copy"], "additionalProperties": False},
    ],
}
TWICE = flat(
    rows={"type": "array", "items": {**flat(action={"enum": ["insert", "delete"]}), "required": ["action"]}},
    columns={"type": "array", "items": {**flat(action={"enum": ["insert", "delete"]}), "required": ["action"]}},
)


def test_hidden_operations_leave_the_description_of_a_strangers_tool() -> None:
    issues = defined(ISSUES, WORDS)

    assert issues.description_for(frozenset(names(issues))) == WORDS
    shown = issues.description_for(frozenset({"list", "create_issue"}))
    assert shown == "Works on issues."
    assert "delete_issue" not in issues.description_for(frozenset({"list"}), "Mind `delete_issue`.")


def test_operations_of_a_union_have_their_own_parameters_with_defaults() -> None:
    union = defined(UNION)

    (replace, remove) = union.facts().operations
    assert (replace.name, replace.parameters, replace.required) == ("replace", ("file", "text"), ("file",))
    assert (remove.name, remove.parameters) == ("remove", ("file",))
    text = union.parameters("replace")[1]
    assert (text.name, text.default, text.schema["type"]) == ("text", "x", "string")


def test_every_element_of_a_batch_is_told() -> None:
    batch = defined(BATCH)

    assert batch.operation_field == "operations[].op"
    assert batch.operations_of({"operations": [{"op": "insert"}, {"op": "DELETE"}, {"op": "insert"}]}) == (
        "insert",
        "DELETE",
        "insert",
    )
    assert batch.operations_of({"operations": []}) == ()
    assert batch.operations_of({"operations": [{"op": 1}]}) is None


def test_operation_that_is_a_key_takes_that_key() -> None:
    keyed = defined(KEYED)

    assert names(keyed) == ["move", "copy"]
    assert keyed.operations_of({"copy": {"to": "b"}}) == ("copy",)
    assert [(row.parameters, row.required) for row in keyed.facts().operations] == [
        (("move",), ("move",)),
        (("copy",), ("copy",)),
    ]
    assert keyed.parameters("move")[0].schema["properties"] == {"to": TEXT}
    shown = keyed.schema_for(frozenset({"move"}))
    assert shown is not None
    assert "copy" not in json.dumps(shown)


@pytest.mark.parametrize("declare", [False, True])
def test_field_that_stands_twice_is_gated_at_both_places(declare: bool) -> None:
    twice = defined(TWICE).with_operations("columns[].action", None) if declare else defined(TWICE)

    assert twice.operations_of({"rows": [{"action": "delete"}], "columns": [{"action": "insert"}]}) == (
        "delete",
        "insert",
    )
    shown = twice.schema_for(frozenset({"insert"}))
    assert shown is not None
    assert "delete" not in json.dumps(shown)


def test_root_reference_is_read_through() -> None:
    schema = {"$ref": "#/$defs/In", "$defs": {"In": {**ISSUES, "type": "object"}}, "type": "object"}

    assert names(defined(schema)) == ["list", "create_issue", "delete_issue"]
    assert [p.name for p in defined(schema).parameters("list")] == ["title", "id"]


def test_schema_without_operations_is_a_plain_tool() -> None:
    plain = defined(flat(city={"type": "string", "description": "Where.", "default": "Kiel"}))

    assert plain.operations_of({}) == ("",)
    assert [(p.name, p.description, p.default) for p in plain.parameters()] == [("city", "Where.", "Kiel")]
    assert plain.schema_for(frozenset({""})) == plain.definition.input_schema
    assert plain.schema_for(frozenset()) is None
    assert plain.description_for(frozenset({""}), "Any `text`.") == "Any `text`."


def test_list_too_long_to_gate_by_is_no_list_of_operations() -> None:
    many = flat(operation={"enum": [f"get_{number}" for number in range(1_001)]})

    assert not defined(many).has_operations
    with pytest.raises(SchemaError, match="more than 1,000 operations"):
        defined(many).with_operations("operation", None)


def test_definition_that_cannot_be_shown_is_refused() -> None:
    with pytest.raises(RegistrationError, match="tool `far`: its schema cannot be used at `/type`"):
        defined({"type": "array"})
    with pytest.raises(RegistrationError, match="tool `far`: the schema has no field `acton`"):
        defined(ISSUES, operation_field="acton")


async def test_without_a_runner_a_tool_is_gated_and_not_executed() -> None:
    plain, issues = defined(flat()), defined(ISSUES)

    assert not plain.is_executable
    for held, arguments in ((plain, {}), (issues, {"action": "list"})):
        with pytest.raises(ToolFailure, match="`far` cannot be executed here") as error:
            await held.execute("", arguments, CONTEXT)
        assert error.value.code == "not-supported"


async def test_runner_gets_the_arguments_as_they_are() -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> JsonValue:
        return {**arguments, "by": context.agent_id}

    far = DefinedTool(ToolDefinition("far", "", ISSUES), origin="remote", runner=run)

    assert far.is_executable
    assert await far.execute("list", {"action": "list"}, CONTEXT) == {"action": "list", "by": "tester"}


def test_digest_follows_the_definition_and_its_reading() -> None:
    two = flat(action={"enum": ["get", "put"]}, mode={"enum": ["get", "put"]})
    readings = [
        defined(ISSUES),
        defined(ISSUES, WORDS),
        defined(ISSUES, version="1.0.1"),
        defined(ISSUES, operation_tiers={"list": SafetyTier.READ_ONLY}),
        defined(ISSUES, output_schema={"type": "object"}),
        defined(ISSUES).with_operations("", None),
        defined(ISSUES).with_operations(None, ("list",)),
        defined(two).with_operations("action", None),
        defined(two).with_operations("mode", None),
        defined(two).with_operations("", None),
    ]

    assert len({held.digest for held in readings}) == len(readings)
    assert defined(ISSUES).with_operations("action", None).digest == defined(ISSUES).digest


FREE = flat(command={"type": "string", "description": "One of run, stop, wipe."}, target=TEXT)


def test_free_text_with_declared_operations_is_a_closed_list_also_when_all_are_shown() -> None:
    far = defined(FREE).with_operations("command", ("stop", "run"))

    assert names(far) == ["stop", "run"]
    assert [row.parameters for row in far.facts().operations] == [("target",), ("target",)]
    schema = far.schema_for(frozenset({"run", "stop"}))
    assert schema is not None
    assert schema["properties"]["command"]["enum"] == ["stop", "run"]
    assert schema == far.input_schema()
    assert not SchemaChecker(schema).is_valid({"command": "wipe"})
    assert far.operations_of({"command": "wipe"}) == ("wipe",)


def test_closed_list_is_narrowed_in_the_declared_order() -> None:
    far = defined(ISSUES, WORDS).with_operations(None, ("create_issue", "list"))

    assert names(far) == ["create_issue", "list"]
    assert "delete_issue" not in json.dumps([far.input_schema(), far.description_for(frozenset(names(far)))])
    assert far.operations_of({"action": "delete_issue"}) == ("delete_issue",)


def test_empty_field_turns_the_discovered_reading_off() -> None:
    far = defined(ISSUES).with_operations("", None)

    assert not far.has_operations
    assert far.operations_of({"action": "list"}) == ("",)
    assert far.input_schema() == ISSUES
    assert [p.name for p in far.parameters()] == ["action", "title", "id"]


def test_other_field_may_be_named() -> None:
    schema = flat(action={"enum": ["get", "put"]}, kind={"enum": ["user", "team"]})

    far = defined(schema).with_operations("kind", None)

    assert (far.operation_field, names(far)) == ("kind", ["user", "team"])
    assert (far.with_operations("action", None).operation_field, names(defined(schema))) == ("action", ["get", "put"])


def test_tiers_of_the_definition_hold_for_operations_that_a_policy_declares() -> None:
    far = defined(FREE, safety_tier=SafetyTier.SIDE_EFFECTING, operation_tiers={"run": SafetyTier.READ_ONLY})

    assert [(o.name, o.tier) for o in far.with_operations("command", ("run", "wipe")).operations] == [
        ("run", SafetyTier.READ_ONLY),
        ("wipe", SafetyTier.SIDE_EFFECTING),
    ]


def test_nothing_declared_is_the_same_object_and_the_original_stays_as_it_was() -> None:
    far = defined(ISSUES)
    before = far.digest

    assert far.with_operations(None, None) is far
    other = far.with_operations("", None)

    assert (far.digest, far.has_operations) == (before, True)
    assert isinstance(other, DefinedTool)
    assert other.definition is far.definition


@pytest.mark.parametrize(
    ("field", "operations", "words"),
    [
        ("acton", None, "the schema has no field `acton` (did you mean `action`?)"),
        ("title", None, "`title` lists no operations; declare them"),
        ("action", ("list", "creat_issue"), "`action` takes no `creat_issue` (did you mean `create_issue`?)"),
        ("action", (), "the declared operations hold no name"),
        ("action", ("list", ""), "an operation without name"),
        ("", ("list",), "operations are declared for a tool without operation field"),
        (None, ("list", "burn"), "`action` takes no `burn`"),
    ],
)
def test_declaration_that_does_not_fit_says_why(
    field: str | None, operations: tuple[str, ...] | None, words: str
) -> None:
    with pytest.raises(SchemaError) as error:
        defined(ISSUES).with_operations(field, operations)
    assert str(error.value) == words


def test_author_of_a_tool_has_the_last_word_on_its_operations() -> None:
    with pytest.raises(SchemaError, match="`shelf` declares its own operations"):
        Shelf().with_operations("label", ("a",))


@tool(result_type=ResultType.OBJECT)
async def send(command: str, url: Annotated[str, UrlParameter()], count: int = 1) -> JsonValue:
    """Send something.

    Args:
        command: What to do.
        url: Where to.
        count: How often.
    """
    return {"command": command, "url": url, "count": count}


async def test_function_with_declared_operations_keeps_what_the_gate_judges() -> None:
    far = send.with_operations("command", ("post", "put"))

    assert [(p.name, p.role, p.default) for p in far.parameters("post")] == [
        ("url", Role.URL, None),
        ("count", Role.PLAIN, 1),
    ]
    assert far.facts().operations[0].judged == send.facts().operations[0].judged
    assert [issue.pointer for issue in far.missing_arguments("post", {"command": "post"})] == ["/url"]
    given = {"command": "post", "url": "https://a.example"}
    assert await far.execute("post", given, CONTEXT) == {**given, "count": 1}
    assert not send.has_operations


def test_field_that_the_gate_judges_cannot_select_operations() -> None:
    with pytest.raises(SchemaError, match="`url` is a url and cannot select operations"):
        send.with_operations("url", ("https://a.example",))


class Dial(BaseModel):
    knob: Literal["left", "right"]
    by: int = 1


class Radio(ObjectTool):
    name = "radio"
    input_model = Dial

    async def run(self, arguments: Dial, context: ToolExecutionContext) -> JsonValue:
        return {"turned": arguments.knob, "by": arguments.by}


async def test_model_without_operations_may_be_read_with_some() -> None:
    radio = Radio()
    far = radio.with_operations("knob", None)

    assert (radio.has_operations, names(far)) == (False, ["left", "right"])
    assert await far.execute("left", {"knob": "left"}, CONTEXT) == {"turned": "left", "by": 1}


def test_defined_tools_are_registered_like_any_other() -> None:
    registry = ToolRegistry()
    registry.register(defined(ISSUES))

    (facts,) = registry.facts()
    assert (facts.name, facts.origin, facts.operation_names) == ("far", "remote", tuple(names(defined(ISSUES))))


def test_empty_text_among_the_operations_is_never_shown() -> None:
    far = defined({**flat(action={"enum": ["", "get", "put"], "default": ""}), "required": ["action"]})

    assert names(far) == ["get", "put"]
    assert far.operations_of({"action": ""}) == ("",)
    assert far.input_schema()["properties"]["action"]["enum"] == ["get", "put"]
    assert not defined(flat(action={"enum": [""]})).has_operations


def test_operation_with_a_name_that_no_session_could_hold_is_refused() -> None:
    longest = "x" * 1_000
    assert names(defined(flat(op={"enum": ["read", longest]}))) == ["read", longest]

    with pytest.raises(RegistrationError, match="over 1,000 characters"):
        defined(flat(op={"enum": ["read", f"{longest}x"]}))


def test_declared_operation_with_such_a_name_is_refused() -> None:
    with pytest.raises(SchemaError, match="over 1,000 characters"):
        defined(flat(op=TEXT)).with_operations("op", ("read", "x" * 1_001))


def test_results_are_checked_against_what_of_the_output_schema_is_linear() -> None:
    text = {"type": "string", "pattern": "(?<=a)b"}
    named = {"patternProperties": {"^(?!a)": {"type": "integer"}}, "additionalProperties": False}
    output = flat(x=text, n={"type": "integer"}, y={"not": text}, z=named)
    (definition,), problems = read_definitions([{"name": "find", "inputSchema": flat(), "outputSchema": output}])
    checker = DefinedTool(definition, origin="test").output_checker

    assert problems == ()
    assert checker is not None
    assert checker.is_valid({"x": "b", "n": 1, "y": "b", "z": {"c": 1}})
    assert not checker.is_valid({"x": 1})
    assert not checker.is_valid({"n": "1"})
