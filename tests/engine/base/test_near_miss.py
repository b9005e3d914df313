"""A near miss is another spelling of the same name, never another name: over the tools of real servers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.base.errors import choice_hint, near_hint, near_miss
from gatewright.base.printable import VERBS

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def servers(corpora: Path) -> list[list[str]]:
    """The names of the tools of each server."""
    found: dict[str, set[str]] = {}
    for row in json.loads((corpora / "mcp_tools.json").read_text(encoding="utf-8")):
        found.setdefault(row["server"], set()).add(row["tool"]["name"])
    return [sorted(names) for names in found.values()]


def slips_of(name: str) -> Iterator[str]:
    """Every name with a letter left out, doubled, or in the place of the next, and some with one taken for another."""
    rng = random.Random(name)
    for at, letter in enumerate(name):
        yield name[:at] + name[at + 1 :]
        yield name[:at] + letter + name[at:]
        yield name[:at] + rng.choice(LETTERS) + name[at + 1 :]
        yield name[:at] + name[at : at + 2][::-1] + name[at + 2 :]


def verbs_of(name: str) -> frozenset[str]:
    return VERBS.intersection(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def test_a_name_with_one_slip_finds_the_right_one_among_the_tools_of_its_server(corpora: Path) -> None:
    right = wrong = 0
    for names in servers(corpora):
        for name in names:
            for slip in set(slips_of(name)) - set(names):
                near = near_miss(slip, names)
                right += near == name
                wrong += near != name
                # what the slip made another verb of, or as near to another tool, finds nothing, or the same verb
                assert near is None or verbs_of(near) <= verbs_of(slip) | verbs_of(name), (slip, name, near)
    assert right > 10_000
    assert wrong < 0.03 * right


def test_no_verb_is_taken_for_another(corpora: Path) -> None:
    tried = 0
    for names in servers(corpora):
        for name in names:
            verb = re.split(r"[_\-]|(?<=[a-z])(?=[A-Z])", name)[0]
            if verb not in VERBS:
                continue
            for other in sorted(VERBS - {verb, f"{verb}s", verb.removesuffix("s")}):
                wrong = other + name.removeprefix(verb)
                tried += 1
                assert near_miss(wrong, [name]) is None, (wrong, name)
    assert tried > 100_000


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("merge_pull_request", ("decline_pull_request",)),
        ("list_projects", ("stop_project",)),
        ("enable_user", ("disable_user",)),
        ("end_session", ("send_session",)),
        ("getUser", ("setUser",)),
        ("github_lock_issue", ("github_unlock_issue",)),
        ("json_et", ("json_get", "json_set")),
        ("a", ("b",)),
    ],
)
def test_another_name_is_not_offered(written: str, known: tuple[str, ...]) -> None:
    assert near_miss(written, known) is None
    assert near_hint(written, known) == ""


@pytest.mark.parametrize(
    ("written", "known", "near"),
    [
        ("merge_pul_request", ("decline_pull_request", "merge_pull_request"), "merge_pull_request"),
        ("merge_pull_request", ("gh.decline_pull_request", "gh.merge_pull_request"), "gh.merge_pull_request"),
        ("merge_pull_reqest", ("gh.decline_pull_request", "gh.merge_pull_request"), "gh.merge_pull_request"),
        ("gihub.merge_pull_request", ("github.merge_pull_request",), "github.merge_pull_request"),
        ("mergepullrequest", ("merge_pull_request",), "merge_pull_request"),
        ("merge-pull-requests", ("merge_pull_request",), "merge_pull_request"),
        ("mergePullRequest", ("merge_pull_request",), "merge_pull_request"),
        ("mergexpull_request", ("merge_pull_request",), "merge_pull_request"),
    ],
)
def test_another_spelling_is_offered_also_without_the_prefix_of_its_catalog(
    written: str, known: tuple[str, ...], near: str
) -> None:
    assert near_miss(written, known) == near


def test_a_name_that_several_servers_have_is_a_choice() -> None:
    known = ["a.merge_pull_request", "b.merge_pull_request", "merge_pull_requests"]
    assert near_miss("merge_pull_request", known) is None
    choice = ": 2 servers have it: choose one of `a.merge_pull_request`, `b.merge_pull_request`"
    assert choice_hint("merge_pull_request", known) == choice
    assert choice_hint("merge_pull_requests", known) == ""
    assert choice_hint("open", [f"{letter}.open" for letter in LETTERS]).endswith("`e.open` and 21 more")
