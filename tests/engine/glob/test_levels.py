import posixpath
import string
import time
import tracemalloc
from collections.abc import Iterable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import MAX_PATTERN, Explanation, PermissionRules, check_pattern
from gatewright.policy.verdict import Permission
from tests.engine.glob.test_git_oracle import NAMES, PATTERNS
from tests.support.patience import in_time


def rules(*rows: tuple[str, Permission], default: Permission = Permission.READ_ONLY) -> PermissionRules:
    return PermissionRules([PermissionRule(pattern, level) for pattern, level in rows], default)


def test_first_match_wins_over_later_rules() -> None:
    found = rules(("docs/public/**", Permission.ADMIN), ("docs/**", Permission.NONE))
    assert found.level("docs/public/a.md") is Permission.ADMIN
    assert found.explain("docs/x.md") == Explanation(Permission.NONE, 1, "docs/**")


def test_a_path_without_a_rule_gets_the_default() -> None:
    assert rules(("*.log", Permission.NONE)).explain("a.txt") == Explanation(Permission.READ_ONLY)


def test_a_rule_on_a_folder_covers_all_below_and_beats_later_rules_there() -> None:
    found = rules(("secrets/", Permission.NONE), ("*.md", Permission.ADMIN))
    assert found.explain("a/secrets/deep/er/readme.md").index == 0
    assert found.level("secrets/") is Permission.NONE
    assert found.level("secrets") is Permission.READ_ONLY, "the pattern is for folders only"


def test_an_earlier_exception_inside_a_closed_folder_is_honoured() -> None:
    found = rules(("secrets/open.md", Permission.READ_WRITE), ("secrets/", Permission.NONE))
    assert found.level("secrets/open.md") is Permission.READ_WRITE
    assert found.level("secrets/other.md") is Permission.NONE


@pytest.mark.parametrize("path", ["/etc/passwd", "//etc/passwd", "../x", "a/../../x", "..", "/", "./../x"])
def test_nothing_outside_the_base_has_a_level(path: str) -> None:
    found = rules(("**", Permission.ADMIN), default=Permission.ADMIN)
    assert found.explain(path) == Explanation(Permission.NONE, outside=True)
    assert found.level(path) is Permission.NONE


@pytest.mark.parametrize("path", ["docs/a.md", "./docs/a.md", "docs//a.md", "x/../docs/./a.md", ".//docs/a.md"])
def test_paths_are_made_canonical_first(path: str) -> None:
    assert rules(("/docs/a.md", Permission.APPEND)).explain(path).index == 0


@pytest.mark.parametrize("path", ["secrets/", "secrets//", "secrets/.", "secrets/x/.."])
def test_a_trailing_slash_or_dot_says_folder(path: str) -> None:
    assert rules(("secrets/", Permission.NONE)).explain(path).index == 0


@pytest.mark.parametrize("path", ["", ".", "./", "a/.."])
def test_the_base_itself_has_the_default(path: str) -> None:
    assert rules(("**", Permission.NONE), ("*", Permission.NONE)).explain(path) == Explanation(Permission.READ_ONLY)


def test_backslashes_tildes_and_percent_signs_are_ordinary_characters_of_a_path() -> None:
    found = rules((r"a\\b", Permission.NONE), ("~x", Permission.APPEND), ("%2e", Permission.ADMIN))
    assert [found.level(path) for path in ("a\\b", "~x", "%2e")] == [
        Permission.NONE,
        Permission.APPEND,
        Permission.ADMIN,
    ]


ASCII = "".join(chr(code) for code in range(1, 128) if chr(code) != "/")


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("[[:alnum:]]", string.ascii_letters + string.digits),
        ("[[:alpha:]]", string.ascii_letters),
        ("[[:blank:]]", " \t"),
        ("[[:cntrl:]]", [*map(chr, range(1, 32)), "\x7f"]),
        ("[[:digit:]]", string.digits),
        ("[[:graph:]]", string.ascii_letters + string.digits + string.punctuation),
        ("[[:lower:]]", string.ascii_lowercase),
        ("[[:print:]]", string.ascii_letters + string.digits + string.punctuation + " "),
        ("[[:punct:]]", string.punctuation),
        ("[[:space:]]", " \t\n\r"),
        ("[[:upper:]]", string.ascii_uppercase),
        ("[[:xdigit:]]", string.hexdigits),
        ("[[:digit:]a-c]", string.digits + "abc"),
        ("[[:digit:]-c]", string.digits + "-c"),
        ("[a-c]", "abc"),
        ("[a-a]", "a"),
        ("[c-a]", "c"),
        ("[a-c-e]", "abc-e"),
        ("[a-]", "a-"),
        ("[-a]", "-a"),
        ("[--0]", "-.0"),
        ("[]a]", "]a"),
        ("[!]-~]", [char for char in ASCII if char < "]" or char > "~"]),
        ("[^a]", [char for char in ASCII if char != "a"]),
        ("[a^!]", "a^!"),
        ("[\\]]", "]"),
        ("[a\\-c]", "a-c"),
        ("[a-\\c]", "abc"),
        ("[[]", "["),
        ("[[:a]", "[:a"),
        ("[a[:]", "a[:"),
        ("?", ASCII),
        ("*", ASCII),
        ("\\*", "*"),
        ("\\a", "a"),
        ("[/]", ""),
        ("[[:]", "[:"),
        ("[[:a]]", ""),
    ],
)
def test_a_bracket_stands_for_exactly_its_characters(pattern: str, taken: Iterable[str]) -> None:
    found = rules((f"x{pattern}", Permission.NONE), default=Permission.ADMIN)

    assert {char for char in ASCII if found.level(f"x{char}") is Permission.NONE} == set(taken) - {"/"}
    assert found.level("x/") is (Permission.NONE if pattern == "*" else Permission.ADMIN)


