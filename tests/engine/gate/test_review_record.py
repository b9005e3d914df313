"""What a row says of capabilities, and where the digest of a new policy is made."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from gatewright.compile import snapshot
from gatewright.gate import Status
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import POLICY, World

GRANTED = """
[agents.archivist]
tools = ["rows", "setting", "crawl"]
capabilities = [
  { DbRead = { tables = ["users"] } }, { EnvRead = { vars = ["HOME"] } }, { NetRead = { allowlist = ["a.example"] } },
]
"""


async def checked(world: World, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    await world.call(tool, arguments)
    assert world.audit is not None
    return next(json.loads(row.body) for row in world.audit.rows() if row.kind == "CapabilityCheck")


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "target", "allowed"),
    [
        ("rows", {"table": "users"}, "DbRead", "users", True),
        ("rows", {"table": "orders"}, "DbRead", "orders", False),
        ("setting", {"name": "HOME"}, "EnvRead", "HOME", True),
        ("setting", {"name": "PATH"}, "EnvRead", "PATH", False),
    ],
)
async def test_row_names_the_tables_and_variables_that_were_judged(
    make_world: MakeWorld, tool: str, arguments: dict[str, Any], kind: str, target: str, allowed: bool
) -> None:
    body = await checked(make_world("gatewright = 1\n" + GRANTED, *marked_tools()), tool, arguments)

    assert body == {
        "kinds": [kind],
        "checks": [{"kind": kind, "target": target, "allowed": allowed}],
        "allowed": allowed,
    }


async def test_row_of_many_targets_tells_first_what_is_not_granted(make_world: MakeWorld) -> None:
    world = make_world("gatewright = 1\n" + GRANTED, *marked_tools())
    urls = [*(f"https://a.example/{number}" for number in range(40)), "https://b.example/"]
    body = await checked(world, "crawl", {"urls": urls})

    assert body["checks"][0] == {"kind": "NetRead", "target": "b.example:443", "allowed": False}
    assert len(body["checks"]) + body["more"] == 41


async def test_digest_of_a_large_policy_does_not_stop_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by: list[threading.Thread] = []
    made, loop = snapshot.policy_digest, asyncio.get_running_loop()

    def watched(*given: Any) -> str:
        made_by.append(threading.current_thread())
        ticked = threading.Event()
        loop.call_soon_threadsafe(ticked.set)
        assert ticked.wait(), "the loop stood still"
        return made(*given)

    monkeypatch.setattr(snapshot, "policy_digest", watched)
    monkeypatch.setattr(snapshot, "SMALL_RULES", 0)
    for text in (POLICY, POLICY.replace('"vault"]', '"vault", "fail"]')):
        world.reload(text)
        assert (await world.call("echo", {"text": "x"})).status is Status.ALLOWED
        await world.call("echo", {"text": "y"})

    assert made_by
    assert threading.main_thread() not in made_by
