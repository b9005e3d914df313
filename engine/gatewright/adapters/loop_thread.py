"""One event loop in a daemon thread, for work that outlives the loop of whoever asks for it."""

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
    """Runs coroutines in a loop of its own; the thread begins with the first of them and ends with the process."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """A child of a fork has no thread of its parent's."""
        self._loop = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` gives or raises, awaited from any loop; whoever is cancelled here cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def run_out(self, work: Coroutine[Any, Any, T]) -> T:
        """The same; whoever is cancelled here goes on once the work has ended there, which is cancelled, too."""
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
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 it is there by then
                await asyncio.wait({waiting})
                if not waiting.cancelled():
                    waiting.exception()  # nobody asks any more
            raise

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """The same for a caller without a loop. Raises TimeoutError, and the work is cancelled then."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """The same for a caller that waits for nothing."""
        asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=LOOP_THREAD, daemon=True).start()
            return self._loop


@cache
def loop_thread() -> LoopThread:
    """The one of this process."""
    return LoopThread()


def told_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """``function``, called in ``loop`` whatever thread calls what is returned; silent once the loop is closed."""

    def tell(*args: object) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *args)

    return tell
