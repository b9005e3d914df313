"""Assembles policy, tools, sources and gate into one workspace."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.adapters.web import WebClient
from gatewright.base.amount import Clock, SystemClock
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.builtins import MessagePort, ShellPort, builtin_tools, file_tool, note_tools
from gatewright.gate import (
    ApprovalStore,
    AuditLog,
    Gate,
    Log,
    PermissionBroker,
    RateBook,
    StopSwitch,
    key_folder,
)
from gatewright.gate.approval import ApprovalLimits
from gatewright.gate.history import FILE_NAME as RATES_FILE
from gatewright.gate.port import Rates
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.block_store import FILE_NAME as BLOCKS
from gatewright.memory.block_store import BlockStore, Shelf
from gatewright.memory.notes import FOLDER as NOTES
from gatewright.memory.notes import NoteBook
from gatewright.policy.document import PINS, Policy
from gatewright.record.folder import PrivateFolder, StatePlace, memory_folder, shared_url
from gatewright.sources.ground import Ground, Protection, closed_places, policy_path_of
from gatewright.sources.manager import SourceManager
from gatewright.sources.rootfolder import RootFolders
from gatewright.sources.stream import Streams
from gatewright.tools import Ports, ToolRegistry
from gatewright.workspace.attachment import Attachments, Key, RootTools, SourceTexts, absences, agent_blocks
from gatewright.workspace.catalog import CatalogBook, ComposedTools, RegisteredTools
from gatewright.workspace.policy_reader import PolicyState
from gatewright.workspace.program import Program, WorkspaceSources
from gatewright.workspace.trust import HOOK_FILES, TrustRecords, host_places, socket_places

if TYPE_CHECKING:
    from gatewright.gate.sessionstore import SessionStore
    from gatewright.memory.blocks import BlockService
    from gatewright.policy.edit import ChangeSet
    from gatewright.record.shared import SharedState


_NO_SOURCE = {"file": "`file` needs a source, and the policy has none"}


@frozen
class Folders:
    """The folders of audit and blocks (``state``), and of keys, anchors and trust (``keys``).

    ``shared``: the database that holds all of the state but blocks, notes and archives.
    """

    state: Path
    keys: Path
    shared: SharedState | None = None

    @classmethod
    def of(cls, policy_path: Path, *, state: StatePlace | None, keys: Path | None) -> Folders:
        """Return the given folders, else those of the environment, else those beside the policy and in the user's
        data. Raises WorkspaceError or NotSupported for the URL of a shared state that cannot be one.
        """
        folders, url = (memory_folder(policy_path, state), key_folder(keys)), shared_url(state)
        if url is None:
            return cls(*folders)
        from gatewright.record.shared import SharedState

        return cls(*folders, SharedState(url))

    def log(self, clock: Clock, *, durable: bool = False) -> Log:
        """Return the log."""
        if self.shared is None:
            return AuditLog(self.state, self.keys, clock=clock, durable=durable)
        from gatewright.gate.shared_log import SharedLog

        return SharedLog(self.shared, self.keys, clock=clock)

    def rates(self) -> Rates:
        """Return the starts under rates."""
        if self.shared is None:
            return RateBook(self.state / RATES_FILE)
        from gatewright.gate.shared import SharedRates

        return SharedRates(self.shared)

    def stops(self, clock: Clock, audit: Log) -> StopSwitch:
        """Return the stop."""
        if self.shared is None:
            return StopSwitch(self.state, self.keys, clock=clock, audit=audit)
        from gatewright.gate.shared import SharedStops

        return SharedStops(self.shared, clock=clock, audit=audit)

    def sessions(self, clock: Clock, audit: Log) -> SessionStore:
        """Return the store of sessions."""
        from gatewright.gate.sessionstore import FOLDER, SessionStore

        if self.shared is None:
            return SessionStore(self.state / FOLDER, self.keys, clock, audit)
        from gatewright.gate.shared import SharedSessions

        return SessionStore(SharedSessions(self.shared), clock=clock, log=audit)

    def close(self) -> None:
        """Close the connections to a shared state."""
        if self.shared is not None:
            self.shared.close()

    def require_real(self) -> None:
        """Raise WorkspaceError if the state folder is a link to another place."""
        try:
            PrivateFolder(self.state).require_real()
        except OSError as error:
            hint = "name the real folder with --state or GATEWRIGHT_STATE"
            raise WorkspaceError(f"the state folder `{self.state}` cannot be used: {error.strerror}; {hint}") from None


class GrowingProtection(Protection):
    """Places that no tool may touch. A reload may add places; it removes only those that the policy opens again."""

    def __init__(self, paths: Iterable[Path], ground: Ground) -> None:
        super().__init__(paths, ground)
        self._kept = self._paths

    def cover(self, paths: Iterable[Path], closed: Iterable[Path]) -> None:
        """Protect these places too; of the policy's own places exactly those in ``closed``, existing or not."""
        self._kept = tuple(dict.fromkeys((*self._kept, *map(os.path.abspath, paths))))
        wanted = tuple(dict.fromkeys((*self._kept, *map(os.path.abspath, closed))))
        if wanted != self._paths:
            self.protect(wanted)


