"""``hook install``, ``uninstall`` and ``status``, from a terminal and for scripts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.adapters.hosts import HOST_IDS, load_host
from gatewright.base.jsonvalue import JsonValue
from gatewright.cli.output import Exit
from gatewright.gate import key_folder
from gatewright.policy.verdict import Verdict
from gatewright.tools.context import ToolExecutionContext
from gatewright.workspace import Workspace
from gatewright.workspace.template import write_agent_policy
from gatewright.workspace.trust import host_places
from tests.engine.cli.conftest import Runner

POLICY = ".gatewright-policy/policy.toml"
LOCAL = ".claude/settings.local.json"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a few files, in which the command runs, and a home folder that nobody has used."""
    home = tmp_path / "home"
    shop = tmp_path / "shop"
    for name in ("src/a.py", ".env", ".git/config", ".git/hooks/pre-commit", "docs/notes.md"):
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text("text")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.chdir(shop)
    return shop


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_install_says_in_a_few_lines_what_it_does_and_changes_nothing_without_a_yes(shop: Path, run: Runner) -> None:
    before = tree(shop)
    status, out, err = run("hook", "install", "claude-code")
    assert status == Exit.ASK_UNANSWERED
    assert len(out.splitlines()) == 6
    for said in (
        f"as agent `claude` of {shop / POLICY}",
        "ask first: `WebFetch`",
        f"reads and edits {shop}; closed: `.ssh/`, `.aws/`, `.env*`",
        "run confined, if they begin with `basename`",
        "never: `dd`, `rm`",
        f"makes {shop / POLICY}",
        f"makes {shop / LOCAL} (137 new lines; `--diff` shows them)",
    ):
        assert said in out
    assert "--yes" in err
    status, out, _ = run("hook", "install", "claude-code", "--diff")
    assert (status, '+            "onFailure": "block"' in out) == (Exit.ASK_UNANSWERED, True)
    assert tree(shop) == before


def answered(*words: str, answers: str) -> str:
    """The output of the command on a terminal where somebody types these answers."""
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    with os.fdopen(ours), os.fdopen(theirs) as terminal:
        done = subprocess.run(
            [sys.executable, "-m", "gatewright", *words], stdin=terminal, capture_output=True, text=True, check=False
        )
    assert done.returncode == Exit.OK, done
    return done.stdout


def test_the_whole_difference_is_shown_at_the_question_and_an_untrusted_project_has_a_way_out(shop: Path) -> None:
    out = answered("hook", "install", "codex", answers="y\nd\ny\n")
    assert "+[[hooks.PreToolUse]]" in out
    assert not (shop / ".codex").exists()
    assert (shop.parent / "home" / ".codex" / "config.toml").is_file()
    assert (shop.parent / "home" / ".config" / "gatewright" / "coding-agents" / "policy.toml").is_file()


def test_the_words_of_a_policy_of_ones_own_are_those_of_its_agent(shop: Path, run: Runner) -> None:
    policy = shop.parent / "policy.toml"
    policy.write_text("gatewright = 1\n")
    assert run("catalog", "import", policy, "--host", "claude-code")[0] == Exit.OK
    with policy.open("a") as file:
        file.write(
            '[agents.coder]\ntools = ["claude.Read"]\nsources = ["docs"]\n'
            '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "shop/docs"\ndefault_permission = "read_only"\n'
            '[[sources]]\nid = "src"\ntype = "file"\nbase_path = "shop/src"\n'
        )
    _, out, _ = run("hook", "install", "claude-code", "--policy", policy)
    assert "tools     1 of its tools is on; all others are denied" in out
    assert f"files     reads {shop / 'docs'}\n" in out
    assert "commands" not in out
    assert "src" not in out


def test_uninstall_says_what_it_removes(shop: Path, run: Runner) -> None:
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    status, out, _ = run("hook", "uninstall", "claude-code")
    assert (status, out) == (Exit.ASK_UNANSWERED, f"removes {shop / LOCAL} (137 old lines; `--diff` shows them)\n")


