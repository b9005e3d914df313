"""The stages that apply the rows of ``[[policy.rules]]`` and ask for an operator's approval.

* **policy**: the rows that match the call, deny before ask before allow, else the default. Conditions see the arguments
  in the form that people write: paths relative to their root, URLs in canonical form. A condition that cannot be
  evaluated denies.
* **approval**: the strictest of the approvals key or tier, consents, and every ask of earlier stages. An answer counts
  for exactly its call and for the asks that the operator saw; a standing approval counts for everything that it covers.
  This stage tests both; only a call that runs spends them (``spend``). An impossible call is denied before anybody is
  asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gatewright.base.errors import SchemaError, ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json, digest
from gatewright.base.late import aio, unbroken
from gatewright.base.printable import printable
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import OperationPlan
from gatewright.compile.rule_test import CompiledPolicyRule, Finding, compile_rules
from gatewright.gate.approval import REFUSED_CODE, Answer, Ask, Remember
from gatewright.gate.approvalstore import Grant, Subject, covers
from gatewright.gate.call import CallState, Stage, StageResult, deny
from gatewright.gate.decision import Message, spell_address
from gatewright.gate.stages.rules import source_consents
from gatewright.policy.delegation import conditional_denials, explicit_denial
from gatewright.policy.observe import without_objection
from gatewright.policy.rule import PolicyRule
from gatewright.policy.rulematch import DEFAULT_ADDRESS, address_of
from gatewright.policy.verdict import STRICTNESS, Verdict
from gatewright.policyfile.readpolicy import Condition
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import as_object, pointer_text, properties_of

_DENIED = "this call is not allowed with these arguments; change them or go on without it"
_DEFAULT = REFUSED_TO_CALLER = "this call is not allowed; go on without it"
_BROKEN = "the call could not be checked; try something else"
_CODES = {Verdict.DENY: "policy-deny", Verdict.ASK: "policy-ask"}
_SAYS = {Verdict.DENY: "denies", Verdict.ASK: "asks before"}


_NO_MATCH = StageResult(note="no policy rule matches")


def _check_policy_rules(state: CallState) -> StageResult:
    """Apply the matching rows of ``[[policy.rules]]``: deny before ask before allow, else the default."""
    chosen = state.chosen
    if not chosen.parts:
        return _apply_rows(state, chosen)
    return _strictest([_apply_rows(state, part) for part in chosen.parts])


def _apply_rows(state: CallState, operation: OperationPlan) -> StageResult:
    """Apply the rows to one operation."""
    matching: list[CompiledPolicyRule] = []
    for rule in operation.policy_rules:
        try:
            if rule.matches(state.policy_arguments):
                matching.append(rule)
        except SchemaError as error:
            return StageResult((_broken_condition(rule, error),))
    observation = state.plan.observation
    if observation is None:
        return _judge_rows(state, matching)
    noted = [rule for rule in matching if rule.address in observation.rules]
    acting = [replace(rule, rule=without_objection(rule.rule)) for rule in matching]
    found = _judge_rows(state, [rule for rule in acting if rule.rule.when is not False])
    places = {rule.address for rule in noted}
    objections = (one for one in _judge_rows(state, matching).findings if one.address in places)
    return StageResult((*found.findings, *(replace(one, noted=True) for one in objections)), found.note)


def _judge_rows(state: CallState, matching: list[CompiledPolicyRule]) -> StageResult:
    """Apply the rows that match."""
    if not matching:
        return _NO_MATCH if state.agent and state.agent.policy.default is Verdict.ALLOW else _by_default(state)
    strongest = max(STRICTNESS[rule.rule.effect] for rule in matching)
    deciding = [rule for rule in matching if STRICTNESS[rule.rule.effect] == strongest]
    if deciding[0].rule.effect is Verdict.ALLOW:
        return StageResult(note=f"policy rule `{deciding[0].rule.name}` allows it")
    return StageResult(tuple(_finding(state, rule) for rule in deciding))


def _strictest(results: list[StageResult]) -> StageResult:
    """The results of a batch: the objections to all operations, denials first, each once."""
    findings = [finding for result in results for finding in result.findings]
    places = {finding.address: finding for finding in reversed(findings)}
    order = sorted(places.values(), key=_order)
    notes = dict.fromkeys(result.note for result in results if result.note)
    return StageResult(tuple(order), note=", ".join(notes))


def _order(finding: Finding) -> tuple[int, int]:
    at = finding.address[-1] if finding.address else None
    return -STRICTNESS[finding.verdict], at if isinstance(at, int) else 0


def _by_default(state: CallState) -> StageResult:
    default = state.agent.policy.default if state.agent is not None else Verdict.DENY
    text = f"no policy rule matches, and the default is {default}"
    model = _DEFAULT if default is Verdict.DENY else None
    return StageResult((Finding(default, "policy-default", text, DEFAULT_ADDRESS, model=model),))


def _finding(state: CallState, compiled: CompiledPolicyRule) -> Finding:
    rule = compiled.rule
    said = f", {rule.times}" if rule.times is not None else ""
    said += f": {rule.message}" if rule.message else ""
    text = f"policy rule `{rule.name}` {_SAYS[rule.effect]} it{said}"
    # the operator wrote the message for the model, yet may have named hidden things
    model = state.plan.redactor(rule.message) if rule.message else _denial_words(state, rule)
    return Finding(
        rule.effect,
        _CODES[rule.effect],
        text,
        compiled.address,
        rule.name,
        model if rule.effect is Verdict.DENY else None,
    )


def _denial_words(state: CallState, rule: PolicyRule) -> str:
    """The arguments that the rule is about, with their permitted values if the rule states them; only visible names."""
    if not isinstance(rule.when, Mapping) or not rule.when:
        return _DEFAULT
    names = sorted(Condition(rule.when).fields.intersection(state.arguments))
    if not names:
        return _DENIED
    lines = [line for name in names for line in _demands(state, rule.when, name)]
    kept = [line for line in lines if state.plan.redactor.visible(line) == line]
    told = f"this call is not allowed with these values of {', '.join(f'`{name}`' for name in names)}; change them"
    return "\n".join([f"{told} or go on without it{':' if kept else ''}", *kept])


def _demands(state: CallState, when: Mapping[str, JsonValue], name: str) -> list[str]:
    """The demands of a rule that denies all but some values of the field."""
    own = as_object(properties_of(dict(when)).get(name)) or {}
    wanted = as_object(own.get("not")) if own.keys() == {"not"} else None
    if wanted is None:
        return []
    errors = SchemaChecker(wanted).errors(state.policy_arguments.get(name))
    return [f"{pointer_text((name,))}{error.pointer}: {error.message}" for error in errors]


def _broken_condition(compiled: CompiledPolicyRule, error: SchemaError) -> Finding:
    text = f"the condition of policy rule `{compiled.rule.name}` cannot be evaluated: {error}"
    return Finding(Verdict.DENY, "condition-failed", text, compiled.address, compiled.rule.name, _BROKEN)


POLICY = Stage("policy", _check_policy_rules)


def denials_of_caller(state: CallState, agent: AgentSnapshot, whose: str) -> Iterator[Finding]:
    """The objections to a sub-agent's call that its caller is denied explicitly."""
    facts, layers = state.plan.right.facts, agent.layers
    for operation in state.chosen.parts or (state.chosen,):
        reason = explicit_denial(layers, facts, operation.name)
        if reason is not None:
            text, model = f"{whose} is denied this: {reason.text}", _to_sub_agent(state, reason.message)
            yield Finding(Verdict.DENY, "caller-denied", text, reason.address, reason.rule_id, model)
        rules = conditional_denials(layers, facts, operation.name)
        for rule in compile_rules(((rule, address_of(index)) for index, rule in rules), agent.conditions):
            if rule.matches(state.policy_arguments):
                said = f": {rule.rule.message}" if rule.rule.message else ""
                text = f"{whose} is denied this: policy rule `{rule.rule.name}` denies it{said}"
                model = _to_sub_agent(state, rule.rule.message)
                yield Finding(Verdict.DENY, "caller-denied", text, rule.address, rule.rule.name, model)


