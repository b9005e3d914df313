"""Exports a policy: its texts and folders, and for a team also files to start with and to verify it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from gatewright.adapters.host_export import Area, Net
from gatewright.base.errors import Address, NotSupported, Place, WorkspaceError, shown
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.gate import STATE_FOLDER, AuditLog
from gatewright.memory.block_store import foreign_stores
from gatewright.policy.capability import CapabilityKind, NetRead
from gatewright.policy.document import Policy
from gatewright.policy.right import OperationFacts, ToolFacts, ToolRight
from gatewright.policy.rulekind import AllowedOperations
from gatewright.policy.verdict import STRICTNESS, Action, Permission, Verdict, strictest
from gatewright.policyfile import carries, policy_schema, render_pattern, write_policy_text
from gatewright.record.folder import key_folder
from gatewright.sources.ground import POLICY_NAME, SCHEMA_NAME, is_inside, place_file, resolve_base
from gatewright.workspace.client_file import content_of


@frozen
class BoundPath:
    """A path of a policy that is valid only on this computer; ``place``: its position in the file."""

    path: str
    what: str
    place: Place | None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}`{self.path}`, {self.what}, is valid on this computer only"


def bound_paths(policy: Policy, folder: Path, place: Callable[[Address], Place | None]) -> tuple[BoundPath, ...]:
    """List the paths of a policy in ``folder`` that are absolute or lead out of it, in the order of the policy."""
    return tuple(
        BoundPath(path, what, place(address))
        for path, what, address in _paths(policy)
        if _is_absolute(path) or not is_inside(resolve_base(path, folder), folder)
    )


def _paths(policy: Policy) -> Iterator[tuple[str, str, Address]]:
    """Yield each text that may be a path, with its owner and address."""
    for name, path in policy.roots.folders.items():
        yield path, f"the root `{name}`", ("workspace", "roots", name)
    for source in policy.sources:
        yield source.base_path, f"the folder of source `{source.source_id}`", ("sources", source.source_id, "base_path")
    for catalog in policy.catalogs:
        whose, address = f"of catalog `{catalog.catalog_id}`", ("catalogs", catalog.catalog_id)
        if catalog.command is not None and "/" in catalog.command.replace("\\", "/"):
            yield catalog.command, f"the command {whose}", (*address, "command")
        for number, word in enumerate(catalog.args):
            value = word.partition("=")[2] if word.startswith("-") else word
            if _is_absolute(value) or value.startswith("./") or ".." in value.replace("\\", "/").split("/"):
                yield value, f"an argument {whose}", (*address, "args", number)
        if catalog.cwd is not None:
            yield catalog.cwd, f"the `cwd` {whose}", (*address, "cwd")
        for path in catalog.place_folders:
            yield path, f"a place {whose}", (*address, "places", path)


def _is_absolute(path: str) -> bool:
    return Path(path).is_absolute() or PureWindowsPath(path).is_absolute() or path.startswith("~")


def export_texts(
    policy: Policy, text: str, dialect: str, agent_id: str | None, catalog: Iterable[ToolFacts]
) -> dict[str, str]:
    """Return texts by file name: the policy unchanged, or one file for Pattern for each agent with a tool.

    ``catalog``: every tool.
    """
    if dialect == "gatewright":
        return {POLICY_NAME: text}
    if dialect != "pattern":
        raise NotSupported(f"no dialect `{dialect}` (known are gatewright, pattern)")
    left_out = not_exported(policy, dialect)
    carried = [agent_id] if agent_id else [one for one in policy.agents if one not in left_out]
    return {f"{one}.toml": render_pattern(policy, one, catalog) for one in carried}


def not_exported(policy: Policy, dialect: str) -> tuple[str, ...]:
    """List the agents that get no file in the dialect, since they have no tool; our dialect has all agents."""
    if dialect != "pattern":
        return ()
    return tuple(one for one, agent in policy.agents.items() if not carries(policy, agent))


@frozen
class ExportPlan:
    """Everything that an export writes into ``folder``: content by file name, and the folders it makes there."""

    folder: Path
    texts: Mapping[str, bytes]
    manifests: Mapping[str, bytes]
    folders: tuple[str, ...] = ()

    @property
    def files(self) -> Mapping[str, bytes]:
        """The content of every file by its name."""
        return {**self.texts, **self.manifests}


def plan_export(
    folder: Path, texts: Mapping[str, str], workspace: Path, bases: Iterable[str], manifests: Mapping[str, bytes]
) -> ExportPlan:
    """Plan the texts, with the manifests and relative folders that they name, so that the export loads in the folder.

    The folder of the workspace itself has these already.
    """
    written = {name: text.encode("utf-8") for name, text in texts.items()}
    if folder.resolve() == workspace.resolve():
        return ExportPlan(folder, written, {})
    below = [
        base
        for base in dict.fromkeys(bases)
        if not Path(base).is_absolute() and (folder / base).resolve().is_relative_to(folder.resolve())
    ]
    return ExportPlan(folder, written, manifests, tuple(below))


def write_export(plan: ExportPlan) -> tuple[Path, ...]:
    """Write what was planned and return the files. Raises WorkspaceError."""
    folder = plan.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in plan.texts.items():
            write_atomically(folder / name, content)
        placed = [place_file(folder, name, content) for name, content in plan.manifests.items()]
        for base in plan.folders:
            (folder / base).resolve().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot export to `{folder}`: {error.strerror or error}") from None
    return (*(folder / name for name in plan.texts), *placed)


def write_copy(
    path: Path, text: str, workspace: Path, bases: Iterable[str], manifests: Mapping[str, bytes]
) -> tuple[Path, ...]:
    """Write the text as a new policy file, with the manifests and folders of `write_export`; nothing is replaced.

    Raises WorkspaceError, before any write, if something is in the way.
    """
    if os.path.lexists(path):
        raise WorkspaceError(f"`{path}` was not saved: a file of that name exists already")
    folder = path.parent
    lacking: dict[str, bytes] = {}
    if folder.resolve() != workspace.resolve():
        lacking = {name: content for name, content in manifests.items() if not os.path.lexists(folder / name)}
        for name in manifests.keys() - lacking.keys():
            if not _holds(folder / name, manifests[name]):
                raise WorkspaceError(f"`{path}` was not saved: another `{name}` is in that folder already")
    beside = write_export(plan_export(folder, {}, workspace, bases, lacking))
    write_policy_text(path, text, expected=None)
    return (path, *beside)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.is_file() and path.read_bytes() == content
    except OSError:
        return False


if TYPE_CHECKING:
    Rights = Callable[[str], Mapping[str, ToolRight]]

MANIFEST = "export.json"
_START = '''\
"""One call behind the gate: python start.py AGENT TOOL '{"argument": "value"}'."""
import asyncio
import sys

from gatewright import Workspace


async def main(agent_id: str, tool: str, arguments: str) -> None:
    with Workspace.open(".") as workspace:  # tools=[...] for those that this program brings along
        async with workspace.sessions.hold("start", agent_id=agent_id) as session:  # limits count in it
            print(len(workspace.view(agent_id).tools("anthropic")), "tools for the model")  # and .usage_rules
            outcome = await workspace.call(agent_id, tool, arguments, session=session)
            print(outcome.status, outcome.output)


asyncio.run(main(*sys.argv[1:]))
'''
_README = """\
# {name}

