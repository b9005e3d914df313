"""The stage of execution: reserves counters, records the call, runs the tool within its time. Nothing runs without a
record.

A tool that does not stop on request is left alone: its result is discarded, and the call ends as abandoned. So does a
call whose caller gives up, even if the tool stops. Of a tool's bounds this stage enforces the time; the context, which
comes from the state and never from the model's input, passes the others to a tool whose adapter enforces them. `finish`
records the end, after the later stages have processed the result.

More than 450 lines, since all ways in which an execution ends stand beside each other.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

from gatewright.base.amount import new_id
from gatewright.base.errors import ForeignStore, ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json, copy_value
from gatewright.base.late import aio, unbroken
from gatewright.compile.rule_test import Finding
from gatewright.gate import record
from gatewright.gate.approval import ApprovalRequest
from gatewright.gate.call import CallState, EffectStage, Execution, NamedCall, StageResult, Status, deny
from gatewright.gate.chain import RowKind
from gatewright.gate.decision import Message, to_model
from gatewright.gate.history import COUNTS, QUESTION, KeptResult, Key
from gatewright.gate.port import AuditEntry, AuditUnavailable, Log, RowBuilder
from gatewright.gate.scope import bounds_of
from gatewright.gate.scrub import is_large, scrub_text, valid
from gatewright.gate.session import Mark, Reservation
from gatewright.gate.sessiondata import call_words
from gatewright.gate.stages.approval import spend
from gatewright.gate.stages.read import stop_of
from gatewright.gate.stages.result import Exited, read_error
from gatewright.gate.stages.rules import record_success, release, reserve
from gatewright.gate.stop import CODE, LOOK_S, Stop, StopSwitch
from gatewright.policy.target import levels_pass, reading_agreed
from gatewright.tools.context import OnPiece, Progress, StopSignal, ToolExecutionContext
from gatewright.tools.declaration import Determinism, ResourceBounds
from gatewright.tools.parameter import replace_texts

GRACE_S = 1.0
"""How long a tool may take to stop on request."""

_log = logging.getLogger(__name__)
_MISFIT = 500
_ENDS = {
    Status.ALLOWED: RowKind.TOOL_COMPLETED,
    Status.FAILED: RowKind.TOOL_FAILED,
    Status.TIMED_OUT: RowKind.TOOL_TIMED_OUT,
    Status.ABANDONED: RowKind.TOOL_ABANDONED,
    Status.WAITING: RowKind.TOOL_ABANDONED,
}


async def _run(state: CallState) -> StageResult:
    """Reserve counters, record the call, run the tool within its time. Nothing runs without a record."""
    taken = reserve(state)
    objection = StageResult((taken,)) if isinstance(taken, Finding) else await _open(state, taken)
    noted = StageResult()
    if objection is not None and (noted := _noted(state, objection)).findings:  # others overtook it since its decision
        state.counts, state.overtaken, state.grant = False, noted.findings[0], None
        taken = reserve(state)
        objection = StageResult((taken,)) if isinstance(taken, Finding) else await _open(state, taken)
    if objection is not None or isinstance(taken, Finding):
        return objection or StageResult()
    state.execution = Execution(taken, time.monotonic())
    is_pure = state.effect is None and state.plan.tool.determinism is Determinism.PURE
    results = state.services.results
    kept = results.find(state.session, _result_key(state)) if is_pure and results is not None else None
    if kept is not None:  # the result of an equal call of a pure tool in this session
        state.reused, state.output, state.normal = True, kept.output, kept.normal
        state.output_hash, state.output_bytes = kept.output_hash, kept.output_bytes
        state.result, state.has_result = copy_value(kept.raw), True
        return StageResult(noted.findings, "reused: an equal call returned this result before")
    await _execute(state)
    return StageResult(noted.findings, "; ".join(filter(None, (state.detail or "executed", state.ran_under))))


def _noted(state: CallState, objection: StageResult) -> StageResult:
    """The objections that observe mode passes."""
    observation = state.plan.observation
    if observation is None or not all(observation.passes("rules", one) for one in objection.findings):
        return StageResult()
    return StageResult(tuple(replace(one, noted=True) for one in objection.findings))


def _result_key(state: CallState) -> Key:
    who = (state.agent_id, state.user_id, state.plan.scrub, state.plan.output)
    return (state.plan.tool, state.chosen.name, *who, canonical_json(state.arguments))


async def _open(state: CallState, taken: Reservation) -> StageResult | None:
    """Spend the approval and record the call; if that fails, the call does not run, and its slot is returned."""
    try:
        refusal = await spend(state) if state.grant is not None and state.grant.approved else None
    except aio.CancelledError:
        release(state, taken)
        await _close_cancelled(state, {"started": False}, state.pending)
        raise
    except BaseException:
        release(state, taken)
        raise
    if refusal is not None:
        release(state, taken)
        return StageResult((refusal,))
    try:
        if state.pending is not None:
            await state.services.record(state.pending)
    except AuditUnavailable as error:
        release(state, taken)
        return deny("audit-unavailable", str(error), Message.UNRECORDED)
    except aio.CancelledError as error:
        slot = state.slot
        release(state, taken)
        if slot is not None and slot.refusal is not None:  # its rows are not in the log
            await _close_cancelled(state, {"started": False}, state.pending)
        elif error.__cause__ is None:  # its rows are in the log, and need an end
            taken_back: dict[str, JsonValue] = {} if state.counts else {COUNTS: {}}
            if slot is not None:
                taken_back = record.uses(state, slot)
            await _close_cancelled(state, {"started": False, **taken_back})
        raise
    except BaseException:
        release(state, taken)
        raise
    if state.slot is not None and state.slot.refusal is not None:  # calls elsewhere have used up its limit
        refusal = state.slot.refusal
        release(state, taken)
        if state.claim is not None:  # the rows of this denial are not those of the call that runs
            state.call_id = new_id("call")
        return StageResult((refusal,))
    return None


async def _execute(state: CallState) -> None:
    state.stop = stop_of(state)  # its rows may have had to wait
    if state.stop is not None:
        await _end_by_stop(state, state.stop, "before it began")
        return
    stop, loop, stops = StopSignal(), aio.get_running_loop(), state.services.stops
    ended = loop.create_future()
    task = loop.create_task(_invoke(state, _running_context(state, stop), ended))
    if stops is not None:
        stops.running[ended] = partial(_halt, state, ended)
        if loop not in stops.watched:
            _watch(stops, loop)
    try:
        timeout_s = state.plan.timeout_s if state.effect is None else math.inf
        is_done = await _is_done(task, ended, timeout_s, state.held_s)
        if not is_done:
            await _stop(state, task, stop)
            return
        try:
            result = task.result()
        except BaseException as error:  # noqa: BLE001 the task holds whatever the tool raised
            await take_error(state, error, Status.FAILED)
        else:
            state.result, state.has_result, state.output = result, True, ""
            state.is_heavy = is_large(result)
    except aio.CancelledError:
        await _cancel(state, task, stop)
        raise
    finally:
        if stops is not None:
            del stops.running[ended]


def _watch(stops: StopSwitch, loop: aio.AbstractEventLoop) -> None:
    """Look at the stop now and then while calls run in that loop."""
    stops.watched = {one for one in stops.watched if not one.is_closed()} | {loop}
    loop.call_later(LOOK_S, _look, stops, loop)


def _look(stops: StopSwitch, loop: aio.AbstractEventLoop) -> None:
    """Wake the calls of a loop that are stopped, and look again unless it has none."""
    mine = [halt for ended, halt in stops.running.copy().items() if ended.get_loop() is loop]
    for halt in mine:
        halt()
    if mine:
        loop.call_later(LOOK_S, _look, stops, loop)
    else:
        stops.watched.discard(loop)


def _halt(state: CallState, ended: aio.Future[None]) -> None:
    """Wake a call that is stopped."""
    state.stop = state.stop or stop_of(state)
    if state.stop is not None:
        _wake(ended)


async def _end_by_stop(state: CallState, stop: Stop, when: str) -> None:
    if state.services.stops is not None:
        await state.services.stops.settle()
    state.end(Status.ABANDONED, CODE, to_model(Message.STOPPED), f"{stop}; this call was ended {when}")


_MOST_WORDS = 2_000


@lru_cache(maxsize=256)
def _within(bounds: ResourceBounds, timeout_s: float) -> ResourceBounds:
    return replace(bounds, timeout_s=timeout_s)


def _running_context(state: CallState, stop: StopSignal) -> ToolExecutionContext:
    """The snapshot for a tool that begins now: with its deadline, the signal to stop, and its bounds.

    The bounds are the smaller of those that the tool declares and those that the agent's grants give, with the time
    from the policy.
    """
    plan, agent, needs = state.plan, state.agent.agent if state.agent else None, state.chosen.capabilities
    bounds = plan.tool.resource_bounds
    if bounds.timeout_s != plan.timeout_s:
        bounds = _within(bounds, plan.timeout_s)
    if agent is not None and needs:
        bounds = bounds_of(bounds, needs, agent)
    is_approved = bool(state.noted) or not state.counts or (state.grant is not None and state.grant.approved)
    if state.answer is not None:
        is_approved = state.answer.approval.approved is True
    return state.context(
        bounds=bounds,
        capabilities=agent.capabilities if agent is not None else (),
        deadline_s=time.monotonic() + plan.timeout_s,
        stop=stop,
        again=state.again,
        step=state.step,
        approved_change=state.assessment.change if state.assessment and state.answer else None,
        agreed=state.assessment is not None and state.assessment.ask is not None,
        approved=is_approved,
        progress=None if state.progress is None else partial(_tell_progress, state.progress, plan.scrub),
        note=partial(setattr, state, "ran_under"),
        on_piece=None if state.on_piece is None else partial(_tell_piece, state.on_piece, stop, plan.scrub),
    )


def _tell_progress(tell: Progress, scrub: bool, amount: float, whole: float | None, words: str | None) -> None:
    """Report the progress of a call; long words are shortened."""
    if words is not None:
        words = words[:_MOST_WORDS]
        words = scrub_text(words)[0] if scrub else words
    tell(amount, whole, words)


def _tell_piece(tell: OnPiece, stop: StopSignal, scrub: bool, piece: str) -> None:
    """Pass a piece of a stream to the observer, whose failure stops no call.

    A large piece would block the loop, so it appears only in the whole result.
    """
    if stop.is_set() or is_large(piece):
        return
    try:
        tell(scrub_text(piece)[0] if scrub else piece)
    except Exception:  # noqa: BLE001 the observer is the host's code
        _log.exception("an observer of pieces failed")


async def _invoke(state: CallState, context: ToolExecutionContext, ended: aio.Future[None]) -> JsonValue | bytes:
    try:
        if state.services.in_copy and state.plan.actor.leaves_copy:
            raise ToolFailure(Message.NOT_IN_COPY, code="not-in-copy")
        if state.passes_levels or state.within is not None:  # a step inherits nothing from the call around it
            levels_pass.set(state.passes_levels)
        if context.approved or state.within is not None:
            reading_agreed.set(context.approved)
        state.has_run = True
        # so that changes by the tool to its arguments reach no record and no stored result
        moved = replace_texts(state.arguments, state.moved) if state.moved else state.arguments
        given = copy_value(cast("dict[str, JsonValue]", moved))
        execute = state.plan.actor.execute if state.effect is None else state.effect.run
        return await execute(state.chosen.name, given, context)
    except SystemExit as error:  # a task would pass it to the loop, and the program would end
        raise Exited from error
    finally:
        _wake(ended)


async def _is_done(
    task: aio.Future[Any], ended: aio.Future[None], timeout_s: float, held_s: Callable[[], float] | None
) -> bool:
    """Wait for a task of our own; True if it ended in time, extended by ``held_s``.

    It is like `asyncio.wait`, at half the price: the task itself reports its end, which wakes the waiter one turn of
    the loop earlier. A task that somebody cancelled before it began reports that too.
    """
    loop = ended.get_loop()
    end_s = loop.time() + timeout_s - (held_s() if held_s is not None else 0.0)

    def time_up() -> None:
        nonlocal timer
        left_s = end_s + held_s() - loop.time() if held_s is not None else 0.0
        if left_s > 0:
            timer = loop.call_later(left_s, time_up)
        else:
            _wake(ended)

    timer = loop.call_later(timeout_s, time_up)
    task.add_done_callback(partial(_wake, ended))
    try:
        await ended
    finally:
        timer.cancel()
    return task.done()


def _wake(ended: aio.Future[None], _: object = None) -> None:
    if not ended.done():
        ended.set_result(None)


async def take_error(state: CallState, error: BaseException, status: Status) -> None:
    """End the call with the words of a ToolFailure, or with a general message for any other exception."""
    raised = await read_error(error)
    if not raised.is_failure:
        raised.log(_log, "the tool `%s` raised", state.tool_name)
    if type(error) is ForeignStore:
        fail(state, error.code, Message.FOREIGN, raised.text, status)
        return
    text = state.plan.redactor(raised.text) if raised.is_failure else Message.CRASHED
    fail(state, raised.code, text, raised.in_words("tool"), status)


def fail(state: CallState, code: str, text: str, detail: str, status: Status = Status.FAILED) -> None:
    """End a call that ran and failed; ``text`` is for the model, ``detail`` for the operator."""
    state.end(status, code, to_model(valid(text)), valid(detail))


async def _stop(state: CallState, task: aio.Future[Any], stop: StopSignal) -> None:
    """Ask the tool to stop, and wait for a moment."""
    stop.set()
    task.cancel()
    done, _ = await aio.wait({task}, timeout=GRACE_S)
    _forget(task)
    if state.stop is not None:
        state.stopped = _has_stopped(state, task)
        late = "" if state.stopped else ", and did not stop when asked"
        await _end_by_stop(state, state.stop, f"while it ran{late}")
        return
    late = f"the tool took longer than {state.plan.timeout_s:g} s"
    failure = task.exception() if done and not task.cancelled() else None
    if failure is not None and issubclass(type(failure), ToolFailure):  # the tool itself describes its end
        await take_error(state, failure, Status.TIMED_OUT)
    elif done:
        state.end(Status.TIMED_OUT, "timed-out", to_model(Message.TIMED_OUT), late)
    else:
        late += " and did not stop when asked"
        state.end(Status.ABANDONED, "abandoned", to_model(Message.ABANDONED), late)


async def _cancel(state: CallState, task: aio.Future[Any], stop: StopSignal) -> None:
    """Ask the tool to stop after its caller gave up; `give_up` records the end."""
    stop.set()
    task.cancel()
    try:
        await aio.wait({task}, timeout=GRACE_S)
    finally:
        _forget(task)
        state.stopped = _has_stopped(state, task)


def _has_stopped(state: CallState, task: aio.Future[Any]) -> bool:
    """Tell whether the tool no longer runs; that of another program may."""
    return task.done() and (state.effect is None or state.effect.ends)


async def give_up(state: CallState) -> None:
    """Record a call that ran and whose caller no longer wants the result."""
    if state.execution is not None:
        state.session.settle(state.execution.taken)
    await _close_cancelled(state, {"stopped": state.stopped})


def _forget(task: aio.Future[Any]) -> None:
    """Drop the result of a task that nobody waits for."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _wait(state: CallState, taken: Reservation, question: ApprovalRequest) -> None:
    """Record that a composition waits with a step: it will run again, and counts once it ends."""
    back: dict[str, JsonValue] = {COUNTS: {}} if state.slot is None else record.uses(state, state.slot)
    release(state, taken)
    state.status, state.output = Status.WAITING, to_model(Message.WAITING)
    await _close(state, {"started": False, QUESTION: question.request_id, **back})


