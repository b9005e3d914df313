"""Approval: the strictest of the approvals key or tier, consents, and every ask of earlier stages.

An answer counts for exactly the call that it was given for. It asks nobody.
"""

from __future__ import annotations

import hashlib

from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied


def approval_digest(state: CallState) -> str:
    """What an answer is bound to: who calls what with which canonical arguments, and the text it would write."""
    bound: dict[str, JsonValue] = {
        "agent": state.agent_id,
        "user": state.user_id,
        "session": state.session.session_id,
        "tool": state.tool_name,
        "major": state.plan.tool.major,
        "operation": state.chosen.name,
        "arguments": state.arguments,
        "diff": _digest_of_text(state.assessment.change()) if state.assessment else None,
    }
    return digest(bound)


def _digest_of_text(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _run(state: CallState) -> StageResult:
    asks = state.chosen.asks
    if not asks and not state.asks:
        return StageResult(state, note="nothing asks")
    answer = state.answer
    if answer is None:
        return StageResult(state, asks, note="an earlier stage asks")
    who = answer.approval.who or "the operator"
    if answer.approval.approved is not True:
        return denied(state, "approval-refused", f"{who} did not approve the call", message.REFUSED)
    if answer.digest != approval_digest(state):
        reason = f"what {who} approved is not what the call would do now"
        return denied(state, "approval-stale", reason, message.STALE)
    return StageResult(state.having(asks=()), note=f"approved by {who}")


APPROVAL = Stage("approval", _run)
