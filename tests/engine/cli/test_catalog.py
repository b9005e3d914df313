"""MCP servers on the command line: taken out of a client's configuration, and put behind the gateway there."""

import io
import json
from pathlib import Path

import pytest

from gatewright.workspace import Workspace
from tests.engine.cli.conftest import Runner

POLICY = """\
gatewright = 1 # ours

[[catalogs]]
id = "git"
type = "mcp"
command = "git-server"

[agents.desk]
tools = []
"""
CONFIG = """\
{
  // mine
  "mcpServers": {
    "notes": { "command": "notes-server", "args": ["--root", "notes"], "env": { "NOTES_KEY": "very-secret" } },
    "Git": { "command": "hub-server" },
    "again": { "command": "git-server" },
    "off": { "command": "off-server", "disabled": true },
    "odd": { "args": [] }
  }
}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_servers_of_a_client_become_catalogs_of_the_policy(run: Runner, policy: Path, config: Path) -> None:
    status, out, _ = run("catalog", "import", policy, "--from", config)
    assert status == 1  # one of them makes no catalog
    assert out.splitlines() == [
        "notes: added as `notes`",
        "  the values of `NOTES_KEY` stay in the client's file: only the names are taken",
        "Git: added as `Git-2`",
        "again: not added: the policy has it already, as `git`",
        "off: not added: switched off in the client",
        "odd: not added: it has neither a `command` nor a `url`",
    ]
    text = policy.read_text(encoding="utf-8")
    assert text.startswith("gatewright = 1 # ours\n")
    assert "very-secret" not in text
    with Workspace.open(policy) as workspace:
        assert [catalog.catalog_id for catalog in workspace.policy.catalogs] == ["git", "notes", "Git-2"]
        assert workspace.policy.catalogs[1].env == ("NOTES_KEY",)
        assert not workspace.trusts_server("notes")


def test_only_the_servers_that_are_named_are_added(
    run: Runner, policy: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(config.read_bytes())))
    status, out, _ = run("catalog", "import", policy, "--from", "-", "--only", "off", "--json")
    assert status == 0
    assert {row["server"]: row["catalog"] for row in json.loads(out)} == {
        "notes": None,
        "Git": None,
        "again": None,
        "off": "off",
        "odd": None,
    }
    status, _, err = run("catalog", "import", policy, "--from", config, "--only", "note")
    assert (status, "no server `note` there (did you mean `notes`?)" in err) == (2, True)


def test_bad_configuration_leaves_the_policy_as_it_is(run: Runner, policy: Path, config: Path) -> None:
    config.write_text('{"mcpServers": {"a": }', encoding="utf-8")
    status, _, err = run("catalog", "import", policy, "--from", config)
    assert (status, "it is not JSON: expected value at line 1 column 22" in err) == (2, True)
    assert policy.read_text(encoding="utf-8") == POLICY


def test_gateway_takes_the_place_of_the_policys_servers_in_a_client(run: Runner, policy: Path, config: Path) -> None:
    run("catalog", "import", policy, "--from", config)
    words = ("catalog", "client-config", "--client", "claude-desktop", "--agent", "desk", policy)
    status, out, err = run(*words, "--write", config)
    assert status == 0
    assert '+      "command": ' in out
    assert "very-secret" not in out + err
    assert "`off` is still reached directly: the policy has no such catalog" in err
    written = config.read_text(encoding="utf-8")
    assert "// mine" in written
    backup = config.with_name("mcp.json.before-gatewright")
    assert backup.read_text(encoding="utf-8") == CONFIG
    assert '"NOTES_KEY": "very-secret"' in written

    again, out, _ = run(*words, "--write", config, "--json")
    told = json.loads(out)
    assert (again, told["written"], told["difference"], told["backup"]) == (0, False, "", None)
    assert config.read_text(encoding="utf-8") == written


def test_without_a_file_to_write_nothing_changes(
    run: Runner, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    status, out, _ = run("catalog", "client-config", "--client", "cursor", "--agent", "desk", policy, "--json")
    told = json.loads(out)
    assert status == 0
    assert told["entry"]["args"][-4:] == ["serve", str(policy), "--agent", "desk"]
    assert told["file"] == str(tmp_path / "home" / ".cursor" / "mcp.json")
    assert not (tmp_path / "home").exists()
    status, _, err = run("catalog", "client-config", "--client", "emacs", "--agent", "desk", policy)
    assert (status, "no client `emacs`" in err) == (2, True)
