"""Rules that name a tool which is not there, or an operation which their tool does not have.

The reader of policy files reports both. In a policy that a program made, an unknown tool is an error, since the one
that was meant would stay open. A tool that does not have the operation may come later, and is closed then: nobody can
tell what the author meant to allow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache

from gatewright.base.problem import Address, Problem, Severity, Subject, choice_hint, near_miss
from gatewright.policy.document import Policy
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import Layer, Reason, ToolFacts
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, AllowedOperations, ExclusiveGroups, ToolRule
from gatewright.policy.setting import settings_of
from gatewright.policy.tier import SafetyTier
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict

UNKNOWN = "rule-unknown-operation"
_TIERS = frozenset(str(tier) for tier in SafetyTier)


def misfit(facts: ToolFacts, rule: ToolRule, address: Address | None) -> Reason | None:
    """What is wrong with ``rule`` on this tool; None when it fits."""
    return _reason(mismatch(facts, rule), address, rule.rule_id)


def mismatch(facts: ToolFacts, rule: ToolRule) -> str | None:
    """Why ``rule`` cannot stand on this tool; None when it can."""
    kind = rule.rule_type
    if rule.tool_name == ANY_TOOL:
        return "an AllowedOperations rule must name one tool" if isinstance(kind, AllowedOperations) else None
    if isinstance(kind, AllowedOperations):
        if not facts.has_operations:
            return f"`{facts.name}` has no operations that a rule could allow"
        return _unknown(facts, (*(rule.operations or ()), *kind.operations))
    return _unknown(facts, rule.operations) if rule.operations else None


def unknown_tools(
    policy: Policy, before: Policy | None, known: Collection[ToolFacts], absent: Collection[str]
) -> tuple[Problem, ...]:
    """Every place where the policy limits a tool that is not there; ``absent``: those that may come.

    What stands in ``before`` as well was looked at then.
    """
    held: dict[str, set[str]] = {}
    for facts in known:
        for name in (facts.name, f"{facts.name}@{facts.major}"):
            held.setdefault(name, set()).update(facts.operation_names)

    @cache
    def is_known(written: str, *, dotted: bool) -> bool:
        end = len(written)
        while end > 0:
            if split_name(written[:end])[0] in absent:
                return True
            if written[:end] in held:
                return end == len(written) or written[end + 1 :] in held[written[:end]]
            end = written.rfind(".", 0, end) if dotted else 0
        return False

    found: list[Problem] = []
    for address, written, dotted in _names(policy, before):
        if not is_known(written, dotted=dotted):
            names = [*held, *(f"{name}.{one}" for name in held for one in held[name] if dotted)]
            what = "no tool, and no operation of one," if dotted else "no tool"
            text = f"{what} is named `{written}`{choice_hint(written, names)}"
            near = near_miss(written, sorted(names))
            found.append(Problem(Severity.ERROR, "unknown-tool", text, near_miss=near, subject=Subject(address)))
    return tuple(found)


def _names(policy: Policy, before: Policy | None) -> Iterator[tuple[Address, str, bool]]:
    """Where a tool is limited by its name, and whether an operation may follow after a dot."""
    old = before or Policy()
    for agent_id, agent in policy.agents.items():
        if agent is not old.agents.get(agent_id):
            yield from _names_of_rules(agent.tool_rules, ("agents", agent_id, "tool_rules"))
            yield from (
                (("agents", agent_id, "approvals", key), key, True) for key in agent.approvals if key not in _TIERS
            )
    for source in () if policy.sources is old.sources else policy.sources:
        yield from _names_of_rules(source.required_tools, ("sources", source.source_id, "required_tools"))
    for index, rule in enumerate(() if policy.rules is old.rules else policy.rules):
        yield from ((("policy", "rules", index), name, False) for name in rule.tools or ())
    if policy.tools is not old.tools:
        yield from ((("tools", name), name, False) for name in policy.tools)
    if policy.defaults is not old.defaults:
        yield from (
            (("defaults", "approvals", key), key, True) for key in policy.defaults.approvals if key not in _TIERS
        )


def _names_of_rules(rules: Iterable[ToolRule], address: Address) -> Iterator[tuple[Address, str, bool]]:
    for index, rule in enumerate(rules):
        at, kind = (*address, index), rule.rule_type
        if rule.tool_name != ANY_TOOL:
            yield at, rule.tool_name, False
        yield from ((at, name, True) for name in rule.conditions if not name.startswith(OPERATION_CONDITION))
        if isinstance(kind, ExclusiveGroups):
            yield from ((at, name, True) for group in kind.groups for name in group)


def setting_misfit(policy: Policy, facts: ToolFacts) -> Reason | None:
    """An operation of ``operation_tiers``, or an argument of ``paths``, that the tool does not have."""
    settings = settings_of(policy, facts.name, facts.major)
    if settings is None:
        return None
    key = f"{facts.name}@{facts.major}" if f"{facts.name}@{facts.major}" in policy.tools else facts.name
    if settings.paths and (unknown := _no_arguments(facts, settings.paths)):
        text = f"`paths` names {unknown}, which `{facts.name}` does not take"
        return _reason(text, ("tools", key, "paths"), None)
    return _reason(_unknown(facts, settings.operation_tiers), ("tools", key, "operation_tiers"), None)


def _no_arguments(facts: ToolFacts, named: Iterable[str]) -> str:
    """Those that it has no text at, in words; a tool that says nothing of its arguments may take any."""
    return ", ".join(f"`{one}`" for one in named if facts.texts is not None and one not in facts.texts)


def policy_rule_misfits(policy: Policy, known: Iterable[ToolFacts]) -> dict[str, Reason]:
    """By tool name: a policy rule that names it and an operation which none of the tools of that rule has.

    A rule that names a tool which is not there now is left alone: that one may have it.
    """
    if not policy.rules:
        return {}
    operations: dict[str, set[str]] = {}
    for facts in known:
        operations.setdefault(facts.name, set()).update(facts.operation_names)
    found: dict[str, Reason] = {}
    for index, rule in enumerate(policy.rules):
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


def _unknown(facts: ToolFacts, named: Iterable[str]) -> str | None:
    missing = set(named).difference(facts.operation_names)
    if not missing:
        return None
    listed = ", ".join(f"`{name}`" for name in sorted(missing))
    return f"a rule names {listed}, which `{facts.name}` does not have"


def _reason(text: str | None, address: Address | None, rule_id: str | None) -> Reason | None:
    if text is None:
        return None
    return Reason(Layer.RULE, Verdict.DENY, UNKNOWN, f"{text}, so the tool is closed", address, rule_id)
