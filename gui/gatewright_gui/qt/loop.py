"""The event loop that runs asyncio and Qt in one thread; the only module below `app` that imports qasync."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import qasync
from PySide6.QtWidgets import QApplication

T = TypeVar("T")
if TYPE_CHECKING:
    _QtLoop = asyncio.AbstractEventLoop
else:
    _QtLoop = qasync.QEventLoop


class _Loop(_QtLoop):
    """Handles nothing once it stopped. The one of qasync then handles events once more, and with them steps of tasks,
    which find no loop running and fail.
    """

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
