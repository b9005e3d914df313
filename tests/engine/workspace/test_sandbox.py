"""A disposable copy: what happens in it stays in it; it reports, stops when asked, and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.policy.agentedit import add_agent
from gatewright.workspace import CopyCancelled, Status, Workspace
from gatewright.workspace import sandbox as sandboxes

POLICY = """\
gatewright = 1

[agents.archivist]
tools = ["file"]
sources = ["docs", "drafts"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[sources]]
id = "drafts"
type = "file"
base_path = "docs/drafts"
default_permission = "admin"
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    docs = tmp_path / "ws/docs"
    (docs / "drafts").mkdir(parents=True)
    (docs / "a.md").write_text("one\n", encoding="utf-8")
    (docs / "drafts/b.md").write_text("two\n", encoding="utf-8")
    (docs / "link.md").symlink_to("a.md")
    os.mkfifo(docs / "pipe")
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    return Workspace.open(tmp_path / "ws", state=docs / "state", keys=docs / "keys")


def left_in_temporary(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in (workspace.folder.parent / "temporary").iterdir())


async def test_what_is_done_in_the_copy_stays_in_it(workspace: Workspace) -> None:
    sandbox = workspace.sandbox()
    for arguments in ({"op": "delete", "path": "a.md"}, {"op": "create", "path": "new.md", "content": "x"}):
        outcome = await sandbox.workspace.call("archivist", "file", arguments)
        assert outcome.status is Status.ALLOWED
    assert (sandbox.folder / "docs/new.md").exists()
    assert not (workspace.folder / "docs/new.md").exists()
    assert (workspace.folder / "docs/a.md").read_text(encoding="utf-8") == "one\n"
    assert not (workspace.folder / "docs/state").exists()
    sandbox.close()
    assert left_in_temporary(workspace) == []


def test_the_copy_has_files_links_and_folders_and_no_pipes_state_or_keys(workspace: Workspace) -> None:
    for name in ("state", "keys"):
        (workspace.folder / "docs" / name).mkdir()
        (workspace.folder / "docs" / name / "secret").write_text("x", encoding="utf-8")
    sandbox = workspace.sandbox()
    found = {str(path.relative_to(sandbox.folder)) for path in sandbox.folder.rglob("*")}
    assert found == {"policy.toml", "docs", "docs/a.md", "docs/link.md", "docs/drafts", "docs/drafts/b.md"}
    assert (sandbox.folder / "docs/link.md").is_symlink()
    sandbox.close()


def test_progress_counts_each_file_once_although_bases_overlap(workspace: Workspace) -> None:
    told: list[tuple[int, int]] = []
    workspace.sandbox(progress=lambda files, size: told.append((files, size))).close()
    assert told == [(1, 4), (2, 8)]


def test_a_cancelled_copy_leaves_nothing(workspace: Workspace) -> None:
    told: list[int] = []
    with pytest.raises(CopyCancelled):
        workspace.sandbox(cancelled=lambda: bool(told), progress=lambda files, _: told.append(files))
    assert told == [1]
    assert left_in_temporary(workspace) == []


def test_a_workspace_that_is_too_large_is_refused_and_leaves_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "MAX_COPY_FILES", 1)
    with pytest.raises(WorkspaceError, match="too large"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []


def test_the_copy_has_the_policy_as_edited_now(workspace: Workspace) -> None:
    workspace.apply(add_agent(workspace.policy, "scribe"))
    sandbox = workspace.sandbox()
    assert "scribe" in sandbox.workspace.policy.agents
    assert "scribe" not in (workspace.folder / "policy.toml").read_text(encoding="utf-8")
    sandbox.close()


def test_a_policy_that_is_a_link_is_copied_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    text = 'gatewright = 1\n\n[[sources]]\nid = "all"\ntype = "file"\nbase_path = "."\n'
    (tmp_path / "real.toml").write_text(text, encoding="utf-8")
    (tmp_path / "ws/policy.toml").symlink_to(tmp_path / "real.toml")
    workspace = Workspace.open(tmp_path / "ws", keys=tmp_path / "keys")
    workspace.apply(add_agent(workspace.policy, "new"))
    sandbox = workspace.sandbox()

    assert "new" in sandbox.workspace.policy.agents
    assert (tmp_path / "real.toml").read_text(encoding="utf-8") == text
    sandbox.close()
    workspace.close()


def test_folders_without_end_are_refused_and_leave_nothing(workspace: Workspace) -> None:
    deep = workspace.folder / "docs"
    for _ in range(sandboxes.MAX_COPY_DEPTH + 1):
        deep /= "d"
    deep.mkdir(parents=True)
    with pytest.raises(WorkspaceError, match="nested too deeply"):
        workspace.sandbox()
    assert left_in_temporary(workspace) == []
