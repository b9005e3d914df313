"""Rules that can decide nothing, and those that still can."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules
from gatewright.policy.shadow import Shadow, find_shadows
from gatewright.policy.verdict import Permission
from tests.bench.globs import _PATTERNS  # pyright: ignore[reportPrivateUsage]
from tests.engine.glob.test_git_oracle import PATHS, PATTERNS
from tests.support.patience import in_time


def rules(*patterns: str) -> PermissionRules:
    return PermissionRules([PermissionRule(pattern, Permission.NONE) for pattern in patterns])


def hidden(*patterns: str) -> list[tuple[int, tuple[int, ...]]]:
    return [(one.index, one.by) for one in find_shadows(rules(*patterns).rules)]


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("*", "*.md"),
        ("docs/", "docs/**"),
        ("docs/", "/docs/drafts/*.md"),
        ("docs/**", "docs/a/**"),
        ("**/x/**", "a/x/*.c"),
        ("*.md", "/readme.md"),
        ("*.md", "notes/**/*.md"),
        ("[a-f]*", "[bc]x?"),
        ("a", "a/"),
        ("**/a", "a"),
        ("a", "**/a"),
        ("a*", "a?b"),
    ],
)
def test_a_rule_below_one_that_matches_all_of_it_is_found(above: str, below: str) -> None:
    assert hidden(above, below) == [(1, (0,))]


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("*.md", "*"),
        ("docs/**", "docs/"),  # the folder itself
        ("docs", "docs*"),
        ("/a", "a"),
        ("a/", "a"),  # a file of that name
        ("a/*/c", "a/**/c"),
        ("[a-f]*", "[a-g]*"),
        ("?", "??"),
        ("é", "è"),
    ],
)
@pytest.mark.parametrize("samples", [0, 48])
def test_a_rule_that_can_decide_a_path_is_not_reported(
    above: str, below: str, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.policy.shadow._SAMPLES", samples)  # none: it has to be proven
    assert hidden(above, below) == []


def test_rules_that_hide_one_only_together_are_all_named() -> None:
    assert hidden("zz", "[!a-m]*", "[a-m]*", "x.md") == [(3, (1,))]
    assert hidden("[!a-m]*", "zz9", "[a-m]*", "*.md") == [(1, (0,)), (3, (0, 2))]


@pytest.mark.parametrize("samples", [0, 48])
def test_folders_between_and_at_the_beginning_are_any_number_of_whole_ones(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.policy.shadow._SAMPLES", samples)
    assert hidden("/a/c", "a/*/c", "a/**/c") == []
    assert hidden("/a", "/?*/**/a", "**/a") == [(2, (0, 1))]


def test_a_hidden_rule_of_the_same_level_is_harmless() -> None:
    rows = [
        PermissionRule("*", Permission.NONE),
        PermissionRule("a", Permission.NONE),
        PermissionRule("b", Permission.ADMIN),
    ]
    assert find_shadows(rows) == (Shadow(1, (0,), harmless=True), Shadow(2, (0,), harmless=False))


@settings(max_examples=200, deadline=None)
@given(patterns=st.lists(PATTERNS, min_size=2, max_size=4))
def test_a_rule_that_is_reported_decides_none_of_many_paths(patterns: list[str]) -> None:
    try:
        made = rules(*patterns)
    except ValueError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewright.policy.shadow._SAMPLES", 0)
        assert not set(made.indexes(PATHS)) & {one.index for one in find_shadows(made.rules)}


@settings(max_examples=200, deadline=None)
@given(patterns=st.lists(PATTERNS, min_size=2, max_size=5))
def test_the_words_that_spare_a_proof_change_nothing_of_what_is_found(patterns: list[str]) -> None:
    try:
        made = rules(*patterns)
    except ValueError:
        return
    found = find_shadows(made.rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewright.policy.shadow._SAMPLES", 0)
        assert find_shadows(made.rules) == found


def test_pattern_of_more_parts_than_are_looked_at_is_not_reported() -> None:
    assert hidden("**/" * 299 + "a", "a") == [(1, (0,))]
    assert hidden("**/" * 300 + "a", "a") == []
    assert hidden("*", "/" + "a" * 300) == [(1, (0,))]
    assert hidden("*", "/" + "a" * 301) == []


def test_rules_that_decide_a_word_of_theirs_take_no_steps_of_the_proofs() -> None:
    others = ["**/x/**", "a?/", "[a-c]x", "b/", "*/c", "[!a]y", "é*", "a/**/b", "q[[:punct:]]", "[\x01]", "w/**"]
    made = rules(*_PATTERNS, *others, "/zz", "/zz")

    assert [(one.index, one.by) for one in find_shadows(made.rules, max_steps=7480)] == [(42, (41,))]
    assert find_shadows(made.rules, max_steps=7479) == ()


def test_thirty_rules_and_hard_ones_take_little_time() -> None:
    began = time.process_time()
    assert find_shadows(rules(*_PATTERNS).rules) == ()
    hard = [f"**/*a{'?' * number}" for number in range(20)]
    assert len(find_shadows(rules(*hard, *hard).rules)) == 14
    assert in_time(time.process_time() - began, 60)
