"""What a tool's own message may tell the model."""

from __future__ import annotations

import time

import pytest

from gatewright.compile.operation import EMPTY, Redactor
from gatewright.gate.stages.result import cut
from tests.support.patience import in_time

CONFLICT = "file modified externally, use file load to refresh"


@pytest.mark.parametrize(
    ("hidden", "text", "left"),
    [
        ((), CONFLICT, CONFLICT),
        (("load",), CONFLICT, "file modified externally"),
        (("LOAD",), CONFLICT, "file modified externally"),
        (("delete",), CONFLICT, CONFLICT),
        (("load",), "use load", EMPTY),
        (("load",), "call file_load or file.load", EMPTY),
        (("load",), "the file was not downloaded; load it\nthen go on", "the file was not downloaded; then go on"),
        (("a.b",), "a-b is fine, a.b is not", "a-b is fine"),
    ],
)
def test_clause_that_names_a_hidden_operation_goes(hidden: tuple[str, ...], text: str, left: str) -> None:
    assert Redactor(hidden)(text) == left


def test_hidden_tool_goes_where_it_is_named_in_backticks() -> None:
    assert Redactor((), ("block",))("the block is busy, ask `block` for more") == "the block is busy"


@pytest.mark.parametrize(
    ("hidden", "text", "left"),
    [
        ("block", "busy; try `block.read` or so", "busy"),
        ("block", "busy; try `block@2`, then go on", "busy; then go on"),
        ("block", "busy; try `block(label)`", "busy"),
        ("block", "the block is busy", "the block is busy"),
        ("web_fetch", "no page, use web_fetch instead", "no page"),
        ("web_fetch", "no page, Web_Fetch.get has it", "no page"),
        ("web_fetch", "no page, web_fetcher has it", "no page, web_fetcher has it"),
        ("mail.send", "sent; never use mail.send again", "sent"),
        ("mail.send", "sent; never use mail.send.now.again", "sent"),
    ],
)
def test_hidden_tool_goes_in_every_way_of_naming_it(hidden: str, text: str, left: str) -> None:
    assert Redactor((), (hidden,))(text) == left


def test_text_of_any_length_is_looked_through_quickly() -> None:
    redactor = Redactor(("load",), ("web_fetch",))
    for piece in ("a", "a_", "a.", "`", "a-b_", ", "):
        text = piece * (400_000 // len(piece))
        began = time.process_time()
        assert redactor(text) == text
        assert in_time(time.process_time() - began, 1.0), piece


@pytest.mark.parametrize("limit", range(12))
def test_cut_text_is_whole_characters_within_the_limit(limit: int) -> None:
    text = "aü€😀z"
    shorter = cut(text, limit)

    if limit >= len(text.encode()):
        assert shorter is None
    else:
        assert shorter is not None
        head, suffix = shorter.split("\n")
        assert text.startswith(head)
        assert len(head.encode()) <= limit
        assert len((head + text[len(head)]).encode()) > limit
        assert suffix == "[output truncated — original size: 11 bytes]"