{description}Exported by Gatewright {version}. It needs that version or a newer one:
`pip install "gatewright>={version}"`.

| file | is |
|---|---|
| `policy.toml` | what each agent may do; the catalogs and manifests beside it belong to it |
| `start.py` | fifteen lines that make one call: `python start.py AGENT TOOL '{{"argument": "value"}}'` |
| `{manifest}` | the hash of each file: `gatewright export --verify .` finds any change |

`gatewright check .` says whether the policy can be enforced here, `gatewright serve . --agent AGENT` gives the tools of
an agent to any MCP client, `gatewright .` opens the window. What asks waits for the window, or for
`gatewright approvals list . --watch`.

## Who may do what

What stands under *some ask* depends on the file, or on values of the call. What is in none of the columns is off.
{rights}"""


class _Manifest(BaseModel):
    """``export.json``: who wrote it, the SHA-256 of each file, and the folders whose contents are outside the
    export.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    gatewright: str
    files: dict[str, str]
    folders: list[str]


def team_texts(policy: Policy, rights: Rights) -> dict[str, str]:
    """Return texts by file name for the team, besides the policy; ``rights``: an agent's rights on each tool."""
    readme = _README.format(
        name=policy.name or "A policy for agents",
        description=f"{policy.description}. " if policy.description else "",
        version=version("gatewright"),
        manifest=MANIFEST,
        rights="".join(_rights(policy, rights)),
    )
    schema = f"{json.dumps(policy_schema(), indent=2)}\n"
    return {"README.md": readme, "start.py": _START, SCHEMA_NAME: schema}


