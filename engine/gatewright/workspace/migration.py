"""Makes policies of what people have: rules of coding agents, and files of Pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gatewright import policyfile
from gatewright.adapters.claude_settings import read_claude_settings, unsure_settings
from gatewright.adapters.codex_rules import read_codex_rules
from gatewright.adapters.gemini_policy import read_gemini_policy
from gatewright.adapters.host_rules import Migrated, Places
from gatewright.adapters.opencode_permission import read_opencode_permission
from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import read_json
from gatewright.policy.document import Catalog, Dialect
from gatewright.policy.rulekind import AllowedOperations
from gatewright.policyfile.reader import write_policy_text
from gatewright.schema.walk import objects
from gatewright.sources.basefolder import as_on_disk
from gatewright.sources.ground import place_file
from gatewright.workspace.client_file import content_of
from gatewright.workspace.manifest import manifest_text, shipped_host
from gatewright.workspace.template import SECRETS, secret_rules
from gatewright.workspace.workspace import Workspace

SETTINGS = {".claude": "claude-code", ".codex": "codex", ".gemini": "gemini-cli", ".opencode": "opencode"}
"""The coding agents by the folder of their settings."""
_AGENTS = {"claude-code": "claude", "gemini-cli": "gemini"}
_KEYS = {"permissions": "claude-code", "permission": "opencode", "hooks": "claude-code", "tools": "gemini-cli"}
"""The coding agents by keys of settings that lie elsewhere, the surest first."""


_TOOLS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "claude-code": {
        "file.read": ("Read",),
        "file.list": ("Glob", "Grep", "LS"),
        "file.create": ("Edit", "MultiEdit", "NotebookEdit", "Write"),
        "shell_exec": ("Bash",),
        "web_fetch": ("WebFetch",),
    },
    "codex": {"file.create": ("apply_patch",), "shell_exec": ("Bash",)},
    "gemini-cli": {
        "file.read": ("read_file", "read_many_files"),
        "file.list": ("list_directory", "glob", "grep_search"),
        "file.create": ("write_file", "replace"),
        "shell_exec": ("run_shell_command",),
        "web_fetch": ("web_fetch",),
    },
    "opencode": {
        "file.read": ("read",),
        "file.list": ("glob", "grep", "list"),
        "file.create": ("edit", "multiedit", "patch", "write"),
        "shell_exec": ("bash",),
        "web_fetch": ("webfetch",),
    },
}
"""The built-in tools of a coding agent that do what one of ours does."""


def write_migrated(
    path: Path,
    files: Sequence[Path],
    *,
    agent_id: str | None = None,
    project: Path | None = None,
    host: str | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Write the policy of `migrate`; its agent gets the coding agent's own tools too, so that a hook can decide.

    Returns its text and the notes. Raises WorkspaceError, PolicyInvalid; nothing is replaced.
    """
    found, which = _migrated(files, agent_id, project, host)
    if which in _TOOLS:
        catalog, manifest = shipped_host(which)
        if os.path.lexists(path.parent / catalog.manifest):
            raise WorkspaceError(f"`{path.parent / catalog.manifest}` exists already; nothing was written")
        found = _with_tools(found, which, catalog, {str(row["name"]) for row in objects(manifest["tools"])})
        place_file(path.parent, catalog.manifest, manifest_text(manifest))
    text = policyfile.render_policy(found.policy)
    write_policy_text(path, text, expected=None)
    return text, found.notes


def _with_tools(found: Migrated, host: str, catalog: Catalog, there: Collection[str]) -> Migrated:
    """Give the agent the coding agent's tools that do what the agent may do by ours, asking where ours do."""
    (agent,) = found.policy.agents.values()
    rules = (rule.rule_type for rule in agent.tool_rules)
    operations = {name for rule in rules if isinstance(rule, AllowedOperations) for name in rule.operations}
    tools, approvals = list(agent.tools or ()), dict(agent.approvals)
    for ours, theirs in _TOOLS[host].items():
        tool, _, operation = ours.partition(".")
        if tool not in tools or (operation and operation not in operations):
            continue
        verdict = agent.approvals.get(ours, agent.approvals.get(tool))
        for name in (f"{catalog.prefix}.{one}" for one in theirs if one in there):
            tools.append(name)
            approvals |= {} if verdict is None else {name: verdict}
    changed = replace(agent, tools=tuple(tools), approvals=approvals)
    policy = replace(found.policy, agents={agent.agent_id: changed}, catalogs=(catalog,))
    return Migrated(policy, found.notes)


