"""The word for a right against what the gate decides: cells drawn of real and made-up workspaces, calls drawn for each.

A word is wrong that is stronger than what calls come to. Calls that fit no schema, and refusals of what is not there,
say nothing about a right and are left out.
"""

import random
from pathlib import Path

import pytest

from gatewright.policy.right import RightWord
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.support.right_cells import cells_of, drawn_call, is_of_policy, made_workspaces

CELLS, CALLS = 850, 20


@pytest.fixture
def workspaces(tmp_path: Path) -> list[Workspace]:
    """The demo, and four made-up ones."""
    return made_workspaces(tmp_path)


def test_no_word_of_a_right_is_stronger_than_what_its_calls_come_to(workspaces: list[Workspace]) -> None:
    draw = random.Random(28)
    cells = cells_of(workspaces)
    wrong: list[str] = []
    counted: dict[RightWord, int] = {}
    happened: dict[RightWord, set[Verdict]] = {}
    for cell in draw.choices(cells, k=CELLS):
        word = cell.right.word
        for number in range(CALLS):
            plain = number % 2 == 0 and word is RightWord.BUT_PATHS
            arguments = drawn_call(cell, cell.words if plain else (*cell.words, *cell.paths), draw)
            if arguments is None:
                break
            found = cell.workspace.decide(cell.agent_id, cell.tool.facts.name, arguments)
            if word is not RightWord.OFF and not is_of_policy(found):
                continue
            counted[word] = counted.get(word, 0) + 1
            happened.setdefault(word, set()).add(found.verdict)
            must = {RightWord.OFF: Verdict.DENY, RightWord.ALLOW: Verdict.ALLOW}.get(word)
            must = Verdict.ALLOW if plain else must
            if (must is not None and found.verdict is not must) or (
                word is RightWord.ASK and found.verdict is Verdict.ALLOW
            ):
                called = f"{cell.tool.facts.name}.{cell.facts.name} of {cell.agent_id}: {word}"
                wrong.append(f"{called}: {arguments} {found.verdict} {found.code} {found.reason[:90]}")
    assert wrong == []
    assert all(counted.get(word, 0) > 100 for word in RightWord if word is not RightWord.BY_VALUE), counted
    assert all(len(happened[word]) > 1 for word in (RightWord.BY_PATH, RightWord.BY_BLOCK, RightWord.BUT_PATHS))


def test_only_a_tool_with_paths_goes_by_the_path(workspaces: list[Workspace]) -> None:
    """Not the tools that take texts: these are allowed but for paths, or plainly where their texts are declared."""
    for cell in cells_of(workspaces):
        facts = cell.facts
        touches = cell.tool.facts.needs_source or any(one.counts for one in facts.paths) or facts.disk_actions
        if cell.right.word is RightWord.BY_PATH:
            assert touches, cell.tool.facts.name
        if cell.tool.facts.origin == "built-in":
            assert cell.right.word is not RightWord.BUT_PATHS, cell.tool.facts.name
