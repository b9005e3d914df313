"""The console's calls: decided by the real gate, run in a disposable copy unless live, in a thread of their own.

Signals are emitted in the window's thread; what a call is told comes as values.
"""

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    Approval,
    ApprovalRequest,
    Copied,
    CopyCancelled,
    GatewrightError,
    Session,
    StageTrace,
    Verdict,
    Workspace,
    write_atomically,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.session.call_record import (
    CallRun,
    change_of,
    earlier_call,
    line_of,
    read_request,
    record_of,
    record_of_cancelled,
    size_of,
    stage_row,
)
from gatewright_gui.session.calls import STAGE_NAMES, CallRecord, CallRequest, Kind, RuleLink
from gatewright_gui.session.conversation import SessionState, brief, whole
from gatewright_gui.session.copy import DisposableCopy
from gatewright_gui.session.document import Document
from gatewright_gui.session.loop_thread import LoopThread
from gatewright_gui.session.place import RulePlace, place_of
from gatewright_gui.session.question import WHO, Reply, question_of
from gatewright_gui.session.steps import StepWalk, foreseen_steps

_TOLD = 300
"""So many characters of a message to the user are shown; the whole is in the call."""
DECIDING_NAMES = STAGE_NAMES[: STAGE_NAMES.index("approval") + 1]
"""The stages that a decision passes; the others belong to a call."""
MAX_STREAMED = 4_000
"""Characters of a stream that are shown while it comes: its end."""
STREAMED_S = 0.1
MAX_RECORDS = 200
MAX_KEPT = 64_000_000
"""Characters of arguments, results and changes that the history keeps at most."""


