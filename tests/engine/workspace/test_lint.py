"""Warnings of a policy that loads: edits that never reach the disk, permission rules that decide nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gatewright.policy.document import PermissionRule
from gatewright.policy.rights import tick_operations
from gatewright.policy.sourceedit import add_rule
from gatewright.policy.verdict import Permission
from gatewright.workspace import Workspace
from gatewright.workspace.lint import MAX_RULES

SOURCE = """
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""


def limited(agent: str, *operations: str) -> str:
    names = ", ".join(f'"{name}"' for name in operations)
    rule = f'[[agents.{agent}.tool_rules]]\ntool_name = "file"\nrule_type = {{ AllowedOperations = [{names}] }}\n'
    return f'[agents.{agent}]\ntools = ["file"]\n{rule}'


def opened(tmp_path: Path, text: str) -> Workspace:
    folder = tmp_path / "ws"
    (folder / "docs").mkdir(parents=True)
    (folder / "policy.toml").write_text(f"gatewright = 1\n{text}")
    return Workspace.open(folder, keys=tmp_path / "keys")


def found(workspace: Workspace, code: str) -> list[tuple[str, int]]:
    return [
        (problem.message, problem.place.line if problem.place else 0)
        for problem in workspace.current_problems()
        if problem.code == code
    ]


def test_edits_without_save_are_told_at_the_rule_that_hides_it(tmp_path: Path) -> None:
    with closing(opened(tmp_path, limited("a", "append", "read", "replace") + SOURCE)) as workspace:
        (told,) = found(workspace, "edits-never-saved")
        assert told == (
            "agent `a` may `append` and `replace` with `file` but not `save`: nothing of it reaches the disk",
            6,
        )
        assert [problem.code for problem in workspace.problems] == ["edits-never-saved"]


@pytest.mark.parametrize(
    "operations", [("append", "save"), ("create", "delete"), ("read", "save"), ("read", "load", "list")]
)
def test_agent_whose_edits_reach_the_disk_or_who_has_none_is_left_alone(
    tmp_path: Path, operations: tuple[str, ...]
) -> None:
    with closing(opened(tmp_path, limited("a", *operations) + SOURCE)) as workspace:
        assert workspace.problems == ()


def test_save_hidden_by_a_policy_rule_is_told_there(tmp_path: Path) -> None:
    first = '\n[[policy.rules]]\nname = "one"\neffect = "deny"\ntools = ["file"]\noperations = ["delete"]\n'
    more = '[[policy.rules]]\nname = "two"\neffect = "deny"\ntools = ["file"]\noperations = ["save"]\n'
    with closing(opened(tmp_path, '[agents.a]\ntools = ["file"]\n' + SOURCE + first + more)) as workspace:
        ((_, line),) = found(workspace, "edits-never-saved")
        lines = ("gatewright = 1\n" + '[agents.a]\ntools = ["file"]\n' + SOURCE + first + more).split("\n")
        assert "[[policy.rules]]" in lines[line - 1]
        assert lines[line] == 'name = "two"'


def test_another_agent_that_saves_the_same_files_is_named(tmp_path: Path) -> None:
    text = limited("a", "append") + limited("b", "save") + limited("c", "save") + SOURCE
    with closing(opened(tmp_path, text.replace("[agents.b]\n", "[agents.b]\nsources = []\n"))) as workspace:
        ((message, _),) = found(workspace, "edits-never-saved")
        assert message.endswith("nothing of it reaches the disk unless agent `c` saves it")


def test_place_where_nothing_can_be_edited_has_nothing_to_save(tmp_path: Path) -> None:
    text = limited("a", "append", "read") + SOURCE.replace("read_write", "read_only")
    with closing(opened(tmp_path, text)) as workspace:
        assert found(workspace, "edits-never-saved") == []


def test_edit_that_takes_save_away_shows_at_once(tmp_path: Path) -> None:
    with closing(opened(tmp_path, limited("a", "append", "save") + SOURCE)) as workspace:
        assert found(workspace, "edits-never-saved") == []
        workspace.apply(tick_operations(workspace.policy, workspace.catalog, "a", "file", ["save"], on=False))
        assert len(found(workspace, "edits-never-saved")) == 1


RULES = """permission_rules = [
  { pattern = "drafts/", permission = "read_only" },
  { pattern = "*.log", permission = "append" },
  { pattern = "drafts/final/**", permission = "read_write" },
  { pattern = "drafts/old/", permission = "read_only" },
  { pattern = "notes/**", permission = "append" },
]
"""


def test_rule_that_decides_nothing_is_told_with_the_one_above_it(tmp_path: Path) -> None:
    with closing(opened(tmp_path, '[agents.a]\ntools = ["file"]\n' + SOURCE + RULES)) as workspace:
        above = "rule 1 `drafts/` above it matches all that it matches"
        assert found(workspace, "rule-shadowed") == [
            (f"rule 3 `drafts/final/**` of source `docs` can never decide: {above}", 13),
            (f"rule 4 `drafts/old/` of source `docs` can never decide: {above}, with the same level", 14),
        ]
        assert [p.code for p in workspace.problems] == ["rule-shadowed"] * 2
        addresses = [p.subject.address for p in workspace.problems if p.subject is not None]
        assert addresses == [("sources", "docs", "permission_rules", 2), ("sources", "docs", "permission_rules", 3)]
        workspace.apply(add_rule(workspace.policy, "docs", PermissionRule("**", Permission.NONE), 0))
        assert len(found(workspace, "rule-shadowed")) == 5


def test_long_list_of_rules_is_opened_without_looking_for_shadows(tmp_path: Path) -> None:
    rows = "".join('  { pattern = "a/", permission = "append" },\n' for _ in range(MAX_RULES + 1))
    text = '[agents.a]\ntools = ["file"]\n' + SOURCE + f"permission_rules = [\n{rows}]\n"
    with closing(opened(tmp_path, text)) as workspace:
        assert workspace.problems == ()
