"""The open workspace with its undo stack: the one place of the app where a policy changes.

Over 450 lines, because the workspace, the undo stack and the state of the file are let go of, put in and told together.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from gatewright.workspace.api import (
    Agent,
    ChangeSet,
    Edit,
    EditRefused,
    GatewrightError,
    Policy,
    PolicyInvalid,
    Problem,
    ToolFacts,
    ToolRight,
    Workspace,
    WorkspaceError,
    Written,
    frozen,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.command import EditCommand
from gatewright_gui.session.live import LiveMode
from gatewright_gui.session.message import Message, Tone, not_saved
from gatewright_gui.session.opening import Opener
from gatewright_gui.session.policyfailure import FileAlarm, OpenFailure, failure_of, first_error, text_of, write_time
from gatewright_gui.session.stops import Stops

T = TypeVar("T")
__all__ = ["EVERYTHING", "ChangeSet", "Document", "FileAlarm", "OpenFailure", "Step"]

RIGHTS_AT_ONCE = 200
"""Rights on more operations than these are worked out in pieces."""
PIECE_S = 0.008
"""How long the window works before it has its turn."""
EVERYTHING = ChangeSet(frozenset(), frozenset(), everything=True)


@frozen
class Step:
    """An edit that was made; ``way``: 0 for the first time, -1 for one that was undone, 1 for one made again."""

    edit: Edit
    way: int = 0


class Document(QObject):
    """One workspace at a time, or the failure to open one, or nothing yet."""

    closed = Signal()
    """What was open is open no more, and nothing is yet: whoever shows or keeps something of it lets go of it now."""
    opened = Signal()
    """Another workspace, or a failure: everything is new."""
    open_failed = Signal(object)
    """OpenFailure: the policy has errors."""
    policy_changed = Signal(object)
    """ChangeSet."""
    dirty_changed = Signal(object)
    """bool."""
    problems_changed = Signal(object)
    """tuple[Problem, ...]."""
    saved = Signal(object)
    """Path of the policy file."""
    changed_outside = Signal()
    """Somebody else wrote the policy file, or a manifest that it names."""
    source_changed = Signal(object)
    """OutsideChanges: somebody else changed files of a watched source."""
    save_refused = Signal()
    """Nothing was written, because somebody else wrote the policy file meanwhile."""
    gone_changed = Signal(object)
    """bool: whether the policy file is gone from the disk."""
    alarm_changed = Signal(object)
    """FileAlarm: the file could not be taken over; None once it could."""
    said = Signal(object)
    """Message."""
    noted = Signal(str)
    """A change beside the policy, without an edit that could be undone: its words."""
    _tools_moved = Signal()
    """The program brought a tool, or took one back, in whichever thread."""

    def __init__(self, opener: Opener | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.undo_stack = QUndoStack(self)
        self.live = LiveMode(self)
        self.closed.connect(self.live.leave)
        self.stops = Stops(lambda: self.workspace if self.is_open else None, self)
        self.stops.said.connect(self.said)
        self.opened.connect(self.stops.look)
        self.closed.connect(self.stops.look)
        self._tools_moved.connect(self._follow_tools)
        self.opener = opener or Opener()
        self._workspace: Workspace | None = None
        self._failure: OpenFailure | None = None
        self._problems: tuple[Problem, ...] = ()
        self._of_policy: tuple[Problem, ...] = ()
        """Those of the policy as it is now, without those of a file that is not in force."""
        self._alarm: FileAlarm | None = None
        self._snapshot_id = 0
        self.last_step: Step | None = None
        """The edit by which the policy became what it is; None if it came from the disk, or after tools have moved."""
        self._was_dirty = False
        self._is_gone = False
        self._saved_at: float | None = None
        self._rewritten = 0
        """How often what somebody else wrote was saved over."""
        self._at_work = 0
        """How much of the file's work is under way or waits for its turn."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-document")

    # what is open

    @property
    def workspace(self) -> Workspace:
        """The open workspace. Raises WorkspaceError when none is open."""
        if self._workspace is None:
            raise WorkspaceError(tr("no workspace is open"))
        return self._workspace

    @property
    def is_open(self) -> bool:
        """Tell whether a workspace is open and can be edited."""
        return self._workspace is not None

    @property
    def failure(self) -> OpenFailure | None:
        """Why the chosen policy could not be opened."""
        return self._failure

    @property
    def path(self) -> Path | None:
        """The policy file, open or failed."""
        if self._workspace is not None:
            return self._workspace.policy_path
        return self._failure.path if self._failure else None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a reload reads, the policy file first; of a failed policy only that one."""
        if self._workspace is not None:
            return self._workspace.files
        return (self._failure.path,) if self._failure else ()

    @property
    def name(self) -> str:
        """The name of the workspace."""
        if self._workspace is not None:
            return self._workspace.name
        return self._failure.path.parent.name if self._failure else ""

    @property
    def policy(self) -> Policy:
        """The policy as edited now; an empty one when nothing is open."""
        return self._workspace.policy if self._workspace else Policy()

    @property
    def agents(self) -> tuple[Agent, ...]:
        """In the order of the file."""
        return tuple(self.policy.agents.values())

    @property
    def catalog(self) -> Sequence[ToolFacts]:
        """Every registered tool."""
        return self._workspace.catalog if self._workspace else ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of the open policy, or of the one that failed to open; a moment behind while one edits."""
        return self._problems

    @property
    def alarm(self) -> FileAlarm | None:
        """The alarm that lasts since the file could not be taken over."""
        return self._alarm

    @property
    def is_dirty(self) -> bool:
        """Tell whether there is something to save: edits, or all of it where the file is gone."""
        return self._workspace is not None and (self._workspace.is_dirty or self._is_gone)

    @property
    def is_gone(self) -> bool:
        """Tell whether the policy file of the open workspace is gone from the disk."""
        return self._is_gone

    @property
    def saved_at(self) -> float | None:
        """When the policy was last saved here, in seconds of the epoch; None when it was not since it was read."""
        return self._saved_at

    @property
    def is_busy(self) -> bool:
        """Tell whether the file is being read or written; edits are refused meanwhile."""
        return self._at_work > 0

    @property
    def snapshot_id(self) -> int:
        """Grows with every change, so that late answers can be told from current ones."""
        return self._snapshot_id

    def rights(self, agent_id: str) -> Mapping[str, ToolRight]:
        """The agent's right on every tool; empty for an agent that is not there."""
        if self._workspace is None or agent_id not in self._workspace.policy.agents:
            return {}
        return self._workspace.rights(agent_id)

    def rights_if_enforced(self, agent_id: str) -> Mapping[str, ToolRight]:
        """The agent's rights if nothing were only observed; empty where all is enforced."""
        if self._workspace is None or agent_id not in self._workspace.policy.agents:
            return {}
        return self._workspace.view(agent_id).enforced_rights

    def has_rights(self, agent_id: str) -> bool:
        """Tell whether `rights` answers without a pause that one would notice; after a large edit it does not."""
        return self._rights_lacking(agent_id) <= RIGHTS_AT_ONCE

    async def work_out_rights(self, agent_id: str) -> None:
        """Have the rights at hand, worked out a few tools at a time with the window's turns in between."""
        while self._workspace is not None and self._rights_lacking(agent_id):
            view = self._workspace.view(agent_id)
            if view.rights_lacking:
                pieces: Iterator[object] = view.rights_in_pieces()
            else:
                pieces = (right.operations for right in view.rights.values())
            snapshot_id, until = self._snapshot_id, time.monotonic() + PIECE_S
            for _ in pieces:
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + PIECE_S
                if snapshot_id != self._snapshot_id:
                    break

    def _rights_lacking(self, agent_id: str) -> int:
        """About how many operations of the agent have still to be looked at."""
        if self._workspace is None or agent_id not in self._workspace.policy.agents:
            return 0
        view = self._workspace.view(agent_id)
        lacking = view.rights_lacking or sum([not right.is_worked_out for right in view.rights.values()])
        if not lacking:
            return 0
        catalog = self.catalog
        return lacking * sum(len(facts.operations) or 1 for facts in catalog) // len(catalog)

    def set_problems(self, problems: Sequence[Problem]) -> None:
        """Set the problems of the policy as it is now; while an alarm lasts, those of the file come first."""
        self._of_policy = tuple(problems)
        new = self._alarm.with_those_of(self._of_policy) if self._alarm else self._of_policy
        if new != self._problems:
            self._problems = new
            self.problems_changed.emit(new)

    def say(self, tone: Tone, text: str, *, can_undo: bool = False) -> None:
        """Tell the user something without stopping them; ``can_undo``: with a button that takes the edit back."""
        self.said.emit(Message(tone, text, can_undo))

    # edits

    def refusal(self, make: Callable[[Policy, Sequence[ToolFacts]], Edit]) -> str:
        """Why an edit would be refused; empty when it would be made. Says and changes nothing."""
        try:
            self._check(make)
        except PolicyInvalid as error:
            return first_error(error)
        except EditRefused as error:
            return str(error)
        return ""

    def push(self, make: Callable[[Policy, Sequence[ToolFacts]], Edit]) -> bool:
        """Make an edit, check it, put it on the undo stack; a refusal is said and False. An empty edit does nothing."""
        try:
            edit = self._check(make)
        except PolicyInvalid as error:
            self.say("error", first_error(error))
            return False
        except EditRefused as error:
            self.say("warning", str(error))
            return False
        if edit is not None:
            step = partial(self._step, self._rewritten)
            self.undo_stack.push(EditCommand(edit, self.workspace.text_base, self._apply, step))
        return edit is not None

    def _check(self, make: Callable[[Policy, Sequence[ToolFacts]], Edit]) -> Edit | None:
        if self._workspace is None:
            raise EditRefused(tr("no workspace is open"))
        if self.is_busy:
            raise EditRefused(tr("the policy file is being read or written; try again in a moment"))
        edit = make(self._workspace.policy, self._workspace.catalog)
        if edit.is_empty:
            return None
        self._workspace.check(edit)
        return edit

    def _apply(self, edit: Edit, way: int = 0) -> None:
        changes = self.workspace.apply(edit)
        self._tell_changed(changes, Step(edit, way))

    def _step(self, rewritten: int, edit: Edit, base: Written, way: int) -> None:
        """Undo or redo: the text becomes what it was there. What stood in the file before somebody else's writing was
        saved over does not come back.
        """
        is_saved = self.undo_stack.index() + way == self.undo_stack.cleanIndex()
        is_old = rewritten != self._rewritten
        self._apply(self.workspace.on_text(edit, None if is_saved or is_old else base), way)

    def tell_tools_changed(self) -> None:
        """Tools came, went or are others, without an edit of the policy: everything is looked at anew."""
        self._tell_changed(EVERYTHING)

    def _tell_changed(self, changes: object, step: Step | None = None) -> None:
        self._snapshot_id += 1
        self.last_step = step
        self.policy_changed.emit(changes)
        self._tell_dirty()
        self._tell_ended()

    def _tell_ended(self) -> None:
        """Say which servers do not run any more, since they may reach something else now."""
        ended = self.workspace.take_ended_servers()
        if ended:
            names = ", ".join(f"`{catalog_id}`" for catalog_id in ended)
            text = tr("the server of {catalogs} was ended: {reason}. It starts anew with the next call")
            if len(ended) > 1:
                text = tr("the servers of {catalogs} were ended: {reason}. They start anew with the next call")
            self.say("warning", text.format(catalogs=names, reason=", ".join(dict.fromkeys(ended.values()))))

    def _follow_tools(self) -> None:
        if self._workspace is not None:
            self.tell_tools_changed()

    def undo(self) -> None:
        """Take the last edit back."""
        if not self.is_busy:
            self.undo_stack.undo()

    def redo(self) -> None:
        """Do the edit again that was taken back last."""
        if not self.is_busy:
            self.undo_stack.redo()

    # the disk

    async def open(self, path: Path, *, trust: bool = False) -> bool:
        """Open a workspace in place of the present one. A policy with errors is shown as a failure; one that cannot be
        read at all is said, and what was open stays.
        """
        try:
            workspace = await self.in_worker(lambda: self.opener.open(path, trust=trust))
        except PolicyInvalid as error:
            problems = error.problems
            self._put_in(None, await self.in_worker(lambda: failure_of(path, problems)))
            return False
        except GatewrightError as error:
            self.say("error", str(error))
            return False
        self._put_in(workspace, None)
        return True

    async def reload(self, *, trust: bool = False) -> bool:
        """Read the policy file again; unsaved edits are gone. With errors in it the last good policy stays."""
        if self._workspace is None:
            return self._failure is not None and await self.open(self._failure.path, trust=trust)
        workspace = self._workspace
        if self.look_for_file():
            return False
        try:
            problems = await self.in_worker(workspace.reload)
        except GatewrightError as error:
            self._ring(workspace)
            self._tell_ended()
            self.say("error", str(error))
            return False
        if any(problem.is_error for problem in problems):
            self._ring(workspace)
            self._tell_ended()
            return False
        self._calm()
        self._saved_at = None
        self.undo_stack.clear()
        self.set_problems(problems)
        self._tell_changed(EVERYTHING)
        return True

    async def save(self, *, overwrite: bool = False) -> bool:
        """Write the policy; a failure is said and nothing is lost.

        A file that somebody else wrote meanwhile is left alone and `save_refused` told, unless `overwrite`; one that
        is gone is written again.
        """
        if self._workspace is None:
            return False
        workspace = self._workspace
        if self.look_for_file():
            return await self._write(workspace.write_again)
        if not overwrite and self.is_dirty and await self.in_worker(workspace.is_changed_outside):
            self.save_refused.emit()
            return False
        is_over = overwrite and await self.in_worker(workspace.is_changed_outside)
        is_saved = await self._write(lambda: workspace.save(overwrite=overwrite))
        self._rewritten += is_over and is_saved
        return is_saved

    async def _write(self, write: Callable[[], None]) -> bool:
        path = self.workspace.policy_path
        try:
            await self.in_worker(write)
        except (GatewrightError, OSError) as error:
            self.said.emit(not_saved(error))
            return False
        self._calm()
        self._saved_at = write_time(path)
        self.undo_stack.setClean()
        self.look_for_file()
        self.saved.emit(path)
        self._tell_dirty()
        return True

    def look_outside(self) -> None:
        """Compare with the disk and say so when somebody else wrote a file; while an alarm lasts every writing counts,
        as it may be what ends it.
        """
        if self.is_busy:
            return
        if self._workspace is not None:
            if self.look_for_file():
                return
            changed = self._alarm is not None or self._workspace.is_changed_outside()
        else:
            changed = self._failure is not None and text_of(self._failure.path) != self._failure.text
        if changed:
            self.changed_outside.emit()

    def look_for_file(self) -> bool:
        """Look whether the policy file is gone from the disk; emits `gone_changed` if this changed."""
        gone = self._workspace is not None and self._workspace.is_gone
        if gone != self._is_gone:
            self._is_gone = gone
            self._tell_dirty()
            self.gone_changed.emit(gone)
        return gone

    def close(self) -> None:
        """Close the workspace and end the worker; the document is of no use afterwards."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        self.undo_stack.blockSignals(True)  # it tells of its own end, when who listens may be gone
        if self._workspace is not None:
            self._workspace.close()
        self._workspace = None

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Do blocking work on the file beside the window; edits are refused until it ends."""
        self._at_work += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        finally:
            self._at_work -= 1

    def _ring(self, workspace: Workspace) -> None:
        """The engine's alarm for the file. It lasts until the file is good again: an edit here does not mend it."""
        alarm = workspace.alarm
        if alarm is None:
            return
        self._alarm = FileAlarm(workspace.policy_path, alarm.problems, alarm.raised_wall_s)
        self.set_problems(workspace.problems)
        self.alarm_changed.emit(self._alarm)

    def _calm(self) -> None:
        """The file is good again."""
        if self._alarm is not None:
            self._alarm = None
            self.set_problems(self._of_policy)
            self.alarm_changed.emit(None)

    def _put_in(self, workspace: Workspace | None, failure: OpenFailure | None) -> None:
        self._take_out()
        self._workspace, self._failure = workspace, failure
        if workspace is not None:
            workspace.tools.subscribe(self._tools_moved.emit)
        self.opened.emit()
        self.set_problems(workspace.problems if workspace else failure.problems if failure else ())
        self._tell_dirty()
        if failure is not None:
            self.open_failed.emit(failure)

    def _take_out(self) -> None:
        """Nothing is open until the next is put in, and nobody shows anything of it any more."""
        before, was_shown = self._workspace, self.path is not None
        self._workspace = self._failure = None
        self._saved_at, self._is_gone, self.last_step = None, False, None
        self._snapshot_id += 1
        if was_shown:
            self.undo_stack.clear()
            self._calm()
            self.set_problems(())
            self._tell_dirty()
            self.closed.emit()
        if before is not None:
            before.close()

    def _tell_dirty(self) -> None:
        if self.is_dirty != self._was_dirty:
            self._was_dirty = self.is_dirty
            self.dirty_changed.emit(self._was_dirty)
