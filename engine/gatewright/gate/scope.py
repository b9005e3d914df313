"""The reach of a call: hosts, folders and names in the grants, and the confinement of processes.

A relative prefix of a grant starts from the folder of the policy; without that folder it grants nothing. Shell commands
and the servers of catalogs run confined: the places of a server come from its catalog, those of a shell from the grants
of the agent. Levels come from all sources of the policy, whoever has them, and hosts from the agent's grants, even for
a server: each confinement has its own server process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypedDict

from gatewright.base.frozen import frozen
from gatewright.gate.call import CallState
from gatewright.policy.capability import (
    Capability,
    CapabilityKind,
    DbRead,
    DbWrite,
    EnvRead,
    FsRead,
    FsWrite,
    NetRead,
    NetWrite,
    WasmExec,
    kind_of,
)
from gatewright.policy.document import ROOT_NAMES, Agent, Catalog, Confine, PlaceUse, Policy
from gatewright.policy.reach import exec_limits, widest
from gatewright.policy.target import Confinement, Place, ProcessBounds, Tree
from gatewright.policy.verdict import EVERY_HOST, Permission, check_prefix, covers, is_every_host
from gatewright.tools.declaration import ResourceBounds


class _Common(TypedDict):
    """The common parts of all confinements of one agent."""

    trees: tuple[Tree, ...]
    closed: tuple[str, ...]
    fixed: tuple[str, ...]
    hosts: tuple[str, ...]
    allow_private: bool
    agent_id: str


SHELL_SUBJECT = "shell_exec"
"""The subject of the confinement of shell commands."""
SHARED, _, VAULT = ROOT_NAMES


@frozen
class Whereabouts:
    """The paths on disk behind a policy's names: absolute, without links and ``..``. ``sources`` go by id; those in
    ``refused`` are unusable.

    ``closed``: paths that no process sees, ``fixed``: paths that none may change.
    """

    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict[str, str])
    closed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


@frozen
class ServerFiles:
    """What a server's process needs on this system: its working folder, its ``programs``, its variables.

    ``folders``: the places that are folders, as written, with their paths; an unusable one is missing.
    """

    folder: str = "/"
    folders: Mapping[str, str] = field(default_factory=dict[str, str])
    programs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def confinement_of(
    policy: Policy, agent: Agent, catalog: Catalog, where: Whereabouts, files: ServerFiles
) -> Confinement:
    """The confinement of the process that serves an agent's calls to a catalog; sources that the agent may not use are
    left out.

    The process starts in its catalog's folder if that exists for it: in a place, or around one.
    """
    own = {source.source_id for source in policy.sources_of(agent)} - where.refused
    paths = {**{name: path for name, path in where.sources.items() if name in own}, **files.folders}
    given = [(paths[name], use) for name, use in (catalog.places or {}).items() if name in paths]
    there = (*(path for path, _ in given), *files.programs)
    stands = any(covers(path, files.folder) or covers(files.folder, path) for path in there)
    return Confinement(
        places=_places(given),
        programs=files.programs,
        environment=files.environment,
        folder=files.folder if stands else "/",
        subject=catalog.catalog_id,
        **_common(policy, agent, where),
    )


def shell_confinement(
    policy: Policy, agent: Agent, where: Whereabouts, *, reads: Sequence[str], writes: Sequence[str]
) -> Confinement:
    """The confinement of an agent's shell commands. ``reads``, ``writes``: the prefixes of its grants on disk.

    Commands start in the root ``shared``, which is readable; everything else comes from grants. A write grant that
    covers a read grant wins.
    """
    start = where.roots.get(SHARED)
    read = [path for path in (*([start] if start else []), *reads) if not any(covers(one, path) for one in writes)]
    cpu_s, memory = exec_limits(agent.capabilities)
    return Confinement(
        places=_places([*((path, PlaceUse.READ) for path in read), *((path, PlaceUse.WRITE) for path in writes)]),
        bounds=ProcessBounds(cpu_s=cpu_s, memory_bytes=memory),
        folder=start or "/",
        subject=SHELL_SUBJECT,
        **_common(policy, agent, where),
    )


_ORDER = (PlaceUse.READ, PlaceUse.SNAPSHOT, PlaceUse.WRITE)


def _places(given: Iterable[tuple[str, PlaceUse]]) -> tuple[Place, ...]:
    """Each path once, outer places before inner ones; of two uses of one path the wider counts."""
    found: dict[str, PlaceUse] = {}
    for path, use in given:
        found[path] = max(found.get(path, use), use, key=_ORDER.index)
    return tuple(Place(path, use) for path, use in sorted(found.items(), key=lambda one: one[0].split("/")))


def _common(policy: Policy, agent: Agent, where: Whereabouts) -> _Common:
    trees = [_tree(policy, name, path, is_refused=name in where.refused) for name, path in where.sources.items()]
    vault = where.roots.get(VAULT)
    return _Common(
        trees=tuple(trees),
        closed=tuple(dict.fromkeys((*where.closed, *([vault] if vault else [])))),
        fixed=where.fixed,
        hosts=confinement_hosts(agent),
        allow_private=policy.web.allow_private,
        agent_id=agent.agent_id,
    )


def _tree(policy: Policy, source_id: str, base: str, *, is_refused: bool) -> Tree:
    source = policy.source(source_id)
    if source is None or is_refused:
        return Tree(base, Permission.NONE)
    return Tree(base, source.default_permission, source.permission_rules)


def confinement_hosts(agent: Agent) -> tuple[str, ...]:
    """The host patterns from which the agent may fetch, or to which it may send."""
    grants = [one for one in agent.capabilities if isinstance(one, NetRead | NetWrite)]
    hosts = dict.fromkeys(host for one in grants for host in one.allowlist)
    return (EVERY_HOST,) if any(map(is_every_host, hosts)) else tuple(hosts)


def confinement_words(policy: Policy, agent: Agent, tool: str, origin: str) -> str:
    """A short description of the confinement of a tool for the agent; empty for a tool without a process."""
    if (catalog := policy.catalog(origin)) is not None and (catalog.command is not None or catalog.module):
        uses = (f"{place} ({use})" for place, use in (catalog.places or {}).items())
        confine, given = catalog.confine, ", ".join(uses) or "no place"
    elif catalog is None and tool == SHELL_SUBJECT:
        confine, given = policy.shell.confine, "its grants"
    else:
        return ""
    if confine is Confine.NONE:
        return "not confined"
    if catalog is not None and catalog.module:
        return f"a module with {given}, and no network"
    return f"confined to {given}; hosts: {', '.join(confinement_hosts(agent)) or 'none'}"


_EVERY = "*"
_TOP = "/"


def grants_of(agent: Agent, kind: CapabilityKind) -> list[tuple[int, Capability]]:
    """The agent's capabilities of that kind, with their place in the list."""
    return [(index, held) for index, held in enumerate(agent.capabilities) if kind_of(held) is kind]


