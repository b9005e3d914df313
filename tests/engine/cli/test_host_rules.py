"""Rules of coding agents, imported and decided by the gate: never more open than the host's own reading of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.workspace import Workspace, write_migrated
from tests.engine.cli import host_oracles
from tests.engine.cli.host_oracles import ORDER, Call, Files

PATHS = ("a.py", "src/a.py", "src/deep/b.ts", "notes.md", "docs/notes.md", "private/k", "src/private/k", ".git/config")
COMMANDS = (
    *("git status", "git status -s", "git push", "git push --force origin", "git log", "gitk", "git"),
    *("npm run test", "npm run test -- -x", "npm run test:unit", "npm run build", "npm test", "ls -la", "rm -rf x"),
    *("rmdir x", "timeout 5 git push", "nice git status", "env git status", "xargs rm", "command git push"),
    *("git status && rm x", "ls | git push", "git status; npm run test", "nohup npm run build", "stdbuf -o0 ls"),
)
HOSTS = ("a.org", "x.a.org", "b.org")
CALLS: list[Call] = [
    *(("read", path) for path in PATHS),
    *(("write", path) for path in PATHS),
    *(("run", command) for command in COMMANDS),
    *(("fetch", host) for host in HOSTS),
]
PREFIXES = ("git", "git status", "git push", "npm run test", "npm run", "npm", "ls", "rm", "rm -rf", "timeout", "env")


@dataclass(frozen=True, slots=True)
class Host:
    """A host with its oracle, and a strategy for its files by their paths below the project."""

    oracle: Callable[[Files, Call, Path, Path], str]
    files: st.SearchStrategy[Files]


def some(values: list[str], most: int = 4) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


CLAUDE_RULES = [
    *(
        f"{tool}{scope}"
        for tool in ("Read", "Edit")
        for scope in ("", "(src/**)", "(*.py)", "(./private/**)", "(notes.md)")
    ),
    *("Read(~/shop/private/**)", "Edit(/src/*.py)", "Edit(//nowhere/**)", "Read(~/.ssh/**)", "Write", "Edit(docs/)"),
    *(f"Bash({one}{end})" for one in PREFIXES for end in ("", ":*", " *", "*")),
    *("Bash", "Bash(*)", "Bash(git * --force*)", "Bash(*push*)", "Bash(* x)", "WebFetch", "WebFetch(domain:a.org)"),
    *("WebFetch(domain:*.a.org)", "mcp__db__query", "Glob", "Agent(x)"),
]


@st.composite
def claude_files(draw: st.DrawFn) -> Files:
    def permissions(kinds: tuple[str, ...]) -> dict[str, Any]:
        return {kind: draw(some(CLAUDE_RULES)) for kind in kinds}

    mode = draw(st.sampled_from(["default", "default", "acceptEdits", "plan", "dontAsk"]))
    first = {"permissions": {**permissions(ORDER), "defaultMode": mode}}
    local = {"permissions": permissions(("allow", "deny"))}
    return {".claude/settings.json": json.dumps(first), ".claude/settings.local.json": json.dumps(local)}


@st.composite
def codex_files(draw: st.DrawFn) -> Files:
    policy = draw(st.sampled_from(["untrusted", "on-request", "on-failure", "never"]))
    mode = draw(st.sampled_from(["read-only", "workspace-write", "danger-full-access"]))
    rules = [
        f'prefix_rule(pattern = {json.dumps(pattern)}, decision = "{decision}", justification = "x")\n'
        for pattern, decision in draw(
            st.lists(
                st.tuples(
                    st.sampled_from([*(one.split() for one in PREFIXES), ["git", ["push", "status"]], [["npm", "ls"]]]),
                    st.sampled_from(["allow", "prompt", "forbidden"]),
                ),
                max_size=5,
            )
        )
    ]
    config = f'approval_policy = "{policy}"\nsandbox_mode = "{mode}"\n'
    return {".codex/config.toml": config, ".codex/rules/mine.rules": f"# ours\n{''.join(rules)}"}


@st.composite
def gemini_files(draw: st.DrawFn) -> Files:
    tools = ["run_shell_command", "read_file", "write_file", "replace", "glob", "web_fetch", "*", "mcp_db_query"]
    listed = [*tools[:-2], *(f"run_shell_command({one})" for one in PREFIXES)]
    keys: dict[str, Any] = {key: draw(some(listed)) for key in ("allowed", "exclude")}
    if draw(st.booleans()):
        keys["core"] = draw(some(listed, 8))
    rows: list[str] = []
    for _ in range(draw(st.integers(0, 6))):
        row: dict[str, Any] = {"toolName": draw(st.sampled_from([*tools, ["write_file", "replace"]]))}
        row["decision"] = draw(st.sampled_from(["allow", "ask_user", "deny"]))
        row["priority"] = draw(st.sampled_from([1, 100, 350, 500]))
        more: dict[str, Any] = draw(
            st.sampled_from(
                [
                    *({}, {}, {"modes": ["yolo"]}, {"modes": ["default", "plan"]}),
                    *({"argsPattern": one} for one in (r"private", r'"file_path":"[^"]*\.py', r"\.md", "a|b")),
                ]
            )
        )
        if row["toolName"] == "run_shell_command" and draw(st.booleans()):
            more = draw(
                st.sampled_from(
                    [
                        *({"commandPrefix": one} for one in PREFIXES),
                        {"commandPrefix": ["git", "ls"]},
                        *({"commandRegex": one} for one in ("git (push|log)", "rm", ".*force", "npm run test.*")),
                    ]
                )
            )
        row |= more
        rows.append("[[rule]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items()))
    return {".gemini/settings.json": json.dumps({"tools": keys}), ".gemini/policies/mine.toml": "\n".join(rows)}


OPENCODE = {
    "read": (
        "*",
        "*.py",
        "private/*",
        "**/private/**",
        "src/*",
        "src/**/*.ts",
        "~/shop/private/*",
        "notes.md",
        "docs/?*",
    ),
    "edit": ("*", "*.py", "src/*", "src/**", "src/**/*.ts", "*.md", "notes.md", "docs/*", "**/private/*", "s*b.ts"),
    "bash": ("*", *PREFIXES, *(f"{one} *" for one in PREFIXES), "git *push*", "npm run test*", "* x"),
    "webfetch": ("*", "https://a.org/*"),
}


@st.composite
def opencode_files(draw: st.DrawFn) -> Files:
    actions = st.sampled_from(ORDER)
    permission: dict[str, Any] = {}
    for key in draw(st.permutations(["*", *OPENCODE, "glob"])):
        if not draw(st.booleans()):
            continue
        patterns = OPENCODE.get(key, ("*",))
        is_plain = key == "*" or draw(st.booleans())
        permission[key] = draw(actions) if is_plain else {one: draw(actions) for one in draw(some(list(patterns), 5))}
    return {"opencode.json": json.dumps({"permission": permission})}


KINDS = {
    "claude-code": Host(host_oracles.claude_code, claude_files()),
    "codex": Host(host_oracles.codex, codex_files()),
    "gemini-cli": Host(host_oracles.gemini_cli, gemini_files()),
    "opencode": Host(host_oracles.opencode, opencode_files()),
}


def put(project: Path, files: Mapping[str, str]) -> list[Path]:
    written = [project / name for name in files]
    for path, text in zip(written, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return written


def verdict_here(workspace: Workspace, call: Call, agent_id: str = "") -> str:
    """The gate's verdict on our own tool that does the same; a tool that the agent lacks denies."""
    kind, what = call
    tool, arguments = {
        "read": ("file", {"op": "read", "path": f"{workspace.folder}/{what}"}),
        "write": ("file", {"op": "create", "path": f"{workspace.folder}/{what}", "content": "x"}),
        "run": ("shell_exec", {"command": what}),
        "fetch": ("web_fetch", {"url": f"https://{what}/"}),
    }[kind]
    agent_id = agent_id or next(iter(workspace.policy.agents))
    return str(workspace.decide(agent_id, tool, json.dumps(arguments)).verdict)


