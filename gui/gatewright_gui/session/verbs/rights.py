"""Verbs on boxes: allow, ask first, deny, reset, for one row or for many. They do not know rows or colours.

A target is a tool with some of its operations; `("",)` stands for a tool without operations. Many changes of one agent
are one edit, so that one undo takes all of them back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gatewright.policy import rights
from gatewright.policy.document import Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.effective import effective_rights
from gatewright.policy.right import ToolFacts
from gatewright.policy.verdict import Verdict
from gatewright_gui.session.document import Document

Wish = Literal["allow", "ask", "deny"]
Tick = Literal["on", "off"]
_VERDICTS: Mapping[str, Verdict] = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY}


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
    return reset_tools(document, agent_id, (tool,))


def reset_tools(document: Document, agent_id: str, tools: Sequence[str]) -> bool:
    """Several tools back to their own defaults, as one edit."""
    return document.push(lambda policy, catalog: rights.reset_tools(policy, catalog, agent_id, tools))


def wish(document: Document, agent_id: str, targets: Sequence[Target], wanted: Wish) -> bool:
    """Allow, ask first or deny everything that is targeted, as one edit; says what an author's rule keeps off."""
    if not targets:
        return False
    table, verdict = _table(targets), _VERDICTS[wanted]
    done = document.push(lambda policy, tools: rights.set_many(policy, tools, agent_id, table, verdict))
    if wanted != "deny":
        _tell_held_off(document, agent_id, table)
    return done


def tick_all(document: Document, agent_id: str, targets: Sequence[Target], *, on: bool) -> bool:
    """Turn everything that is targeted on or off, as one edit; what asks goes on asking."""
    if not targets:
        return False
    table = _table(targets)
    done = document.push(lambda policy, tools: rights.tick_many(policy, tools, agent_id, table, on=on))
    if on:
        _tell_held_off(document, agent_id, table)
    return done


def changes_of(
    policy: Policy, catalog: Sequence[ToolFacts], cells: Mapping[str, Sequence[Target]], wanted: Wish | Tick
) -> tuple[AgentChange, ...]:
    """What a wish or a tick makes of several agents, each with targets of its own. Raises EditRefused."""
    edits = (_edit_of(policy, catalog, agent_id, _table(targets), wanted) for agent_id, targets in cells.items())
    changes = (change for edit in edits for change in edit.changes)
    return tuple(one for one in changes if isinstance(one, AgentChange) and one.before != one.after)


def _edit_of(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, table: Mapping[str, Sequence[str]], wanted: Wish | Tick
) -> Edit:
    if wanted in {"on", "off"}:
        return rights.tick_many(policy, catalog, agent_id, table, on=wanted == "on")
    return rights.set_many(policy, catalog, agent_id, table, _VERDICTS[wanted])


def _table(targets: Sequence[Target]) -> dict[str, tuple[str, ...]]:
    return {target.tool: target.operations for target in targets}


def _tell_held_off(document: Document, agent_id: str, table: Mapping[str, Sequence[str]]) -> None:
    """Of several tools what cannot be is left out; of one it was refused with a reason."""
    if len(table) < 2:
        return
    if left := rights.held_off(document.policy, document.catalog, agent_id, table):
        what = "1 operation stays off" if left == 1 else f"{left:,} operations stay off"
        document.say("info", f"{what}: several AllowedOperations rules of `{agent_id}` leave it out together")


def _tell_still_asking(document: Document, agent_id: str, tool: str, operation: str) -> None:
    one = [facts for facts in document.catalog if facts.name == tool]
    right = effective_rights(document.policy, agent_id, one)[tool]
    for row in right.operations:
        if (not operation or row.operation == operation) and row.verdict is Verdict.ASK:
            document.say("info", f"it still asks first: {row.reasons[0].text}")
            return
