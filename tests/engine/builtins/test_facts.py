"""The built-in tools are read at their first use, and their facts come from a file. Both say what the code says."""

from dataclasses import replace
from itertools import combinations
from typing import Literal

import pytest

from gatewright.base.errors import RegistrationError
from gatewright.builtins.memory import SearchTool
from gatewright.builtins.root_file import Input
from gatewright.schema.check import SchemaChecker
from tests.facts import FILE, every_tool, read_early, text

MANY = 7

TOOLS = {f"{tool.name}@{tool.major}": tool for tool in every_tool()}


def test_file_holds_what_the_code_of_the_tools_says() -> None:
    assert FILE.read_text("utf-8") == text(), "run `python -m tests.facts`"


@pytest.mark.parametrize("name", TOOLS)
def test_built_in_tool_is_whole_and_the_same_when_it_is_read_at_once(name: str) -> None:
    tool, early = TOOLS[name], read_early(TOOLS[name])

    early.check()

    assert early.facts() == tool.facts()
    assert tool.facts().selection == tool.selector
    if (own := tool.facts().selection) is not None and (other := early.facts().selection) is not None:
        assert [own.declared(one) for one in own.fields] == [other.declared(one) for one in own.fields]
    assert (early.input_schema(), early.output_schema) == (tool.input_schema(), tool.output_schema)
    assert early.digest == tool.digest


def test_tool_of_a_source_has_the_facts_of_what_it_became() -> None:
    other = TOOLS["file_read@1"].of_source("shelf")

    assert other.facts() == replace(TOOLS["file_read@1"].facts(), source="shelf", needs_source=True)


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if not tool.schema_may_fail])
def test_schema_of_a_built_in_tool_can_be_used_whatever_is_shown(name: str) -> None:
    tool = TOOLS[name]
    names = [one.name for one in tool.operations] or [""]
    few = range(1, len(names) + 1) if len(names) < MANY else (1, len(names) - 1, len(names))

    for count in few:
        for shown in combinations(names, count):
            assert not SchemaChecker(tool.schema_for(frozenset(shown)) or {}).is_valid(7)


def test_late_tool_that_names_no_operation_field_though_its_model_has_one_fails_at_its_first_use() -> None:
    class Do(Input):
        action: Literal["create", "delete", "list"]

    class LateTool(SearchTool):
        input_model = Do

    with pytest.raises(RegistrationError, match="declares no `operation_field`"):
        LateTool().input_schema()
