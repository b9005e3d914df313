"""Works out the confinement of each process that a workspace may start, and returns changes from private copies.

An unchanged confinement stays the same value, so that the owner of a process only needs to compare.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gatewright.adapters.server_process import loop_thread
from gatewright.base.amount import new_id
from gatewright.base.errors import NobodyAnswered, ToolFailure, WorkspaceError
from gatewright.base.printable import printable
from gatewright.gate import Approval, ApprovalRequest, AuditEntry, AuditUnavailable, Log, PermissionBroker, RowKind
from gatewright.gate.approval import REFUSED_CODE, Ask
from gatewright.gate.scope import (
    ServerFiles,
    Whereabouts,
    confinement_of,
    prefixes_of,
    shell_confinement,
)
from gatewright.gate.stages.approval import MOST_REASON
from gatewright.policy.capability import FsRead, FsWrite
from gatewright.policy.delegation import narrow
from gatewright.policy.document import Agent, Catalog, Confine, PermissionRule, PlaceUse, Policy, is_folder_place
from gatewright.policy.target import Confinement, Place, Tree
from gatewright.policy.verdict import Action, Permission
from gatewright.record.process import renew_after_fork
from gatewright.sources.ground import closed_places
from gatewright.sources.writeback import Change, GivenBack, WriteBack
from gatewright.workspace.attachment import Attachments
from gatewright.workspace.commandfiles import Guarded, locate, program_files, shim_fault

_OURS = ("PATH", "HOME")
"""Variables that a room sets itself, whatever a catalog names."""
_USUAL = ("LANG",)
"""Variables of every process."""
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_Key = tuple[str, str | None]


class Confinements:
    """The confinements of one workspace.

    Besides what the policy says, ``closed`` is hidden and ``fixed`` read-only in each. So are ``hosts``, the files of
    coding agents, but those for which something would have to be made in the top folder of a source, since then nothing
    at all could be made there.
    """

    def __init__(
        self,
        folder: Path,
        policy: Callable[[], Policy],
        attachments: Attachments,
        *,
        closed: Sequence[Path],
        hosts: Callable[[], Sequence[Path]],
        fixed: Callable[[], Sequence[Path]],
    ) -> None:
        self._hosts = hosts
        self._folder, self._policy, self._attachments = folder, policy, attachments
        self._closed, self._fixed = closed, fixed
        self._made: dict[_Key, tuple[Policy, object, Confinement]] = {}

    def of(self, agent_id: str, catalog_id: str | None) -> Confinement | None:
        """Return the confinement of a catalog's process for an agent, or (None) of the agent's shell commands. A
        catalog's module has no network and no variables.

        An empty ``agent_id`` means that the process only lists its tools, for no agent and without network. None if
        nothing is confined: under ``confine = "none"``, and for a catalog without its own process. Raises
        WorkspaceError for an unknown agent or catalog.
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
        """Return the confinement of a program that a person runs in ``start`` under an agent's policy: that of its
        shell commands, with ``places`` (sources by id, and folders) and the program's own needs.

        Raises WorkspaceError for an unknown agent or place.
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
                raise WorkspaceError(f"no source or file is called `{place}`")
            given[path] = use
        if (fault := shim_fault(words[0], start)) is not None:
            raise WorkspaceError(": ".join(fault))
        guarded = Guarded((os.path.realpath(self._folder), *where.closed), tuple(where.sources.values()))
        program = locate(words[0], start)
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

    def of_host(
        self,
        agent_id: str,
        start: Path,
        project: Path,
        files: Callable[[Path], Iterable[Path]],
        within: Sequence[str] = (),
    ) -> Confinement | None:
        """Return the confinement of a command that a coding agent, which works in ``project``, runs in ``start``: that
        of its shell commands, with its sources by their levels, and without the policy; None under
        ``confine = "none"``.

        ``files``: those in which coding agents look for hooks of a project. The project and the sources around it are
        projects; the folders of missing files are made, since a name in a folder that is not there cannot be closed.
        Levels say the same of all that would lie in a folder where other names must be free. ``within``: agents whose
        sources and grants the command may not exceed. Raises WorkspaceError for an unknown agent.
        """
        shell = self.of(agent_id, None)
        if shell is None:
            return None
        policy = self._policy()
        where, agent = self._whereabouts(policy), narrow(policy, policy.agents[agent_id], within)
        if within:
            shell = self._shell(policy, agent)
        given = {one.path: one.use for one in shell.places}
        for source_id, path in where.sources.items():
            if source_id not in where.refused and (agent.sources is None or source_id in agent.sources):
                given[path] = PlaceUse.WRITE
        work = Path(os.path.realpath(project))
        around = [Path(one) for one in where.sources.values() if work.is_relative_to(one)]
        tops = tuple(dict.fromkeys((work, *around) if around else ()))
        hooks = [one for top in tops for one in _to_close(top, files(top))]
        return replace(
            shell,
            trees=(*shell.trees, *(_levels(top, files(top)) for top in tops)),
            places=tuple(Place(path, given[path]) for path in sorted(given, key=lambda one: one.split("/"))),
            closed=tuple(dict.fromkeys((*_real(hooks), *where.closed, *shell.closed, *shell.fixed))),
            fixed=(),
            etc=_git_settings(work),
            folder=os.path.realpath(start),
            takes_back=True,
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
        program = locate(command, start)
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
        tops = {folder.path for _, folder in opened}
        hosts = (one for one in self._hosts() if os.path.lexists(one) or _nearest(one) not in tops)
        return Whereabouts(
            {source.source_id: folder.path for source, folder in opened},
            frozenset(source.source_id for source, folder in opened if folder.refused),
            {name: folder.path for name, folder in self._attachments.roots().items() if not folder.refused},
            _real((*self._closed, *hosts, *closed_places(policy, self._folder))),
            _real(self._fixed()),
        )


def to_be_listed(policy: Policy, catalog: Catalog, folder: Path, closed: Sequence[Path]) -> Confinement | None:
    """Return the confinement of an unopened policy's server in ``folder`` that only lists its tools.

    The folders among its places are read-only, and it gets no source.
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


