"""What each agent may do with each operation once every layer has spoken, and why. It does not know calls.

The gate, the preview, the tree of checkboxes and the self-check all read this one result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.errors import WeMustFix
from gatewright.policy.permission import verdict_for
from gatewright.policy.right import Layer, OperationFacts, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import AllowedOperations, RequiresConsent, StartConstraint, ToolRule
from gatewright.policy.tier import TIER_DEFAULTS
from gatewright.policy.toolname import chosen_tools, names_tool, split_name
from gatewright.policy.verdict import Verdict, strictest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gatewright.base.problem import Address
    from gatewright.policy.document import Agent, Policy, Source


def effective_rights(policy: Policy, agent_id: str, catalog: Iterable[ToolFacts]) -> dict[str, ToolRight]:
    """The agent's right on every tool of ``catalog`` (one major per name), keyed by bare name in catalog order."""
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise WeMustFix(f"no agent `{agent_id}`")
    sources = policy.sources_of(agent)
    chosen = chosen_tools(catalog, agent.tools)
    return {name: tool_right(policy, agent, facts, sources) for name, facts in chosen.items()}


def tool_right(policy: Policy, agent: Agent, facts: ToolFacts, sources: tuple[Source, ...]) -> ToolRight:
    """The agent's right on one tool whose attached sources are ``sources``."""
    unlisted = _listing(policy, agent, facts)
    rules = ordered_rules(agent, facts)
    operations = tuple(_operation(policy, agent, facts, op, unlisted, rules, sources) for op in facts.operations)
    return ToolRight(facts, unlisted is None, operations, (unlisted,) if unlisted else ())


def ordered_rules(agent: Agent, facts: ToolFacts) -> tuple[tuple[int, ToolRule], ...]:
    """The agent's rules that name the tool (or ``*``) with their index in the file, highest priority first."""
    found = [
        (i, rule) for i, rule in enumerate(agent.tool_rules) if names_tool(rule.tool_name, facts.name, facts.major)
    ]
    return tuple(sorted(found, key=lambda pair: -pair[1].priority))


def approval_of(policy: Policy, agent: Agent, facts: ToolFacts, op: OperationFacts) -> tuple[Verdict, Address | None]:
    """The verdict of the most specific ``approvals`` key (``tool.operation``, ``tool``, tier) and where it stands."""
    keys = [f"{facts.name}.{op.name}"] if op.name else []
    for key in (*keys, facts.name, str(op.tier)):
        if key in agent.approvals:
            return agent.approvals[key], ("agents", agent.agent_id, "approvals", key)
        if key in policy.defaults.approvals:
            return policy.defaults.approvals[key], ("defaults", "approvals", key)
    return TIER_DEFAULTS[op.tier], None


def hidden_starts(policy: Policy, agent: Agent, catalog: Iterable[ToolFacts]) -> tuple[int, ...]:
    """The indexes of StartConstraint rules on tools that the agent does not see: it could never start with them."""
    chosen = chosen_tools(catalog, agent.tools)
    sources = policy.sources_of(agent)
    return tuple(
        index
        for index, rule in enumerate(agent.tool_rules)
        if isinstance(rule.rule_type, StartConstraint)
        and (facts := chosen.get(split_name(rule.tool_name)[0])) is not None
        and tool_right(policy, agent, facts, sources).is_hidden
    )


def _listing(policy: Policy, agent: Agent, facts: ToolFacts) -> Reason | None:
    if agent.tools is None:
        if policy.defaults.unlisted_tools is Verdict.ALLOW:
            return None
        text = f"agent `{agent.agent_id}` lists no tools and the defaults deny unlisted ones"
        return Reason(Layer.TOOLS, Verdict.DENY, "unlisted-tool", text, ("defaults", "unlisted_tools"))
    if any(names_tool(written, facts.name, facts.major) for written in agent.tools if split_name(written)[0] != "*"):
        return None
    text = f"`{facts.name}` is not among the tools of agent `{agent.agent_id}`"
    return Reason(Layer.TOOLS, Verdict.DENY, "tool-not-listed", text, ("agents", agent.agent_id, "tools"))