@pytest.mark.parametrize(
    "pattern", ["x[", "x[a", "x[a-", "x[[:foo:]]", "x[[:digit:]", "x[\\", "x[a-\\", "x\\", "x[[:a"]
)
def test_a_bracket_without_an_end_stands_for_nothing(pattern: str) -> None:
    assert check_pattern(pattern) is not None


@pytest.mark.parametrize(
    ("written", "name"),
    [("a  ", "a"), ("a\\ ", "a "), ("a\\  ", "a "), ("a b", "a b"), ("a \\ b ", "a  b"), ("\\#a", "#a"), ("a\r", "a")],
)
def test_spaces_at_the_end_of_a_pattern_do_not_count_unless_escaped(written: str, name: str) -> None:
    found = rules((written, Permission.NONE), default=Permission.ADMIN)

    assert found.level(name) is Permission.NONE
    assert found.level(f"{name} ") is Permission.ADMIN
    assert found.level(name[:-1] or "b") is Permission.ADMIN


def test_case_counts() -> None:
    assert rules(("*.KEY", Permission.NONE)).level("a.key") is Permission.READ_ONLY


DOTTED = (
    "matches nothing: it has a `.`, `..` or empty component, and no path in a source has one "
    "(begin with `/` for the top of the source)"
)
ENDLESS = "matches nothing: it ends within `[...]` or after a backslash"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("!keep.md", "`!keep.md`: `!` is not supported, put the exception above the rule that it is an exception to"),
        ("", "an empty pattern matches nothing"),
        ("   ", "an empty pattern matches nothing"),
        (
            "# note",
            "`# note` is a comment and matches nothing, write `\\# note` for a name that starts with `#`",
        ),
        ("/", "`/` matches nothing, write `*` for everything"),
        ("// ", "`// ` matches nothing, write `*` for everything"),
        ("./docs", f"`./docs` {DOTTED}"),
        ("docs/../x", f"`docs/../x` {DOTTED}"),
        ("a//b", f"`a//b` {DOTTED}"),
        ("secret[", f"`secret[` {ENDLESS}"),
        ("secret[[:foo:]]", f"`secret[[:foo:]]` {ENDLESS}"),
        ("secret\\", f"`secret\\` {ENDLESS}"),
        ("a\nb", "a pattern holds a line break or NUL"),
        ("a\0b", "a pattern holds a line break or NUL"),
        ("x" * 4097, "a pattern is longer than 4096 characters"),
    ],
)
def test_a_pattern_that_can_protect_nothing_is_refused(pattern: str, said: str) -> None:
    assert check_pattern(pattern) == said
    with pytest.raises(ValueError, match="a") as refused:
        rules((pattern, Permission.NONE))
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "pattern", [r"\!keep.md", r"\#x", "a b ", "[!a]", "[]]", "**", "/**", "*/", ".*", "..x", "a/", "x" * 4096]
)
def test_an_ordinary_pattern_is_accepted(pattern: str) -> None:
    assert check_pattern(pattern) is None


def test_many_levels_at_once_are_the_single_ones() -> None:
    found = rules(("*.py", Permission.READ_WRITE), ("/src/", Permission.APPEND), ("**/x/*.c", Permission.NONE))
    paths = ["a.py", "src/a.c", "src/", "q/x/a.c", "q/x/y/a.c", "../a.py", "ünï/x/é.c"]
    assert found.levels(paths) == [found.level(path) for path in paths]
    assert found.level("ünï/x/é.c") is Permission.NONE


