"""Definitions of real servers: every tool becomes a tool or is set aside for a reason, and survives a manifest."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gatewright.tools import DefinedTool, ToolRegistry, read_definitions
from gatewright.tools.schemashape import SelectedShape
from tests.support.patience import in_time


@pytest.fixture(scope="module")
def listed(corpora: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads((corpora / "mcp_tools.json").read_text(encoding="utf-8"))
    return {row["id"]: row["tool"] for row in rows}


@pytest.fixture(scope="module")
def renamed(listed: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "name": f"t{number}"} for number, row in enumerate(listed.values())]


def test_all_are_read_and_of_the_one_with_a_pattern_that_no_linear_engine_runs_it_is_said(
    renamed: list[dict[str, Any]],
) -> None:
    definitions, problems = read_definitions(renamed)

    assert len(definitions) == len(renamed)
    assert problems == ()
    tools = [DefinedTool(definition, origin="remote") for definition in definitions]
    for tool in tools:
        tool.check()
    assert [pointer for tool in tools for pointer, _ in tool.unchecked_arguments] == ["/properties/include/pattern"]


def test_manifest_reads_back_every_tool_as_it_was(renamed: list[dict[str, Any]]) -> None:
    registry = ToolRegistry()
    for definition in read_definitions(renamed)[0]:
        registry.register(DefinedTool(definition, origin="remote"))

    definitions, problems = read_definitions(json.loads(json.dumps(registry.manifest())))

    again = {row.name: DefinedTool(row, origin="remote", trusted=True) for row in definitions}
    assert problems == ()
    assert [again[held.name].digest for held in registry.tools()] == [held.digest for held in registry.tools()]
    assert [again[held.name].facts() for held in registry.tools()] == list(registry.facts())
    assert [again[held.name].operation_set for held in registry.tools() if not held.has_operations] == [
        None for held in registry.tools() if not held.has_operations
    ]


def test_declared_operations_of_every_annotated_tool_are_the_ones_shown(
    corpora: Path, listed: dict[str, dict[str, Any]]
) -> None:
    annotated = json.loads((corpora / "multi_op_annotations.json").read_text(encoding="utf-8"))
    rows = [row for row in annotated if row["operations"] is not None]
    for row in rows:
        ((definition,), _) = read_definitions([listed[row["id"]]])
        is_nested = "." in row["operation_field"]
        found = DefinedTool(definition, origin="remote")
        read = found if is_nested else found.with_operations(row["operation_field"], tuple(row["operations"]))
        assert sorted(spec.name for spec in read.operations) == sorted(row["operations"]), row["id"]
        check_each_alone(read)
    assert len(rows) > 90


def check_each_alone(read: Any) -> None:
    """Of every operation alone: no text keeps a hidden name that nothing allowed bears."""
    shape = read._shape
    assert isinstance(shape, SelectedShape)
    for spec in read.operations:
        shown = frozenset({spec.name})
        result = shape.filter_to(shown)
        assert read.schema_for(shown) == result.schema is not None
        text = read.description_for(shown)
        gone = result.hidden - result.kept
        tokens = set("".join(c if c.isalnum() or c in "_-." else " " for c in text).replace("`", " ").split())
        assert not {name for name in gone & tokens if not name.isalpha()}, (read.name, spec.name)


def test_two_thousand_definitions_become_tools_in_little_time(renamed: list[dict[str, Any]]) -> None:
    many = [{**row, "name": f"m{number}"} for number, row in enumerate([*renamed, *renamed][:2_000])]
    start = time.process_time()

    tools = [DefinedTool(definition, origin="remote") for definition in read_definitions(many)[0]]
    facts = [held.facts() for held in tools]

    assert len(facts) >= 1_998
    assert in_time(time.process_time() - start, 4)
