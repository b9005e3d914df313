"""Ten agents on one gateway over HTTP at once: each gets its own answers, its own limits and its own rows."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

from tests.engine.gateway.conftest import Gate, Listen, Place
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import text

AGENTS = 10
CALLS = 30
OVER = 5
"""Calls of each agent above its limit."""
_AGENT = """
[agents.a{number}]
tools = ["file"]

[[agents.a{number}.tool_rules]]
tool_name = "file"
rule_type = {{ MaxCalls = {calls} }}
"""


async def _use(gate: Gate, token: str, number: int, calls: int) -> Counter[str]:
    """What becomes of the calls of one agent, four at a time; each reads the file that is its own."""
    found: Counter[str] = Counter()
    async with connected(gate, token) as client:

        async def read() -> None:
            result = await client.call_tool("file", {"op": "read", "path": f"a{number}.md"})
            if result.is_error:
                found["denied"] += 1
            else:
                found[json.loads(text(result))["data"]["content"]] += 1

        for begin in range(0, calls + OVER, 4):
            await asyncio.gather(*(read() for _ in range(min(4, calls + OVER - begin))))
    return found


async def test_agents_on_one_gateway_do_not_meet(place: Place, listen: Listen) -> None:
    agents = "".join(_AGENT.format(number=number, calls=CALLS) for number in range(AGENTS))
    place.policy.write_text(place.policy.read_text("utf-8") + agents, "utf-8")
    for number in range(AGENTS):
        (place.folder / "docs" / f"a{number}.md").write_text(f"of agent {number}", "utf-8")
    gate, tokens = listen(), [place.token(f"a{number}") for number in range(AGENTS)]
    found = await asyncio.gather(*(_use(gate, token, number, CALLS) for number, token in enumerate(tokens)))
    assert gate.end() == 0

    assert found == [Counter({f"of agent {number}": CALLS, "denied": OVER}) for number in range(AGENTS)]
    invoked, ended = place.rows("ToolInvoked"), Counter(row["kind"] for row in place.rows())
    assert Counter(row["agent"] for row in invoked) == {f"a{number}": CALLS + OVER for number in range(AGENTS)}
    assert len({(row["agent"], row["session"]) for row in invoked}) == AGENTS
    assert all(row["body"]["arguments"]["path"] == f"{row['agent']}.md" for row in invoked)
    assert (ended["ToolCompleted"], ended["ToolDenied"]) == (AGENTS * CALLS, AGENTS * OVER)