def migrate(
    files: Sequence[Path], *, agent_id: str | None = None, project: Path | None = None, host: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return the text of a policy that is at most as open as ``files``, and notes on what it leaves out.

    ``files``: settings of one coding agent that apply together, or one file of Pattern. ``project``: the folder that
    the settings are for; by default the one around their folder. ``host``: the coding agent, if the files do not show
    it. Raises WorkspaceError, PolicyInvalid.
    """
    found, _ = _migrated(files, agent_id, project, host)
    return policyfile.render_policy(found.policy), found.notes


def _migrated(
    files: Sequence[Path], agent_id: str | None, project: Path | None, host: str | None
) -> tuple[Migrated, str]:
    """Return the policy, and whose rules it comes from."""
    texts = {file: _text(file) for file in files}
    hosts = {host or _host_of(file, text) for file, text in texts.items()}
    if hosts == {"pattern"} and len(files) == 1:
        return _pattern(files[0]), "pattern"
    if len(hosts) != 1 or not hosts <= set(SETTINGS.values()):
        known = ", ".join(f"`{one}`" for one in SETTINGS.values())
        raise WorkspaceError(f"give settings of one coding agent ({known}), or one file of Pattern")
    (which,) = hosts
    named = (project or _project_of(files[0])).absolute()
    places = _places(named.resolve(), named)
    try:
        found = _read_rules(which, texts, agent_id or _AGENTS.get(which, which), places)
    except WorkspaceError as error:
        raise WorkspaceError(f"{', '.join(f'`{file}`' for file in files)}: {error}") from None
    return _without_secrets(found), which


def _host_of(file: Path, text: str) -> str:
    """Tell whose settings a file holds, by its name and folder, else by its keys."""
    if file.suffix == ".rules":
        return "codex"
    folder = next((name for name in file.absolute().parts[-4:-1] if name in SETTINGS), "")
    if file.suffix == ".toml":
        return SETTINGS.get(folder) or (
            "gemini-cli" if re.search(r"^\[\[rules?\]\]", text, re.MULTILINE) else "pattern"
        )
    if file.stem in {"opencode", "config"} or not file.suffix.startswith(".json"):
        return "opencode" if file.stem == "opencode" else SETTINGS.get(folder, "")
    held = read_json(text) if not folder else {}
    keys = held.keys() if isinstance(held, dict) else ()
    return SETTINGS.get(folder) or next((host for key, host in _KEYS.items() if key in keys), "claude-code")


def _read_rules(host: str, texts: Mapping[Path, str], agent_id: str, places: Places) -> Migrated:
    """Read the files of one coding agent; those of the project count after all others."""
    is_mine = {file: _project_of(file).resolve().as_posix() == places.project[0] for file in texts}
    ordered = sorted(texts, key=lambda file: is_mine[file])
    tables = [texts[file] for file in ordered if file.suffix == ".toml"]
    others = [texts[file] for file in ordered if file.suffix != ".toml"]
    if host == "codex":
        return read_codex_rules(tables, others, agent_id=agent_id, places=places)
    if host == "gemini-cli":
        return read_gemini_policy(others, tables, agent_id=agent_id, places=places)
    if host == "opencode":
        return read_opencode_permission(others, agent_id=agent_id, places=places)
    if limits := [limit for text in others for limit in unsure_settings(text)]:
        raise WorkspaceError(f"it says more than its rules, and would be more open here: {'; '.join(limits)}")
    mine, elsewhere = ([texts[file] for file in texts if is_mine[file] is whose] for whose in (True, False))
    return read_claude_settings(mine, elsewhere=elsewhere, agent_id=agent_id, places=places)


def _without_secrets(found: Migrated) -> Migrated:
    """Put the rules that hide secrets before all others, since the first matching pattern decides."""
    sources = tuple(
        replace(source, permission_rules=(*secret_rules(), *source.permission_rules)) for source in found.policy.sources
    )
    note = f"reading what looks like a secret ({', '.join(f'`{pattern}`' for pattern in SECRETS)}): it is hidden here"
    return Migrated(replace(found.policy, sources=sources), (*found.notes, note))


def _places(folder: Path, named: Path) -> Places:
    """Return the project's folder in each known spelling: resolved, as the person named it, and below the home."""
    spellings = (folder.as_posix(), named.as_posix(), *_below_home(folder))
    folds = as_on_disk(folder.as_posix().swapcase()) == folder.as_posix()
    return Places(spellings, Path.home().as_posix(), lambda path: as_on_disk(os.path.realpath(path)), folds)


def _below_home(folder: Path) -> tuple[str, ...]:
    """Return the folder as a path below the home folder, possibly through a link."""
    home = Path.home()
    try:
        return ((home / folder.relative_to(home.resolve())).as_posix(),)
    except ValueError:
        return ()


def _project_of(file: Path) -> Path:
    folder = file.absolute().parent
    return next((one.parent for one in (folder, *folder.parents[:2]) if one.name in SETTINGS), folder)


def _text(file: Path) -> str:
    try:
        return content_of(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkspaceError(f"cannot read `{file}`: it is not UTF-8") from None


def _pattern(file: Path) -> Migrated:
    """Read a file of Pattern, whose policy is valid, as one in our own dialect."""
    with Workspace.open(file) as workspace:
        if workspace.policy.dialect is not Dialect.PATTERN:
            raise WorkspaceError(f"`{file}` is a policy of this program already")
        notes = tuple(problem.message for problem in workspace.current_problems())
        return Migrated(replace(workspace.policy, dialect=Dialect.GATEWRIGHT), notes)