def test_an_entry_of_an_earlier_version_in_the_shared_settings_is_seen_replaced_and_taken_out(
    shop: Path, run: Runner
) -> None:
    """It stays in its file until it is taken out; the next one goes into the settings of this machine."""
    shared = shop / ".claude" / "settings.json"
    shared.parent.mkdir()
    shared.write_text('{"model": "opus"}\n')
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    shared.write_text((shop / LOCAL).read_text())
    assert run("hook", "uninstall", "claude-code", "--yes")[0] == Exit.OK
    assert not (shop / LOCAL).exists()
    _, out, _ = run("hook", "status", "claude-code")
    assert f"gate in {shared}" in out
    _, out, _ = run("hook", "install", "claude-code", "--yes")
    assert f"asks the gate before each call: {shared}" in out
    assert {shared, shop / LOCAL} <= set(host_places(key_folder()))
    assert run("hook", "uninstall", "claude-code", "--yes")[0] == Exit.OK
    assert not shared.exists() or "hook_client" not in shared.read_text()
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    assert (shop / LOCAL).exists()


def test_from_nothing_to_a_gate_and_back(shop: Path, run: Runner) -> None:
    """The policy that it made stays, and no other trace."""
    before = tree(shop)
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    entry = json.loads((shop / LOCAL).read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    assert entry["args"][3:8] == ["claude-code", "--policy", str(shop / POLICY), "--agent", "claude"]
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    _, out, _ = run("hook", "status", "--json")
    found = next(one for one in json.loads(out) if one["host"] == "claude-code")
    assert (found["hook"]["policy"], found["hook"]["calls_today"]) == (str(shop / POLICY), 0)
    assert run("hook", "uninstall", "claude-code", "--yes")[0] == Exit.OK
    assert {name: held for name, held in tree(shop).items() if not name.startswith(".gatewright-policy/")} == before
    assert run("hook", "uninstall", "claude-code", "--yes")[0] == Exit.OK


@pytest.fixture
def begun(shop: Path, run: Runner) -> Iterator[Workspace]:
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    with Workspace.open(shop / POLICY) as workspace:
        yield workspace


ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@pytest.mark.parametrize(
    ("tool", "arguments", "verdict"),
    [
        ("Bash", {"command": "rm -rf src"}, DENY),
        ("Bash", {"command": "ls && rm -rf /"}, DENY),
        ("Bash", {"command": "sudo ls"}, DENY),
        ("Bash", {"command": "git status && ls src"}, ALLOW),
        ("Bash", {"command": "git push origin main"}, ASK),
        ("Bash", {"command": "curl https://example.org"}, ASK),
        ("Bash", {"command": "timeout 5 rm -rf src"}, DENY),
        ("Bash", {"command": "find . | xargs rm"}, DENY),
        ("Bash", {"command": "nmap localhost"}, DENY),
        ("Bash", {"command": "cat .env"}, DENY),
        ("Bash", {"command": "echo x > .claude/settings.json"}, DENY),
        ("Read", {"file_path": "src/a.py"}, ALLOW),
        ("Read", {"file_path": ".env"}, DENY),
        ("Read", {"file_path": "/etc/passwd"}, DENY),
        ("Write", {"file_path": "src/new.py", "content": "x"}, ALLOW),
        ("Edit", {"file_path": "src/a.py", "old_string": "text", "new_string": "x"}, ALLOW),
        ("Write", {"file_path": ".git/hooks/pre-commit", "content": "x"}, DENY),
        ("Write", {"file_path": ".git/config", "content": "x"}, DENY),
        ("Write", {"file_path": ".claude/settings.json", "content": "{}"}, DENY),
        ("Write", {"file_path": ".claude/settings.local.json", "content": "{}"}, DENY),
        ("Write", {"file_path": ".gatewright-policy/policy.toml", "content": ""}, DENY),
        ("WebFetch", {"url": "https://example.org/a", "prompt": "x"}, ASK),
        ("Grep", {"pattern": "x", "path": "src"}, ALLOW),
        ("TodoWrite", {"todos": []}, ALLOW),
        ("RemoteTrigger", {"action": "list"}, DENY),
        ("NewTool", {}, DENY),
    ],
)
def test_the_policy_that_it_makes_lets_an_agent_work_in_the_project_and_nothing_else(
    shop: Path, begun: Workspace, tool: str, arguments: dict[str, JsonValue], verdict: Verdict
) -> None:
    context = ToolExecutionContext("claude", "any", folder=str(shop))
    assert begun.gate.decide("claude", f"claude.{tool}", arguments, context=context).verdict is verdict


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "nmap localhost",
            "`nmap` is not among the programs of `[workspace] shell`; to let it start, add it to `allow` there",
        ),
        ("$TOOL x", "`$TOOL` names a program and is not written out"),
        ("cat $PLACE/x", "PLACE}/x`, an argument of `cat`, is known only when the command runs"),
        ("echo a > $OUT", "`$OUT`, the target of a redirect, is not written out"),
        ("ls ${a//x/y}", "what `${a//x/y}` would be is known only when the command runs"),
    ],
)
def test_the_reason_for_the_operator_names_the_word_of_a_refused_command(
    shop: Path, begun: Workspace, command: str, said: str
) -> None:
    context = ToolExecutionContext("claude", "any", folder=str(shop))
    arguments: dict[str, JsonValue] = {"command": command}
    assert said in begun.gate.decide("claude", "claude.Bash", arguments, context=context).reason