def _operation(
    policy: Policy,
    agent: Agent,
    facts: ToolFacts,
    op: OperationFacts,
    unlisted: Reason | None,
    rules: tuple[tuple[int, ToolRule], ...],
    sources: tuple[Source, ...],
) -> OperationRight:
    own = ([unlisted] if unlisted else []) + list(_limits(agent, facts, op, rules))
    others = [
        *_approvals(policy, agent, facts, op),
        *_sources(agent, facts, op, sources),
        *_consents(agent, facts, op, rules),
    ]
    reasons = sorted([*own, *others], key=lambda reason: reason.verdict is not Verdict.DENY)
    return OperationRight(op.name, not own, strictest(*(r.verdict for r in reasons)), op.tier, tuple(reasons))


def _limits(
    agent: Agent, facts: ToolFacts, op: OperationFacts, rules: tuple[tuple[int, ToolRule], ...]
) -> Iterator[Reason]:
    for index, rule in rules:
        kind = rule.rule_type
        if isinstance(kind, AllowedOperations) and op.name not in kind.operations:
            text = f"`{facts.name}` is limited to {_listed(kind.operations)} for agent `{agent.agent_id}`"
            yield Reason(Layer.RULE, Verdict.DENY, "operation-not-allowed", text, _rule_address(agent, index))


def _approvals(policy: Policy, agent: Agent, facts: ToolFacts, op: OperationFacts) -> Iterator[Reason]:
    verdict, address = approval_of(policy, agent, facts, op)
    if verdict is Verdict.ALLOW:
        return
    what = f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"
    why = f"by the approvals key `{address[-1]}`" if address else f"as its tier is {op.tier}"
    if verdict is Verdict.DENY:
        yield Reason(Layer.APPROVALS, verdict, "approvals-deny", f"{what} is denied {why}", address)
    else:
        yield Reason(Layer.APPROVALS, verdict, "approval-needed", f"{what} asks first {why}", address)


def _sources(agent: Agent, facts: ToolFacts, op: OperationFacts, sources: tuple[Source, ...]) -> Iterator[Reason]:
    if not facts.needs_source:
        return
    if not sources:
        address: Address | None = ("agents", agent.agent_id, "sources") if agent.sources is not None else None
        yield Reason(Layer.SOURCE, Verdict.DENY, "no-source", f"agent `{agent.agent_id}` has no file source", address)
        return
    if not op.actions:
        return
    levels = {level for source in sources for level in source.levels}
    verdicts = {verdict_for(level, action) for level in levels for action in op.actions}
    if Verdict.ALLOW in verdicts:
        return
    named = ", ".join(f"`{source.source_id}`" for source in sources)
    if Verdict.ASK in verdicts:
        text = f"every level of {named} that permits `{op.name}` asks first"
        yield Reason(Layer.SOURCE, Verdict.ASK, "level-asks", text)
    else:
        text = f"no rule or default of {named} permits `{op.name}`"
        yield Reason(Layer.SOURCE, Verdict.DENY, "no-level-permits", text, ("sources", sources[0].source_id))


def _consents(
    agent: Agent, facts: ToolFacts, op: OperationFacts, rules: tuple[tuple[int, ToolRule], ...]
) -> Iterator[Reason]:
    for index, rule in rules:
        if isinstance(rule.rule_type, RequiresConsent) and rule.binds(op.name):
            scope = f" (scope {rule.rule_type.scope})" if rule.rule_type.scope else ""
            text = f"`{facts.name}` requires consent{scope}"
            yield Reason(Layer.RULE, Verdict.ASK, "requires-consent", text, _rule_address(agent, index))


def _rule_address(agent: Agent, index: int) -> Address:
    return ("agents", agent.agent_id, "tool_rules", index)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "no operation at all"
