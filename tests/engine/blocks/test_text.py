import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import GatewrightError, WorkspaceError
from gatewright.blocks.block import TextBlock

TEXT = st.text(alphabet=st.sampled_from("ab\n\réé😀\ufeff "), max_size=40)


@given(TEXT, TEXT)
def test_a_block_holds_the_text_that_it_is_given_and_survives_a_snapshot(first: str, whole: str) -> None:
    block = TextBlock.from_text(first)
    assert block.text == first
    again = TextBlock.from_snapshot(block.snapshot())
    assert again.text == first
    again.set_text(whole)
    assert TextBlock.from_snapshot(again.snapshot()).text == whole


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
