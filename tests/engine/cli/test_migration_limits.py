"""What Claude Code's settings forbid and a policy cannot say: the import stops and names it, and opens nothing."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.claude_settings import read_claude_settings
from gatewright.base.errors import WorkspaceError
from gatewright.policy.document import PermissionRule
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.verdict import Permission
from gatewright.workspace.template import migrate
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


def test_pattern_that_forbids_is_as_strict_as_it_was_or_refused() -> None:
    refused = open_too_far = 0
    every = patterns()
    assert len(every) > 1000
    for pattern in every:
        text = json.dumps({"permissions": {"allow": ["Edit"], "deny": [f"Read({pattern})"]}})
        try:
            found = read_claude_settings([text], agent_id="a", project=PROJECT, home=HOME)
        except WorkspaceError as error:
            refused += pattern in str(error)
            continue
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
    assert open_too_far == 0
    assert 0 < refused < len(every) / 2


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is reached by a link, as where `/home` leads to `/var/home`."""
    project = tmp_path / "var" / "home" / "ann" / "shop"
    (project / ".claude").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "var" / "home")
    (tmp_path / "var" / "home" / "ann" / "link").symlink_to(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "ann"))
    return tmp_path


def imported(file: Path, permissions: dict[str, Any], **more: Any) -> str:
    file.write_text(json.dumps({"permissions": permissions, **more}), encoding="utf-8")
    text, _ = migrate([file], agent_id="a")
    (source,) = tomllib.loads(text)["sources"]
    rules = [
        PermissionRule(row["pattern"], Permission(row["permission"])) for row in source.get("permission_rules", ())
    ]
    return PermissionRules(rules, Permission(source.get("default_permission", "read_only"))).level(".env")


def outcome(file: Path, permissions: dict[str, Any]) -> str:
    """The level of a secret file, or why the settings are refused."""
    try:
        return imported(file, permissions)
    except WorkspaceError as error:
        return str(error)


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
def test_the_project_by_another_way_is_closed_or_refused(linked: Path, way: str, pattern: str) -> None:
    file = linked / way / ".claude" / "settings.json"
    said = pattern.format(os.fspath(linked).strip("/"))
    said = said if said.startswith("~") else f"/{said}"
    told = outcome(file, {"allow": ["Edit"], "deny": [f"Read({said})"]})
    assert told == "none" or said in told


LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}}, "PreToolUse"),
    ({"hooks": {"PermissionRequest": [{}]}}, "PermissionRequest"),
    ({"hooks": {"PreTooluse": [{}]}}, "PreTooluse"),
    ({"sandbox": {"filesystem": {"denyRead": ["~/"]}}}, "sandbox"),
    ({"sandbox": {"network": {"deniedDomains": ["x.org"]}}}, "sandbox"),
    ({"disabledMcpjsonServers": ["db"]}, "disabledMcpjsonServers"),
    ({"deny": ["Read(.env)"]}, "deny"),
    ({"denied": ["Read(.env)"]}, "denied"),
    ({"Permissions": {"deny": ["Read(.env)"]}}, "Permissions"),
    ({"permission": {"deny": ["Read(.env)"]}}, "permission"),
    ({"ignorePatterns": [".env"]}, "ignorePatterns"),
    ({"deniedMcpServers": [{}]}, "deniedMcpServers"),
]


@pytest.mark.parametrize(("more", "named"), LIMITS)
def test_what_limits_outside_of_the_rules_is_refused_by_name_and_line(
    tmp_path: Path, more: dict[str, Any], named: str
) -> None:
    file = tmp_path / "settings.json"
    with pytest.raises(WorkspaceError, match=rf"settings.json` .*{named}") as raised:
        imported(file, {"allow": ["Edit"]}, **more)
    assert "line 1" in str(raised.value)


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
def test_rule_that_forbids_and_cannot_be_read_leaves_no_host_open(tmp_path: Path, rule: str) -> None:
    file = tmp_path / "settings.json"
    with pytest.raises(WorkspaceError, match="hosts"):
        imported(file, {"allow": ["Edit", "WebFetch"], "deny": [rule]})
    assert imported(file, {"allow": ["Edit"], "deny": [rule]}) == "none"


def test_settings_that_forbid_nothing_more_are_taken_over(tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "model": "opus",
        "env": {"A": "b"},
        "statusLine": {},
        "hooks": {"PostToolUse": [{}], "Stop": [{}], "PreToolUse": []},
        "disabledMcpjsonServers": [],
        "enabledPlugins": {},
    }
    assert (
        imported(tmp_path / "settings.json", {"allow": ["Edit"], "defaultMode": "default"}, **more) == "none"
    )  # a secret


def test_the_command_line_says_which_and_where(tmp_path: Path, run: Runner) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"permissions": {"allow": []},\n "sandbox": {"enabled": true}}', encoding="utf-8")
    ran = run("import", file)
    assert ran.status == 2
    assert "`sandbox` (line 2) may forbid something" in ran.err
