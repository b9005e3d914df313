"""Rooms that are kept between the processes that run in them, one for each of their users."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable

from gatewright.adapters.confine import Confiner, Room
from gatewright.policy.target import Confinement

IDLE_S = 1800.0
"""The time that a thing which nobody uses is kept; its room stays twice as long, until nothing is in it any more."""


class KeptRooms:
    """The rooms of one kind of processes, all in one loop. ``confiner`` makes them."""

    def __init__(self, confiner: Callable[[], Confiner]) -> None:
        self._confiner = confiner
        self._kept: dict[Hashable, tuple[Room, float]] = {}
        self._turn: dict[Hashable, asyncio.Lock] = {}

    @property
    def rooms(self) -> tuple[Room, ...]:
        """The rooms that are kept."""
        return tuple(room for room, _ in self._kept.values())

    async def room(self, key: Hashable, confinement: Confinement) -> Room:
        """The room of ``key``, made anew when something else is to hold; what runs in the former one ends with it."""
        async with self._turn.setdefault(key, asyncio.Lock()):
            now = time.monotonic()
            for one, (room, used_s) in [*self._kept.items()]:
                differs = room.confinement != confinement if one == key else now - used_s > 2 * IDLE_S
                if (room.is_over or differs) and self._kept.pop(one, None) is not None:
                    await room.close()
            room = self._kept[key][0] if key in self._kept else await self._confiner().room(confinement)
            self._kept[key] = room, now
            return room

    async def close(self) -> None:
        """End every room with all that runs in it."""
        while self._kept:
            await self._kept.popitem()[1][0].close()
