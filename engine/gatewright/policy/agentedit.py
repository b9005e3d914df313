"""Edits of agents: their list, ``approvals`` and capabilities, and the rights that one agent gets from another.

Policy rules and `sub_agents` name agents, so renaming or removing an agent changes them too. A rule for one agent
alone is removed with the agent: without a name it would hold for everybody. Scopes of capabilities come as values, or
as the text that a person types. A new entry for a capability that takes a list joins the first grant of that kind. A
whole catalog is named in the list of tools by ``catalog:ID``, beside what is listed by name. A copy of rights always
takes the list of tools, the AllowedOperations rules and ``approvals``; limits, sources and capabilities on request.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused, Report, choice_hint, near_miss
from gatewright.base.frozen import frozen
from gatewright.policy.capability import CAPABILITIES, Capability, CapabilityKind, ListedCapability, kind_of
from gatewright.policy.document import Agent, Delegate, Policy
from gatewright.policy.edit import AgentChange, Edit, FieldChange
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import AllowedOperations, PolicyRule, ToolRule, new_identity
from gatewright.policy.verdict import SafetyTier, Verdict, selector_of

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def add_agent(policy: Policy, agent_id: str, description: str = "") -> Edit:
    """Add an agent without tools and sources; it may do nothing until somebody ticks a box."""
    _check_new(policy, agent_id)
    agent = Agent(agent_id, description, tools=(), sources=())
    return Edit(f"add agent `{agent_id}`", (AgentChange(None, agent),))


def duplicate_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """Copy an agent under another id; policy rules that name the agent then name the copy too."""
    _check_new(policy, new_id)
    copy = replace(agent_of(policy, agent_id), agent_id=new_id, identity=new_identity())
    rules = _rename_in_rules(policy.rules, agent_id, (agent_id, new_id))
    return _edit(f"duplicate `{agent_id}` as `{new_id}`", policy, [AgentChange(None, copy)], rules)


def rename_agent(policy: Policy, agent_id: str, new_id: str) -> Edit:
    """Give an agent another id in the same place, and change the policy rules that name it."""
    _check_new(policy, new_id)
    agent = agent_of(policy, agent_id)
    change = AgentChange(agent, replace(agent, agent_id=new_id))
    rules = _rename_in_rules(policy.rules, agent_id, (new_id,))
    changes = [change, *_rename_in_callers(policy, {agent_id: (new_id,)})]
    return _edit(f"rename `{agent_id}` to `{new_id}`", policy, changes, rules)


def describe_agent(policy: Policy, agent_id: str, description: str) -> Edit:
    """Change the description."""
    agent = agent_of(policy, agent_id)
    return Edit(f"describe `{agent_id}`", (AgentChange(agent, replace(agent, description=description)),))


def remove_agent(policy: Policy, agent_id: str) -> Edit:
    """Remove an agent, and the policy rules for it alone; other rules no longer name it."""
    return remove_agents(policy, (agent_id,))


def remove_agents(policy: Policy, agent_ids: Sequence[str]) -> Edit:
    """Remove several agents in one edit, and the policy rules for them alone."""
    agents = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    gone = {agent.agent_id for agent in agents}
    rest = tuple(rule for rule in policy.rules if not rule.agents or not gone.issuperset(rule.agents))
    left = rest
    for agent_id in gone:
        left = _rename_in_rules(left, agent_id, ())
    one = len(agents) == 1
    name = f"remove agent `{agents[0].agent_id}`" if one else f"remove {len(agents)} agents"
    if lost := len(policy.rules) - len(rest):
        name += f" and the {'policy rule' if lost == 1 else f'{lost} policy rules'} for {'it' if one else 'them'} alone"
    order = list(policy.agents)
    last_first = sorted(agents, key=lambda agent: order.index(agent.agent_id), reverse=True)
    changes = [AgentChange(agent, None, order.index(agent.agent_id)) for agent in last_first]
    callers = [one for one in _rename_in_callers(policy, dict.fromkeys(gone, ())) if one.before not in agents]
    return _edit(name, policy, [*callers, *changes], left)


def list_catalog(policy: Policy, agent_id: str, catalog_id: str, *, on: bool) -> Edit:
    """Have all tools of a catalog in the agent's list, later ones too, or no longer; tools listed by name stay.

    Raises EditRefused for an unknown catalog, and for an agent without a list, which has them already.
    """
    agent, selector = agent_of(policy, agent_id), selector_of(catalog_id)
    listed = agent.tools or ()
    if not on and selector not in listed:
        raise EditRefused(f"`{selector}` is not in the list of tools of `{agent_id}`")
    if on and policy.catalog(catalog_id) is None:
        raise EditRefused(f"no catalog `{catalog_id}`")
    if on and agent.tools is None and policy.defaults.unlisted_tools is Verdict.ALLOW:
        raise EditRefused(f"`{agent_id}` has no list of tools, so it has every tool already")
    if on and selector in listed:
        raise EditRefused(f"`{agent_id}` has all tools of `{catalog_id}` already")
    tools = (*listed, selector) if on else tuple(name for name in listed if name != selector)
    name = f"{'list' if on else 'no longer list'} all tools of `{catalog_id}` for `{agent_id}`"
    return Edit(name, (AgentChange(agent, replace(agent, tools=tools)),))


def name_sub_agent(policy: Policy, agent_id: str, child_id: str) -> Edit:
    """Let another agent have rights of its own when this one starts it. Raises EditRefused for one that cannot be."""
    agent = agent_of(policy, agent_id)
    if child_id not in policy.agents:
        near = near_miss(child_id, _nearby(child_id, tuple(policy.agents)))
        raise EditRefused(f"no agent `{child_id}`{f'; did you mean `{near}`?' if near else ''}")
    if child_id == agent_id:
        raise EditRefused("an agent is no sub-agent of its own: as that it has its own rights")
    if child_id in agent.sub_agents:
        raise EditRefused(f"`{child_id}` is among the sub-agents of `{agent_id}` already")
    after = replace(agent, sub_agents=(*agent.sub_agents, child_id))
    return Edit(f"let `{agent_id}` start `{child_id}` with its own rights", (AgentChange(agent, after),))


def drop_sub_agent(policy: Policy, agent_id: str, child_id: str) -> Edit:
    """Let a sub-agent never do more than this agent, when this one starts it."""
    agent = agent_of(policy, agent_id)
    if child_id not in agent.sub_agents:
        raise EditRefused(f"`{child_id}` is not among the sub-agents of `{agent_id}`")
    after = replace(agent, sub_agents=_put(agent.sub_agents, child_id, ()))
    return Edit(f"no longer let `{agent_id}` start `{child_id}` with its own rights", (AgentChange(agent, after),))


def set_delegate(policy: Policy, agent_id: str, delegate: Delegate) -> Edit:
    """Say whether the sub-agents that an agent names have all rights of their own, or only those that it has too."""
    agent = agent_of(policy, agent_id)
    own = delegate is Delegate.OWN
    name = f"sub-agents of `{agent_id}`: {'their own rights' if own else 'of their rights only its own'}"
    return Edit(name, (AgentChange(agent, replace(agent, delegate=delegate)),))


def agent_of(policy: Policy, agent_id: str) -> Agent:
    """The agent that an edit is about. Raises EditRefused if no agent has that id."""
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise EditRefused(f"no agent `{agent_id}`")
    return agent


def _rename_in_rules(rules: tuple[PolicyRule, ...], agent_id: str, instead: tuple[str, ...]) -> tuple[PolicyRule, ...]:
    """Put the names ``instead`` in place of the agent in every rule that names it; rules for all agents stay as they
    are.
    """
    return tuple(
        rule
        if rule.agents is None or agent_id not in rule.agents
        else replace(rule, agents=_put(rule.agents, agent_id, instead))
        for rule in rules
    )


def _rename_in_callers(policy: Policy, instead: Mapping[str, tuple[str, ...]]) -> list[AgentChange]:
    """Put other names in place of agents in the `sub_agents` of all others."""
    changes: list[AgentChange] = []
    for agent in policy.agents.values():
        named = agent.sub_agents
        for agent_id, names in instead.items():
            named = _put(named, agent_id, names)
        if named != agent.sub_agents:
            changes.append(AgentChange(agent, replace(agent, sub_agents=named)))
    return changes


def _put(agents: tuple[str, ...], agent_id: str, instead: tuple[str, ...]) -> tuple[str, ...]:
    """Put the names ``instead`` in place of one agent, each name once."""
    return tuple(dict.fromkeys(one for held in agents for one in (instead if held == agent_id else (held,))))


def _edit(name: str, policy: Policy, changes: Sequence[AgentChange], rules: tuple[PolicyRule, ...]) -> Edit:
    if rules == policy.rules:
        return Edit(name, tuple(changes))
    return Edit(name, (*changes, FieldChange("rules", policy.rules, rules)))


def _check_new(policy: Policy, agent_id: str) -> None:
    if not _AGENT_ID.fullmatch(agent_id):
        raise EditRefused(f"`{agent_id}` is no agent id: letters, digits, `-` and `_`, at most 64")
    if agent_id in policy.agents:
        raise EditRefused(f"agent `{agent_id}` exists already")


_COMPARED = 200
"""The most keys to compare with a misspelt one, since a large catalog has thousands."""
TIER_KEYS = tuple(str(tier) for tier in SafetyTier)
_SAYS = {Verdict.ALLOW: "never ask for", Verdict.ASK: "ask first for", Verdict.DENY: "turn off"}


def approval_keys(policy: Policy, catalog: Iterable[ToolFacts]) -> tuple[str, ...]:
    """Every valid key: the tiers, whole catalogs, then the tools with their operations in the order of the catalog."""
    named = [key for facts in catalog for key in (facts.name, *(f"{facts.name}.{op}" for op in facts.operation_names))]
    return tuple(dict.fromkeys((*TIER_KEYS, *policy.selectors, *named)))


def set_approval(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, key: str, verdict: Verdict) -> Edit:
    """Set the verdict of a key in its place, or append the key. Raises EditRefused for a key that names nothing."""
    agent = agent_of(policy, agent_id)
    if key not in agent.approvals:
        _check_key(policy, catalog, key)
    approvals = {**agent.approvals, key: verdict}
    return _approvals_edit(f"{_SAYS[verdict]} `{key}` for `{agent_id}` by approvals", agent, approvals)


def rename_approval(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, key: str, new_key: str) -> Edit:
    """Move a verdict to another key, in the same place."""
    agent = agent_of(policy, agent_id)
    _check_held(agent, key)
    if new_key == key:
        return Edit("", ())
    _check_key(policy, catalog, new_key)
    if new_key in agent.approvals:
        raise EditRefused(f"`{agent_id}` has an approvals key `{new_key}` already")
    approvals = {new_key if held == key else held: verdict for held, verdict in agent.approvals.items()}
    return _approvals_edit(f"approvals key `{new_key}` instead of `{key}` for `{agent_id}`", agent, approvals)


def remove_approval(policy: Policy, agent_id: str, key: str) -> Edit:
    """Remove a key, so that a default, a broader key or the tier decides again."""
    agent = agent_of(policy, agent_id)
    _check_held(agent, key)
    approvals = {held: verdict for held, verdict in agent.approvals.items() if held != key}
    return _approvals_edit(f"remove the approvals key `{key}` of `{agent_id}`", agent, approvals)


READING = str(SafetyTier.READ_ONLY)


def asks_to_read(policy: Policy) -> tuple[str, ...]:
    """The agents whose operations of the tier read_only ask first, unless a more specific key says otherwise."""
    usual = policy.defaults.approvals.get(READING)
    return tuple(name for name, agent in policy.agents.items() if agent.approvals.get(READING, usual) is Verdict.ASK)


def set_reading(policy: Policy, *, asks: bool) -> Edit:
    """Make all that only reads ask first by default, or never ask for any agent; denials by that tier stay."""
    usual = policy.defaults.approvals.get(READING, Verdict.ALLOW)
    usual = Verdict.ASK if asks else Verdict.ALLOW if usual is Verdict.ASK else usual
    defaults = replace(policy.defaults, approvals={**policy.defaults.approvals, READING: usual})
    asking = [] if asks else [one for one in policy.agents.values() if one.approvals.get(READING) is Verdict.ASK]
    own = [AgentChange(one, replace(one, approvals={**one.approvals, READING: Verdict.ALLOW})) for one in asking]
    name = "ask first for all that only reads" if asks else "never ask for all that only reads"
    return Edit(name, (FieldChange("defaults", policy.defaults, defaults), *own))


def _check_held(agent: Agent, key: str) -> None:
    if key not in agent.approvals:
        raise EditRefused(f"`{agent.agent_id}` has no approvals key `{key}`")


def _check_key(policy: Policy, catalog: Sequence[ToolFacts], key: str) -> None:
    keys = approval_keys(policy, catalog)
    if key not in keys:
        near = near_miss(key, _nearby(key, keys))
        meant = f"; did you mean `{near}`?" if near else choice_hint(key, keys)
        raise EditRefused(f"`{key}` is neither a tier nor a tool nor `tool.operation`{meant}")


def _nearby(key: str, keys: Sequence[str]) -> Sequence[str]:
    """The keys to compare a misspelt one with; in a long list, its neighbours in the alphabet."""
    if len(keys) <= _COMPARED:
        return keys
    ordered = sorted(keys)
    at = bisect(ordered, key)
    return ordered[max(at - _COMPARED // 2, 0) : at + _COMPARED // 2]


def _approvals_edit(name: str, agent: Agent, approvals: dict[str, Verdict]) -> Edit:
    return Edit(name, (AgentChange(agent, replace(agent, approvals=approvals)),))


@frozen
class Granted:
    """A capability of an agent and the place where the caller saw it; edits refuse if it has changed since."""

    agent_id: str
    index: int
    capability: Capability


def grant(policy: Policy, agent_id: str, capability: Capability) -> Edit:
    """Grant a capability; a list joins the agent's grant of that kind. Raises EditRefused if it adds nothing."""
    agent, kind = agent_of(policy, agent_id), kind_of(capability)
    held = next((i for i, one in enumerate(agent.capabilities) if kind_of(one) is kind), None)
    if held is None:
        return _capabilities_edit(f"grant `{kind}` to `{agent_id}`", agent, (*agent.capabilities, capability))
    after = _join(agent.capabilities[held], capability)
    if after == agent.capabilities[held]:
        raise EditRefused(f"`{agent_id}` is granted that `{kind}` already")
    return _capabilities_edit(f"widen `{kind}` of `{agent_id}`", agent, _put_capability(agent, held, after))