def _to_close(top: Path, files: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that are there, or can be closed, with a folder of their own, before they are."""
    for path in files:
        folder = path.parent
        if folder != top and os.path.realpath(folder) == str(folder):
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path) or (folder != top and folder.is_dir()):
            yield path


_GIT_S = 5.0
_NAMED = "^user\\.(name|email)$"
"""The only settings of a person's git that a room needs; others name programs, and keys."""


def _git_settings(project: Path) -> dict[str, str]:
    """Return the text of ``gitconfig`` for a room: who commits, as the person's own settings say for the project."""
    words = ("git", "config", "--global", "--includes", "--null", "--get-regexp", _NAMED)
    names = ("PATH", "HOME", "XDG_CONFIG_HOME")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    try:
        said = subprocess.run(words, cwd=project, env=environment, capture_output=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = ["[advice]", "ignoredHook = false", "[user]"]
    for one in said.stdout.decode("utf-8", "replace").split("\0")[:-1]:
        key, _, value = one.partition("\n")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'{key.removeprefix("user.")} = "{quoted}"')
    return {"gitconfig": "\n".join(lines) + "\n"}


def _levels(top: Path, files: Iterable[Path]) -> Tree:
    """Return the levels that close files of a folder, there and in each folder below."""
    names = dict.fromkeys(str(one.relative_to(top)) for one in files)
    return Tree(str(top), Permission.ADMIN, tuple(PermissionRule(f"**/{one}", Permission.NONE) for one in names))


def _nearest(path: Path) -> str:
    """Return the real path of the nearest folder above that exists."""
    return os.path.realpath(next(one for one in path.parents if one.is_dir()))


def _real(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return each path as written and without links, once."""
    return tuple(dict.fromkeys(one for path in paths for one in (str(path), os.path.realpath(path))))


_CLOSE_S = 5.0
_UNANSWERED = frozenset({"approval-timed-out", "approval-unavailable"})
"""Codes of answers that end all further questions."""
_DONE = {Action.APPEND: "wrote", Action.OVERWRITE: "overwrote", Action.DELETE: "deleted"}


class CopyReturns:
    """Makes a `WriteBack` for each room with copies. ``kept``: the folder for unwritten changes.

    ``now`` returns the present confinement of a catalog's server for an agent; it may raise WorkspaceError.
    """

    def __init__(
        self,
        kept: Path,
        broker: PermissionBroker,
        audit: Log,
        now: Callable[[str, str], Confinement | None],
    ) -> None:
        self._kept, self._broker, self._audit, self._now = kept, broker, audit, now
        self._is_closed = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in the child of a fork, without the parent's questions."""
        self._working: set[asyncio.Task[None]] = set()
        self._asking: set[asyncio.Task[Approval]] = set()

    def of_server(self, confinement: Confinement, served: Collection[str]) -> WriteBack:
        """Return the write-back for a server's process, which does not wait for answers; later edits count.

        ``served``: the agents whose calls it served until its end.
        """

        def now() -> tuple[Confinement, ...]:
            agents = _agents(confinement, served)
            with suppress(WorkspaceError):
                found = [self._now(one, confinement.subject) for one in agents]
                return tuple(one for one in found if one is not None) if None not in found else ()
            return ()

        def record(what: GivenBack) -> None:
            self._record(_agents(confinement, served)[0], confinement.subject, what)

        return WriteBack(
            confinement,
            self._kept,
            _Operator(self, confinement, served),
            told=record,
            now=now,
            takes_back=confinement.takes_back,
        )

    def of_program(self, confinement: Confinement, heard: Callable[[GivenBack], None]) -> WriteBack:
        """Return the write-back for a program that ends with this process, so nobody can be asked; ``heard`` receives
        all outcomes.
        """

        def record(what: GivenBack) -> None:
            self._record(confinement.agent_id, confinement.subject, what)
            heard(what)

        return WriteBack(confinement, self._kept, told=record)

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Run work that asks in the thread of the loop."""
        loop_thread().begin(self._carry_out(work))

    async def _carry_out(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working.add(task)
        try:
            await task
        finally:
            self._working.discard(task)

    async def is_attended(self) -> bool:
        """Tell whether an operator is present and the workspace is open."""
        return not self._is_closed and await self._broker.is_attended()

    async def answer(self, request: ApprovalRequest) -> Approval:
        """Return the operator's answer. Raises NobodyAnswered."""
        if self._is_closed:
            raise NobodyAnswered("the workspace is closed")
        task = asyncio.ensure_future(self._broker(request))
        self._asking.add(task)
        try:
            approval = await task
        except asyncio.CancelledError:
            raise NobodyAnswered("the workspace is closed") from None
        finally:
            self._asking.discard(task)
        return await asyncio.to_thread(self._broker.spend, approval) if approval.grant_id else approval

    def close(self) -> None:
        """Withdraw the questions; wait for an unfinished write, a few seconds at most."""
        self._is_closed = True
        if self._working:
            with suppress(TimeoutError):
                loop_thread().wait(self._end(), _CLOSE_S)

    async def _end(self) -> None:
        for one in [*self._asking]:
            one.cancel()
        if working := {*self._working}:
            await asyncio.wait(working)

    def _record(self, agent_id: str, subject: str, what: GivenBack) -> None:
        with suppress(AuditUnavailable):  # the effect has happened, and calls stop until the log works again
            self._audit.append([AuditEntry(RowKind.COPY_RETURNED, "", agent_id, "", subject, body=what.to_json())])


def _agents(confinement: Confinement, served: Collection[str]) -> list[str]:
    """List the agents whose calls a process served, else its owner: at least one name, which may be empty."""
    return sorted(served) or [confinement.agent_id]


class _Operator:
    """The operator's approval of changes by the processes of one room."""

    def __init__(self, returns: CopyReturns, confinement: Confinement, served: Collection[str]) -> None:
        self._confinement, self._served = confinement, served
        self._answer, self.is_attended, self.begin = returns.answer, returns.is_attended, returns.begin

    async def __call__(self, change: Change) -> str:
        agents, subject = _agents(self._confinement, self._served), self._confinement.subject
        did, key = _DONE[change.action], new_id("copy")
        others = f", where it served {', '.join(f'`{one}`' for one in agents)}" if len(agents) > 1 else ""
        reason = f"`{subject}` {did} `{printable(change.path)}` in its private copy{others}, and the level there asks"
        approval = await self._answer(
            ApprovalRequest(
                agent_id=agents[0],
                tool=subject,
                operation=str(change.action),
                arguments={"path": printable(change.path)},
                reasons=(reason,),
                diff=change.diff,
                scope=None,
                digest=key,
                asks=(Ask(key, once_only=True, about=printable(change.path)),),
            )
        )
        who = approval.who or "the operator"
        if approval.approved is True:
            return who
        if approval.code in _UNANSWERED:
            raise NobodyAnswered(approval.reason)
        said = f": {approval.reason[:MOST_REASON]}" if approval.reason else ""
        raise ToolFailure(
            f"its level asks, and {who} refused it{said}"
            if approval.code == REFUSED_CODE
            else f"its level asks, and it could not be asked{said}"
        )
