"""What Claude Code's settings forbid and a policy cannot say: the import stops and names it, and opens nothing."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from gatewright.adapters.claude_settings import read_claude_settings
from gatewright.adapters.host_rules import Places
from gatewright.base.errors import WorkspaceError
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission, Verdict
from gatewright.workspace.migration import migrate
from tests.engine.cli.conftest import Runner

HOME, PROJECT = "/home/ann", "/home/ann/shop"
FILES = (".env", "src/a.py", "secret/s.txt", "deep/shop/x", "home/ann/b")
ENDS = ("", "/", "/.env", "/secret/**", "/*", "/**", "/s*", "/?env")


def spellings(step: str) -> tuple[str, ...]:
    return (step, "*", "**", f"{step[0]}*", f"?{step[1:]}", f"[{step[0]}]{step[1:]}", f"\\{step}", "other")


def patterns() -> list[str]:
    steps = PROJECT.strip("/").split("/")
    found: list[str] = []
    for length in range(1, len(steps) + 1):
        for parts in itertools.product(*map(spellings, steps[:length])):
            if sum(part != step for part, step in zip(parts, steps, strict=False)) <= 2:
                found += [f"//{'/'.join(parts)}{end}" for end in ENDS]
    found += [f"~/{one}{end}" for one in (*spellings("shop"), "../ann/shop", "./shop") for end in ENDS]
    return [*found, "~", "~/", "~ann", "~ann/shop", "//home/ann/../ann/shop", "//x/../home/ann/shop/.env"]


def test_pattern_that_forbids_is_as_strict_as_it_was() -> None:
    open_too_far = closed = 0
    every = patterns()
    assert len(every) > 1000
    for pattern in every:
        text = json.dumps({"permissions": {"allow": ["Edit"], "deny": [f"Read({pattern})"]}})
        found = read_claude_settings([text], agent_id="a", places=Places((PROJECT,), HOME))
        source = found.policy.sources[0]
        here = PermissionRules(source.permission_rules, source.default_permission)
        whole = f"/{HOME}{pattern[1:]}" if pattern.startswith("~/") else pattern
        there = whole[1:]
        if check_pattern(there) is not None:
            continue
        forbidden = PermissionRules([PermissionRule(there, Permission.NONE)], Permission.ADMIN)
        for file in FILES:
            is_forbidden = forbidden.level(f"{PROJECT}/{file}".lstrip("/")) is Permission.NONE
            open_too_far += is_forbidden and here.level(file) is not Permission.NONE
            closed += here.level(file) is Permission.NONE and not is_forbidden
    assert open_too_far == 0
    assert closed < len(every)  # of five files each: closing everything would be no translation


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is reached by a link, as where `/home` leads to `/var/home`."""
    project = tmp_path / "var" / "home" / "ann" / "shop"
    (project / ".claude").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "var" / "home")
    (tmp_path / "var" / "home" / "ann" / "link").symlink_to(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "ann"))
    return tmp_path


def imported(file: Path, permissions: dict[str, Any], *, at: str = ".env", **more: Any) -> str:
    file.write_text(json.dumps({"permissions": permissions, **more}), encoding="utf-8")
    text, _ = migrate([file], agent_id="a")
    (source,) = tomllib.loads(text)["sources"]
    rules = [
        PermissionRule(row["pattern"], Permission(row["permission"])) for row in source.get("permission_rules", ())
    ]
    return PermissionRules(rules, Permission(source.get("default_permission", "read_only"))).level(at)


@pytest.mark.parametrize("way", ["home/ann/shop", "var/home/ann/shop"])
@pytest.mark.parametrize(
    "pattern",
    [
        "~/shop/.env",
        "~/link/.env",
        "/{}/home/ann/shop/.env",
        "/{}/home/ann/shop/**",
        "/{}/home/ann/link/.env",
        "/{}/var/home/ann/shop/.env",
        "/{}/home/*/shop",
        "/{}/h*/ann/shop",
        "/{}/home/ann",
    ],
)
def test_the_project_by_another_way_is_closed(linked: Path, way: str, pattern: str) -> None:
    file = linked / way / ".claude" / "settings.json"
    said = pattern.format(os.fspath(linked).strip("/"))
    said = said if said.startswith("~") else f"/{said}"
    at = "notes.md" if said.endswith(("shop", "ann", "**")) else ".env"
    assert imported(file, {"allow": ["Edit"], "deny": [f"Read({said})"]}, at=at) == "none"


