import json
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import (
    BlockSchema,
    CompositeSchema,
    Field,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Section,
    TextSchema,
    Viewport,
    schema_from_json,
)
from gatewright.blocks.block import Block
from gatewright.blocks.schemajson import schema_keys, schema_to_json
from gatewright.schema import SchemaChecker

FIELD = Field("name", FieldType.LIST, "what", required=True, read_only=True, default=["x", {"y": None}])
SCHEMAS: list[BlockSchema] = [
    TextSchema(),
    TextSchema(Viewport(3, 7, 100)),
    MapSchema((FIELD, *(Field(kind.value, kind) for kind in FieldType))),
    ListSchema(),
    ListSchema(FieldType.TEXT, max_items=3),
    ListSchema(fields=(FIELD,)),
    LogSchema((FIELD,), 5, timestamp=False, names_author=False, max_items=9),
    CompositeSchema((Section("a", TextSchema(), "d", read_only=True), Section("b", MapSchema((FIELD,))))),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: type(schema).__name__)
def test_a_schema_written_as_json_is_read_back_equal(schema: BlockSchema) -> None:
    assert schema_from_json(json.loads(json.dumps(schema_to_json(schema)))) == schema


WRONG: list[tuple[Any, str]] = [
    (None, "``"),
    ({"type": "tree"}, "`/type` is one of text, map"),
    ({"type": "text", "view": {}}, "`/view` is unknown"),
    ({"type": "text", "viewport": {"lines": "x"}}, "`/viewport/lines` is not a whole number"),
    ({"type": "text", "viewport": {"lines": True}}, "`/viewport/lines`"),
    ({"type": "text", "viewport": {"lines": 0}}, "from 1"),
    ({"type": "map"}, "`/fields` is missing"),
    ({"type": "map", "fields": [{"name": "a"}]}, "`/fields/0/type` is missing"),
    ({"type": "map", "fields": [{"name": "a", "type": "blob"}]}, "`/fields/0/type` is one of text"),
    ({"type": "map", "fields": [{"name": "a/b", "type": "text"}]}, "`a/b` cannot name"),
    ({"type": "map", "fields": [{"name": "a", "type": "text"}] * 2}, "`a` stands there twice"),
    ({"type": "map", "fields": [{"name": "a", "type": "number", "default": "x"}]}, "the default of `a`"),
    ({"type": "map", "fields": [{"name": "a", "type": "text", "required": 1}]}, "`/fields/0/required`"),
    ({"type": "list", "max_items": 0}, "max_items"),
    ({"type": "list", "item_type": "text", "fields": [{"name": "a", "type": "text"}]}, "either"),
    ({"type": "log", "fields": [{"name": "at", "type": "text"}]}, "`at`"),
    ({"type": "composite", "sections": []}, "at least one"),
    (
        {"type": "composite", "sections": [{"name": "a", "schema": {"type": "composite", "sections": []}}]},
        "at least one",
    ),
    (
        {
            "type": "composite",
            "sections": [
                {
                    "name": "a",
                    "schema": {"type": "composite", "sections": [{"name": "b", "schema": {"type": "text"}}]},
                }
            ],
        },
        "`/sections/0/schema` is a composite inside",
    ),
]


@pytest.mark.parametrize("kind", ["text", "map", "list", "log", "composite"])
def test_forms_are_told_exactly_the_keys_that_are_read(kind: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_from_json({"type": kind, "no such key": 1})
    known = str(refused.value).partition("known keys are ")[2].split(", ")
    keys: Any = schema_keys(kind)
    assert sorted(keys["properties"]) == sorted(known)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_written_schema_fits_what_forms_are_told(schema: BlockSchema) -> None:
    written = schema_to_json(schema)
    kind = str(written.pop("type"))
    assert SchemaChecker(schema_keys(kind)).errors(written) == ()


@pytest.mark.parametrize(("value", "words"), WRONG)
def test_a_schema_that_cannot_be_is_refused_with_its_pointer(value: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words.replace("[", r"\[")):
        schema_from_json(value)


@pytest.mark.parametrize(
    ("viewport", "shown"),
    [
        (None, "1\n2\n3\n4"),
        (Viewport(1, 9), "1\n2\n3\n4"),
        (Viewport(2, 2), "[lines 2 to 3 of 4]\n2\n3\n"),
        (Viewport(3, 9), "[lines 3 to 4 of 4]\n3\n4"),
        (Viewport(5, 1), "[the text has 4 lines, the window begins at line 5]"),
        (Viewport(1, 9, 3), "[lines 1 to 2 of 4, cut]\n1\n2"),
    ],
)
def test_a_viewport_shows_its_window(viewport: Viewport | None, shown: str) -> None:
    assert Block.create(TextSchema(viewport), "1\n2\n3\n4").render() == shown


@pytest.mark.parametrize(
    ("schema", "content", "shown"),
    [
        (
            MapSchema(
                (Field("a", FieldType.TEXT, read_only=True), Field("b", FieldType.LIST), Field("c", FieldType.TEXT))
            ),
            {"a": "x", "b": [1, "y"]},
            "a (read-only): x\nb:\n- 1\n- y\nc: (empty)",
        ),
        (ListSchema(), ["x", {"done": True, "what": "y"}, {"done": False, "a": 1, "b": 2}], None),
        (LogSchema(timestamp=False, names_author=False, display_limit=2), ["1", "2", "3"], None),
        (CompositeSchema((Section("s", TextSchema(), read_only=True), Section("l", ListSchema()))), {"s": "x"}, None),
    ],
)
def test_each_schema_is_shown_in_its_way(schema: BlockSchema, content: JsonValue, shown: str | None) -> None:
    wanted: dict[type, str] = {
        ListSchema: "0. x\n1. [x] y\n2. [ ] a: 1, b: 2",
        LogSchema: "3\n2\n[1 older entries not shown]",
        CompositeSchema: "## s (read-only)\nx\n\n## l\n(no items)",
    }
    assert Block.create(schema, content).render() == (shown or wanted[type(schema)])
