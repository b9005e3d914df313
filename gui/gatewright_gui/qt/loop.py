"""The event loop that runs asyncio and Qt in one thread; the only module below `app` that imports qasync."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

import qasync
from PySide6.QtWidgets import QApplication

T = TypeVar("T")
if TYPE_CHECKING:
    _QtLoop = asyncio.AbstractEventLoop
else:
    _QtLoop = qasync.QEventLoop


class _Turn:
    """Something that the loop has to do, in its turn, as the timer of qasync knows it.

    Where a task has Qt handle events, the turn of another one comes within its step: asyncio would refuse that, and the
    other would never go on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: asyncio.Handle) -> None:
        self._loop, self._handle = loop, handle

    @property
    def _cancelled(self) -> bool:
        return self._handle.cancelled()

    def _run(self) -> None:
        outer = asyncio.current_task(self._loop)
        if outer is None:
            self._handle._run()
            return
        asyncio.tasks._leave_task(self._loop, outer)
        try:
            self._handle._run()
        finally:
            asyncio.tasks._enter_task(self._loop, outer)


class _Loop(_QtLoop):
    """Handles nothing once it stopped. The one of qasync then handles events once more, and with them steps of tasks,
    which find no loop running and fail.
    """

    def _add_callback(self, handle: asyncio.Handle, delay: float = 0) -> asyncio.Handle:
        cast("Any", super())._add_callback(_Turn(self, handle), delay)
        return handle

    def run_until_complete(self, future: Any) -> Any:
        """Run until `future` is done; its result. Raises RuntimeError where the loop is stopped before."""
        wanted: asyncio.Future[Any] = asyncio.ensure_future(future, loop=self)

        def stop(_done: object) -> None:
            self.stop()

        wanted.add_done_callback(stop)
        try:
            self.run_forever()
        finally:
            wanted.remove_done_callback(stop)
        if not wanted.done():
            raise RuntimeError("the event loop was stopped before its work was done")
        return wanted.result()


def make_loop(app: QApplication) -> asyncio.AbstractEventLoop:
    """A new loop over the application's event loop; the caller closes it."""
    app.setQuitOnLastWindowClosed(False)
    make: Any = _Loop
    return make(app)


def run(app: QApplication, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` to its end with Qt alive beside it; other tasks are cancelled and awaited before it returns."""
    with asyncio.Runner(loop_factory=lambda: make_loop(app)) as runner:
        return runner.run(main())
