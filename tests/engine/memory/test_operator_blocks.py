"""The door of an open workspace through which its operator makes, lists, looks at, changes and deletes blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import schema_from_json
from gatewright.memory import BlockType
from gatewright.policy.verdict import Action, Permission
from tests.engine.gate.blockbench import BlockBench, opened

FORMS: dict[str, tuple[dict[str, Any], JsonValue, JsonValue]] = {
    "text": ({"type": "text"}, None, ""),
    "map": (
        {"type": "map", "fields": [{"name": "f", "type": "text", "required": True, "default": "x"}]},
        None,
        {"f": "x"},
    ),
    "list": ({"type": "list", "item_type": "number", "max_items": 2}, [1, 2], [1, 2]),
    "log": ({"type": "log", "timestamp": False, "names_author": False}, ["begun"], [{"message": "begun"}]),
    "composite": (
        {"type": "composite", "sections": [{"name": "law", "schema": {"type": "text"}, "read_only": True}]},
        {"law": "no"},
        {"law": "no"},
    ),
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BlockBench]:
    made = opened(tmp_path)
    yield made
    made.workspace.close()


@pytest.mark.parametrize("type_", list(BlockType), ids=str)
@pytest.mark.parametrize("form", list(FORMS))
async def test_new_block_is_as_it_was_asked_for_and_the_agent_reaches_it(
    bench: BlockBench, form: str, type_: BlockType
) -> None:
    schema, content, held = FORMS[form]
    blocks, pinned = bench.workspace.blocks("ann"), type_ is not BlockType.ARCHIVAL

    record = blocks.create(
        "notes",
        schema_from_json(schema),
        author="operator",
        content=content,
        type=type_,
        permission=Permission.APPEND,
        pinned=pinned,
        description="what I know",
        char_limit=500,
    )

    assert [found.label for found in blocks.list()] == ["notes"]
    assert blocks.info("notes").record == record
    assert (record.type, record.permission, record.pinned, record.char_limit) == (type_, "append", pinned, 500)
    assert blocks.value("notes") == held
    told = await bench.done("block", "info", label="notes")
    assert (told["type"], told["schema"], told["permission"]) == (str(type_), schema, "append")
    assert (told["description"], told["pinned"], told["char_limit"]) == ("what I know", pinned, 500)


@pytest.mark.parametrize(
    ("form", "given", "code"),
    [
        ("text", {"label": ""}, "bad-label"),
        ("text", {"label": "a\nb"}, "bad-label"),
        ("text", {"label": "file:00000000:a.md"}, "bad-label"),
        ("text", {"label": "disk:00000000:a.md"}, "bad-label"),
        ("text", {"label": "taken"}, "exists"),
        ("text", {"char_limit": -1}, "bad-limit"),
        ("text", {"description": "x" * 5000}, "bad-description"),
        ("text", {"content": 5}, "wrong-type"),
        ("text", {"content": "\ud800"}, "not-text"),
        ("text", {"content": "too long", "char_limit": 3}, "too-large"),
        ("map", {"content": {"g": 1}}, "no-field"),
        ("map", {"content": {"f": 1}}, "wrong-type"),
        ("list", {"content": [1, 2, 3]}, "too-many-items"),
        ("list", {"content": ["a"]}, "wrong-type"),
        ("log", {"content": "begun"}, "wrong-type"),
        ("composite", {"content": {"none": "x"}}, "wrong-type"),
    ],
)
def test_new_block_that_cannot_be_is_refused_with_a_code_and_nothing_is_made(
    bench: BlockBench, form: str, given: dict[str, Any], code: str
) -> None:
    blocks = bench.workspace.blocks("ann")
    blocks.create("taken", author="operator")
    options: dict[str, Any] = {"label": "notes", "author": "operator", "schema": schema_from_json(FORMS[form][0])}

    with pytest.raises(ToolFailure) as failure:
        blocks.create(**{**options, **given})

    assert failure.value.code == code
    assert [record.label for record in blocks.list()] == ["taken"]


def test_block_without_a_required_value_is_not_made(bench: BlockBench) -> None:
    schema = schema_from_json({"type": "map", "fields": [{"name": "f", "type": "text", "required": True}]})

    with pytest.raises(ToolFailure) as failure:
        bench.workspace.blocks("ann").create("notes", schema, author="operator")

    assert failure.value.code == "required-field"


async def test_operator_sees_the_level_that_agents_have_and_is_not_bound_by_it(bench: BlockBench) -> None:
    (bench.docs / "a.md").write_text("one\n")
    label = await bench.label("a.md")
    blocks = bench.workspace.blocks("ann")
    blocks.create("closed", author="operator", content="x", permission=Permission.NONE)

    assert [record.label for record in blocks.list()] == ["closed", label]
    assert {record.label: blocks.info(record.label).permission for record in blocks.list()} == {
        "closed": "none",
        label: "read_write",
    }
    blocks.settings("closed", author="operator", permission=Permission.READ_ONLY)
    assert (await bench.done("block", "load", label="closed"))["content"] == "x"
    blocks.delete("closed", granted=Action.DELETE)
    assert [record.label for record in blocks.list()] == [label]


def test_looking_for_blocks_where_there_are_none_makes_nothing(bench: BlockBench) -> None:
    before = sorted(bench.folder.rglob("*"))

    assert bench.workspace.blocks("ann").list() == ()
    assert sorted(bench.folder.rglob("*")) == before