def test_the_policy_that_it_makes_says_the_same_everywhere(begun: Workspace) -> None:
    assert not begun.problems
    assert not begun.selfcheck().differences


def test_every_agent_of_a_project_gets_its_own_rights_in_one_policy(shop: Path, run: Runner) -> None:
    """The first makes the policy, each other adds to it what is its own; none may delete by a command."""
    for host_id in HOST_IDS:
        assert run("hook", "install", host_id, "--yes")[0] == Exit.OK, host_id
    with Workspace.open(shop / POLICY) as workspace:
        assert not workspace.problems
        assert list(workspace.policy.agents) == [load_host(host_id).prefix for host_id in HOST_IDS]
        assert not workspace.selfcheck().differences
        for host in map(load_host, HOST_IDS):
            context = ToolExecutionContext(host.prefix, "any", folder=str(shop))
            for (tool, argument), wanted in ((one, two) for one in host.shells.items() for two in (ALLOW, DENY)):
                name = f"{host.prefix}.{tool}"
                if name not in (workspace.policy.agents[host.prefix].tools or ()):
                    continue
                given: dict[str, JsonValue] = {argument: "ls src" if wanted is ALLOW else "rm -rf src"}
                schema = next(
                    one["inputSchema"] for one in workspace.gate.view(host.prefix).tools("mcp") if one["name"] == name
                )
                given |= {key: "go" for key in schema.get("required", ()) if key != argument}
                assert workspace.gate.decide(host.prefix, name, given, context=context).verdict is wanted, name
    for host_id in HOST_IDS:
        assert run("hook", "uninstall", host_id, "--yes")[0] == Exit.OK, host_id
    assert not any(name.startswith((".codex", ".gemini", ".github", ".cursor", ".opencode")) for name in tree(shop))


def test_a_policy_that_is_there_decides_with_the_agent_that_is_named(shop: Path, run: Runner) -> None:
    folder = shop.parent / "work"
    assert run("init", folder, "--template", "demo")[0] == Exit.OK
    status, _, err = run("hook", "install", "claude-code", "--policy", folder, "--agent", "nobody", "--yes")
    assert (status, "no agent `nobody`" in err) == (Exit.USAGE, True)
    assert run("hook", "install", "claude-code", "--policy", folder, "--agent", "archivist", "--yes")[0] == Exit.OK
    assert not (shop / POLICY).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("install", "claude"), "no coding agent `claude`"),
        (("install", "opencode", "--managed", "--policy", "."), "has no file of hooks for that"),
        (("install", "claude-code", "--user", "--managed"), "one of --user, --project and --managed"),
        (("install", "claude-code", "--project", "nowhere"), "`nowhere` is no folder"),
        (("status", "vim"), "no coding agent `vim`"),
    ],
)
def test_a_wrong_word_is_one_sentence(shop: Path, run: Runner, words: tuple[str, ...], said: str) -> None:
    before = tree(shop)
    status, _, err = run("hook", *words)
    assert status == Exit.USAGE
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert tree(shop) == before


