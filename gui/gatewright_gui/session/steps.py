"""The steps of a composition that the console calls: told as they come, and held up where somebody walks through them.

All of it lives in the thread of calls; what is told are values. The steps are made by the gate and by nobody else.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gatewright.workspace.api import JsonValue, Outcome, Policy, StageTrace, StepForecast, Verdict, Workspace
from gatewright_gui.qt.language import tr
from gatewright_gui.session.call_record import (
    MAX_WHOLE,
    CallProgress,
    CallRun,
    change_of,
    read_request,
    record_of,
    record_so_far,
    stage_row,
)
from gatewright_gui.session.calls import CallRequest, Place, StepRow, StepState, visible

MOST_STEPS = 200
"""Steps that are kept of one call; those of compositions within it are counted too."""


class StepWalk:
    """Watches the steps of one call. `tell`: told that they changed; `take_piece`: the pieces of their streams.

    `one_by_one`: each step waits for `go_on`.
    """

    def __init__(
        self, run: CallRun, gate: Workspace, tell: Callable[[], None], take_piece: Callable[[str], None], *,
        one_by_one: bool,
    ) -> None:  # fmt: skip
        self._run, self._gate, self._tell, self._take_piece = run, gate, tell, take_piece
        self._one_by_one = one_by_one
        self._go: asyncio.Future[None] | None = None
        self._rows = {row.place: row for row in policy_steps(run)}
        self._runs: dict[Place, CallRun] = {}
        self._changes: dict[Place, str | None] = {}
        self._whole_left = MAX_WHOLE
        self._say()

    def go_on(self, *, rest: bool) -> None:
        """Let the step that is held be made; `rest`: and all that follow."""
        if rest:
            self._one_by_one = False
        if self._go is not None and not self._go.done():
            self._go.set_result(None)

    def show_open(self) -> None:
        """Show anew how far the step under way has come: somebody is asked about it."""
        place = next((place for place, run in self._runs.items() if run.progress is self._run.progress.step), None)
        if place is not None:
            self._put(place, "working", self._runs[place])

    async def begin(self, place: Place, tool: str, arguments: Mapping[str, JsonValue] | None) -> None:
        """Show the step that comes next, and hold it up until it may be made."""
        run = _step_run(self._run, tool, arguments)
        if arguments is None:
            self._put(place, "skipped", run, tr("its condition does not hold"))
            return
        self._runs[place] = run
        read_request(run)
        if self._one_by_one and place in self._put(place, "held", run):
            self._go = asyncio.get_running_loop().create_future()
            try:
                await self._go
            finally:
                self._go = None
        self._changes[place] = change_of(run, self._gate)
        self._run.progress.step = run.progress
        self._put(place, "working", run)

    def stage(self, place: Place, row: StageTrace) -> None:
        """Show a stage of a step."""
        run = self._runs[place]
        self._run.progress.step = run.progress  # of a composition within it, once its own steps are made
        run.progress.pass_stage(stage_row(row, run.workspace, self._gate))
        self._put(place, "working", run)

    def piece(self, place: Place, text: str) -> None:
        """Show a piece of a stream."""
        del place
        self._take_piece(text)

    def end(self, place: Place, outcome: Outcome) -> None:
        """Show what became of a step."""
        run, change = self._runs.pop(place), self._changes.pop(place, None)
        self._run.progress.step = None
        record = record_of(run, outcome.decision, self._gate, outcome, elapsed_ms=outcome.elapsed_ms, change=change)
        whole = len(record.whole or "")
        if whole > self._whole_left:
            record = replace(record, whole=None)
        else:
            self._whole_left -= whole
        if place in self._rows:
            self._rows[place] = StepRow(place, "done", record)
        self._say()

    def _put(self, place: Place, state: StepState, run: CallRun, reason: str = "") -> Mapping[Place, StepRow]:
        if place in self._rows or len(self._rows) < MOST_STEPS:
            self._rows[place] = StepRow(place, state, record_so_far(run, reason))
            self._say()
        return self._rows

    def _say(self) -> None:
        self._run.progress.steps = tuple(self._rows[place] for place in sorted(self._rows))
        self._tell()


def policy_steps(run: CallRun) -> tuple[StepRow, ...]:
    """The steps of a composition as the policy lists them; none of any other tool."""
    steps = _steps_of(run.policy, run.request.tool)
    return tuple(
        StepRow((number,), "waiting", record_so_far(_step_run(run, tool, None))) for number, tool in enumerate(steps)
    )


def foreseen_steps(run: CallRun, gate: Workspace) -> tuple[StepRow, ...]:
    """The forecast of each step, as far as that can be known before the call is made."""
    request = run.request
    told = gate.gate.steps(request.agent_id, request.tool, request.arguments, session=run.session)
    return tuple(_foreseen(run, gate, one) for one in told)


def _foreseen(run: CallRun, gate: Workspace, one: StepForecast) -> StepRow:
    reason = visible(one.reason)
    note = tr("if its condition holds, which hangs on results") if one.applies is None else ""
    if one.decision is not None:
        step = _step_run(run, one.tool, one.decision.arguments)
        return StepRow((one.step,), "done", record_of(step, one.decision, gate, elapsed_ms=0.0, change=None), note)
    record = record_so_far(_step_run(run, one.tool, None), reason)
    if one.verdict is Verdict.DENY:
        return StepRow((one.step,), "done", replace(record, verdict=one.verdict), note)
    return StepRow((one.step,), "skipped" if one.applies is False else "unknown", record, note)


def _steps_of(policy: Policy, tool: str) -> Sequence[str]:
    return next(([step.tool for step in one.steps] for one in policy.compositions if one.name == tool), ())


def _step_run(run: CallRun, tool: str, arguments: Mapping[str, JsonValue] | None) -> CallRun:
    """The call of a step, with its arguments as text; it is written here, beside the window."""
    text = "" if arguments is None else json.dumps(dict(arguments), ensure_ascii=False, indent=2, default=str)
    with contextlib.suppress(ValueError):  # what reads like nothing else stays as it is
        text = text.encode("utf-8", "replace").decode("utf-8")
    return replace(run, request=CallRequest(run.request.agent_id, tool, text), progress=CallProgress(), earlier=None)