def change_capability(policy: Policy, granted: Granted, capability: Capability) -> Edit:
    """Change the scope of a grant in its place."""
    agent = _agent_with(policy, granted)
    name = f"change `{kind_of(capability)}` of `{agent.agent_id}`"
    return _capabilities_edit(name, agent, _put_capability(agent, granted.index, capability))


def revoke(policy: Policy, granted: Granted) -> Edit:
    """Remove a grant."""
    agent = _agent_with(policy, granted)
    name = f"revoke `{kind_of(granted.capability)}` of `{agent.agent_id}`"
    return _capabilities_edit(name, agent, _put_capability(agent, granted.index, None))


def read_scope(kind: CapabilityKind, text: str) -> Capability:
    """Read the scope that a person typed for a kind. Raises EditRefused, which names the wrong part."""
    capability, report = CAPABILITIES[kind].from_text(text), Report()
    capability.check((), report)
    if report.first_error is not None:
        raise EditRefused(report.first_error[1])
    return capability


def scope_example(kind: CapabilityKind, policy: Policy | None = None) -> str:
    """An example of a scope to type for a kind, with folders of the policy; empty for a kind without a scope."""
    folders: list[str] = []
    if policy is not None and kind in {CapabilityKind.FS_READ, CapabilityKind.FS_WRITE}:
        folders = [folder for name, folder in policy.roots.folders.items() if name != "vault"]
        folders = folders or [source.base_path for source in policy.file_sources]
    return ", ".join(dict.fromkeys(folders)) or CAPABILITIES[kind].typed_example


