"""The app's boxes as edits: ticked one by one, or all at once by a preset.

An operation that is off is missing from the app's rule for the tool; a tool that is off is missing from ``tools``, and
its rules lie dormant: a new tick brings back what they list. Turning all on again keeps the list; *reset* removes the
app's rule and the tool's ``approvals`` keys; *ask first* is an ``approvals`` key. A preset leaves all other rules
alone: an author's own exclusions and denials by ``[defaults]`` stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import agent_of
from gatewright.policy.boxes import Boxes
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.verdict import TIER_DEFAULTS, SafetyTier, Verdict

_WORDS = {Verdict.ALLOW: "allow", Verdict.ASK: "ask first for", Verdict.DENY: "turn off"}


def tick_operations(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operations: Iterable[str], *, on: bool
) -> Edit:
    """Turn operations of one tool on or off. Raises EditRefused if an author's rule forbids it."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    facts, chosen = boxes.facts(tool_name), frozenset(operations)
    ticked = boxes.ticks(facts)
    boxes.tick(facts, (ticked | chosen) if on else (ticked - chosen))
    named = ", ".join(f"`{name}`" for name in sorted(chosen) if name)
    label = f"turn {'on' if on else 'off'} {named} of `{tool_name}`" if named else _tool_label(tool_name, on=on)
    return _edit(f"{label} for `{agent_id}`", agent, boxes)


def tick_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, *, on: bool) -> Edit:
    """Turn a whole tool off, or on with the operations that it had before, else with all.

    Raises EditRefused if an author's rule forbids it.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    facts = boxes.facts(tool_name)
    boxes.tick(facts, boxes.waiting(facts) if on else frozenset())
    return _edit(f"{_tool_label(tool_name, on=on)} for `{agent_id}`", agent, boxes)


def ask_first(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operation: str, *, on: bool
) -> Edit:
    """Make a tool (``operation`` = ``""``) or one operation ask first, or stop asking, by an ``approvals`` key."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    boxes.ask(boxes.facts(tool_name), operation, on=on)
    key = f"{tool_name}.{operation}" if operation else tool_name
    return _edit(f"{'ask first' if on else 'do not ask'} for `{key}` of `{agent_id}`", agent, boxes)


def reset_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str) -> Edit:
    """Remove the app's rule and the ``approvals`` keys of one tool, so that its own defaults apply again."""
    return reset_tools(policy, catalog, agent_id, (tool_name,))


def reset_tools(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_names: Sequence[str]) -> Edit:
    """Reset several tools in one edit."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    for name in tool_names:
        boxes.forget(boxes.facts(name))
    named = f"`{tool_names[0]}`" if len(tool_names) == 1 else f"{len(tool_names)} tools"
    return _edit(f"reset {named} for `{agent_id}`", agent, boxes)


def tick_many(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    agent_id: str,
    targets: Mapping[str, Sequence[str]],
    *,
    on: bool,
    as_before: bool = False,
) -> Edit:
    """Turn operations of many tools on or off in one edit; operations that ask go on asking.

    With several tools, operations that an author's rules exclude stay off; with one tool they raise EditRefused.
    ``as_before``: a tool that is off and named with all its operations comes back as with ``tick_tool``.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, _as_before(boxes, targets) if on and as_before else targets, on=on)
    return _edit(f"turn {'on' if on else 'off'} {_targets_in_words(targets)} for `{agent_id}`", agent, boxes)


def set_many(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]], verdict: Verdict
) -> Edit:
    """Allow, ask first for, or turn off operations of many tools in one edit; see ``tick_many`` for what stays off.

    One ``approvals`` key for a whole tool replaces keys for its operations.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, targets, on=verdict is not Verdict.DENY)
    if verdict is not Verdict.DENY:
        for name, operations in targets.items():
            _ask(boxes, boxes.facts(name), operations, asks=verdict is Verdict.ASK)
    return _edit(f"{_WORDS[verdict]} {_targets_in_words(targets)} for `{agent_id}`", agent, boxes)


def count_excluded(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]]
) -> int:
    """Count the operations that cannot be turned on, since an author's rules of the agent exclude them."""
    boxes = Boxes(policy, agent_of(policy, agent_id), catalog)
    return sum(len(frozenset(names) - boxes.could(boxes.facts(tool))) for tool, names in targets.items())


