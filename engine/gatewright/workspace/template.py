"""Makes new workspaces: from a beginning, a bundled template, settings of Claude Code, or an agent's file of Pattern.

A new policy has all rules for secrets, even if the folder has no such file yet, since one may come tomorrow. The policy
lies in the folder itself, and no tool can reach it, whatever the rules say.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from string import Template

from gatewright import policyfile
from gatewright.adapters.hosts import HostScope, load_host
from gatewright.base.amount import SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.gate import key_folder
from gatewright.policy.agentedit import add_agent
from gatewright.policy.document import Defaults, PermissionRule, Policy, ShellSettings, Source
from gatewright.policy.edit import apply
from gatewright.policy.verdict import Permission, SafetyTier, Verdict
from gatewright.policyfile.reader import write_policy_text
from gatewright.record.folder import STATE_FOLDER, config_folder, memory_folder
from gatewright.sources.ground import POLICY_NAME, SCHEMA_NAME, place_file
from gatewright.tools import read_definitions
from gatewright.tools.declaration import SideEffect
from gatewright.workspace.client_file import content_of
from gatewright.workspace.host_files import AGENT_FOLDER, AGENT_SOURCE
from gatewright.workspace.manifest import manifest_text, shipped_host
from gatewright.workspace.trust import TrustRecords
from gatewright.workspace.workspace import Workspace

SECRETS = (
    ".git/", ".ssh/", ".aws/", ".gnupg/", ".env*", ".netrc", ".npmrc", ".pypirc", "id_rsa*", "id_ed25519*", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.kdbx", "credentials*", "secrets*",
)  # fmt: skip
"""Patterns of files that are better hidden from every agent."""
SOURCE_ID = "files"


@frozen
class Beginning:
    """The contents of a new workspace: one agent without tools, and perhaps the files of the folder.

    ``level``: the agent's level for the files; None means no files at all. ``hides_secrets``: except secrets.
    """

    agent_id: str
    level: Permission | None = None
    hides_secrets: bool = True


def secret_rules() -> tuple[PermissionRule, ...]:
    """Return rules that hide all files and folders of `SECRETS`, including later ones."""
    return tuple(PermissionRule(pattern, Permission.NONE, "a secret") for pattern in SECRETS)


def begin_workspace(folder: Path, beginning: Beginning) -> Path:
    """Write the policy of a new workspace into ``folder``, made if missing, and return the policy's path.

    Raises EditRefused for an impossible agent id, WorkspaceError if a policy exists or cannot be written.
    """
    sources: tuple[Source, ...] = ()
    if beginning.level is not None:
        rules = secret_rules() if beginning.hides_secrets else ()
        sources = (Source(SOURCE_ID, ".", beginning.level, rules),)
    agents = apply(Policy(), add_agent(Policy(), beginning.agent_id)).agents
    agent = replace(agents[beginning.agent_id], sources=tuple(source.source_id for source in sources))
    policy = Policy(defaults=Defaults(unlisted_tools=Verdict.DENY), agents={agent.agent_id: agent}, sources=sources)
    path = folder / POLICY_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot make `{folder}`: {error.strerror or error}") from None
    if path.exists():
        raise WorkspaceError(f"`{path}` exists already; open it instead")
    write_policy_text(path, policyfile.render_policy(policy), expected=None)
    return path


_EMPTY = """\
gatewright = 1

