"""Our matcher against a real ``git check-ignore``, pattern by pattern."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission
from tests.engine.glob.oracle import GitOracle

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NAMES = ["a", "b", "ab", "abc", ".a", "a.b", "b.txt", "é", "a]", "[a", "#a", "a b", "a ", "\\a", "*", "B", "!a", ":x"]
PIECES = [
    *["a", "b", "ab", ".", "*", "*", "**", "**/", "/", "/", "?", "[a-c]", "[!a]", "[^b]", "[]a]", "[a", "\\", "\\*"],
    *[" ", "\\ ", "é", "[[:alpha:]]", "[[:space:][:punct:]]", "#", "[a-]", "[\\]]", "[b-a]", "[[:foo:]]", "[[:al]"],
    *["[/a]", "***", "txt", "B", "]", "[é]", "-", "[a-\\b]", "\r", "\t", "[!/]", "[--0]"],
]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
DEEP = [f"{one}/{two}/{three}" for one in NAMES[:9] for two in NAMES[2:14] for three in NAMES[::5]]
FOLDERS = sorted({path.rsplit("/", depth)[0] + "/" for path in DEEP for depth in (1, 2)})
PATHS = [*FOLDERS, *DEEP, *(name for name in NAMES if f"{name}/" not in FOLDERS)]


@pytest.fixture(scope="module")
def git() -> Iterator[GitOracle]:
    with TemporaryDirectory() as folder:
        yield GitOracle(Path(folder))


def matched(pattern: str) -> set[str]:
    rules = PermissionRules([PermissionRule(pattern, Permission.NONE)], Permission.ADMIN)
    return {path for path in PATHS if rules.level(path) is Permission.NONE}


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(pattern=PATTERNS)
@example(pattern="a**/b")
@example(pattern="a/**/b.txt")
@example(pattern="\\/*")
@example(pattern="**/")
@example(pattern="a/*/")
@example(pattern="a b\\ ")
@example(pattern="[!a]?")
def test_each_pattern_matches_what_git_matches(git: GitOracle, pattern: str) -> None:
    if pattern.startswith("!") or check_pattern(pattern) is not None:
        return
    assert matched(pattern) == git.ignored(pattern, PATHS)


@pytest.mark.parametrize("pattern", ["", "  ", "#a", "/", "a[", "a[[:foo:]]", "a\\", "./a", "a//b", "../a"])
def test_git_matches_nothing_with_what_is_refused_as_useless(git: GitOracle, pattern: str) -> None:
    assert check_pattern(pattern) is not None
    assert git.ignored(pattern, PATHS) == set()


def test_with_several_rules_the_first_one_that_git_matches_decides(git: GitOracle) -> None:
    patterns = ["a/**/b.txt", "*.txt", "/ab/", "[!a]*", "abc", "**/é/*"]
    hits = [git.ignored(pattern, PATHS) for pattern in patterns]
    rules = PermissionRules([PermissionRule(pattern, Permission.NONE) for pattern in patterns])
    wanted = {path: next((i for i, hit in enumerate(hits) if path in hit), None) for path in PATHS}
    assert {path: rules.explain(path).index for path in PATHS} == wanted
    assert set(wanted.values()) >= {None, 0, 1, 2, 3, 4}
