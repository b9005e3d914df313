"""Matches rules with tools and agents: finds the rules that may match a call, and those that name an unknown tool.

Among the policy rules that match a call the strictest effect wins; without a match, the default. In a policy that a
program made, an unknown tool is an error, since the tool that was meant would stay open. A rule that names an unknown
operation closes its tool, since nobody can tell what its author wanted to allow. ``[tools.NAME]`` overrides a tool's
own facts (tiers, description, paths) here, so that approvals, presets and the view agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from gatewright.base.errors import Address, Problem, Severity, Subject, ToolPart, choice_hint, near_miss
from gatewright.policy.document import Agent, Policy, ToolSettings, Trust
from gatewright.policy.right import Layer, OperationFacts, PathArgument, Reason, ToolFacts
from gatewright.policy.rule import (
    ANY_TOOL,
    OPERATION_CONDITION,
    AllowedOperations,
    ExclusiveGroups,
    PolicyRule,
    Span,
    Times,
    ToolRule,
)
from gatewright.policy.verdict import (
    STRICTNESS,
    PathUse,
    SafetyTier,
    Verdict,
    bare_names,
    names_tool,
    selected_catalog,
    split_name,
)


def subject_of(policy: Policy, address: Address) -> Subject:
    """The subject of a finding at that address; the bare address if the policy lacks that part."""
    match address:
        case ("agents", str(agent_id), *rest):
            agent = policy.agents.get(agent_id)
            return Subject(address, (agent_id,), _of_agent(agent, rest) if agent is not None else ())
        case ("sources", str(source_id), "required_tools", int(index), *_):
            source = policy.source(source_id)
            rules = source.required_tools if source is not None else ()
            return Subject(address, tools=_of_rule(rules, index))
        case ("policy", "rules", int(index), *rest) if index < len(policy.rules):
            rule = policy.rules[index]
            return Subject(address, rule.agents or (), _of_policy_rule(rule, rest))
        case ("tools", str(written), *_):
            return Subject(address, tools=_parts((written,), None))
        case _:
            return Subject(address)


def _of_agent(agent: Agent, rest: Sequence[str | int]) -> tuple[ToolPart, ...]:
    match rest:
        case ["tool_rules", int(index), *_]:
            return _of_rule(agent.tool_rules, index)
        case ["tools", int(index), *_] if index < len(agent.tools or ()):
            return _parts((agent.tools or ())[index : index + 1], None)
        case _:
            return ()


def _of_rule(rules: Sequence[ToolRule], index: int) -> tuple[ToolPart, ...]:
    if index >= len(rules) or rules[index].tool_name == ANY_TOOL:
        return ()
    return _parts((rules[index].tool_name,), rules[index].operations)


def _of_policy_rule(rule: PolicyRule, rest: Sequence[str | int]) -> tuple[ToolPart, ...]:
    match rest:
        case ["tools", int(index), *_] if index < len(rule.tools or ()):
            return _parts((rule.tools or ())[index : index + 1], None)
        case _:
            return _parts(rule.tools or (), rule.operations)


def _parts(names: Iterable[str], operations: Iterable[str] | None) -> tuple[ToolPart, ...]:
    """Each tool by name, with the operation if the rule names exactly one; a whole catalog is no single tool."""
    only = list(operations or ())
    operation = only[0] if len(only) == 1 else None
    return tuple(dict.fromkeys((split_name(name)[0], operation) for name in names if selected_catalog(name) is None))


_TIERS = tuple(SafetyTier)


def settings_of(policy: Policy, name: str, major: int) -> ToolSettings | None:
    """The settings of a tool: those of ``name@major``, else those of ``name``."""
    if not policy.tools:
        return None
    return policy.tools.get(f"{name}@{major}") or policy.tools.get(name)


def with_settings(policy: Policy, facts: ToolFacts) -> ToolFacts:
    """``facts`` with the policy's settings; the same object if they change nothing."""
    settings = settings_of(policy, facts.name, facts.major)
    if settings is None:
        return facts
    if settings.trust is not None and facts.outside is not (settings.trust is Trust.OUTSIDE):
        facts = _turned(facts)
    if not (settings.safety_tier or settings.operation_tiers or settings.description or settings.paths):
        return facts
    tiers, paths = tuple(sorted(settings.operation_tiers.items())), tuple(settings.paths.items())
    return _with_settings(facts, settings.safety_tier, tiers, settings.description, paths)


