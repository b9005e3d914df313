"""Tokenisers, and the least change between two texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright_gui.qt.syntax import Language, spans_of
from gatewright_gui.qt.widget.code_rows import common_ends


def pieces(text: str, language: Language) -> list[tuple[str, str]]:
    lines = text.split("\n")
    return [(lines[n][s.start : s.start + s.length], s.kind) for n, s in spans_of(text, language)]


def test_json_tells_keys_from_strings() -> None:
    found = pieces('{ "a": "b", "n": -1.5e3, "t": true, "x": [null] }', "json")
    assert [p for p in found if p[1] != "punctuation"] == [
        ('"a"', "key"),
        ('"b"', "string"),
        ('"n"', "key"),
        ("-1.5e3", "number"),
        ('"t"', "key"),
        ("true", "keyword"),
        ('"x"', "key"),
        ("null", "keyword"),
    ]


def test_json_words_inside_strings_are_not_keywords() -> None:
    assert pieces('"true, 5 \\" null"', "json") == [('"true, 5 \\" null"', "string")]


def test_toml_heads_keys_values_and_comments() -> None:
    found = pieces('[[rules]] # first\nfile.level = "x" # why\nn = 0x1F\nd = 2024-01-02\nt = { a = true }', "toml")
    assert ("[[rules]]", "heading") in found
    assert ("# first", "comment") in found
    assert ("file.level", "key") in found
    assert ('"x"', "string") in found
    assert ("0x1F", "number") in found
    assert ("2024-01-02", "number") in found
    assert ("a", "key") in found
    assert ("true", "keyword") in found


def test_toml_hash_in_a_string_is_no_comment() -> None:
    assert ("# no", "comment") not in pieces('a = "# no"', "toml")


def test_toml_long_strings_go_on_over_lines() -> None:
    found = pieces('a = """one\n# two\nthree""" # end\nb = 1', "toml")
    assert ("# two", "string") in found
    assert ('three"""', "string") in found
    assert ("# end", "comment") in found
    assert ("b", "key") in found


def test_diff_lines_by_their_first_letter() -> None:
    found = pieces("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z", "diff")
    assert [kind for _, kind in found] == ["heading", "heading", "hunk", "removed", "added"]


def test_markdown_fences_go_on_over_lines() -> None:
    found = pieces("# Head\n- call `file`\n```\n# not a head\n```\nend", "markdown")
    assert found == [
        ("# Head", "heading"),
        ("- ", "punctuation"),
        ("`file`", "code"),
        ("```", "code"),
        ("# not a head", "code"),
        ("```", "code"),
    ]


@pytest.mark.parametrize("language", ["json", "toml", "markdown", "diff", "plain"])
@given(text=st.text(alphabet=st.sampled_from("ab\"'\\#[]{}=:,.1-+`* \n\U0001f600"), max_size=60))
def test_spans_stay_inside_their_line(language: Language, text: str) -> None:
    lines = text.split("\n")
    for number, span in spans_of(text, language):
        assert span.start >= 0
        assert span.start + span.length <= len(lines[number])


ROWS = st.lists(st.sampled_from(["a", "b", "", "\U0001f600x"]), max_size=9)


@given(old=ROWS, new=ROWS)
def test_rows_between_the_common_ends_turn_the_old_ones_into_the_new(old: list[str], new: list[str]) -> None:
    head, tail = common_ends(old, new)

    assert head + tail <= min(len(old), len(new))
    assert old[:head] + new[head : len(new) - tail] + old[len(old) - tail :] == new
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    assert not inner_old or not inner_new or (inner_old[0] != inner_new[0] and inner_old[-1] != inner_new[-1])