@frozen
class CopyOf:
    """The link between a disposable copy and its original.

    ``ground``: the real places behind the original's names; ``names``: the names of its folders; ``closed``: closed
    places besides those of the copy itself.
    """

    ground: Ground
    names: Mapping[Key, str]
    closed: tuple[Path, ...]


@frozen
class Parts:
    """The parts of an open workspace besides its policy; a reload of the policy keeps them."""

    folder: Path
    keys: Path
    program: Program
    own_tools: RegisteredTools
    attachments: Attachments
    registry: ToolRegistry
    host: RegisteredTools
    rooted: RootTools
    composed: ComposedTools
    protection: GrowingProtection
    blocks: BlockStore
    shelf: Shelf
    notes: NoteBook
    sources: WorkspaceSources
    streams: Streams
    audit: Log
    rates: Rates
    broker: PermissionBroker
    gate: Gate

    def enforce(
        self, before: PolicyState, after: PolicyState, changed: ChangeSet | None, *, afresh: bool = False
    ) -> None:
        """Put changed sources, tools and policy into force for the gate in one step, then close unused ones.

        ``changed``: the changes since ``before``; None means perhaps everything. ``afresh``: resolve all paths again.
        """
        policy, book = after.policy, after.book
        old = before.policy
        same = _tools_of(book, policy) == _tools_of(before.book, old)
        given = () if same else book.tools(policy.catalogs)
        taken = (*given, *self.program.known)
        ours = (*book.paths(policy.catalogs), *host_places(self.keys))
        self.protection.cover(ours, closed_places(policy, self.folder))
        self.attachments.follow(policy, afresh=afresh)
        withdraw_idle = self.sources.follow(self.attachments.sources(policy))
        own_tools = self.sources.follow_program(policy)
        is_same = same and self.own_tools.held == own_tools

        def register() -> None:
            if not same:
                self.rooted.follow(policy, taken, lambda: self.host.follow(given))
                self.registry.assign(book.origins(policy.catalogs))
            self.own_tools.follow(own_tools)

        self.streams.follow(policy, self.attachments.streams(policy), self.sources.own_streams)
        self.gate.reload(
            policy,
            changed,
            places=after.text.places(policy),
            ports=_ports(
                policy,
                self.folder,
                self.attachments,
                self.sources,
                self.protection,
                self.shelf,
                self.notes,
                self.streams,
            ),
            tools=None if is_same else lambda: self.composed.follow(policy, book, register),
        )
        withdraw_idle()

    def blocks_of(self, agent_id: str) -> BlockService:
        """Return the operator's service for the blocks of one agent and the shared ones; "" means only the shared
        ones.
        """
        from gatewright.memory.blocks import BlockService

        owner = owner_of(agent_id) if agent_id else ""
        texts = SourceTexts(self.sources)
        return BlockService(self.blocks, owner=owner, levels=texts.level, operator=True, shelf=self.shelf, files=texts)

    def close(self) -> None:
        """Close every file."""
        self.broker.close()
        self.gate.stops.close()
        self.audit.close()
        self.rates.close()
        self.streams.close()
        self.blocks.close()
        self.notes.close()


def audit_log(path: Path, *, state: StatePlace | None = None, keys: Path | None = None) -> Log:
    """Open the audit log of a policy file or its folder; the policy itself may be invalid."""
    return Folders.of(policy_path_of(path), state=state, keys=keys).log(SystemClock())


def permission_broker(
    path: Path, *, state: StatePlace | None = None, keys: Path | None = None, clock: Clock | None = None
) -> PermissionBroker:
    """Open the broker of a policy file or its folder; the policy itself may be invalid."""
    folders = Folders.of(policy_path_of(path), state=state, keys=keys)
    clock = clock or SystemClock()
    return broker_of(folders, clock, folders.log(clock))


def stop_switch(path: Path, *, state: StatePlace | None = None, keys: Path | None = None) -> StopSwitch:
    """Open the stop of a policy file or its folder; the policy itself may be invalid."""
    folders = Folders.of(policy_path_of(path), state=state, keys=keys)
    folders.require_real()
    clock = SystemClock()
    return folders.stops(clock, folders.log(clock))


