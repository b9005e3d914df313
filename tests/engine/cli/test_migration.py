"""Permission rules of Claude Code as a policy: carried over or told, and never more open than they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from gatewright.adapters.claude_settings import read_claude_settings
from gatewright.adapters.host_rules import Migrated, Places
from gatewright.policy.glob import PermissionRules
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for
from tests.engine.cli.conftest import Runner

PROJECT, HOME = "/home/ann/shop", "/home/ann"
PATHS = [
    *[
        ".env",
        "src/.env",
        "src/a.py",
        "src/gen/b.py",
        "notes.md",
        "docs/notes.md",
        "secrets/key",
        "src",
        "#x",
        "!x",
        "shop/src/a.py",
    ],
    "a b",
]
PATTERNS = [
    *("", "a b ", "\\", "[", "src/[a-"),
    *[
        "**",
        "*",
        ".env",
        "./.env",
        "/.env",
        "src",
        "src/",
        "src/**",
        "/src/*.py",
        "*.py",
        "**/gen/**",
        "notes.md",
        "./notes.md",
        "secrets/**",
        "#x",
        "!x",
        "../x",
    ],
    *["a//b", "//home/ann/shop/src/**", "//home/ann/shop", "//home/**", "//home/*/shop/.env", "//etc/**", "//**/.env"],
    *["~/shop/notes.md", "~/.ssh/**", "~/**"],
]
TOOLS = ("Read", "Edit", "Write", "MultiEdit", "Glob", "Bash")
RULES = [*TOOLS, *(f"{tool}({pattern})" for tool in TOOLS for pattern in PATTERNS)]
MODES = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
ORDER = [Verdict.ALLOW, Verdict.ASK, Verdict.DENY]


def migrated(permissions: dict[str, Any]) -> Migrated:
    text = json.dumps({"permissions": permissions})
    return read_claude_settings([text], agent_id="claude", places=Places((PROJECT,), HOME))


def there(rule: str, tools: tuple[str, ...], path: str) -> bool:
    """Whether a rule is about a path, read as its documentation says: patterns as in `.gitignore`."""
    tool, _, rest = rule.partition("(")
    pattern = rest.removesuffix(")").strip()
    if tool not in tools:
        return False
    if pattern in {"", "**"}:
        return True
    if pattern.startswith("~/"):
        pattern = f"/{HOME}{pattern[1:]}"
    if pattern.startswith("//"):
        pattern, path = pattern[1:], f"{PROJECT[1:]}/{path}"
    pattern = f"/{pattern[2:]}" if pattern.startswith("./") else pattern
    try:
        return GitIgnoreSpec.from_lines([pattern]).match_file(path)
    except ValueError:
        return False


def original(permissions: dict[str, Any], action: Action, path: str) -> Verdict:
    """What Claude Code does: deny before ask before allow, else what its mode says."""
    tools = ("Read",) if action is Action.READ else ("Edit", "Write", "MultiEdit", "NotebookEdit")
    for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW):
        if any(there(rule, tools, path) for rule in permissions[str(verdict)]):
            return verdict
    if action is Action.READ:
        return Verdict.ALLOW
    modes = {"acceptEdits": Verdict.ALLOW, "plan": Verdict.DENY, "dontAsk": Verdict.DENY}
    return modes.get(permissions["defaultMode"], Verdict.ASK)


def hold(permissions: dict[str, Any]) -> None:
    (source,) = migrated(permissions).policy.sources
    levels = PermissionRules(source.permission_rules, source.default_permission)
    for path in PATHS:
        for action in (Action.READ, Action.OVERWRITE, Action.APPEND):
            here, was = verdict_for(levels.level(path), action), original(permissions, action, path)
            assert ORDER.index(here) >= ORDER.index(was), (permissions, path, action, here, was, source)


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_a_rule_by_itself_opens_no_more_than_in_the_original(verdict: str) -> None:
    for rule in RULES:
        hold({"allow": [], "ask": [], "deny": [], "defaultMode": "default", verdict: [rule]})


rules: st.SearchStrategy[list[str]] = st.lists(st.sampled_from(RULES), max_size=4)


@settings(max_examples=60)
@given(rules, rules, rules, st.sampled_from(MODES))
def test_no_file_is_ever_more_open_than_in_the_original(
    allow: list[str], ask: list[str], deny: list[str], mode: str
) -> None:
    hold({"allow": allow, "ask": ask, "deny": deny, "defaultMode": mode})


HOSTS = ("a.org", "x.a.org", "b.org")
FETCHES = ["WebFetch", *(f"WebFetch(domain:{host})" for host in (*HOSTS, "*", "*.a.org"))]
fetches: st.SearchStrategy[list[str]] = st.lists(st.sampled_from(FETCHES), max_size=3)


@settings(max_examples=60)
@given(fetches, fetches, fetches)
def test_no_host_is_ever_more_open_than_in_the_original(allow: list[str], ask: list[str], deny: list[str]) -> None:
    (agent,) = migrated({"allow": allow, "ask": ask, "deny": deny}).policy.agents.values()
    granted = [host for one in agent.capabilities for host in one.scope or ()]

    def names(words: list[str], host: str) -> bool:
        said = {word.partition("domain:")[2].removesuffix(")") for word in words}
        return bool(said & {"", "*", host}) or ("*.a.org" in said and host.endswith(".a.org"))

    for host in HOSTS:
        if "*" in granted or host in granted:
            assert names(allow, host)
            assert not names(ask, host)
            assert not names(deny, host)
    assert ("web_fetch" in (agent.tools or ())) == bool(granted)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    (tmp_path / "src").mkdir()
    said = {
        "allow": [
            "Edit(src/**)",
            "Bash(npm run test:*)",
            "Bash(cat:*)",
            "Bash(git:*)",
            "mcp__github__list_issues",
            "WebFetch(domain:docs.python.org)",
        ],
        "deny": ["Read(./.env)", "Edit(/package.json)", "Bash(git push:*)"],
        "additionalDirectories": ["../docs"],
    }
    text = f'{{ // ours\n  "permissions": {json.dumps(said)}, "model": "any" }}'
    (tmp_path / ".claude" / "settings.json").write_text(text, encoding="utf-8")
    (tmp_path / ".claude" / "settings.local.json").write_text('{"permissions": {"ask": ["Edit(src/gen/**)"]}}', "utf-8")
    return tmp_path


def test_settings_become_a_policy_that_is_enforced_and_what_is_left_out_is_told(project: Path, run: Runner) -> None:
    files = [project / ".claude" / name for name in ("settings.json", "settings.local.json")]
    ran = run("import", *files, "--out", project / "policy.toml")
    assert ran.status == 0
    told = [line.removeprefix("not carried over: ") for line in ran.err.splitlines() if "`" in line]
    assert [line.split("`")[1] for line in told] == [
        "mcp__github__list_issues",
        *("../docs", ".git/"),
    ]
    assert "looks like a secret" in told[-1]
    assert run("check", project).status == 0
    assert run("selfcheck", project).status == 0

    def decided(op: str, path: str) -> str:
        words = {"op": op, "path": path} | ({"content": "x"} if op == "create" else {})
        options = ("--agent", "claude", "--tool", "file", "--args", json.dumps(words), "--json")
        return run("decide", project, *options).json["verdict"]

    assert [decided("read", path) for path in ("src/a.py", ".env", "package.json")] == ["allow", "deny", "allow"]
    changes = [decided("create", path) for path in ("src/a.py", "src/gen/a.py", "a.py", "package.json", ".env")]
    assert changes == ["allow", "ask", "ask", "deny", "deny"]
    assert decided("delete", "src/a.py") == "deny"

    def started(command: str) -> str:
        options = ("--agent", "claude", "--tool", "shell_exec", "--args", json.dumps({"command": command}), "--json")
        return run("decide", project, *options).json["verdict"]

    commands = ("cat src/a.py", "cat .env", "git status", "git push", "npm run test -- -x", "npm run build", "ls")
    assert [started(command) for command in commands] == [
        *("allow", "deny", "allow", "deny", "ask", "deny", "deny"),
    ]  # what the programs may change asks, as files without a rule do

    again = run("import", files[0], "--out", project / "policy.toml")
    assert again.status == 2
    assert "exists already" in again.err


def test_an_agents_file_of_pattern_becomes_the_same_rights_in_our_own_dialect(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "scribe.toml").write_text(
        'name = "scribe"\nsystem_prompt = "Write."\ntools = ["file", "recall"]\n'
        '[[tool_rules]]\ntool_name = "file"\nrule_type = { type = "AllowedOperations", value = ["read", "list"] }\n'
        '[data_sources.docs]\ntype = "file"\npaths = ["docs"]\n'
        '[[data_sources.docs.permission_rules]]\npattern = "secret/**"\npermission = "none"\n',
        encoding="utf-8",
    )
    ran = run("import", tmp_path / "scribe.toml", "--out", tmp_path / "policy.toml")
    assert ran.status == 0
    assert "`system_prompt` belongs to Pattern" in ran.err
    shown = [run("preview", tmp_path / name, "--agent", "scribe").json for name in ("scribe.toml", "policy.toml")]
    assert shown[0] == shown[1]
    assert (tmp_path / "policy.toml").read_text("utf-8").startswith("gatewright = 1")
    words = ("--agent", "scribe", "--tool", "file", "--args")
    for arguments in (
        '{"op": "read", "path": "a"}',
        '{"op": "read", "path": "secret/a"}',
        '{"op": "save", "path": "a"}',
    ):
        said = [run("decide", tmp_path / name, *words, arguments).status for name in ("scribe.toml", "policy.toml")]
        assert said[0] == said[1]


def test_settings_of_another_folder_allow_nothing_by_paths_that_begin_there(project: Path, run: Runner) -> None:
    own = project / "ann" / ".claude" / "settings.json"
    own.parent.mkdir(parents=True)
    said = {"allow": ["Edit(/src/**)", "Edit(docs/**)"], "deny": ["Edit(/lib/**)"]}
    own.write_text(json.dumps({"permissions": said}), encoding="utf-8")
    (project / ".claude" / "settings.json").write_text('{"model": "any"}', encoding="utf-8")
    ran = run("import", project / ".claude" / "settings.json", own, "--json")
    assert "`Edit(/src/**)` (allow) is about another folder than the project's" in ran.json["notes"]
    assert "/src/**" not in ran.json["policy"]
    assert all(pattern in ran.json["policy"] for pattern in ("docs/**", "/lib/**"))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"permissions": {"deny": "Read"}}'])
def test_what_are_no_settings_is_refused(text: str, tmp_path: Path, run: Runner) -> None:
    (tmp_path / "settings.json").write_text(text, encoding="utf-8")
    ran = run("import", tmp_path / "settings.json")
    assert ran.status == 2
    assert ran.out == ""


def test_settings_that_are_a_pipe_or_endless_are_refused_at_once(tmp_path: Path, run: Runner) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(1 << 30)
    for name, why in (("pipe", "is no ordinary file"), ("endless", "is no ordinary file"), ("large", "is larger than")):
        found = run("import", tmp_path / f"{name}.json")
        assert found.status == 2
        assert why in found.err


def test_a_rule_that_forbids_and_cannot_be_read_closes_every_file() -> None:
    found = migrated({"deny": ["Read(.env"]})
    assert found.policy.sources[0].default_permission == "none"
    assert "so every file, command and host is closed" in found.notes[0]


def test_a_rule_that_forbids_and_cannot_be_read_closes_every_file_whatever_it_says() -> None:
    text = json.dumps({"permissions": {"allow": ["Edit"], "deny": ["!! (allow)"]}})
    migrated = read_claude_settings([text], agent_id="a", places=Places((PROJECT,), HOME))
    assert migrated.policy.sources[0].default_permission is Permission.NONE
    assert "so every file, command and host is closed" in migrated.notes[0]
