"""The one fact that danger is told by: whether an operation takes something away for good."""

from collections.abc import Collection
from typing import Any

import pytest

from gatewright.builtins import builtin_tools, file_tool, note_tools, root_tools
from gatewright.policy.document import Policy, ToolSettings
from gatewright.policy.rulematch import with_settings
from gatewright.policy.verdict import PathUse, SafetyTier
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import read_definitions
from gatewright.tools.tool import Tool


def destroying(tool: Tool, policy: Policy | None = None) -> set[str]:
    """Its operations that take something away."""
    facts = with_settings(policy or Policy(), tool.facts())
    return {op.name for op in facts.operations if op.destroys}


def stranger(name: str, hints: dict[str, bool], operations: Collection[str] = (), *, trusted: bool = False) -> Tool:
    """A tool as an MCP server lists it."""
    schema: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
    if operations:
        schema["properties"]["operation"] = {"type": "string", "enum": list(operations)}
    row = {"name": name, "description": "d", "inputSchema": schema, "annotations": hints}
    [definition], problems = read_definitions([row])
    assert not problems
    return DefinedTool(definition, origin="hub", trusted=trusted)


def test_of_the_built_in_tools_these_and_no_others_delete() -> None:
    tools = (*builtin_tools(), *note_tools(), *root_tools(), file_tool())
    found = {(tool.name, tool.major, name) for tool in tools for name in destroying(tool)}

    assert found == {("file", 1, "delete"), ("recall", 1, "delete"), ("file_delete", 1, ""), ("memory_delete", 1, "")}


@pytest.mark.parametrize(
    ("name", "hints", "trusted", "deletes"),
    [
        ("tidy", {}, False, False),
        ("tidy", {"destructiveHint": True}, False, True),
        ("tidy", {"readOnlyHint": False}, False, True),
        ("tidy", {"readOnlyHint": False, "destructiveHint": False}, False, False),
        ("drop_table", {}, False, True),
        ("drop_table", {"destructiveHint": False}, False, True),
        ("drop_table", {"destructiveHint": False}, True, False),
        ("list_deleted", {}, False, False),
        ("bulk_delete", {"readOnlyHint": True}, False, True),
    ],
)
def test_hints_of_a_server_raise_the_fact_and_lower_it_only_where_they_are_trusted(
    name: str, hints: dict[str, bool], trusted: bool, deletes: bool
) -> None:
    assert destroying(stranger(name, hints, trusted=trusted)) == ({""} if deletes else set())


def test_the_name_of_an_operation_says_more_than_that_of_its_tool() -> None:
    operations = ("list", "remove", "approve")

    assert destroying(stranger("delete_things", {}, operations)) == {"remove", "approve"}
    assert destroying(stranger("things", {}, operations)) == {"remove"}
    assert destroying(stranger("things", {"destructiveHint": True}, operations)) == {"remove", "approve"}


def test_an_argument_that_is_deleted_and_the_tier_that_an_operator_sets_count() -> None:
    tool = stranger("tidy", {})
    declared = Policy(tools={"tidy": ToolSettings(paths={"path": PathUse.DELETE})})
    lowered = Policy(tools={"wipe": ToolSettings(safety_tier=SafetyTier.READ_ONLY)})

    assert (destroying(tool), destroying(tool, declared)) == (set(), {""})
    assert (destroying(stranger("wipe", {})), destroying(stranger("wipe", {}), lowered)) == ({""}, set())
