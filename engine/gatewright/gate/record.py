"""Rows of the audit log about one call, or a connection of a confined process: bounded, and without secrets.

Argument values are scrubbed and shortened, with a note of the cuts; a keyed digest of the whole makes equal calls
recognisable. Equal connections share a row if there are many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.approval import Approval, ApprovalRequest, Remember
from gatewright.gate.call import CallState
from gatewright.gate.chain import RowKind
from gatewright.gate.decision import Decision, RuleRef, spell_address
from gatewright.gate.history import COUNTS, OUTSIDE, QUESTION, SOURCES
from gatewright.gate.port import AuditEntry, AuditUnavailable, Log
from gatewright.gate.scrub import cut_to_size, scrub_text, scrub_value
from gatewright.gate.session import Reservation, log_text
from gatewright.gate.stages.permission import CAPABILITY
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.target import BlockTarget, CapabilityCheck, FileTarget
from gatewright.policy.verdict import Verdict, Word

_NAME, _REASON, _TARGETS, _FOLDER = 100, 500, 16, 4096
_WAYS, _DEPTH = 16, 16
"""The most ways in which a sub-agent may have been started, and the most agents in each."""

EntryMaker = Callable[[Log], AuditEntry]
"""Makes the row that a call begins with."""


def clean(text: str, limit: int = _NAME) -> str:
    """``text`` as the log stores it: valid UTF-8, no control characters, at most ``limit`` characters."""
    return _clean_name(text) if len(text) <= _NAME <= limit else _clean(text, limit)


@lru_cache(maxsize=1024)
def _clean_name(text: str) -> str:
    return _clean(text, _NAME)


def _clean(text: str, limit: int) -> str:
    kept = text[:limit]
    if kept.isascii() and kept.isprintable():
        return kept
    kept = kept.encode("utf-8", "replace").decode()
    return kept if kept.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in kept)


def entry(
    state: CallState, kind: RowKind, body: Mapping[str, JsonValue], slot: Reservation | None = None
) -> AuditEntry:
    """A row of this call; it names the operation only if the tool has it, for a batch all of them as a JSON list.

    In place of a tool's name the caller may have sent anything, even a secret.
    """
    tool = state.tool_name if state.tool is not None else scrub_text(state.tool_name[:_REASON])[0]
    agent, session = log_text(state.agent_id), state.session.log_name
    return AuditEntry(kind, state.call_id, agent, session, clean(tool), _operation(state), body, slot)


def _operation(state: CallState) -> str:
    return clean(state.operation.name, _REASON) if state.operation else ""


def invocation(state: CallState, log: Log) -> AuditEntry:
    """ToolInvoked: the arguments in the log's form and the keyed digest of all of them.

    ``scrubbed``: the number of secrets removed; ``cut``: the parts left out for size; ``client``: the name that the
    calling program gave itself; ``within`` and ``step``: for a step of a composition, the outer call and the step's
    number; ``trace``: the id of its trace; ``folder``: where the program works that runs it; of a sub-agent:
    ``callers``, the outermost first, ``child``, its id with its host, ``within``, the call that started it, and
    ``lineage``, the names by which its callers are found again. Each is optional.
    """
    small, cut = cut_to_size(state.arguments)
    kept, secrets = scrub_value(small)
    body: dict[str, JsonValue] = {"arguments": kept, "digest": log.digest(state.arguments)}
    if secrets:
        body["scrubbed"] = secrets
    if (line := state.lineage) is not None:
        body |= {"callers": [log_text(one.agent_id) for one in state.callers], "child": clean(line.child_id)}
        body |= {"within": line.within} if line.within else {}
        lines: list[JsonValue] = [[clean(kind) for kind in way[:_DEPTH]] for way in line.lines[:_WAYS]]
        body["lineage"] = {"root": log_text(line.root_id), "kind": clean(line.kind), "lines": lines}
        if len(line.lines) > _WAYS or any(len(way) > _DEPTH for way in line.lines):
            cut = [*cut, "callers left out"]
    if cut:
        body["cut"] = cut
    if state.within is not None:
        body |= {"within": state.within.call_id, "step": state.within.step}
    if state.client:
        body["client"] = clean(state.client)
    if state.trace_id:
        body["trace"] = state.trace_id
    if state.folder is not None and state.tool is not None and state.tool.tool.in_folder:
        body["folder"] = clean(state.folder, _FOLDER)
    return opening(state, RowKind.TOOL_INVOKED, body)


def opening(state: CallState, kind: RowKind, body: Mapping[str, JsonValue]) -> AuditEntry:
    """A row of this call; if the call begins with it, it also records the call's uses of its session."""
    slot = state.slot
    if slot is None:
        return entry(state, kind, body)
    return entry(state, kind, {**body, **uses(state, slot)}, slot)


