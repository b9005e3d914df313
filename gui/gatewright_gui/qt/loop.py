"""The event loop that runs asyncio and Qt in one thread; the only module below `app` that imports qasync.

It does not know the application's windows or tasks.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import qasync
from PySide6.QtWidgets import QApplication

T = TypeVar("T")


def make_loop(app: QApplication) -> asyncio.AbstractEventLoop:
    """A new loop over the application's event loop; the caller closes it."""
    app.setQuitOnLastWindowClosed(False)
    make = cast(Callable[[QApplication], asyncio.AbstractEventLoop], qasync.QEventLoop)
    return make(app)


def run(app: QApplication, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` to its end with Qt alive beside it; other tasks are cancelled and awaited before it returns."""
    with asyncio.Runner(loop_factory=lambda: make_loop(app)) as runner:
        return runner.run(main())
