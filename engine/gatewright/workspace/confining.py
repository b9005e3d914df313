"""The confinement of each process that a workspace may start, made of its policy and of where its folders stand.

The same value as long as nothing of it changed, so that whoever keeps a process for one need only compare.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.gate.scope import ServerFiles, Whereabouts, confinement_of, prefixes_of, shell_confinement
from gatewright.policy.document import Agent, Catalog, Confine, PlaceUse, Policy, is_folder_place
from gatewright.policy.kinds.capability import FsRead, FsWrite
from gatewright.policy.target import Confinement, Place
from gatewright.workspace.attachment import Attachments
from gatewright.workspace.commandfiles import Guarded, located, program_files, shim_fault
from gatewright.workspace.location import closed_places

_OURS = ("PATH", "HOME")
"""Variables that a room gives itself, whatever a catalog names."""
_USUAL = ("LANG",)
"""Variables that every process gets."""
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_Key = tuple[str, str | None]


class Confinements:
    """Those of one workspace. ``closed``: what no process sees, ``fixed``: what none changes, beside what is policy."""

    def __init__(
        self,
        folder: Path,
        policy: Callable[[], Policy],
        attachments: Attachments,
        *,
        closed: Sequence[Path],
        fixed: Callable[[], Sequence[Path]],
    ) -> None:
        self._folder, self._policy, self._attachments = folder, policy, attachments
        self._closed, self._fixed = closed, fixed
        self._made: dict[_Key, tuple[Policy, object, Confinement]] = {}

    def of(self, agent_id: str, catalog_id: str | None) -> Confinement | None:
        """The confinement of what runs the tools of a catalog when it serves the agent, or (None) of the agent's shell
        commands. The module of a catalog has no network and no variables.

        An empty ``agent_id``: when it serves no agent and is asked what its tools are, without a host. None where
        nothing is confined: by ``confine = "none"``, and where no process of its own serves the catalog. Raises
        WorkspaceError for an agent or a catalog that is not there.
        """
        policy, mark = self._policy(), self._attachments.mark
        agent = policy.agents.get(agent_id) if agent_id else Agent("")
        if agent is None:
            raise WorkspaceError(f"no agent `{agent_id}`")
        catalog = None
        if catalog_id is not None:
            catalog = policy.catalog(catalog_id)
            if catalog is None:
                raise WorkspaceError(f"no catalog `{catalog_id}`")
        if not (policy.shell.confine is Confine.POLICY if catalog is None else catalog.takes_places):
            return None
        key, held = (agent_id, catalog_id), self._made.get((agent_id, catalog_id))
        if held is not None and held[0] is policy and held[1] is mark:
            return held[2]
        fresh = self._shell(policy, agent) if catalog is None else self._server(policy, agent, catalog)
        if held is not None and held[2] == fresh:
            fresh = held[2]
        self._made[key] = policy, mark, fresh
        return fresh

    def of_program(
        self, agent_id: str, words: Sequence[str], start: Path, places: Mapping[str, PlaceUse]
    ) -> Confinement:
        """The confinement of a program that somebody runs in ``start`` under the policy of an agent: what holds for its
        shell commands, with ``places`` (sources by id, and folders) and what the program needs to start.

        Raises WorkspaceError for an agent or a place that is not there.
        """
        policy = self._policy()
        agent = policy.agents.get(agent_id)
        if agent is None:
            raise WorkspaceError(f"no agent `{agent_id}`")
        where, shell = self._whereabouts(policy), self._shell(policy, agent)
        given = {one.path: one.use for one in shell.places}
        for place, use in places.items():
            path = where.sources.get(place) or os.path.realpath(start / place)
            if place in where.refused or not Path(path).exists():
                raise WorkspaceError(f"no source and no file is called `{place}`")
            given[path] = use
        if (fault := shim_fault(words[0], start)) is not None:
            raise WorkspaceError(": ".join(fault))
        guarded = Guarded((os.path.realpath(self._folder), *where.closed), tuple(where.sources.values()))
        program = located(words[0], start)
        own = "" if program is None else f"{Path(program).parent}:"
        names = ("LANG", "TERM", "COLORTERM", "TZ")
        return replace(
            shell,
            places=tuple(Place(path, given[path]) for path in sorted(given, key=lambda one: one.split("/"))),
            programs=program_files(words[0], words[1:], start, guarded),
            environment={
                "PATH": f"{own}{_SYSTEM_PATH}",
                **{name: os.environ[name] for name in names if name in os.environ},
            },
            folder=os.path.realpath(start),
            subject=f"run {Path(words[0]).name}",
        )

    def _shell(self, policy: Policy, agent: Agent) -> Confinement:
        folder = str(self._folder)
        reads, writes = (
            [path for one in agent.capabilities if isinstance(one, kind) for path in prefixes_of(one, folder)]
            for kind in (FsRead, FsWrite)
        )
        return shell_confinement(policy, agent, self._whereabouts(policy), reads=reads, writes=writes)

    def _server(self, policy: Policy, agent: Agent, catalog: Catalog) -> Confinement:
        where, start = self._whereabouts(policy), self._folder / (catalog.cwd or ".")
        top = os.path.realpath(self._folder)
        guarded = Guarded((top, *where.closed, *where.roots.values()), tuple(where.sources.values()))
        command = catalog.command or ""
        program = located(command, start)
        own = "" if program is None else f"{Path(program).parent}:"
        names = (*_USUAL, *(name for name in catalog.env if name not in _OURS))
        files = ServerFiles(
            os.path.realpath(start),
            self._attachments.places(catalog.catalog_id),
            program_files(command, catalog.args, start, guarded),
            {"PATH": f"{own}{_SYSTEM_PATH}", **{name: os.environ[name] for name in names if name in os.environ}},
        )
        held = confinement_of(policy, agent, catalog, where, files)
        return replace(held, hosts=(), allow_private=False, environment={}) if catalog.module else held

    def _whereabouts(self, policy: Policy) -> Whereabouts:
        opened = self._attachments.sources(policy)
        return Whereabouts(
            {source.source_id: folder.path for source, folder in opened},
            frozenset(source.source_id for source, folder in opened if folder.refused),
            {name: folder.path for name, folder in self._attachments.roots().items() if not folder.refused},
            _real((*self._closed, *closed_places(policy, self._folder))),
            _real(self._fixed()),
        )


def to_be_listed(policy: Policy, catalog: Catalog, folder: Path, closed: Sequence[Path]) -> Confinement | None:
    """The confinement of the process of a policy's server in ``folder`` that nobody has opened, only to be asked what
    its tools are: its folders among the places, to be read, and no source.
    """
    if not catalog.is_confined:
        return None
    closed = (*closed, *closed_places(policy, folder))
    start = folder / (catalog.cwd or ".")
    top = os.path.realpath(folder)
    named = [place for place in catalog.places or {} if is_folder_place(place)]
    read = replace(catalog, places=dict.fromkeys(named, PlaceUse.READ))
    files = ServerFiles(
        os.path.realpath(start),
        {place: os.path.realpath(folder / place) for place in named},
        program_files(catalog.command or "", catalog.args, start, Guarded((top, *_real(closed)))),
        {"PATH": _SYSTEM_PATH},
    )
    return confinement_of(policy, Agent(""), read, Whereabouts(closed=_real(closed), fixed=(top,)), files)


def _real(paths: Sequence[Path]) -> tuple[str, ...]:
    """Each as it is called and without links, once."""
    return tuple(dict.fromkeys(one for path in paths for one in (str(path), os.path.realpath(path))))
