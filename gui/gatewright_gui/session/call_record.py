"""What became of a call, made into a record: stages with their rules, the result, the change, the earlier call."""

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from gatewright.workspace.api import (
    Address,
    Decision,
    GatewrightError,
    Outcome,
    Policy,
    Session,
    StageTrace,
    Verdict,
    Workspace,
    frozen,
    plain_text,
    spell_address,
    with_lines,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.calls import (
    CANCELLED,
    STAGE_NAMES,
    CallRecord,
    CallRequest,
    EarlierCall,
    Kind,
    RuleLink,
    StageRow,
    StepRow,
    telling_argument,
    visible,
)
from gatewright_gui.session.document import Document
from gatewright_gui.session.place import RulePlace, place_of
from gatewright_gui.session.question import own, who_words

MAX_WHOLE = 16_000_000
"""Bytes of a result that was cut for the model; of a larger one only what the model gets is kept."""
_MAX_READ = 200_000
"""Characters of arguments that are read for a call that was given up."""


@dataclass(slots=True)
class CallProgress:
    """The progress of a call, written in the thread of calls: what is known of one that never ends.

    `is_asked`: a question is open. `began_s`: on the steady clock. `streamed`: the end of what a stream gave so far;
    `is_stream_due`: it is going to be shown. `steps`: of a composition; `step`: how far the one under way has come.
    """

    operation: str = ""
    telling: str = ""
    is_asked: bool = False
    stages: dict[str, StageRow] = field(default_factory=dict[str, StageRow])
    began_s: float = field(default_factory=time.perf_counter)
    streamed: str = ""
    is_stream_due: bool = False
    steps: tuple[StepRow, ...] = ()
    step: "CallProgress | None" = None

    def pass_stage(self, row: StageRow) -> None:
        """A stage passed. One that passed before begins another round: what came after it is open again."""
        if row.name in self.stages:
            self.stages = {name: kept for name, kept in self.stages.items() if _before(name, row.name)}
        self.stages[row.name] = row

    @property
    def stage(self) -> str:
        """The stage at work."""
        if self.is_asked:
            return "approval"
        return next((name for name in STAGE_NAMES if name not in self.stages), STAGE_NAMES[-1])


def _before(name: str, other: str) -> bool:
    return STAGE_NAMES.index(name) < STAGE_NAMES.index(other)


@frozen
class CallRun:
    """A call on its way. `given_up`: whether nobody waits for it any more; `earlier`: the call that it repeats."""

    kind: Kind
    number: int
    request: CallRequest
    workspace: Workspace
    policy: Policy
    session: Session
    is_live: bool
    given_up: Callable[[], bool]
    earlier: EarlierCall | None = None
    progress: CallProgress = field(default_factory=CallProgress)


def size_of(records: Iterable[CallRecord]) -> int:
    """Characters that the records hold, about."""
    return sum(
        _length(record.request.arguments)
        + sum(map(len, (record.output or "", record.whole or "", record.change or "")))
        + len(record.blob or b"")
        + size_of(row.record for row in record.steps)
        for record in records
    )


def _length(arguments: object) -> int:
    if isinstance(arguments, str):
        return len(arguments)
    if isinstance(arguments, dict):
        return sum(_length(value) for value in cast("dict[str, object]", arguments).values())
    return 16


def earlier_call(record: CallRecord | None) -> EarlierCall | None:
    """The record kept of the call that another one repeats."""
    if record is None or record.status == CANCELLED:
        return None
    return EarlierCall(record.number, record.wall_s, record.verdict, record.stage, record.code)


def change_of(run: CallRun, gate: Workspace) -> str | None:
    """The change the call would make in a text; a change that cannot be told is none, the call says why itself."""
    request = run.request
    try:
        return gate.gate.change(request.agent_id, request.tool, request.arguments, session=run.session)
    except (GatewrightError, OSError, ValueError):
        return None


def try_call(workspace: Workspace, request: CallRequest) -> CallRecord:
    """Ask the gate about a call in a conversation of its own, without any effect. Reads the disk: not for the window's
    thread. Raises GatewrightError, OSError.
    """
    run = CallRun("decide", 0, request, workspace, workspace.policy, Session(), False, lambda: False)
    given, folder = request.arguments, request.folder
    decision = workspace.decide(request.agent_id, request.tool, given, session=run.session, folder=folder)
    return record_of(run, decision, workspace, elapsed_ms=0.0, change=None)


_COVERED = re.compile(r"covered by the standing approval `([^`]*)` of (.*)")


def _earlier(reason: str, gate: Workspace) -> str:
    """The words of a standing approval that covers a call: who gave it, and until when it stands."""
    found = _COVERED.fullmatch(reason)
    if found is None:
        return reason
    grant = gate.broker.grants.get(found[1])
    said = {"who": who_words(found[2]), "grant": found[1]}
    if grant is not None and grant.expires_wall_s is not None:
        form = "%H:%M" if grant.expires_wall_s - time.time() < 43_200 else "%Y-%m-%d"
        until = time.strftime(form, time.localtime(grant.expires_wall_s))
        return tr("approved earlier by {who}, until {time} (standing approval {grant})", **said, time=until)
    return tr("approved earlier by {who} (standing approval {grant})", **said)


def stage_row(row: StageTrace, workspace: Workspace, gate: Workspace) -> StageRow:
    """A stage to show; `workspace` has the policy that is open, `gate` is what answered."""
    link = None
    if row.address is not None:
        link = RuleLink(spell_address(row.address), row.address, line_of(workspace, row.address))
    reason = _earlier(row.reason, gate) if row.stage == "approval" else row.reason
    return StageRow(row.stage, row.verdict, visible(own(with_lines(reason, workspace.place))), row.elapsed_us, link)


def line_of(workspace: Workspace, address: Address) -> int | None:
    """The line of a part of the policy; one that the file leaves out leads to the table that would hold it."""
    for length in range(len(address), 1, -1):
        place = workspace.place(address[:length])
        if place is not None:
            return place.line
    return None


async def find_place(document: Document, address: Address) -> RulePlace | None:
    """The place to edit a part of the policy that asks, as the policy is now; None when it is no longer there."""
    workspace = document.workspace
    return place_of(document.policy, address, await asyncio.to_thread(line_of, workspace, address))


async def find_lines(document: Document, addresses: Iterable[Address]) -> dict[Address, int | None]:
    """In which lines parts of the policy stand, as it is now."""
    workspace, wanted = document.workspace, [*addresses]
    return await asyncio.to_thread(lambda: {address: line_of(workspace, address) for address in wanted})


def _operation(workspace: Workspace, request: CallRequest, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The operation that is called, and the argument that tells the call from others of it."""
    agent = workspace.gate.snapshot().agent(request.agent_id)
    plan = agent.plan(request.tool) if agent is not None else None
    selector = (plan.tool.operation_field or "") if plan is not None and plan.has_operations else ""
    return (_operation_of(arguments, selector) or "") if selector else "", telling_argument(arguments, selector)


def read_request(run: CallRun) -> None:
    """Find out what is called before it is, so that a call that never ends can be named."""
    given: object = run.request.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given) if len(given) <= _MAX_READ else None
        except (ValueError, RecursionError):
            return
    if isinstance(given, Mapping):
        arguments = cast("Mapping[str, Any]", given)
        run.progress.operation, run.progress.telling = _operation(run.workspace, run.request, arguments)


def _operation_of(arguments: Mapping[str, Any], field: str) -> str | None:
    """The operation that the arguments name; those of a batch one behind the other, each once."""
    steps = field.split("[].", 1)
    if len(steps) == 1:
        found = arguments.get(field)
        return found if isinstance(found, str) else None
    items: object = arguments.get(steps[0])
    given = cast("list[object]", items) if isinstance(items, list) else []
    named = [cast("dict[str, object]", item).get(steps[1]) for item in given if isinstance(item, dict)]
    return ", ".join(dict.fromkeys(name for name in named if isinstance(name, str)))


def record_of(
    run: CallRun,
    decision: Decision,
    gate: Workspace,
    outcome: Outcome | None = None,
    *,
    elapsed_ms: float,
    change: str | None,
) -> CallRecord:
    """The record of a call that was decided, or with an outcome that was sent through the whole gate."""
    rule = decision.rule
    operation, telling = _operation(run.workspace, run.request, decision.arguments)
    decided = CallRecord(
        run.number,
        run.kind,
        time.time(),
        run.request,
        operation,
        decision.verdict,
        decision.stage,
        decision.code,
        visible(own(decision.reason)),
        decision.model_message,
        RuleLink(rule.rule_id, rule.address, line_of(run.workspace, rule.address)) if rule is not None else None,
        tuple(stage_row(row, run.workspace, gate) for row in decision.trace),
        elapsed_ms=elapsed_ms,
        change=change,
        earlier=run.earlier,
        telling=telling,
        steps=run.progress.steps,
    )
    if outcome is None:
        return decided
    return replace(
        decided,
        status=str(outcome.status),
        output=outcome.output,
        truncated=outcome.truncated,
        output_hash=outcome.output_hash,
        output_bytes=outcome.output_bytes,
        secrets=outcome.secrets,
        reused=outcome.reused,
        is_binary=_is_binary(outcome),
        blob=_blob(outcome),
        detail=visible(outcome.detail),
        is_live=run.is_live,
        whole=_whole(outcome),
    )


def record_of_cancelled(run: CallRun) -> CallRecord:
    """The record of a call that was cancelled on its way: what passed, and where it stood."""
    progress, is_run = run.progress, run.kind == "run"
    stage, passed = progress.stage, tuple(progress.stages.values())
    acted = "execute" in progress.stages or stage == "execute"
    said = tr("cancelled by you") if passed else tr("cancelled by you before the gate saw it")
    undone = tr("what the tool had done by then stays done") if acted else tr("the call was not run")
    return CallRecord(
        run.number,
        run.kind,
        time.time(),
        run.request,
        progress.operation,
        Verdict.ASK if progress.is_asked else Verdict.ALLOW,
        stage,
        CANCELLED,
        f"{said}; {undone}" if is_run else said,
        None,
        None,
        passed,
        CANCELLED,
        elapsed_ms=(time.perf_counter() - progress.began_s) * 1000,
        is_live=run.is_live and is_run,
        telling=progress.telling,
        steps=tuple(map(_give_up, progress.steps)),
    )


def _give_up(row: StepRow) -> StepRow:
    """A step of a call that was given up: the one under way with it, one that was held was never made."""
    if row.state == "held":
        return replace(row, state="waiting")
    if row.state != "working":
        return row
    record = replace(row.record, status=CANCELLED, code=CANCELLED, reason=tr("cancelled by you"))
    return replace(row, state="done", record=record)


def record_so_far(run: CallRun, reason: str = "") -> CallRecord:
    """Facts of a call that is under way, or that is not made: no verdict of it counts."""
    progress = run.progress
    stages = tuple(progress.stages.values())
    about = (run.number, run.kind, time.time(), run.request, progress.operation, Verdict.ALLOW, progress.stage, "")
    return CallRecord(*about, reason, None, None, stages, is_live=run.is_live, telling=progress.telling)


def _whole(outcome: Outcome) -> str | None:
    """The result as it was before it was cut; None where it was not, or is no text."""
    if not outcome.truncated or outcome.data is None or len(outcome.data) > MAX_WHOLE:
        return None
    return None if _is_binary(outcome) else outcome.data.decode("utf-8", "replace")


def _is_binary(outcome: Outcome) -> bool:
    return isinstance(outcome.raw, bytes) and outcome.data is not None and plain_text(outcome.data) is None


def _blob(outcome: Outcome) -> bytes | None:
    """The bytes of a result that is no text, or the first that an MCP server gave in its answer."""
    data = outcome.data
    if data is None or len(data) > MAX_WHOLE:
        return None
    if _is_binary(outcome):
        return data
    content = cast("dict[str, object]", outcome.raw).get("content") if isinstance(outcome.raw, dict) else None
    for block in cast("list[object]", content) if isinstance(content, list) else ():
        fields = cast("dict[str, object]", block) if isinstance(block, dict) else {}
        held = fields.get("resource")
        fields = cast("dict[str, object]", held) if isinstance(held, dict) else fields
        coded = fields.get("data", fields.get("blob"))
        if isinstance(coded, str):
            try:
                return base64.b64decode(coded, validate=True)
            except ValueError:
                continue
    return None


def record_value(record: CallRecord) -> dict[str, Any]:
    """A record as a JSON object, to be copied: what was asked, what was decided, every stage, what came of it."""
    request = record.request
    try:
        arguments = json.loads(request.text) if isinstance(request.arguments, str) else _plain(request.arguments)
    except (ValueError, RecursionError):
        arguments = request.arguments
    rule = record.rule
    return {
        "number": record.number,
        "kind": record.kind,
        "live": record.is_live,
        "time": record.wall_s,
        "agent": request.agent_id,
        "tool": request.tool,
        "operation": record.operation or None,
        "arguments": arguments,
        "verdict": str(record.verdict),
        "stage": record.stage,
        "code": record.code,
        "reason": record.reason,
        "detail": record.detail or None,
        "model_message": record.model_message,
        "rule": {"id": rule.rule_id, "line": rule.line} if rule is not None else None,
        "stages": [
            {
                "stage": row.name,
                "verdict": str(row.verdict),
                "reason": row.reason,
                "elapsed_us": round(row.elapsed_us, 1),
            }
            for row in record.stages
        ],
        "status": record.status,
        "output": record.output,
        "truncated": record.truncated,
        "output_bytes": record.output_bytes,
        "output_hash": record.output_hash,
        "elapsed_ms": round(record.elapsed_ms, 3),
        "change": record.change,
        **({"steps": [_step_value(row) for row in record.steps]} if record.steps else {}),
    }


def _step_value(row: StepRow) -> dict[str, Any]:
    """A step as a JSON object; of one that was not made no verdict, since there is none."""
    value = record_value(row.record) if row.state == "done" else {"tool": row.record.request.tool}
    return {"step": row.number, "state": row.state, **({"note": row.note} if row.note else {}), **value}


def record_text(record: CallRecord) -> str:
    """A record as JSON text, to be copied."""
    return json.dumps(record_value(record), ensure_ascii=False, indent=2, default=str)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    return json.loads(json.dumps(value, default=str))