def _as_before(boxes: Boxes, targets: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The targets without operations that a tool lacked before somebody turned it off."""
    found: dict[str, Sequence[str]] = {}
    for name, operations in targets.items():
        facts = boxes.facts(name)
        whole = len(operations) == len(facts.operations)
        found[name] = tuple(boxes.waiting(facts).intersection(operations)) if whole else operations
    return found


def _tick(boxes: Boxes, targets: Mapping[str, Sequence[str]], *, on: bool) -> None:
    for name, operations in targets.items():
        facts, chosen = boxes.facts(name), frozenset(operations)
        ticked = boxes.ticks(facts)
        wanted = (ticked | chosen) if on else (ticked - chosen)
        if len(targets) == 1:
            boxes.tick(facts, wanted)
        else:
            boxes.tick_what_can_be(facts, wanted)


def _ask(boxes: Boxes, facts: ToolFacts, operations: Sequence[str], *, asks: bool) -> None:
    rows = {operation.name: operation for operation in facts.operations}
    unknown = [name for name in operations if name not in rows]
    if unknown:
        raise EditRefused(f"`{facts.name}` has no operation `{unknown[0]}`")
    if all(_asks(boxes, facts, rows[name]) == asks for name in operations):
        return
    whole = facts.has_operations and rows.keys() == set(operations)
    for key in ("", *operations) if whole else operations:
        concerned = facts.operations if not key else (rows[key],)
        if not all(_asks(boxes, facts, row) == asks for row in concerned):
            boxes.ask(facts, key, on=asks)


def _asks(boxes: Boxes, facts: ToolFacts, row: OperationFacts) -> bool | None:
    """Tell whether ``approvals`` make it ask; None if the agent's own key denies it, which a new setting lifts."""
    verdict = boxes.approval(facts, row)
    if verdict is Verdict.DENY:
        return False if boxes.own_approval(facts, row) is None else None
    return verdict is Verdict.ASK


def _targets_in_words(targets: Mapping[str, Sequence[str]]) -> str:
    count = sum(map(len, targets.values()))
    if len(targets) > 1:
        return f"{count:,} operations of {len(targets):,} tools"
    for tool, operations in targets.items():
        if tuple(operations) == ("",):
            return f"`{tool}`"
        return f"`{operations[0]}` of `{tool}`" if count == 1 else f"{count} operations of `{tool}`"
    return "nothing"


def _tool_label(tool_name: str, *, on: bool) -> str:
    return f"turn {'on' if on else 'off'} `{tool_name}`"


def _edit(name: str, before: Agent, boxes: Boxes) -> Edit:
    return Edit(name, (AgentChange(before, boxes.agent),))


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


def preset_verdict(preset: Preset, tier: SafetyTier) -> Verdict:
    """The preset's verdict on an operation of that tier, if no other layer is stricter."""
    return _WANTED[preset][tier]


def preset_edit(policy: Policy, catalog: Sequence[ToolFacts], agent_ids: Sequence[str], preset: Preset) -> Edit:
    """Give one or several agents a preset in one edit. Raises EditRefused for an unknown agent."""
    agents = [agent_of(policy, agent_id) for agent_id in dict.fromkeys(agent_ids)]
    changes = tuple(AgentChange(agent, with_preset(policy, catalog, agent, preset)) for agent in agents)
    named = f"`{agents[0].agent_id}`" if len(agents) == 1 else f"{len(agents)} agents"
    return Edit(f"preset {preset} for {named}", tuple(change for change in changes if change.before != change.after))


def with_preset(policy: Policy, catalog: Sequence[ToolFacts], agent: Agent, preset: Preset) -> Agent:
    """The agent with the preset; the same object if nothing differs."""
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
    """The agent's keys for the preset: of tiers, and where ``[defaults]`` set a tool or an operation."""
    everyone, wanted = policy.defaults.approvals, _WANTED[preset]
    for tier in SafetyTier:
        stands = everyone.get(str(tier), TIER_DEFAULTS[tier])
        if wanted[tier] is not Verdict.DENY and Verdict.DENY is not stands is not wanted[tier]:
            yield str(tier), wanted[tier]
    if any(key not in set(SafetyTier) for key in everyone):
        for facts in tools:
            yield from _tool_keys(policy, facts, preset)


def _tool_keys(policy: Policy, facts: ToolFacts, preset: Preset) -> Iterator[tuple[str, Verdict]]:
    everyone = policy.defaults.approvals
    for row in facts.operations:
        key = f"{facts.name}.{row.name}" if row.name else facts.name
        stands = everyone.get(key, everyone.get(facts.name))
        wanted = preset_verdict(preset, row.tier)
        if wanted is not Verdict.DENY and stands not in {None, Verdict.DENY, wanted}:
            yield key, wanted
