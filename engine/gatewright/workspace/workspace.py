"""One open workspace: its edited policy, its gate, its sources.

The way of an edit below the app: ``check`` (no effect), ``apply`` (the gate swaps its snapshot), ``save`` (the text on
disk gets the difference between the saved and the present policy). It has more than 450 lines because callers reach
everything below through this one class: most methods hand on to the part that does the work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gatewright.base.amount import Clock, SystemClock
from gatewright.base.errors import (
    Address,
    EditRefused,
    NotSupported,
    Place,
    PolicyInvalid,
    Problem,
    Severity,
    ToolFailure,
    WorkspaceError,
)
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.builtins import Message, MessagePort, ShellPort
from gatewright.gate import (
    Alarm,
    ApprovalLimits,
    ApprovalRequest,
    Approver,
    AuditEntry,
    Decision,
    Gate,
    Log,
    PermissionBroker,
    RowKind,
    Session,
    StageTrace,
    Stop,
    StopSwitch,
    is_durable,
)
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.archive import Archive, Conversations
from gatewright.memory.block_store import adopt_memory, foreign_stores
from gatewright.memory.notes import NoteBook
from gatewright.policy.document import PINS, Catalog, CatalogType, PlaceUse, Policy, Questions, Written
from gatewright.policy.policyedit import add_catalog
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import new_identity
from gatewright.policy.rulematch import all_with_settings
from gatewright.policy.target import Refusal
from gatewright.policy.verdict import SafetyTier, split_name
from gatewright.record.folder import StatePlace
from gatewright.record.process import fork_safe_lock
from gatewright.schema import Schema
from gatewright.schema.walk import as_object, objects
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.ground import closed_places, is_inside, list_folders, policy_path_of, resolve_base
from gatewright.sources.stream import Streams
from gatewright.sources.watch import FolderNews, FolderWatch, Noticed, SourceWatching
from gatewright.tools import Tool, ToolExecutionContext
from gatewright.tools.definition import read_definitions
from gatewright.tools.host_tool import MCP_NAMES, names_for_host, with_accepted, with_tools
from gatewright.tools.pin import Listing, Pin, write_pin
from gatewright.workspace.assembly import CopyOf, Folders, assemble
from gatewright.workspace.attachment import SourceWatches, agent_blocks
from gatewright.workspace.catalog import as_it_came
from gatewright.workspace.manifest import manifest_at, manifest_text, parse_json, shipped_host
from gatewright.workspace.pins import CatalogState, ServerPins, store
from gatewright.workspace.policy_reader import PolicyReader, PolicyState
from gatewright.workspace.policytext import SavedViews, WorkspaceImage
from gatewright.workspace.program import (
    BlockSource,
    Program,
    ProgramSources,
    ProgramTools,
    StreamSource,
    WorkspaceSources,
)
from gatewright.workspace.trust import HOOK_FILES, TrustRecords, gated_hosts, host_places, server_digest, socket_places

if TYPE_CHECKING:
    from gatewright.adapters.answer_page import AnswerPages
    from gatewright.adapters.confine import Confiner, Room
    from gatewright.adapters.host_export import Exported
    from gatewright.adapters.messages import Messages
    from gatewright.adapters.shell import Shells
    from gatewright.adapters.subprocess_tool import ToolAdapter
    from gatewright.adapters.telemetry import MeterProvider, TracerProvider
    from gatewright.compile.view import AgentView
    from gatewright.gate import Outcome, SelfCheck, SessionStore
    from gatewright.gate.callrun import StepWatch
    from gatewright.gate.gate import OnAsk
    from gatewright.gate.sessionstore import ServingBook
    from gatewright.memory.agentblocks import AgentContext
    from gatewright.memory.archive import Inbox
    from gatewright.memory.blocks import BlockService
    from gatewright.policy.delegation import Lineage
    from gatewright.policy.edit import ChangeSet, Edit
    from gatewright.policy.rightsdiff import PolicyDiff
    from gatewright.policy.target import Confinement, View
    from gatewright.policyfile.reader import Fault
    from gatewright.schema import Survey
    from gatewright.sources.ground import Ground
    from gatewright.sources.roomplan import RoomPlanner
    from gatewright.workspace.attachment import PathRow
    from gatewright.workspace.confining import Confinements, CopyReturns
    from gatewright.workspace.export import BoundPath, ExportPlan
    from gatewright.workspace.pins import CatalogTools
    from gatewright.workspace.sandbox import Sandbox
    from gatewright.workspace.servers import Servers
    from gatewright.workspace.trust import TokenBook

_NO_TOOL = "this tool is not available; go on without it"
_SHOWN = 100
_MOST_FILES = 100
"""The most adopted memory files that the log names."""


class Workspace:
    """Everything that the app and the commands do with one policy file. Open it with ``Workspace.open``.

    ``policy`` is the edited one, ``problems`` the warnings of its reading; ``revision`` grows with every edit.
    ``broker`` holds the questions and standing approvals, shared with other processes: it approves every call without
    another approver.
    """

    problems: tuple[Problem, ...]
    revision: int = 0

    def __init__(
        self,
        policy_path: Path,
        folders: Folders,
        clock: Clock,
        program: Program | None = None,
        *,
        trust: bool = False,
        durable: bool = False,
        approvals: ApprovalLimits | None = None,
        manifests: Mapping[str, bytes] | None = None,
        copy_of: CopyOf | None = None,
        image: WorkspaceImage | None = None,
    ) -> None:
        self.policy_path = policy_path
        self.folder = policy_path.parent
        self._folders, self._clock = folders, clock
        self._program = program or Program.of()
        self.tools = self._program.tools
        """The tools of the program, which may add some while the workspace is open."""
        self._changing, self._is_copy, self._ends_stopped = fork_safe_lock(), copy_of is not None, False
        self._records, self._saved_views = TrustRecords(folders.keys), SavedViews()
        self._reader = PolicyReader(
            policy_path,
            lambda: self._program.known,
            self._records,
            lambda: self.gate.snapshot().facts,
            given=manifests or {},
            runner=self.catalog_tools.runner,
            added=lambda: self._program.sources.ids,
        )
        if image is None:
            self._state, self.problems = self._reader.read(None, trust=trust)
        else:
            self._state, self.problems = self._reader.parse(image.text, image.saved), ()
        self._host_names: dict[str, tuple[PolicyState, dict[str, frozenset[str]]]] = {}
        self._pins = ServerPins(policy_path, self._records, lambda: self._state, self._replace_pin)
        self._parts = assemble(
            self._state,
            policy_path,
            folders,
            clock,
            self._program,
            self._records,
            durable=durable,
            limits=approvals,
            shell=ShellPort(self._run_shell, self._shell_isolation, self._shell_obstacle),
            messages=MessagePort(self._send_message, self._message_fault),
            copy_of=copy_of,
            stops=image is None,
        )
        self._watches = SourceWatches(self.sources, lambda: self.policy)
        self.tools.serve(self._parts.registry, self._take_in_program)
        self._program.sources.serve(self._take_in_program)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        tools: Iterable[Tool] = (),
        sources: Iterable[BlockSource | StreamSource] = (),
        state: StatePlace | None = None,
        keys: Path | None = None,
        clock: Clock | None = None,
        trust: bool = False,
        durable: bool | None = None,
        approvals: ApprovalLimits | None = None,
    ) -> Self:
        """Open a policy file, or the ``policy.toml`` of a folder, by reading alone.

        ``tools`` and ``sources``: the program's own, beside the built-in ones. ``durable``: audit rows even survive a
        loss of power, which costs a disk write for each call; None: as ``GATEWRIGHT_DURABLE`` says. ``approvals``: how
        long a question to the broker waits, and how many one agent with one user may have.

        Raises WorkspaceError (missing, unreadable), PolicyInvalid (all problems at once), or AlreadyRegistered for a
        tool with the name and major version of another.
        """
        policy_path = policy_path_of(Path(path))
        folders = Folders.of(policy_path, state=state, keys=keys)
        folders.require_real()
        clock, lasting = clock or SystemClock(), is_durable(durable)
        program = Program.of(tools, sources)
        return cls(policy_path, folders, clock, program, trust=trust, durable=lasting, approvals=approvals)

    def image(self) -> WorkspaceImage:
        """Return everything that another process needs for the same workspace, as values to pickle."""
        policy, book = self._state.policy, self._state.book
        saved_text, saved = self._state.text.as_saved
        manifests = {**book.contents(policy.catalogs), **book.contents(policy.catalogs, outside=True)}
        folders = self._folders.state, self._folders.keys
        return WorkspaceImage(self.policy_path, folders, saved_text, saved, policy, manifests, self.tools.late)

    @classmethod
    def of_image(cls, image: WorkspaceImage, *, tools: Iterable[Tool] = ()) -> Self:
        """Rebuild the workspace of ``image`` for questions, not for saving, without reading policy and manifests again.

        ``tools``: those of the program. Raises PolicyInvalid.
        """
        return cls._of_image(image, Program(ProgramTools.of_late(tools, image.late), ProgramSources()))

    @classmethod
    def _of_image(cls, image: WorkspaceImage, program: Program) -> Self:
        folders, clock = Folders(*image.folders), SystemClock()
        found = cls(
            image.policy_path,
            folders,
            clock,
            program,
            manifests=image.manifests,
            image=image,
        )
        found.follow(image)
        return found

    def under(self, policy: Policy) -> Self:
        """Return the same workspace under another policy, for questions, not for saving; close it afterwards.

        Reads the text of the policy anew, so keep it off the GUI thread. Raises PolicyInvalid.
        """
        return self._of_image(replace(self.image(), policy=policy), self._program.twin())

    def follow(self, image: WorkspaceImage) -> bool:
        """Update this workspace from a later image; False if the image's file has been read again since."""
        text = self._state.text
        if image.text != text.saved and not text.keep_saved(image.saved, image.text):
            return False
        if image.policy is not self.policy:
            with self._changing:
                self._put_in_force(replace(self._state, policy=image.policy))
        return True

    @property
    def policy(self) -> Policy:
        """The policy in force, with all edits."""
        return self._state.policy

    @property
    def name(self) -> str:
        """The policy's name, else its folder's."""
        return self.policy.name or self.folder.name

    @property
    def gate(self) -> Gate:
        """The gate that enforces the present policy."""
        return self._parts.gate

    @property
    def state_folder(self) -> Path:
        """The folder of log, blocks, rates and approvals; its first write creates it."""
        return self._folders.state

    @property
    def is_shared(self) -> bool:
        """True if log, rates, questions, sessions and the stop lie in a shared state."""
        return self._folders.shared is not None

    @property
    def key_folder(self) -> Path:
        """The folder of the keys for that state, and of the records of trust."""
        return self._folders.keys

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that the file failed to load; None while all is well."""
        return self.gate.alarm

    @property
    def broker(self) -> PermissionBroker:
        """The broker of the operator's questions and standing approvals."""
        return self._parts.broker

    @property
    def stops(self) -> StopSwitch:
        """The stop of all agents, or of one, in every process of this state folder."""
        return self.gate.stops

    @property
    def audit(self) -> Log:
        """The log of all calls, to read and verify."""
        return self._parts.audit

    @property
    def tokens(self) -> TokenBook:
        """The tokens of the gateway's HTTP clients, in the key folder."""
        from gatewright.workspace.trust import TokenBook

        return TokenBook(self._folders.keys, self.policy_path, self._clock)

    @property
    def sessions(self) -> SessionStore:
        """The store of sessions between runs of a program, in the state folder."""
        return self._folders.sessions(self._clock, self._parts.audit)

    @once
    def serving(self) -> ServingBook:
        """The processes that serve this workspace to MCP clients (``gatewright serve``), with their clients."""
        from gatewright.gate.sessionstore import ServingBook

        return ServingBook(self._folders.state, self._folders.keys)

    def session(self, agent_id: str, session_id: str | None = None, *, user_id: str | None = None) -> Session:
        """Return a conversation of the agent: the one that ``sessions.save`` stored under that id, else a new one.

        Without an id: the agent's usual conversation with that user (by default the policy's user for the agent, or
        nobody), which counts calls without a session while this workspace is open. Raises WorkspaceError for an unknown
        agent, for too many users, and for an unreadable or forged session.
        """
        if session_id is None:
            return self.gate.session(agent_id, user_id=user_id)
        self.gate.view(agent_id)  # refuses an unknown agent
        return self.sessions.resume(session_id, agent_id=agent_id)

    @once
    def servers(self) -> Servers:
        """The MCP servers of the policy's catalogs; each starts on request."""
        from gatewright.workspace.servers import Servers

        return Servers(
            self.folder,
            lambda: self.policy.catalogs,
            pin=lambda catalog: self.pin(catalog.catalog_id),
            trusts=lambda catalog: self._records.trusts_server(self.policy_path, catalog),
            record=self.record_listing,
            state=self._folders.state,
            agents=lambda: self.policy.agents,
            confinement=self._confinements.of,
            confiner=lambda: self.confiner,
            began=self._watch_stop,
        )

    @once
    def catalog_tools(self) -> CatalogTools:
        """The executor of the catalogs' tools; the first call creates it."""
        from gatewright.adapters.web import HttpAdapter
        from gatewright.workspace.pins import CatalogTools

        return CatalogTools(
            self.folder,
            lambda catalog_id: self.policy.catalog(catalog_id),  # noqa: PLW0108 the policy at that time
            servers=lambda: self.servers,
            adapters={
                CatalogType.HTTP: HttpAdapter,
                CatalogType.SUBPROCESS: self._subprocess_tools,
                CatalogType.WASM: self._wasm_tools,
            },
            pin=lambda catalog: self.pin(catalog.catalog_id),
            trusts=lambda catalog: self._records.trusts_server(self.policy_path, catalog),
            record=self.record_listing,
        )

    def _subprocess_tools(self) -> ToolAdapter:
        from gatewright.adapters.subprocess_tool import SubprocessTools

        def variables(catalog: Catalog) -> Mapping[str, str]:  # the first call makes the servers
            return self.servers.variables(catalog)

        return SubprocessTools(self.folder, self.confinement, lambda: self.confiner, variables)

    def _wasm_tools(self) -> ToolAdapter:
        from gatewright.adapters.wasm_tool import WasmTools

        def trusts(catalog: Catalog, module: str) -> bool:
            return self._records.trusts_server(self.policy_path, catalog, module)

        # neither exists while the policy is being read
        def confinement(agent_id: str, catalog: Catalog) -> Confinement:
            held = self.confinement(agent_id, catalog.catalog_id)
            if held is None:
                raise WorkspaceError(f"catalog `{catalog.catalog_id}` has no module any more")
            return held

        return WasmTools(self.folder, trusts, confinement, self._module_views)

    def _module_views(self, confinement: Confinement) -> Mapping[str, View]:
        return self._planner.whole(confinement)

    def why_not_given(self, agent_id: str, catalog_id: str) -> str:
        """Explain why a catalog's module cannot get its places for the agent; empty if it can. It looks at the disk.

        Raises WorkspaceError for an unknown agent or catalog.
        """
        from gatewright.adapters.wasm_tool import module_folders

        catalog, held = self.policy.catalog(catalog_id), self.confinement(agent_id, catalog_id)
        if catalog is None or not catalog.module or held is None:
            return ""
        try:
            module_folders(held, self.folder, self._module_views)
        except WorkspaceError as error:
            return str(error)
        return ""

    @once
    def _planner(self) -> RoomPlanner:
        from gatewright.sources.roomplan import RoomPlanner

        return RoomPlanner(self._folders.state / "rooms")

    @once
    def shells(self) -> Shells:
        """The executor of shell commands; the first command starts its first process."""
        from gatewright.adapters.shell import Shells

        return Shells(lambda: self.policy, self.confinement, lambda: self.confiner, self._watch_stop)

    def _watch_stop(self) -> None:
        """Watch the stop while servers or shells run that agents use; called in the thread where they run."""
        from gatewright.adapters.server_process import loop_thread

        if not self._ends_stopped:
            self._ends_stopped = True
            loop_thread().begin(self._end_stopped())

    async def _end_stopped(self) -> None:
        """End the servers and shells of stopped agents, as long as any run."""
        import asyncio

        from gatewright.gate.stop import LOOK_S

        while True:
            await asyncio.sleep(LOOK_S)
            stops = self.stops.look()

            def is_stopped(agent_id: str, stops: Sequence[Stop] = stops) -> bool:
                return any(stop.covers(agent_id) for stop in stops)

            self._ends_stopped = False  # whoever begins one from now on starts another watch
            used = [getattr(self, name) for name in ("servers", "shells") if name in vars(self)]
            await asyncio.gather(*(one.end_of(is_stopped) for one in used))
            if not any(one.is_used for one in used):
                return
            self._ends_stopped = True

    @once
    def confiner(self) -> Confiner:
        """Enforces the confinement of processes, each in a room, through the kernel."""
        from gatewright.adapters.confine import Confiner
        from gatewright.adapters.host_proxy import HostProxy
        from gatewright.gate.record import ConnectionLog
        from gatewright.gate.scrub import Secrets

        def proxy(confinement: Confinement) -> HostProxy:
            given = confinement.environment.values()
            secrets = Secrets([*given, *(value.lower() for value in given)])  # names of hosts are in lower case
            log = ConnectionLog(self.audit, confinement.agent_id, confinement.subject, clean=secrets.out_of)
            return HostProxy(confinement.hosts, confinement.allow_private, log.tell, done=log.close)

        return Confiner(self._planner, proxy, write_back=self._copy_returns.of_server)

    @once
    def _copy_returns(self) -> CopyReturns:
        from gatewright.workspace.confining import CopyReturns

        return CopyReturns(self._folders.state / "kept", self.broker, self.audit, self._confinements.of)

    @once
    def _confinements(self) -> Confinements:
        from gatewright.workspace.confining import Confinements

        keys = self._folders.keys
        return Confinements(
            self.folder,
            lambda: self.policy,
            self._parts.attachments,
            closed=(*socket_places(), self._folders.state, keys),
            hosts=lambda: host_places(keys),
            fixed=lambda: (
                self.policy_path,
                self.folder / PINS,
                *HOOK_FILES,
                *self._state.book.paths(self.policy.catalogs),
            ),
        )

    def confinement(self, agent_id: str, catalog_id: str | None = None) -> Confinement | None:
        """Return the confinement of a catalog's executor for the agent's calls, or (None) of its shell commands.

        It is the same object while nothing in it changes. The kernel enforces it for a process; a catalog's module runs
        in this program, and reaches only its places. None if nothing is confined: ``confine = "none"``, a server with a
        ``url``, tools of the program. Raises WorkspaceError for an unknown agent or catalog.
        """
        return self._confinements.of(agent_id, catalog_id)

    async def host_room(
        self, agent_id: str, start: Path, host_id: str, project: Path, within: Sequence[str] = ()
    ) -> Room | None:
        """Open a room for a command that a coding agent, which works in ``project``, runs in ``start``, for the caller
        to close; None for ``confine = "none"``. ``within``: the agents that the room may not exceed.

        Raises ToolFailure if it cannot be confined, WorkspaceError.
        """
        from gatewright.base.late import in_own_thread
        from gatewright.workspace.host_files import project_files

        hosts = {host_id, *gated_hosts(self._folders.keys)}
        confinement = await in_own_thread(
            self._confinements.of_host, agent_id, start, project, lambda top: project_files(hosts, top), within
        )
        return None if confinement is None else await self.confiner.room(confinement)

    def proposed_places(self, catalog: Catalog) -> Mapping[str, PlaceUse]:
        """Propose the places that a server's command line names, for a person to accept.

        These are folders and files among its arguments, and its ``cwd``; none for a server with a ``url``. It looks at
        the disk.
        """
        from gatewright.workspace.commandfiles import propose_places

        if catalog.command is None:
            return {}
        return propose_places(catalog, self.folder, self._parts.attachments.source_paths(self.policy))

    async def run_program(
        self,
        agent_id: str,
        words: Sequence[str],
        start: Path,
        places: Mapping[str, PlaceUse],
        tell: Callable[[str], None],
    ) -> int:
        """Run a program to its end on this process's streams, in a room of the agent, and return its exit code.

        A stop of the agent kills the program. ``tell`` receives its limits, the stop, and at the end the changes in
        private copies, written back or not. Raises ToolFailure if the limits cannot be enforced and for a stopped
        agent, WorkspaceError.
        """
        import asyncio

        from gatewright.adapters.server_process import Command
        from gatewright.adapters.shell import run_in_room
        from gatewright.base.late import unbroken
        from gatewright.gate.stop import CODE, LOOK_S
        from gatewright.sources.writeback import GivenBack

        if (stop := self.stops.find(agent_id)) is not None:
            raise ToolFailure("its agent is stopped", code=CODE, detail=str(stop))
        confinement, given_back = self._confinements.of_program(agent_id, words, start, places), list[GivenBack]()
        write_back = self._copy_returns.of_program(confinement, given_back.append)
        room = await self.confiner.room(confinement, write_back=write_back)
        try:
            tell("; ".join(room.words))
            program = asyncio.ensure_future(run_in_room(room, Command(words[0], tuple(words[1:]), cwd=room.start)))
            try:
                while not (await asyncio.wait({program}, timeout=LOOK_S))[0]:
                    if (stop := self.stops.find(agent_id)) is not None:
                        tell(f"{stop}; the program was killed")
                        return 128 + signal.SIGKILL
                return program.result()
            finally:
                program.cancel()
                await asyncio.wait({program})
        finally:
            await unbroken(asyncio.ensure_future(room.close()))
            for line in (line for one in given_back for line in one.words()):
                tell(line)

    @staticmethod
    def why_not_confined() -> str:
        """Explain why this system cannot confine a process; empty if it can. The first call starts a program to try."""
        from gatewright.adapters.confine import Confiner

        return Confiner.why_not()

    @once
    def messages(self) -> Messages:
        """The sender of agents' messages. Messages to the user go to subscribers here, else to `inbox`."""
        from gatewright.adapters.messages import Messages

        return Messages(
            self._parts.blocks,
            lambda: self.policy,
            lambda target: self._records.trusts_endpoint(self.policy_path, self.policy, target),
        )

    def inbox(self, agent_id: str = "") -> Inbox:
        """Return an agent's waiting messages, for the program that runs it to read and take.

        Without an agent: the messages to the user that nobody took. Raises WorkspaceError for an unknown agent.
        """
        from gatewright.memory.archive import Inbox

        if agent_id:
            self.view(agent_id)  # refuses an unknown agent
        return Inbox(self._parts.blocks, owner_of(agent_id) if agent_id else "")

    async def end_shells(self, session_id: str) -> None:
        """End a session's shell with all its processes."""
        if "shells" in vars(self):
            await self.shells.end_session(session_id)

    @property
    def sources(self) -> WorkspaceSources:
        """The running sources, to which the program may add its own."""
        return self._parts.sources

    def blocks(self, agent_id: str = "") -> BlockService:
        """Return the blocks of an agent and the shared ones for the operator, who may make, read, change and delete
        them.

        It ignores levels and read-only fields. Without an agent: only the shared ones.
        """
        return self._parts.blocks_of(agent_id)

    def context(self, agent_id: str) -> AgentContext:
        """Return an agent's memory for its host's prompt, as text or JSON. Raises WorkspaceError."""
        self.view(agent_id)  # refuses an unknown agent
        policy = self.policy
        source_ids = {source.source_id for source in policy.sources_of(policy.agents[agent_id])}
        return agent_blocks(self._parts.shelf, self.sources.snapshot()).context(agent_id, source_ids)

    def archive(self, agent_id: str = "") -> Archive:
        """Return the archive of an agent and the shared one for the operator, who may add, search and delete.

        Without an agent: only the shared one, which every agent can search.
        """

        return Archive(self._parts.blocks, owner=owner_of(agent_id) if agent_id else "", operator=True)

    def conversations(self, agent_id: str, *, user_id: str | None = None) -> Conversations:
        """Return an agent's messages with a user, or with nobody, for its program to record and to read.

        The newest 10,000 for an agent with a user stay.
        """

        return Conversations(self._parts.blocks, owner=owner_of(agent_id), user_id=user_id)

    def memory_mark(self) -> object:
        """Return a value that differs after any visible change of a block, an archive or a conversation, by anybody."""
        return self._parts.blocks.mark()

    @property
    def streams(self) -> Streams:
        """The streams of changes (sources of type ``folder_changes``), to subscribe to, pause and resume."""
        return self._parts.streams

    @property
    def notes(self) -> NoteBook:
        """The notes of all users, for the operator."""
        return self._parts.notes

    @property
    def catalog(self) -> tuple[ToolFacts, ...]:
        """Return the facts of every registered tool, under the policy's ``[tools.NAME]``."""
        snapshot = self.gate.snapshot()
        return all_with_settings(snapshot.policy, snapshot.facts)

    @property
    def files(self) -> tuple[Path, ...]:
        """List the files that a reload reads: the policy and the manifests of its catalogs."""
        state = self._state
        return (self.policy_path, *state.book.paths(state.policy.catalogs))

    def file_marks(self) -> tuple[object, ...]:
        """Return values that change with any write to these files."""
        facts: list[object] = []
        for path in self.files:
            try:
                found = path.stat()
                facts.append((path, found.st_ino, found.st_mtime_ns, found.st_size))
            except OSError as error:
                facts.append((path, error.errno))
        return tuple(facts)

    def tool_schema(self, tool_name: str) -> Schema | None:
        """Return the whole original schema of a tool, without the policy's declarations; None for an unknown tool."""
        tool = self._tool(tool_name)
        return None if tool is None else as_it_came(tool).input_schema()

    def result_schema(self, tool_name: str, operations: Iterable[str] = ()) -> Schema | None:
        """Return the schema of a step's result from these operations of a tool (none given: all); None if unknown."""
        from gatewright.tools.server_tool import ServerTool

        tool = self._tool(tool_name)
        if tool is None:
            return None
        schema = tool.model_output(frozenset(operations) or frozenset(one.name for one in tool.operations))
        if schema is None or not isinstance(tool, ServerTool):
            return schema
        return {"type": "object", "properties": {"structuredContent": schema}}

    def tool_definition(self, tool_name: str) -> Schema | None:
        """Return the original tool, with MCP's keys `name`, `description`, `inputSchema`; None for an unknown one."""
        tool, schema = self._tool(tool_name), self.tool_schema(tool_name)
        if tool is None or schema is None:
            return None
        return {"name": tool.listed_name, "description": tool.description, "inputSchema": schema}

    def survey(self, tool_name: str) -> Survey | None:
        """Search the tool's whole schema for operations, as help to declare them; None for an unknown tool."""
        from gatewright.schema import survey

        tool = self._tool(tool_name)
        return None if tool is None else survey(as_it_came(tool).input_schema(), tool.description)

    def is_executable(self, tool_name: str) -> bool:
        """Tell whether a call of the tool can be executed here.

        Another program runs its own tools; a disposable copy runs nothing that acts outside of it.
        """
        tool = self._tool(tool_name)
        return tool is None or (tool.is_executable and not (self._is_copy and tool.leaves_copy))

    @property
    def is_dirty(self) -> bool:
        """True if the present policy differs from the one on disk."""
        return not self._state.text.is_saved(self._state.policy)

    @property
    def saved_text(self) -> str:
        """The content of the file."""
        return self._state.text.saved

    @property
    def saved_policy(self) -> Policy:
        """The policy in the file."""
        return self._state.text.saved_policy

    def check(self, edit: Edit) -> Policy:
        """Return the policy that the edit would make. Raises EditRefused; changes nothing."""
        from gatewright.policy import edit as edits
        from gatewright.workspace.refusal import (
            refuse_bad_pattern,
            refuse_faulty,
            refuse_hidden_requirement,
            refuse_orphaned_rule,
            refuse_unloadable,
            refuse_unreadable,
            refuse_untrusted,
        )

        after = edits.apply(self.policy, edit)
        refuse_bad_pattern(edit)
        refuse_untrusted(self.policy, after, self.policy_path, self._records, self.place)
        refuse_unreadable(edit)
        refuse_orphaned_rule(self.policy, after)
        refuse_faulty(self._faults(after))
        refuse_unloadable(self._state.text, self.policy, after, edit)
        refuse_hidden_requirement(after, edit, lambda: self._facts_under(after))
        return after

    def faults(self, edit: Edit) -> tuple[Fault, ...]:
        """Find the faults, with places, that the edit would make in rules, defaults, workspace and compositions.

        It changes nothing. Raises EditRefused for an edit of another policy.
        """
        from gatewright.policy import edit as edits

        return self._faults(edits.apply(self.policy, edit))

    def _faults(self, after: Policy) -> tuple[Fault, ...]:
        from gatewright.policyfile.reader import policy_faults

        return policy_faults(self.policy, after, lambda: self._state.text.nameable(after, self._others_under(after)))

    def apply(self, edit: Edit) -> ChangeSet:
        """Put the edit's policy in force. Raises EditRefused, and then nothing has changed."""
        from gatewright.policy import edit as edits

        with self._changing:
            after = self.check(edit)
            changed = edits.change_set(edit)
            self._put_in_force(replace(self._state, policy=after), changed)
        self._watches.follow()
        return changed

    def edit_between(self, name: str, before: str, after: str) -> Edit:
        """Return the edit that turns one text of this policy file into the other. It reads both, so keep it off the GUI
        thread.

        Raises PolicyInvalid for a text with errors, EditRefused for a difference that no edit makes.
        """
        return self._state.text.edit_between(name, before, after)

    def typed_edit(self, name: str, over: str, text: str) -> tuple[Edit, str]:
        """Turn text typed over a text of this policy file into an edit of the present policy; return both edit and
        result.

        The resulting text is for `with_text`: letter by letter as typed, except where something else changed meanwhile.
        It reads everything, so keep it off the GUI thread. Raises PolicyInvalid for a text with errors, EditRefused if
        both changed the same.
        """
        state = self._state
        return state.text.edit_of_typed(state.policy, name, over, text)

    def with_text(self, edit: Edit, text: str) -> Edit:
        """Give an edit of the present policy the text of its result."""
        from gatewright.policy import edit as edits

        state = self._state
        after = replace(edits.apply(state.policy, edit), written=None)
        change = edits.TextChange(state.text.base_of(state.policy), Written(text, after))
        return edits.Edit(edit.name, (*edit.changes, change))

    @property
    def text_base(self) -> Written:
        """Return the base of the present policy's text, for `on_text`."""
        state = self._state
        return state.text.base_of(state.policy)

    def on_text(self, edit: Edit, base: Written | None) -> Edit:
        """Base the text of the edit's result on ``base`` alone; None means the file's content.

        So undo brings back, letter by letter, the text that an edit removed, even after a save.
        """
        from gatewright.policy import edit as edits

        now, (saved, saved_policy) = self.text_base, self._state.text.as_saved
        after = Written(saved, saved_policy) if base is None else replace(base, identity=new_identity())
        changes = tuple(change for change in edit.changes if not isinstance(change, edits.TextChange))
        if now.text != saved or after.text != saved:
            changes = (*changes, edits.TextChange(now, after))
        return edits.Edit(edit.name, changes)

    def problems_of(self, text: str) -> tuple[Problem, ...]:
        """Find the problems of another text for this policy file.

        It reads everything, so keep it off the GUI thread.
        """
        return self._state.text.problems_of(text, self._reader.problems_beside)

    def rights(self, agent_id: str) -> Mapping[str, ToolRight]:
        """Return the agent's right on every registered tool, in catalog order, including hidden ones with the
        reason.
        """
        return self.view(agent_id).rights

    def rights_under(self, policy: Policy, agent_id: str) -> Mapping[str, ToolRight]:
        """Return the ``rights`` of an agent if ``policy`` were in force over the present tools.

        It compiles the differences to the policy in force; with a large catalog, keep it off the GUI thread.
        """
        view = self.view_under(policy, agent_id)
        return {} if view is None else view.rights

    def view_under(self, policy: Policy, agent_id: str) -> AgentView | None:
        """Return the ``view`` of an agent if ``policy`` were in force; None if it has no such agent."""
        from gatewright.compile.view import AgentView

        agent = self.gate.snapshot().renew(policy, None).agent(agent_id)
        return None if agent is None else AgentView(agent)

    def view(self, agent_id: str) -> AgentView:
        """Return the view of one agent's model."""
        return self.gate.view(agent_id)

    def saved_view(self, agent_id: str) -> AgentView | None:
        """Return the view of the agent's model under the last saved policy; None if that policy lacks the agent.

        The first one after a save compiles the edits since, so keep it off the GUI thread. If catalogs or roots have
        changed since, it uses the present tools, and `saved_view_remark` says so.
        """
        return self._saved_views.view(self.gate, self._state.text.saved_policy, agent_id)

    def saved_view_remark(self) -> str:
        """Explain a limit of comparing saved views with present ones; empty without any."""
        return self._saved_views.remark(self.gate, self._state.text.saved_policy)

    def unsaved_rights(self) -> PolicyDiff:
        """Return the changes of agents' rights that a save would bring.

        It compiles the edits, so keep it off the GUI thread.
        """
        from gatewright.policy.rightsdiff import policy_diff

        def rights_as_saved(agent_id: str) -> Mapping[str, ToolRight]:
            view = self.saved_view(agent_id)
            return {} if view is None else view.rights

        return policy_diff(self._state.text.saved_policy, self.policy, rights_as_saved, self.rights)

    def text(self) -> str:
        """Return the TOML that a save would write, which equals the file if nothing changed."""
        return self._state.text.of(self.policy)

    def text_under(self, policy: Policy) -> str:
        """Return the ``text`` if ``policy`` were in force; it takes time, so keep it off the GUI thread."""
        return self._state.text.of(policy)

    def place(self, address: Address) -> Place | None:
        """Return the place of a part of the policy in ``text()``."""
        return self._state.text.places(self.policy)(address)

    def current_problems(self) -> tuple[Problem, ...]:
        """Return every problem of the present policy. It reads ``text()`` again, so keep it off the GUI thread."""
        loaded = self._state.loaded
        return (*loaded.problems, *self._reader.problems_beside(loaded))

    def mends(self, problem: Problem) -> tuple[Edit, ...]:
        """Return edits that would each remove a problem of the present policy, the mildest first.

        None for a problem of another policy. Each edit's name says what it does. It takes time, so keep it off the GUI
        thread.
        """
        from gatewright.workspace.refusal import mends

        if problem not in self.current_problems():
            return ()
        found: list[Edit] = []
        for edit in mends(self.policy, self.catalog, problem, self.proposed_places):
            with suppress(EditRefused, PolicyInvalid):
                self.check(edit)
                found.append(edit)
        return tuple(found)

    def mend_all(self, problems: Sequence[Problem]) -> tuple[Edit, ...]:
        """Return one edit that removes all of these problems for which a mild edit exists, in this order.

        None if the policy would not load afterwards. It takes time, so keep it off the GUI thread.
        """
        from gatewright.policy import edit as edits
        from gatewright.workspace.refusal import mends_together

        current = frozenset(self.current_problems())
        known = [one for one in problems if one in current]
        found = mends_together(self.policy, self.catalog, known, self.proposed_places)
        try:
            self.check(edits.Edit("", tuple(change for edit in found for change in edit.changes)))
        except (EditRefused, PolicyInvalid):
            return ()
        return found

    def save(self, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; the edits then stay unsaved.

        A file that changed outside is refused, unless ``overwrite``: then this policy replaces the one in the file,
        within the file's text (with its comments and order) if that still loads, else with the text from here.
        """
        self._refuse_in_copy()
        state = self._state
        state.text.save(state.policy, overwrite=overwrite)

    def _refuse_in_copy(self) -> None:
        if self._is_copy:
            raise WorkspaceError("this is a disposable copy, whose policy cannot be written")

    def write_again(self) -> None:
        """Write the policy if its file is gone. Raises WorkspaceError, also if the file exists again."""
        self._refuse_in_copy()
        state = self._state
        state.text.write_again(state.policy)

    def saving_over(self) -> tuple[str | None, str]:
        """Return the file's content, None if unreadable, and the text that ``save(overwrite=True)`` would write."""
        state = self._state
        return state.text.saving_over(state.policy)

    def merge_edit(self) -> tuple[Edit, str | None]:
        """Return the unsaved edits as one edit of the file's present content, for use after a ``reload``; it takes
        time.

        If somebody typed text, also return the merged text for ``with_text``, None if both changed the same lines.
        Raises EditRefused if both changed the same agent, source, rule list or setting, WorkspaceError if the file is
        unreadable or has errors.
        """
        state = self._state
        return state.text.merge_edit(state.policy)

    @property
    def is_gone(self) -> bool:
        """Tell whether the policy's file is missing now."""
        return not os.path.lexists(self.policy_path)

    def is_changed_outside(self) -> bool:
        """Tell whether the file on disk, or a manifest that it names, differs from the one read or saved here."""
        state = self._state
        if self._is_copy:  # its files are those of the copy, but it has read those of the original
            return False
        return state.text.is_changed_outside() or state.book.is_outdated(state.text.saved_policy.catalogs)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again and drop unsaved edits; after errors the last good policy stays in force, with an alarm.

        The manifests of its catalogs are read again too.

        The gate stays the same object: running calls finish under the old policy, and waiting ones are decided again.
        Returns the problems of the reading. Raises WorkspaceError for an unreadable file, which raises the alarm too.
        """
        with self._changing:
            try:
                state, problems = self._reader.read(self._state.book)
            except PolicyInvalid as error:
                self._detach_untrusted()
                self.gate.refuse(error.problems)
                return error.problems
            except WorkspaceError as error:
                self._detach_untrusted()
                self.gate.refuse([Problem(Severity.ERROR, "unreadable", str(error))])
                raise
            self._put_in_force(state, afresh=True)
            self.problems = problems
        self._watches.follow()
        return problems

    def export(
        self, folder: Path, *, dialect: str = "gatewright", agent_id: str | None = None, team: bool = False
    ) -> tuple[Path, ...]:
        """Write the policy, its manifests, and the folders it names, for a deployment. Raises WorkspaceError.

        ``team``: add files for people who have only that folder, and a manifest for `verify_export`.
        """
        from gatewright.workspace.export import write_export

        return write_export(self.plan_export(folder, dialect=dialect, agent_id=agent_id, team=team))

    def plan_export(
        self, folder: Path, *, dialect: str = "gatewright", agent_id: str | None = None, team: bool = False
    ) -> ExportPlan:
        """Return what ``export`` would write. Raises WorkspaceError."""
        from gatewright.workspace import export as exporting

        state = self._state
        if team and folder.resolve() == self.folder.resolve():
            raise WorkspaceError("an export for a team needs its own folder")
        texts = self.export_texts(dialect, agent_id)
        whole = dialect == "gatewright"
        bases = list_folders(state.policy) if whole else []
        manifests = state.book.contents(state.policy.catalogs) if whole else {}
        if not team:
            return exporting.plan_export(folder, texts, self.folder, bases, manifests)
        texts |= exporting.team_texts(state.policy, self.rights)
        return exporting.with_manifest(exporting.plan_export(folder, texts, self.folder, bases, manifests), bases)

    def save_copy(self, path: Path) -> tuple[Path, ...]:
        """Write the present policy as a new file, with its manifests and, empty, the folders that it names.

        The workspace and its unsaved edits stay. Returns the files. Raises WorkspaceError, also if a file of that name,
        or another manifest, exists already.
        """
        from gatewright.workspace import export as exporting

        state = self._state
        manifests = state.book.contents(state.policy.catalogs)
        text = state.text.of(state.policy)
        return exporting.write_copy(path, text, self.folder, list_folders(state.policy), manifests)

    def export_texts(self, dialect: str, agent_id: str | None = None) -> dict[str, str]:
        """Return the texts that ``export`` writes, by file name."""
        from gatewright.workspace import export as exporting

        return exporting.export_texts(self.policy, self.text(), dialect, agent_id, self.catalog)

    def export_host(self, host: str, agent_id: str) -> Exported:
        """Return what a coding agent can enforce of an agent's rights itself, and what it cannot.

        Raises WorkspaceError for an unknown host.
        """
        from gatewright.adapters.host_export import EXPORTS
        from gatewright.workspace.export import net_of

        if host not in EXPORTS:
            raise WorkspaceError(f"no export for `{host}`; known are {', '.join(f'`{one}`' for one in EXPORTS)}")
        kept = (self.policy_path, self.folder / PINS, self._folders.state, self._folders.keys)
        closed = (*kept, *closed_places(self.policy, self.folder))
        return EXPORTS[host](net_of(self.policy, agent_id, self.rights, self.folder, closed))

    def bound_paths(self) -> tuple[BoundPath, ...]:
        """List the paths of the policy that are valid on this computer only: absolute ones, and those leading out."""
        from gatewright.workspace import export as exporting

        return exporting.bound_paths(self.policy, self.folder, self.place)

    def not_exported(self, dialect: str) -> tuple[str, ...]:
        """List the agents without a file from ``export`` in that dialect, since they have no tool."""
        from gatewright.workspace import export as exporting

        return exporting.not_exported(self.policy, dialect)

    def explain_paths(self, source_id: str, paths: Iterable[str]) -> tuple[PathRow, ...]:
        """Return the level of paths by a source's rules; protected files have none."""
        from gatewright.workspace.attachment import path_rows

        source = self.policy.source(source_id)
        if source is None:
            raise WorkspaceError(f"no source `{source_id}`")
        return tuple(path_rows(source, resolve_base(source.base_path, self.folder), self.sources, paths))

    async def reconcile(
        self, source_id: str, path: str, strategy: str = "ask", *, mark: str | None = None
    ) -> JsonValue:
        """Bring a file and its block into step for the operator, without any change on disk.

        ``strategy``: ``ours`` keeps the block's text, ``theirs`` takes the disk's, ``merge`` joins both if they do not
        conflict, ``ask`` only reports. It returns path, state, strategy, outcome, and for a conflict its places and
        both differences. Raises WorkspaceError for an unknown source or strategy, without a block, and if block or file
        has changed since the ``mark``.
        """
        at = self.sources.locate(path, source_id=source_id, allowed=self.sources.ids)
        if isinstance(at, Refusal):
            raise WorkspaceError(at.reason)
        try:
            return await self.sources.reconcile(at, strategy, mark)
        except ToolFailure as failure:
            raise WorkspaceError(f"`{at.relative}` of `{source_id}`: {failure}") from None

    def watch_sources(self, notify: Callable[[Noticed], None], *, debounce_ms: int = 400) -> SourceWatching:
        """Watch the sources with ``watch = true`` until ``close``; it follows edits and reloads.

        A change outside goes into blocks, merged with edits of other lines there; conflicts are only reported. A thread
        of ours calls ``notify``; a second watch replaces the first.
        """
        return self._watches.watch(notify, debounce_ms)

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Report changes below the folder of a source until ``close``, with or without ``watch``.

        Blocks stay the same. A thread of ours calls ``notify``. Raises WorkspaceError.
        """
        return self._watches.watch_folder(source_id, notify)

    def root_folders(self) -> Mapping[str, BaseFolder]:
        """Return the open folders of the roots, by name."""
        return self._parts.attachments.roots()

    def outside(self, base_path: str) -> Path | None:
        """Return the real folder of a source with that base if it lies outside the workspace, else None."""
        base = resolve_base(base_path, self.folder)
        return None if is_inside(base, self.folder) else base

    def trust_source(self, source_id: str, base_path: str) -> None:
        """Record the operator's word that this source may reach this folder. Raises WorkspaceError."""
        self._records.trust_folder("source", self.policy_path, source_id, resolve_base(base_path, self.folder))

    def trust_root(self, name: str, folder: str) -> None:
        """Record the operator's word that the root of that name may reach this folder. Raises WorkspaceError."""
        self._records.trust_folder("root", self.policy_path, name, resolve_base(folder, self.folder))

    def selfcheck(self, agent_ids: tuple[str, ...] | None = None, *, afresh: bool = False) -> SelfCheck:
        """Compare the listed, valid and callable operations of every tool for these agents, or for all.

        Unchanged results of earlier checks stay, unless ``afresh``.
        """
        from gatewright.gate import selfcheck

        return selfcheck(self.gate, agent_ids, afresh=afresh)

    def selfcheck_in_pieces(self, agent_id: str, *, afresh: bool = False) -> Generator[None, None, SelfCheck]:
        """Run `selfcheck` of one agent in pieces of some milliseconds, for a caller with other work between them."""
        from gatewright.gate.selfcheck import selfcheck_in_pieces

        return selfcheck_in_pieces(self.gate, (agent_id,), afresh=afresh)

    def decide(
        self,
        agent_id: str,
        tool: str,
        arguments: str | bytes | Mapping[str, JsonValue],
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        folder: str = "",
        lineage: Lineage | None = None,
    ) -> Decision:
        """Return the gate's decision on a call, without any effect.

        ``folder``: where the coding agent works, for a tool that it runs itself, by default `work_folder`. The other
        options are those of `call`.
        """
        if context is None and (folder := folder or self.work_folder(tool)):
            context = ToolExecutionContext(agent_id=agent_id, session_id="", folder=folder)
        return self._parts.gate.decide(agent_id, tool, arguments, session=session, context=context, lineage=lineage)

    def work_folder(self, tool_name: str) -> str:
        """Return the folder in which relative paths start in calls of a coding agent's own tool, as far as hooks and
        policy tell it; empty for any other tool.
        """
        tool = self._tool(tool_name)
        if tool is None or not tool.in_folder:
            return ""
        from gatewright.workspace.host_files import AGENT_SOURCE, work_folder

        bases = (one.base_path for one in self.policy.folder_sources if one.source_id == AGENT_SOURCE)
        source = next((Path(os.path.realpath(self.folder / base)) for base in bases), None)
        return os.path.realpath(work_folder(tool.origin, self.policy_path, source, keys=self._folders.keys))

    async def call(
        self,
        agent_id: str,
        tool: str,
        arguments: str | bytes | Mapping[str, JsonValue],
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        approver: Approver | None = None,
        on_stage: Callable[[StageTrace], None] | None = None,
        on_piece: Callable[[str], None] | None = None,
        on_step: StepWatch | None = None,
        call_id: str = "",
        conversation: str = "",
        on_ask: OnAsk = "wait",
        lineage: Lineage | None = None,
    ) -> Outcome:
        """Send a call through the whole gate. ``session``: its conversation, else the usual one of the agent and user.

        ``context``: the call's user (its ``user_id``; the gate knows the rest); ``approver``: answers the call's
        question instead of ``broker``; ``on_stage`` gets each stage as it passes, ``on_piece`` each piece of a stream;
        ``on_step`` watches the steps of a composition, and may hold them up.

        ``call_id``: the program's own name of this call in its ``conversation``: it runs at most once, and tells its
        recorded outcome afterwards. ``on_ask="suspend"``: a call that asks returns its question at once, and the same
        call with the same id takes the answer, in any process.

        ``lineage``: of the sub-agent that ``agent_id`` is; what its callers are denied explicitly, it is too.
        """
        return await self._parts.gate.call(
            agent_id,
            tool,
            arguments,
            session=session,
            context=context,
            approver=approver,
            on_stage=on_stage,
            on_piece=on_piece,
            on_step=on_step,
            call_id=call_id,
            conversation=conversation,
            on_ask=on_ask,
            lineage=lineage,
        )

    def on_outcome(self, listener: Callable[[Outcome], None]) -> Callable[[], None]:
        """Report the outcome of each call to ``listener`` from now on; see `Gate.on_outcome`."""
        return self._parts.gate.on_outcome(listener)

    def trace_calls(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> Callable[[], None]:
        """Make an OpenTelemetry span of each call, and metrics, from now on; the returned function stops it.

        Without a provider OpenTelemetry's global one. No argument and no result goes into a span. Raises NotSupported
        where OpenTelemetry is not installed.
        """
        try:
            from gatewright.adapters.telemetry import trace_calls
        except ModuleNotFoundError as error:
            raise NotSupported(f"{error}: pip install 'gatewright[telemetry]'") from None
        gate, broker = self._parts.gate, self._parts.broker
        return trace_calls(gate, broker, tracer_provider=tracer_provider, meter_provider=meter_provider)

    async def resume(
        self, question_id: str, *, session: Session | None = None, approver: Approver | None = None
    ) -> Outcome:
        """Make the suspended call of a question again. ``session``: as for `call`.

        A sub-agent's call is made under its callers' rights of now. Raises WorkspaceError if no such call waits, and
        for a tool that its own program runs: only that can make the call again.
        """
        request = self.suspended(question_id)
        if not self.is_executable(request.again.tool):
            program = request.client or "its own program"
            raise WorkspaceError(f"`{request.again.tool}` is run by {program}, which makes this call again itself")
        if request.callers and request.lineage is None:
            raise WorkspaceError("the question does not tell who started the sub-agent: its program makes it again")
        context = ToolExecutionContext(
            agent_id=request.agent_id,
            session_id="",
            user_id=request.user_id,
            client=request.client,
            folder=request.folder or None,
        )
        return await self.call(
            request.agent_id,
            request.again.tool,
            request.again.arguments,
            session=session,
            context=context,
            approver=approver,
            call_id=request.again.call_id,
            conversation=request.conversation,
            on_ask="suspend",
            lineage=request.lineage,
        )

    def suspended(self, question_id: str) -> ApprovalRequest:
        """Return the question of a suspended call, answered or not. Raises WorkspaceError if no such call waits."""
        request = self.broker.grants.waiting(question_id)
        if request is None:
            raise WorkspaceError(f"no suspended call has the question `{question_id}`")
        return request

    def answer_pages(self) -> AnswerPages:
        """Return the ASGI application whose pages answer questions, for those that the policy names in ``answer_by``.

        Mount it where ``link_base`` leads.
        """
        from gatewright.adapters.answer_page import AnswerPages
        from gatewright.compile.agent import AgentDigests, policy_digest

        def present() -> tuple[Questions, str]:
            nonlocal known
            policy, told = self.policy, known
            if told is None or told[0] is not policy:
                known = told = policy, policy_digest(policy, digests)
            return policy.questions, told[1]

        digests = AgentDigests()
        known: tuple[Policy, str] | None = None
        return AnswerPages(self.broker, present, self._folders.keys, self._clock)

    def send_questions(self) -> Callable[[], None]:
        """Send links to each question to those that the policy names in ``answer_by``; the returned function stops it.

        Meanwhile calls wait for an answer, as with an operator at the window. Of several processes that send, one sends
        each message. Raises WorkspaceError if the policy names nobody, or no ``link_base``.
        """
        from gatewright.adapters.answer_page import QuestionSender
        from gatewright.record.folder import PrivateFolder

        pages = self.answer_pages()
        if not pages.addresses:
            raise WorkspaceError("`questions` of `[workspace]` names nobody in `answer_by`, or has no `link_base`")
        claims = PrivateFolder(self._folders.state).folder("sent")
        return QuestionSender(self.broker, pages, claims, self._clock).close

    def sandbox(
        self,
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Sandbox[Workspace]:
        """Make a disposable copy of the workspace with the edited policy.

        It can take long, so keep it off the GUI thread. Paths, labels and lines equal the original's, so calls are
        decided alike in both. The copy has the present blocks, and its policy cannot be saved. The program's tools are
        the same objects in the copy: their effects elsewhere are real. ``cancelled`` is called before every entry,
        ``progress`` with the files and bytes so far. Raises WorkspaceError for a workspace that is too large,
        CopyCancelled after a cancellation; then nothing of the copy is left.
        """
        from gatewright.workspace.sandbox import CopyWatch, Sandbox

        idle = CopyWatch()
        watch = CopyWatch(cancelled or idle.cancelled, progress or idle.progress)
        text, image, attachments = self.text(), self.image(), self._parts.attachments
        files = self._state.book.contents(image.policy.catalogs)
        closed = self._folders.state, self._folders.keys

        def open_copy(ground: Ground, state: Path, keys: Path) -> Workspace:
            copy = Workspace(
                self.policy_path,
                Folders(state, keys),
                self._clock,
                self._program.twin(),
                manifests=image.manifests,
                copy_of=CopyOf(ground, attachments.names, closed),
                image=image,
            )
            copy.follow(image)
            return copy

        return Sandbox(self, text, attachments.folders(), open_copy, files=files, left_out=closed, watch=watch)

    def __enter__(self) -> Self:
        """Return the workspace; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close and stop everything; calls and decisions raise WorkspaceError afterwards."""
        self.gate.close()
        self._watches.close()
        for name in (
            "_copy_returns",
            "catalog_tools",
            "servers",
            "serving",
            "shells",
        ):  # in this order, so that questions end first
            if name in vars(self):  # else nothing has used it
                getattr(self, name).close()
        self._parts.close()
        self._folders.close()

    def catalog_states(self) -> tuple[CatalogState, ...]:
        """Return the catalogs of the present policy, in its order, without starting or asking a server."""
        return self._pins.states()

    def pin(self, catalog_id: str) -> Pin | None:
        """Return a server's listed and accepted tools as they were read; None if never imported."""
        return self._pins.pin(catalog_id)

    def trusts_server(self, catalog_id: str) -> bool:
        """Tell whether somebody trusted exactly this command, address or module of a catalog. Raises WorkspaceError."""
        return self._records.trusts_server(self.policy_path, self._pins.server(catalog_id))

    def untrusted_places(self, catalog_id: str) -> tuple[str, ...]:
        """List a server's places outside that nobody trusted, as written. Raises WorkspaceError."""
        catalog = self.policy.catalog(catalog_id)
        return () if catalog is None else self._records.untrusted_places(self.policy_path, catalog)

    def trust_server(self, catalog_id: str) -> None:
        """Record the operator's word that a catalog's executor may run. Raises WorkspaceError."""
        self._records.trust_server(self.policy_path, self._pins.server(catalog_id))
        with self._changing:
            self._parts.attachments.follow(self.policy)

    def foreign_memory(self) -> tuple[Path, ...]:
        """List the memory files from elsewhere, which are not used. Raises WorkspaceError."""
        return tuple(foreign_stores(self.state_folder, self.key_folder))

    def adopt_memory(self, files: Iterable[Path] | None = None, *, who: str = "") -> tuple[Path, ...]:
        """Adopt memory from elsewhere, so that agents see it from now on, and return the files.

        ``files``: the approved ones; if the foreign files differ by now, none is adopted. The log gets a row about it,
        with ``who``. Raises WorkspaceError.
        """
        self._refuse_in_copy()
        found = self.foreign_memory()
        if files is not None and set(files) != set(found):
            raise WorkspaceError("the foreign memory changed meanwhile: nothing was taken over")
        if not found:
            return ()
        names: list[JsonValue] = [path.relative_to(self.state_folder).as_posix() for path in found]
        self._parts.audit.append([AuditEntry(RowKind.MEMORY_ADOPTED, body={"who": who, "files": names[:_MOST_FILES]})])
        return adopt_memory(self.state_folder, self.key_folder)

    def trust_endpoint(self, target: str) -> None:
        """Record the operator's word that this endpoint may connect. Raises WorkspaceError."""
        if target not in self.policy.endpoints.outside:
            raise WorkspaceError(f"`[workspace] endpoints` has no `{target}` that connects to a service")
        self._records.trust_endpoint(self.policy_path, self.policy, target)

    def server_digest(self, catalog_id: str) -> str:
        """Return the digest of what somebody trusts in a catalog: the executor of its tools. Raises WorkspaceError."""
        return server_digest(self.policy_path, self._pins.server(catalog_id))

    def record_listing(self, catalog_id: str, listing: Listing) -> Pin:
        """Store the present listing of a catalog's tools; new and changed ones are held, in the policy in force too.

        Raises WorkspaceError, PolicyInvalid if the policy could not be loaded with it.
        """
        return self._pins.record(catalog_id, listing)

    def accept_tools(
        self,
        catalog_id: str,
        names: Iterable[str] | None,
        *,
        tiers: Mapping[tuple[str, str], SafetyTier] | None = None,
        needs_capabilities: bool = True,
        instructions: bool = False,
        who: str = "",
    ) -> Pin:
        """Accept tools of a catalog as listed; agents that list them see them from now on.

        None means all waiting tools, except vanished ones that the policy still names. The options are those of
        `gatewright.tools.pin.accept`; the log gets ``who``. Raises EditRefused for an unknown name, WorkspaceError, and
        PolicyInvalid if the policy could not be loaded with it.
        """
        return self._pins.accept(
            catalog_id,
            names,
            tiers=tiers or {},
            needs_capabilities=needs_capabilities,
            instructions=instructions,
            who=who,
        )

    def host_tool(self, catalog_id: str, name: str) -> str | Refusal:
        """Return the policy's name for a tool as a coding agent calls it, one of an MCP server included.

        The refusal of a name that the policy does not know says how to accept it.
        """
        state, held = self._state, self._host_names.get(catalog_id)
        if held is None or held[0] is not state:
            catalog, said = state.policy.catalog(catalog_id), MCP_NAMES
            if catalog is not None and (content := state.book.manifest(catalog).content) is not None:
                said = str((as_object(parse_json(content, "the manifest")) or {}).get("mcp_names", MCP_NAMES))
            names = names_for_host(state.book.tools(state.policy.catalogs), catalog_id, said)
            self._host_names[catalog_id] = held = state, names
        found = held[1].get(name, frozenset[str]())
        if len(found) == 1:
            return next(iter(found))
        if found:
            text = f"`{name[:_SHOWN]}` may mean {' or '.join(f'`{one}`' for one in sorted(found))}: rename a catalog"
            return Refusal("ambiguous-tool", text, _NO_TOOL)
        how = (
            f"`gatewright catalog accept POLICY {catalog_id} NAME` accepts one of its own, `catalog import` a server's"
        )
        return Refusal("unknown-host-tool", f"`{catalog_id}` calls an unknown tool `{name[:_SHOWN]}`: {how}", _NO_TOOL)

    def add_host_tools(self, host_id: str) -> tuple[str, ...]:
        """Write our definitions of a coding agent's built-in tools beside the policy, with their catalog, and save.

        Returns the names of tools that are new or defined otherwise. Raises WorkspaceError, PolicyInvalid.
        """
        self._refuse_in_copy()
        catalog, ours = shipped_host(host_id)
        there = self.policy.catalog(host_id)
        if there is not None and (there.kind, there.manifest) != (catalog.kind, catalog.manifest):
            raise WorkspaceError(f"another catalog is called `{host_id}`: rename it first")
        before = manifest_at(self.folder / catalog.manifest)
        after = with_accepted(ours, before)
        known = {str(row.get("name")): row for row in objects(before.get("tools"))}
        changed = tuple(name for row in objects(after["tools"]) if known.get(name := str(row["name"])) != row)
        if there is not None:
            self._replace_file(there, manifest_text(after), None)
        else:
            store(self.folder, catalog, manifest_text(after))
            self.apply(add_catalog(self.policy, catalog))
        self.save()
        return changed

    def accept_host_tools(self, catalog_id: str, names: Iterable[str], *, who: str = "") -> tuple[str, ...]:
        """Accept tools that a coding agent calls and its definitions lack; they are privileged and take any arguments.

        One that is defined takes from now on arguments that its schema lacks. Returns the names. Raises WorkspaceError,
        PolicyInvalid.
        """
        catalog, accepted = self.policy.catalog(catalog_id), tuple(dict.fromkeys(names))
        if catalog is None or catalog.kind is not CatalogType.HOST:
            raise WorkspaceError(f"`{catalog_id}` is no catalog of a coding agent's tools")
        after = manifest_text(with_tools(manifest_at(self.folder / catalog.manifest), accepted))
        if problems := read_definitions(parse_json(after, "the manifest"))[1]:
            raise WorkspaceError(f"`{problems[0].name}` cannot be accepted: {problems[0].message}")
        body: dict[str, JsonValue] = {"catalog": catalog_id, "who": who, "accepted": len(accepted)}
        body["tools"] = {name: {"tier": str(SafetyTier.PRIVILEGED)} for name in accepted}
        self._replace_file(catalog, after, AuditEntry(RowKind.CATALOG_ACCEPTED, body=body))
        return accepted

    def _replace_pin(self, catalog: Catalog, pin: Pin, row: AuditEntry | None) -> None:
        self._replace_file(catalog, write_pin(pin), row)

    def _replace_file(self, catalog: Catalog, content: bytes, row: AuditEntry | None) -> None:
        """Write a pin, or the manifest of a program, and put it in force, if the edited policy loads with it."""
        self._refuse_in_copy()
        with self._changing:
            state = self._state
            if state.book.manifest(catalog).is_rewritten():
                raise WorkspaceError(f"the pin of catalog `{catalog.catalog_id}` was changed outside: reload it first")
            tried = self._reader.catalogs(state.book, {catalog.file: content})
            found = state.text.reread(tried.known).read(state.policy).problems
            if any(problem.is_error for problem in found):
                raise PolicyInvalid(found)
            if row is not None:
                self._parts.audit.append([row])
            store(self.folder, catalog, content)
            book = self._reader.catalogs(tried)  # the last reading equals the disk now
            self._put_in_force(PolicyState(state.policy, state.text.reread(book.known), book))

    def _take_in_program(self) -> None:
        """Check the policy against the program's present tools. Raises PolicyInvalid, and then nothing has changed."""
        with self._changing:
            state = self._state
            book = self._reader.catalogs(state.book, as_read=True)
            text = state.text.reread(book.known)
            found = text.read(state.policy).problems
            if any(problem.is_error for problem in found):
                raise PolicyInvalid(found)
            self._put_in_force(PolicyState(state.policy, text, book))

    async def _run_shell(self, command: str, context: ToolExecutionContext) -> dict[str, JsonValue]:
        return await self.shells.run(command, context)

    async def _send_message(self, message: Message, context: ToolExecutionContext) -> dict[str, JsonValue]:
        return await self.messages.send(message, context)

    def _message_fault(self, message: Message) -> str:
        return self.messages.fault(message)

    def _shell_isolation(self) -> str:
        from gatewright.adapters.shell import isolation_words

        return isolation_words(self.policy.shell.confine)

    def _shell_obstacle(self) -> str:
        from gatewright.adapters.shell import shell_obstacle

        return shell_obstacle(self.policy.shell.confine)

    def _put_in_force(self, after: PolicyState, changed: ChangeSet | None = None, *, afresh: bool = False) -> None:
        self._parts.enforce(self._state, after, changed, afresh=afresh)
        self._state = after
        if "servers" in vars(self):
            self.servers.follow()
        self.revision += 1

    def take_ended_servers(self) -> Mapping[str, str]:
        """Return the servers that an edit ended since the last call, by catalog, with the reason."""
        return self.servers.take_ended() if "servers" in vars(self) else {}

    def _detach_untrusted(self) -> None:
        """Keep the last good policy, but detach what leads out of the workspace without trust by now."""
        if self._parts.attachments.follow(self.policy, afresh=True):
            self._put_in_force(self._state)
            self._watches.follow()

    def _facts_under(self, after: Policy) -> tuple[ToolFacts, ...]:
        """Return the facts of every tool as that policy declares them."""
        found = self._others_under(after)
        if after.compositions is self.policy.compositions:
            return found
        return self._state.text.nameable(after, found).with_compositions(after).facts

    def _others_under(self, after: Policy) -> tuple[ToolFacts, ...]:
        """Return the facts of every tool as that policy declares them, with the present compositions."""
        state = self._state
        if after.catalogs != state.policy.catalogs:
            return self._reader.facts_of(state.text.read(after))
        if after.tools == state.policy.tools:
            return self.gate.snapshot().facts
        return state.book.declare_all(after, self._parts.registry.facts())

    def _tool(self, tool_name: str) -> Tool | None:
        name, major = split_name(tool_name)
        return self._parts.registry.get(name, major)