def needs(catalog: Iterable[ToolFacts]) -> dict[CapabilityKind, tuple[str, ...]]:
    """The tools that need each kind: ``tool`` if all of its operations need it, else ``tool.operation``."""
    found: dict[CapabilityKind, list[str]] = {}
    for facts in catalog:
        by_kind: dict[CapabilityKind, list[str]] = {}
        for row in facts.operations:
            for kind in row.capabilities:
                by_kind.setdefault(kind, []).append(row.name)
        for kind, rows in by_kind.items():
            whole = len(rows) == len(facts.operations)
            found.setdefault(kind, []).extend([facts.name] if whole else [f"{facts.name}.{row}" for row in rows])
    return {kind: tuple(names) for kind, names in found.items()}


def _join(held: Capability, new: Capability) -> Capability:
    if not isinstance(held, ListedCapability) or not isinstance(new, ListedCapability):
        raise EditRefused(f"`{kind_of(held)}` is granted already: change what stands there")
    return type(held)(tuple(dict.fromkeys((*held.scope, *new.scope))))


def _agent_with(policy: Policy, granted: Granted) -> Agent:
    agent = agent_of(policy, granted.agent_id)
    if agent.capabilities[granted.index : granted.index + 1] != (granted.capability,):
        raise EditRefused(f"capability {granted.index + 1} of `{agent.agent_id}` is not what it was")
    return agent


