"""One open workspace: its policy as edited now, its gate, its sources.

The one path an edit takes below the app: ``check`` (nothing happens), ``apply`` (the gate swaps its snapshot), ``save``
(the difference between the policy on disk and the policy now is patched into the text on disk).
Over 450 lines, since it is the one face of everything below; what it does is done elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from gatewright.base.clock import SystemClock
from gatewright.base.errors import PolicyInvalid, ToolFailure, WorkspaceError
from gatewright.base.problem import Problem, Severity, near_hint
from gatewright.gate import is_durable
from gatewright.policy.document import CatalogType
from gatewright.policy.setting import overridden_all
from gatewright.policy.target import Refusal
from gatewright.policy.toolname import split_name
from gatewright.policyfile import parse_policy
from gatewright.record import fork_safe_lock
from gatewright.tools import DefinedTool
from gatewright.workspace.assembly import (
    SERVER_NOT_TRUSTED,
    Folders,
    assemble,
    catalog_book,
    folder_problems,
    load,
    server_problems,
)
from gatewright.workspace.attachment import Attachments
from gatewright.workspace.catalog import as_it_came
from gatewright.workspace.grantreach import grant_problems
from gatewright.workspace.image import WorkspaceImage
from gatewright.workspace.lint import lints
from gatewright.workspace.location import is_inside, policy_path_of, resolved, written_folders
from gatewright.workspace.policytext import PolicyText
from gatewright.workspace.savedview import SavedViews
from gatewright.workspace.trust import TrustRecords, server_digest
from gatewright.workspace.watching import SourceWatching

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from gatewright.base.clock import Clock
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.base.problem import Address, Place
    from gatewright.gate import (
        AgentView,
        Alarm,
        ApprovalLimits,
        Approver,
        AuditEntry,
        Decision,
        Gate,
        Outcome,
        PermissionBroker,
        SelfCheck,
        Session,
        SessionStore,
        StageTrace,
    )
    from gatewright.gate.serving import ServingBook
    from gatewright.memory import BlockService
    from gatewright.policy.document import Catalog, Policy
    from gatewright.policy.edit import ChangeSet, Edit
    from gatewright.policy.right import ToolFacts, ToolRight
    from gatewright.policy.tier import SafetyTier
    from gatewright.policyfile import LoadedPolicy
    from gatewright.schema import Schema, Survey
    from gatewright.sources import Noticed, SourceManager
    from gatewright.sources.basefolder import BaseFolder
    from gatewright.sources.folderwatch import FolderNews, FolderWatch
    from gatewright.tools import Tool, ToolExecutionContext
    from gatewright.tools.pin import Listing, Pin
    from gatewright.tools.schemashape import Runner
    from gatewright.workspace.catalog import CatalogBook
    from gatewright.workspace.pathrow import PathRow
    from gatewright.workspace.pins import CatalogState
    from gatewright.workspace.sandbox import Sandbox
    from gatewright.workspace.servers import Servers
    from gatewright.workspace.tokens import TokenBook


class Workspace:
    """Everything that the app and the commands do with one policy file. Open with ``Workspace.open``.

    ``policy`` is as edited now, ``problems`` the warnings found when it was read; ``revision`` grows with every edit.
    ``broker`` holds the questions and standing approvals, shared with other processes; the gate honours the latter, and
    asks through it only where a caller names it as the approver (``approver=workspace.broker``).
    """

    policy: Policy
    problems: tuple[Problem, ...]
    revision: int = 0

    def __init__(
        self,
        policy_path: Path,
        folders: Folders,
        clock: Clock,
        tools: tuple[Tool, ...] = (),
        *,
        trust: bool,
        durable: bool,
        approvals: ApprovalLimits | None = None,
        manifests: Mapping[str, bytes] | None = None,
        runs_servers: bool = True,
        image: WorkspaceImage | None = None,
    ) -> None:
        self.policy_path = policy_path
        self.folder = policy_path.parent
        self._folders = folders
        self._clock = clock
        self._lock, self._changing = fork_safe_lock(), fork_safe_lock()
        self._records, self._saved_views = TrustRecords(folders.keys), SavedViews()
        self._tools, self._manifests, self._trusting = tools, manifests or {}, trust
        self._runs_servers = runs_servers
        self._servers: Servers | None = None
        self._serving: ServingBook | None = None
        self._book = self._read_catalogs(None)
        if image is None:
            loaded, policy, self.problems = self._read(self._book, trust=trust)
        else:
            loaded, policy, self.problems = self._parse(self._book, image.text), image.saved, ()
        self._trusting = False
        self._adopt(policy, PolicyText(policy_path, loaded, policy, self._book.known), self._book)
        places = self._text.places(policy)
        self._watching: SourceWatching | None = None
        self._folder_watches: WeakSet[FolderWatch] = WeakSet()
        self._attachments = Attachments(policy_path, self._records)
        self._parts = assemble(
            policy,
            policy_path,
            folders,
            clock,
            places,
            tools,
            self._book,
            self._attachments,
            durable=durable,
            limits=approvals,
        )

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        tools: Iterable[Tool] = (),
        state: Path | None = None,
        keys: Path | None = None,
        clock: Clock | None = None,
        trust: bool = False,
        durable: bool | None = None,
        approvals: ApprovalLimits | None = None,
    ) -> Self:
        """Open a policy file, or the ``policy.toml`` of a folder: reads, starts nothing, writes nothing.

        ``tools``: those of the program itself, beside the built-in ones. ``durable``: audit rows outlast a loss of
        power too, which costs a write to the disk for each call; None: as ``GATEWRIGHT_DURABLE`` says. ``approvals``:
        how long a question to the broker waits, and how many one agent with one user may ask.

        Raises WorkspaceError (missing, unreadable), PolicyInvalid (all problems at once), or AlreadyRegistered for a
        tool with the name and major version of another.
        """
        policy_path = policy_path_of(Path(path))
        folders = Folders.of(policy_path, state=state, keys=keys)
        folders.require_real()
        clock, lasting = clock or SystemClock(), is_durable(durable)
        return cls(policy_path, folders, clock, tuple(tools), trust=trust, durable=lasting, approvals=approvals)

    def image(self) -> WorkspaceImage:
        """All that another process needs to have the same workspace, as values that can be pickled."""
        policy, text, book = self._now()
        saved_text, saved = text.as_saved
        manifests = {**book.contents(policy.catalogs), **book.contents(policy.catalogs, outside=True)}
        folders = self._folders.state, self._folders.keys
        return WorkspaceImage(self.policy_path, folders, saved_text, saved, policy, manifests)

    @classmethod
    def of_image(cls, image: WorkspaceImage, *, tools: Iterable[Tool] = ()) -> Self:
        """The workspace that ``image`` was made of, to be asked and not to be saved; policy and manifests are not read
        from the disk again. ``tools``: those of the program. Raises PolicyInvalid.
        """
        folders, clock = Folders(*image.folders), SystemClock()
        found = cls(
            image.policy_path,
            folders,
            clock,
            tuple(tools),
            trust=False,
            durable=False,
            manifests=image.manifests,
            image=image,
        )
        found.follow(image)
        return found

    def follow(self, image: WorkspaceImage) -> bool:
        """Be as a later image of the same workspace says; False where its file was read anew since."""
        policy, text, book = self._now()
        if image.text != text.saved and not text.keep_saved(image.saved, image.text):
            return False
        if image.policy is not policy:
            with self._changing:
                self._put_in_force(image.policy, text, None, book)
        return True

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
    def alarm(self) -> Alarm | None:
        """The alarm that lasts since the file could not be taken over; None while all is well."""
        return self.gate.alarm

    @property
    def broker(self) -> PermissionBroker:
        """Where questions to the operator wait, and the standing approvals."""
        return self._parts.broker

    def require_audit(self) -> None:
        """Raises AuditUnavailable where a log exists that cannot be continued, above all because its key is missing."""
        self._parts.audit.check()

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

        return SessionStore(self._folders.state / SESSIONS, self._folders.keys, self._clock)

    @property
    def serving(self) -> ServingBook:
        """The processes that serve this workspace to MCP clients (``gatewright serve``), and who is connected there."""
        from gatewright.gate.serving import ServingBook

        with self._lock:
            if self._serving is None:
                self._serving = ServingBook(self._folders.state, self._folders.keys)
            return self._serving

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

    @property
    def servers(self) -> Servers:
        """The MCP servers of the policy's catalogs; none of them starts before it is asked to."""
        from gatewright.workspace.servers import Servers

        with self._lock:
            if self._servers is None:
                self._servers = Servers(
                    self.folder,
                    lambda: self.policy.catalogs,
                    pin=lambda catalog: self.pin(catalog.catalog_id),
                    trusts=lambda catalog: self._records.trusts_server(self.policy_path, catalog),
                    record=self.record_listing,
                )
            return self._servers

    @property
    def sources(self) -> SourceManager:
        """The running sources."""
        return self._parts.sources

    def blocks(self, agent_id: str = "") -> BlockService:
        """The blocks of an agent and the shared ones, in the operator's hand: to make, look at, change, delete.

        Whatever the levels say, and read-only fields too. Without an agent: the shared ones alone.
        """
        return self._parts.blocks_of(agent_id)

    @property
    def catalog(self) -> tuple[ToolFacts, ...]:
        """The facts of every registered tool, as the policy's ``[tools.NAME]`` declare and change them."""
        snapshot = self.gate.snapshot()
        return overridden_all(snapshot.policy, snapshot.facts)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a reload reads: the policy and the manifests of its catalogs."""
        return (self.policy_path, *self._book.paths(self.policy.catalogs))

    def tool_schema(self, tool_name: str) -> Schema | None:
        """The whole schema of a tool as it came, whatever the policy declares of it; None for an unknown tool."""
        tool = self._tool(tool_name)
        return None if tool is None else as_it_came(tool).input_schema()

    def survey(self, tool_name: str) -> Survey | None:
        """What the tool's whole schema says of operations, for whoever declares them; None for an unknown tool."""
        from gatewright.schema import survey

        tool = self._tool(tool_name)
        return None if tool is None else survey(as_it_came(tool).input_schema(), tool.description)

    def is_executable(self, tool_name: str) -> bool:
        """Whether a call of the tool can be executed here; those of catalogs are run by their own program."""
        tool = self._tool(tool_name)
        return not isinstance(tool, DefinedTool) or tool.is_executable

    @property
    def is_dirty(self) -> bool:
        """Whether the policy now differs from the one on disk."""
        return not self.policy.is_same(self._text.saved_policy)

    @property
    def saved_text(self) -> str:
        """What the file holds."""
        return self._text.saved

    def check(self, edit: Edit) -> Policy:
        """The policy that the edit would make. Raises EditRefused; changes nothing."""
        from gatewright.policy import edit as edits
        from gatewright.workspace.refusal import (
            refuse_bad_pattern,
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
        refuse_unloadable(self._text, after, edit)
        refuse_hidden_requirement(after, edit, lambda: self._facts_under(after))
        refuse_orphaned_rule(self.policy, after)
        return after

    def apply(self, edit: Edit) -> ChangeSet:
        """Make the edit the policy in force. Raises EditRefused, and then nothing has changed."""
        from gatewright.policy import edit as edits

        with self._changing:
            after = self.check(edit)
            changed = edits.change_set(edit)
            self._put_in_force(after, self._text, changed, self._book)
        self._watch_what_is_said()
        return changed

    def rights(self, agent_id: str) -> Mapping[str, ToolRight]:
        """The agent's right on every registered tool, in catalog order; includes what is hidden and why."""
        return self.view(agent_id).rights

    def rights_under(self, policy: Policy, agent_id: str) -> Mapping[str, ToolRight]:
        """What ``rights`` would answer if ``policy`` were in force over the tools as they are now.

        Compiles what differs from the policy in force: for a large catalog not on the GUI thread.
        """
        agent = self.gate.snapshot().renewed(policy, None).agent(agent_id)
        return {} if agent is None else agent.rights

    def view(self, agent_id: str) -> AgentView:
        """What the model of one agent sees."""
        return self.gate.view(agent_id)

    def saved_view(self, agent_id: str) -> AgentView | None:
        """What the agent's model saw by the policy as it was last saved; None where that had no such agent.

        The first one after a save compiles what was edited since: not for the GUI thread. Where catalogs or roots were
        changed since, it is made of the tools of now, and `saved_view_remark` says so.
        """
        _, text, _ = self._now()
        return self._saved_views.view(self.gate, text.saved_policy, agent_id)

    def saved_view_remark(self) -> str:
        """What has to be known to compare saved views with present ones; empty where nothing has."""
        _, text, _ = self._now()
        return self._saved_views.remark(self.gate, text.saved_policy)

    def text(self) -> str:
        """The TOML as it would be saved now; byte-identical to the file while nothing differs."""
        return self._current().text

    def place(self, address: Address) -> Place | None:
        """Where a part of the policy stands in ``text()``."""
        return self._current().places.place(address)

    def current_problems(self) -> tuple[Problem, ...]:
        """Every problem of the policy as it is now; reads ``text()`` anew, so not for the GUI thread."""
        loaded = self._current()
        return (*loaded.problems, *self._told_beside(loaded, loaded.policy, trust=False))

    def save(self, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; the edits are kept then.

        A file that was changed outside is refused, unless ``overwrite``: then the policy as it is here replaces
        what the file says, in the text that is there now (its comments and order stay) as far as that text still
        loads, else in the text as it was here.
        """
        policy, text, _ = self._now()
        text.save(policy, overwrite=overwrite)

    def write_again(self) -> None:
        """Write the policy where its file is gone. Raises WorkspaceError, also where a file is there again."""
        policy, text, _ = self._now()
        text.write_again(policy)

    def saving_over(self) -> tuple[str | None, str]:
        """What the file holds now, None where it cannot be read, and what ``save(overwrite=True)`` would write."""
        policy, text, _ = self._now()
        return text.saving_over(policy)

    @property
    def is_gone(self) -> bool:
        """Whether nothing is where the policy was read from."""
        return not os.path.lexists(self.policy_path)

    def changed_outside(self) -> bool:
        """Whether the file on disk, or a manifest that it names, is no longer what was read or saved here."""
        _, text, book = self._now()
        return text.changed_outside() or book.changed(text.saved_policy.catalogs)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again, dropping unsaved edits; with errors the last good policy stays in force, and an alarm
        says so until a good one is read. The manifests of its catalogs are read again with it.

        The gate stays the same object: running calls finish as they began, waiting ones are decided again. Returns the
        problems of what was read. Raises WorkspaceError when it cannot be read, which raises the alarm too.
        """
        with self._changing:
            book = self._read_catalogs(self._book)
            try:
                loaded, policy, problems = self._read(book, trust=False)
            except PolicyInvalid as error:
                self._detach_untrusted()
                self.gate.refuse(error.problems)
                return error.problems
            except WorkspaceError as error:
                self._detach_untrusted()
                self.gate.refuse([Problem(Severity.ERROR, "unreadable", str(error))])
                raise
            text = PolicyText(self.policy_path, loaded, policy, book.known)
            self._put_in_force(policy, text, None, book, afresh=True)
            self.problems = problems
        self._watch_what_is_said()
        return problems

    def export(self, folder: Path, *, dialect: str = "gatewright", agent_id: str | None = None) -> tuple[Path, ...]:
        """Write the policy, its manifests, and the folders it names, for a deployment. Raises WorkspaceError."""
        from gatewright.workspace import export as exporting

        policy, _, book = self._now()
        texts = self.export_texts(dialect, agent_id)
        whole = dialect == "gatewright"
        bases = written_folders(policy) if whole else []
        manifests = book.contents(policy.catalogs) if whole else {}
        return exporting.write_export(folder, texts, self.folder, bases, manifests)

    def export_texts(self, dialect: str, agent_id: str | None = None) -> dict[str, str]:
        """File name to text of what ``export`` writes."""
        from gatewright.workspace import export as exporting

        return exporting.export_texts(self.policy, self.text(), dialect, agent_id)

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
        return tuple(path_rows(source, resolved(source.base_path, self.folder), self.sources, paths))

    async def reconcile(self, source_id: str, path: str, strategy: str = "ask") -> JsonValue:
        """Bring a file and its block into step, in the operator's hand; nothing on disk is changed.

        ``strategy``: ``ours`` keeps the block's text, ``theirs`` takes the disk's, ``merge`` puts both together where
        they do not conflict, ``ask`` only tells. Answers path, state, strategy, outcome, and of a conflict its places
        and both differences. Raises WorkspaceError for an unknown source or strategy, and where there is no block.
        """
        at = self.sources.locate(path, source_id=source_id, allowed=self.sources.ids)
        if isinstance(at, Refusal):
            raise WorkspaceError(at.reason)
        try:
            return await self.sources.reconcile(at, strategy)
        except ToolFailure as failure:
            raise WorkspaceError(f"`{at.relative}` of `{source_id}`: {failure}") from None

    def watch_sources(self, notify: Callable[[Noticed], None], *, debounce_ms: int = 400) -> SourceWatching:
        """Watch the sources that say ``watch = true`` until ``close``; edits and reloads are followed.

        What changed outside is taken into blocks, merged with edits of other lines there; a conflict is only told.
        ``notify`` is called in a thread of ours; a second watch takes the place of the first. Nothing is watched before
        this is called.
        """
        before, watching = self._watching, SourceWatching(self.sources, lambda: self.policy, notify, debounce_ms)
        if before is not None:
            before.close()
        self._watching = watching
        watching.follow()
        return watching

    def watch_folder(self, source_id: str, notify: Callable[[FolderNews], None]) -> FolderWatch:
        """Tell what happens below the folder of a source until ``close``, whether it says ``watch`` or not.

        Nothing is taken into blocks. ``notify`` is called in a thread of ours. Raises WorkspaceError.
        """
        from gatewright.sources.folderwatch import FolderWatch

        source = self.sources.get(source_id)
        if source is None:
            raise WorkspaceError(f"source `{source_id}` is not attached")
        made = FolderWatch(source.folder, notify)
        self._folder_watches.add(made)
        return made

    def root_folders(self) -> Mapping[str, BaseFolder]:
        """The folders that the roots were opened on, by name."""
        return self._attachments.roots()

    def outside(self, base_path: str) -> Path | None:
        """The real folder of a source with that base where it lies outside the workspace, else None."""
        base = resolved(base_path, self.folder)
        return None if is_inside(base, self.folder) else base

    def trust_source(self, source_id: str, base_path: str) -> None:
        """Remember, by the operator's word, that this source may reach this folder. Raises WorkspaceError."""
        self._records.trust_source(self.policy_path, source_id, resolved(base_path, self.folder))

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
        return self.gate.decide(agent_id, tool, arguments, session=session, context=context)

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
    ) -> Outcome:
        """Send a call through the whole gate. ``session``: the conversation that it belongs to, else the own one
        of the agent and user.

        ``context``: the user that it is made for (its ``user_id``; the gate knows the rest); ``approver``: who is asked
        where the call asks; ``on_stage`` is told each stage as it passes.
        """
        return await self.gate.call(
            agent_id, tool, arguments, session=session, context=context, approver=approver, on_stage=on_stage
        )

    def sandbox(
        self,
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Sandbox[Workspace]:
        """A disposable copy of the workspace with the policy as edited now; it can take long: not on the GUI thread.

        The blocks as they are now come along. Tools that the program brought are the very same in the copy: what they
        do elsewhere is not contained.
        ``cancelled`` is asked before every entry, ``progress`` told the files and bytes copied so far. Raises
        WorkspaceError when it is too large, CopyCancelled when it was cancelled; then nothing of the copy is left.
        """
        from gatewright.workspace.sandbox import CopyWatch, Sandbox

        idle = CopyWatch()
        watch = CopyWatch(cancelled or idle.cancelled, progress or idle.progress)
        policy, text, book = self._now()
        bases = self._attachments.folders()
        files, left_out = book.contents(policy.catalogs), (self._folders.state, self._folders.keys)
        outside = book.contents(policy.catalogs, outside=True)

        def open_copy(policy_path: Path, state: Path, keys: Path) -> Workspace:
            folders = Folders.of(policy_path, state=state, keys=keys)
            return Workspace(
                policy_path,
                folders,
                self._clock,
                self._tools,
                trust=False,
                durable=False,
                manifests=outside,
                runs_servers=False,
            )

        return Sandbox(self, text.of(policy).text, bases, open_copy, files=files, left_out=left_out, watch=watch)

    def __enter__(self) -> Self:
        """The workspace; closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close what was opened, stop what was started; calls and decisions raise WorkspaceError afterwards."""
        self.gate.close()
        for folder_watch in self._folder_watches:
            folder_watch.stop()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
        if self._servers is not None:
            self._servers.close()
        if self._serving is not None:
            self._serving.close()
        self._parts.close()

    def catalog_states(self) -> tuple[CatalogState, ...]:
        """The catalogs of the policy as they stand now, in its order. Nothing is started or asked."""
        from gatewright.workspace.pins import CatalogState

        policy, _, book = self._now()
        tools = book.tools(policy.catalogs)
        return tuple(
            CatalogState(
                catalog,
                book.manifest(catalog).pin,
                self.trusts_server(catalog.catalog_id) if catalog.kind is CatalogType.MCP else None,
                tuple(tool.name for tool in tools if tool.origin == catalog.catalog_id),
                tuple(tool.name for tool in tools if tool.origin == catalog.catalog_id and tool.held),
            )
            for catalog in policy.catalogs
        )

    def pin(self, catalog_id: str) -> Pin | None:
        """What a server listed and what of that was accepted, as it was read; None where it was never imported."""
        _, _, book = self._now()
        return book.manifest(self._server(catalog_id)).pin

    def trusts_server(self, catalog_id: str) -> bool:
        """Whether exactly the command, or the address, of a catalog was trusted. Raises WorkspaceError."""
        return self._records.trusts_server(self.policy_path, self._server(catalog_id))

    def trust_server(self, catalog_id: str) -> None:
        """Remember, by the operator's word, that this server may be started or asked. Raises WorkspaceError."""
        self._records.trust_server(self.policy_path, self._server(catalog_id))

    def server_digest(self, catalog_id: str) -> str:
        """What is trusted of a server: the digest of its definition. Raises WorkspaceError."""
        return server_digest(self.policy_path, self._server(catalog_id))

    def record_listing(self, catalog_id: str, listing: Listing) -> Pin:
        """Keep what a server says of its tools now: what is new or changed is held, by the policy in force too.

        Raises WorkspaceError, PolicyInvalid for a policy that could not be loaded then.
        """
        from gatewright.tools.pin import Pin, relisted, write_pin

        before = self.pin(catalog_id)
        after = relisted(before or Pin(), listing)
        if before is None or write_pin(after) != write_pin(before):  # values that are equal may differ: 1 and true
            self._replace_pin(self._server(catalog_id), after)
        return after

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
        """Accept tools of a server as it lists them; agents that list them see them from now on.

        None: all that wait, but those that vanished and that the policy still names. The options: as of
        `gatewright.tools.pin.accept`; ``who`` goes to the log. Raises EditRefused for a name that is not there,
        WorkspaceError, and PolicyInvalid for a policy that could not be loaded then.
        """
        from gatewright.tools.pin import accept
        from gatewright.workspace.pins import accepted_row

        catalog, before = self._server(catalog_id), self.pin(catalog_id)
        if before is None:
            raise WorkspaceError(f"the tools of catalog `{catalog_id}` were never imported")

        def take(wanted: Iterable[str] | None) -> Pin:
            after = accept(
                before,
                wanted,
                tiers=tiers or {},
                trusted=catalog.trusted,
                needs_capabilities=needs_capabilities,
                instructions=instructions,
            )
            if after != before:
                self._replace_pin(catalog, after, accepted_row(catalog, before, after, who))
            return after

        try:
            return take(names)
        except PolicyInvalid:
            if names is not None or not before.drift.vanished:
                raise
            return take((*before.drift.new, *before.drift.changed))

    def _replace_pin(self, catalog: Catalog, pin: Pin, row: AuditEntry | None = None) -> None:
        """Write a pin and put it in force, if the policy as it is edited can be loaded with it."""
        from gatewright.tools.pin import write_pin
        from gatewright.workspace.pins import store

        with self._changing:
            policy, text, book = self._now()
            if book.manifest(catalog).changed():
                raise WorkspaceError(f"the pin of catalog `{catalog.catalog_id}` was changed outside: reload it first")
            tried = self._read_catalogs(book, {catalog.file: write_pin(pin)})
            found = text.reread(tried.known).of(policy).problems
            if any(problem.is_error for problem in found):
                raise PolicyInvalid(found)
            if row is not None:
                self._parts.audit.append([row])
            store(self.folder, catalog, pin)
            fresh = self._read_catalogs(book)
            self._put_in_force(policy, text.reread(fresh.known), None, fresh)

    def _server(self, catalog_id: str) -> Catalog:
        catalog = self.policy.catalog(catalog_id)
        if catalog is None:
            near = near_hint(catalog_id, (one.catalog_id for one in self.policy.catalogs))
            raise WorkspaceError(f"no catalog `{catalog_id}`{near}")
        if catalog.kind is not CatalogType.MCP:
            raise WorkspaceError(f"catalog `{catalog_id}` is no server: its tools are run by another program")
        return catalog

    def _read(self, book: CatalogBook, *, trust: bool) -> tuple[LoadedPolicy, Policy, tuple[Problem, ...]]:
        loaded = load(self.policy_path, book.known)
        problems = (*loaded.problems, *self._told_beside(loaded, loaded.policy, trust=trust))
        if loaded.policy is None or any(problem.is_error for problem in problems):
            raise PolicyInvalid(problems)
        if trust:
            for catalog_id, manifest, content in book.outside(loaded.policy.catalogs):
                self._records.trust_manifest(self.policy_path, catalog_id, manifest, content)
            for catalog in loaded.policy.catalogs:
                if catalog.kind is CatalogType.MCP:
                    self._records.trust_server(self.policy_path, catalog)
            problems = tuple(problem for problem in problems if problem.code != SERVER_NOT_TRUSTED)
        return loaded, loaded.policy, problems

    def _parse(self, book: CatalogBook, text: str) -> LoadedPolicy:
        """What comes of a text that was read before. Raises PolicyInvalid."""
        loaded = parse_policy(text, file=str(self.policy_path), known=book.known)
        if loaded.policy is None:
            raise PolicyInvalid(loaded.problems)
        return loaded

    def _read_catalogs(self, before: CatalogBook | None, given: Mapping[str, bytes] | None = None) -> CatalogBook:
        """``given``: read instead of files, by the path that the policy writes."""
        return catalog_book(
            self.policy_path,
            self._tools,
            before,
            records=self._records,
            trust=lambda: self._trusting,
            given={**self._manifests, **(given or {})},
            runner=self._runner if self._runs_servers else None,
        )

    def _runner(self, catalog_id: str, name: str) -> Runner:
        async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> object:
            return await self.servers.run(catalog_id, name, arguments, context)

        return run

    def _put_in_force(
        self,
        after: Policy,
        text: PolicyText,
        changed: ChangeSet | None,
        book: CatalogBook,
        *,
        afresh: bool = False,
    ) -> None:
        """Sources, tools and policy change for the gate in one step; what is not needed any more goes afterwards."""
        same = (book, after.catalogs, after.roots) == (self._book, self.policy.catalogs, self.policy.roots)
        tools = () if same else book.tools(after.catalogs)
        self._parts.protection.cover(book.paths(after.catalogs))
        self._attachments.follow(after, afresh=afresh)
        withdraw_idle = self.sources.follow(self._attachments.sources(after))
        self.gate.reload(
            after,
            changed,
            places=text.places(after),
            sources=self.sources.pinned(),
            roots=self._parts.roots(self._attachments.roots(), self.folder),
            blocks=self._parts.agent_blocks(),
            tools=None if same else lambda: self._parts.follow(after, tools),
        )
        withdraw_idle()
        self._adopt(after, text, book)
        if self._servers is not None:
            self._servers.follow()
        self.revision += 1

    def _detach_untrusted(self) -> None:
        """The last good policy goes on, but with nothing that leads out of the workspace by now without trust."""
        if self._attachments.follow(self.policy, afresh=True):
            self._put_in_force(self.policy, self._text, None, self._book)
            self._watch_what_is_said()

    def _watch_what_is_said(self) -> None:
        watching = self._watching
        if watching is not None:
            watching.follow()

    def _told_beside(self, loaded: LoadedPolicy, policy: Policy | None, *, trust: bool) -> Iterator[Problem]:
        """What the text alone does not tell: of the folders that a policy names, and what is worth a warning."""
        yield from folder_problems(loaded, self.policy_path, self._records, trust=trust)
        if policy is not None:
            yield from server_problems(policy, self.policy_path, self._records, loaded.places.place)
            yield from grant_problems(policy, self.folder, lambda: self._facts_of(loaded), loaded.places.place)
        yield from lints(loaded, lambda: self._facts_of(loaded))

    def _facts_of(self, loaded: LoadedPolicy) -> tuple[ToolFacts, ...]:
        """The tools that a text was held to; of one with edited agents, those of now."""
        known = loaded.reading.known if loaded.reading is not None else None
        return self.gate.snapshot().facts if known is None else known.facts

    def _adopt(self, policy: Policy, text: PolicyText, book: CatalogBook) -> None:
        with self._lock:
            self.policy, self._text, self._book = policy, text, book

    def _now(self) -> tuple[Policy, PolicyText, CatalogBook]:
        """The policy as edited, the text that its edits began with, and the manifests that were read with it."""
        with self._lock:
            return self.policy, self._text, self._book

    def _current(self) -> LoadedPolicy:
        policy, text, _ = self._now()
        return text.of(policy)

    def _facts_under(self, after: Policy) -> tuple[ToolFacts, ...]:
        """The facts of every tool, read as that policy declares it."""
        if after.catalogs != self.policy.catalogs:
            return self._facts_of(self._text.of(after))
        if after.tools == self.policy.tools:
            return self.gate.snapshot().facts
        return self._book.declared_all(after, self._parts.registry.facts())

    def _tool(self, tool_name: str) -> Tool | None:
        name, major = split_name(tool_name)
        return self._parts.registry.get(name, major)
