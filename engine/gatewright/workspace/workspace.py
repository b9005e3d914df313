"""One open workspace: its policy as edited now, its gate, its sources. It knows no widget and no option.

The one path an edit takes below the app: ``check`` (nothing happens), ``apply`` (the gate swaps its snapshot), ``save``
(the difference between the policy on disk and the policy now is patched into the text on disk).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gatewright.base.clock import SystemClock
from gatewright.base.errors import EditRefused, PolicyInvalid, WorkspaceError
from gatewright.gate import SelfCheck, selfcheck
from gatewright.policy import edit as edits
from gatewright.policy.effective import hidden_starts
from gatewright.policy.glob import PermissionRules, check_pattern
from gatewright.schema.formats import FORMATS
from gatewright.workspace import export as exporting
from gatewright.workspace.assembly import Folders, Parts, assemble, base_problems, load_valid
from gatewright.workspace.location import policy_path_of, resolved
from gatewright.workspace.policytext import PolicyText
from gatewright.workspace.sandbox import CopyWatch, Sandbox
from gatewright.workspace.trust import TrustRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gatewright.base.clock import Clock
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.base.problem import Address, Place, Problem
    from gatewright.gate import AgentView, Approver, Decision, Gate, Outcome, Session, StageTrace
    from gatewright.policy.document import Policy
    from gatewright.policy.edit import ChangeSet, Edit
    from gatewright.policy.permission import Permission
    from gatewright.policy.right import ToolFacts, ToolRight
    from gatewright.policyfile import LoadedPolicy
    from gatewright.sources import SourceManager


@dataclass(frozen=True, slots=True)
class PathRow:
    """The level of one path by the rules of a source; ``index`` counts rules from 0, None is the default."""

    path: str
    permission: Permission
    outside: bool
    index: int | None
    pattern: str | None

    def to_json(self) -> dict[str, object]:
        """Shape: path, permission, outside, rule {index, pattern} or None."""
        rule = None if self.index is None else {"index": self.index, "pattern": self.pattern}
        return {"path": self.path, "permission": str(self.permission), "outside": self.outside, "rule": rule}


def format_names() -> tuple[str, ...]:
    """The provider formats that a preview can have."""
    return tuple(FORMATS)


class Workspace:
    """Everything that the app and the commands do with one policy file. Open with ``Workspace.open``.

    ``policy`` is as edited now, ``problems`` the warnings found when it was read; ``revision`` grows with every edit.
    """

    policy: Policy
    problems: tuple[Problem, ...]
    revision: int = 0

    def __init__(self, policy_path: Path, folders: Folders, clock: Clock, *, trust: bool) -> None:
        self.policy_path = policy_path
        self.folder = policy_path.parent
        self._folders = folders
        self._clock = clock
        self._lock = threading.Lock()
        self._records = TrustRecords(folders.keys)
        self._parts = self._assembled(*load_valid(policy_path), trust=trust)
        self._adopt()

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        state: Path | None = None,
        keys: Path | None = None,
        clock: Clock | None = None,
        trust: bool = False,
    ) -> Self:
        """Open a policy file, or the ``policy.toml`` of a folder: reads, starts nothing, writes nothing.

        Raises WorkspaceError (missing, unreadable) or PolicyInvalid (all problems at once).
        """
        policy_path = policy_path_of(Path(path))
        folders = Folders.of(policy_path, state=state, keys=keys)
        return cls(policy_path, folders, clock or SystemClock(), trust=trust)

    @property
    def name(self) -> str:
        """The policy's name, else its folder's."""
        return self.policy.name or self.folder.name

    @property
    def gate(self) -> Gate:
        """The gate that enforces the policy as it is now."""
        return self._parts.gate

    @property
    def sources(self) -> SourceManager:
        """The running sources."""
        return self._parts.sources

    @property
    def catalog(self) -> tuple[ToolFacts, ...]:
        """The facts of every registered tool."""
        return self._parts.registry.facts()

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
        self._refuse_hidden_start(after, edit)
        return after

    def apply(self, edit: Edit) -> ChangeSet:
        """Make the edit the policy in force. Raises EditRefused, and then nothing has changed."""
        after = self.check(edit)
        changed = edits.change_set(edit)
        self._follow_sources(self.policy, after, changed)
        self.policy = after
        self.gate.reload(after, changed)
        self.revision += 1
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
        """Read the file again, dropping unsaved edits; with errors the last good policy stays in force.

        Returns the problems of what was read.
        """
        try:
            parts = self._assembled(*load_valid(self.policy_path), trust=False)
        except PolicyInvalid as error:
            return error.problems
        self._close_parts()
        self._parts = parts
        self._adopt()
        self.revision += 1
        return self.problems

    def export(self, folder: Path, *, dialect: str = "gatewright", agent_id: str | None = None) -> tuple[Path, ...]:
        """Write the policy, and the folders it names, for a deployment. Raises WorkspaceError."""
        texts = self.export_texts(dialect, agent_id)
        bases = [source.base_path for source in self.policy.sources] if dialect == "gatewright" else []
        return exporting.write_export(folder, texts, self.folder, bases)

    def export_texts(self, dialect: str, agent_id: str | None = None) -> dict[str, str]:
        """File name to text of what ``export`` writes."""
        return exporting.export_texts(self.policy, self.text(), dialect, agent_id)

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
        self._close_parts()

    def _open_copy(self, policy_path: Path, state: Path, keys: Path) -> Workspace:
        return Workspace.open(policy_path, state=state, keys=keys, clock=self._clock)

    def _assembled(self, loaded: LoadedPolicy, policy: Policy, *, trust: bool) -> Parts:
        problems = self._base_problems(loaded, trust=trust)
        if any(problem.is_error for problem in problems):
            raise PolicyInvalid((*loaded.problems, *problems))
        self.problems = (*loaded.problems, *problems)
        return assemble(loaded, policy, self.policy_path, self._folders, self._clock, self.place)

    def _base_problems(self, loaded: LoadedPolicy, *, trust: bool) -> tuple[Problem, ...]:
        if loaded.policy is None:
            return ()
        return base_problems(loaded.policy.sources, self.policy_path, self._records, loaded.places.place, trust=trust)

    def _adopt(self) -> None:
        text = PolicyText(self.policy_path, self._parts.loaded, self._parts.policy)
        with self._lock:
            self.policy, self._text = self._parts.policy, text

    def _now(self) -> tuple[Policy, PolicyText]:
        """The policy as edited, and the text that its edits began with."""
        with self._lock:
            return self.policy, self._text

    def _current(self) -> LoadedPolicy:
        policy, text = self._now()
        return text.of(policy)

    def _refuse_hidden_start(self, after: Policy, edit: Edit) -> None:
        for agent_id in edits.change_set(edit).agents & after.agents.keys():
            agent = after.agents[agent_id]
            for index in hidden_starts(after, agent, self.catalog):
                name = agent.tool_rules[index].tool_name
                raise EditRefused(
                    f"`{agent_id}` must start with `{name}` by tool rule {index + 1}, so it cannot be hidden"
                )

    def _refuse_untrusted(self, after: Policy) -> None:
        known = {(source.source_id, source.base_path) for source in self.policy.sources}
        fresh = tuple(source for source in after.sources if (source.source_id, source.base_path) not in known)
        found = base_problems(fresh, self.policy_path, self._records, self.place, trust=False)
        if refused := next((problem for problem in found if problem.is_error), None):
            raise EditRefused(refused.message)

    def _follow_sources(self, before: Policy, after: Policy, changed: ChangeSet) -> None:
        for source_id in changed.sources:
            old, new = before.source(source_id), after.source(source_id)
            if new is None:
                self.sources.stop(source_id)
            elif old is None or old.base_path != new.base_path:
                if old is not None:
                    self.sources.stop(source_id)
                self.sources.start(new, resolved(new.base_path, self.folder))
            else:
                self.sources.update(new)

    def _path_row(self, rules: PermissionRules, base: Path, path: str) -> PathRow:
        found = rules.explain(path)
        if not found.outside and self.sources.protects(base / path):
            return PathRow(path, self.sources.PROTECTED_LEVEL, outside=False, index=None, pattern=None)
        return PathRow(path, found.permission, found.outside, found.index, found.pattern)

    def _close_parts(self) -> None:
        self._parts.audit.close()
        self._parts.blocks.close()
