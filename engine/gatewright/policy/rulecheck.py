"""Rules that name an operation which their tool does not have, found once the tool is there. It does not read files.

The reader of policy files reports them for tools that it knows. A tool that comes later is closed instead, since
nobody can tell what its author meant to allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.policy.right import Layer, Reason
from gatewright.policy.rule import ANY_TOOL, AllowedOperations
from gatewright.policy.setting import settings_of
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.base.problem import Address
    from gatewright.policy.document import Policy
    from gatewright.policy.policyrule import PolicyRule
    from gatewright.policy.right import ToolFacts
    from gatewright.policy.rule import ToolRule

UNKNOWN = "rule-unknown-operation"


def misfit(facts: ToolFacts, rule: ToolRule, address: Address | None) -> Reason | None:
    """What is wrong with ``rule`` on this tool; None when it fits."""
    kind = rule.rule_type
    if rule.tool_name == ANY_TOOL:
        if isinstance(kind, AllowedOperations):
            return _reason("an AllowedOperations rule must name one tool", address, rule.rule_id)
        return None
    named = frozenset(rule.operations or ())
    if isinstance(kind, AllowedOperations):
        if not facts.has_operations:
            return _reason(f"`{facts.name}` has no operations that a rule could allow", address, rule.rule_id)
        named |= kind.operations
    return _unknown(facts, named, address, rule.rule_id)


def setting_misfit(policy: Policy, facts: ToolFacts) -> Reason | None:
    """An operation of ``operation_tiers`` that the tool does not have."""
    settings = settings_of(policy, facts.name, facts.major)
    if settings is None or not settings.operation_tiers:
        return None
    key = f"{facts.name}@{facts.major}" if f"{facts.name}@{facts.major}" in policy.tools else facts.name
    return _unknown(facts, settings.operation_tiers, ("tools", key, "operation_tiers"), None)


def policy_rule_misfits(policy: Policy, known: Iterable[ToolFacts]) -> dict[str, Reason]:
    """By tool name: a policy rule that names it and an operation which none of the tools of that rule has.

    A rule that names a tool which is not there now is left alone: that one may have it.
    """
    rows = [(index, rule) for index, rule in enumerate(policy.rules) if rule.tools and rule.operations]
    if not rows:
        return {}
    operations: dict[str, set[str]] = {}
    for facts in known:
        operations.setdefault(facts.name, set()).update(facts.operation_names)
    found: dict[str, Reason] = {}
    for index, rule in rows:
        names = {split_name(written)[0] for written in rule.tools or ()}
        if names <= operations.keys():
            held = set[str]().union(*(operations[name] for name in names))
            unknown = [name for name in rule.operations or () if name not in held]
            if unknown:
                found |= dict.fromkeys(names, _policy_reason(index, rule, unknown))
    return found


def _policy_reason(index: int, rule: PolicyRule, unknown: list[str]) -> Reason:
    listed = ", ".join(f"`{name}`" for name in unknown)
    text = f"policy rule `{rule.name}` names {listed}, which none of its tools has, so they are closed"
    return Reason(Layer.POLICY, Verdict.DENY, UNKNOWN, text, ("policy", "rules", index), rule.name)


def _unknown(facts: ToolFacts, named: Iterable[str], address: Address | None, rule_id: str | None) -> Reason | None:
    missing = sorted(frozenset(named) - frozenset(facts.operation_names))
    if not missing:
        return None
    listed = ", ".join(f"`{name}`" for name in missing)
    return _reason(f"a rule names {listed}, which `{facts.name}` does not have", address, rule_id)


def _reason(text: str, address: Address | None, rule_id: str | None) -> Reason:
    return Reason(Layer.RULE, Verdict.DENY, UNKNOWN, f"{text}, so the tool is closed", address, rule_id)