def uses(state: CallState, slot: Reservation) -> dict[str, JsonValue]:
    """A call's uses of its session, besides its operation: those of a batch, and the sources that it goes to."""
    said: dict[str, JsonValue] = {}
    if state.claim is not None:
        said |= state.claim.said(state)
    if slot.operations != {_operation(state): 1}:
        said[COUNTS] = dict(slot.operations)
    if slot.sources:
        said[SOURCES] = list(slot.sources)
    if state.plan.right.facts.outside:
        said[OUTSIDE] = True
    return said


def opening_rows(state: CallState, decision: Decision, first: EntryMaker, log: Log) -> tuple[AuditEntry, ...]:
    """The rows of a call that is about to begin: the first, and those of the decision that lets it through."""
    late = state.overtaken
    if late is not None:
        rule = RuleRef(late.rule_id or spell_address(late.address), late.address) if late.address is not None else None
        passed = decision.effect
        decision = replace(
            decision,
            verdict=late.verdict,
            stage="execute",
            code=late.code,
            reason=late.reason,
            rule=rule,
            passed=passed,
        )
    return (first(log), *judgement(state, decision))


def judgement(state: CallState, decision: Decision) -> tuple[AuditEntry, ...]:
    """CapabilityCheck, if the call came that far and needs capabilities (one row for each step), and PolicyDecision."""
    return (*capability_checks(state, decision), decision_row(state, decision))


def capability_checks(state: CallState, decision: Decision) -> tuple[AuditEntry, ...]:
    """CapabilityCheck: the needed kinds, and whether each kind and each judged thing is granted; empty if the stage did
    not run.

    A call that copies a file from one root to another has two, one for each step, under one call id.
    """
    needed: frozenset[CapabilityKind] = frozenset()
    if state.operation is not None:
        needed = state.operation.capabilities
    if not (needed or state.checks):
        return ()
    stage = next((row for row in decision.trace if row.stage == CAPABILITY.name), None)
    if stage is None:
        return ()
    steps = _steps(state)
    if not steps:
        return (_check_row(state, needed, state.checks, {"allowed": stage.verdict is not Verdict.DENY}),)
    return tuple(_step(state, number, file, len(steps)) for number, file in enumerate(steps, 1))


def _steps(state: CallState) -> tuple[FileTarget, ...]:
    """The files of a call from root to root, the source first; empty for any other call."""
    files = sorted((file for file in state.files if file.root is not None), key=lambda file: file.writes)
    return tuple(files) if {file.writes for file in files} == {True, False} else ()


def _step(state: CallState, number: int, file: FileTarget, count: int) -> AuditEntry:
    kind = CapabilityKind.FS_WRITE if file.writes else CapabilityKind.FS_READ
    checks = [check for check in state.checks if check.kind is kind and check.target in {"", file.absolute}]
    said: dict[str, JsonValue] = {"step": number, "steps": count, "does": "write" if file.writes else "read"}
    said |= {"path": _reason(file.relative), "allowed": bool(checks) and all(check.allowed for check in checks)}
    return _check_row(state, frozenset({kind}), checks, said)


