"""The owner of asyncio tasks: every task started by a window or a page lives and ends with one of these."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

ErrorHandler: TypeAlias = Callable[[str, BaseException], None]
T = TypeVar("T")


class TaskOwner:
    """Starts tasks, holds them so that they cannot be collected, reports what they raise, ends them.

    `on_error` gets the task's name and the exception, once for each task that fails; a cancelled task is not a failure.
    What works on what is open ends with it (`let_go`), so that no answer and no edit of it comes when it is gone.
    """

    def __init__(self, on_error: ErrorHandler) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()
        self._staying: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tasks that are under way and not asked to end, sorted."""
        return tuple(sorted(task.get_name() for task in self._tasks if not task.cancelling()))

    @property
    def closed(self) -> bool:
        """True from the first call of `close` on."""
        return self._closed

    def start(
        self, coro: Coroutine[Any, Any, T], name: str, *, replace: bool = False, stays: bool = False
    ) -> asyncio.Task[T] | None:
        """Run `coro` as a task of this owner on the running loop; return None, and run nothing, once it is closed.

        With `replace`, tasks of the same name that are under way are cancelled first (the newest question wins).
        `stays`: it asks and edits nothing of what is open, and goes on where that is let go.
        Raises RuntimeError when no loop runs; the coroutine is closed then.
        """
        if self._closed:  # a timer of a window that ends may still fire
            coro.close()
            return None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            coro.close()
            raise
        if replace:
            self.cancel(name)
        task = loop.create_task(coro, name=name)
        self._tasks.add(task)
        if stays:
            self._staying.add(task)
        task.add_done_callback(self._settle)
        return task

    def cancel(self, name: str) -> None:
        """Ask all tasks of this name to end."""
        for task in self._tasks:
            if task.get_name() == name:
                task.cancel()

    def let_go(self) -> None:
        """Ask all tasks to end but those that stay, and the one that is running: what is open is gone."""
        for task in self._tasks - self._staying - {asyncio.current_task()}:
            task.cancel()

    async def close(self) -> None:
        """Refuse new tasks, cancel the others and wait until each has ended. May be called twice, or by an own task."""
        self._closed = True
        waiting = self._tasks - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _settle(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._staying.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_error(task.get_name(), error)
