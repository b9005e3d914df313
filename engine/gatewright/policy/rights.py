"""How the app's boxes become edits, so that the file stays readable.

Off means not in the kept rule of the tool; a whole tool off means not in ``tools``, and its rules wait: ticking it
again brings back what they list. All on again keeps the list; *reset* removes the kept rule and the tool's
``approvals`` keys; *ask first* is an ``approvals`` key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import agent_of
from gatewright.policy.boxes import Boxes
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.verdict import Verdict

_WORDS = {Verdict.ALLOW: "allow", Verdict.ASK: "ask first for", Verdict.DENY: "turn off"}


def tick_operations(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operations: Iterable[str], *, on: bool
) -> Edit:
    """Turn operations of one tool on or off. Raises EditRefused when an author's rule stands in the way."""
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    facts, chosen = boxes.facts(tool_name), frozenset(operations)
    ticked = boxes.ticked(facts)
    boxes.tick(facts, (ticked | chosen) if on else (ticked - chosen))
    named = ", ".join(f"`{name}`" for name in sorted(chosen) if name)
    label = f"turn {'on' if on else 'off'} {named} of `{tool_name}`" if named else _tool_label(tool_name, on=on)
    return _edit(f"{label} for `{agent_id}`", agent, boxes)


def tick_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, *, on: bool) -> Edit:
    """Turn a whole tool off, or on: with the operations that it had before it was turned off, else with all of them.

    Raises EditRefused when an author's rule stands in the way.
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
    """Remove the kept rule and the ``approvals`` keys of one tool, so that its own defaults hold again."""
    return reset_tools(policy, catalog, agent_id, (tool_name,))


def reset_tools(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_names: Sequence[str]) -> Edit:
    """As ``reset_tool`` for several tools, as one edit."""
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
    """Turn operations of many tools on or off, as one edit; what asks goes on asking.

    Of several tools those operations stay off that an author's rules turn off; of one they raise EditRefused.
    ``as_before``: a tool that is off and named with all its operations comes back as ``tick_tool`` brings it back.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, _as_before(boxes, targets) if on and as_before else targets, on=on)
    return _edit(f"turn {'on' if on else 'off'} {_named(targets)} for `{agent_id}`", agent, boxes)


def set_many(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]], verdict: Verdict
) -> Edit:
    """Allow, ask first for, or turn off operations of many tools, as one edit; see ``tick_many`` for what stays off.

    One ``approvals`` key for a whole tool makes those of its operations needless.
    """
    agent = agent_of(policy, agent_id)
    boxes = Boxes(policy, agent, catalog)
    _tick(boxes, targets, on=verdict is not Verdict.DENY)
    if verdict is not Verdict.DENY:
        for name, operations in targets.items():
            _ask(boxes, boxes.facts(name), operations, asks=verdict is Verdict.ASK)
    return _edit(f"{_WORDS[verdict]} {_named(targets)} for `{agent_id}`", agent, boxes)


def held_off(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, targets: Mapping[str, Sequence[str]]) -> int:
    """How many of these operations cannot be turned on, since an author's rules of the agent leave them out."""
    boxes = Boxes(policy, agent_of(policy, agent_id), catalog)
    return sum(len(frozenset(names) - boxes.could(boxes.facts(tool))) for tool, names in targets.items())


def _as_before(boxes: Boxes, targets: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The targets, less what a tool did not have before it was turned off."""
    found: dict[str, Sequence[str]] = {}
    for name, operations in targets.items():
        facts = boxes.facts(name)
        whole = len(operations) == len(facts.operations)
        found[name] = tuple(boxes.waiting(facts).intersection(operations)) if whole else operations
    return found


def _tick(boxes: Boxes, targets: Mapping[str, Sequence[str]], *, on: bool) -> None:
    for name, operations in targets.items():
        facts, chosen = boxes.facts(name), frozenset(operations)
        ticked = boxes.ticked(facts)
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
    """Whether ``approvals`` make it ask; None when a key of the agent's own denies it, which a wish lifts."""
    verdict = boxes.approval(facts, row)
    if verdict is Verdict.DENY:
        return False if boxes.own_approval(facts, row) is None else None
    return verdict is Verdict.ASK


def _named(targets: Mapping[str, Sequence[str]]) -> str:
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