def _put_capability(agent: Agent, index: int, capability: Capability | None) -> tuple[Capability, ...]:
    middle = () if capability is None else (capability,)
    return (*agent.capabilities[:index], *middle, *agent.capabilities[index + 1 :])


def _capabilities_edit(name: str, agent: Agent, capabilities: tuple[Capability, ...]) -> Edit:
    return Edit(name, (AgentChange(agent, replace(agent, capabilities=capabilities)),))


@frozen
class Along:
    """The rights to copy besides the boxes; ``limits`` are all other rules on tools."""

    limits: bool = True
    sources: bool = False
    capabilities: bool = False


def copy_rights(policy: Policy, source_id: str, agent_ids: Sequence[str], along: Along) -> Edit:
    """Copy the rights of one agent to several others in one edit. Raises EditRefused for an unknown agent."""
    source = agent_of(policy, source_id)
    targets = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    if source in targets:
        raise EditRefused(f"`{source_id}` has its own rights already")
    changes = tuple(AgentChange(agent, with_rights_of(source, agent, along)) for agent in targets)
    named = f"`{targets[0].agent_id}`" if len(targets) == 1 else f"{len(targets)} agents"
    name = f"copy the rights of `{source_id}` to {named}"
    return Edit(name, tuple(change for change in changes if change.before != change.after))


