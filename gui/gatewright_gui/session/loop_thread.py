"""A thread with an event loop of its own, for calls that must not wait for the window."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Starts with the first work. Cancelling whoever waits for work cancels the work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in the thread and wait for it beside the caller's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._ensure_loop()))

    def do(self, work: Callable[[], object]) -> None:
        """Do something short in the thread, unless it has ended."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        """Cancel what runs and end the thread; may be called twice."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join(timeout=5)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.SelectorEventLoop()
            self._thread = threading.Thread(target=_turn, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()
        return self._loop


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
