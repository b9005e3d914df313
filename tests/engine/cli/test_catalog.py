"""MCP servers on the command line: taken out of a client's configuration, and put behind the gateway there."""

import io
import json
import sys
from pathlib import Path

import pytest

from gatewright.workspace import Workspace
from tests.engine.cli.conftest import Runner
from tests.support.checkout import ROOT

GOOD, BAD = (str(ROOT / "tests" / "support" / name) for name in ("good_server.py", "bad_server.py"))
POLICY = """\
gatewright = 1 # ours

[[catalogs]]
id = "git"
type = "mcp"
command = "git-server"
confine = "none"

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
    status, out, err = run("catalog", "import", policy, "--from", config)
    assert status == 1  # one of them makes no catalog
    assert f"nothing was started; `gatewright catalog import {policy} --from {config} --trust`" in err

    def digest(catalog_id: str) -> str:
        with Workspace.open(policy) as workspace:
            return workspace.server_digest(catalog_id)

    assert out.splitlines() == [
        "notes: added as `notes`",
        "  runs       notes-server --root notes",
        "  places     no place",
        "  variables  NOTES_KEY",
        f"  digest     {digest('notes')}",
        "  the values of `NOTES_KEY` stay in the client's file: the policy has only the names",
        "Git: added as `Git-2`",
        "  runs       hub-server",
        "  places     no place",
        f"  digest     {digest('Git-2')}",
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


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """A client's file with a server that is good, two that have a tool of one name, one that fails, one that is off."""
    servers = {
        "good": {"command": sys.executable, "args": [GOOD, "stdio"]},
        "raw": {"command": sys.executable, "args": [BAD, "plain"]},
        "asks": {"command": sys.executable, "args": [BAD, "asks"]},
        "gone": {"command": sys.executable, "args": [BAD, "exit-at-start", str(tmp_path / "never")]},
        "off": {"command": sys.executable, "args": [BAD, "plain", "off"], "disabled": True},
    }
    path = tmp_path / "five.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_all_servers_of_a_client_are_trusted_asked_and_accepted_in_one_step(
    run: Runner, policy: Path, five: Path
) -> None:
    status, out, err = run("catalog", "import", policy, "--from", five, "--trust", "--accept")
    assert status == 1  # one of them fails
    assert out.index(f"  runs       {sys.executable} {BAD} plain") < out.index("raw: raw 0 lists 1 tool")
    assert "gatewright: `gone`: " in err
    assert "cannot open the database" in err
    assert f"`gatewright catalog import {policy} --id gone` asks it again" in err
    states = {row["id"]: row for row in run("catalog", "list", policy, "--json").json}
    assert {name: (row["trusted"], len(row["tools"]), row["held"]) for name, row in states.items()} == {
        "git": (False, 0, []),
        "good": (True, 9, []),
        "raw": (True, 1, []),
        "asks": (True, 1, []),
        "gone": (True, 0, []),
    }
    assert (states["raw"]["tools"], states["asks"]["tools"]) == (["raw.one"], ["asks.one"])


def test_server_gets_the_values_of_its_variables_from_the_clients_file_and_no_file_of_ours_holds_them(
    run: Runner, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOD_KEY", raising=False)
    (tmp_path / "memory").mkdir()  # a name for what a server writes
    config, log = tmp_path / "one.json", tmp_path / "memory" / "log"
    words = [GOOD, "stdio", str(log), str(log.parent)]
    entry = {"command": sys.executable, "args": words, "env": {"GOOD_KEY": "very-secret"}}
    config.write_text(json.dumps({"mcpServers": {"good": entry}}), encoding="utf-8")
    status, out, err = run("catalog", "import", policy, "--from", config, "--trust", "--accept")
    assert (status, err) == (0, "")
    assert "good: good 1.2.3 lists 9 tools" in out
    assert "GOOD_KEY very-secret" in log.read_text(encoding="utf-8")
    config.unlink()
    log.unlink()
    held = [path for path in tmp_path.rglob("*") if path.is_file() and b"very-secret" in path.read_bytes()]
    assert (held, "very-secret" in out) == ([], False)


def test_servers_that_were_added_before_they_were_trusted_are_trusted_by_the_same_words(
    run: Runner, policy: Path, five: Path
) -> None:
    words = ("catalog", "import", policy, "--from", five, "--only", "raw", "--only", "asks")
    assert run(*words)[0] == 0
    rows = run(*words, "--trust", "--json").json
    assert [row["catalog"] for row in rows] == [None, "raw", "asks", None, None]
    (raw,) = (row for row in rows if row["server"] == "raw")
    assert (raw["added"], raw["runs"], raw["answer"]["held"]) == (False, f"{sys.executable} {BAD} plain", ["one"])
    assert (raw["env"], len(raw["digest"])) == ([], 64)

    status, out, _ = run("catalog", "accept", policy)
    assert status == 0
    assert out.count("1 tool waits: name what to accept") == 2
    assert [row["catalog"] for row in run("catalog", "accept", policy, "--all", "--json").json] == ["raw", "asks"]
    assert [row["held"] for row in run("catalog", "list", policy, "--json").json] == [[], [], []]


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
