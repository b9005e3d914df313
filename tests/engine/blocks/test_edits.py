import tracemalloc

import pytest

from gatewright.base.errors import ToolFailure
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
)
from gatewright.blocks.block import Block
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import Append, Edit, Overwrite, Patch, Redo, Replace, SetField, Undo

ANN = Hand("agent:ann", 1_700_000_000.0)
OPERATOR = Hand("operator", 1_700_000_000.0, may_all=True)
TASK = MapSchema(
    (
        Field("title", FieldType.TEXT, required=True),
        Field("weight", FieldType.NUMBER),
        Field("open", FieldType.BOOLEAN, default=True),
        Field("tags", FieldType.LIST),
        Field("due", FieldType.TIMESTAMP),
        Field("hits", FieldType.COUNTER),
        Field("key", FieldType.TEXT, read_only=True, default="k1"),
    )
)
NOTES = CompositeSchema(
    (
        Section("body", TextSchema()),
        Section("task", TASK),
        Section("steps", ListSchema(max_items=3)),
        Section("log", LogSchema()),
        Section("rules", TextSchema(), read_only=True),
    )
)


def text(content: str, *, char_limit: int | None = None) -> Block:
    return Block.create(TextSchema(), content, hand=ANN, char_limit=char_limit)


def task(**content: JsonValue) -> Block:
    return Block.create(TASK, {"title": "t", **content}, hand=ANN)