@pytest.mark.parametrize("key", ["deny", "denied", "Permissions", "permission", "ignorePatterns", "sandBox"])
def test_setting_that_may_limit_and_is_not_known_is_refused_by_name_and_line(tmp_path: Path, key: str) -> None:
    file, more = tmp_path / "settings.json", cast("Any", {key: [".env"]})
    with pytest.raises(WorkspaceError, match=rf"settings.json`: .*{key}` \(line 1\)"):
        imported(file, {"allow": ["Edit"]}, **more)


@pytest.mark.parametrize("key", ["Deny", "denied", "denies", "block", "ASK", "allowed"])
def test_key_of_the_rules_that_is_not_known_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(WorkspaceError, match=key):
        imported(tmp_path / "settings.json", {"allow": ["Edit"], key: ["Read(.env)"]})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"permissions": {"deny": ["Read(.env)"],\n "deny": []}}', 2),
        ('{"permissions": {"deny": ["Read(.env)"]},\n\n "permissions": {"allow": ["Edit"]}}', 3),
        ('{"permissions": {"d\\u0065ny": ["Read(.env)"],\n "deny": []}}', 2),
    ],
)
def test_key_that_stands_twice_is_refused(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "settings.json").write_text(text, encoding="utf-8")
    with pytest.raises(WorkspaceError, match=rf"line {line}\) stands twice"):
        migrate([tmp_path / "settings.json"], agent_id="a")


@pytest.mark.parametrize("rule", ["*", "mcp__*", "Read (a)", "WebFetch(domain:a.com", "WebFetch domain:a.com"])
def test_rule_that_forbids_and_cannot_be_read_leaves_nothing_open(rule: str) -> None:
    text = json.dumps({"permissions": {"allow": ["Edit", "WebFetch", "Bash"], "deny": [rule]}})
    found = read_claude_settings([text], agent_id="a", places=Places((PROJECT,), HOME))
    (source,), (agent,) = found.policy.sources, found.policy.agents.values()
    assert (source.default_permission, source.permission_rules, agent.capabilities) == (Permission.NONE, (), ())
    assert rule in found.notes[0]


HOOKS: list[tuple[str, list[dict[str, Any]], set[str]]] = [
    ("PreToolUse", [{"matcher": "Bash"}], {"shell_exec"}),
    ("PreToolUse", [{"matcher": "Read|Bash"}], {"shell_exec", "file.read", "file.load"}),
    ("PreToolUse", [{"matcher": "(?!x)Web"}], {"shell_exec", "file.read", "file.create", "file.list"}),
    ("PreToolUse", [{}], {"shell_exec", "file.read", "file.create", "file.save", "file.list"}),
    ("PreToolUse", [{"matcher": "Edit"}, {"matcher": "^Glob$"}], {"file.create", "file.list"}),
    ("PermissionRequest", [{"matcher": "Bash"}], {"shell_exec", "file.read"}),
    ("PreTooluse", [{"hooks": []}], {"shell_exec", "file.read"}),
    ("PreToolUse", [{"matcher": "mcp__.*"}], set()),
    ("PostToolUse", [{"matcher": "*"}], set()),
]


@pytest.mark.parametrize(("event", "groups", "asking"), HOOKS)
def test_calls_that_a_hook_may_forbid_ask_first_and_the_hook_is_named(
    event: str, groups: list[dict[str, Any]], asking: set[str]
) -> None:
    said = {"permissions": {"allow": ["Edit", "Bash"]}, "hooks": {event: groups}}
    found = read_claude_settings([json.dumps(said)], agent_id="a", places=Places((PROJECT,), HOME))
    (agent,) = found.policy.agents.values()
    found_asking = {name for name, verdict in agent.approvals.items() if verdict is Verdict.ASK}
    assert found_asking >= asking
    assert bool(found_asking) == bool(asking)
    assert any(event in note for note in found.notes) == (event != "PostToolUse")