@lru_cache(maxsize=4096)
def _turned(facts: ToolFacts) -> ToolFacts:
    """The tool with the other trust."""
    return replace(facts, outside=not facts.outside)


def all_with_settings(policy: Policy, catalog: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
    """``catalog`` with the policy's settings; the same object if they change nothing."""
    if not policy.tools:
        return catalog
    return tuple(with_settings(policy, facts) for facts in catalog)


@lru_cache(maxsize=4096)
def _with_settings(
    facts: ToolFacts,
    safety_tier: SafetyTier | None,
    operation_tiers: tuple[tuple[str, SafetyTier], ...],
    description: str | None,
    paths: tuple[tuple[str, PathUse], ...],
) -> ToolFacts:
    named = dict(operation_tiers)
    rows = tuple(_row(row, named.get(row.name, safety_tier), description, paths) for row in facts.operations)
    tier = max((row.tier for row in rows), key=_TIERS.index, default=safety_tier or facts.tier)
    return replace(facts, operations=rows, tier=tier, description=description or facts.description)


def _row(
    row: OperationFacts, tier: SafetyTier | None, description: str | None, paths: tuple[tuple[str, PathUse], ...]
) -> OperationFacts:
    text = row.description if row.name else description or row.description
    declared = {name: PathArgument(name, use, "declared") for name, use in paths}
    kept = (declared.pop(one.argument, one) for one in row.paths)
    return replace(row, tier=tier or row.tier, description=text, paths=(*kept, *declared.values()))


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


def rules_for_tool(rules: Iterable[Numbered], facts: ToolFacts) -> tuple[Numbered, ...]:
    """The rules among ``rules`` that may match a call of the tool."""
    return tuple(row for row in rules if row[1].tools is None or any(names_tool(one, facts) for one in row[1].tools))


def rules_for_operation(rules: Iterable[Numbered], operation: str) -> tuple[Numbered, ...]:
    """The rules among ``rules`` that may match a call of the operation."""
    return tuple(row for row in rules if row[1].operations is None or operation in row[1].operations)


def address_of(index: int) -> Address:
    """The address of the rule with that index."""
    return ("policy", "rules", index)


def certain(policy: Policy, rules: tuple[Numbered, ...], what: str) -> Reason | None:
    """The denial or ask that every call gets from ``rules``; None if it depends on the arguments.

    ``what`` names the calls in the message.
    """
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
    """The verdicts of ``rules`` on calls that they may match, including the default if all have conditions."""
    found = {rule.effect for _, rule in rules}
    if not any(rule.is_unconditional for _, rule in rules):
        found.add(policy.default)
    return frozenset(found)


def _by_rule(index: int, rule: PolicyRule, what: str) -> Reason:
    says = "denies" if rule.effect is Verdict.DENY else "asks before"
    when = f", {rule.times}" if rule.times is not None else ""
    text = f"policy rule `{rule.name}` {says} {what}{when}" + (f": {rule.message}" if rule.message else "")
    code = "policy-deny" if rule.effect is Verdict.DENY else "policy-ask"
    return Reason(Layer.POLICY, rule.effect, code, text, address_of(index), rule.name, rule.message)


def present(policy: Policy, wall_s: float) -> tuple[Policy, Span | None]:
    """The policy that is in force at the instant, and for how long it stays so; None: no part has times."""
    every = {rule.times for rule in policy.rules if rule.times is not None}
    if not every:
        return policy, None
    ends = [end for times in every if (end := times.next_change(wall_s)) is not None]
    holding = frozenset(times for times in every if times.holds(wall_s))
    return timeless(policy, holding), Span(wall_s, min(ends, default=None))


def timeless(policy: Policy, holding: frozenset[Times] = frozenset()) -> Policy:
    """The policy in which rules with other times than ``holding`` keep their places and apply to no agent."""
    if all(rule.times is None or rule.times in holding for rule in policy.rules):
        return policy
    rules = [rule if rule.times is None or rule.times in holding else replace(rule, agents=()) for rule in policy.rules]
    return replace(policy, rules=tuple(rules))


UNKNOWN = "rule-unknown-operation"
_TIER_WORDS = frozenset(str(tier) for tier in SafetyTier)


def misfit(facts: ToolFacts, rule: ToolRule, address: Address | None) -> Reason | None:
    """The reason why ``rule`` closes this tool; None if it fits."""
    return _reason(mismatch(facts, rule), address, rule.rule_id)


def mismatch(facts: ToolFacts, rule: ToolRule) -> str | None:
    """The reason why ``rule`` cannot apply to this tool; None if it can."""
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
    """Every place where the policy limits an unknown tool; ``absent``: tools that may still come.

    Places that ``before`` has too were checked earlier and are skipped.
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
        if (catalog_id := selected_catalog(written)) is not None and policy.catalog(catalog_id) is not None:
            continue  # as far as they are known, its tools are checked one by one
        if not is_known(written, dotted=dotted):
            names = [*held, *(f"{name}.{one}" for name in held for one in held[name] if dotted)]
            what = "no tool or operation" if dotted else "no tool"
            text = f"{what} is named `{written}`{choice_hint(written, names)}"
            near = near_miss(written, sorted(names))
            found.append(Problem(Severity.ERROR, "unknown-tool", text, near_miss=near, subject=Subject(address)))
    return tuple(found)


def _names(policy: Policy, before: Policy | None) -> Iterator[tuple[Address, str, bool]]:
    """Every place that limits a tool by name, and True if an operation may follow after a dot."""
    old = before or Policy()
    for agent_id, agent in policy.agents.items():
        if agent is not old.agents.get(agent_id):
            yield from _names_of_rules(agent.tool_rules, ("agents", agent_id, "tool_rules"))
            yield from (
                (("agents", agent_id, "approvals", key), key, True) for key in agent.approvals if key not in _TIER_WORDS
            )
    for source in () if policy.sources is old.sources else policy.sources:
        yield from _names_of_rules(source.required_tools, ("sources", source.source_id, "required_tools"))
    for index, rule in enumerate(() if policy.rules is old.rules else policy.rules):
        yield from ((("policy", "rules", index), name, False) for name in rule.tools or ())
    if policy.tools is not old.tools:
        yield from ((("tools", name), name, False) for name in policy.tools)
    if policy.defaults is not old.defaults:
        yield from (
            (("defaults", "approvals", key), key, True) for key in policy.defaults.approvals if key not in _TIER_WORDS
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
    """The reason why settings close a tool: ``operation_tiers`` or ``paths`` name something that the tool lacks."""
    settings = settings_of(policy, facts.name, facts.major)
    if settings is None:
        return None
    key = f"{facts.name}@{facts.major}" if f"{facts.name}@{facts.major}" in policy.tools else facts.name
    if settings.paths and (unknown := _no_arguments(facts, settings.paths)):
        text = f"`paths` names {unknown}, which `{facts.name}` does not take"
        return _reason(text, ("tools", key, "paths"), None)
    return _reason(_unknown(facts, settings.operation_tiers), ("tools", key, "operation_tiers"), None)


def _no_arguments(facts: ToolFacts, named: Iterable[str]) -> str:
    """The names that are no text argument of the tool, in words; a tool with unknown arguments may take any."""
    return ", ".join(f"`{one}`" for one in named if facts.texts is not None and one not in facts.texts)


def policy_rule_misfits(policy: Policy, known: Iterable[ToolFacts]) -> dict[str, Reason]:
    """By tool name, a policy rule that names an operation which none of its tools has.

    A rule with an absent tool is skipped, since that tool may have the operation.
    """
    if not policy.rules:
        return {}
    known = tuple(known)
    operations: dict[str, set[str]] = {}
    for facts in known:
        operations.setdefault(facts.name, set()).update(facts.operation_names)
    found: dict[str, Reason] = {}
    for index, rule in enumerate(policy.rules):
        names = bare_names(rule.tools or (), known)
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