async def finish(state: CallState) -> None:
    """Write the end of a call that ran; without that record, the result is withheld."""
    if state.question is not None and state.status is Status.FAILED and state.execution is not None:
        await _wait(state, state.execution.taken, state.question)
        return
    if state.status is Status.ALLOWED:
        record_success(state)
    else:
        data = (state.output or "").encode()
        state.output_hash, state.output_bytes, state.normal = hashlib.sha256(data).hexdigest(), len(data), b""
    if state.execution is not None:
        state.session.settle(state.execution.taken)
    if state.has_run and state.plan.right.facts.outside and state.status is not Status.ABANDONED:
        called = call_words(state.tool_name, state.chosen.name)
        state.session.mark(Mark(called, state.call_id, state.services.clock.wall_s()))
    if not await _close(state, {} if state.claim is None else await _keep(state, state.claim)):
        fail(state, "audit-unavailable", Message.RESULT_UNRECORDED, "the end could not be recorded")
        state.result, state.has_result = None, False
        state.normal, state.output_hash, state.output_bytes = b"", "", 0
        return
    is_pure, results = state.plan.tool.determinism is Determinism.PURE, state.services.results
    if is_pure and results is not None and state.status is Status.ALLOWED and not state.reused:
        raw = copy_value(state.result)  # the program may change its copy
        kept = KeptResult(state.output or "", state.normal, state.output_hash, state.output_bytes, raw)
        results.keep(state.session, _result_key(state), kept)


