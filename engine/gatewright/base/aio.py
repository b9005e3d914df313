"""What the engine takes of asyncio, loaded at the first use: a decision needs none of it, and it brings TLS with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from asyncio import (
        AbstractEventLoop,
        CancelledError,
        Future,
        Semaphore,
        TaskGroup,
        ensure_future,
        get_running_loop,
        run,
        shield,
        sleep,
        timeout,
        to_thread,
        wait,
    )

__all__ = [
    "AbstractEventLoop",
    "CancelledError",
    "Future",
    "Semaphore",
    "TaskGroup",
    "ensure_future",
    "get_running_loop",
    "run",
    "shield",
    "sleep",
    "timeout",
    "to_thread",
    "wait",
]

door(
    __name__,
    {
        "asyncio": (
            "AbstractEventLoop",
            "CancelledError",
            "Future",
            "Semaphore",
            "TaskGroup",
            "ensure_future",
            "get_running_loop",
            "run",
            "shield",
            "sleep",
            "timeout",
            "to_thread",
            "wait",
        )
    },
)
