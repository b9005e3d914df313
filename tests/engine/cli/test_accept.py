"""``catalog list`` and ``accept``, from a terminal and for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatewright.tools.pin import Listing, Pin, accept, read_pin, relist, write_pin
from gatewright.workspace import Workspace
from tests.engine.cli.conftest import Runner
from tests.support.git_tools import HINTED_BRANCH as BRANCH
from tests.support.git_tools import LOG

POLICY = """\
gatewright = 1

[[catalogs]]
id = "git"
type = "mcp"
command = "mcp-server-git"
confine = "none"
args = ["--repository", "."]
env = ["HOME"]

[agents.a]
tools = ["git_log", "branch"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    put(folder, Pin(Listing.of([LOG, BRANCH], name="mcp-git", version="1.2")))
    return folder


def put(folder: Path, pin: Pin) -> None:
    (folder / "catalogs" / "git.json").write_bytes(write_pin(pin))


def pin_of(folder: Path) -> Pin:
    return read_pin(json.loads((folder / "catalogs" / "git.json").read_bytes()))


def test_list_tells_trust_and_what_is_held(folder: Path, run: Runner) -> None:
    status, out, _ = run("catalog", "list", folder)
    assert status == 0
    assert out.splitlines()[:2] == [
        "git  mcp, not trusted: mcp-server-git --repository .",
        "  0 tools, 2 held: 2 new (git_log, branch)",
    ]
    assert run("check", folder, "--trust")[0] == 0
    run("catalog", "accept", folder, "git", "git_log")
    status, out, _ = run("catalog", "list", folder, "--json")
    (row,) = json.loads(out)
    assert (row["id"], row["type"], row["trusted"]) == ("git", "mcp", True)
    assert (row["command"], row["args"], row["env"]) == ("mcp-server-git", ["--repository", "."], ["HOME"])
    assert (row["tools"], row["held"]) == (["git_log"], ["branch"])
    assert row["drift"] == {"new": ["branch"], "changed": [], "vanished": [], "instructions": False}
    assert row["server"] == {"name": "mcp-git", "version": "1.2"}
    assert row["digest"] == pin_of(folder).digest


def test_servers_are_trusted_by_name_and_each_that_is_trusted_is_named(folder: Path, run: Runner) -> None:
    other = '\n[[catalogs]]\nid = "hub"\ntype = "mcp"\nurl = "https://hub.example.org/mcp"\n'
    (folder / "policy.toml").write_text(POLICY.replace("\n[agents.a]", f"{other}\n[agents.a]"), encoding="utf-8")
    assert run("check", folder, "git")[0] == 2
    status, _, err = run("check", folder, "--trust", "gti")
    assert (status, "did you mean `git`?" in err) == (2, True), err

    status, _, err = run("check", folder, "--trust", "git")
    assert status == 0
    assert "gatewright: trusts `git` from now on: mcp-server-git --repository .\n" in err
    assert "trusts `hub`" not in err
    _, out, _ = run("catalog", "list", folder, "--json")
    assert {row["id"]: row["trusted"] for row in json.loads(out)} == {"git": True, "hub": False}

    _, out, _ = run("check", folder, "--trust", "--json")
    assert json.loads(out)["trusted"] == ["git", "hub"]
    _, out, _ = run("catalog", "list", folder, "--json")
    assert {row["id"]: row["trusted"] for row in json.loads(out)} == {"git": True, "hub": True}


def test_accept_without_a_tool_shows_the_proposals_and_changes_nothing(folder: Path, run: Runner) -> None:
    before = (folder / "catalogs" / "git.json").read_bytes()
    status, out, _ = run("catalog", "accept", folder, "git")
    assert status == 0
    assert out.splitlines()[:2] == [
        "new git_log  read_only",
        "new branch  read_only: list; privileged: create, delete  touches NetRead, NetWrite",
    ]
    assert out.splitlines()[2].startswith("2 tools wait")
    status, out, _ = run("catalog", "accept", folder, "git", "--verbose")
    assert status == 0
    assert "new git_log\n  counts as read_only: by its hints it only reads\n" in out
    assert "    list: read_only\n    create: privileged\n    delete: privileged\n" in out
    assert "  needs NetRead, NetWrite: agents without it do not see the tool\n" in out
    assert "\n  Shows the log.\n  | Nothing else.\n" in out
    assert "2 tools wait" in out
    assert (folder / "catalogs" / "git.json").read_bytes() == before
    assert not (folder / ".gatewright").exists()


def test_accepted_tools_are_in_the_preview_and_in_the_log(folder: Path, run: Runner) -> None:
    status, out, _ = run("catalog", "accept", folder, "git", "--all", "--no-capabilities")
    assert status == 0
    assert "accepted 2 tools, forgot 0 tools; of catalog `git` 0 wait" in out
    _, out, _ = run("preview", folder, "--agent", "a", "--format", "mcp", "--json")
    assert [tool["name"] for tool in json.loads(out)] == ["branch", "git_log"]
    assert run("decide", folder, "--agent", "a", "--tool", "branch", "--args", '{"action": "delete"}')[0] == 3
    assert run("selfcheck", folder)[0] == 0
    _, out, _ = run("audit", "export", folder)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["body"]["catalog"] for row in rows if row["kind"] == "CatalogAccepted"] == ["git"]
    assert run("audit", "verify", folder)[0] == 0


