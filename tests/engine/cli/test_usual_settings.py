"""Settings of Claude Code as projects usually have them: taken over for the most part, and never more open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.workspace import Workspace, migrate
from tests.engine.cli.host_oracles import ORDER
from tests.engine.cli.test_host_rules import KINDS, put, verdict_here

BLOCKS: dict[str, dict[str, Any]] = {
    "git": {"allow": ["git add:*", "git commit:*", "git status:*", "git diff:*", "git log:*", "git checkout -b:*"]},
    "git all": {"allow": ["git:*"], "ask": ["git push:*"], "deny": ["git push --force:*", "git reset --hard:*"]},
    "node": {
        "allow": ["npm install", "npm run build", "npm run test:*", "npm run lint:*", "npx tsc:*", "node --version"]
    },
    "pnpm": {"allow": ["pnpm install:*", "pnpm -r build", "pnpm vitest run:*", "npx playwright test *"]},
    "python": {
        "allow": ["python -m pytest:*", "uv run pytest *", "ruff check:*", "mypy:*", "source .venv/bin/activate"]
    },
    "rust": {"allow": ["cargo build:*", "cargo test *", "cargo clippy:*", "cargo fmt"], "deny": ["cargo publish:*"]},
    "go": {"allow": ["go build:*", "go test ./...", "go vet:*", "golangci-lint run:*", "make test"]},
    "jvm": {"allow": ["./gradlew test:*", "mvn -q test", "./mvnw:*"]},
    "docker": {
        "allow": ["docker ps:*", "docker compose logs:*"],
        "ask": ["docker compose up:*"],
        "deny": ["docker rm *"],
    },
    "gh": {
        "allow": ["gh pr view:*", "gh pr list:*", "gh issue view *", "gh api x:*"],
        "ask": ["gh pr create *"],
    },
    "look": {"allow": ["ls:*", "cat:*", "grep:*", "find:*", "rg:*", "wc -l:*", "head:*", "tree", "pwd"]},
    "change": {"allow": ["mkdir:*", "cp:*", "mv:*", "touch:*", "chmod +x:*", "sed -i:*"]},
    "danger": {"deny": ["rm -rf:*", "sudo:*", "curl:*", "wget:*", "chmod 777 *", "dd:*", "*> /dev/*"]},
    "odd": {"allow": ["for f in *", 'echo "a b"', "A=1 npm test", "timeout 30 npm test", "awk '{print $1}'"]},
    "stars": {"allow": ["npm run *", "git * main", "* --version", "mise run lint*"], "deny": ["* --no-verify*"]},
    "all": {"allow": [""], "ask": ["rm:*"], "deny": ["git push:*"]},
}
FILES = {
    "edit": {"allow": ["Edit", "Write", "Read", "Glob", "Grep"]},
    "edit src": {"allow": ["Edit(src/**)", "Edit(/docs/**)", "Read(./**)"], "ask": ["Edit(*.py)"]},
    "secret": {"deny": ["Read(./.env)", "Read(./.env.*)", "Read(**/private/**)", "Edit(.git/**)"]},
    "home": {"deny": ["Read(~/.ssh/**)", "Read(~/.aws/**)", "Read(//etc/passwd)", "Edit(~/**)"]},
    "web": {
        "allow": ["WebFetch(domain:a.org)", "WebSearch", "WebFetch(domain:docs.rs)"],
        "deny": ["WebFetch(domain:b.org)"],
    },
    "web all": {"allow": ["WebFetch"], "ask": ["WebFetch(domain:x.a.org)"]},
    "mcp": {"allow": ["mcp__github__list_issues", "mcp__db", "Task", "Skill(review)"], "deny": ["mcp__db__drop"]},
    "none": {},
}
MORE: dict[str, dict[str, Any]] = {
    "hook": {"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./x"}]}]}},
    "format": {"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}]}},
    "box": {
        "sandbox": {
            "enabled": True,
            "network": {"allowedDomains": ["a.org"]},
            "filesystem": {"denyRead": ["./private"]},
        }
    },
    "plain": {"env": {"A": "b"}, "model": "opus", "statusLine": {"type": "command", "command": "x"}},
    "off": {"disabledMcpjsonServers": ["db"], "enableAllProjectMcpServers": True},
}
BASH, PATHS, EXTRA, MODES = (
    list(BLOCKS),
    list(FILES),
    list(MORE),
    ["default", "acceptEdits", "default", "dontAsk", "plan"],
)
COMMANDS = (
    *("git status", "git push", "git push --force origin", "git diff HEAD", "git reset --hard", "git commit -m x"),
    *("npm install", "npm install x", "npm run build", "npm run test:unit", "npm run test -- -x", "npm run deploy"),
    *("cargo test", "cargo publish", "go test ./...", "go test ./... -v", "ls -la", "cat src/a.py", "rm -rf x", "rm x"),
    *("sudo ls", "timeout 5 git push", "docker ps", "gh pr create -f", "make test", "node --version", "git merge main"),
    *("ls && rm -rf x", "cat a | xargs rm", "nice cargo publish", "git commit --no-verify"),
)


def sample(number: int) -> tuple[dict[str, Any], list[str]]:
    """The settings with that number, and the commands that they allow."""
    bash = {BASH[number % len(BASH)], BASH[(number * 5 + 3) % len(BASH)], BASH[(number * 7 + 8) % len(BASH)]}
    paths = {PATHS[number % len(PATHS)], PATHS[(number * 3 + 2) % len(PATHS)]}
    permissions: dict[str, Any] = {kind: [] for kind in ORDER}
    for name in sorted(bash):
        for kind, scopes in BLOCKS[name].items():
            permissions[kind] += [f"Bash({scope})" if scope else "Bash" for scope in scopes]
    for name in sorted(paths):
        for kind, rules in FILES[name].items():
            permissions[kind] += rules
    permissions["defaultMode"] = MODES[number % len(MODES)]
    allowed = [scope for name in bash for scope in BLOCKS[name].get("allow", [])]
    return {"permissions": permissions, **MORE[EXTRA[number % len(EXTRA)]]}, allowed


@pytest.mark.parametrize("number", range(29))
def test_usual_settings_are_taken_over_and_never_more_open(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "shop"
    said, _ = sample(number)
    files = {".claude/settings.json": json.dumps(said)}
    text, notes = migrate(put(project, files))
    (project / "policy.toml").write_text(text, encoding="utf-8")
    paths = ("a.py", "src/a.py", "private/k", "docs/notes.md", ".git/config")
    calls = [*(("run", one) for one in COMMANDS), *(("fetch", one) for one in ("a.org", "b.org", "docs.rs"))]
    calls += [(kind, path) for kind in ("read", "write") for path in paths]
    with Workspace.open(project) as workspace:
        for call in calls:
            here = verdict_here(workspace, call)
            there = KINDS["claude-code"].oracle(files, call, project, tmp_path)
            assert ORDER.index(here) >= ORDER.index(there), (call, here, there, text)
    if "hook" in EXTRA[number % len(EXTRA)]:
        assert any("`PreToolUse`" in note for note in notes)


def test_most_commands_that_usual_settings_allow_are_allowed_here(tmp_path: Path) -> None:
    every = kept = 0
    for number in range(29):
        said, allowed = sample(number)
        if said["permissions"]["defaultMode"] == "plan":
            continue
        _, notes = migrate(put(tmp_path / str(number), {".claude/settings.json": json.dumps(said)}))
        every += len(allowed)
        kept += sum(not any(f"`Bash({scope})` (allow)" in note for note in notes) for scope in allowed)
    assert kept > 0.7 * every  # the others begin with a variable or a wildcard, or a limit may mean them
