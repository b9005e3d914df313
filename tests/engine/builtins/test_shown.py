"""What a model sees of every built-in tool that has operations, for every set of shown ones."""

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.jsonvalue import JsonValue
from gatewright.builtins import builtin_tools, file_tool
from gatewright.schema import SchemaChecker, check_schema, discover_operations
from gatewright.tools.tool import Tool

TOOLS = tuple(tool for tool in (file_tool(), *builtin_tools()) if tool.operations)
LARGE = 500
BY_NAME = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def names_of(tool: Tool) -> frozenset[str]:
    return frozenset(spec.name for spec in tool.operations)


def subsets(tool: Tool) -> list[frozenset[str]]:
    """Every one of a small tool; of a large one those of few operations, of nearly all, and some between."""
    names = sorted(names_of(tool))
    found = [frozenset(c) for n in range(1, len(names) + 1) for c in itertools.combinations(names, n)]
    if len(found) <= LARGE:
        return found
    ends = [shown for shown in found if len(shown) <= 2 or len(shown) >= len(names) - 2]
    return [*ends, *random.Random(len(names)).sample(found, LARGE - len(ends))]


def required_by_all(tool: Tool, shown: frozenset[str]) -> frozenset[str]:
    sets = [frozenset(p.name for p in tool.parameters(name) if p.required) for name in shown]
    return frozenset(name for name in sets[0] if all(name in other for other in sets))


@BY_NAME
def test_no_subset_names_a_hidden_operation_even_inside_a_word(tool: Tool) -> None:
    for shown in subsets(tool):
        text = json.dumps([tool.schema_for(shown), tool.description_for(shown), tool.usage_rule_for(shown)]).lower()
        borne = names_of(tool) & {one.name for name in shown for one in tool.parameters(name)}  # `archive` of `swap`
        for name in shown | borne:
            text = text.replace(name.lower(), "")  # one that is shown may hold another: `unpin`
        assert not [name for name in names_of(tool) - shown if name.lower() in text], sorted(shown)


@BY_NAME
def test_every_subset_is_a_valid_root_object_with_exactly_the_shown_operations(tool: Tool) -> None:
    for shown in subsets(tool):
        schema = tool.schema_for(shown)
        assert schema is not None
        assert not check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(schema)
        found = discover_operations(schema)
        assert found is not None
        assert (found.field, found.names, found.default) == (tool.operation_field, tuple(sorted(shown)), None)


@BY_NAME
def test_subset_holds_exactly_the_parameters_of_its_operations(tool: Tool) -> None:
    for shown in subsets(tool):
        schema = tool.schema_for(shown)
        assert schema is not None
        wanted = {parameter.name for name in shown for parameter in tool.parameters(name)}
        assert set(schema["properties"]) == wanted | {tool.operation_field}
        assert set(schema["required"]) == {tool.operation_field} | required_by_all(tool, shown)


@BY_NAME
def test_nothing_shown_means_no_schema_and_all_shown_means_the_full_one(tool: Tool) -> None:
    assert tool.schema_for(frozenset()) is None
    assert tool.schema_for(names_of(tool)) == tool.input_schema()


@BY_NAME
def test_changing_a_given_schema_changes_no_later_one(tool: Tool) -> None:
    before = json.dumps(tool.input_schema())
    given = tool.input_schema()
    for value in given["properties"].values():
        value.clear()

    assert json.dumps(tool.input_schema()) == before


SCALARS: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3))
CHECKERS: dict[tuple[str, frozenset[str]], SchemaChecker] = {}


def checker(tool: Tool, shown: frozenset[str]) -> SchemaChecker:
    key = (tool.name, shown)
    if key not in CHECKERS:
        schema = tool.schema_for(shown)
        assert schema is not None
        CHECKERS[key] = SchemaChecker(schema)
    return CHECKERS[key]


@st.composite
def calls(draw: st.DrawFn) -> tuple[Tool, frozenset[str], dict[str, JsonValue]]:
    tool = draw(st.sampled_from(TOOLS))
    names = sorted(names_of(tool))
    shown = draw(st.frozensets(st.sampled_from(names), min_size=1))
    parameters = sorted({p.name for name in names for p in tool.parameters(name)})
    operations = st.one_of(st.sampled_from(names), st.sampled_from(names).map(str.upper), SCALARS)
    arguments = draw(st.dictionaries(st.sampled_from([*parameters, "other"]), st.one_of(st.text(max_size=3), SCALARS)))
    if draw(st.integers(0, 9)):
        arguments[tool.operation_field] = draw(operations)
    return tool, shown, arguments


@given(calls())
def test_arguments_fit_the_shown_schema_exactly_when_operation_and_types_are_right(
    call: tuple[Tool, frozenset[str], dict[str, JsonValue]],
) -> None:
    tool, shown, arguments = call
    given_operation = arguments.get(tool.operation_field)
    parameters = {p.name: p for name in shown for p in tool.parameters(name)}
    common = required_by_all(tool, shown)
    others = {name: value for name, value in arguments.items() if name != tool.operation_field}
    right = (
        isinstance(given_operation, str)
        and given_operation in shown
        and common <= others.keys()
        and all(
            name in parameters and SchemaChecker(parameters[name].schema).is_valid(value)
            for name, value in others.items()
        )
    )

    assert checker(tool, shown).is_valid(arguments) is right


@given(calls())
def test_call_that_passes_schema_and_arguments_binds_to_its_operation(
    call: tuple[Tool, frozenset[str], dict[str, JsonValue]],
) -> None:
    tool, shown, arguments = call
    called = tool.operations_of(arguments)
    if not checker(tool, shown).is_valid(arguments):
        return
    assert called is not None
    (operation,) = called
    taken = {parameter.name: parameter.required for parameter in tool.parameters(operation)}
    given_names = arguments.keys() - {tool.operation_field}
    complete = all(name in given_names for name, required in taken.items() if required)
    choices = [group for spec in tool.operations if spec.name == operation for group in spec.one_of]
    chosen = all(len(given_names & set(group)) == 1 for group in choices)

    fits = complete and chosen and given_names <= taken.keys()
    assert (not tool.missing_arguments(operation, arguments)) is fits


@BY_NAME
def test_tool_is_complete_enough_to_be_registered(tool: Tool) -> None:
    tool.check()
    assert all(spec.description and spec.actions for spec in tool.operations)