THEIRS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "claude-code": {
        "read": ("claude.Read", {"file_path": "PATH"}),
        "write": ("claude.Write", {"file_path": "PATH", "content": "x"}),
        "run": ("claude.Bash", {"command": "IT"}),
        "fetch": ("claude.WebFetch", {"url": "https://IT/", "prompt": "x"}),
    },
    "codex": {"run": ("codex.Bash", {"command": "IT"})},
    "gemini-cli": {
        "read": ("gemini.read_file", {"file_path": "PATH"}),
        "write": ("gemini.write_file", {"file_path": "PATH", "content": "x"}),
        "run": ("gemini.run_shell_command", {"command": "IT"}),
    },
    "opencode": {
        "read": ("opencode.read", {"filePath": "PATH"}),
        "write": ("opencode.write", {"filePath": "PATH", "content": "x"}),
        "run": ("opencode.bash", {"command": "IT", "description": "x"}),
        "fetch": ("opencode.webfetch", {"url": "https://IT/", "format": "text"}),
    },
}
"""The coding agents' own tools for each kind of call."""


def verdict_of_its_tool(workspace: Workspace, call: Call) -> str:
    """The gate's verdict on the coding agent's own tool, as a hook asks for it; "deny" for a call that it lacks."""
    (catalog,), (agent_id,) = workspace.policy.catalogs, workspace.policy.agents
    kind, what = call
    if kind not in THEIRS[catalog.catalog_id]:
        return "deny"
    tool, keys = THEIRS[catalog.catalog_id][kind]
    values = {key: one.replace("PATH", f"{workspace.folder}/{what}").replace("IT", what) for key, one in keys.items()}
    return str(workspace.decide(agent_id, tool, json.dumps(values)).verdict)


