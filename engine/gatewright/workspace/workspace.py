"""One open workspace: its policy as edited now, its gate, its sources.

The one path an edit takes below the app: ``check`` (nothing happens), ``apply`` (the gate swaps its snapshot), ``save``
(the difference between the policy on disk and the policy now is patched into the text on disk).
Over 450 lines, since it is the one face of everything below: most methods hand on to the part that does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gatewright.base.clock import Clock, SystemClock
from gatewright.base.errors import EditRefused, PolicyInvalid, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.base.problem import Address, Place, Problem, Severity
from gatewright.builtins import Message, MessagePort, ShellPort
from gatewright.gate import (
    AgentView,
    Alarm,
    ApprovalLimits,
    Approver,
    AuditEntry,
    AuditLog,
    Decision,
    Gate,
    PermissionBroker,
    RowKind,
    Session,
    StageTrace,
    is_durable,
)
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.archive import Archive, Conversations
from gatewright.memory.block_store import adopt_memory, foreign_stores
from gatewright.memory.notes import NoteBook
from gatewright.policy.document import PINS, Catalog, CatalogType, PlaceUse, Policy, Written
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import new_identity
from gatewright.policy.rulematch import all_with_settings
from gatewright.policy.target import Refusal
from gatewright.policy.verdict import SafetyTier, split_name
from gatewright.record.process import fork_safe_lock
from gatewright.schema import Schema
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.stream import Streams
from gatewright.sources.watch import FolderNews, FolderWatch, Noticed, SourceWatching
from gatewright.tools import Tool, ToolExecutionContext
from gatewright.tools.pin import Listing, Pin, write_pin
from gatewright.workspace.assembly import CopyOf, Folders, assemble
from gatewright.workspace.catalog import as_it_came
from gatewright.workspace.fileblocks import agent_blocks
from gatewright.workspace.image import WorkspaceImage
from gatewright.workspace.location import is_inside, list_folders, policy_path_of, resolve_base
from gatewright.workspace.pins import CatalogState, ServerPins, store
from gatewright.workspace.policy_reader import PolicyReader, PolicyState
from gatewright.workspace.program import (
    BlockSource,
    Program,
    ProgramSources,
    ProgramTools,
    StreamSource,
    WorkspaceSources,
)
from gatewright.workspace.savedview import SavedViews
from gatewright.workspace.trust import TrustRecords, server_digest
from gatewright.workspace.watching import SourceWatches

if TYPE_CHECKING:
    from gatewright.adapters.confine import Confiner
    from gatewright.adapters.messages import Messages
    from gatewright.adapters.shell import Shells
    from gatewright.adapters.tool_adapter import ToolAdapter
    from gatewright.gate import Outcome, SelfCheck, SessionStore
    from gatewright.gate.callrun import StepWatch
    from gatewright.gate.sessionstore import ServingBook
    from gatewright.memory.agentblocks import AgentContext
    from gatewright.memory.archive import Inbox
    from gatewright.memory.blocks import BlockService
    from gatewright.policy.edit import ChangeSet, Edit
    from gatewright.policy.rightsdiff import PolicyDiff
    from gatewright.policy.target import Confinement, View
    from gatewright.policyfile.reader import Fault
    from gatewright.schema import Survey
    from gatewright.sources.ground import Ground
    from gatewright.sources.roomplan import RoomPlanner
    from gatewright.workspace.catalogtools import CatalogTools
    from gatewright.workspace.confining import Confinements, CopyReturns
    from gatewright.workspace.export import BoundPath
    from gatewright.workspace.pathrow import PathRow
    from gatewright.workspace.sandbox import Sandbox
    from gatewright.workspace.servers import Servers
    from gatewright.workspace.tokens import TokenBook

_MOST_FILES = 100
"""So many files of memory that was taken over are named in the log."""


class Workspace:
    """Everything that the app and the commands do with one policy file. Open with ``Workspace.open``.

    ``policy`` is as edited now, ``problems`` the warnings found when it was read; ``revision`` grows with every edit.
    ``broker`` holds the questions and standing approvals, shared with other processes: it is the approver of every call
    that brings no other.
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
        """The tools of the program, to which it may add while the workspace is open."""
        self._changing, self._is_copy = fork_safe_lock(), copy_of is not None
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
        state: Path | None = None,
        keys: Path | None = None,
        clock: Clock | None = None,
        trust: bool = False,
        durable: bool | None = None,
        approvals: ApprovalLimits | None = None,
    ) -> Self:
        """Open a policy file, or the ``policy.toml`` of a folder: reads, starts nothing, writes nothing.

        ``tools`` and ``sources``: those of the program itself, beside the built-in ones. ``durable``: audit rows
        outlast a loss of power too, which costs a write to the disk for each call; None: as ``GATEWRIGHT_DURABLE``
        says. ``approvals``: how long a question to the broker waits, and how many one agent with one user may ask.

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
        """All that another process needs to have the same workspace, as values that can be pickled."""
        policy, book = self._state.policy, self._state.book
        saved_text, saved = self._state.text.as_saved
        manifests = {**book.contents(policy.catalogs), **book.contents(policy.catalogs, outside=True)}
        folders = self._folders.state, self._folders.keys
        return WorkspaceImage(self.policy_path, folders, saved_text, saved, policy, manifests, self.tools.late)

    @classmethod
    def of_image(cls, image: WorkspaceImage, *, tools: Iterable[Tool] = ()) -> Self:
        """The workspace that ``image`` was made of, to be asked and not to be saved; policy and manifests are not read
        from the disk again. ``tools``: those of the program. Raises PolicyInvalid.
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
        """The same workspace with another policy in force, to be asked and not to be saved; close it afterwards.

        Reads the text of the policy anew, so not for the GUI thread. Raises PolicyInvalid.
        """
        return self._of_image(replace(self.image(), policy=policy), self._program.twin())

    def follow(self, image: WorkspaceImage) -> bool:
        """Be as a later image of the same workspace says; False where its file was read anew since."""
        text = self._state.text
        if image.text != text.saved and not text.keep_saved(image.saved, image.text):
            return False
        if image.policy is not self.policy:
            with self._changing:
                self._put_in_force(replace(self._state, policy=image.policy))
        return True

    @property
    def policy(self) -> Policy:
        """The policy in force, as edited now."""
        return self._state.policy

    @property
    def name(self) -> str:
        """The policy's name, else its folder's."""
        return self.policy.name or self.folder.name

    @property
    def gate(self) -> Gate:
        """The gate that enforces the policy as it is now."""
        return self._parts.gate

    @property
    def state_folder(self) -> Path:
        """Where log, blocks, rates and approvals are kept; it is made when something of it is first written."""
        return self._folders.state

    @property
    def key_folder(self) -> Path:
        """The folder that holds the keys of these, and what was trusted."""
        return self._folders.keys

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that lasts since the file could not be taken over; None while all is well."""
        return self.gate.alarm

    @property
    def broker(self) -> PermissionBroker:
        """Where questions to the operator wait, and the standing approvals."""
        return self._parts.broker

    @property
    def audit(self) -> AuditLog:
        """The log of all calls, to be read and verified."""
        return self._parts.audit

    @property
    def tokens(self) -> TokenBook:
        """The tokens that clients of the gateway show over HTTP, in the key folder."""
        from gatewright.workspace.tokens import TokenBook

        return TokenBook(self._folders.keys, self.policy_path, self._clock)

    @property
    def sessions(self) -> SessionStore:
        """Where sessions are kept between runs of a program, in the state folder."""
        from gatewright.gate import SessionStore
        from gatewright.gate.sessionstore import FOLDER as SESSIONS

        return SessionStore(self._folders.state / SESSIONS, self._folders.keys, self._clock, self._parts.audit)

    @once
    def serving(self) -> ServingBook:
        """The processes that serve this workspace to MCP clients (``gatewright serve``), and who is connected there."""
        from gatewright.gate.sessionstore import ServingBook

        return ServingBook(self._folders.state, self._folders.keys)

    def session(self, agent_id: str, session_id: str | None = None, *, user_id: str | None = None) -> Session:
        """A conversation of the agent: as ``sessions.save`` kept it under that id, else a new one.

        Without an id: the own one of the agent with that user (without ``user_id``: whom the policy gives the agent, or
        nobody), which calls without a session belong to, for as long as this workspace is open. Raises WorkspaceError
        for an unknown agent, a user too many, and a session that cannot be read or was tampered with.
        """
        if session_id is None:
            return self.gate.session(agent_id, user_id=user_id)
        self.gate.view(agent_id)  # refuses an unknown agent
        return self.sessions.resume(session_id, agent_id=agent_id)

    @once
    def servers(self) -> Servers:
        """The MCP servers of the policy's catalogs; none of them starts before it is asked to."""
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
        )

    @once
    def catalog_tools(self) -> CatalogTools:
        """The executor of the tools of the catalogs; nothing of it starts before the first call."""
        from gatewright.adapters.http_adapter import HttpAdapter
        from gatewright.workspace.catalogtools import CatalogTools

        return CatalogTools(
            self.folder,
            lambda catalog_id: self.policy.catalog(catalog_id),  # noqa: PLW0108 the policy of then
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

        def variables(catalog: Catalog) -> Mapping[str, str]:  # servers are made by the first call
            return self.servers.variables(catalog)

        return SubprocessTools(self.folder, self.confinement, lambda: self.confiner, variables)

    def _wasm_tools(self) -> ToolAdapter:
        from gatewright.adapters.wasm_tool import WasmTools

        def trusts(catalog: Catalog, module: str) -> bool:
            return self._records.trusts_server(self.policy_path, catalog, module)

        def confinement(agent_id: str, catalog: Catalog) -> Confinement:  # neither is there while the policy is read
            held = self.confinement(agent_id, catalog.catalog_id)
            if held is None:
                raise WorkspaceError(f"catalog `{catalog.catalog_id}` has no module any more")
            return held

        return WasmTools(self.folder, trusts, confinement, self._module_views)

    def _module_views(self, confinement: Confinement) -> Mapping[str, View]:
        return self._planner.whole(confinement)

    def why_not_given(self, agent_id: str, catalog_id: str) -> str:
        """Why the module of a catalog cannot be given its places when it serves the agent; empty where it can.

        Looks at the disk. Raises WorkspaceError for an agent or a catalog that is not there.
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
        """What executes shell commands; no process of it starts before the first one."""
        from gatewright.adapters.shell import Shells

        return Shells(lambda: self.policy, self.confinement, lambda: self.confiner)

    @once
    def confiner(self) -> Confiner:
        """The confiner that has the kernel hold the confinement of a process, in a room."""
        from gatewright.adapters.confine import Confiner
        from gatewright.adapters.host_proxy import HostProxy
        from gatewright.adapters.secret import Secrets
        from gatewright.gate.record import ConnectionLog

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

        return Confinements(
            self.folder,
            lambda: self.policy,
            self._parts.attachments,
            closed=(self._folders.state, self._folders.keys),
            fixed=lambda: (self.policy_path, self.folder / PINS, *self._state.book.paths(self.policy.catalogs)),
        )

    def confinement(self, agent_id: str, catalog_id: str | None = None) -> Confinement | None:
        """The confinement that is to hold for what runs the tools of a catalog when it serves the agent's calls, or
        (None) for the agent's shell commands; the same object while nothing of it changes. The kernel holds that of a
        process; the module of a catalog runs in this program, and reaches its places alone.

        None where nothing is confined: ``confine = "none"``, a server with a ``url``, tools of the program. Raises
        WorkspaceError for an agent or a catalog that is not there.
        """
        return self._confinements.of(agent_id, catalog_id)

    def proposed_places(self, catalog: Catalog) -> Mapping[str, PlaceUse]:
        """The places that the command line of a server names, for a person to accept: folders and files among its
        arguments, and its ``cwd``; none for a server with a ``url``. Looks at the disk.
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
        """Run a program to its end on the streams of this process, in a room of the agent; its exit code.

        ``tell`` is told what it may reach, and at the end what of its private copies was written back and what was
        not. Raises ToolFailure where that cannot be held, WorkspaceError.
        """
        import asyncio

        from gatewright.adapters.confined_program import run_in_room
        from gatewright.adapters.server_process import Command
        from gatewright.base.thread import unbroken
        from gatewright.sources.writeback import GivenBack

        confinement, given_back = self._confinements.of_program(agent_id, words, start, places), list[GivenBack]()
        write_back = self._copy_returns.of_program(confinement, given_back.append)
        room = await self.confiner.room(confinement, write_back=write_back)
        try:
            tell("; ".join(room.words))
            return await run_in_room(room, Command(words[0], tuple(words[1:]), cwd=room.start))
        finally:
            await unbroken(asyncio.ensure_future(room.close()))
            for line in (line for one in given_back for line in one.words()):
                tell(line)

    @staticmethod
    def why_not_confined() -> str:
        """Why no process can be confined on this system; empty where it can. Tried once, which starts a program."""
        from gatewright.adapters.confine import Confiner

        return Confiner.why_not()

    @once
    def messages(self) -> Messages:
        """What sends the messages of agents. Messages to the user go to whoever subscribes here, else to `inbox`."""
        from gatewright.adapters.messages import Messages

        return Messages(
            self._parts.blocks,
            lambda: self.policy,
            lambda target: self._records.trusts_endpoint(self.policy_path, self.policy, target),
        )

    def inbox(self, agent_id: str = "") -> Inbox:
        """The messages that wait for an agent, for the program that runs it to read and to take.

        Without an agent: those to the user that nobody has taken yet. Raises WorkspaceError for an unknown agent.
        """
        from gatewright.memory.archive import Inbox

        if agent_id:
            self.view(agent_id)  # refuses an unknown agent
        return Inbox(self._parts.blocks, owner_of(agent_id) if agent_id else "")

    async def end_shells(self, session_id: str) -> None:
        """End the shell that was kept for a session, with all that it started."""
        if "shells" in vars(self):
            await self.shells.end_session(session_id)

    @property
    def sources(self) -> WorkspaceSources:
        """The running sources, to which the program may add its own."""
        return self._parts.sources

    def blocks(self, agent_id: str = "") -> BlockService:
        """The blocks of an agent and the shared ones, in the operator's hand: to make, look at, change, delete.

        Whatever the levels say, and read-only fields too. Without an agent: the shared ones alone.
        """
        return self._parts.blocks_of(agent_id)

    def context(self, agent_id: str) -> AgentContext:
        """What the host of an agent puts into the prompt from its memory, as text or JSON. Raises WorkspaceError."""
        self.view(agent_id)  # refuses an unknown agent
        policy = self.policy
        source_ids = {source.source_id for source in policy.sources_of(policy.agents[agent_id])}
        return agent_blocks(self._parts.shelf, self.sources.pinned()).context(agent_id, source_ids)

    def archive(self, agent_id: str = "") -> Archive:
        """The archive of an agent and the shared one, in the operator's hand: to add to, look through, forget from.

        Without an agent: the shared one alone, which every agent finds.
        """

        return Archive(self._parts.blocks, owner=owner_of(agent_id) if agent_id else "", operator=True)

    def conversations(self, agent_id: str, *, user_id: str | None = None) -> Conversations:
        """The messages of an agent with a user, or with nobody: for the program that runs it to record, and to look at.

        Of an agent with a user 10,000 are kept, the newest.
        """

        return Conversations(self._parts.blocks, owner=owner_of(agent_id), user_id=user_id)

    def memory_mark(self) -> object:
        """Another value once a change of a block, an archive or a conversation can be read, whoever made it."""
        return self._parts.blocks.mark()

    @property
    def streams(self) -> Streams:
        """The streams of changes (sources of type ``folder_changes``), to subscribe to, pause and resume."""
        return self._parts.streams

    @property
    def notes(self) -> NoteBook:
        """The notes of all users, in the operator's hand."""
        return self._parts.notes

    @property
    def catalog(self) -> tuple[ToolFacts, ...]:
        """The facts of every registered tool, as the policy's ``[tools.NAME]`` declare and change them."""
        snapshot = self.gate.snapshot()
        return all_with_settings(snapshot.policy, snapshot.facts)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a reload reads: the policy and the manifests of its catalogs."""
        state = self._state
        return (self.policy_path, *state.book.paths(state.policy.catalogs))

    def tool_schema(self, tool_name: str) -> Schema | None:
        """The whole schema of a tool as it came, whatever the policy declares of it; None for an unknown tool."""
        tool = self._tool(tool_name)
        return None if tool is None else as_it_came(tool).input_schema()

    def result_schema(self, tool_name: str, operations: Iterable[str] = ()) -> Schema | None:
        """The schema of what a step of a composition gets from these operations of a tool (none: all); None: untold."""
        from gatewright.tools.server_tool import ServerTool

        tool = self._tool(tool_name)
        if tool is None:
            return None
        schema = tool.told_output(frozenset(operations) or frozenset(one.name for one in tool.operations))
        if schema is None or not isinstance(tool, ServerTool):
            return schema
        return {"type": "object", "properties": {"structuredContent": schema}}

    def tool_definition(self, tool_name: str) -> Schema | None:
        """The tool as it came, with MCP's keys `name`, `description` and `inputSchema`; None for an unknown one."""
        tool, schema = self._tool(tool_name), self.tool_schema(tool_name)
        if tool is None or schema is None:
            return None
        return {"name": tool.listed_name, "description": tool.description, "inputSchema": schema}

    def survey(self, tool_name: str) -> Survey | None:
        """What the tool's whole schema says of operations, for whoever declares them; None for an unknown tool."""
        from gatewright.schema import survey

        tool = self._tool(tool_name)
        return None if tool is None else survey(as_it_came(tool).input_schema(), tool.description)

    def is_executable(self, tool_name: str) -> bool:
        """Whether a call of the tool can be executed here.

        Tools of other programs are run by those; in a disposable copy, nothing is that acts outside of it.
        """
        tool = self._tool(tool_name)
        return tool is None or (tool.is_executable and not (self._is_copy and tool.leaves_copy))

    @property
    def is_dirty(self) -> bool:
        """Whether the policy now differs from the one on disk."""
        return not self._state.text.is_saved(self._state.policy)

    @property
    def saved_text(self) -> str:
        """What the file holds."""
        return self._state.text.saved

    @property
    def saved_policy(self) -> Policy:
        """What the file says."""
        return self._state.text.saved_policy

    def check(self, edit: Edit) -> Policy:
        """The policy that the edit would make. Raises EditRefused; changes nothing."""
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
        """Find the faults, with places, of the rules, defaults, workspace and compositions that the edit would make.

        Changes nothing. Raises EditRefused for an edit of another policy.
        """
        from gatewright.policy import edit as edits

        return self._faults(edits.apply(self.policy, edit))

    def _faults(self, after: Policy) -> tuple[Fault, ...]:
        from gatewright.policyfile.reader import policy_faults

        return policy_faults(self.policy, after, lambda: self._state.text.known(after, self._others_under(after)))

    def apply(self, edit: Edit) -> ChangeSet:
        """Make the edit the policy in force. Raises EditRefused, and then nothing has changed."""
        from gatewright.policy import edit as edits

        with self._changing:
            after = self.check(edit)
            changed = edits.change_set(edit)
            self._put_in_force(replace(self._state, policy=after), changed)
        self._watches.follow()
        return changed

    def edit_between(self, name: str, before: str, after: str) -> Edit:
        """The edit that makes one text of this policy file the other; reads both, so not for the GUI thread.

        Raises PolicyInvalid where a text has errors, EditRefused where they differ in what no edit changes.
        """
        return self._state.text.edit_between(name, before, after)

    def typed_edit(self, name: str, over: str, text: str) -> tuple[Edit, str]:
        """What somebody typed over a text of this policy file, as an edit of the policy as it is now, and the text that
        it leaves, for `with_text`: letter by letter what was typed, but for what was changed otherwise meanwhile.

        Reads all of it, so not for the GUI thread. Raises PolicyInvalid where the text has errors, EditRefused where
        both changed the same.
        """
        state = self._state
        return state.text.typed(state.policy, name, over, text)

    def with_text(self, edit: Edit, text: str) -> Edit:
        """The edit, of the policy as it is now, with the text that says what comes of it."""
        from gatewright.policy import edit as edits

        state = self._state
        after = replace(edits.apply(state.policy, edit), written=None)
        change = edits.TextChange(state.text.base_of(state.policy), Written(text, after))
        return edits.Edit(edit.name, (*edit.changes, change))

    @property
    def text_base(self) -> Written:
        """The text that the one of the policy as it is now is an edit of, for `on_text`."""
        state = self._state
        return state.text.base_of(state.policy)

    def on_text(self, edit: Edit, base: Written | None) -> Edit:
        """The edit, so that the text of what comes of it is an edit of ``base`` alone; None: of what the file holds.

        So what an edit took out of the text comes back letter by letter when it is undone, also after a save.
        """
        from gatewright.policy import edit as edits

        now, (saved, saved_policy) = self.text_base, self._state.text.as_saved
        after = Written(saved, saved_policy) if base is None else replace(base, identity=new_identity())
        changes = tuple(change for change in edit.changes if not isinstance(change, edits.TextChange))
        if now.text != saved or after.text != saved:
            changes = (*changes, edits.TextChange(now, after))
        return edits.Edit(edit.name, changes)

    def problems_of(self, text: str) -> tuple[Problem, ...]:
        """What is wrong with another text of this policy file; reads all of it, so not for the GUI thread."""
        return self._state.text.problems_of(text, self._reader.problems_beside)

    def rights(self, agent_id: str) -> Mapping[str, ToolRight]:
        """The agent's right on every registered tool, in catalog order; includes what is hidden and why."""
        return self.view(agent_id).rights

    def rights_under(self, policy: Policy, agent_id: str) -> Mapping[str, ToolRight]:
        """What ``rights`` would answer if ``policy`` were in force over the tools as they are now.

        Compiles what differs from the policy in force: for a large catalog not on the GUI thread.
        """
        view = self.view_under(policy, agent_id)
        return {} if view is None else view.rights

    def view_under(self, policy: Policy, agent_id: str) -> AgentView | None:
        """What ``view`` would answer if ``policy`` were in force; None where it has no such agent."""
        agent = self.gate.snapshot().renew(policy, None).agent(agent_id)
        return None if agent is None else AgentView(agent)

    def view(self, agent_id: str) -> AgentView:
        """What the model of one agent sees."""
        return self.gate.view(agent_id)

    def saved_view(self, agent_id: str) -> AgentView | None:
        """What the agent's model saw by the policy as it was last saved; None where that had no such agent.

        The first one after a save compiles what was edited since: not for the GUI thread. Where catalogs or roots were
        changed since, it is made of the tools of now, and `saved_view_remark` says so.
        """
        return self._saved_views.view(self.gate, self._state.text.saved_policy, agent_id)

    def saved_view_remark(self) -> str:
        """What has to be known to compare saved views with present ones; empty where nothing has."""
        return self._saved_views.remark(self.gate, self._state.text.saved_policy)

    def unsaved_rights(self) -> PolicyDiff:
        """What saving would change of what agents may do; compiles what was edited, so not for the GUI thread."""
        from gatewright.policy.rightsdiff import policy_diff

        def rights_as_saved(agent_id: str) -> Mapping[str, ToolRight]:
            view = self.saved_view(agent_id)
            return {} if view is None else view.rights

        return policy_diff(self._state.text.saved_policy, self.policy, rights_as_saved, self.rights)

    def text(self) -> str:
        """The TOML as it would be saved now; byte-identical to the file while nothing differs."""
        return self._state.text.of(self.policy)

    def text_under(self, policy: Policy) -> str:
        """What ``text`` would answer if ``policy`` were in force; takes time, so not for the GUI thread."""
        return self._state.text.of(policy)

    def place(self, address: Address) -> Place | None:
        """Where a part of the policy stands in ``text()``."""
        return self._state.text.places(self.policy)(address)

    def current_problems(self) -> tuple[Problem, ...]:
        """Every problem of the policy as it is now; reads ``text()`` anew, so not for the GUI thread."""
        loaded = self._state.loaded
        return (*loaded.problems, *self._reader.problems_beside(loaded))

    def mends(self, problem: Problem) -> tuple[Edit, ...]:
        """The edits by which a problem of the policy as it is now would be gone, the mildest first.

        None for one that it does not have. Each edit's name says what it does. Takes time: not for the GUI thread.
        """
        from gatewright.policy.mend import mends

        if problem not in self.current_problems():
            return ()
        found: list[Edit] = []
        for edit in mends(self.policy, self.catalog, problem, self.proposed_places):
            with suppress(EditRefused, PolicyInvalid):
                self.check(edit)
                found.append(edit)
        return tuple(found)

    def mend_all(self, problems: Sequence[Problem]) -> tuple[Edit, ...]:
        """The mildest mend of each of these problems that has one; together they are one edit, in this order.

        None where the policy would not load after all of them. Takes time: not for the GUI thread.
        """
        from gatewright.policy import edit as edits
        from gatewright.policy.mend import mends_together

        current = frozenset(self.current_problems())
        known = [one for one in problems if one in current]
        found = mends_together(self.policy, self.catalog, known, self.proposed_places)
        try:
            self.check(edits.Edit("", tuple(change for edit in found for change in edit.changes)))
        except (EditRefused, PolicyInvalid):
            return ()
        return found

    def save(self, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; the edits are kept then.

        A file that was changed outside is refused, unless ``overwrite``: then the policy as it is here replaces
        what the file says, in the text that is there now (its comments and order stay) as far as that text still
        loads, else in the text as it was here.
        """
        self._refuse_in_copy()
        state = self._state
        state.text.save(state.policy, overwrite=overwrite)

    def _refuse_in_copy(self) -> None:
        if self._is_copy:
            raise WorkspaceError("this is a disposable copy: nothing of its policy is written")

    def write_again(self) -> None:
        """Write the policy where its file is gone. Raises WorkspaceError, also where a file is there again."""
        self._refuse_in_copy()
        state = self._state
        state.text.write_again(state.policy)

    def saving_over(self) -> tuple[str | None, str]:
        """What the file holds now, None where it cannot be read, and what ``save(overwrite=True)`` would write."""
        state = self._state
        return state.text.saving_over(state.policy)

    def merge_edit(self) -> tuple[Edit, str | None]:
        """The unsaved edits as one edit of what the file holds now, for after a ``reload``; takes time.

        Where something was typed, also the text that keeps it beside what others wrote, for ``with_text``; None where
        both changed the same lines.

        Raises EditRefused where both changed the same agent, source, rule list or setting, WorkspaceError where the
        file cannot be read or has errors.
        """
        state = self._state
        return state.text.merge_edit(state.policy)

    @property
    def is_gone(self) -> bool:
        """Whether nothing is where the policy was read from."""
        return not os.path.lexists(self.policy_path)

    def changed_outside(self) -> bool:
        """Whether the file on disk, or a manifest that it names, is no longer what was read or saved here."""
        state = self._state
        if self._is_copy:  # its files are the copy's own, and what it has read is the original's
            return False
        return state.text.changed_outside() or state.book.is_outdated(state.text.saved_policy.catalogs)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again, dropping unsaved edits; with errors the last good policy stays in force, and an alarm
        says so until a good one is read. The manifests of its catalogs are read again with it.

        The gate stays the same object: running calls finish as they began, waiting ones are decided again. Returns the
        problems of what was read. Raises WorkspaceError when it cannot be read, which raises the alarm too.
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

        ``team``: with what people need who have nothing but that folder, and a manifest that `verify_export` reads.
        """
        from gatewright.workspace import export as exporting

        state = self._state
        texts = self.export_texts(dialect, agent_id)
        whole = dialect == "gatewright"
        bases = list_folders(state.policy) if whole else []
        manifests = state.book.contents(state.policy.catalogs) if whole else {}
        if not team:
            return exporting.write_export(folder, texts, self.folder, bases, manifests)
        from gatewright.workspace.team import team_texts, write_manifest

        if folder.resolve() == self.folder.resolve():
            raise WorkspaceError("an export for a team has a folder of its own")
        files = exporting.write_export(
            folder, {**texts, **team_texts(state.policy, self.rights)}, self.folder, bases, manifests
        )
        return (*files, write_manifest(folder, files, bases)[0])

    def save_copy(self, path: Path) -> tuple[Path, ...]:
        """Write the policy as it is here as a new file, with its manifests and, empty, the folders that it names.

        The workspace stays what it is, its edits unsaved. Returns the files. Raises WorkspaceError, also where a file
        of that name, or another manifest, is there already.
        """
        from gatewright.workspace import export as exporting

        state = self._state
        manifests = state.book.contents(state.policy.catalogs)
        text = state.text.of(state.policy)
        return exporting.write_copy(path, text, self.folder, list_folders(state.policy), manifests)

    def export_texts(self, dialect: str, agent_id: str | None = None) -> dict[str, str]:
        """File name to text of what ``export`` writes."""
        from gatewright.workspace import export as exporting

        return exporting.export_texts(self.policy, self.text(), dialect, agent_id)

    def bound_paths(self) -> tuple[BoundPath, ...]:
        """The paths of the policy that mean something on this computer alone: absolute ones, and those leading out."""
        from gatewright.workspace import export as exporting

        return exporting.bound_paths(self.policy, self.folder, self.place)

    def not_exported(self, dialect: str) -> tuple[str, ...]:
        """The agents that ``export`` in that dialect writes no file for, since they have no tool."""
        from gatewright.workspace import export as exporting

        return exporting.not_exported(self.policy, dialect)

    def explain_paths(self, source_id: str, paths: Iterable[str]) -> tuple[PathRow, ...]:
        """The level of paths by a source's rules; protected files are none."""
        from gatewright.workspace.pathrow import path_rows

        source = self.policy.source(source_id)
        if source is None:
            raise WorkspaceError(f"no source `{source_id}`")
        return tuple(path_rows(source, resolve_base(source.base_path, self.folder), self.sources, paths))

    async def reconcile(
        self, source_id: str, path: str, strategy: str = "ask", *, mark: str | None = None
    ) -> JsonValue:
        """Bring a file and its block into step, in the operator's hand; nothing on disk is changed.

        ``strategy``: ``ours`` keeps the block's text, ``theirs`` takes the disk's, ``merge`` puts both together where
        they do not conflict, ``ask`` only tells. Answers path, state, strategy, outcome, and of a conflict its places
        and both differences. Raises WorkspaceError for an unknown source or strategy, where there is no block, and
        where block or file is another than when its ``mark`` was made.
        """
        at = self.sources.locate(path, source_id=source_id, allowed=self.sources.ids)
        if isinstance(at, Refusal):
            raise WorkspaceError(at.reason)
        try:
            return await self.sources.reconcile(at, strategy, mark)
        except ToolFailure as failure:
            raise WorkspaceError(f"`{at.relative}` of `{source_id}`: {failure}") from None

    def watch_sources(self, notify: Callable[[Noticed], None], *, debounce_ms: int = 400) -> SourceWatching:
        """Watch the sources that say ``watch = true`` until ``close``; edits and reloads are followed.

        What changed outside is taken into blocks, merged with edits of other lines there; a conflict is only told.
        ``notify`` is called in a thread of ours; a second watch takes the place of the first. Nothing is watched before
        this is called.
        """
        return self._watches.watch(notify, debounce_ms)

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Tell what happens below the folder of a source until ``close``, whether it says ``watch`` or not.

        Nothing is taken into blocks. ``notify`` is called in a thread of ours. Raises WorkspaceError.
        """
        return self._watches.watch_folder(source_id, notify)

    def root_folders(self) -> Mapping[str, BaseFolder]:
        """The folders that the roots were opened on, by name."""
        return self._parts.attachments.roots()

    def outside(self, base_path: str) -> Path | None:
        """The real folder of a source with that base where it lies outside the workspace, else None."""
        base = resolve_base(base_path, self.folder)
        return None if is_inside(base, self.folder) else base

    def trust_source(self, source_id: str, base_path: str) -> None:
        """Remember, by the operator's word, that this source may reach this folder. Raises WorkspaceError."""
        self._records.trust_folder("source", self.policy_path, source_id, resolve_base(base_path, self.folder))

    def trust_root(self, name: str, folder: str) -> None:
        """Remember, by the operator's word, that the root of that name may reach this folder. Raises WorkspaceError."""
        self._records.trust_folder("root", self.policy_path, name, resolve_base(folder, self.folder))

    def selfcheck(self, agent_ids: tuple[str, ...] | None = None, *, afresh: bool = False) -> SelfCheck:
        """Compare listed, valid and callable for every tool and operation of these agents, or of all.

        What was checked before and has not changed is not checked again, unless ``afresh``.
        """
        from gatewright.gate import selfcheck

        return selfcheck(self.gate, agent_ids, afresh=afresh)

    def selfcheck_in_pieces(self, agent_id: str, *, afresh: bool = False) -> Generator[None, None, SelfCheck]:
        """As `selfcheck` of one agent, for whoever has other things to do between two pieces of some milliseconds."""
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
    ) -> Decision:
        """What the gate would say to a call; free of effects. The options: as for `call`."""
        return self._parts.gate.decide(agent_id, tool, arguments, session=session, context=context)

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
    ) -> Outcome:
        """Send a call through the whole gate. ``session``: the conversation that it belongs to, else the own one
        of the agent and user.

        ``context``: the user that it is made for (its ``user_id``; the gate knows the rest); ``approver``: who is asked
        where the call asks, instead of ``broker``; ``on_stage`` is told each stage as it passes, ``on_piece`` each
        piece of a stream as it comes; ``on_step`` watches the steps of a composition, and may hold them up.
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
        )

    def sandbox(
        self,
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Sandbox[Workspace]:
        """A disposable copy of the workspace with the policy as edited now; it can take long: not on the GUI thread.

        Paths, labels and lines are those of the original, so a call is decided there as it is here; the blocks as they
        are now come along, and nothing of its policy can be saved. Tools that the program brought are the very same in
        the copy: what they do elsewhere is not contained.
        ``cancelled`` is asked before every entry, ``progress`` told the files and bytes copied so far. Raises
        WorkspaceError when it is too large, CopyCancelled when it was cancelled; then nothing of the copy is left.
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
        """The workspace; closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close what was opened, stop what was started; calls and decisions raise WorkspaceError afterwards."""
        self.gate.close()
        self._watches.close()
        for name in (
            "_copy_returns",
            "catalog_tools",
            "servers",
            "serving",
            "shells",
        ):  # in this order: nobody is asked any more
            if name in vars(self):  # else it was never asked for
                getattr(self, name).close()
        self._parts.close()

    def catalog_states(self) -> tuple[CatalogState, ...]:
        """The catalogs of the policy as they stand now, in its order. Nothing is started or asked."""
        return self._pins.states()

    def pin(self, catalog_id: str) -> Pin | None:
        """What a server listed and what of that was accepted, as it was read; None where it was never imported."""
        return self._pins.pin(catalog_id)

    def trusts_server(self, catalog_id: str) -> bool:
        """Tell whether exactly the command, address or module of a catalog was trusted. Raises WorkspaceError."""
        return self._records.trusts_server(self.policy_path, self._pins.server(catalog_id))

    def untrusted_places(self, catalog_id: str) -> tuple[str, ...]:
        """The places of a server that lie outside and that nobody trusted, as written. Raises WorkspaceError."""
        catalog = self.policy.catalog(catalog_id)
        return () if catalog is None else self._records.untrusted_places(self.policy_path, catalog)

    def trust_server(self, catalog_id: str) -> None:
        """Remember, by the operator's word, that this may run the tools of a catalog. Raises WorkspaceError."""
        self._records.trust_server(self.policy_path, self._pins.server(catalog_id))
        with self._changing:
            self._parts.attachments.follow(self.policy)

    def foreign_memory(self) -> tuple[Path, ...]:
        """The files of memory that were made elsewhere, and of which nothing is used. Raises WorkspaceError."""
        return tuple(foreign_stores(self.state_folder, self.key_folder))

    def adopt_memory(self, files: Iterable[Path] | None = None, *, who: str = "") -> tuple[Path, ...]:
        """Take over memory that was made elsewhere: agents are told it from now on. The files that were taken over.

        ``files``: those that somebody agreed to; where others are foreign by now none is. ``who`` goes to the log with
        the row that keeps it. Raises WorkspaceError.
        """
        self._refuse_in_copy()
        found = self.foreign_memory()
        if files is not None and set(files) != set(found):
            raise WorkspaceError("which memory is foreign was changed meanwhile: nothing was taken over")
        if not found:
            return ()
        names: list[JsonValue] = [path.relative_to(self.state_folder).as_posix() for path in found]
        self._parts.audit.append([AuditEntry(RowKind.MEMORY_ADOPTED, body={"who": who, "files": names[:_MOST_FILES]})])
        return adopt_memory(self.state_folder, self.key_folder)

    def trust_endpoint(self, target: str) -> None:
        """Remember, by the operator's word, that this endpoint may connect. Raises WorkspaceError."""
        if target not in self.policy.endpoints.outside:
            raise WorkspaceError(f"`[workspace] endpoints` has no `{target}` that connects to a service")
        self._records.trust_endpoint(self.policy_path, self.policy, target)

    def server_digest(self, catalog_id: str) -> str:
        """The part of a catalog that is trusted: the digest of what runs its tools. Raises WorkspaceError."""
        return server_digest(self.policy_path, self._pins.server(catalog_id))

    def record_listing(self, catalog_id: str, listing: Listing) -> Pin:
        """Keep what is listed of a catalog's tools now: what is new or changed is held, by the policy in force too.

        Raises WorkspaceError, PolicyInvalid for a policy that could not be loaded then.
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
        """Accept tools of a catalog as they are listed; agents that list them see them from now on.

        None: all that wait, but those that vanished and that the policy still names. The options: as of
        `gatewright.tools.pin.accept`; ``who`` goes to the log. Raises EditRefused for a name that is not there,
        WorkspaceError, and PolicyInvalid for a policy that could not be loaded then.
        """
        return self._pins.accept(
            catalog_id,
            names,
            tiers=tiers or {},
            needs_capabilities=needs_capabilities,
            instructions=instructions,
            who=who,
        )

    def _replace_pin(self, catalog: Catalog, pin: Pin, row: AuditEntry | None) -> None:
        """Write a pin and put it in force, if the policy as it is edited can be loaded with it."""
        self._refuse_in_copy()
        with self._changing:
            state = self._state
            if state.book.manifest(catalog).is_rewritten():
                raise WorkspaceError(f"the pin of catalog `{catalog.catalog_id}` was changed outside: reload it first")
            content = write_pin(pin)
            tried = self._reader.catalogs(state.book, {catalog.file: content})
            found = state.text.reread(tried.known).read(state.policy).problems
            if any(problem.is_error for problem in found):
                raise PolicyInvalid(found)
            if row is not None:
                self._parts.audit.append([row])
            store(self.folder, catalog, content)
            book = self._reader.catalogs(tried)  # what was read a moment ago is what lies on the disk now
            self._put_in_force(PolicyState(state.policy, state.text.reread(book.known), book))

    def _take_in_program(self) -> None:
        """Hold the policy to what the program brings now. Raises PolicyInvalid, and then nothing has changed."""
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
        """The servers that an edit ended since this was asked last, by their catalogs, and why."""
        return self.servers.take_ended() if "servers" in vars(self) else {}

    def _detach_untrusted(self) -> None:
        """The last good policy goes on, but with nothing that leads out of the workspace by now without trust."""
        if self._parts.attachments.follow(self.policy, afresh=True):
            self._put_in_force(self._state)
            self._watches.follow()

    def _facts_under(self, after: Policy) -> tuple[ToolFacts, ...]:
        """The facts of every tool, read as that policy declares it."""
        found = self._others_under(after)
        if after.compositions is self.policy.compositions:
            return found
        return self._state.text.known(after, found).composed(after).facts

    def _others_under(self, after: Policy) -> tuple[ToolFacts, ...]:
        """The same, with the compositions that there are now."""
        state = self._state
        if after.catalogs != state.policy.catalogs:
            return self._reader.facts_of(state.text.read(after))
        if after.tools == state.policy.tools:
            return self.gate.snapshot().facts
        return state.book.declare_all(after, self._parts.registry.facts())

    def _tool(self, tool_name: str) -> Tool | None:
        name, major = split_name(tool_name)
        return self._parts.registry.get(name, major)
