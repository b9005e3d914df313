"""One event loop in a daemon thread, for work that outlives the loop of its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from gatewright.record.process import fork_safe_lock, renew_after_fork

LOOP_THREAD = "gatewright-loop"
T = TypeVar("T")


class LoopThread:
    """A loop for coroutines in its own thread, which begins with the first of them and ends with the process."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """Start afresh in the child of a fork, which lacks its parent's thread."""
        self._loop = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` from any loop and return its result; cancelling the wait cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def run_out(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` like `run`; a cancelled waiter goes on only after the cancelled work has ended."""
        loop, done, tasks = self._running(), Future[T](), list[asyncio.Task[T]]()

        def begin() -> None:
            tasks.append(loop.create_task(work))
            tasks[0].add_done_callback(end)

        def end(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                done.cancel()
            elif (error := task.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(task.result())

        loop.call_soon_threadsafe(begin)
        waiting = asyncio.wrap_future(done)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not waiting.done():
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 the task exists by then
                await asyncio.wait({waiting})
                if not waiting.cancelled():
                    waiting.exception()  # nobody asks for it
            raise

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Wait for ``work`` without a loop. Raises TimeoutError, and then cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin ``work`` without waiting for it."""
        asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=LOOP_THREAD, daemon=True).start()
            return self._loop


@cache
def loop_thread() -> LoopThread:
    """Return the loop thread of this process."""
    return LoopThread()


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``function`` so that any thread may call it and ``loop`` runs it; calls after the loop's end do nothing."""

    def tell(*args: object) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *args)

    return tell
