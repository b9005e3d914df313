"""The confinement of what runs for an agent: shell commands, and what serves the tools of catalogs. It knows no disk.

The places of a server come from its catalog, those of a shell from the grants of the agent. Levels come from all
sources of the policy, whosever they are, and hosts from the agent's grants, also for a server: its calls are served by
a process of its own where its confinement is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypedDict

from gatewright.base.frozen import frozen
from gatewright.policy.confinement import Confinement, Place, ProcessBounds, Tree
from gatewright.policy.document import ROOT_NAMES, Agent, Catalog, Confine, PlaceUse, Policy
from gatewright.policy.granted import exec_limits
from gatewright.policy.hostpattern import EVERY_HOST, is_every_host
from gatewright.policy.kinds.capability import NetRead, NetWrite
from gatewright.policy.permission import Permission
from gatewright.policy.prefix import covers


class _Shared(TypedDict):
    """The parts that the confinements of one agent have in common."""

    trees: tuple[Tree, ...]
    closed: tuple[str, ...]
    fixed: tuple[str, ...]
    hosts: tuple[str, ...]
    allow_private: bool
    agent_id: str


SHELL_SUBJECT = "shell_exec"
"""Whose confinement that of shell commands is."""
SHARED, _, VAULT = ROOT_NAMES


@frozen
class Whereabouts:
    """The paths on disk of what a policy names: absolute, without links and ``..``.

    ``sources`` by id; nothing of those in ``refused`` may be used. ``closed``: what no process sees, ``fixed``: what
    none changes.
    """

    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    refused: frozenset[str] = frozenset()
    roots: Mapping[str, str] = field(default_factory=dict[str, str])
    closed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


@frozen
class ServerFiles:
    """The needs of a server's process on this system: the folder where it begins, its ``programs``, its variables.

    ``folders``: the places that are no sources, as written, and where they stand; one that may not be used is missing.
    """

    folder: str = "/"
    folders: Mapping[str, str] = field(default_factory=dict[str, str])
    programs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def confinement_of(
    policy: Policy, agent: Agent, catalog: Catalog, where: Whereabouts, files: ServerFiles
) -> Confinement:
    """Tell what exists for the process that serves the calls of an agent to a catalog.

    A source that the agent may not use is no place for its calls. It begins in the folder of its catalog where that is
    there for it: in a place, or around one.
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
        **_shared(policy, agent, where),
    )


def shell_confinement(
    policy: Policy, agent: Agent, where: Whereabouts, *, reads: Sequence[str], writes: Sequence[str]
) -> Confinement:
    """Tell what exists for the shell commands of an agent. ``reads``, ``writes``: the prefixes of its grants on disk.

    The root ``shared``, in which commands begin, is read; all else is granted. Where a grant to write covers one to
    read, it holds.
    """
    start = where.roots.get(SHARED)
    read = [path for path in (*([start] if start else []), *reads) if not any(covers(one, path) for one in writes)]
    cpu_s, memory = exec_limits(agent.capabilities)
    return Confinement(
        places=_places([*((path, PlaceUse.READ) for path in read), *((path, PlaceUse.WRITE) for path in writes)]),
        bounds=ProcessBounds(cpu_s=cpu_s, memory_bytes=memory),
        folder=start or "/",
        subject=SHELL_SUBJECT,
        **_shared(policy, agent, where),
    )


_ORDER = (PlaceUse.READ, PlaceUse.SNAPSHOT, PlaceUse.WRITE)


def _places(given: Iterable[tuple[str, PlaceUse]]) -> tuple[Place, ...]:
    """Each path once, in order: what lies in another place comes after it. Of two uses of one path the wider counts."""
    found: dict[str, PlaceUse] = {}
    for path, use in given:
        found[path] = max(found.get(path, use), use, key=_ORDER.index)
    return tuple(Place(path, use) for path, use in sorted(found.items(), key=lambda one: one[0].split("/")))


def _shared(policy: Policy, agent: Agent, where: Whereabouts) -> _Shared:
    trees = [_tree(policy, name, path, is_refused=name in where.refused) for name, path in where.sources.items()]
    vault = where.roots.get(VAULT)
    return _Shared(
        trees=tuple(trees),
        closed=tuple(dict.fromkeys((*where.closed, *([vault] if vault else [])))),
        fixed=where.fixed,
        hosts=hosts_of(agent),
        allow_private=policy.web.allow_private,
        agent_id=agent.agent_id,
    )


def _tree(policy: Policy, source_id: str, base: str, *, is_refused: bool) -> Tree:
    source = policy.source(source_id)
    if source is None or is_refused:
        return Tree(base, Permission.NONE)
    return Tree(base, source.default_permission, source.permission_rules)


def hosts_of(agent: Agent) -> tuple[str, ...]:
    """The patterns of the hosts that the agent may fetch from or send to."""
    grants = [one for one in agent.capabilities if isinstance(one, NetRead | NetWrite)]
    hosts = dict.fromkeys(host for one in grants for host in one.allowlist)
    return (EVERY_HOST,) if any(map(is_every_host, hosts)) else tuple(hosts)


def confinement_words(policy: Policy, agent: Agent, tool: str, origin: str) -> str:
    """The confinement under which a tool runs when the agent calls it, in short; empty for one without a process."""
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
    return f"confined to {given}; hosts: {', '.join(hosts_of(agent)) or 'none'}"