def rules_by_name(policy: Policy, source_id: str) -> tuple[PolicyRule, ...]:
    """The policy rules that name an agent; copying its rights does not copy them."""
    return tuple(rule for rule in policy.rules if rule.agents is not None and source_id in rule.agents)


def with_rights_of(source: Agent, agent: Agent, along: Along) -> Agent:
    """Give an agent the rights of ``source``; the agent keeps its name, description and user."""
    return replace(
        agent,
        tools=source.tools,
        tool_rules=source.tool_rules if along.limits else _with_boxes_of(source, agent),
        approvals=source.approvals,
        sources=source.sources if along.sources else agent.sources,
        capabilities=source.capabilities if along.capabilities else agent.capabilities,
    )


def _with_boxes_of(source: Agent, agent: Agent) -> tuple[ToolRule, ...]:
    """The agent's own limits with the other's AllowedOperations; rules that both have keep their place."""
    wanted = [rule for rule in source.tool_rules if _is_box(rule)]
    kept: list[ToolRule] = []
    for rule in agent.tool_rules:
        if not _is_box(rule):
            kept.append(rule)
        elif rule in wanted:
            wanted.remove(rule)
            kept.append(rule)
    return (*kept, *wanted)


def _is_box(rule: ToolRule) -> bool:
    return isinstance(rule.rule_type, AllowedOperations)
