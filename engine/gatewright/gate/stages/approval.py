"""Approval: the strictest of the approvals key or tier, consents, and every ask of earlier stages.

An answer counts for exactly the call that it was given for and for the asks that were shown; a standing approval for
what it covers. Both are tested here and used up only where the call is executed (``spend``). It asks nobody, and what
cannot be done is denied before anybody is asked.
"""

from __future__ import annotations

import hashlib

from gatewright.base import aio
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json, digest
from gatewright.base.printable import printable
from gatewright.base.thread import unbroken
from gatewright.compile.finding import Finding
from gatewright.gate import message
from gatewright.gate.approval import REFUSED_CODE, Answer, Ask, Remember
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.decision import dotted
from gatewright.gate.grant import Grant, Subject, covers
from gatewright.gate.stages.rules import source_consents
from gatewright.policy.verdict import Verdict

_CONTENT_ASKS = frozenset({"tool-asks"})
"""Asks that hang on the content of the moment: no lasting approval answers them."""

MOST_REASON = 500
"""Characters of what an operator says with a refusal."""
_PASSES = StageResult(note="nothing asks")
_WORDS = {
    "approval-timed-out": message.NOT_IN_TIME,
    "approval-rate": message.TOO_MANY_ASKS,
    "approval-unavailable": message.NOT_ASKABLE,
    "approval-too-large": message.NOT_ASKABLE,
    "approval-withdrawn": message.WITHDRAWN,
}


def approval_digest(state: CallState) -> str:
    """What an answer is bound to: who calls what with which canonical arguments, and the text it would write."""
    diff = state.assessment.change() if state.assessment else None
    bound: dict[str, JsonValue] = {
        "agent": state.agent_id,
        "user": state.user_id,
        "session": _session_id(state),
        "tool": state.tool_name,
        "tool_digest": tool_digest(state),
        "operation": state.chosen.name,
        "arguments": state.arguments,
        "diff": None if diff is None else hashlib.sha256(diff.encode("utf-8", "surrogatepass")).hexdigest(),
    }
    return digest(bound)


def tool_digest(state: CallState) -> str:
    """The tool as it is now: another one of the same name is not what was approved."""
    return state.plan.tool_digest


def asks_of(state: CallState, asks: tuple[Finding, ...]) -> tuple[Ask, ...]:
    """What asks, as grants know it."""
    return tuple(_ask(state, finding) for finding in asks)


async def spend(state: CallState) -> Finding | None:
    """Use the standing approval up, just before the call is executed; the denial when it does not stand any more.

    One for a single execution is written down, which may have to wait for other processes: that happens in a thread,
    to its end also when the caller is cancelled meanwhile.
    """
    grant, grants = state.grant, state.services.grants
    if grant is None or grants is None:
        return None
    if grant.kind is not Remember.ONCE:
        return None if grants.spend(grant) else _withdrawn(grant.who)
    spent = await unbroken(aio.ensure_future(aio.to_thread(grants.spend, grant)))
    return None if spent else _withdrawn(grant.who)


def _run(state: CallState) -> StageResult:
    try:
        return _judged(state)
    except ToolFailure as failure:  # nobody is asked about what cannot be done
        return denied(failure.code, str(failure), state.plan.redactor(str(failure)))


def _judged(state: CallState) -> StageResult:
    if state.unanswered:
        reason = f"an earlier call of the turn, of `{printable(state.unanswered[:MOST_REASON])}`, got no yes"
        return denied("earlier-unanswered", reason, message.AFTER_UNANSWERED)
    own = (*state.chosen.asks, *source_consents(state))
    if not own and not state.asks:
        return _PASSES
    asks = (*state.asks, *own)
    standing = _standing(state, asks)
    if standing is not None and not standing.approved:
        reason = f"{standing.who or 'the operator'} refused identical calls for a time"
        facts: dict[str, JsonValue] = {"grant": standing.grant_id}
        state.grant = standing
        return denied(REFUSED_CODE, reason, message.REFUSED, facts=facts)
    if state.answer is not None:
        return _answered(state, asks, state.answer)
    if standing is None:
        if state.assessment is not None:
            state.assessment.change()  # raises for a call that cannot be done
        return StageResult(own, note="an earlier stage asks")
    note = f"covered by the standing approval `{standing.grant_id}` of {standing.who or 'the operator'}"
    state.asks, state.grant = (), standing
    return StageResult(note=note)


def _answered(state: CallState, asks: tuple[Finding, ...], answer: Answer) -> StageResult:
    approval = answer.approval
    who = approval.who or "the operator"
    if approval.approved is not True:
        said = f"{who} did not approve the call"
        if approval.code == REFUSED_CODE and approval.reason:
            told = printable(approval.reason[:MOST_REASON])
            return denied(REFUSED_CODE, f"{said}: {told}", f"{message.REFUSED}. The operator says: {told}")
        return denied(approval.code, approval.reason or said, _WORDS.get(approval.code, message.REFUSED))
    if answer.digest != approval_digest(state):
        reason = f"what {who} approved is not what the call would do now"
        return denied("approval-stale", reason, message.STALE)
    new = [finding for finding in asks if answer.asks is not None and _ask(state, finding).key not in answer.asks]
    if new:
        return denied("approval-stale", f"{who} was not asked this: {new[0].reason}", message.STALE)
    if not approval.grant_id:
        state.asks = ()
        return StageResult(note=f"approved by {who}")
    grant = _kept(state, approval.grant_id)
    if grant is None:
        return StageResult((_withdrawn(who),))
    state.asks, state.grant = (), grant
    return StageResult(note=f"approved by {who}")


def _standing(state: CallState, asks: tuple[Finding, ...]) -> Grant | None:
    """The grant that decides about the call: the one that the state brings along, else one from the book."""
    subject = Subject(
        state.agent_id,
        state.user_id,
        _session_id(state),
        state.tool_name,
        state.chosen.name,
        tool_digest(state),
        asks_of(state, asks),
        lambda: approval_digest(state),
    )
    if state.grant is not None:
        return state.grant if covers(state.grant, subject, state.wall_s) else None
    return state.services.grants.find(subject) if state.services.grants is not None else None


def _kept(state: CallState, grant_id: str) -> Grant | None:
    """The grant that the answer made, if nobody took it back and no equal call used it."""
    if state.grant is not None:
        return state.grant if state.grant.grant_id == grant_id else None
    return state.services.grants.get(grant_id) if state.services.grants is not None else None


def _withdrawn(who: str) -> Finding:
    reason = f"the approval by {who or 'the operator'} was revoked, is over, or was used by an identical call"
    return Finding(Verdict.DENY, "approval-withdrawn", reason, model=message.WITHDRAWN)


def _session_id(state: CallState) -> str:
    return state.facts.session_id if state.facts is not None else state.session.session_id


def _ask(state: CallState, finding: Finding) -> Ask:
    """The key of an ask: code, place, name and words, and for a policy rule what the rule says."""
    place = dotted(finding.address) if finding.address else ""
    what: list[JsonValue] = [
        finding.code,
        place,
        finding.rule_id,
        finding.scope,
        finding.reason,
        _written(state, finding),
    ]
    key = hashlib.sha256(canonical_json(what)).hexdigest()[:32]
    return Ask(key, finding.scope, finding.code in _CONTENT_ASKS, finding.about)


def _written(state: CallState, finding: Finding) -> str:
    """The policy rule behind an ask, so that one that replaces it under the same name asks again."""
    return next((repr(one.rule) for one in state.chosen.policy_rules if one.address == finding.address), "")


APPROVAL = Stage("approval", _run)