def test_sandbox_closes_places_and_hosts_here_too() -> None:
    said = {
        "permissions": {
            "allow": ["Edit", "WebFetch(domain:a.org)", "WebFetch(domain:b.org)", "WebFetch(domain:c.org)"]
        },
        "sandbox": {
            "enabled": True,
            "filesystem": {
                "denyRead": ["~/.ssh", "./keys", "/etc/passwd"],
                "denyWrite": ["dist"],
                "allowWrite": ["/x"],
            },
            "network": {"allowedDomains": ["a.org", "b.org"], "deniedDomains": ["*.b.org"]},
        },
        "disabledMcpjsonServers": ["db"],
    }
    found = read_claude_settings([json.dumps(said)], agent_id="a", places=Places((PROJECT,), HOME))
    (source,), (agent,) = found.policy.sources, found.policy.agents.values()
    levels = PermissionRules(source.permission_rules, source.default_permission)
    assert [levels.level(path) for path in ("keys/a", "dist/a", "a")] == ["none", "read_only", "read_write"]
    assert found.policy.closed == ("~/.ssh", "/etc/passwd")
    assert [one.scope for one in agent.capabilities] == [("a.org",)]
    assert all(any(key in note for note in found.notes) for key in ("sandbox", "disabledMcpjsonServers", "c.org"))


OUTSIDE = [
    *("~/.ssh/**", "~/.ssh", "~/.ssh/", "~/.ssh/id_*", "//home/ann/.ssh/**", "//home//ann/./.ssh", "//etc/shadow"),
    *("//etc/../etc/shadow", "//home/ann/shop/../.ssh/**", "../.ssh/**", "~/.ss*/**", "//**/.ssh/**", "~/**/*.pem"),
]


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_places_outside_that_may_not_be_read_are_closed_or_every_command_asks(pattern: str) -> None:
    text = json.dumps({"permissions": {"allow": ["Bash(cat:*)"], "deny": [f"Read({pattern})"]}})
    found = read_claude_settings([text], agent_id="a", places=Places((PROJECT,), HOME))
    (agent,) = found.policy.agents.values()
    closed = {"~/.ssh", "/etc/shadow"} & set(found.policy.closed)
    assert closed or agent.approvals["shell_exec"] is Verdict.ASK
    assert bool(closed) == (pattern.count("*") < 3 and "ss*" not in pattern and ".pem" not in pattern)


@pytest.mark.parametrize("pattern", ["~/shop/.ENV", "//HOME/ann/SHOP/.env", "//home/*/Shop/.env", "./.Env", "**/.ENV"])
def test_case_counts_for_nothing_where_the_disk_ignores_it(pattern: str) -> None:
    text = json.dumps({"permissions": {"allow": ["Edit"], "deny": [f"Read({pattern})"]}})
    found = read_claude_settings([text], agent_id="a", places=Places((PROJECT,), HOME, folds=True))
    (source,) = found.policy.sources
    levels = PermissionRules(source.permission_rules, source.default_permission)
    assert [levels.level(path) for path in (".env", ".eNv", "a")] == ["none", "none", "read_write"]


def test_settings_that_forbid_nothing_more_are_taken_over(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "model": "opus",
        "env": {"A": "b"},
        "statusLine": {},
        "hooks": {"PostToolUse": [{}], "Stop": [{}], "PreToolUse": []},
        "sandbox": {},
        "disabledMcpjsonServers": [],
        "enabledPlugins": {},
    }
    assert (
        imported(tmp_path / "settings.json", {"allow": ["Edit"], "defaultMode": "default"}, **more) == "none"
    )  # a secret


def test_the_command_line_says_which_and_where(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"permissions": {"allow": []},\n "ignorePatterns": [".env"]}', encoding="utf-8")
    ran = run("import", file)
    assert ran.status == 2
    assert "`ignorePatterns` (line 2) may forbid something" in ran.err
