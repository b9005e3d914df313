"""Presets: what an agent may do in one word, as an edit of its boxes.

A preset sets the list of tools, the kept rule of each tool and the ``approvals`` keys; every other rule stays. What
an author's own rules leave out stays out, and so does what ``[defaults]`` deny.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from gatewright.policy.agentedit import agent_of
from gatewright.policy.boxes import Boxes
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import ToolFacts
from gatewright.policy.tier import TIER_DEFAULTS, SafetyTier
from gatewright.policy.verdict import Verdict


class Preset(StrEnum):
    """The words of the menu, the widest first."""

    EVERYTHING = "everything"
    STANDARD = "standard"
    READ_ONLY = "read only"
    NOTHING = "nothing"


_WANTED = {
    Preset.EVERYTHING: dict.fromkeys(SafetyTier, Verdict.ALLOW),
    Preset.STANDARD: dict.fromkeys(SafetyTier, Verdict.ALLOW) | {SafetyTier.PRIVILEGED: Verdict.ASK},
    Preset.READ_ONLY: dict.fromkeys(SafetyTier, Verdict.DENY) | {SafetyTier.READ_ONLY: Verdict.ALLOW},
    Preset.NOTHING: dict.fromkeys(SafetyTier, Verdict.DENY),
}


def promised(preset: Preset, tier: SafetyTier) -> Verdict:
    """What the preset makes of an operation of that tier, where no other layer says more."""
    return _WANTED[preset][tier]


def preset_edit(policy: Policy, catalog: Sequence[ToolFacts], agent_ids: Sequence[str], preset: Preset) -> Edit:
    """One edit that gives one or several agents a preset. Raises EditRefused for an agent that is not there."""
    agents = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    changes = tuple(AgentChange(agent, with_preset(policy, catalog, agent, preset)) for agent in agents)
    named = f"`{agents[0].agent_id}`" if len(agents) == 1 else f"{len(agents)} agents"
    return Edit(f"preset {preset} for {named}", tuple(change for change in changes if change.before != change.after))


def with_preset(policy: Policy, catalog: Sequence[ToolFacts], agent: Agent, preset: Preset) -> Agent:
    """The agent with the preset; the very one it was when nothing differs."""
    boxes = Boxes(policy, agent, catalog)
    tools = boxes.tools
    wanted = _WANTED[preset]
    for facts in tools:
        on = frozenset(row.name for row in facts.operations if wanted[row.tier] is not Verdict.DENY)
        boxes.tick_what_can_be(facts, on)
    if preset is not Preset.NOTHING:
        boxes.set_approvals(dict(_approvals(policy, tools, preset)))
    return boxes.agent


def _approvals(policy: Policy, tools: Sequence[ToolFacts], preset: Preset) -> Iterator[tuple[str, Verdict]]:
    """The agent's keys that the preset needs: of the tiers, and where ``[defaults]`` ask for a tool or an operation."""
    everyone, wanted = policy.defaults.approvals, _WANTED[preset]
    for tier in SafetyTier:
        stands = everyone.get(str(tier), TIER_DEFAULTS[tier])
        if wanted[tier] is not Verdict.DENY and Verdict.DENY is not stands is not wanted[tier]:
            yield str(tier), wanted[tier]
    if any(key not in set(SafetyTier) for key in everyone):
        for facts in tools:
            yield from _named_keys(policy, facts, preset)


def _named_keys(policy: Policy, facts: ToolFacts, preset: Preset) -> Iterator[tuple[str, Verdict]]:
    everyone = policy.defaults.approvals
    for row in facts.operations:
        key = f"{facts.name}.{row.name}" if row.name else facts.name
        stands = everyone.get(key, everyone.get(facts.name))
        wanted = promised(preset, row.tier)
        if wanted is not Verdict.DENY and stands not in {None, Verdict.DENY, wanted}:
            yield key, wanted