def _to_sub_agent(state: CallState, message: str | None) -> str:
    """The words of a caller's rule for the sub-agent's model, which may see less."""
    return state.plan.redactor(message) if message else REFUSED_TO_CALLER


_CONTENT_ASKS = frozenset({"tool-asks"})
"""Asks that depend on the present content, so that no lasting approval answers them."""

MOST_REASON = 500
"""The most characters of an operator's words in a refusal."""
_NOTHING_ASKS = StageResult(note="nothing asks")
_WORDS = {
    "approval-timed-out": Message.NOT_IN_TIME,
    "approval-rate": Message.TOO_MANY_ASKS,
    "approval-unavailable": Message.NOT_ASKABLE,
    "approval-too-large": Message.NOT_ASKABLE,
    "approval-withdrawn": Message.WITHDRAWN,
}


def approval_digest(state: CallState) -> str:
    """The digest that binds an answer: agent, user, session, tool, operation, canonical arguments, the text to write,
    and the folder where the program that makes the call works.
    """
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
    if state.folder is not None:
        bound["folder"] = state.folder
    if state.callers:
        bound["callers"] = [caller.agent_id for caller in state.callers]
    if state.claim is not None:
        bound |= state.claim.bound(state)
    return digest(bound)


def tool_digest(state: CallState) -> str:
    """The digest of the present tool, since approval of another tool of the same name does not count."""
    return state.plan.tool_digest