def with_manifest(plan: ExportPlan, folders: Iterable[str]) -> ExportPlan:
    """Add the manifest of the plan's files, for `verify_export`; ``folders``: those of the policy, as written."""
    hashes = {
        Path(os.path.normpath(name)).as_posix(): hashlib.sha256(content).hexdigest()
        for name, content in plan.files.items()
    }
    said = _Manifest(gatewright=version("gatewright"), files=hashes, folders=sorted(set(folders)))
    manifest = f"{said.model_dump_json(indent=2)}\n".encode()
    return replace(plan, manifests={**plan.manifests, MANIFEST: manifest})


def verify_export(folder: Path) -> tuple[str, int, tuple[str, ...]]:
    """Return the manifest's digest, the number of its files, and every difference from the files on disk.

    The contents of source folders do not count, nor does a state folder whose log this user's keys prove; any other
    state folder counts as added. Raises WorkspaceError without a readable manifest.
    """
    try:
        content = content_of(folder / MANIFEST)
        said = _Manifest.model_validate_json(content)
        problems = [*_changes(folder, said), *_additions(folder, said)]
    except OSError as error:
        raise WorkspaceError(f"cannot read `{error.filename or folder}`: {error.strerror or error}") from None
    except ValidationError:
        raise WorkspaceError(f"`{folder / MANIFEST}` is no manifest of an export") from None
    return hashlib.sha256(content).hexdigest(), len(said.files), tuple(problems)


def _changes(folder: Path, said: _Manifest) -> Iterator[str]:
    for name, wanted in sorted(said.files.items()):
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            yield f"{shown(name)} names a place outside the export"
        elif not os.path.lexists(path):
            yield f"{shown(name)} is missing"
        elif path.is_symlink() or not path.is_file():
            yield f"{shown(name)} is no plain file"
        elif _hash(path) != wanted:
            yield f"{shown(name)} was changed"


def _additions(folder: Path, said: _Manifest) -> Iterator[str]:
    foreign = {folder / name for name in said.folders} - {folder}
    state = folder / STATE_FOLDER
    if os.path.lexists(state):
        foreign.add(state)
        if not _is_own(state):
            yield f"{shown(STATE_FOLDER)} was added"
        else:
            for path in foreign_stores(state, key_folder()):
                yield f"{shown(path.relative_to(folder).as_posix())} was added"
    for place, folders, names in os.walk(folder):
        if not folders and not names and Path(place) != folder:
            yield f"{shown(f'{Path(place).relative_to(folder).as_posix()}/')} was added"
        folders[:] = sorted(name for name in folders if Path(place) / name not in foreign)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in sorted([*names, *links]):
            if Path(place) / name == state:
                continue
            path = (Path(place) / name).relative_to(folder).as_posix()
            if path not in said.files and path != MANIFEST:
                yield f"{shown(path)} was added"