def hold(host: Host, files: Files, project: Path, home: Path) -> list[str]:
    """Import the files and compare every call; return the verdicts here."""
    text, _ = write_migrated(project / "policy.toml", put(project, files), project=project)
    found: list[str] = []
    with Workspace.open(project) as workspace:
        for call in CALLS:
            there = host.oracle(files, call, project, home)
            for here in (verdict_here(workspace, call), verdict_of_its_tool(workspace, call)):
                assert ORDER.index(here) >= ORDER.index(there), (call, here, there, text)
                found.append(here)
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_is_ever_more_open_than_the_host_reads_its_own_rules(
    kind: str, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = KINDS[kind]
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        home = Path(folder)
        monkeypatch.setenv("HOME", folder)
        project = home / "shop"
        project.mkdir()
        hold(host, data.draw(host.files), project, home)


LEVELS = ("none", "read_only", "ask", "partner", "append", "read_write", "admin")
PATTERNS = (
    "src/**",
    "*.py",
    "notes.md",
    "private/",
    "/docs/*",
    "**/deep/**",
    "a?py",
    "[!a]*.md",
    "src/*/b.ts",
    ".git/",
)
ENTRIES = ("git", "git status", "git push", "npm run test", "npm test $", "ls", "rm", "*")


@st.composite
def policies(draw: st.DrawFn) -> str:
    """A policy of one agent that works on the project, or on some of its folders."""
    tools = draw(st.sampled_from([["file"], ["file", "shell_exec", "web_fetch"], ["shell_exec"]]))
    every = ["read", "create", "replace", "append", "list"]
    operations = draw(st.sampled_from([every, every, ["read"], ["read", "create"], ["replace", "read"]]))
    asked = st.sampled_from(["file", "file.replace", "shell_exec", "side_effecting"])
    approvals = draw(st.dictionaries(asked, st.sampled_from(ORDER), max_size=1))
    lines = [
        "gatewright = 1",
        "[agents.a]",
        f"tools = {json.dumps(tools)}",
        "approvals = { " + ", ".join(f'"{key}" = "{value}"' for key, value in approvals.items()) + " }",
        'capabilities = ["Exec", { NetRead = { allowlist = ["a.org"] } }]',
        "[[agents.a.tool_rules]]",
        'tool_name = "file"',
        f"rule_type = {{ AllowedOperations = {json.dumps(operations)} }}",
    ]
    for at, base in enumerate(draw(st.sampled_from([["."], ["src"], ["docs", "src"], [".", "src"]]))):
        lines += ["[[sources]]", f'id = "s{at}"', 'type = "file"', f'base_path = "{base}"']
        lines += [f'default_permission = "{draw(st.sampled_from(LEVELS))}"']
        for pattern in draw(some(list(PATTERNS))):
            lines += ["[[sources.permission_rules]]", f"pattern = {json.dumps(pattern)}"]
            lines += [f'permission = "{draw(st.sampled_from(LEVELS))}"']
    lists = {kind: draw(some([one for one in ENTRIES if kind == "allow" or "$" not in one])) for kind in ORDER}
    keys = ", ".join(f"{kind} = {json.dumps(entries)}" for kind, entries in lists.items())
    lines += [
        "[workspace]",
        f'shell = {{ backend = "host", {keys} }}',
        f"closed = {json.dumps(draw(some(['docs/notes.md'])))}",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_export_allows_nothing_that_the_policy_denies_or_asks_about(
    kind: str, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        monkeypatch.setenv("HOME", folder)
        project = Path(folder) / "shop"
        for name in ("src/deep", "docs", "private"):
            (project / name).mkdir(parents=True)
        (project / "policy.toml").write_text(data.draw(policies()), encoding="utf-8")
        with Workspace.open(project) as workspace:
            made = workspace.export_host(kind, "a")
            assert made.lost or kind == "claude-code"
            files = {made.file: made.text}
            if kind == "codex":  # the settings that its comment asks for
                said = [line.removeprefix("#   ") for line in made.text.splitlines() if line.startswith("#   ")]
                files[".codex/config.toml"] = "\n".join(said)
            for call in [*CALLS, ("read", "policy.toml"), ("write", "policy.toml")]:
                there = KINDS[kind].oracle(files, call, project, Path(folder))
                if kind == "codex" and call[0] == "read":
                    continue  # it says of itself that it cannot
                here = verdict_here(workspace, call, "a")
                assert here == "allow" or there != "allow", (call, here, there, made.text)
