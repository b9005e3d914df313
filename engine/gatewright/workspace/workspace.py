"""One open workspace: its policy as edited now, its gate, its sources. It knows no widget and no option.

The one path an edit takes below the app: ``check`` (nothing happens), ``apply`` (the gate swaps its snapshot), ``save``
(the difference between the policy on disk and the policy now is patched into the text on disk).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gatewright.base.clock import SystemClock
from gatewright.base.errors import EditRefused, PolicyInvalid, WorkspaceError
from gatewright.base.problem import Problem, Severity
from gatewright.gate import SelfCheck, SessionStore, is_durable, selfcheck
from gatewright.gate.sessionstore import FOLDER as SESSIONS
from gatewright.policy import edit as edits
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.policy.requirement import has_requirement, hidden_requirements, majors_of
from gatewright.policy.setting import overridden_all
from gatewright.schema.formats import FORMATS
from gatewright.workspace import export as exporting
from gatewright.workspace.assembly import Folders, assemble, base_problems, based, known_tools, load_valid
from gatewright.workspace.location import policy_path_of, resolved
from gatewright.workspace.pathrow import PathRow
from gatewright.workspace.policytext import PolicyText
from gatewright.workspace.sandbox import CopyWatch, Sandbox
from gatewright.workspace.trust import TrustRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gatewright.base.clock import Clock
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.base.problem import Address, Place
    from gatewright.gate import (
        AgentView,
        Alarm,
        Approver,
        Decision,
        Gate,
        Outcome,
        PermissionBroker,
        Session,
        StageTrace,
    )
    from gatewright.policy.document import Policy
    from gatewright.policy.edit import ChangeSet, Edit
    from gatewright.policy.right import ToolFacts, ToolRight
    from gatewright.policyfile import LoadedPolicy
    from gatewright.sources import SourceManager
    from gatewright.tools import Tool


def format_names() -> tuple[str, ...]:
    """The provider formats that a preview can have."""
    return tuple(FORMATS)


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
    ) -> None:
        self.policy_path = policy_path
        self.folder = policy_path.parent
        self._folders = folders
        self._clock = clock
        self._lock, self._changing = threading.Lock(), threading.RLock()
        self._records = TrustRecords(folders.keys)
        self._tools, self._known = tools, known_tools(tools)
        loaded, policy, self.problems = self._read(trust=trust)
        self._adopt(policy, PolicyText(policy_path, loaded, policy, self._known))
        places = self._text.places(policy)
        self._parts = assemble(policy, policy_path, folders, clock, places, tools, durable=durable)

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
    ) -> Self:
        """Open a policy file, or the ``policy.toml`` of a folder: reads, starts nothing, writes nothing.

        ``tools``: those of the program itself, beside the built-in ones. ``durable``: audit rows outlast a loss of
        power too, which costs a write to the disk for each call; None: as ``GATEWRIGHT_DURABLE`` says.

        Raises WorkspaceError (missing, unreadable), PolicyInvalid (all problems at once), or AlreadyRegistered for a
        tool with the name and major version of another.
        """
        policy_path = policy_path_of(Path(path))
        folders = Folders.of(policy_path, state=state, keys=keys)
        return cls(policy_path, folders, clock or SystemClock(), tuple(tools), trust=trust, durable=is_durable(durable))

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

    @property
    def sessions(self) -> SessionStore:
        """Where sessions are kept between runs of a program, in the state folder."""
        return SessionStore(self._folders.state / SESSIONS, self._clock)

    @property
    def sources(self) -> SourceManager:
        """The running sources."""
        return self._parts.sources

    @property
    def catalog(self) -> tuple[ToolFacts, ...]:
        """The facts of every registered tool, as the policy's ``[tools.NAME]`` change them."""
        return overridden_all(self.policy, self._parts.registry.facts())

    @property
    def is_dirty(self) -> bool:
        """Whether the policy now differs from the one on disk."""
        return self.policy != self._text.saved_policy

    @property
    def saved_text(self) -> str:
        """What the file holds."""
        return self._text.saved

    def check(self, edit: Edit) -> Policy:
        """The policy that the edit would make. Raises EditRefused; changes nothing."""
        after = edits.apply(self.policy, edit)
        for change in edit.changes:
            if isinstance(change, edits.SourceChange) and change.after is not None:
                for rule in change.after.permission_rules:
                    if message := check_pattern(rule.pattern):
                        raise EditRefused(message)
        self._refuse_untrusted(after)
        self._refuse_hidden_requirement(after, edit)
        self._refuse_orphaned_rule(after)
        return after

    def apply(self, edit: Edit) -> ChangeSet:
        """Make the edit the policy in force. Raises EditRefused, and then nothing has changed."""
        with self._changing:
            after = self.check(edit)
            changed = edits.change_set(edit)
            self._put_in_force(after, self._text, changed)
            return changed

    def rights(self, agent_id: str) -> Mapping[str, ToolRight]:
        """The agent's right on every registered tool, in catalog order; includes what is hidden and why."""
        return self.view(agent_id).rights

    def view(self, agent_id: str) -> AgentView:
        """What the model of one agent sees."""
        return self.gate.view(agent_id)

    def text(self) -> str:
        """The TOML as it would be saved now; byte-identical to the file while nothing differs."""
        return self._current().text

    def place(self, address: Address) -> Place | None:
        """Where a part of the policy stands in ``text()``."""
        return self._current().places.place(address)

    def current_problems(self) -> tuple[Problem, ...]:
        """Every problem of the policy as it is now; reads ``text()`` anew, so not for the GUI thread."""
        loaded = self._current()
        return (*loaded.problems, *self._base_problems(loaded, trust=False))

    def save(self, *, overwrite: bool = False) -> None:
        """Write the difference into the file, atomically. Raises WorkspaceError; the edits are kept then.

        A file that was changed outside is refused, unless ``overwrite``: then the policy as it is here replaces
        what the file says, in the text that is there now (its comments and order stay) as far as that text still
        loads, else in the text as it was here.
        """
        policy, text = self._now()
        text.save(policy, overwrite=overwrite)

    def changed_outside(self) -> bool:
        """Whether the file on disk is no longer what was read or saved here."""
        return self._text.changed_outside()

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again, dropping unsaved edits; with errors the last good policy stays in force, and an alarm
        says so until a good one is read.

        The gate stays the same object: running calls finish as they began, waiting ones are decided again. Returns the
        problems of what was read. Raises WorkspaceError when it cannot be read, which raises the alarm too.
        """
        with self._changing:
            try:
                loaded, policy, problems = self._read(trust=False)
            except PolicyInvalid as error:
                self.gate.refuse(error.problems)
                return error.problems
            except WorkspaceError as error:
                self.gate.refuse([Problem(Severity.ERROR, "unreadable", str(error))])
                raise
            self._put_in_force(policy, PolicyText(self.policy_path, loaded, policy, self._known), None)
            self.problems = problems
            return problems

    def export(self, folder: Path, *, dialect: str = "gatewright", agent_id: str | None = None) -> tuple[Path, ...]:
        """Write the policy, and the folders it names, for a deployment. Raises WorkspaceError."""
        texts = self.export_texts(dialect, agent_id)
        bases = [source.base_path for source in self.policy.sources] if dialect == "gatewright" else []
        return exporting.write_export(folder, texts, self.folder, bases)

    def export_texts(self, dialect: str, agent_id: str | None = None) -> dict[str, str]:
        """File name to text of what ``export`` writes."""
        return exporting.export_texts(self.policy, self.text(), dialect, agent_id)

    def not_exported(self, dialect: str) -> tuple[str, ...]:
        """The agents that ``export`` in that dialect writes no file for, since they have no tool."""
        return exporting.not_exported(self.policy, dialect)

    def explain_paths(self, source_id: str, paths: Iterable[str]) -> tuple[PathRow, ...]:
        """The level of paths by a source's rules; protected files are none."""
        source = self.policy.source(source_id)
        if source is None:
            raise WorkspaceError(f"no source `{source_id}`")
        rules = PermissionRules(source.permission_rules, source.default_permission)
        base = resolved(source.base_path, self.folder)
        return tuple(self._path_row(rules, base, path) for path in paths)

    def selfcheck(self) -> SelfCheck:
        """Compare listed, valid and callable for every agent, tool and operation."""
        return selfcheck(self.gate)

    def decide(
        self,
        agent_id: str,
        tool: str,
        arguments: str | bytes | Mapping[str, JsonValue],
        *,
        session: Session | None = None,
    ) -> Decision:
        """What the gate would say to a call; free of effects."""
        return self.gate.decide(agent_id, tool, arguments, session=session)

    async def call(
        self,
        agent_id: str,
        tool: str,
        arguments: str | bytes | Mapping[str, JsonValue],
        *,
        session: Session | None = None,
        approver: Approver | None = None,
        on_stage: Callable[[StageTrace], None] | None = None,
    ) -> Outcome:
        """Send a call through the whole gate."""
        return await self.gate.call(agent_id, tool, arguments, session=session, approver=approver, on_stage=on_stage)

    def sandbox(
        self,
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Sandbox:
        """A disposable copy of the workspace with the policy as edited now; it can take long: not on the GUI thread.

        Tools that the program brought are the very same in the copy: what they do elsewhere is not contained.
        ``cancelled`` is asked before every entry, ``progress`` told the files and bytes copied so far. Raises
        WorkspaceError when it is too large, CopyCancelled when it was cancelled; then nothing of the copy is left.
        """
        idle = CopyWatch()
        watch = CopyWatch(cancelled or idle.cancelled, progress or idle.progress)
        bases = [resolved(source.base_path, self.folder) for source in self.policy.sources]
        left_out = (self._folders.state, self._folders.keys)
        return Sandbox(self.policy_path, self.text(), bases, self._open_copy, left_out=left_out, watch=watch)

    def close(self) -> None:
        """Close what was opened; the object is of no use afterwards."""
        self._parts.close()

    def _open_copy(self, policy_path: Path, state: Path, keys: Path) -> Workspace:
        return Workspace.open(policy_path, tools=self._tools, state=state, keys=keys, clock=self._clock, durable=False)

    def _read(self, *, trust: bool) -> tuple[LoadedPolicy, Policy, tuple[Problem, ...]]:
        loaded, policy = load_valid(self.policy_path, self._known)
        problems = (*loaded.problems, *self._base_problems(loaded, trust=trust))
        if any(problem.is_error for problem in problems):
            raise PolicyInvalid(problems)
        return loaded, policy, problems

    def _put_in_force(self, after: Policy, text: PolicyText, changed: ChangeSet | None) -> None:
        """The sources and the policy change for the gate in one step; what is not needed any more goes afterwards."""
        withdraw_idle = self.sources.follow(based(after, self.folder))
        self.gate.reload(after, changed, places=text.places(after), sources=self.sources.pinned())
        withdraw_idle()
        self._adopt(after, text)
        self.revision += 1

    def _base_problems(self, loaded: LoadedPolicy, *, trust: bool) -> tuple[Problem, ...]:
        if loaded.policy is None:
            return ()
        return base_problems(loaded.policy.sources, self.policy_path, self._records, loaded.places.place, trust=trust)

    def _adopt(self, policy: Policy, text: PolicyText) -> None:
        with self._lock:
            self.policy, self._text = policy, text

    def _now(self) -> tuple[Policy, PolicyText]:
        """The policy as edited, and the text that its edits began with."""
        with self._lock:
            return self.policy, self._text

    def _current(self) -> LoadedPolicy:
        policy, text = self._now()
        return text.of(policy)

    def _refuse_hidden_requirement(self, after: Policy, edit: Edit) -> None:
        changed = edits.change_set(edit)
        everybody = changed.everything or bool(changed.sources)
        agents = [
            agent
            for agent_id, agent in after.agents.items()
            if (everybody or agent_id in changed.agents) and has_requirement(agent)
        ]
        majors = majors_of(self._parts.registry.facts()) if agents else {}
        for agent in agents:
            for found in hidden_requirements(after, agent, majors):
                raise EditRefused(
                    f"`{agent.agent_id}` must {found.demand} {found.what} by tool rule {found.index + 1}, "
                    "so it cannot be hidden"
                )

    def _refuse_orphaned_rule(self, after: Policy) -> None:
        """A policy rule for an agent that is not there could not be loaded again."""
        if after.rules is self.policy.rules and after.agents.keys() >= self.policy.agents.keys():
            return
        for rule in after.rules:
            if missing := set(rule.agents or ()) - after.agents.keys():
                raise EditRefused(f"the policy rule `{rule.name}` is for agent `{min(missing)}`, which is not there")

    def _refuse_untrusted(self, after: Policy) -> None:
        known = {(source.source_id, source.base_path) for source in self.policy.sources}
        fresh = tuple(source for source in after.sources if (source.source_id, source.base_path) not in known)
        found = base_problems(fresh, self.policy_path, self._records, self.place, trust=False)
        if refused := next((problem for problem in found if problem.is_error), None):
            raise EditRefused(refused.message)

    def _path_row(self, rules: PermissionRules, base: Path, path: str) -> PathRow:
        found = rules.explain(path)
        if not found.outside and self.sources.protects(base / path):
            return PathRow(path, self.sources.PROTECTED_LEVEL, outside=False, index=None, pattern=None)
        return PathRow(path, found.permission, found.outside, found.index, found.pattern)