def refused(block: Block, edit: Edit, code: str, hand: Hand = ANN) -> str:
    """The words of a refusal, which leaves the block as it was."""
    before = block.value, block.version, block.steps
    with pytest.raises(ToolFailure) as failure:
        block.edit(edit, hand)
    assert failure.value.code == code
    assert (block.value, block.version, block.steps) == before
    return str(failure.value)


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (Append("!"), "a b a b\n!"),
        (Replace("a", "x"), "x b a b\n"),
        (Replace("a", "x", everywhere=True), "x b x b\n"),
        (Replace("a", "x", nth=2), "a b x b\n"),
        (Replace("[ab]", "<\\0>", regex=True, everywhere=True), "<a> <b> <a> <b>\n"),
        (Replace("(a) (b)", "\\2 \\1", regex=True, nth=2), "a b b a\n"),
        (Replace("$", "\\\\", regex=True), "a b a b\n\\"),
        (Overwrite("new"), "new"),
        (Overwrite(""), ""),
        (Patch("@@ -1 +1,2 @@\n a b a b\n+c\n"), "a b a b\nc\n"),
    ],
)
def test_an_edit_of_a_text_does_what_it_says(edit: Edit, wanted: str) -> None:
    block = text("a b a b\n")
    step = block.edit(edit, ANN)
    assert block.value == wanted
    assert step is not None
    assert (step.number, step.author, step.at_s) == (2, "agent:ann", 1_700_000_000.0)
    block.edit(Undo(), ANN)
    assert block.value == "a b a b\n"
    block.edit(Redo(), ANN)
    assert block.value == wanted


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (Replace("z", "x"), "no-match"),
        (Replace("", "x"), "bad-arguments"),
        (Replace("a", "x", nth=3), "nth-match"),
        (Replace("a", "x", nth=0), "bad-arguments"),
        (Replace("a", "x", nth=1, everywhere=True), "bad-arguments"),
        (Replace("(?=a)", "x", regex=True), "bad-pattern"),
        (Replace("(", "x", regex=True), "bad-pattern"),
        (Replace("a", "\\1", regex=True), "bad-pattern"),
        (Replace("a", "\\n", regex=True), "bad-pattern"),
        (Append("\ud800"), "not-text"),
        (Append(3), "wrong-type"),
        (SetField("a", 1), "wrong-schema"),
        (Append("x", "body"), "no-section"),
        (Patch("nothing"), "bad-patch"),
        (Undo(), "nothing-to-undo"),
        (Redo(), "nothing-to-redo"),
        (Append("x" * 100), "too-large"),
        (Replace("a", "x" * 50, everywhere=True), "too-large"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(edit: Edit, code: str) -> None:
    refused(text("a b a b\n", char_limit=100), edit, code)


def test_a_replacement_that_would_grow_without_bound_is_stopped() -> None:
    block = text("a" * 90_000)
    assert "too much" in refused(block, Replace("a", "x" * 1_000_000, everywhere=True), "too-large")
    refused(block, Replace("", "x" * 1000, regex=True, everywhere=True), "bad-arguments")
    refused(block, Replace("x*", "y" * 1000, regex=True, everywhere=True), "too-large")


@pytest.mark.parametrize(("old", "nth", "code"), [("(a*)", None, "too-large"), ("(a*)b", 2, "nth-match")])
def test_groups_repeated_in_a_replacement_are_measured_before_they_are_written(
    old: str, nth: int | None, code: str
) -> None:
    block = text("a" * 300_000 + "b")
    tracemalloc.start()
    try:
        refused(block, Replace(old, "\\1" * 2_000, nth=nth, regex=True), code)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_an_edit_that_changes_nothing_is_no_step() -> None:
    block = text("abc")
    assert block.edit(Replace("b", "b"), ANN) is None
    assert block.edit(Append(""), ANN) is None
    assert block.edit(Overwrite("abc"), ANN) is None
    assert len(block.steps) == 1


def test_a_block_over_a_lowered_limit_may_still_become_smaller() -> None:
    block = text("0123456789")
    block.char_limit = 5
    refused(block, Append("x"), "too-large")
    block.edit(Replace("0123", ""), ANN)
    assert block.value == "456789"


def test_fields_take_only_values_of_their_type() -> None:
    block = task()
    assert block.value == {"title": "t", "open": True, "hits": 0, "key": "k1"}
    wanted: dict[str, JsonValue] = {
        "title": "u",
        "weight": 1.5,
        "open": False,
        "tags": ["a", {"b": 1}],
        "due": "2026-01-31T09:30:00Z",
        "hits": 7,
    }
    for name, value in wanted.items():
        block.edit(SetField(name, value), ANN)
    assert block.value == {**wanted, "key": "k1"}
    for name, value in {"title": 1, "weight": "x", "open": 1, "tags": "a", "due": "2026-01-31", "hits": 1.5}.items():
        refused(block, SetField(name, value), "wrong-type")
    refused(block, SetField("weight", True), "wrong-type")
    refused(block, SetField("hits", 2**60), "wrong-type")
    assert "`title`" in refused(block, SetField("nope", 1), "no-field")


def test_required_and_read_only_fields_hold_on_every_way() -> None:
    block = task()
    for edit, code in (
        (SetField("title", None), "required-field"),
        (Overwrite({}), "required-field"),
        (SetField("key", "x"), "read-only"),
        (Overwrite({"title": "x"}), "read-only"),
    ):
        refused(block, edit, code)
    block.edit(SetField("key", "k2"), OPERATOR)
    assert block.value == {"title": "t", "open": True, "hits": 0, "key": "k2"}
    with pytest.raises(ToolFailure, match="`title` is required"):
        Block.create(TASK, {}, hand=ANN)


def test_a_counter_adds_up_and_is_undone_by_what_was_added() -> None:
    block = task()
    block.edit(SetField("hits", 5), ANN)
    block.edit(SetField("hits", 7), Hand("agent:bob"))
    block.edit(Undo(), ANN)
    assert block.value == {"title": "t", "open": True, "hits": 2, "key": "k1"}


def test_undo_and_redo_count_no_further_than_a_counter_holds() -> None:
    block, most = task(), 2**53 - 1
    block.edit(SetField("hits", most), Hand("agent:bob"))
    block.edit(SetField("hits", most - 5), ANN)
    block.edit(SetField("hits", most), Hand("agent:bob"))
    refused(block, Undo(), "wrong-type")
    block.edit(SetField("hits", most - 5), Hand("agent:bob"))
    block.edit(Undo(), ANN)
    assert isinstance(block.value, dict)
    assert block.value["hits"] == most


@pytest.mark.parametrize("schema", [TextSchema(), MapSchema((Field("f", FieldType.TEXT),)), ListSchema(), LogSchema()])
def test_words_for_an_edit_that_does_not_fit_name_no_operation(schema: BlockSchema) -> None:
    block = Block.create(schema)
    said: list[str] = []
    for edit in (Append("x"), Replace("a", "b"), Patch("@@ -1 +1 @@\n-a\n+b\n"), SetField("f", "x")):
        try:
            block.edit(edit, ANN)
        except ToolFailure as failure:
            said += [str(failure)] if failure.code == "wrong-schema" else []

    assert said
    assert not set(" ".join(said).replace(",", " ").split()) & {"append", "replace", "patch", "insert", "set_field"}


def test_a_list_takes_items_up_to_its_limit() -> None:
    block = Block.create(ListSchema(max_items=3), ["a"], hand=ANN)
    block.edit(Append("b"), ANN)
    block.edit(Append('{"x": [1]}'), ANN)
    refused(block, Append("d"), "too-many-items")
    refused(block, Overwrite([1, 2, 3, 4]), "too-many-items")
    block.edit(Overwrite([{"x": [1]}, 1.5]), ANN)
    assert block.value == [{"x": [1]}, 1.5]
    for _ in range(3):
        block.edit(Undo(), ANN)
    assert block.value == ["a"]


def test_items_of_one_type_are_read_from_text_where_that_is_all_there_is() -> None:
    block = Block.create(ListSchema(FieldType.NUMBER), [], hand=ANN)
    block.edit(Append("3"), ANN)
    assert block.value == [3]
    refused(block, Append("three"), "not-json")
    refused(block, Append('1, "y": 2'), "not-json")
    refused(block, Append("true"), "wrong-type")
    rows = Block.create(ListSchema(fields=(Field("name", FieldType.TEXT, required=True),)), [], hand=ANN)
    rows.edit(Append('{"name": "x"}'), ANN)
    assert rows.value == [{"name": "x"}]
    refused(rows, Append("{}"), "required-field")
    refused(rows, Append('{"name": "x", "other": 1}'), "no-field")


def test_a_log_is_only_added_to_and_nobody_takes_an_entry_back() -> None:
    block = Block.create(LogSchema((Field("level", FieldType.TEXT),), display_limit=1), [], hand=ANN)
    block.edit(Append("first"), ANN)
    block.edit(Append('{"message": "second", "level": "warn"}'), Hand("agent:bob", 1_700_000_001.0))
    assert block.value == [
        {"at": "2023-11-14T22:13:20.000Z", "author": "agent:ann", "message": "first"},
        {"at": "2023-11-14T22:13:21.000Z", "author": "agent:bob", "message": "second", "level": "warn"},
    ]
    for edit in (Replace("a", "b"), SetField("level", "x")):
        refused(block, edit, "wrong-schema")
    refused(block, Overwrite([]), "append-only")
    refused(block, Undo(), "nothing-to-undo")
    refused(block, Append({"at": "2020-01-01T00:00:00Z"}), "no-field")
    assert block.render() == "2023-11-14T22:13:21.000Z agent:bob: second; level: warn\n[1 older entries not shown]"


def test_a_composite_edits_section_by_section() -> None:
    block = Block.create(NOTES, {"body": "hello\n", "task": {"title": "t"}, "rules": "be kind"}, hand=ANN)
    block.edit(Append("world\n", "body"), ANN)
    block.edit(SetField("weight", 2, "task"), ANN)
    block.edit(Append("one", "steps"), ANN)
    block.edit(Append("began", "log"), ANN)
    block.edit(SetField("body", "whole"), ANN)
    refused(block, Append("x"), "no-section")
    refused(block, Append("x", "nowhere"), "no-section")
    for edit in (
        Append("x", "rules"),
        SetField("rules", "x"),
        Overwrite({"rules": "x"}),
        Replace("be", "x", section="rules"),
    ):
        refused(block, edit, "read-only")
    refused(block, SetField("key", "x", "task"), "read-only")
    refused(block, Overwrite({"body": "x", "rules": "y"}), "read-only")
    block.edit(Append("!", "rules"), OPERATOR)
    value = block.value
    assert isinstance(value, dict)
    assert (value["body"], value["steps"], value["rules"]) == ("whole", ["one"], "be kind!")
    block.edit(Undo(), ANN)
    assert isinstance(block.value, dict)
    assert block.value["body"] == "hello\nworld\n"
    block.edit(Undo(), ANN)
    assert block.value["steps"] == []


@pytest.mark.parametrize(
    ("schema", "content"),
    [(TextSchema(), 3), (TASK, []), (ListSchema(), "x"), (LogSchema(), "x"), (NOTES, "x"), (NOTES, {"other": "x"})],
)
def test_content_of_the_wrong_kind_makes_no_block(schema: BlockSchema, content: JsonValue) -> None:
    with pytest.raises(ToolFailure):
        Block.create(schema, content, hand=ANN)


def test_a_diff_shows_an_edit_without_doing_it() -> None:
    block = text("one\ntwo\n")
    diff = block.diff(Replace("two", "TWO"), ANN, "notes")
    assert diff.startswith("--- notes\n+++ notes sha256:")
    assert diff.endswith("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n")
    assert block.value == "one\ntwo\n"
    assert block.diff(Replace("two", "two"), ANN) == ""
    assert '+ "weight": 2' in task().diff(SetField("weight", 2), ANN)


KEPT = (Field("a", FieldType.TEXT), Field("key", FieldType.TEXT, read_only=True, default="d"))


def test_fields_of_items_that_are_read_only_are_the_operators() -> None:
    operator = Hand("operator", may_all=True)
    block = Block.create(ListSchema(fields=KEPT), [{"a": "x", "key": "k"}])
    refused(block, Append('{"a": "y", "key": "mine"}'), "read-only")
    refused(block, Overwrite([{"a": "x", "key": "k"}, {"a": "y", "key": "k"}]), "read-only")
    block.edit(Append('{"a": "z"}'), ANN)
    block.edit(Overwrite([{"a": "x", "key": "k"}, {"a": "new"}]), ANN)
    assert block.value == [{"a": "x", "key": "k"}, {"a": "new", "key": "d"}]
    block.edit(Overwrite([{"a": "x", "key": "k"}, {"a": "new", "key": "set"}]), operator)
    assert block.value == [{"a": "x", "key": "k"}, {"a": "new", "key": "set"}]


def test_fields_of_entries_that_are_read_only_are_the_operators() -> None:
    block = Block.create(LogSchema(fields=KEPT, timestamp=False, names_author=False))
    refused(block, Append({"message": "m", "key": "mine"}), "read-only")
    block.edit(Append({"message": "m", "a": "x"}), ANN)
    block.edit(Append({"message": "m", "key": "mine"}), Hand("operator", may_all=True))
    assert block.value == [{"message": "m", "a": "x", "key": "d"}, {"message": "m", "key": "mine"}]


@pytest.mark.parametrize(
    ("content", "item"),
    [
        ('{"done": false, "what": "x"}', {"done": False, "what": "x"}),
        ("[1, 2]", [1, 2]),
        ("5", 5),
        ('"5"', "5"),
        ("plain words", "plain words"),
        ('{"half": ', '{"half": '),
        ("null", "null"),
        ("", ""),
        ('1, "other": 2', '1, "other": 2'),
    ],
)
def test_a_list_that_takes_anything_reads_json_and_keeps_other_text(content: str, item: JsonValue) -> None:
    block = Block.create(ListSchema())
    block.edit(Append(content), ANN)
    assert block.value == [item]
