"""Operators for tests of approvals: a gate that asks through a broker, and somebody who waits for its questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from gatewright.gate import ApprovalRequest, ApprovalStore, Gate, PermissionBroker
from gatewright.gate.approval import Ask
from gatewright.tools.context import Ports
from tests.engine.gate.world import POLICY, World
from tests.support.clock import ManualClock
from tests.support.patience import patient

T = TypeVar("T")
ANSWER_S = 3_600.0
"""For an event that must come: longer than a test may sleep."""


class Desk:
    """An operator's desk: subscribed to a broker, it lets a test wait until the open questions are as wanted."""

    def __init__(self, broker: PermissionBroker) -> None:
        self.broker = broker
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.questions: tuple[ApprovalRequest, ...] = ()
        self.leave = broker.subscribe(self._told)

    def _told(self, pending: tuple[ApprovalRequest, ...]) -> None:
        self._loop.call_soon_threadsafe(self._take, pending)

    def _take(self, pending: tuple[ApprovalRequest, ...]) -> None:
        self.questions = pending
        self._changed.set()

    async def until(self, wanted: Callable[[tuple[ApprovalRequest, ...]], bool]) -> tuple[ApprovalRequest, ...]:
        async with patient():
            while not wanted(self.questions):
                self._changed.clear()
                await self._changed.wait()
        return self.questions

    async def question(self) -> ApprovalRequest:
        """Wait for the first open question."""
        return (await self.until(bool))[0]

    async def waiting(self, count: int) -> ApprovalRequest:
        """The question once that many identical calls wait for its answer."""
        return (await self.until(lambda asked: bool(asked) and asked[0].waiting == count))[0]

    async def empty(self) -> None:
        await self.until(lambda asked: not asked)


def store_of(world: World) -> ApprovalStore:
    return ApprovalStore(world.folder / "state", world.folder / "keys", clock=world.clock)


def asking_gate(
    world: World, text: str = POLICY, *, store: ApprovalStore | None = None, **options: Any
) -> PermissionBroker:
    """Makes the world's gate ask through a broker over a store, without one over that of the world's state folder."""
    broker = PermissionBroker(store or store_of(world), world.clock, audit=world.log, **options)
    world.gate = Gate(
        world.gate.policy,
        world.registry,
        ports=Ports(world.sources),
        audit=world.log,
        clock=world.clock,
        places=world.places.place,
        broker=broker,
    )
    return broker


def a_request(agent: str = "archivist", digest: str = "d1", **more: Any) -> ApprovalRequest:
    given: dict[str, Any] = {
        "agent_id": agent,
        "tool": "vault",
        "operation": "",
        "arguments": {"text": "please"},
        "reasons": ("it asks",),
        "diff": None,
        "scope": None,
        "digest": digest,
        "session_id": "session-1",
        "asks": (Ask("k1"),),
        "tool_digest": "t1",
    }
    return ApprovalRequest(**(given | more))


async def soon(work: Awaitable[T]) -> T:
    """Return the result of work that must end soon."""
    async with patient():
        return await work


def small_store(folder: Path, clock: ManualClock | None = None) -> ApprovalStore:
    return ApprovalStore(folder / "state", folder / "keys", clock=clock)