@pytest.mark.parametrize("part", ["?", "[!a]", "[!é]", "*a", "*?", "*é", "**/", "**/a/", "a/**/", "?*b/**/", "é"])
def test_the_longest_patterns_of_every_kind_are_answered_in_bounded_time(part: str) -> None:
    pattern = part * (MAX_PATTERN // len(part))
    asked = rules((pattern, Permission.NONE), ("last", Permission.APPEND), default=Permission.ADMIN)
    began = time.process_time()
    levels = asked.levels(
        ["a" * 4000 + "b", "a/" * 2000 + "b", "é" * 2000, "a/b/" * 1000 + "c", "\udcff" * 4000, "last"]
    )
    assert in_time(time.process_time() - began, 10)
    assert len(levels) == 6


@given(
    rows=st.lists(PATTERNS, max_size=5),
    path=st.lists(st.sampled_from([*NAMES, ".", "..", "", ".git", "\n"]), max_size=5).map("/".join),
)
def test_a_path_is_outside_or_has_the_level_of_the_one_that_it_means(rows: list[str], path: str) -> None:
    asked = rules(*((row, Permission.NONE) for row in rows if check_pattern(row) is None), default=Permission.ADMIN)
    meant = posixpath.normpath(path)
    folder = path.endswith(("/", "/.", "/.."))
    if path.startswith("/") or meant == ".." or meant.startswith("../") or leaves(path):
        assert asked.explain(path).outside
    elif meant == ".":
        assert asked.explain(path) == Explanation(Permission.ADMIN)
    else:
        assert asked.explain(path) == asked.explain(meant + "/" * folder)


def leaves(path: str) -> bool:
    """Whether a path is above its base on its way."""
    steps = [-1 if part == ".." else 1 for part in path.split("/") if part not in {"", "."}]
    return any(depth < 0 for depth in accumulate(steps))


def test_patterns_with_many_stars_take_linear_time() -> None:
    found = rules(("*a*a*a*a*a*a*a*a*a*b", Permission.NONE), ("x/**/*a*a*a*a*a*a/**/*a*a*a*a*b", Permission.NONE))
    assert found.level("a" * 4000) is Permission.READ_ONLY
    assert found.level("x/" + "a/" * 1500 + "a" * 250) is Permission.READ_ONLY


def test_a_very_deep_path_is_answered() -> None:
    assert rules(("/a/a/", Permission.NONE)).level("a/" * 2000 + "b") is Permission.NONE
    assert rules(("b", Permission.NONE)).level("a/" * 2000 + "b") is Permission.NONE


def test_patterns_that_outgrow_the_memory_of_one_matcher_are_answered_in_their_order() -> None:
    large = [("?" * 4000 + f"{number}", Permission.NONE) for number in range(16)]
    found = rules(("first/", Permission.APPEND), *large, ("a" * 4001, Permission.ADMIN), ("*7", Permission.HUMAN))
    assert found.explain("first/" + "x" * 4000 + "7").index == 0
    assert found.explain("x" * 4000 + "7").index == 8
    assert found.explain("x" * 4000 + "15").index == 16
    assert found.explain("a" * 4001).index == 17
    assert found.explain("x7").index == 18
    assert found.explain("x8").index is None


def test_many_odd_paths_at_once_have_the_levels_of_each_alone() -> None:
    rows = (("a/*", Permission.NONE), ("ü/x.md", Permission.ADMIN), ("**/y/**", Permission.APPEND))
    odd = ["/a/x.md", "./a/x.md", "a//x.md", "a/./x.md", "a/../x.md", "a/", "a/.", "a/..", "", "x.md", "../a/x.md"]
    odd += ["ü/x.md", "\u00c3\u00bc/x.md", "y/x.md", "b/y/x.md", "yy/x.md", "b/y", "a/\udcff", "a/\ud800"]
    assert rules(*rows).levels(odd) == [rules(*rows).level(path) for path in odd]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("**/y/**", ("y/x", "a/y/x", "a/y/b/x"), ("y", "a/y", "yy/x", "a/yy/x", "a/by/x")),
        ("**/y/*.c", ("y/x.c", "a/y/x.c"), ("y/x.d", "yy/x.c", "a/by/x.c", "x.c")),
        ("y/**/*.c", ("y/x.c", "y/a/b/x.c"), ("a/y/x.c", "yy/x.c", "y.c")),
        ("y/z/**/x", ("y/z/x", "y/z/a/x"), ("y/x", "y/zz/x", "a/y/z/x")),
        ("a?/**/*.c", ("ab/x.c", "ab/d/x.c"), ("a/x.c", "abc/x.c")),
        ("**/y/z/**", ("y/z/x", "a/y/z/x"), ("y/x", "z/x", "by/z/x", "y/zz/x")),
        ("y/**x", ("y/x", "y/ax"), ("y/a/x", "y/ab/x")),
        ("**x", ("x", "y/ax"), ("xa", "y/xa")),
        ("y/**\\/x", ("y/a/x", "y/a/b/x"), ("y/x", "y/a")),
        ("y/**/z/**", ("y/z/x", "y/a/z/x"), ("z/x", "y/zz/x", "a/y/z/x")),
    ],
)
def test_folder_parts_of_a_pattern_are_compared_as_whole_names(
    pattern: str, matching: tuple[str, ...], other: tuple[str, ...]
) -> None:
    found = rules((pattern, Permission.NONE))
    assert [found.level(path) for path in matching] == [Permission.NONE] * len(matching)
    assert [found.level(path) for path in other] == [Permission.READ_ONLY] * len(other)


@pytest.mark.parametrize("part", ["?", "[!a]"])
def test_memory_for_patterns_of_many_wildcards_stays_near_their_length(part: str) -> None:
    rules = [PermissionRule(part * 250 + str(at), Permission.NONE) for at in range(100)]
    tracemalloc.start()
    try:
        level = PermissionRules(rules, Permission.ADMIN).level("b" * 250 + "99")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert level is Permission.NONE
    assert peak < 20_000_000