def asks_of(state: CallState, asks: tuple[Finding, ...]) -> tuple[Ask, ...]:
    """The asks as grants know them."""
    return tuple(_ask(state, finding) for finding in asks)


async def spend(state: CallState) -> Finding | None:
    """Spend the standing approval just before the call runs; returns the denial if it is no longer valid.

    For a single execution this writes to disk and may wait for other processes, so it happens in a thread, and
    completes even if the caller is cancelled.
    """
    grant, grants = state.grant, state.services.grants
    if grant is None or grants is None:
        return None
    if grant.kind is not Remember.ONCE:
        return None if grants.spend(grant) else _withdrawn(grant.who)
    spent = await unbroken(aio.ensure_future(aio.to_thread(grants.spend, grant)))
    return None if spent else _withdrawn(grant.who)


def _check_approval(state: CallState) -> StageResult:
    """Ask if the approvals key or tier, consents or an earlier stage do: the strictest counts."""
    if state.unanswered:
        reason = f"an earlier call of the turn, of `{printable(state.unanswered[:MOST_REASON])}`, got no approval"
        return deny("earlier-unanswered", reason, Message.AFTER_UNANSWERED)
    own = (*state.chosen.asks, *source_consents(state)) if state.book.consents else state.chosen.asks
    if not own and not state.asks and not state.noted:
        return _NOTHING_ASKS
    try:
        return _weigh_noted(state, own) if state.noted else _weigh_asks(state, own)
    except ToolFailure as failure:  # nobody is asked about an impossible call
        return deny(failure.code, str(failure), state.plan.redactor(str(failure)))


def _weigh_noted(state: CallState, own: tuple[Finding, ...]) -> StageResult:
    """Ask for what is enforced; a standing approval that covers what is only noted too answers that."""
    observation = state.plan.observation
    if observation is not None and observation.whole:  # nothing is enforced: the noted asks get what asks get
        state.asks, state.noted = state.noted, ()
        result = _weigh_asks(state, own)
        state.asks, state.noted = (), state.asks
        return result
    every = (*state.noted, *state.asks, *own)
    result = _weigh_asks(state, own) if own or state.asks else _NOTHING_ASKS
    standing = _standing(state, every)
    if standing is not None and standing.approved:
        state.noted, state.grant = (), standing
    elif state.assessment is not None:
        state.assessment.change()  # raises for an impossible call, which nobody would be asked about
    return result


