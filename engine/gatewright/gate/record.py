"""What the audit log says of one call. No argument value gets there: only keys, kinds, lengths, and a keyed digest.

Finding and scrubbing secrets inside kept values comes with the normalise stage; until then no value is kept at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.audit import AuditEntry, AuditLog, RowKind

if TYPE_CHECKING:
    from gatewright.gate.approval import Approval, ApprovalRequest
    from gatewright.gate.call import CallState
    from gatewright.gate.decision import Decision

_NAME, _REASON, _KEYS = 100, 500, 64


def clean(text: str, limit: int = _NAME) -> str:
    """``text`` as the log takes it: valid UTF-8, no control characters, at most ``limit`` characters."""
    kept = text[:limit].encode("utf-8", "replace").decode()
    return kept if kept.isprintable() else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in kept)


def entry(state: CallState, kind: RowKind, body: Mapping[str, JsonValue]) -> AuditEntry:
    """A row of this call. The operation is named only if the tool has it."""
    operation = state.operation.name if state.operation else ""
    session = clean(state.session.session_id)
    return AuditEntry(kind, state.call_id, clean(state.agent_id), session, clean(state.tool_name), operation, body)


def invoked(state: CallState, log: AuditLog) -> AuditEntry:
    """ToolInvoked: the shape of the arguments and their keyed digest; neither when they could not be read."""
    shape: dict[str, JsonValue] = {clean(key): _kind(v) for key, v in list(state.arguments.items())[:_KEYS]}
    body: dict[str, JsonValue] = {"arguments": shape, "digest": log.digest(state.arguments)}
    return entry(state, RowKind.TOOL_INVOKED, body)


def decided(state: CallState, decision: Decision) -> AuditEntry:
    """PolicyDecision: verdict, stage, code, reason, rule."""
    body: dict[str, JsonValue] = {
        "verdict": str(decision.verdict),
        "stage": decision.stage,
        "code": clean(decision.code),
        "reason": clean(decision.reason, _REASON),
        "rule": decision.rule.rule_id if decision.rule else None,
    }
    return entry(state, RowKind.POLICY_DECISION, body)


def requested(state: CallState, request: ApprovalRequest) -> AuditEntry:
    """ApprovalRequested: why, for which scope, for which digest."""
    reasons: list[JsonValue] = [clean(reason, _REASON) for reason in request.reasons]
    body: dict[str, JsonValue] = {"reasons": reasons, "scope": request.scope, "digest": request.digest}
    return entry(state, RowKind.APPROVAL_REQUESTED, body)


def resolved(state: CallState, approval: Approval, request: ApprovalRequest) -> AuditEntry:
    """ApprovalResolved: the answer, whose, for which scope."""
    body: dict[str, JsonValue] = {"approved": approval.approved, "who": clean(approval.who), "scope": request.scope}
    return entry(state, RowKind.APPROVAL_RESOLVED, body)


def refused(state: CallState, code: str) -> AuditEntry:
    """ToolDenied: the end of a call that was not made."""
    return entry(state, RowKind.TOOL_DENIED, {"code": clean(code)})


def _kind(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return f"text of {len(value):,} characters"
    if isinstance(value, list):
        return f"list of {len(value):,}"
    if isinstance(value, dict):
        return f"object of {len(value):,}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true or false"
    return "number"