def test_systemd_starts_the_gate_where_it_answers_and_nothing_of_it_stays(shop: Path, run: Runner) -> None:
    home = shop.parent / "home"
    before = tree(shop), tree(home)
    status, _, err = run("hook", "install", "claude-code", "--systemd", "--yes")
    assert (status, "leave out `--systemd`" in err) == (Exit.USAGE, True)
    assert (tree(shop), tree(home)) == before
    (home / "systemctl").write_text("#!/bin/sh\n")
    (home / "systemctl").chmod(0o755)
    before = tree(home)
    assert run("hook", "install", "claude-code", "--systemd", "--yes")[0] == Exit.OK
    units = home / ".config" / "systemd" / "user"
    assert [one.suffix for one in sorted(units.iterdir())] == [".service", ".socket"]
    assert "systemd starts the gate" in run("hook", "status", "claude-code")[1]
    assert run("hook", "install", "codex", "--yes")[0] == Exit.OK
    assert run("hook", "uninstall", "claude-code", "--yes")[0] == Exit.OK
    assert units.is_dir()  # Codex still needs it
    assert run("hook", "uninstall", "codex", "--yes")[0] == Exit.OK
    assert tree(home) == before
    assert not (home / ".config").exists()


def test_status_is_1_once_a_gate_is_red(shop: Path, run: Runner) -> None:
    assert run("hook", "status")[0] == Exit.OK
    assert run("hook", "install", "claude-code", "--yes")[0] == Exit.OK
    (shop / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    status, out, _ = run("hook", "status", "claude-code")
    assert status == Exit.PROBLEMS
    assert "red" in out
    assert "disableAllHooks" in out


def test_the_doctor_starts_nothing_where_no_gate_is(shop: Path, run: Runner) -> None:
    status, out, _ = run("hook", "doctor", "claude-code", "--json")
    assert status == Exit.OK
    assert json.loads(out)[0]["hook"] is None


def test_a_machine_is_gated_and_all_is_as_before_after_an_undo(shop: Path, run: Runner) -> None:
    """Every agent that is there, whatever is the matter with another one; servers of clients are named."""
    home = shop.parent / "home"
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"model": "opus"} // mine\n')
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"git": {"command": "git-server"}}}')
    before = tree(home)
    status, _, err = run("init", "--machine")
    assert (status, tree(home)) == (Exit.ASK_UNANSWERED, before)
    assert "puts the gate into" in err
    assert "git: `gatewright catalog import" in err
    _, out, _ = run("init", "--machine", "--yes", "--json")
    said = json.loads(out)
    assert said["changed"][0] == "claude-code"
    assert list(said["servers"]) == [str(home / ".cursor" / "mcp.json")]
    with Workspace.open(Path(said["policy"])) as workspace:
        assert not workspace.problems
        context = ToolExecutionContext("claude", "any", folder=str(shop))
        command: dict[str, JsonValue] = {"command": "rm -rf src"}
        assert workspace.gate.decide("claude", "claude.Bash", command, context=context).verdict is DENY
    assert run("init", "--machine", "--yes", "--undo")[0] == Exit.OK
    assert {name: held for name, held in tree(home).items() if not name.startswith(".config/gatewright/")} == before
    assert run("init", "--machine", "--undo")[0] == Exit.OK


def test_uninstall_names_the_file_that_has_the_gate(shop: Path, run: Runner) -> None:
    assert run("hook", "install", "claude-code", "--user", "--yes")[0] == Exit.OK
    status, out, err = run("hook", "uninstall", "claude-code", "--yes")
    assert status == Exit.OK
    assert "no gate is there" in err
    assert out == f"Claude Code: a gate is in {shop.parent / 'home' / '.claude' / 'settings.json'} (`--user`)\n"


