"""Three-way merging as values, with ``git merge-file`` as the judge of what may be put together."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.blocks.difftext import changes, merge_texts
from tests.support.patience import in_time

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=12)


def text_of(lines: list[str], end: str) -> str:
    return "".join(f"{line}\n" for line in lines) + end


TEXTS = st.builds(text_of, LINES, st.sampled_from(["", "x"]))


def test_changes_in_different_places_are_both_kept() -> None:
    base = "1\n2\n3\n4\n5\n"
    assert merge_texts(base, "1\n2\n3\n4\nfive\n", "one\n2\n3\n4\n5\n").text == "one\n2\n3\n4\nfive\n"


@pytest.mark.parametrize("base", ["\n", "\r\n"])
@pytest.mark.parametrize("mine", ["\n", "\r\n"])
@pytest.mark.parametrize("other", ["\n", "\r\n"])
def test_line_ending_that_one_side_changed_is_that_of_the_whole(base: str, mine: str, other: str) -> None:
    texts = ("1\n2\n3\n4\n", "one\n2\n3\n4\n", "1\n2\n3\nfour\n")
    found = merge_texts(*(text.replace("\n", end) for text, end in zip(texts, (base, mine, other), strict=True)))
    assert found.text == "one\n2\n3\nfour\n".replace("\n", mine if mine != base else other)


def test_a_conflict_names_the_place_in_all_three_texts_and_loses_nothing() -> None:
    found = merge_texts("1\n2\n3\n", "0\n1\nmine\n3\n", "1\nother\n3\n")
    assert found.text is None
    (conflict,) = found.conflicts
    assert (conflict.base_line, conflict.mine_line, conflict.other_line) == (2, 3, 2)
    assert (conflict.base, conflict.mine, conflict.other) == ("2\n", "mine\n", "other\n")


def test_the_same_change_on_both_sides_is_made_once() -> None:
    assert merge_texts("1\n2\n", "1\nx\n", "1\nx\n").text == "1\nx\n"
    assert merge_texts("1\n2\n3\n4\n", "1\nx\n3\n4\n5\n", "1\nx\n3\n4\n").text == "1\nx\n3\n4\n5\n"


def test_two_texts_added_at_the_same_end_are_a_conflict() -> None:
    assert merge_texts("1\n", "1\nmine\n", "1\nother\n").text is None


def test_new_line_endings_of_one_side_are_carried_over() -> None:
    base = "1\n2\n3\n4\n"
    assert merge_texts(base, "1\n2\n3\nfour\n", "1\r\n2\r\n3\r\n4\r\n").text == "1\r\n2\r\n3\r\nfour\r\n"
    assert merge_texts(base, "1\r\n2\r\n3\r\n4\r\n", "one\n2\n3\n4\n").text == "one\r\n2\r\n3\r\n4\r\n"


@pytest.mark.parametrize(
    ("base", "mine", "other", "text"),
    [
        ("1\r\n2\r\n3\r\n", "1\n2\n3\n", "1\r\n2\r\n3\r\n4\r\n", "1\n2\n3\n4\n"),
        ("1\r\n2\r\n3\r\n", "1\r\n2\r\n3\r\n4\r\n", "1\n2\n3\n", "1\n2\n3\n4\n"),
        ("1\r\n2\n3\n", "1\r\n2\nx\n", "0\r\n2\n3\n", "0\r\n2\nx\n"),
        ("1\n2\n3\r", "0\n2\n3\r", "1\n2\n3\r\n", "0\n2\n3\r\n"),
        ("1\n2\n3\n", "1\n3\n", "1\n2\n3\n4\n", "1\n3\n4\n"),
        ("1\n2\n3\n4\n5\n", "a\nb\n2\n3\n4\n5\n", "1\n2\n3\n4\nx\n", "a\nb\n2\n3\n4\nx\n"),
        ("1\n2\n3\n4\n5\n", "2\n3\n4\n5\n", "1\n2\nx\n4\n", "2\nx\n4\n"),
        ("1\n2\n", "1\n2", "0\n1\n2\n", "0\n1\n2"),
        ("1\n2\n3\n", "1\nx\n3\n", "1\ny\n3\n", None),
        ("1\n2\n3\n", "1\nx\n3\n", "1\n2\ny\n", None),
        ("1\n2\n3\n", "1\n3\n", "1\nx\n3\n", None),
    ],
)
def test_what_comes_of_two_changes(base: str, mine: str, other: str, text: str | None) -> None:
    assert merge_texts(base, mine, other).text == text
    assert merge_texts(base, other, mine).text == text


def test_later_conflicts_are_named_where_they_stand_after_earlier_changes() -> None:
    base = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    mine = base.replace("1\n", "a\nb\nc\n").replace("5", "mine").replace("9\n", "")
    other = base.replace("3\n", "").replace("5", "other").replace("9", "nine")
    found = [
        (one.base_line, one.mine_line, one.other_line, one.base) for one in merge_texts(base, mine, other).conflicts
    ]

    assert found == [(5, 7, 4, "5\n"), (9, 11, 8, "9\n")]


def test_long_texts_are_compared_by_the_lines_that_stand_once() -> None:
    old = [f"{number}" for number in range(1000)]
    new = ["x", *old[:400], "y", *old[405:700], "z", "z", *old[700:], "end"]

    assert changes(old, new) == [(0, 0, 0, 1), (400, 405, 401, 402), (700, 700, 697, 699), (1000, 1000, 999, 1000)]
    swapped = [*old[500:], *old[:500]]
    assert changes(old, swapped) == [(0, 500, 0, 0), (1000, 1000, 500, 1000)]
    assert changes(["a"] * 300, ["b"] * 300) == [(0, 300, 0, 300)]


def test_a_gap_without_lines_that_stand_once_is_compared_up_to_two_hundred_lines_on_both_sides() -> None:
    same = ["a", "b"] * 99
    assert changes(["p", *same, "q"], ["r", *same, "s"]) == [(0, 1, 0, 1), (199, 200, 199, 200)]
    far = ["x"] * 10_001
    old, new = [*far, "p", "a", "a", "q"], [*far, "r", "a", "a", "s"]
    assert changes(old, new) == [(10_001, 10_002, 10_001, 10_002), (10_004, 10_005, 10_004, 10_005)]
    more, less = ["p", *["a", "b"] * 109, "q", "q"], ["r", *["a", "b"] * 89, "s", "s"]
    assert changes(more, less) == [(0, 221, 0, 181)], "one more than 40,000 pairs of lines"


@given(base=TEXTS, mine=TEXTS, other=TEXTS)
def test_merging_is_the_same_from_both_sides(base: str, mine: str, other: str) -> None:
    assert merge_texts(base, mine, other).text == merge_texts(base, other, mine).text
    assert merge_texts(base, base, other).text == other
    assert merge_texts(base, mine, mine).text == mine


@given(old=LINES, new=LINES)
def test_changes_lead_from_the_old_to_the_new_text(old: list[str], new: list[str]) -> None:
    made, at = list[str](), 0
    for a, b, c, d in changes(old, new):
        made += [*old[at:a], *new[c:d]]
        at = b
    assert [*made, *old[at:]] == new


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(base=st.permutations(range(12)), cuts=st.tuples(*[st.integers(0, 11)] * 2), words=st.tuples(*[TEXTS] * 2))
def test_what_we_merge_git_merges_to_the_same_text(
    tmp_path: Path, base: list[int], cuts: tuple[int, int], words: tuple[str, str]
) -> None:
    lines = [f"line {number}\n" for number in base]
    mine = "".join([*lines[: cuts[0]], words[0].replace("x", ""), *lines[cuts[0] + 1 :]])
    other = "".join([*lines[: cuts[1]], words[1].replace("x", ""), *lines[cuts[1] + 1 :]])
    found = merge_texts("".join(lines), mine, other)
    for name, text in (("mine", mine), ("base", "".join(lines)), ("other", other)):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["git", "merge-file", "-p", "--diff3", "mine", "base", "other"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.text is not None:
        assert (done.returncode, done.stdout) == (0, found.text)
    if abs(cuts[0] - cuts[1]) > 1:
        assert found.text is not None


def test_long_texts_without_common_lines_take_no_time() -> None:
    began = time.process_time()
    base = "".join(f"{number % 7}\n" for number in range(60_000))
    mine = "".join(f"{number % 5}\n" for number in range(60_000))
    other = "".join(f"{number % 11} {number}\n" for number in range(60_000))
    found = merge_texts(base, mine, other)
    assert found.text is None
    long = [f"{number}\n" for number in range(60_000)]
    one, two = list(long), list(long)
    one[100], one[40_000], two[20_000] = "x\n", "y\n", "z\n"
    three = list(one)
    three[20_000] = "z\n"
    assert merge_texts("".join(long), "".join(one), "".join(two)).text == "".join(three)
    assert in_time(time.process_time() - began, 20)
