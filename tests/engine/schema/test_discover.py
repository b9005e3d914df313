"""What discovery finds in each shape, and what it leaves alone."""

import time
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.schema import SchemaChecker, discover_operations, survey
from tests.support.patience import in_time


def flat(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def variant(tag: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {tag: value, **more}, "required": [tag, *more]}


def test_an_enum_named_operation_is_found_with_its_parameters() -> None:
    schema = {**flat(operation={"enum": ["read", "write"]}, path={}, content={}), "required": ["operation", "path"]}
    found = discover_operations(schema)
    assert found is not None
    assert found.to_json() == {
        "field": "operation",
        "shape": "property-enum",
        "confidence": "high",
        "default": None,
        "operations": [
            {"name": "read", "required": ["path"], "optional": ["content"]},
            {"name": "write", "required": ["path"], "optional": ["content"]},
        ],
        "suggested": [],
    }


@pytest.mark.parametrize(
    ("spelling", "shape"),
    [
        ({"enum": ["read"]}, "property-enum"),
        ({"const": "read"}, "property-const"),
        ({"oneOf": [{"const": "read"}, {"const": "write"}]}, "property-union"),
        ({"anyOf": [{"const": "read"}, {"enum": ["write"]}]}, "property-union"),
        ({"anyOf": [{"enum": ["read", "write"]}, {"type": "null"}]}, "property-enum"),
        ({"type": ["string", "null"], "enum": ["read", None]}, "property-enum"),
        ({"$ref": "#/$defs/Op"}, "property-enum"),
        ({"allOf": [{"$ref": "#/$defs/Op"}]}, "property-enum"),
        ({"type": "string", "pattern": "^(read|write)$"}, "property-pattern"),
        ({"type": ["string", "null"], "pattern": "^(?:read|write)$"}, "property-pattern"),
        ({"type": "string", "pattern": "^read$|^write$"}, "property-pattern"),
        ({"anyOf": [{"type": "string", "pattern": r"^(read|write\-all)$"}, {"type": "null"}]}, "property-pattern"),
    ],
)
def test_every_flat_spelling_is_found(spelling: dict[str, Any], shape: str) -> None:
    schema = {**flat(action=spelling), "$defs": {"Op": {"enum": ["read", "write"]}}}
    found = discover_operations(schema)
    assert found is not None
    assert (found.field, found.shape, found.names[0]) == ("action", shape, "read")


def test_the_names_of_a_pattern_are_the_texts_that_it_takes() -> None:
    pattern = r"^(?:get\.all|a\|b|c\\|x:y/z|é-1)$"
    found = discover_operations({**flat(op={"type": "string", "pattern": pattern}), "required": ["op"]})
    assert found is not None
    assert found.names == ("get.all", "a|b", "c\\", "x:y/z", "é-1")
    checker = SchemaChecker({"pattern": pattern})
    assert all(checker.is_valid(name) for name in found.names)


@pytest.mark.parametrize(
    "pattern",
    ["read|write", "^read|write$", "^(read|write)", "^(read|wr.te)$", "^(read|write)?$", "(?i)^(read|write)$", "^()$"],
)
def test_a_pattern_that_lets_other_texts_through_is_no_list_of_operations(pattern: str) -> None:
    assert discover_operations(flat(action={"type": "string", "pattern": pattern})) is None
    assert discover_operations(flat(action={"pattern": "^(read|write)$"})) is None


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_a_root_union_gives_each_operation_its_own_parameters(keyword: str) -> None:
    schema = {
        keyword: [
            variant("kind", {"const": "read"}, path={"type": "string"}),
            variant("kind", {"enum": ["move", "copy"]}, source={}, target={}),
        ]
    }
    found = discover_operations(schema)
    assert found is not None
    assert (found.field, found.shape, found.confidence) == ("kind", "tagged-union", "high")
    assert [operation.to_json() for operation in found.operations] == [
        {"name": "read", "required": ["path"], "optional": []},
        {"name": "move", "required": ["source", "target"], "optional": []},
        {"name": "copy", "required": ["source", "target"], "optional": []},
    ]


def test_the_discriminator_says_which_of_two_tags_counts() -> None:
    branches = [variant("action", {"const": name}, how={"const": how}) for name, how in (("a", "x"), ("b", "y"))]
    found = discover_operations({"oneOf": branches, "discriminator": {"propertyName": "how"}})
    assert found is not None
    assert found.field == "how"


def test_a_field_that_may_be_left_out_has_its_default_operation() -> None:
    found = discover_operations(flat(mode={"enum": ["list", "push"], "default": "push"}))
    assert found is not None
    assert found.default == "push"
    assert found.of({}) == ("push",)
    assert found.of({"mode": None}) == ("push",)
    assert found.of({"mode": "PUSH"}) == ("PUSH",)
    assert found.of({"mode": 3}) is None


def test_a_required_field_has_no_default_operation() -> None:
    schema = {**flat(operation={"enum": ["list", "push"], "default": "push"}), "required": ["operation"]}
    found = discover_operations(schema)
    assert found is not None
    assert found.default is None


@pytest.mark.parametrize(
    "schema",
    [
        flat(mode={"enum": ["values", "formulas"]}),
        flat(format={"enum": ["json", "csv"]}),
        flat(type={"enum": ["create", "delete"]}),
        flat(operation={"type": "string"}),
        flat(operation={"enum": [1, 2]}),
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object"},
    ],
)
def test_ordinary_parameters_are_no_operations(schema: dict[str, Any]) -> None:
    assert discover_operations(schema) is None


def test_a_filter_named_action_is_shown_with_low_confidence() -> None:
    field = {"enum": ["open", "done", "all"], "description": "Filter the todos by what happened to them."}
    found = discover_operations(flat(action=field))
    assert found is not None
    assert found.confidence == "low"


@pytest.mark.parametrize(
    "field",
    [
        {"enum": ["asc", "desc"]},
        {"enum": ["all", "done", "pending"]},
        {"enum": ["json", "csv", "table"]},
        {"enum": ["created", "name", "size"], "description": "What to sort the files by."},
        {"enum": ["get", "html", "json", "text"], "description": "The output format."},
    ],
)
@pytest.mark.parametrize("name", ["action", "operation", "command"])
def test_filters_orders_and_formats_under_an_operations_name_are_off_by_default(
    name: str, field: dict[str, Any]
) -> None:
    found = discover_operations(flat(**{name: field}))
    assert found is not None
    assert found.confidence == "low"


@pytest.mark.parametrize("values", [["add", "update", "delete"], ["add", "remove", "unknownFutureValue"]])
def test_a_field_of_data_deep_in_a_body_is_off_by_default(values: list[str]) -> None:
    rows = {"type": "array", "items": flat(operationType={"enum": values}, path={"type": "string"})}
    deep = {"type": "array", "items": flat(sub=flat(operations=rows))}

    assert survey(flat(body=flat(items=deep))).found is None


def test_a_value_that_only_stands_for_later_ones_is_no_operation() -> None:
    field = {"enum": ["add", "remove", "update", "unknownFutureValue"]}

    assert survey(flat(body=flat(operationType=field))).found is None


def test_a_type_whose_values_each_have_an_object_of_that_name_selects_operations() -> None:
    parts = {name: flat(text={"type": "string"}) for name in ("replace_content", "insert_content")}
    found = discover_operations({**flat(type={"enum": list(parts)}, **parts), "required": ["type"]})

    assert found is not None
    assert (found.field, found.names, found.confidence) == ("type", tuple(parts), "high")
    assert discover_operations(flat(type={"enum": list(parts)}, insert_content=parts["insert_content"])) is None


def test_names_without_a_word_of_doing_are_worth_a_look() -> None:
    found = discover_operations(flat(operation={"enum": ["sum", "average"]}))
    assert found is not None
    assert found.confidence == "medium"


def test_a_declared_field_overrides_the_guess() -> None:
    schema = flat(action={"enum": ["create", "delete"]}, format={"enum": ["json", "csv"]})
    found = discover_operations(schema, field="format")
    assert found is not None
    assert (found.field, found.confidence) == ("format", "declared")
    assert discover_operations(schema, field="absent") is None


def test_a_reference_that_leaves_the_document_is_an_error() -> None:
    with pytest.raises(SchemaError, match="leaves the document"):
        discover_operations(flat(operation={"$ref": "https://example.com/op.json"}))


def test_a_list_of_very_many_names_is_read_at_once() -> None:
    names = [f"get_{number}" for number in range(20_000)]
    began = time.process_time()
    found = discover_operations(flat(action={"enum": names}))
    assert found is not None
    assert found.names == tuple(names)
    assert in_time(time.process_time() - began, 2)  # a quadratic reading takes ten times as long
