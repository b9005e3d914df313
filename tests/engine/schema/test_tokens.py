"""What tools cost a model in tokens, and what filtering saves."""

import json
from pathlib import Path

import pytest

from gatewright.base.errors import NotSupported
from gatewright.schema import FORMATS, ToolListing, check_schema
from gatewright.schema.formats import ENCODING, TokenCounter, count_tokens

LONG = ToolListing("long", "Reads a file. " * 40, {"type": "object", "properties": {"path": {"type": "string"}}})
SHORT = ToolListing("short", "Reads.", {"type": "object", "properties": {}})


def test_openai_counts_are_those_of_the_encoding() -> None:
    count = count_tokens([SHORT], "openai")
    text = (
        '{"type":"function","function":{"name":"short","description":"Reads.",'
        '"parameters":{"type":"object","properties":{}}}}'
    )
    assert json.dumps(FORMATS["openai"].render(SHORT), separators=(",", ":")) == text
    assert (count.total, count.exact, count.encoding) == (26, True, ENCODING)


@pytest.mark.parametrize("name", FORMATS)
def test_only_openai_counts_are_exact_and_the_total_is_the_sum(name: str) -> None:
    count = count_tokens([LONG, SHORT], name)
    assert count.exact == name.startswith("openai")
    assert count.total == sum(count.per_tool.values())
    assert count.per_tool["long"] > 3 * count.per_tool["short"]
    assert count.unrestricted is None
    assert count.saved is None
    assert count.saving is None


def test_the_saving_is_against_the_unrestricted_list() -> None:
    count = count_tokens([SHORT], "openai", [LONG, SHORT])
    whole = count_tokens([LONG, SHORT], "openai").total
    assert (count.unrestricted, count.saved) == (whole, whole - count.total)
    assert count.saving == pytest.approx(1 - count.total / whole)
    assert count_tokens([], "openai", []).saving == 0


def test_the_same_tool_counted_again_is_not_tokenized_again() -> None:
    seen: list[str] = []

    def count(texts: list[str]) -> list[int]:
        seen.extend(texts)
        return [len(text) for text in texts]

    counter, form = TokenCounter(count), FORMATS["anthropic"]
    first = counter.count([LONG], form)
    again = ToolListing(LONG.name, LONG.description, LONG.schema)
    assert counter.count([LONG], form) == counter.count([again], form) == first
    assert len(seen) == 1


def test_without_the_tokenizer_bytes_are_counted_and_marked() -> None:
    count = TokenCounter(None).count([SHORT], FORMATS["openai"])
    assert (count.total, count.exact, count.encoding) == (30, False, "4 bytes a token")


def test_half_a_surrogate_pair_is_counted_not_raised() -> None:
    assert count_tokens([ToolListing("a", "\ud800", {"type": "object"})], "openai").total > 0


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(NotSupported):
        count_tokens([SHORT], "nothing")


def test_real_tools_are_counted(corpora: Path) -> None:
    rows = json.loads((corpora / "mcp_tools.json").read_text("utf-8"))
    listings = [
        ToolListing(row["tool"]["name"], row["tool"].get("description") or "", row["tool"]["inputSchema"])
        for row in rows[:200]
        if not check_schema(row["tool"]["inputSchema"])
    ]
    count = count_tokens(listings, "mcp")
    assert all(tokens > 10 for tokens in count.per_tool.values())


def test_what_was_made_of_a_tool_lasts_as_long_as_the_tool_however_many_there_are() -> None:
    form = FORMATS["gemini"]
    listings = [ToolListing(f"tool_{number}", "", {"type": "object", "properties": {}}) for number in range(5_000)]
    made = [form.fit(listing) for listing in listings]
    assert all(form.fit(listing) is fitted for listing, fitted in zip(listings, made, strict=True))
