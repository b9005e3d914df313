"""Which of ``[[policy.rules]]`` may match a call, and what follows whatever its arguments are. It checks no condition.

Of the rules that match a call the strictest effect holds; where none matches, the default.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.problem import Address
from gatewright.policy.document import Policy
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import Layer, Reason
from gatewright.policy.toolname import names_tool
from gatewright.policy.verdict import STRICTNESS, Verdict

Numbered = tuple[int, "PolicyRule"]
DEFAULT_ADDRESS: Address = ("policy", "default")


def rules_for_agent(policy: Policy, agent_id: str) -> tuple[Numbered, ...]:
    """The rules that may match some call of the agent, with their index: deny, ask, allow, then file order."""
    found = [
        (index, rule)
        for index, rule in enumerate(policy.rules)
        if rule.when is not False and (rule.agents is None or agent_id in rule.agents)
    ]
    return tuple(sorted(found, key=lambda row: -STRICTNESS[row[1].effect]))


def rules_for_tool(rules: Iterable[Numbered], name: str, major: int) -> tuple[Numbered, ...]:
    """Those of ``rules`` that may match a call of the tool."""
    return tuple(
        row for row in rules if row[1].tools is None or any(names_tool(one, name, major) for one in row[1].tools)
    )


def rules_for_operation(rules: Iterable[Numbered], operation: str) -> tuple[Numbered, ...]:
    """Those of ``rules`` that may match a call of the operation."""
    return tuple(row for row in rules if row[1].operations is None or operation in row[1].operations)


def address_of(index: int) -> Address:
    """Where the rule of that index stands."""
    return ("policy", "rules", index)


def certain(policy: Policy, rules: tuple[Numbered, ...], what: str) -> Reason | None:
    """The denial or ask that holds for every call that ``rules`` are for; None when it depends on the arguments."""
    for effect in (Verdict.DENY, Verdict.ASK):
        for index, rule in rules:
            if rule.effect is effect and rule.is_unconditional:
                return _by_rule(index, rule, what)
    if policy.default is Verdict.ALLOW or any(rule.effect is not Verdict.DENY for _, rule in rules):
        return None
    if policy.default is Verdict.DENY:
        text = f"no policy rule allows {what}, and the default of the policy denies"
        return Reason(Layer.POLICY, Verdict.DENY, "policy-default", text, DEFAULT_ADDRESS)
    text = f"no policy rule allows {what}, and the default of the policy asks first"
    return Reason(Layer.POLICY, Verdict.ASK, "policy-default", text, DEFAULT_ADDRESS)


def outcomes(policy: Policy, rules: tuple[Numbered, ...]) -> frozenset[Verdict]:
    """What calls that ``rules`` may match come to by them; the default where all of them have a condition."""
    found = {rule.effect for _, rule in rules}
    if not any(rule.is_unconditional for _, rule in rules):
        found.add(policy.default)
    return frozenset(found)


def _by_rule(index: int, rule: PolicyRule, what: str) -> Reason:
    says = "denies" if rule.effect is Verdict.DENY else "asks before"
    text = f"policy rule `{rule.name}` {says} {what}" + (f": {rule.message}" if rule.message else "")
    code = "policy-deny" if rule.effect is Verdict.DENY else "policy-ask"
    return Reason(Layer.POLICY, rule.effect, code, text, address_of(index), rule.name, rule.message)