def _is_own(state: Path) -> bool:
    """Tell whether this user's keys prove the log there, as they do after the export was used here."""
    if state.is_symlink() or not state.is_dir():
        return False
    report = AuditLog(state, key_folder()).verify()
    return report.is_sound and report.rows > 0


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _rights(policy: Policy, rights: Rights) -> Iterator[str]:
    for agent_id, agent in policy.agents.items():
        yield f"\n### {agent_id}\n\n{f'{agent.description}.' if agent.description else ''}\n\n"
        rows = [row for right in rights(agent_id).values() if (row := _row(right))]
        if not rows:
            yield "No tools.\n"
            continue
        yield "| tool | on | some ask | ask first |\n|---|---|---|---|\n"
        yield from rows


def _row(right: ToolRight) -> str:
    """Return the operations of a visible tool in three columns; empty for a hidden tool."""
    columns: tuple[list[str], ...] = ([], [], [])
    for one in right.operations:
        if not one.is_hidden:
            at = 2 if one.verdict is Verdict.ASK else int(one.asks_for_some)
            columns[at].append(one.operation or "yes")
    if right.is_hidden or not any(columns):
        return ""
    return f"| {' | '.join([right.facts.name, *map(', '.join, columns)])} |\n"


def net_of(policy: Policy, agent_id: str, rights: Rights, folder: Path, closed: Iterable[Path]) -> Net:
    """Return what coding agents can enforce of one agent's rights; ``closed``: places that no tool touches."""
    agent, project = policy.agents[agent_id], os.path.realpath(folder)
    mine = rights(agent_id).values()
    hosts = [host for one in agent.capabilities if isinstance(one, NetRead) for host in one.allowlist]
    has_order = any(not isinstance(rule.rule_type, AllowedOperations) for rule in agent.tool_rules)
    floor = Verdict.ASK if has_order else Verdict.ALLOW  # what a session decides is known to the gate alone
    areas = [
        Area(str(resolve_base(source.base_path, folder)), source.permission_rules, source.default_permission)
        for source in policy.sources_of(agent)
    ]
    areas += [
        Area(str(resolve_base(path, folder)), (), Permission.READ_ONLY if name == "vault" else Permission.READ_WRITE)
        for name, path in policy.roots.folders.items()
        if not any(area.folder == str(resolve_base(path, folder)) for area in areas)
    ]
    hidden = [
        (right.facts.origin, right.facts.name.removeprefix(f"{right.facts.origin}."))
        for right in mine
        if right.is_hidden and policy.catalog(right.facts.origin) is not None
    ]
    return Net(
        project,
        reads=_mildest(mine, _reads, ("read",)),
        writes=strictest(floor, _mildest(mine, _writes, ("create", "replace"))),
        runs=_mildest(mine, lambda facts: facts.commands, ()),
        fetches=_mildest(mine, lambda facts: CapabilityKind.NET_READ in facts.capabilities, ()),
        areas=tuple(areas),
        closed=tuple(dict.fromkeys(os.path.realpath(place) for place in closed)),
        asking=policy.shell.ask,
        denied=policy.shell.deny,
        hosts=tuple(hosts),
        hidden=tuple(hidden),
    )


def _reads(facts: OperationFacts) -> bool:
    return not facts.commands and Action.READ in facts.disk_actions | facts.path_actions


def _writes(facts: OperationFacts) -> bool:
    return not facts.commands and Action.OVERWRITE in facts.disk_actions | facts.path_actions


def _mildest(rights: Iterable[ToolRight], does: Callable[[OperationFacts], bool], of_file: Collection[str]) -> Verdict:
    """Return the verdict of the mildest tool that does something: the strictest of its operations that do.

    ``of_file``: the operations of `file` that do it as a coding agent would. An operation with limits asks.
    """
    found = [Verdict.DENY]
    for right in rights:
        rows = {row.operation: row for row in right.operations}
        about = [
            rows[one.name]
            for one in right.facts.operations
            if (one.name in of_file if right.facts.name == "file" else does(one)) and one.name in rows
        ]
        if about:
            said = [Verdict.ASK if row.verdict is Verdict.ALLOW and row.limits else row.verdict for row in about]
            found.append(strictest(*said))
    return min(found, key=STRICTNESS.__getitem__)
