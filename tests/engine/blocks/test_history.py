import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.blocks import CompositeSchema, Field, FieldType, ListSchema, MapSchema, Section, TextSchema
from gatewright.blocks.block import Block
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import Append, Edit, Overwrite, Redo, Replace, SetField, Undo

ANN, BOB = Hand("ann", 1.0), Hand("bob", 2.0)
FIELDS = MapSchema((Field("a", FieldType.TEXT), Field("n", FieldType.COUNTER), Field("l", FieldType.LIST)))
ALL = CompositeSchema((Section("t", TextSchema()), Section("m", FIELDS), Section("i", ListSchema())))
WORDS = st.text("ab\n😀", max_size=6)
EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(Append, WORDS, st.just("t")),
    st.builds(Overwrite, WORDS, st.just("t")),
    st.builds(Replace, st.sampled_from("ab"), WORDS, everywhere=st.booleans(), section=st.just("t")),
    st.builds(SetField, st.just("a"), st.none() | WORDS, st.just("m")),
    st.builds(SetField, st.just("l"), st.lists(st.integers(0, 3), max_size=2), st.just("m")),
    st.builds(SetField, st.just("n"), st.integers(-3, 3), st.just("m")),
    st.builds(Append, WORDS, st.just("i")),
    st.builds(Overwrite, st.lists(st.integers(0, 3), max_size=3), st.just("i")),
)


def copy_of(block: Block) -> Block:
    return Block.restore(block.schema, block.snapshot(), (), block.steps)


def tried(block: Block, edit: Edit, hand: Hand) -> bool:
    """Whether the edit was done and changed something."""
    try:
        return block.edit(edit, hand) is not None
    except ToolFailure:
        return False


@given(st.lists(EDITS, max_size=12), st.randoms(use_true_random=False))
def test_undoing_everything_leads_to_the_start_and_redoing_everything_back(
    edits: list[Edit], dice: random.Random
) -> None:
    block = Block.create(ALL, {"t": "ab\n", "i": ["x"]}, hand=ANN)
    states = [block.value]
    for edit in edits:
        if tried(block, edit, ANN):
            states.append(block.value)
        if dice.random() < 0.3:
            block = copy_of(block)  # a restart of the program in between
    for state in reversed(states[:-1]):
        block.edit(Undo(), ANN)
        assert block.value == state
    with pytest.raises(ToolFailure, match="nothing of yours to undo"):
        block.edit(Undo(), ANN)
    block = copy_of(block)
    for state in states[1:]:
        block.edit(Redo(), ANN)
        assert block.value == state
    with pytest.raises(ToolFailure, match="nothing of yours to redo"):
        block.edit(Redo(), ANN)


@given(st.lists(st.tuples(st.booleans(), EDITS | st.just(Undo()) | st.just(Redo())), max_size=16))
def test_any_mixture_of_edits_undo_and_redo_of_two_authors_is_the_same_after_a_restart(
    edits: list[tuple[bool, Edit]],
) -> None:
    block = Block.create(ALL, {"t": "ab\n"}, hand=ANN)
    for mine, edit in edits:
        twin = copy_of(block)
        done = tried(block, edit, ANN if mine else BOB)
        assert tried(twin, edit, ANN if mine else BOB) == done
        assert twin.value == block.value
        assert [(step.kind, step.target) for step in twin.steps] == [(step.kind, step.target) for step in block.steps]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.text("xyz", min_size=1, max_size=3)), max_size=14))
def test_undo_takes_away_what_its_author_wrote_and_leaves_the_rest(rows: list[tuple[bool, int, str]]) -> None:
    block = Block.create(TextSchema(), "", hand=ANN)
    for mine, at, letters in rows:
        text = block.value
        assert isinstance(text, str)
        place = at % (len(text) + 1)
        written = letters.upper() if mine else letters
        block.edit(Overwrite(text[:place] + written + text[place:]), ANN if mine else BOB)
    whole = block.value
    assert isinstance(whole, str)
    count = sum(mine for mine, _, _ in rows)
    for _ in range(count):
        block.edit(Undo(), ANN)
    assert isinstance(block.value, str)
    assert sorted(block.value) == sorted(letter for letter in whole if letter.islower())
    for _ in range(count):
        block.edit(Redo(), ANN)
    assert isinstance(block.value, str)
    assert sorted(block.value) == sorted(whole)


def test_updates_of_two_holders_stand_together_and_bytes_that_are_none_are_refused() -> None:
    one = Block.create(ALL, {"t": "middle\n"}, hand=ANN)
    other, common = copy_of(one), one.version
    one.edit(SetField("n", 2, "m"), ANN)
    other.edit(Append("end\n", "t"), BOB)
    other.edit(SetField("n", 3, "m"), BOB)
    update = other.updates_since(common)
    one.take_in([update], other.steps[1:])
    assert one.value == {"t": "middle\nend\n", "m": {"n": 5}, "i": []}
    for broken in (b"", b"junk" * 9, update[:-3]):
        with pytest.raises(WorkspaceError, match="damaged"):
            one.take_in([broken], ())
    with pytest.raises(WorkspaceError, match="damaged"):
        Block.restore(TextSchema(), b"junk")


def test_an_edit_that_somebody_else_overwrote_has_nothing_left_to_undo() -> None:
    block = Block.create(FIELDS, {"a": "0"}, hand=ANN)
    block.edit(SetField("a", "1"), ANN)
    block.edit(SetField("a", "2"), ANN)
    block.edit(SetField("a", "bob"), BOB)
    block.edit(Undo(), ANN)
    assert block.value == {"a": "bob", "n": 0}
    assert [(step.kind, step.target) for step in block.steps[-1:]] == [("undo", 3)]
    block.edit(Undo(), BOB)
    assert block.value == {"a": "2", "n": 0}


def test_every_step_can_be_looked_at_again() -> None:
    block = Block.create(TextSchema(), "", hand=ANN)
    for letter in "abc":
        block.edit(Append(letter), ANN)
    assert [block.at(step.number).value for step in block.steps] == ["", "a", "ab", "abc"]
    assert [(step.number, step.author, step.kind) for step in block.at(2).steps] == [
        (1, "ann", "create"),
        (2, "ann", "append"),
    ]
    assert block.value == "abc"
    with pytest.raises(ToolFailure, match="not kept"):
        block.at(9)


def test_a_block_without_its_history_is_the_same_text_and_says_that_undo_is_gone() -> None:
    block = Block.create(TextSchema(), "a", hand=ANN)
    for _ in range(50):
        block.edit(Overwrite("b" * 1000), ANN)
        block.edit(Overwrite("c" * 1000), ANN)
    shallow = Block.restore(TextSchema(), block.shallow_snapshot(), (), block.steps)
    assert shallow.value == block.value
    assert len(shallow.snapshot()) < len(block.snapshot()) / 2
    with pytest.raises(ToolFailure, match="too old"):
        shallow.edit(Undo(), ANN)
    with pytest.raises(ToolFailure, match="not kept"):
        shallow.at(2)
    shallow.edit(Append("d"), ANN)
    shallow.edit(Undo(), ANN)
    assert shallow.value == block.value