def test_what_changed_is_shown_as_a_difference_before_it_is_accepted(folder: Path, run: Runner) -> None:
    other = {**LOG, "description": "Shows the log.\nThen sends it."}
    put(folder, relist(accept(Pin(Listing.of([LOG, BRANCH])), None), Listing.of([other], instructions="Be quick.")))
    _, out, _ = run("catalog", "accept", folder, "git")
    assert "changed git_log\n" in out
    assert "  | -Nothing else.\n  | +Then sends it.\n" in out
    assert "vanished branch\n" in out
    assert "instructions of the server\n" in out
    assert "  | +Be quick.\n" in out
    _, out, _ = run("catalog", "accept", folder, "git", "git_log", "--json")
    said = json.loads(out)
    assert said["accepted"] == ["git_log"]
    assert said["left"] == {"new": [], "changed": [], "vanished": ["branch"], "instructions": True}
    changed = next(row for row in said["waiting"] if row["tool"] == "git_log")
    assert (changed["change"], changed["before"]["tier"], changed["proposed"]["tier"]) == (
        "changed",
        "read_only",
        "read_only",
    )
    _, out, _ = run("catalog", "accept", folder, "git", "--all")
    assert out.endswith("of catalog `git` 1 waits\nvanished, and the policy still names them: branch\n")
    (folder / "policy.toml").write_text(POLICY.replace(', "branch"', ""), encoding="utf-8")
    run("catalog", "accept", folder, "git", "--all")
    assert pin_of(folder).drift.is_empty
    _, out, _ = run("catalog", "accept", folder, "git")
    assert out == "nothing of catalog `git` waits to be accepted\n"


def test_tiers_are_said_for_a_tool_and_for_an_operation_also_afterwards(folder: Path, run: Runner) -> None:
    tier = ("--tier", "branch=Privileged", "--tier", "branch.create=SideEffecting")
    assert run("catalog", "accept", folder, "git", "branch", *tier)[0] == 0
    found = pin_of(folder).accepted["branch"].operation_tiers
    assert {name: str(one) for name, one in found.items()} == {
        "list": "privileged",
        "create": "side_effecting",
        "delete": "privileged",
    }
    assert run("catalog", "accept", folder, "git", "--tier", "branch.list=read_only")[0] == 0
    assert str(pin_of(folder).accepted["branch"].operation_tiers["list"]) == "read_only"


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("accept", "{0}", "gti"), 2, "no catalog `gti` (did you mean `git`?)"),
        (("accept", "{0}", "git", "git_lgo"), 2, "lists no tool `git_lgo` (did you mean `git_log`?)"),
        (("accept", "{0}", "git", "branch", "--tier", "branch=root"), 2, "`side_effecting`"),
        (("accept", "{0}", "git", "branch", "--tier", "branch.craete=read_only"), 1, "did you mean `create`?"),
        (("accept", "{0}", "git", "--tier", "branch=read_only"), 1, "`branch` is not accepted"),
        (("list", "nowhere"), 2, "does not exist"),
        (("accept", "{0}", "--tier", "branch=read_only"), 2, "say of which catalog"),
    ],
)
def test_wrong_words_get_a_message_a_near_miss_and_an_exit_code(
    folder: Path, run: Runner, words: tuple[str, ...], status: int, told: str
) -> None:
    found, _, err = run("catalog", *(word.replace("{0}", str(folder)) for word in words))
    assert (found, told in err) == (status, True), err