[defaults]
unlisted_tools = "deny"
"""


def template_names() -> tuple[str, ...]:
    """List the templates of ``create_workspace``: the demo, an empty policy, then full examples."""
    return ("demo", "empty", *example_names())


def example_names() -> tuple[str, ...]:
    """List the bundled examples, each a workspace for a common kind of agent."""
    return tuple(sorted(path.name for path in (files("gatewright_resources") / "examples").iterdir() if path.is_dir()))


def create_workspace(folder: Path, template: str) -> Path:
    """Write the template into ``folder`` (made if missing) and return its policy's path. Raises WorkspaceError."""
    policy_path = folder / POLICY_NAME
    try:
        if policy_path.exists():
            raise WorkspaceError(f"`{policy_path}` exists already; nothing was written")
        if template != "empty":
            origin = files("gatewright_resources") / ("demo" if template == "demo" else f"examples/{template}")
            for entry in origin.iterdir():
                if (folder / entry.name).exists():
                    raise WorkspaceError(f"`{folder / entry.name}` exists already; nothing was written")
            with as_file(origin) as place:
                _copy_whole(place, folder)
            if template == "demo":
                _fill_memory(memory_folder(policy_path), key_folder())
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(policy_path, _EMPTY.encode("utf-8"))
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{folder}`: {error.strerror or error}") from None
    return policy_path


def name_schema(policy_path: Path) -> None:
    """Write the JSON Schema of policies beside the policy, and name it in the policy's first line, where editors look
    for it.

    Raises WorkspaceError.
    """
    try:
        schema_path = policy_path.parent / SCHEMA_NAME
        if not schema_path.exists():
            write_atomically(schema_path, f"{json.dumps(policyfile.policy_schema(), indent=2)}\n".encode())
        write_atomically(policy_path, f"#:schema {SCHEMA_NAME}\n".encode() + policy_path.read_bytes())
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{policy_path.parent}`: {error.strerror or error}") from None


def _copy_whole(origin: Path, folder: Path) -> None:
    """Copy a template, the policy last; remove a failed copy. Raises OSError."""
    made: list[Path] = []
    try:
        _make_folder(folder, made)
        for path in sorted(_members(origin), key=lambda path: path.name == POLICY_NAME):
            goal = folder / path.relative_to(origin)
            if path.is_dir():
                _make_folder(goal, made)
                continue
            _make_folder(goal.parent, made)
            made.append(goal)
            goal.write_bytes(path.read_bytes())
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise


def _fill_memory(state: Path, keys: Path) -> None:
    """Fill the demo's blocks, archive, conversations and notes, unless the state folder already has memory."""
    from gatewright.blocks.schemajson import schema_from_json
    from gatewright.memory.agentblocks import owner_of
    from gatewright.memory.archive import Archive, Conversations
    from gatewright.memory.block_store import FILE_NAME, BlockStore
    from gatewright.memory.blocks import BlockService
    from gatewright.memory.blocktable import BlockType
    from gatewright.memory.notes import FOLDER, NoteBook
    from gatewright.policy.verdict import Permission

    if (state / FILE_NAME).exists():
        return
    rows = json.loads((files("gatewright_resources") / "demo-memory.json").read_bytes())
    with BlockStore(state / FILE_NAME, keys=keys) as store, store.exclusive():
        for row in rows["blocks"]:
            owner = owner_of(row["agent"]) if "agent" in row else ""
            BlockService(store, owner=owner, operator=True).create(
                row["label"],
                schema_from_json(row.get("schema", {"type": "text"})),
                author="demo",
                content=row["content"],
                type=BlockType(row.get("type", BlockType.WORKING)),
                permission=Permission(row.get("permission", Permission.READ_WRITE)),
                pinned=row.get("pinned", False),
                description=row["description"],
                char_limit=row.get("char_limit"),
            )
        for row in rows["archive"]:
            Archive(store).insert(row["content"], row["metadata"])
        for row in rows["conversations"]:
            Conversations(store, owner=owner_of(row["agent"]), user_id=row["user"]).append(row["role"], row["content"])
    if not NoteBook.why_absent():
        book = NoteBook(state / FOLDER, SystemClock(), keys=keys)
        for row in rows["notes"]:
            book.of(row["user"]).save(row["content"])
        book.close()


def _members(origin: Path) -> list[Path]:
    found = sorted(origin.rglob("*"))
    return [path for path in found if "__pycache__" not in path.parts and path.name != "__init__.py"]


