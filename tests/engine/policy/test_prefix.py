"""Path prefixes: whole components, canonical paths only."""

from __future__ import annotations

import pytest

from gatewright.policy.verdict import check_prefix, covers


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("/", "/etc/passwd"),
        ("/data", "/data"),
        ("/data/", "/data/a/b"),
        ("/data/./a", "/data/a/b"),
        (".", "a/b"),
        ("a", "a/b"),
    ],
)
def test_prefix_covers_itself_and_what_lies_below(prefix: str, path: str) -> None:
    assert covers(prefix, path)


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("/data", "/database"),
        ("/data/a", "/data"),
        ("/data", "data/a"),
        ("data", "/data"),
        ("/data", "/data/../etc"),
        ("/data/..", "/etc"),
        ("/Data", "/data"),
    ],
)
def test_prefix_covers_nothing_else(prefix: str, path: str) -> None:
    assert not covers(prefix, path)


@pytest.mark.parametrize("text", ["", "~/x", "a\\b", "a\0b"])
def test_text_that_is_no_prefix_says_why(text: str) -> None:
    assert check_prefix(text)


@pytest.mark.parametrize("text", [".", "/", "a", "../a", "/a b/ä"])
def test_ordinary_prefix_is_accepted(text: str) -> None:
    assert check_prefix(text) is None