async def _keep(state: CallState, claim: NamedCall) -> dict[str, JsonValue]:
    """Keep the outcome of a named call before the row of its end; a caller who gives up meanwhile gets both."""
    kept = aio.ensure_future(aio.to_thread(claim.keep, state))
    try:
        return await unbroken(kept)
    except aio.CancelledError:
        await _close(state, kept.result())
        raise


async def _close_cancelled(state: CallState, more: dict[str, JsonValue], opening: RowBuilder | None = None) -> None:
    """Write the end of a call for which nobody waits."""
    state.status, state.code = Status.ABANDONED, "cancelled"
    await _close(state, more, opening)


async def _close(state: CallState, more: dict[str, JsonValue], opening: RowBuilder | None = None) -> bool:
    """Write the row that ends the call, after the rows still to write; True if it is in the log."""
    began_s = state.execution.began_s if state.execution is not None else time.monotonic()
    body: dict[str, JsonValue] = {
        "code": state.code,
        "bytes": state.output_bytes,
        "hash": state.output_hash,
        "elapsed_ms": round((time.monotonic() - began_s) * 1000, 3),
        **({"reused": True} if state.reused else {}),
        **({"misfit": record.clean(state.misfit, _MISFIT)} if state.misfit else {}),
        **({"led_to": list(state.led_to)} if state.led_to else {}),
        **more,
    }

    def rows(log: Log) -> tuple[AuditEntry, ...]:
        return (*(opening(log) if opening is not None else ()), record.entry(state, _ENDS[state.status], body))

    try:
        await state.services.record(rows)
    except AuditUnavailable:
        return False
    return True


EXECUTE = EffectStage("execute", _run)
