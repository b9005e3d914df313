"""Policy: the rows of ``[[policy.rules]]`` that match the call, deny before ask before allow, else the default.

Conditions see the arguments as people write them: paths relative to their root, URLs in canonical form. A condition
that cannot be evaluated denies.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.errors import SchemaError
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.condition import CompiledPolicyRule
from gatewright.compile.finding import Finding
from gatewright.compile.operation_plan import OperationPlan
from gatewright.gate.call import CallState, Stage, StageResult
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rulematch import DEFAULT_ADDRESS
from gatewright.policy.verdict import STRICTNESS, Verdict
from gatewright.policyfile.maymiss import Condition
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import as_object, pointer_text, properties_of

_DENIED = "this call is not allowed with these arguments; change them or go on without it"
_DEFAULT = "this call is not allowed; go on without it"
_BROKEN = "the call could not be checked; try something else"
_CODES = {Verdict.DENY: "policy-deny", Verdict.ASK: "policy-ask"}
_SAYS = {Verdict.DENY: "denies", Verdict.ASK: "asks before"}


_PASSES = StageResult(note="no policy rule matches")


def _run(state: CallState) -> StageResult:
    chosen = state.chosen
    if not chosen.parts:
        return _judged(state, chosen)
    return _strictest([_judged(state, part) for part in chosen.parts])


def _judged(state: CallState, operation: OperationPlan) -> StageResult:
    """What the rows say to one operation."""
    matching: list[CompiledPolicyRule] = []
    for rule in operation.policy_rules:
        try:
            if rule.matches(state.policy_arguments):
                matching.append(rule)
        except SchemaError as error:
            return StageResult((_broken(rule, error),))
    if not matching:
        return _by_default(state)
    strongest = max(STRICTNESS[rule.rule.effect] for rule in matching)
    deciding = [rule for rule in matching if STRICTNESS[rule.rule.effect] == strongest]
    if deciding[0].rule.effect is Verdict.ALLOW:
        return StageResult(note=f"policy rule `{deciding[0].rule.name}` allows it")
    return StageResult(tuple(_finding(state, rule) for rule in deciding))


def _strictest(results: list[StageResult]) -> StageResult:
    """A batch: what the rows say to each operation by itself, denials first, each once."""
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
    if default is Verdict.ALLOW:
        return _PASSES
    text = f"no policy rule matches, and the default is {default}"
    model = _DEFAULT if default is Verdict.DENY else None
    return StageResult((Finding(default, "policy-default", text, DEFAULT_ADDRESS, model=model),))


def _finding(state: CallState, compiled: CompiledPolicyRule) -> Finding:
    rule = compiled.rule
    said = f": {rule.message}" if rule.message else ""
    text = f"policy rule `{rule.name}` {_SAYS[rule.effect]} it{said}"
    # the operator wrote the message for the model, yet may have named what it does not see
    model = state.plan.redactor(rule.message) if rule.message else _denied(state, rule)
    return Finding(
        rule.effect,
        _CODES[rule.effect],
        text,
        compiled.address,
        rule.name,
        model if rule.effect is Verdict.DENY else None,
    )


def _denied(state: CallState, rule: PolicyRule) -> str:
    """Which arguments the rule is about, and what they must be where it says so; only what the model may know."""
    if not isinstance(rule.when, Mapping) or not rule.when:
        return _DEFAULT
    names = sorted(Condition(rule.when).fields.intersection(state.arguments))
    if not names:
        return _DENIED
    lines = [line for name in names for line in _wanted(state, rule.when, name)]
    kept = [line for line in lines if state.plan.redactor.kept(line) == line]
    told = f"this call is not allowed with these values of {', '.join(f'`{name}`' for name in names)}; change them"
    return "\n".join([f"{told} or go on without it{':' if kept else ''}", *kept])


def _wanted(state: CallState, when: Mapping[str, JsonValue], name: str) -> list[str]:
    """What a rule that denies all but some values asks of the field."""
    own = as_object(properties_of(dict(when)).get(name)) or {}
    wanted = as_object(own.get("not")) if own.keys() == {"not"} else None
    if wanted is None:
        return []
    errors = SchemaChecker(wanted).errors(state.policy_arguments.get(name))
    return [f"{pointer_text((name,))}{error.pointer}: {error.message}" for error in errors]


def _broken(compiled: CompiledPolicyRule, error: SchemaError) -> Finding:
    text = f"the condition of policy rule `{compiled.rule.name}` cannot be evaluated: {error}"
    return Finding(Verdict.DENY, "condition-failed", text, compiled.address, compiled.rule.name, _BROKEN)


POLICY = Stage("policy", _run)