def _weigh_asks(state: CallState, own: tuple[Finding, ...]) -> StageResult:
    asks = (*state.asks, *own)
    standing = _standing(state, asks)
    if standing is not None and not standing.approved:
        reason = f"{standing.who or 'the operator'} refused identical calls for a time"
        facts: dict[str, JsonValue] = {"grant": standing.grant_id}
        state.grant = standing
        return deny(REFUSED_CODE, reason, Message.REFUSED, facts=facts)
    if state.answer is not None:
        return _apply_answer(state, asks, state.answer)
    if standing is None:
        if state.assessment is not None:
            state.assessment.change()  # raises for an impossible call
        return StageResult(own, note="an earlier stage asks")
    note = f"covered by the standing approval `{standing.grant_id}` of {standing.who or 'the operator'}"
    state.asks, state.grant = (), standing
    return StageResult(note=note)


def _apply_answer(state: CallState, asks: tuple[Finding, ...], answer: Answer) -> StageResult:
    approval = answer.approval
    who = approval.who or "the operator"
    if approval.approved is not True:
        said = f"{who} did not approve the call"
        if approval.code == REFUSED_CODE and approval.reason:
            told = printable(approval.reason[:MOST_REASON])
            return deny(REFUSED_CODE, f"{said}: {told}", f"{Message.REFUSED}. The operator says: {told}")
        return deny(approval.code, approval.reason or said, _WORDS.get(approval.code, Message.REFUSED))
    if answer.digest != approval_digest(state):
        reason = f"the call would now do something else than {who} approved"
        return deny("approval-stale", reason, Message.STALE)
    new = [finding for finding in asks if answer.asks is not None and _ask(state, finding).key not in answer.asks]
    if new:
        return deny("approval-stale", f"{who} did not see this ask: {new[0].reason}", Message.STALE)
    if not approval.grant_id:
        state.asks = ()
        return StageResult(note=f"approved by {who}")
    grant = _grant_of(state, approval.grant_id)
    if grant is None:
        return StageResult((_withdrawn(who),))
    state.asks, state.grant = (), grant
    return StageResult(note=f"approved by {who}")


def _standing(state: CallState, asks: tuple[Finding, ...]) -> Grant | None:
    """The grant that decides the call: the one in the state, else one from the store."""
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


def _grant_of(state: CallState, grant_id: str) -> Grant | None:
    """The grant that the answer made, unless somebody revoked it or an equal call used it."""
    if state.grant is not None:
        return state.grant if state.grant.grant_id == grant_id else None
    return state.services.grants.get(grant_id) if state.services.grants is not None else None


def _withdrawn(who: str) -> Finding:
    reason = f"the approval by {who or 'the operator'} was revoked, has expired, or was used by an identical call"
    return Finding(Verdict.DENY, "approval-withdrawn", reason, model=Message.WITHDRAWN)


def _session_id(state: CallState) -> str:
    return state.facts.session_id if state.facts is not None else state.session.session_id


def _ask(state: CallState, finding: Finding) -> Ask:
    """The key of an ask: code, place, name and words, and for a policy rule its whole content."""
    place = spell_address(finding.address) if finding.address else ""
    what: list[JsonValue] = [
        finding.code,
        place,
        finding.rule_id,
        finding.scope,
        finding.reason,
        _rule_text(state, finding),
    ]
    key = hashlib.sha256(canonical_json(what)).hexdigest()[:32]
    return Ask(key, finding.scope, finding.code in _CONTENT_ASKS, finding.about)


def _rule_text(state: CallState, finding: Finding) -> str:
    """The policy rule behind an ask, so that a replacement under the same name asks again."""
    return next((repr(one.rule) for one in state.chosen.policy_rules if one.address == finding.address), "")


APPROVAL = Stage("approval", _check_approval)
