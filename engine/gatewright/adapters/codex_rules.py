"""Turns what limits Codex (`.codex/config.toml`, `*.rules`) into a policy that is at most as open.

Codex runs a command that no rule names in its sandbox, and asks when `approval_policy` says so. Of the rules that begin
a command, the strictest counts. A rule that allows leaves the sandbox there; here every command stays confined.
"""

from __future__ import annotations

import ast
import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from gatewright.adapters.host_rules import Command, Draft, Migrated, Places
from gatewright.arguments.shell_program import runs_others
from gatewright.base.errors import WorkspaceError, shown
from gatewright.policy.verdict import Permission, Verdict

_DECISIONS = {"allow": Verdict.ALLOW, "prompt": Verdict.ASK, "forbidden": Verdict.DENY}
_MOST_RULES = 1 << 20
_MOST_COMMANDS = 1_000
_GUARDED = ("/.git", "/.codex", "/.agents")
"""Folders that the sandbox never lets a command change."""
_TAKEN = frozenset(
    {
        "approval_policy", "sandbox_mode", "sandbox_workspace_write", "model", "model_provider", "model_providers",
        "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "projects", "tui", "notify", "history",
        "personality", "file_opener", "profiles", "shell_environment_policy", "mcp_servers", "profile", "hooks",
    }
)  # fmt: skip


class _Write(BaseModel):
    model_config = ConfigDict(strict=True)

    writable_roots: list[str] = []
    network_access: bool = False


class _Config(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    approval_policy: str | dict[str, Any] = "on-request"
    sandbox_mode: str = "read-only"
    sandbox_workspace_write: _Write = _Write()
    profile: str | None = None
    profiles: dict[str, dict[str, Any]] = {}


def read_codex_rules(configs: Iterable[str], rules: Iterable[str], *, agent_id: str, places: Places) -> Migrated:
    """Read configurations, the most important last, and files of rules. Raises WorkspaceError."""
    merged: dict[str, Any] = {}
    try:
        for text in configs:
            merged |= tomllib.loads(text)
        config = _Config.model_validate(merged)
        chosen = config.profiles.get(config.profile or "", {})
        config = _Config.model_validate({**merged, **chosen})
    except tomllib.TOMLDecodeError as error:
        raise WorkspaceError(f"it is not TOML: {error}") from None
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_url=False, include_input=False)[0]["loc"][:2])
        raise WorkspaceError(f"`{where}` is not as Codex writes it") from None
    draft = Draft(agent_id, "Codex", places)
    policy = config.approval_policy if isinstance(config.approval_policy, str) else "untrusted"
    asks = policy != "never"
    _add_sandbox(draft, config, policy)
    for text in rules:
        for command, verdict, written in _prefix_rules(text):
            said = Verdict.DENY if verdict is Verdict.ASK and not asks else verdict
            if said is Verdict.ALLOW and runs_others(command.words[0]):
                draft.lose(written, said, "starts whatever it is given: name the programs behind it")
            else:
                draft.run(said, command, written)
    for key in sorted(merged.keys() - _TAKEN):
        draft.notes.append(f"{shown(key)} is not taken over")
    if merged.get("hooks"):
        draft.asks |= {"shell_exec", "file.create", "file.save", "file.append", "file.insert", "file.replace"}
        draft.notes.append("`hooks` may forbid calls, and do not run here: commands and changes ask first")
    if merged.get("mcp_servers"):
        draft.notes.append("`mcp_servers`: the tools of servers are off here until `gatewright catalog import`")
    return draft.finish()


def _add_sandbox(draft: Draft, config: _Config, policy: str) -> None:
    """Take what a call without a rule gets: what the sandbox allows, or a question."""
    mode = config.sandbox_mode
    asks = policy != "never"
    writes = mode in {"workspace-write", "danger-full-access"} and policy in {"on-request", "on-failure", "never"}
    draft.default = Permission.READ_WRITE if writes else Permission.PARTNER if asks else Permission.READ_ONLY
    if mode != "danger-full-access":
        for folder in _GUARDED:
            draft.change(Verdict.ASK if asks else Verdict.DENY, f".{folder}", f"sandbox_mode = {mode}")
    if policy in {"on-request", "on-failure", "never"}:
        draft.run(Verdict.ALLOW, Command(), f"approval_policy = {policy}")
    else:
        draft.asks_alone = True
    if mode == "danger-full-access":
        draft.notes.append("`sandbox_mode` is not taken over: commands stay confined here")
    if config.sandbox_workspace_write.writable_roots:
        draft.notes.append("`writable_roots` are not added: make them sources")
    if mode == "workspace-write" and config.sandbox_workspace_write.network_access:
        draft.notes.append("`network_access` is not taken over: name the hosts in `NetRead`")


def _prefix_rules(text: str) -> Iterator[tuple[Command, Verdict, str]]:
    """Yield the commands of a file of rules, one for each way to read its lists of words."""
    try:
        if len(text) > _MOST_RULES:
            raise ValueError("it is too long")
        body = ast.parse(text).body
        calls = [_call(one) for one in body if not _is_text(one)]
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise WorkspaceError(f"it is no file of rules that can be read: {str(error)[:200]}") from None
    for name, given in calls:
        if name == "host_executable":
            continue
        pattern, decision = given.get("pattern"), given.get("decision", "allow")
        if name != "prefix_rule" or decision not in _DECISIONS or not isinstance(pattern, list) or not pattern:
            raise WorkspaceError(f"{shown(name)} is no rule that can be read: {shown(str(given)[:100])}")
        given_steps = cast("list[Any]", pattern)
        steps = [cast("list[Any]", step) if isinstance(step, list) else [step] for step in given_steps]
        written = f"{decision}: {' '.join('|'.join(map(str, step)) for step in steps)}"
        for count, words in enumerate(itertools.product(*steps)):
            if count == _MOST_COMMANDS or not all(isinstance(word, str) for word in words):
                raise WorkspaceError(f"{shown(written)} names too many commands, or none")
            yield Command(words, begins=" ".join(words)), _DECISIONS[decision], written


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _call(statement: ast.stmt) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the values of a call like ``prefix_rule(pattern = [...])``. Raises ValueError."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ValueError(f"line {statement.lineno} is no rule with names and values alone")
    return call.func.id, {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