def _check_row(
    state: CallState,
    needed: Collection[CapabilityKind],
    found: Iterable[CapabilityCheck],
    said: Mapping[str, JsonValue],
) -> AuditEntry:
    """Make one row. Ungranted checks come first; of many it names some and counts the rest."""
    found = sorted(found, key=lambda check: check.allowed)
    checks: list[JsonValue] = [
        {"kind": str(check.kind), "target": _reason(check.target), "allowed": check.allowed}
        for check in found[:_TARGETS]
    ]
    body: dict[str, JsonValue] = {
        "kinds": [*sorted(map(str, {*needed, *(check.kind for check in found)}))],
        "checks": checks,
        **said,
    }
    if len(found) > _TARGETS:
        body["more"] = len(found) - _TARGETS
    return entry(state, RowKind.CAPABILITY_CHECK, body)


def decision_row(state: CallState, decision: Decision) -> AuditEntry:
    """PolicyDecision: verdict, stage, code, reason, rule, the ids of decision and policy, the named blocks.

    ``enforced``: false where observe mode passes the verdict; then ``stages`` has the verdict of each.
    """
    prover = decision.prover
    body: dict[str, JsonValue] = {
        "verdict": decision.verdict.value,
        "stage": decision.stage,
        "code": clean(decision.code),
        "reason": clean(decision.reason, _REASON) if decision.verdict is Verdict.ALLOW else _reason(decision.reason),
        "rule": decision.rule.rule_id if decision.rule else None,
        "decision": prover.decision_id if prover else "",
        "policy": prover.policy_digest if prover else "",
    }
    if decision.passed is not None:
        body["enforced"] = False
        body["stages"] = {row.stage: row.verdict.value for row in decision.trace}
    if state.grant is not None:
        body["grant"] = state.grant.grant_id
    if state.blocks:
        body["blocks"] = [_block(block) for block in state.blocks[:_TARGETS]]
    return entry(state, RowKind.POLICY_DECISION, body)


def _block(block: BlockTarget) -> JsonValue:
    return {"label": _reason(block.label), "id": block.block_id or None, "permission": str(block.permission)}


def approval_request(state: CallState, request: ApprovalRequest) -> AuditEntry:
    """ApprovalRequested: the reasons, the scope and the digest."""
    reasons: list[JsonValue] = [clean(reason, _REASON) for reason in request.reasons]
    body: dict[str, JsonValue] = {"reasons": reasons, "scope": request.scope, "digest": request.digest}
    return entry(state, RowKind.APPROVAL_REQUESTED, body)


def approval_answer(state: CallState, approval: Approval, request: ApprovalRequest) -> AuditEntry:
    """ApprovalResolved: the answer, its author, scope and duration, and its grant."""
    return opening(state, RowKind.APPROVAL_RESOLVED, _answer(approval, request))


def _answer(approval: Approval, request: ApprovalRequest) -> dict[str, JsonValue]:
    return {
        "approved": approval.approved is True,
        "who": clean(approval.who),
        "scope": request.scope,
        "remember": str(approval.remember if approval.lasts else Remember.ONCE),
        "seconds": approval.seconds if approval.lasts else None,
        "grant": approval.grant_id or None,
    }


def given_answer(request: ApprovalRequest, approval: Approval) -> AuditEntry:
    """ApprovalResolved of a suspended call: its process may have ended, and ``question`` names the question."""
    body = {**_answer(approval, request), QUESTION: request.request_id}
    names = log_text(request.agent_id), log_text(request.session_id), clean(request.tool)
    return AuditEntry(RowKind.APPROVAL_RESOLVED, request.call_id, *names, clean(request.operation, _REASON), body)


def wait(state: CallState, request: ApprovalRequest, replaced: str, why: str) -> AuditEntry:
    """CallWaits: the question, its limit, and the question that it replaces with the reason, if any."""
    body: dict[str, JsonValue] = {QUESTION: request.request_id, "until": request.expires_wall_s}
    if request.conversation:
        body["conversation"] = clean(request.conversation)
    if replaced:
        body |= {"replaces": replaced, "why": clean(why)}
    return entry(state, RowKind.CALL_WAITS, body)


def denial(state: CallState, code: str) -> AuditEntry:
    """ToolDenied: the end of a call that was not made."""
    return entry(state, RowKind.TOOL_DENIED, {"code": clean(code)})


def _reason(text: str) -> str:
    """A text that may quote the caller's input."""
    return clean(scrub_text(text[: 4 * _REASON])[0], _REASON)