def broker_of(folders: Folders, clock: Clock, audit: Log, limits: ApprovalLimits | None = None) -> PermissionBroker:
    """Return the broker for the state folder's questions and standing approvals; it logs revocations."""
    store = ApprovalStore(folders.shared or folders.state, folders.keys, clock=clock)
    return PermissionBroker(store, clock, limits=limits, audit=audit)


def assemble(
    state: PolicyState,
    policy_path: Path,
    folders: Folders,
    clock: Clock,
    program: Program,
    records: TrustRecords,
    *,
    durable: bool,
    limits: ApprovalLimits | None,
    shell: ShellPort,
    messages: MessagePort,
    copy_of: CopyOf | None = None,
    stops: bool = True,
) -> Parts:
    """Assemble registry, sources and gate for a policy, without a process, a connection or a write.

    ``shell``: executes shell commands; ``messages``: sends messages; ``copy_of``: the original of a disposable copy.
    ``stops`` False: the stop of the state folder does not count.
    """
    policy, book, folder = state.policy, state.book, policy_path.parent
    registry, no_notes = ToolRegistry(), NoteBook.why_absent()
    for tool in (*builtin_tools(), *(() if no_notes else note_tools()), *program.tools.there):
        registry.register(tool)
    host, tools_on_roots, given = (
        RegisteredTools(registry),
        RootTools(registry, shell, messages),
        book.tools(policy.catalogs),
    )
    tools_on_roots.follow(policy, (*given, *program.known), lambda: host.follow(given))
    registry.assign(book.origins(policy.catalogs))
    blocks = BlockStore(folders.state / BLOCKS, keys=folders.keys, clock=clock)
    shelf, notes = Shelf(blocks), NoteBook(folders.state / NOTES, clock, keys=folders.keys)
    ours = (policy_path, folder / PINS, folders.state, folders.keys, *(copy_of.closed if copy_of else ()))
    ours += (*HOOK_FILES, *socket_places(), *host_places(folders.keys))
    ground = copy_of.ground if copy_of else Ground()
    protection = GrowingProtection((*ours, *book.paths(policy.catalogs)), ground)
    protection.cover((), closed_places(policy, folder))
    sources = WorkspaceSources(lambda: registry.register(file_tool()), blocks, protection)
    sources.program = program.sources
    own_tools = RegisteredTools(registry)
    own_tools.follow(sources.follow_program(policy))
    composed = ComposedTools(registry)
    composed.follow(policy, book, lambda: None)
    attachments = Attachments(policy_path, records, ground, copy_of.names if copy_of else {})
    attachments.follow(policy)
    sources.follow(attachments.sources(policy))
    streams = Streams(sources)
    streams.follow(policy, attachments.streams(policy), sources.own_streams)
    audit, rates = folders.log(clock, durable=durable), folders.rates()
    broker = broker_of(folders, clock, audit, limits)
    gate = Gate(
        policy,
        registry,
        ports=_ports(policy, folder, attachments, sources, protection, shelf, notes, streams),
        audit=audit,
        clock=clock,
        places=state.text.places(policy),
        absent=ChainMap(
            program.tools.absent,
            program.sources.absent,
            _NO_SOURCE,
            absences(),
            {tool.name: no_notes for tool in note_tools() if no_notes},
        ),
        rates=rates,
        broker=broker,
        file=str(policy_path),
        in_copy=copy_of is not None,
        stops=folders.stops(clock, audit) if stops else None,
    )
    return Parts(
        folder,
        folders.keys,
        program,
        own_tools,
        attachments,
        registry,
        host,
        tools_on_roots,
        composed,
        protection,
        blocks,
        shelf,
        notes,
        sources,
        streams,
        audit,
        rates,
        broker,
        gate,
    )


def _tools_of(book: CatalogBook, policy: Policy) -> tuple[object, ...]:
    """Return everything that decides which tools exist."""
    composed = (policy.compositions, policy.tools) if policy.compositions else ()
    return book, policy.catalogs, policy.provides, policy.endpoints, policy.recipients, composed


def _ports(
    policy: Policy,
    folder: Path,
    attachments: Attachments,
    sources: SourceManager,
    protection: Protection,
    shelf: Shelf,
    notes: NoteBook,
    streams: Streams,
) -> Ports:
    files = sources.snapshot()
    roots = RootFolders(attachments.roots(), str(folder), files, protection, shelf.store.exclusive)
    return Ports(
        files,
        roots,
        agent_blocks(shelf, files),
        notes.with_weights(policy.memory),
        WebClient(policy.web),
        streams,
        str(folder),
    )
