"""A policy edited as text: what somebody typed becomes one edit and is kept letter by letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused, PolicyInvalid
from gatewright.policy.agentedit import add_agent, describe_agent
from gatewright.policy.edit import Edit, inverse
from gatewright.workspace import Workspace
from tests.engine.workspace.test_workspace import POLICY, on_disk, opened

TYPED = POLICY.replace("# Kept by hand.", "#  typed   by hand").replace(
    "[[sources]]", "# new here\n[agents.scribe]\ntools = []   # nothing\n\n[[sources]]"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ws/docs").mkdir(parents=True)
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    return opened(tmp_path / "ws")


def type_in(workspace: Workspace, text: str, over: str | None = None) -> Edit:
    """Type a text over the present one, or over one that was there earlier."""
    edit = workspace.with_text(*workspace.typed_edit("policy as text", over or workspace.text(), text))
    workspace.apply(edit)
    return edit


def test_what_is_typed_is_one_edit_that_keeps_every_letter_and_undo_brings_back_the_text_before(
    workspace: Workspace,
) -> None:
    edit = type_in(workspace, TYPED)
    assert workspace.text() == TYPED
    assert "scribe" in workspace.policy.agents

    workspace.save()
    assert on_disk(workspace.folder) == TYPED
    assert not workspace.is_dirty

    workspace.apply(inverse(edit))
    assert workspace.text() == POLICY
    assert workspace.is_dirty
    workspace.apply(edit)
    assert workspace.text() == TYPED
    assert not workspace.is_dirty


def test_typing_that_changes_comments_alone_is_an_edit_too(workspace: Workspace) -> None:
    typed = POLICY.replace("# files notes", "# files notes, and no more")
    edit = type_in(workspace, typed)
    assert workspace.is_dirty
    workspace.save()
    assert on_disk(workspace.folder) == typed
    workspace.apply(inverse(edit))
    workspace.save()
    assert on_disk(workspace.folder) == POLICY


def test_edits_before_and_after_typing_stand_in_the_typed_text_and_are_undone_one_by_one(workspace: Workspace) -> None:
    first = add_agent(workspace.policy, "first")
    workspace.apply(first)
    between = workspace.text()
    typed = type_in(workspace, between.replace("# Kept by hand.", "# typed"))
    last = describe_agent(workspace.policy, "archivist", "keeps notes")
    workspace.apply(last)

    text = workspace.text()
    assert text.startswith("# typed\n")
    assert 'description = "keeps notes"' in text
    assert "[agents.archivist]   # files notes" in text
    assert Workspace.of_image(workspace.image()).text() == text

    workspace.apply(inverse(last))
    workspace.apply(inverse(typed))
    assert workspace.text() == between
    workspace.apply(inverse(first))
    assert workspace.text() == POLICY
    assert not workspace.is_dirty


def test_typing_over_an_older_text_is_merged_with_what_was_edited_since(workspace: Workspace) -> None:
    workspace.apply(describe_agent(workspace.policy, "archivist", "keeps notes"))
    type_in(workspace, TYPED, over=POLICY)
    text = workspace.text()
    assert 'description = "keeps notes"' in text
    assert "# new here\n[agents.scribe]\ntools = []   # nothing\n" in text
    assert text.startswith("#  typed   by hand\n")


@pytest.mark.parametrize("theirs", ["# Kept by hand.", "[[sources]]"], ids=["the same line", "another line"])
def test_what_is_typed_stays_when_it_is_merged_with_what_another_program_wrote(
    workspace: Workspace, theirs: str
) -> None:
    type_in(workspace, POLICY.replace("# Kept by hand.", "# typed") + "\n[agents.scribe]\ntools = []\n")
    (workspace.folder / "policy.toml").write_text(POLICY.replace(theirs, f"# theirs\n{theirs}"), encoding="utf-8")

    edit, text = workspace.merge_edit()
    workspace.reload()
    workspace.apply(edit if text is None else workspace.with_text(edit, text))

    assert "# theirs\n" in workspace.text()
    assert ("# typed\n" in workspace.text()) is (theirs == "[[sources]]")
    assert "scribe" in workspace.policy.agents


def test_typing_that_changes_what_was_edited_since_is_refused_and_nothing_changes(workspace: Workspace) -> None:
    workspace.apply(describe_agent(workspace.policy, "archivist", "keeps notes"))
    before = workspace.text()
    with pytest.raises(EditRefused, match="agent `archivist`"):
        type_in(workspace, POLICY.replace('"read" , ', ""), over=POLICY)
    assert workspace.text() == before


def test_agents_and_sources_may_be_typed_in_another_order(workspace: Workspace) -> None:
    agent, source = POLICY.index("[agents.archivist]"), POLICY.index("[[sources]]")
    more = "[agents.b]\ntools = []\n\n[agents.a]\ntools = []\n\n"
    first = type_in(workspace, POLICY[:source] + more + POLICY[source:])
    typed = POLICY[:agent] + "[agents.a]\ntools = []\n\n[agents.b]\ntools = []\n\n" + POLICY[agent:]
    edit = type_in(workspace, typed)
    assert list(workspace.policy.agents) == ["a", "b", "archivist"]
    assert workspace.text() == typed
    workspace.apply(inverse(edit))
    assert list(workspace.policy.agents) == ["archivist", "b", "a"]
    workspace.apply(inverse(first))
    assert workspace.text() == POLICY


def test_errors_of_a_typed_text_are_told_with_line_and_column_and_it_is_no_edit(workspace: Workspace) -> None:
    typed = POLICY.replace('tools = ["file"]', 'tools = ["fil"]')
    (problem,) = workspace.problems_of(typed)
    assert problem.place is not None
    assert (problem.place.line, problem.place.column, problem.near_miss) == (5, 10, "file")
    with pytest.raises(PolicyInvalid):
        type_in(workspace, typed)
    (problem,) = workspace.problems_of(POLICY + "x = [\n")
    assert problem.place is not None
    assert problem.code == "syntax"