def test_install_says_that_a_gate_does_not_hold_before_it_was_reviewed(shop: Path, run: Runner) -> None:
    (shop.parent / "home" / ".codex").mkdir()
    _, out, _ = run("hook", "install", "codex", "--yes")
    assert "Codex has the gate, which does not hold yet" in out
    assert "until you start it, trust the project there and review the hook with `/hooks`; one of your own" in out
    assert run("hook", "uninstall", "codex", "--yes")[0] == Exit.OK
    _, out, _ = run("hook", "status", "codex")
    assert "no gate; `gatewright hook install codex` puts one there" in out
    _, _, err = run("init", "--machine", "--yes")
    assert "not yet: Codex skips the hook without a word until you start it and review the hook with `/hooks`" in err


def test_the_home_folder_is_no_project(shop: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (shop.parent / "home", shop.parent):
        monkeypatch.chdir(folder)
        status, _, err = run("hook", "install", "claude-code", "--yes")
        assert (status, "is no project" in err) == (Exit.USAGE, True)


def test_policy_that_knows_neither_project_nor_commands_gets_both_with_the_agent(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "a.py").write_text("text")
    policy = tmp_path / "policy.toml"
    policy.write_text('gatewright = 1\n\n[[sources]]\nid = "project"\ntype = "file"\nbase_path = "notes"\n')
    write_agent_policy("claude-code", tmp_path, policy)
    with Workspace.open(policy) as workspace:
        assert [source.base_path for source in workspace.policy.sources] == ["notes", "."]
        assert workspace.policy.agents["claude"].sources == ("project", "project-2")
        context = ToolExecutionContext(agent_id="claude", session_id="s", folder=str(tmp_path))
        for tool, arguments, verdict in (
            ("Edit", {"file_path": str(tmp_path / "a.py"), "old_string": "text", "new_string": "more"}, ALLOW),
            ("Read", {"file_path": str(tmp_path / ".env")}, DENY),
            ("Bash", {"command": "git status"}, ALLOW),
            ("Bash", {"command": "rm -rf notes"}, DENY),
        ):
            decision = workspace.gate.decide("claude", f"claude.{tool}", arguments, context=context)
            assert decision.verdict is verdict, (tool, decision.reason)
    before = policy.read_text()
    write_agent_policy("claude-code", tmp_path, policy)
    assert policy.read_text() == before


STARTED = [
    ".claude/settings.local.json",
    ".claude/agents/a.md",
    ".claude/skills/a/SKILL.md",
    ".claude/commands/a.md",
    ".claude/hooks/a.sh",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".gemini/extensions/a/b.json",
    ".opencode/plugin/a.js",
    ".opencode/plugins/a.ts",
    ".opencode/tool/a.ts",
    ".opencode/tools/a.ts",
    ".opencode/command/a.md",
    ".opencode/package.json",
    "opencode.json",
    ".mcp.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".cursor/hooks/a.sh",
    ".github/hooks/a.json",
    ".github/agents/a.agent.md",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/mcp.json",
    "a.code-workspace",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks/pre-push",
    ".git/modules/a/hooks/pre-push",
    ".git/modules/a/config",
]
"""Files from which coding agents, editors and git start programs, without a hook."""


def test_no_tool_writes_what_agents_editors_and_git_start_wherever_it_lies(begun: Workspace, shop: Path) -> None:
    context = ToolExecutionContext("claude", "any", folder=str(shop))
    for name in (f"{folder}{name}" for name in STARTED for folder in ("", "packages/one/")):
        for tool, given in (("Write", {"content": "x"}), ("Edit", {"old_string": "a", "new_string": "b"})):
            arguments: dict[str, JsonValue] = {"file_path": name, **given}
            assert begun.gate.decide("claude", f"claude.{tool}", arguments, context=context).verdict is DENY, name
    for name in (".claude/worktrees/a/b.py", ".opencode/plans/a.md", ".cursor/rules/a.md", ".github/workflows/a.yml"):
        given = {"file_path": name, "content": "x"}
        assert begun.gate.decide("claude", "claude.Write", given, context=context).verdict is ALLOW, name
