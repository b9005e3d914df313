import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "path-empty"),
        ("a\\b", "path-backslash"),
        ("..\\..\\x", "path-backslash"),
        ("a\0b", "path-control"),
        ("a\nb", "path-control"),
        ("a\x7f", "path-control"),
        ("a\x85", "path-control"),
        ("~", "path-home"),
        ("~root/x", "path-home"),
        ("file:///etc/passwd", "path-scheme"),
        ("file:/etc/passwd", "path-scheme"),
        ("FILE:x", "path-scheme"),
        ("http://host/x", "path-scheme"),
        ("gopher://x", "path-scheme"),
        ("data:text/plain,x", "path-scheme"),
        ("php://filter/x", "path-scheme"),
        ("C:/Windows", "path-scheme"),
        ("x" * 256, "path-too-long"),
        ("é" * 128, "path-too-long"),
        ("a/" * 3000, "path-too-long"),
        ("a\ud800", "path-surrogate"),
    ],
)
def test_what_is_no_plain_path_is_refused(text: str, code: str) -> None:
    refused = parse_model_path(text)
    assert isinstance(refused, PathRefused)
    assert refused.code == code
    assert len(text) < 2 or text not in refused.hint


@pytest.mark.parametrize(
    "text",
    ["notes: today.md", "10:30.txt", "data: results.csv", "a~", "a/~b", "%2e%2e/x", "a b", "日本.md", "x" * 255, "..."],
)
def test_ordinary_names_are_accepted(text: str) -> None:
    parsed = parse_model_path(text)
    assert isinstance(parsed, ModelPath)
    assert str(parsed) == text


def test_the_parts_are_without_empty_ones_and_dots_but_keep_dotdot() -> None:
    assert parse_model_path("./a//b/../c/") == ModelPath(absolute=False, parts=("a", "b", "..", "c"), folder=True)
    assert parse_model_path("//x/./y") == ModelPath(absolute=True, parts=("x", "y"))
    assert str(parse_model_path(".")) == "."
    assert str(parse_model_path("/")) == "/"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_no_text_makes_it_raise(text: str) -> None:
    parsed = parse_model_path(text)
    if isinstance(parsed, ModelPath):
        assert not {"", "."} & set(parsed.parts)
        assert "\\" not in text
        str(parsed).encode()


def test_no_benign_path_is_refused(corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "benign_paths.json").read_text("utf-8"))
    assert [row["payload"] for row in rows if isinstance(parse_model_path(row["payload"]), PathRefused)] == []
    assert len(rows) > 100
