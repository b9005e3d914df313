"""What a text may be taken for as a path: every reading, in time linear in the text."""

from time import process_time
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.arguments.path import MAX_READINGS, MAX_STUDIED, may_be_path, parent_of_glob, readings
from tests.support.patience import in_time


def read(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = readings(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("/a/b", "/a/b"),
        ("//a//b/./c/", "/a/b/c"),
        ("/a/link/../b", "/a/link/../b"),
        ("/a/link/../b", "/a/b"),
        ("file:///a%20b?q#f", "/a b"),
        ("FILE://host/a", "/a"),
        ("jar:file:/a/b.jar!/c", "/a/b.jar!/c"),
        ("C:\\a\\b", "/a/b"),
        (" '/a' ", "/a"),
        ("%252Fa", "/a"),
        ("/a\0.png", "/a"),
        ("../../a", "/a"),
        ("/a )", "/a"),
        ("/a )", "/a )"),
        ("\u3000/a\ufeff", "/a"),
        ("\x1c/a\x85", "/a"),
        ("fi\tle:///a/\nb", "/a/b"),
        ("\x01file:/a", "/a"),
        ("file%3A/a", "/a"),
        ("fil%65:a", "/a"),
        ("//localhost/a?b#c", "/a"),
        ("./.././a", "/a"),
        ("e\u0301", None),
        ("/e\u0301", "/\u00e9"),
        ("https://a/b", None),
        ("a/b", None),
        ("key: value", None),
    ],
)
def test_every_reading_of_a_text_is_there(text: str, absolute: str | None) -> None:
    found = read(text)[0]
    assert (absolute in found) if absolute is not None else found == ()


def test_home_and_variables_have_the_values_of_this_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("DOCS", "/srv/docs")
    spelled = {"~/a": "/home/me/a", "~you/a": "/home/you/a", "$DOCS/a": "/srv/docs/a", "${HOME}/a": "/home/me/a"}
    for text, wanted in {**spelled, "%USERPROFILE%\\a": "/home/me/a", "/x/../$DOCS": "//srv/docs"}.items():
        assert any(found.replace("//", "/").endswith(wanted.replace("//", "/")) for found in read(text)[0]), text
    assert read("$NOBODY_HAS_THIS/a")[0] == ()


@pytest.mark.parametrize("text", ["plain text", "a/b.txt", "Note: this", "", "3.14", "user@host"])
def test_a_plain_text_is_seen_at_once(text: str) -> None:
    assert not may_be_path(text) or read(text)[0] == ()


@pytest.mark.parametrize(
    "text",
    [
        "/a",
        " /a",
        "~",
        "$HOME",
        "\\a",
        "file:/a",
        "C:\\a",
        "../a",
        "%2fa",
        '"/a"',
        "file%3A/a",
        "f\til%65:/a",
        "\ufeff/a",
    ],
)
def test_what_may_be_a_path_is_looked_at(text: str) -> None:
    assert may_be_path(text)


def test_the_folder_above_a_pattern_is_what_it_may_mean() -> None:
    assert parent_of_glob("/a/b*/c") == "/a/"
    assert parent_of_glob("/a/[b]/c") == "/a/"
    assert parent_of_glob("*.txt") == "."
    assert parent_of_glob("/a/b") is None


@pytest.mark.parametrize(
    "text",
    [
        "file:" * 70 + "//" + "/srv/key",
        "`'\" file:\\\\?#x%00%2500\0/srv/key?a#b",
        "file:///srv/key?" + "a" * MAX_STUDIED,
        "file:///" + "./" * MAX_STUDIED + "srv/key",
        " " * MAX_STUDIED + "file:///srv/key#" + "a" * MAX_STUDIED,
    ],
)
def test_of_what_has_more_readings_than_can_be_looked_at_none_is_left_out_in_silence(text: str) -> None:
    assert may_be_path(text)
    assert readings(text) is None


@pytest.mark.parametrize(
    "text",
    [" " * MAX_STUDIED + "/srv/key", "/srv/key\0" + "a" * MAX_STUDIED, "/srv/key%00" + "a" * 9 * MAX_STUDIED],
)
def test_a_short_path_in_a_long_text_is_read(text: str) -> None:
    assert "/srv/key" in (readings(text) or ((), ()))[0]


def test_a_long_text_that_begins_like_a_path_is_no_riddle() -> None:
    assert readings("/* the header\n" + "int main(void) { return 0; }\n" * 2_000) is not None


@pytest.mark.parametrize(
    "detour",
    [
        "../",
        "./",
        "/",
        "x/../",
        ".\\",
        "x\\..\\",
        "%2e%2E/",
        "%2e%2f",
        "%2e%2e%5C",
        "%252e%252F",
        "%25%32%65/",
        "%61/../",
    ],
)
def test_a_path_behind_a_million_characters_of_detours_is_read_or_a_riddle(detour: str) -> None:
    text = "/" + detour * (1_000_000 // len(detour)) + "srv/key"
    found = readings(text)
    assert found is None or "/srv/key" in found[0]


@pytest.mark.parametrize("detour", ["../", "x/../", "x\\..\\", "%2e%2e%5C", "%252e%252e%252F", "%25%32%65./"])
def test_a_path_behind_fewer_detours_that_climb_is_told(detour: str) -> None:
    assert "/srv/key" in read("/" + detour * 5_000 + "srv/key")[0]


@pytest.mark.parametrize(
    "document",
    [
        "/* the header */\n" + '#include "../a.h" // 50 % of ../b\n' * 20_000,
        "%3C%21DOCTYPE%20html%3E" + "%3Cp%3E%E4%B8%AD%E6%96%87%3C%2Fp%3E" * 20_000,
        "/search?q=a%20b\n" * 60_000,
        "~~~\n" + "naïve ~/notes $HOME %d\n" * 40_000,
        "$x = 1;\n" * 100_000,
    ],
)
def test_a_document_of_a_megabyte_that_begins_like_a_path_is_none_and_no_riddle(document: str) -> None:
    assert may_be_path(document)
    assert readings(document) == ((), ())


@given(st.text(st.sampled_from("%25eEcC1aé\u4e2dx")))
def test_percent_signs_are_decoded_as_the_library_does(text: str) -> None:
    once = unquote(text, errors="surrogateescape")
    assert {f"/x{once}", f"/x{unquote(once, errors='surrogateescape')}"} <= set(read(f"/x{text}")[0])


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "/a",
            "../",
            "./",
            "$PATH",
            "%2f",
            "%25",
            "file:",
            "\\",
            "~",
            '"',
            "\0",
            "é",
            "%",
            "%é",
            "%2f../",
            "$PATH/../",
        ),
        *("$PATH/../", "\u0327\u0301", "\u0301\u0327\u0301" * 170 + "/", "\u0301\\%2e", "e\u0301\\%61$HOME?#"),
    ],
)
@pytest.mark.parametrize("head", ["", "/", "../", "jar:file:/"])
def test_time_is_linear_in_the_text(head: str, piece: str) -> None:
    def spent(size: int) -> float:
        text = head + piece * (size // len(piece))
        begun = process_time()
        found = readings(text)
        assert found is None or len(found[0]) <= 2 * MAX_READINGS
        return process_time() - begun

    spent(10_000)
    assert in_time(spent(16_000), 0.1)
    assert in_time(spent(1_000_000), 0.1)
