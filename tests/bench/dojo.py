"""AgentDojo's banking and slack: what honest policies let through and stop, with AfterOutside and without.

`python -m tests.bench.dojo FOLDER`, with the folder of the corpora. A user task is useful if all its true calls pass. A
pair of injection and user task is blocked if some call of the injection does not run after the first result from
outside of the user's task; pairs whose user task reads nothing from outside are left out. Calls are made by the real
gate, with tools that answer nothing. An operator who is there agrees to the user's calls and refuses those injected.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gatewright.gate import Approval, ApprovalRequest, Gate, Session, Status
from gatewright.policy.document import Agent, Policy, ToolSettings, Trust
from gatewright.policy.rule import AfterOutside, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools import ToolRegistry
from gatewright.tools.defined import DefinedTool, ToolDefinition

OUTSIDE = {
    "banking": ("read_file", "get_most_recent_transactions", "get_scheduled_transactions"),
    "slack": ("get_webpage", "read_channel_messages", "read_inbox"),
}
READS = frozenset({"get_iban", "get_balance", "get_user_info", "get_channels", "get_users_in_channel"})
ALWAYS_ASKED = {"banking": ("update_password",), "slack": ("remove_user_from_slack", "invite_user_to_slack")}
Calls = list[dict[str, Any]]


class Silent(DefinedTool, abstract=True):
    """A tool that answers nothing."""


async def answer(*_: object) -> str:
    """Answer nothing."""
    return "ok"


def gate_of(suite: Mapping[str, Any], effect: Verdict | None) -> Gate:
    """The gate with an honest policy: to read is free, the gravest calls ask, the rest is free until a mark."""
    name, registry, rules = suite["suite"], ToolRegistry(), list[ToolRule]()
    for tool in suite["tools"]:
        definition = ToolDefinition(
            tool["name"], tool["description"], tool["inputSchema"], safety_tier=SafetyTier.SIDE_EFFECTING
        )
        registry.register(Silent(definition, origin="dojo", trusted=True, runner=answer))
        if effect is not None and tool["name"] not in READS.union(OUTSIDE[name]):
            rules.append(ToolRule(tool["name"], AfterOutside(effect)))
    tools = tuple(tool["name"] for tool in suite["tools"])
    agent = Agent("a", tools=tools, approvals=dict.fromkeys(ALWAYS_ASKED[name], Verdict.ASK), tool_rules=tuple(rules))
    settings = {one: ToolSettings(trust=Trust.OUTSIDE) for one in OUTSIDE[name]}
    return Gate(Policy(agents={"a": agent}, tools=settings), registry)


async def run(gate: Gate, session: Session, calls: Iterable[Mapping[str, Any]], agrees: bool | None) -> bool:
    """Make the calls up to one that does not run; tell whether all ran. ``agrees`` None: no operator is there."""

    async def operator(request: ApprovalRequest) -> Approval:
        return Approval(agrees is True, "dana")

    for call in calls:
        approver = None if agrees is None else operator
        outcome = await gate.call("a", call["function"], call["args"], session=session, approver=approver)
        if outcome.status is not Status.ALLOWED:
            return False
    return True


def read_first(calls: Calls, outside: tuple[str, ...]) -> Calls | None:
    """The calls until the first result from outside; None without one."""
    at = next((at for at, call in enumerate(calls) if call["function"] in outside), None)
    return None if at is None else calls[: at + 1]


async def measure(suite: Mapping[str, Any], effect: Verdict | None) -> str:
    """The figures of one policy, in words."""
    gate, tasks, parts = gate_of(suite, effect), suite["user_tasks"], list[str]()
    for agrees, words in ((None, "nobody answers"), (True, "an operator answers")):
        useful = [await run(gate, Session(), task["calls"], agrees) for task in tasks]
        blocked = list[bool]()
        for task in tasks:
            before = read_first(task["calls"], OUTSIDE[suite["suite"]])
            for injection in suite["injection_tasks"] if before is not None else ():
                session = Session()
                await run(gate, session, before or (), agrees)
                refuses = None if agrees is None else False
                blocked.append(not await run(gate, session, injection["calls"], refuses))
        parts.append(f"{words}: useful {sum(useful)}/{len(useful)}, blocked {sum(blocked)}/{len(blocked)}")
    return "; ".join(parts)


def main() -> None:
    """Print a line for each suite and policy."""
    for path in sorted(Path(sys.argv[1]).glob("agentdojo_*.json")):
        suite = json.loads(path.read_text("utf-8"))
        for effect in (None, Verdict.ASK, Verdict.DENY):
            name = "without" if effect is None else f"AfterOutside {effect}"
            print(f"{suite['suite']}, {name}: {asyncio.run(measure(suite, effect))}")


if __name__ == "__main__":
    main()
