"""Work that outlives its waiter: in a daemon thread of its own, or to its end."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

from gatewright.base import aio

P = ParamSpec("P")
T = TypeVar("T")


def in_own_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> aio.Future[T]:
    """Run ``function`` in a new thread, in the caller's context. Whoever cancels the future only stops waiting."""
    loop = aio.get_running_loop()
    future: aio.Future[T] = loop.create_future()
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)

    def work() -> None:
        try:
            tell = partial(future.set_result, call())
        except BaseException as error:  # noqa: BLE001 the waiter raises it
            kind = type(error)  # a future refuses StopIteration
            is_fit = issubclass(kind, Exception) and not issubclass(kind, StopIteration)
            raised = error if is_fit else RuntimeError(kind.__name__)
            tell = partial(future.set_exception, raised)
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(lambda: None if future.done() else tell())

    threading.Thread(target=work, name="gatewright-work", daemon=True).start()
    return future


async def unbroken(future: aio.Future[T]) -> T:
    """Wait for ``future`` to its end and return its result; raise a cancellation only then, from its exception."""
    cancelled = False
    while not future.done():
        try:
            await aio.wait({future})
        except aio.CancelledError:
            cancelled = True
    if cancelled:
        raise aio.CancelledError from future.exception()
    return future.result()
