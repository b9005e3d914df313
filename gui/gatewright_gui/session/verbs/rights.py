"""Verbs on boxes: allow, ask first, deny, reset, for one row or for many. They do not know rows or colours.

A target is a tool with some of its operations; `("",)` stands for a tool without operations. Many edits of one agent
become one, so that one undo takes all of them back.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gatewright.base.errors import EditRefused
from gatewright.policy import rights
from gatewright.policy.document import Policy
from gatewright.policy.edit import AgentChange, Edit, apply
from gatewright.policy.effective import effective_rights
from gatewright.policy.right import Layer, OperationRight, ToolFacts
from gatewright.policy.verdict import Verdict
from gatewright_gui.session.document import Document

Wish = Literal["allow", "ask", "deny"]
Step = Callable[[Policy], Edit]


@dataclass(frozen=True, slots=True)
class Target:
    """Operations of one tool."""

    tool: str
    operations: tuple[str, ...]


def tick_operations(document: Document, agent_id: str, tool: str, operations: Iterable[str], *, on: bool) -> bool:
    """Turn operations on or off."""
    chosen = tuple(operations)
    return document.push(lambda policy, tools: rights.tick_operations(policy, tools, agent_id, tool, chosen, on=on))


def tick_tool(document: Document, agent_id: str, tool: str, *, on: bool) -> bool:
    """Turn a tool with all its operations on or off."""
    return document.push(lambda policy, tools: rights.tick_tool(policy, tools, agent_id, tool, on=on))


def ask_first(document: Document, agent_id: str, tool: str, operation: str, *, on: bool) -> bool:
    """Make an operation (`""`: the tool) ask first, or stop asking; says so when another layer keeps it asking."""
    done = document.push(lambda policy, tools: rights.ask_first(policy, tools, agent_id, tool, operation, on=on))
    if not on:
        _tell_still_asking(document, agent_id, tool, operation)
    return done


def reset_tool(document: Document, agent_id: str, tool: str) -> bool:
    """Back to the tool's own defaults."""
    return document.push(lambda policy, tools: rights.reset_tool(policy, tools, agent_id, tool))


def reset_tools(document: Document, agent_id: str, tools: Sequence[str]) -> bool:
    """Several tools back to their own defaults, as one edit."""
    if len(tools) == 1:
        return reset_tool(document, agent_id, tools[0])
    name = f"reset {len(tools)} tools for `{agent_id}`"
    return _push_steps(document, agent_id, name, lambda catalog: [_reset_step(catalog, agent_id, t) for t in tools])


def wish(document: Document, agent_id: str, targets: Sequence[Target], wanted: Wish) -> bool:
    """Allow, ask first or deny everything that is targeted, as one edit."""
    if not targets:
        return False
    name = f"{_WORDS[wanted]} {_named(targets)} for `{agent_id}`"

    def steps(catalog: _Catalog) -> list[Step]:
        return [step for target in targets for step in _wish_steps(catalog, agent_id, target, wanted)]

    return _push_steps(document, agent_id, name, steps)


def tick_all(document: Document, agent_id: str, targets: Sequence[Target], *, on: bool) -> bool:
    """Turn everything that is targeted on or off, as one edit; what asks goes on asking."""
    if not targets:
        return False
    name = f"turn {'on' if on else 'off'} {_named(targets)} for `{agent_id}`"
    return _push_steps(
        document, agent_id, name, lambda catalog: [_tick_step(catalog, agent_id, target, on) for target in targets]
    )


_WORDS: dict[Wish, str] = {"allow": "allow", "ask": "ask first for", "deny": "turn off"}


def _named(targets: Sequence[Target]) -> str:
    count = sum(len(target.operations) for target in targets)
    if len(targets) > 1:
        return f"{count} operations of {len(targets)} tools"
    target = targets[0]
    if target.operations == ("",):
        return f"`{target.tool}`"
    if count == 1:
        return f"`{target.operations[0]}` of `{target.tool}`"
    return f"{count} operations of `{target.tool}`"


class _Catalog:
    """The catalog by tool name: each step looks at its own tool only, so that many steps stay linear."""

    def __init__(self, catalog: Sequence[ToolFacts]) -> None:
        self.whole = catalog
        self._named: dict[str, list[ToolFacts]] = {}
        for facts in catalog:
            self._named.setdefault(facts.name, []).append(facts)

    def of(self, tool: str) -> Sequence[ToolFacts]:
        return self._named.get(tool, ())


def _tick_step(catalog: _Catalog, agent_id: str, target: Target, on: bool) -> Step:
    def step(policy: Policy) -> Edit:
        tools = policy.agents[agent_id].tools
        tool, operations = target.tool, target.operations
        narrow = rights.tick_operations(policy, catalog.of(tool), agent_id, tool, operations, on=on)
        if tools is not None or apply(policy, narrow).agents[agent_id].tools is None:
            return narrow
        # the agent listed no tools so far: the list that is written now has to name all the others
        return rights.tick_operations(policy, catalog.whole, agent_id, tool, operations, on=on)

    return step


def _reset_step(catalog: _Catalog, agent_id: str, tool: str) -> Step:
    return lambda policy: rights.reset_tool(policy, catalog.of(tool), agent_id, tool)


def _wish_steps(catalog: _Catalog, agent_id: str, target: Target, wanted: Wish) -> list[Step]:
    ticked = _tick_step(catalog, agent_id, target, wanted != "deny")
    if wanted == "deny":
        return [ticked]
    whole = {op.name for facts in catalog.of(target.tool) for op in facts.operations} == set(target.operations)
    keys = ("", *target.operations) if whole and target.operations != ("",) else target.operations
    return [ticked, *(_ask_step(catalog, agent_id, target.tool, key, wanted == "ask") for key in keys)]


def _ask_step(catalog: _Catalog, agent_id: str, tool: str, key: str, asks: bool) -> Step:
    """Ask or do not, where it is not so already: one key for a whole tool makes those of its operations needless."""

    def step(policy: Policy) -> Edit:
        right = effective_rights(policy, agent_id, catalog.of(tool))[tool]
        rows = [row for row in right.operations if not key or row.operation == key]
        if all(_asks_by_approvals(row) == asks for row in rows):
            return Edit("", ())
        return rights.ask_first(policy, catalog.of(tool), agent_id, tool, key, on=asks)

    return step


def _asks_by_approvals(row: OperationRight) -> bool:
    return any(reason.layer is Layer.APPROVALS and reason.verdict is Verdict.ASK for reason in row.reasons)


def _push_steps(document: Document, agent_id: str, name: str, make_steps: Callable[[_Catalog], list[Step]]) -> bool:
    return document.push(lambda policy, catalog: _joined(policy, agent_id, name, make_steps(_Catalog(catalog))))


def _joined(policy: Policy, agent_id: str, name: str, steps: Iterable[Step]) -> Edit:
    before = policy.agents.get(agent_id)
    if before is None:
        raise EditRefused(f"no agent `{agent_id}`")
    for step in steps:
        policy = apply(policy, step(policy))
    return Edit(name, (AgentChange(before, policy.agents[agent_id]),))


def _tell_still_asking(document: Document, agent_id: str, tool: str, operation: str) -> None:
    right = effective_rights(document.policy, agent_id, document.catalog)[tool]
    for row in right.operations:
        if (not operation or row.operation == operation) and row.verdict is Verdict.ASK:
            document.say("info", f"it still asks first: {row.reasons[0].text}")
            return