class Console(QObject):
    """One call at a time. The copy and the sessions live until they are reset or another workspace is opened."""

    began = Signal(object)
    """`decide` or `run`."""
    stage_passed = Signal(object)
    """StageRow, as it passes."""
    streamed = Signal(object)
    """The last of what a stream has given so far: str."""
    finished = Signal(object)
    """CallRecord."""
    failed = Signal(object)
    """A sentence: the call could not be made at all."""
    ended = Signal()
    """No call is under way any more, whatever became of it."""
    asked = Signal(object)
    """PendingApproval."""
    answered = Signal()
    """The question is answered, or was withdrawn."""
    steps_told = Signal(object)
    """tuple[StepRow, ...]: the steps of a composition so far."""
    copying = Signal(object)
    """What is being done to the copy, empty when it is done: str."""
    records_changed = Signal()
    session_changed = Signal(object)
    """SessionState."""

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._loop = LoopThread("gatewright-console")
        self._window: asyncio.AbstractEventLoop | None = None
        self._copy = DisposableCopy(lambda text: self._tell(self.copying.emit, text))
        self._sessions: dict[tuple[str, bool], Session] = {}
        self._records: list[CallRecord] = []
        self._number = 0
        self._is_busy = False
        self._under_way: CallRun | None = None
        self._walk: StepWalk | None = None
        self.is_one_by_one = False
        """True while the steps of a composition wait for `go_on`."""
        document.closed.connect(self._start_over)
        document.live.changed.connect(self._live_changed)
        self._end = weakref.finalize(self, _close, self._loop, self._copy)

    # what there is

    @property
    def is_busy(self) -> bool:
        """Tell whether a call is under way."""
        return self._is_busy

    @property
    def has_copy(self) -> bool:
        """Tell whether there is a copy that calls have run in."""
        return self._copy.exists

    @property
    def copied(self) -> Copied | None:
        """The outcome of the copying, while there is a copy."""
        return self._copy.copied

    @property
    def is_live(self) -> bool:
        """Tell whether a run is made in the real workspace."""
        return self._document.live.is_on

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls of this session of the app, oldest first."""
        return tuple(self._records)

    def session_state(self, agent_id: str) -> SessionState:
        """The facts known of the agent's conversation without looking anything up."""
        return brief(agent_id, self._session(agent_id))

    # what can be done

    async def decide(self, request: CallRequest, earlier: CallRecord | None = None) -> None:
        """Ask the gate; nothing is done. The copy is asked once it is there, since earlier calls changed it.

        `earlier`: the call of the history that this one repeats.
        """
        await self._make("decide", request, self._decide, earlier)

    async def run(self, request: CallRequest, earlier: CallRecord | None = None) -> None:
        """Send the call through the whole gate: in the copy, or in the workspace itself while live mode is on."""
        await self._make("run", request, self._call, earlier)

    def go_on(self, rest: bool) -> None:
        """Let the step that is held be made; `rest`: and all that follow without a stop."""
        walk = self._walk
        if walk is not None:
            self._loop.do(partial(walk.go_on, rest=rest))

    async def save_result(self, record: CallRecord, path: Path) -> int:
        """Write a result to a file, whole as far as it is kept; how many bytes. Raises OSError."""
        content = record.blob
        if content is None:
            content = (record.whole or record.output or "").encode("utf-8", "replace")
        await asyncio.to_thread(write_atomically, path, content)
        return len(content)

    def forget_calls(self) -> None:
        """Empty the history; the conversations and the copy stay."""
        self._records.clear()
        self.records_changed.emit()

    def reset_session(self, agent_id: str) -> None:
        """The agent begins a new conversation."""
        self._sessions.pop((agent_id, self.is_live), None)
        self.session_changed.emit(self.session_state(agent_id))

    async def look_at_session(self, agent_id: str) -> None:
        """Look up where the agent's conversation stands, and tell it by `session_changed`."""
        if not self._end.alive or not self._document.is_open:
            return
        workspace, session, is_live = self._document.workspace, self._session(agent_id), self.is_live

        async def work() -> SessionState:
            return whole(self._answering(workspace, is_live=is_live), agent_id, session)

        try:
            state = await self._loop.run(work)
        except GatewrightError:
            return
        if session is self._sessions.get((agent_id, self.is_live)):
            with contextlib.suppress(RuntimeError):  # the page is gone
                self.session_changed.emit(state)

    async def revoke(self, agent_id: str, grant_id: str) -> None:
        """Take a standing approval back, and tell the conversation anew. Raises GatewrightError."""
        workspace, is_live = self._document.workspace, self.is_live

        async def work() -> None:
            self._answering(workspace, is_live=is_live).broker.revoke(grant_id, WHO)

        await self._loop.run(work)
        await self.look_at_session(agent_id)

    async def reset_copy(self) -> int:
        """Throw the copy away; the next call gets a fresh one. Returns how many approvals stood in it."""
        workspace = self._document.workspace

        async def work() -> int:
            copy = self._copy.of(workspace)
            stood = len(copy.broker.standing()) if copy is not None else 0
            self._copy.throw_away()
            return stood

        stood = await self._loop.run(work)
        self._tell_sessions()
        return stood

    async def place_of(self, rule: RuleLink, record: CallRecord | None = None) -> RulePlace | None:
        """The place to edit a rule in the policy as it is now; `record`: the call that it decided."""
        called = None
        if record is not None:
            called = record.request.tool, record.operation if record.operation.isidentifier() else None
        return place_of(self._document.policy, rule.address, await self.line_of(rule), called)

    async def line_of(self, rule: RuleLink) -> int | None:
        """The line of a rule in the policy as it is now."""
        workspace = self._document.workspace

        async def work() -> int | None:
            return line_of(workspace, rule.address)

        return await self._loop.run(work)

    def close(self) -> None:
        """End the thread and throw the copy away."""
        self._end()

    # in the window's thread

    def _start_over(self) -> None:
        self._sessions.clear()
        self._records.clear()
        self.records_changed.emit()

    def _live_changed(self, _is_on: object) -> None:
        """The copy and the workspace have conversations of their own."""
        self._tell_sessions()

    def _tell_sessions(self) -> None:
        for agent_id in {agent_id for agent_id, _ in self._sessions}:
            self.session_changed.emit(self.session_state(agent_id))

    async def _make(self, kind: Kind, request: CallRequest, make: "_Make", earlier: CallRecord | None) -> None:
        self._window = asyncio.get_running_loop()
        self._is_busy = True
        over = threading.Event()
        self.began.emit(kind)
        run: CallRun | None = None
        try:
            workspace, session = self._document.workspace, self._session(request.agent_id)
            policy, number = self._document.policy, self._number + 1
            before = earlier_call(earlier)
            run = CallRun(kind, number, request, workspace, policy, session, self.is_live, over.is_set, before)
            self._under_way = run
            self._end_with(await self._loop.run(partial(make, run)))
        except asyncio.CancelledError:
            if run is not None and self._document.is_open and run.workspace is self._document.workspace:
                self._end_with(record_of_cancelled(run))
            raise
        except GatewrightError as error:
            self.failed.emit(str(error))
        except OSError as error:
            self.failed.emit(tr("the call could not be made: {reason}", reason=error.strerror or error))
        finally:
            over.set()
            self._is_busy = False
            self._under_way = self._walk = None
            self.ended.emit()
            self.session_changed.emit(self.session_state(request.agent_id))

    def _end_with(self, record: CallRecord) -> None:
        self._number = record.number
        self._records.append(record)
        while len(self._records) > 1 and (len(self._records) > MAX_RECORDS or size_of(self._records) > MAX_KEPT):
            del self._records[0]
        self.records_changed.emit()
        self.finished.emit(record)

    def _session(self, agent_id: str) -> Session:
        return self._sessions.setdefault((agent_id, self.is_live), Session())

    # in the thread of calls

    def _answering(self, workspace: Workspace, *, is_live: bool) -> Workspace:
        """Whose gate answers: that of the copy as it is, where there is one and runs go there."""
        return workspace if is_live else self._copy.of(workspace) or workspace

    async def _decide(self, run: CallRun) -> CallRecord:
        read_request(run)
        workspace, request = run.workspace, run.request
        use_copy = self._copy.exists and not run.is_live
        gate = self._in_step(run) if use_copy else workspace
        began = time.perf_counter()
        decision = gate.decide(
            request.agent_id,
            request.tool,
            request.arguments,
            session=run.session,
            folder=request.folder,
            lineage=request.lineage,
        )
        elapsed = (time.perf_counter() - began) * 1000
        for row in decision.trace:
            self._pass(run, row, gate)
        if decision.verdict is not Verdict.DENY:
            run.progress.steps = foreseen_steps(run, gate)
        return record_of(run, decision, gate, elapsed_ms=elapsed, change=change_of(run, gate))

    async def _call(self, run: CallRun) -> CallRecord:
        read_request(run)
        request, to = run.request, run.workspace
        if not run.is_live:
            to = self._in_step(run)
            await asyncio.sleep(0)  # what was given up while the copy was made does not reach the gate
        change = change_of(run, to)
        leave = to.messages.subscribe(
            lambda message: self._tell(
                self._document.say,
                "info",
                tr("{agent} to the user: {message}", agent=message.sender, message=label_text(message.content, _TOLD)),
            )
        )
        if any(one.name == request.tool for one in run.policy.compositions):
            self._walk = StepWalk(
                run,
                to,
                lambda: self._tell_of(run, self.steps_told.emit, run.progress.steps),
                partial(self._take_piece, run),
                one_by_one=self.is_one_by_one,
            )
        try:
            outcome = await to.call(
                request.agent_id,
                request.tool,
                request.arguments,
                session=run.session,
                approver=partial(self._ask, run),
                on_stage=lambda row: self._pass(run, row, to),
                on_piece=partial(self._take_piece, run),
                on_step=self._walk,
                lineage=request.lineage,
            )
        finally:
            leave()
        return record_of(run, outcome.decision, to, outcome, elapsed_ms=outcome.elapsed_ms, change=change)

    def _in_step(self, run: CallRun) -> Workspace:
        try:
            return self._copy.in_step(run.workspace, run.policy, run.given_up)
        except CopyCancelled:
            raise asyncio.CancelledError from None

    def _pass(self, run: CallRun, row: StageTrace, gate: Workspace) -> None:
        passed = stage_row(row, run.workspace, gate)
        run.progress.pass_stage(passed)
        self._tell_of(run, self.stage_passed.emit, passed)

    def _take_piece(self, run: CallRun, piece: str) -> None:
        """Keep the end of a stream, and show it now and then: it may come faster than anybody paints."""
        progress = run.progress
        progress.streamed = (progress.streamed + piece)[-MAX_STREAMED:]
        if not progress.is_stream_due:
            progress.is_stream_due = True
            asyncio.get_running_loop().call_later(STREAMED_S, self._show_stream, run)

    def _show_stream(self, run: CallRun) -> None:
        run.progress.is_stream_due = False
        self._tell_of(run, self.streamed.emit, run.progress.streamed)

    async def _ask(self, run: CallRun, request: ApprovalRequest) -> Approval:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()

        def settle(given: Reply) -> None:
            if not answer.done():
                answer.set_result(given)

        def reply(given: Reply) -> None:
            with contextlib.suppress(RuntimeError):  # the thread has ended, and the question with it
                loop.call_soon_threadsafe(settle, given)

        progress = run.progress.step or run.progress
        progress.is_asked = True
        if self._walk is not None:
            self._walk.show_open()
        self._tell_of(run, self.asked.emit, question_of(request, reply))
        try:
            given = await answer
            self._copy.follow(self._document.policy)  # what was edited meanwhile counts when the call is decided again
            progress.is_asked = False
            return given.approval(WHO)
        finally:
            self._tell_of(run, self.answered.emit)

    def _tell_of(self, run: CallRun, tell: Callable[..., object], *values: object) -> None:
        """Say something of a call, unless it was given up before it is heard."""
        self._tell(lambda: tell(*values) if run is self._under_way else None)

    def _tell(self, tell: Callable[..., object], *values: object) -> None:
        """Say something in the window's thread; nobody hears it once the window is gone."""
        window = self._window
        if window is not None:
            with contextlib.suppress(RuntimeError):
                window.call_soon_threadsafe(self._say, tell, *values)

    def _say(self, tell: Callable[..., object], *values: object) -> None:
        if isValid(self):
            tell(*values)


_Make = Callable[[CallRun], Coroutine[Any, Any, CallRecord]]


def _close(loop: LoopThread, copy: DisposableCopy) -> None:
    loop.close()
    copy.throw_away()
