"""Texts that are no TOML: the place that is named is where they have to be mended, and the words say how."""

import pytest

from tests.engine.policyfile.catalog import load

CASES = [
    ("name = Field", 2, 8, "`Field` is no value: a text needs quotes"),
    ("name =", 2, 7, "a value is missing here"),
    ('tools = ["file", , "x"]', 2, 18, "a value is missing here"),
    ('name = "abc\n\n[agents.b]', 2, 8, "this text is not closed on its line"),
    ("name = 'abc\n", 2, 8, "this text is not closed on its line"),
    ('name = """abc\n\n', 2, 8, "this text is not closed"),
    ('tools = [\n  "file",\n  "block"\n\nname = "x"\n', 2, 9, "this list is not closed"),
    ("x = [1, 2,\n\n[agents.a]\ny = 1", 2, 5, "this list is not closed"),
    ('x = [\n  "a"\n  "b",\n]', 4, 3, "a comma is missing before this"),
    ("[agents.my agent]", 2, 12, "a name with spaces needs quotes"),
    ("x = { a = 1, }", 2, 14, "end without a comma"),
    ("[[", 2, 3, "a key is expected here"),
    ('name = "C:\\Users"', 2, 13, "a backslash begins an escape here"),
    ('name = "a\x01b"', 2, 10, "the character U+0001 may not stand here"),
    ("x = 1 2", 2, 7, "the value ends before it"),
]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "line", "column", "words"), CASES)
def test_a_fault_of_syntax_is_placed_where_it_is_mended(
    text: str, line: int, column: int, words: str, ending: str
) -> None:
    (problem,) = load(f"gatewright = 1\n{text}".replace("\n", ending)).problems

    assert problem.code == "syntax"
    assert words in problem.message
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (line, column)
