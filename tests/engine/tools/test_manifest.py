"""Tools written down as definitions and read back: nothing that policies or models see may change on the way."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import builtin_tools, file_tool
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import (
    DefinedTool,
    ResultType,
    Tool,
    ToolExecutionContext,
    ToolRegistry,
    operation,
    read_definitions,
    tool,
)
from tests.engine.tools.declared import ObjectTool


class Shelf(ObjectTool):
    name = "shelf"
    version = "2.3.1"
    safety_tier = SafetyTier.SIDE_EFFECTING
    output_schema = {"type": "object"}  # noqa: RUF012

    @operation(tier=SafetyTier.READ_ONLY)
    async def show(self, label: str) -> JsonValue:
        """Show one.

        Args:
            label: Which.
        """
        return label

    @operation
    async def add(self, label: str, text: str = "") -> JsonValue:
        """Add one.

        Args:
            label: Which.
            text: What.
        """
        return text


class Put(BaseModel):
    operation: Literal["put"]
    value: str


class Drop(BaseModel):
    operation: Literal["drop"]
    label: str


class Store(ObjectTool):
    name = "store"
    input_model = RootModel[Annotated[Put | Drop, Field(discriminator="operation")]]

    async def run(self, arguments: RootModel[Put | Drop], context: ToolExecutionContext) -> JsonValue:
        return {}


@tool(result_type=ResultType.OBJECT)
async def sort_rows(mode: Literal["add", "delete", "list"]) -> JsonValue:
    """Sort rows.

    Args:
        mode: Looks like operations and is none.
    """
    return mode


TOOLS = (Shelf(), Store(), sort_rows, file_tool(), *builtin_tools())


def read_back(original: Tool) -> DefinedTool:
    registry = ToolRegistry()
    registry.register(original)
    definitions, problems = read_definitions(json.loads(json.dumps(registry.manifest())))
    assert problems == ()
    (definition,) = definitions
    return DefinedTool(definition, origin="catalog", trusted=True)


@pytest.mark.parametrize("original", TOOLS, ids=lambda held: held.name)
def test_tool_read_back_is_the_same_to_policies_and_models(original: Tool) -> None:
    again = read_back(original)

    assert again.digest == original.digest
    assert again.input_schema() == original.input_schema()
    assert (again.operation_field, again.version) == (original.operation_field, original.version)
    assert [(o.name, o.tier) for o in again.operations] == [(o.name, o.tier) for o in original.operations]
    assert again.facts().tier == original.facts().tier


def test_operations_of_a_method_tool_are_written_in_their_order() -> None:
    registry = ToolRegistry()
    registry.register(Shelf())

    (row,) = read_definitions(registry.manifest())[0]

    assert (row.operation_field, row.operations) == ("op", ("show", "add"))
    assert row.operation_tiers == {"show": SafetyTier.READ_ONLY, "add": SafetyTier.SIDE_EFFECTING}


def test_plain_tool_with_a_choice_stays_plain() -> None:
    assert not read_back(sort_rows).has_operations


def test_tiers_count_only_for_the_trusted() -> None:
    registry = ToolRegistry()
    registry.register(Shelf())
    (row,) = read_definitions(registry.manifest())[0]

    untrusted = DefinedTool(row, origin="catalog")

    assert {spec.tier for spec in untrusted.operations} == {SafetyTier.PRIVILEGED}
    assert untrusted.digest != Shelf().digest


def test_strangers_tool_is_written_without_a_reading_that_discovery_makes_anyway() -> None:
    schema = {"type": "object", "properties": {"action": {"enum": ["get", "delete"]}}, "required": ["action"]}
    (given_row,) = read_definitions([{"name": "far", "inputSchema": schema}])[0]
    registry = ToolRegistry()
    registry.register(DefinedTool(given_row, origin="remote"))

    manifest: Any = registry.manifest()

    assert manifest["tools"][0]["inputSchema"] == schema
    assert manifest["tools"][0]["_meta"]["gatewright"].keys() == {"version", "safety_tier", "operation_tiers"}


def test_manifest_is_sorted_and_a_copy() -> None:
    registry = ToolRegistry()
    for version in ("10.0.0", "2.0.0"):
        registry.register(DefinedTool(read_definitions([given(version)])[0][0], origin="remote"))
    registry.register(Store())
    manifest: Any = registry.manifest()

    assert [(row["name"], row["_meta"]["gatewright"]["version"]) for row in manifest["tools"]] == [
        ("box", "2.0.0"),
        ("box", "10.0.0"),
        ("store", "1.0.0"),
    ]
    manifest["tools"][0]["inputSchema"].clear()
    assert registry.manifest() != manifest


def given(version: str) -> dict[str, Any]:
    return {"name": "box", "inputSchema": {"type": "object"}, "_meta": {"gatewright": {"version": version}}}


def test_manifest_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text("old", encoding="utf-8")
    registry = ToolRegistry()
    registry.register(Shelf())

    registry.write_manifest(path)

    assert json.loads(path.read_text(encoding="utf-8")) == registry.manifest()
    assert [file.name for file in tmp_path.iterdir()] == ["tools.json"]
    with pytest.raises(OSError, match="missing"):
        registry.write_manifest(tmp_path / "missing" / "tools.json")
