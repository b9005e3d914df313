"""The asyncio module, loaded at its first use: it brings TLS with it, and a decision runs without it."""

# ruff: noqa: F401
# pyright: reportUnusedImport=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import (
        AbstractEventLoop,
        CancelledError,
        Future,
        Semaphore,
        TaskGroup,
        current_task,
        ensure_future,
        get_running_loop,
        run,
        shield,
        sleep,
        timeout,
        to_thread,
        wait,
    )
else:

    def __getattr__(name: str) -> object:
        import asyncio

        found = globals()[name] = getattr(asyncio, name)
        return found
