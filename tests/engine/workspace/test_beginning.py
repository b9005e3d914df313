"""A new workspace: what its policy lets an agent do, and what of the folder looks like a secret."""

from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused, WorkspaceError
from gatewright.policy.permission import Permission
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from gatewright.workspace.beginning import Beginning, begin_workspace, find_secrets


def test_agent_of_a_new_workspace_reaches_neither_secrets_nor_the_policy(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("a note\n")
    (tmp_path / ".env").write_text("TOKEN=1\n")
    path = begin_workspace(tmp_path, Beginning("helper", Permission.READ_WRITE, tuple(find_secrets(tmp_path))))
    path.write_text(path.read_text().replace("tools = []", 'tools = ["file"]'))
    with Workspace.open(path) as workspace:
        verdicts = {
            name: workspace.decide("helper", "file", {"op": "read", "path": name}).verdict
            for name in ("notes.md", ".env", "policy.toml")
        }

    assert verdicts == {"notes.md": Verdict.ALLOW, ".env": Verdict.DENY, "policy.toml": Verdict.DENY}


def test_new_agent_sees_nothing_before_it_is_ticked(tmp_path: Path) -> None:
    path = begin_workspace(tmp_path / "new", Beginning("helper", Permission.READ_ONLY))
    with Workspace.open(path) as workspace:
        assert workspace.view("helper").tools("mcp") == []
        assert not workspace.problems


def test_secrets_are_found_by_name_below_the_folder_and_folders_of_secrets_count_once(tmp_path: Path) -> None:
    for name in (".git/config", ".git/HEAD", "deep/in/.env.local", "deep/server.pem", "a/id_rsa", "plain.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)

    assert find_secrets(tmp_path) == {".git/": 1, ".env*": 1, "id_rsa*": 1, "*.pem": 1}


def test_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="cannot make"):
        begin_workspace(tmp_path / "file" / "new", Beginning("helper"))


def test_nothing_is_overwritten_and_nothing_made_for_a_bad_name(tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match="no agent id"):
        begin_workspace(tmp_path / "new", Beginning("two words"))
    assert not (tmp_path / "new").exists()
    path = begin_workspace(tmp_path, Beginning("helper"))
    before = path.read_bytes()
    with pytest.raises(WorkspaceError, match="exists already"):
        begin_workspace(tmp_path, Beginning("other"))
    assert path.read_bytes() == before