def _make_folder(folder: Path, made: list[Path]) -> None:
    if not folder.exists():
        _make_folder(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def write_demo(folder: Path) -> Path:
    """Return the demo workspace in ``folder``; only the first call writes it."""
    policy_path = folder / POLICY_NAME
    return policy_path if policy_path.is_file() else create_workspace(folder, "demo")


def agent_policy_path(scope: HostScope, project: Path) -> Path:
    """Return the place of a policy for coding agents: in the project, else in the user's settings."""
    folder = project / AGENT_FOLDER if scope is HostScope.PROJECT else config_folder() / "coding-agents"
    return folder / POLICY_NAME


def agent_policy(host_id: str, project: Path, path: Path) -> tuple[str, str]:
    """Return the text of the policy at ``path`` after it got an agent for that host, which works in ``project``, and
    the id of the source that it got for that; empty for none.

    A missing policy is begun; in one that is there, the host's agent and catalog come at the end, with a source of the
    project and what commands may run if it says nothing of these. It is unchanged if the policy has the catalog
    already. Raises WorkspaceError, PolicyInvalid.
    """
    host, tools, approvals, sources = load_host(host_id), list[str](), list[str](), [AGENT_SOURCE]
    pieces = ["head", "source", "shell", "agent"]
    text = "" if not path.exists() else content_of(path).decode("utf-8-sig")
    if not text and Path.home().resolve().is_relative_to(project):
        raise WorkspaceError(f"`{project}` is no project: go to the folder in which the agent works, or name a policy")
    if text:
        with Workspace.open(path) as workspace:
            if workspace.policy.catalog(host_id) is not None:
                return text, ""
            policy, here = workspace.policy, project.resolve()
            bases = {one.source_id: (path.parent / one.base_path).resolve() for one in policy.folder_sources}
            sources = [name for name, base in bases.items() if base.is_relative_to(here) or here.is_relative_to(base)]
            if any(here.is_relative_to(bases[name]) for name in sources):
                pieces.remove("source")
            else:
                sources.append(_free(AGENT_SOURCE, {source.source_id for source in policy.sources}))
            pieces = [one for one in pieces if one != "head" and (one != "shell" or policy.shell == ShellSettings())]
    for tool in read_definitions(shipped_host(host_id)[1])[0]:
        name, effects = f"{host.prefix}.{tool.name}", tool.conduct.side_effects or frozenset[SideEffect]()
        if tool.name in host.shells:
            approvals.append(f"{_toml(name)} = {_toml('allow')}")
        elif tool.safety_tier not in {SafetyTier.READ_ONLY, SafetyTier.SIDE_EFFECTING}:
            continue
        elif effects & {SideEffect.NET_READ, SideEffect.NET_WRITE}:
            approvals.append(f"{_toml(name)} = {_toml('ask')}")
        tools.append(name)
    places = {project / AGENT_FOLDER: "..", project: "."}
    base = places.get(path.parent, project.as_posix())
    given = {"title": host.title, "prefix": host.prefix, "host": host_id, "approvals": "\n".join(approvals)}
    given |= {"source": _toml(sources[-1])}
    given |= {"name": _toml(f"Coding agents in {project.name}"), "base": _toml(base), "sources": _toml(sources)}
    given |= {"description": _toml(f"{host.title}, in {project.name}"), "tools": _lines(tools)}
    made = (Template((files("gatewright_resources") / "hosts" / f"{one}.toml").read_text("utf-8")) for one in pieces)
    start = f"{text.rstrip()}\n\n" if text else ""
    return start + "".join(piece.substitute(given) for piece in made), sources[-1] if "source" in pieces else ""


def write_agent_policy(host_id: str, project: Path, path: Path) -> None:
    """Write that policy with the definitions; a source that it adds is trusted, as the person said.

    Raises WorkspaceError, PolicyInvalid.
    """
    before = content_of(path).decode("utf-8-sig") if path.exists() else None
    text, source_id = agent_policy(host_id, project, path)
    if text == before:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent == project / AGENT_FOLDER and not (path.parent / ".gitignore").exists():
            write_atomically(path.parent / ".gitignore", f"{STATE_FOLDER}/\n".encode())
        catalog, manifest = shipped_host(host_id)
        place_file(path.parent, catalog.manifest, manifest_text(manifest))
    except OSError as error:
        raise WorkspaceError(f"cannot write to `{path.parent}`: {error.strerror or error}") from None
    write_policy_text(path, text, expected=before)
    if source_id:
        TrustRecords(key_folder()).trust_folder("source", path, source_id, Path(os.path.realpath(project)))
    Workspace.open(path).close()


def _free(name: str, taken: Collection[str]) -> str:
    """Return the name, or the first with a number that nothing has."""
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 1000))) if one not in taken)


def _toml(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(words: Iterable[str]) -> str:
    """Write a list of words on lines of their own."""
    lines = textwrap.wrap(", ".join(map(_toml, words)), 110, break_long_words=False, break_on_hyphens=False)
    return "[\n" + "".join(f"  {line}\n" for line in lines) + "]"
