import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import GatewrightError, WorkspaceError
from gatewright.blocks.text import TextBlock, count_overlapping

TEXT = st.text(alphabet=st.sampled_from("ab\n\réé😀\ufeff "), max_size=40)


@given(TEXT, TEXT, TEXT)
def test_edits_do_what_they_do_to_a_string_and_survive_a_snapshot(first: str, added: str, whole: str) -> None:
    block = TextBlock.from_text(first)
    block.append(added)
    assert (block.text, block.length) == (first + added, len(first + added))
    again = TextBlock.from_snapshot(block.snapshot())
    assert again.text == first + added
    again.set_text(whole)
    assert TextBlock.from_snapshot(again.snapshot()).text == whole


@given(TEXT, st.text(alphabet=st.sampled_from("ab😀"), max_size=2), TEXT)
def test_replace_changes_the_text_only_when_there_is_one_place(text: str, old: str, new: str) -> None:
    block = TextBlock.from_text(text)
    count = block.replace_once(old, new)
    assert count == count_overlapping(text, old)
    assert block.text == (text.replace(old, new) if count == 1 else text)


def test_overlapping_places_are_counted() -> None:
    assert count_overlapping("aaa", "aa") == 2
    assert count_overlapping("aaa", "") == 0


def test_bytes_that_are_no_snapshot_are_an_error_of_ours() -> None:
    with pytest.raises(WorkspaceError, match="damaged"):
        TextBlock.from_snapshot(b"junk")


def test_a_text_that_cannot_be_stored_is_an_error_of_ours() -> None:
    with pytest.raises(GatewrightError):
        TextBlock.from_text("\ud800")


def test_an_unrelated_long_text_is_taken_over_in_bounded_time() -> None:
    chance = random.Random(7)
    block = TextBlock.from_text("ab" * 60_000)
    unrelated = "".join(chance.choices("wxyz\n", k=120_000))
    block.set_text(unrelated)
    assert block.text == unrelated
