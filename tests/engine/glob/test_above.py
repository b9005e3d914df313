"""Below which folders a pattern may match: never fewer than it does, and for plain patterns no more."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from gatewright.policy.glob import above_regex, byte_text, literal_path, parse_git_pattern, path_regex

_PATTERNS = st.lists(
    st.sampled_from(["a", "b", "*", "**", "?", "/", "/", "[ab]", "[!a]", "\\a", ".", "é"]), min_size=1, max_size=9
).map("".join)
_PATHS = st.lists(st.text("ab.é", min_size=1, max_size=3), min_size=2, max_size=5)


def matches(regex: str, path: str) -> bool:
    return re.search(regex, byte_text(path), re.DOTALL) is not None


@given(_PATTERNS, _PATHS)
@example("a/**/b", ["a", "x", "y", "b"])
@example("ab**/c", ["abx", "y", "c"])
@example("/".join(["*"] * 150), ["a"] * 150)
def test_every_folder_above_a_match_may_hold_one(pattern: str, steps: list[str]) -> None:
    parts = parse_git_pattern(pattern)
    if not any(matches(path_regex(parts), "/".join(steps) + end) for end in ("", "/")):
        return
    for at in range(len(steps)):
        folder = "/".join(steps[:at])
        if not matches(path_regex(parts), f"{folder}/"):
            assert matches(above_regex(parts), folder)


@given(st.lists(st.text("ab.é", min_size=1, max_size=3), min_size=2, max_size=5))
def test_a_path_without_wildcards_is_looked_for_on_its_way_alone(steps: list[str]) -> None:
    path = "/".join(steps)
    parts = parse_git_pattern(path)
    assert literal_path(parts) == path
    above = ["/".join(steps[:at]) for at in range(len(steps))]
    assert all(matches(above_regex(parts), folder) for folder in above)
    assert not any(matches(above_regex(parts), folder) for folder in (path, f"{path}/a", "zz", f"{steps[0]}z/a"))


def test_what_is_no_path_has_no_literal_one() -> None:
    assert [literal_path(parse_git_pattern(one)) for one in ("a/*", "[ab]/c", "?", "a\\*b", "[a]/b")] == [
        *(None, None, None),
        "a*b",
        "a/b",
    ]