def hosts_of(capability: Capability) -> tuple[str, ...]:
    """The host patterns of a capability."""
    return capability.allowlist if isinstance(capability, NetRead | NetWrite) else ()


def names_of(capability: Capability) -> tuple[str, ...]:
    """The tables or variables of a capability."""
    if isinstance(capability, DbRead | DbWrite):
        return capability.tables
    return capability.names if isinstance(capability, EnvRead) else ()


def prefixes_of(capability: Capability, folder: str | None, real: Callable[[str], str] = os.path.realpath) -> list[str]:
    """The absolute prefixes of a capability, with present links resolved by ``real``."""
    written = capability.prefixes if isinstance(capability, FsRead | FsWrite) else ()
    found = (_resolve(prefix, folder, real) for prefix in written)
    return [prefix for prefix in found if prefix is not None]


def covers_name(names: Sequence[str], name: str) -> bool:
    """Tell whether a list of exact names contains ``name``; ``*`` contains all names."""
    return _EVERY in names or name in names


def file_prefixes(state: CallState) -> tuple[str, ...]:
    """Every prefix that the agent may read or write below."""
    agent = state.agent.agent if state.agent is not None else None
    held, ports = agent.capabilities if agent is not None else (), state.ports
    return tuple(prefix for capability in held for prefix in prefixes_of(capability, ports.folder, ports.real))


def bounds_of(bounds: ResourceBounds, kinds: Iterable[CapabilityKind], agent: Agent) -> ResourceBounds:
    """The tool's own ``bounds``, narrowed to the agent's grants of the ``kinds`` that an operation needs.

    Of several grants of one kind the widest counts; a grant without a limit keeps the tool's own.
    """
    needed = frozenset(kinds)
    cpu_s, memory = bounds.cpu_s, bounds.memory_bytes
    if CapabilityKind.EXEC in needed:
        granted_cpu_s, granted_memory = exec_limits(agent.capabilities)
        cpu_s, memory = _narrower(cpu_s, granted_cpu_s), _narrower(memory, granted_memory)
    if CapabilityKind.WASM_EXEC in needed:
        modules = [one for _, one in grants_of(agent, CapabilityKind.WASM_EXEC) if isinstance(one, WasmExec)]
        memory = _narrower(memory, widest([one.memory for one in modules]))
    return replace(bounds, cpu_s=cpu_s, memory_bytes=None if memory is None else int(memory))


def _resolve(prefix: str, folder: str | None, real: Callable[[str], str]) -> str | None:
    if check_prefix(prefix) is not None or (folder is None and not prefix.startswith(_TOP)):
        return None
    try:
        return real(os.path.join(folder or _TOP, prefix))  # noqa: PTH118 - plain texts
    except (OSError, ValueError):
        return None


def _narrower(own: float | None, grant: float | None) -> float | None:
    known = [limit for limit in (own, grant) if limit is not None]
    return min(known, default=None)