_AT_ONCE, _KINDS = 64, 64
"""The most connections between two pauses with a row each; beyond that equal ones share a row, and beyond as many kinds
all others do.
"""
_PAUSE_S = 5.0
_HOST, _WHY = 256, 200


class Way(Word):
    """The way in which a process requests a connection."""

    HTTP = "http"
    CONNECT = "connect"
    SOCKS = "socks"


@frozen
class Connection:
    """A requested connection, after its end.

    ``allowed``: the policy permits it, though it may still have failed; ``code`` and ``why``: the objection, or the
    reason of an early end; ``address``: the host's; ``sent`` and ``received``: bytes, seen from the process; ``count``:
    for how many such connections it stands.
    """

    host: str
    port: int
    way: Way
    allowed: bool
    code: str = ""
    why: str = ""
    address: str = ""
    sent: int = 0
    received: int = 0
    elapsed_ms: float = 0.0
    count: int = 1


class ConnectionLog:
    """Writes the connections of one agent's tool or catalog into the audit log, in its own thread.

    If the program is killed, the last few seconds may be missing. ``clean``: removes the secrets that the process was
    given.
    """

    def __init__(
        self, log: Log, agent_id: str, subject: str, *, clean: Callable[[str], str] = lambda text: text
    ) -> None:
        self._log, self._agent_id, self._subject, self._clean = log, agent_id, subject, clean
        self._lock = threading.Lock()
        self._single: list[Connection] = []
        self._shared: dict[tuple[object, ...], Connection] = {}
        self._writer: threading.Thread | None = None
        self._closing = threading.Event()
        self._failure: AuditUnavailable | None = None

    def tell(self, connection: Connection) -> None:
        """Queue a connection for writing, without waiting. Raises AuditUnavailable while the log cannot be written."""
        with self._lock:
            failure = self._failure
            self._take(connection)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="gatewright-connections", daemon=True)
                self._writer.start()
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Write the rest, and wait for it."""
        self._closing.set()
        writer = self._writer
        if writer is not None:
            writer.join()

    def _take(self, one: Connection) -> None:
        if len(self._single) < _AT_ONCE:
            self._single.append(one)
            return
        key = (one.host, one.port, one.way, one.allowed, one.code)
        if key not in self._shared and len(self._shared) >= _KINDS:
            one = replace(one, host="", port=0, address="", why="")
            key = ("", 0, one.way, one.allowed, one.code)
        other = self._shared.get(key)
        self._shared[key] = one if other is None else _together(other, one)

    def _write(self) -> None:
        """Write the queue, with pauses, until it is empty or the log cannot be written."""
        while True:
            with self._lock:
                taken = [*self._single, *self._shared.values()]
                if not taken:
                    self._writer = None
                    return
                self._single, self._shared = [], {}
            failure = None
            try:
                self._log.append([self._row(one) for one in taken])
            except AuditUnavailable as error:
                failure = error
            with self._lock:
                self._failure = failure
                if failure is not None:
                    for one in taken:
                        self._take(one)
                    self._writer = None
                    return
            self._closing.wait(_PAUSE_S)

    def _row(self, one: Connection) -> AuditEntry:
        host = scrub_text(self._clean(one.host[:_HOST]))[0]
        body: dict[str, JsonValue] = {
            "host": clean(host, _HOST),
            "port": one.port,
            "way": str(one.way),
            "allowed": one.allowed,
            "sent": one.sent,
            "received": one.received,
            "elapsed_ms": round(one.elapsed_ms, 1),
        }
        if one.address:
            body["address"] = one.address
        if one.code:
            body |= {"code": clean(one.code), "why": clean(scrub_text(self._clean(one.why))[0], _WHY)}
        if one.count > 1:
            body["count"] = one.count
        return AuditEntry(RowKind.CONNECTION, agent=clean(self._agent_id), tool=clean(self._subject), body=body)


def _together(one: Connection, other: Connection) -> Connection:
    return replace(
        one,
        sent=one.sent + other.sent,
        received=one.received + other.received,
        elapsed_ms=one.elapsed_ms + other.elapsed_ms,
        count=one.count + other.count,
    )
