"""A new workspace: what its policy lets an agent do, and that its secrets stay hidden, whenever they come."""

import json
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import EditRefused, WorkspaceError
from gatewright.policy.verdict import Permission, Verdict
from gatewright.workspace import Workspace
from gatewright.workspace.migration import migrate
from gatewright.workspace.template import SECRETS, Beginning, begin_workspace, create_workspace


def test_agent_of_a_new_workspace_reaches_neither_secrets_nor_the_policy(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("a note\n")
    (tmp_path / ".env").write_text("TOKEN=1\n")
    path = begin_workspace(tmp_path, Beginning("helper", Permission.READ_WRITE))
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


def of_new(folder: Path) -> Path:
    return begin_workspace(folder, Beginning("helper", Permission.READ_WRITE))


def of_settings(folder: Path) -> Path:
    (folder / ".claude").mkdir(parents=True)
    file = folder / ".claude" / "settings.json"
    file.write_text(json.dumps({"permissions": {"allow": ["Read", "Edit(**)", "Read(.env)"], "deny": []}}))
    text, notes = migrate([file], agent_id="claude")
    assert any("looks like a secret" in note for note in notes)
    (folder / "policy.toml").write_text(text)
    return folder / "policy.toml"


def of_example(folder: Path) -> Path:
    return create_workspace(folder, "coding-agent")


WAYS: list[Callable[[Path], Path]] = [of_new, of_settings, of_example]
letters = st.text(string.ascii_letters + string.digits + "._-", max_size=8)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60)
@given(st.data())
def test_a_secret_that_comes_later_is_hidden_too(
    tmp_path_factory: pytest.TempPathFactory, way: Callable[[Path], Path], data: st.DataObject
) -> None:
    pattern = data.draw(st.sampled_from(SECRETS))
    name = "".join(data.draw(letters) if part == "*" else part for part in pattern)
    folders = data.draw(st.lists(st.sampled_from(["src", "deep", "test"]), max_size=3))
    path = "/".join([*folders, name + (data.draw(st.sampled_from(["config", "a/b"])) if name.endswith("/") else "")])
    with Workspace.open(way(tmp_path_factory.mktemp("new") / "mine")) as workspace:
        (source,) = workspace.policy.sources
        place = Path(workspace.root_folders()["shared"].path) if source.base_path == "project" else workspace.folder
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("made after the workspace was")
        (row,) = workspace.explain_paths(source.source_id, [path])

    assert row.permission is Permission.NONE, path


def test_who_wants_no_rules_of_secrets_gets_none(tmp_path: Path) -> None:
    path = begin_workspace(tmp_path, Beginning("helper", Permission.READ_ONLY, hides_secrets=False))
    with Workspace.open(path) as workspace:
        assert workspace.policy.sources[0].permission_rules == ()


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