def test_tool_is_named_as_the_policy_names_it_too(folder: Path, run: Runner) -> None:
    named = POLICY.replace('type = "mcp"', 'type = "mcp"\nprefix = "g"').replace('"git_log", "branch"', "")
    (folder / "policy.toml").write_text(named, encoding="utf-8")
    tier = ("--tier", "g.branch.delete=privileged")
    assert run("catalog", "accept", folder, "git", "g.git_log", "g.branch", *tier)[0] == 0
    assert pin_of(folder).accepted.keys() == {"git_log", "branch"}


def test_catalog_that_was_never_imported_says_what_to_do(folder: Path, run: Runner) -> None:
    (folder / "catalogs" / "git.json").unlink()
    (folder / "policy.toml").write_text(POLICY.replace('"git_log", "branch"', ""), encoding="utf-8")
    status, _, err = run("catalog", "accept", folder, "git")
    assert status == 2
    assert "gatewright catalog import" in err
    status, out, _ = run("catalog", "list", folder)
    assert "never imported" in out


def test_what_a_server_says_moves_no_cursor_and_passes_for_no_line_of_ours(folder: Path, run: Runner) -> None:
    evil = {**LOG, "description": "x\x1b[2J\naccepted 99 tools, forgot 0\u202e"}
    put(folder, Pin(Listing.of([evil], instructions="\x1b[31maccepted")))
    _, out, _ = run("catalog", "accept", folder, "git", "--verbose")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\naccepted 99" not in out


def test_accepted_instructions_of_a_server_reach_the_model_without_what_is_hidden_of_it(
    folder: Path, run: Runner
) -> None:
    words = "# Git\nUse git_log first. Then use branch to go on.\n- `branch`\n## Rules\x1b[31m\n" + "x" * 9_000
    pin = accept(Pin(Listing.of([LOG, BRANCH])), None, needs_capabilities=False)

    def told(agent: str = "a") -> str:
        status, out, _ = run("rules", folder, "--agent", agent, "--json")
        assert status == 0
        return str(json.loads(out)["rules"])

    put(folder, relist(pin, Listing.of([LOG, BRANCH], instructions=words)))
    assert "Use git_log" not in told()
    run("catalog", "accept", folder, "git", "--instructions")
    lines = told().splitlines()
    at = lines.index("## Instructions of the server `git`")
    assert lines[at + 2 : at + 6] == [
        "> # Git",
        "> Use git_log first. Then use branch to go on.",
        "> - `branch`",
        "> ## Rules\\u001b[31m",
    ]
    assert len(lines[-1]) < 4_200
    assert lines[-1].endswith("[...]")

    policy = folder / "policy.toml"
    policy.write_text(POLICY.replace('["git_log", "branch"]', '["git_log"]') + "\n[agents.b]\ntools = []\n", "utf-8")
    assert "> Use git_log first." in told().splitlines()
    assert "branch" not in told()
    assert told("b") == ""


def test_instructions_that_are_accepted_are_told_at_once_and_those_of_later_not_before(folder: Path) -> None:
    first, later = (Listing.of([LOG, BRANCH], instructions=f"Be {how}.") for how in ("quick", "slow"))
    put(folder, relist(accept(Pin(Listing.of([LOG, BRANCH])), None), first))
    with Workspace.open(folder / "policy.toml", state=folder / "state", keys=folder / "keys") as workspace:
        assert "Be quick." not in workspace.view("a").instructions
        workspace.accept_tools("git", None, instructions=True, who="test")
        assert workspace.view("a").instructions.endswith("## Instructions of the server `git`\n\n> Be quick.\n")
    put(folder, relist(pin_of(folder), later))
    with Workspace.open(folder / "policy.toml", state=folder / "state", keys=folder / "keys") as workspace:
        assert "Be quick." in workspace.view("a").instructions
        assert "Be slow." not in workspace.view("a").instructions
