"""What is reported of schemas that no list closes: suggestions for free texts, marks for what takes anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.schema import SchemaChecker, discover_operations, filter_with_lints, survey
from gatewright.schema.survey import suggest_names

Json = dict[str, Any]


def tools(corpora: Path) -> dict[str, Json]:
    listed = json.loads((corpora / "mcp_tools.json").read_text(encoding="utf-8"))
    return {row["id"]: row["tool"] for row in listed}


def annotations(corpora: Path) -> list[Json]:
    return json.loads((corpora / "multi_op_annotations.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Operation to perform: create-it, drop-it, or list-all. Choose.", ("create-it", "drop-it", "list-all")),
        ("Rollout action (status, history, restart)", ("status", "history", "restart")),
        ("list (default) | get | set", ("list", "get", "set")),
        ("Action:\n- start (default): go\n- stop: halt (see start, stop, pause)", ("start", "stop")),
        ("1. `add`: one more\n2. `remove`: one less", ("add", "remove")),
        ('Either "open" or "close"', ("open", "close")),
        ("One of add, remove and list", ("add", "remove", "list")),
        ("What to do: create / delete", ("create", "delete")),
        ("The name of the thing, as shown in the list", ()),
        ("Fast, cheap and good", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_names_are_read_from_the_ways_in_which_people_list_them(text: str, names: tuple[str, ...]) -> None:
    assert suggest_names(text) == names


def test_every_free_text_of_the_real_servers_is_reported_with_its_operations(corpora: Path) -> None:
    listed, wrong = tools(corpora), list[str]()
    marked = [row for row in annotations(corpora) if row["shape"] == "free-string"]
    assert len(marked) >= 39
    for row in marked:
        tool = listed[row["id"]]
        found = survey(tool["inputSchema"], tool.get("description", ""))
        free = next((one for one in found.free if one.field == row["operation_field"]), None)
        if free is None or sorted(free.suggested) != sorted(row["operations"]) or free.default != row["default"]:
            wrong.append(f"{row['id']}: {free}")
        assert found.found is None
    assert wrong == []


def test_every_open_ended_tool_of_the_real_servers_is_marked(corpora: Path) -> None:
    listed = tools(corpora)
    for row in annotations(corpora):
        if row["shape"].startswith("open-command"):
            tool = listed[row["id"]]
            found = survey(tool["inputSchema"], tool.get("description", ""))
            assert any(end.field == row["operation_field"] and end.kind == "command" for end in found.open_ends), row[
                "id"
            ]


def test_marks_and_suggestions_are_rare_elsewhere(corpora: Path) -> None:
    known = {row["id"] for row in annotations(corpora)}
    others = {name: tool for name, tool in tools(corpora).items() if name not in known}
    found = {name: survey(tool["inputSchema"], tool.get("description", "")) for name, tool in others.items()}
    assert sum(bool(one.open_ends) for one in found.values()) <= 12
    assert [name for name, one in found.items() if any(free.suggested for free in one.free)] == []


@pytest.mark.parametrize(
    ("properties", "description", "kinds"),
    [
        ({"command": {"type": "string", "description": "Shell command to run"}}, "", ["command"]),
        ({"argv": {"type": "array", "items": {"type": "string"}}}, "Execute a process", ["command"]),
        ({"code": {"type": "string", "description": "JavaScript code"}}, "Evaluate code in the page", ["code"]),
        ({"sql": {"type": "string"}}, "", ["query"]),
        ({"query": {"type": "string", "description": "SQL to execute"}}, "", ["query"]),
        ({"query": {"type": "string", "description": "words to look for"}}, "Search", []),
        ({"code": {"type": "string", "description": "country code"}}, "", []),
        ({"command": {"type": "string", "enum": ["start", "stop"]}}, "Run a command", []),
    ],
)  # fmt: skip
def test_what_takes_a_whole_program_is_marked_with_its_kind(
    properties: Json, description: str, kinds: list[str]
) -> None:
    found = survey({"type": "object", "properties": properties}, description)
    assert [end.kind for end in found.open_ends] == kinds
    assert all(end.field in end.reason for end in found.open_ends)


def test_conditions_on_an_open_field_are_suggested() -> None:
    schema = {
        "type": "object",
        "properties": {"action": {"type": "string"}, "id": {"type": "string"}},
        "allOf": [{"if": {"properties": {"action": {"const": name}}}, "then": {}} for name in ("add", "drop")],
    }
    assert survey(schema).free[0].suggested == ("add", "drop")


def test_declared_operations_close_a_free_text_even_when_all_are_allowed() -> None:
    schema: Json = {"type": "object", "properties": {"action": {"type": "string", "default": "list"}}}
    result = filter_with_lints(schema, ["list", "add"], operations=["list", "add"])
    checker = SchemaChecker(result.schema or {})
    assert checker.is_valid({"action": "add"})
    assert checker.is_valid({})
    assert not checker.is_valid({"action": "Add"})
    assert not checker.is_valid({"action": "drop"})
    limited = SchemaChecker(filter_with_lints(schema, ["add"], operations=["list", "add"]).schema or {})
    assert not limited.is_valid({})


def test_declaring_less_than_a_closed_list_hides_the_rest() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"action": {"enum": ["list", "add", "purge"], "description": "list, add or purge"}},
        "required": ["action"],
    }
    result = filter_with_lints(schema, ["list", "add"], field="action", operations=["list", "add"])
    assert result.schema is not None
    assert result.schema["properties"]["action"] == {"enum": ["list", "add"], "description": "list or add"}
    assert "purge" not in result.clean("Can purge things.")


def test_operations_can_be_declared_below_the_root() -> None:
    schema: Json = {
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": {"type": "object", "properties": {"do": {"type": "string"}}}}
        },
    }
    found = discover_operations(schema, field="steps[].do", operations=["turn", "move"])
    assert found is not None
    assert (found.field, found.names, found.confidence) == ("steps[].do", ("turn", "move"), "declared")
    assert found.of({"steps": [{"do": "turn"}, {"do": "move"}]}) == ("turn", "move")


def test_declaring_for_a_field_that_is_not_there_says_so() -> None:
    with pytest.raises(SchemaError, match="no field `what`"):
        discover_operations({"type": "object"}, field="what", operations=["a"])
    with pytest.raises(SchemaError, match="text field"):
        discover_operations({"type": "object", "properties": {"n": {"type": "integer"}}}, field="n", operations=["a"])
