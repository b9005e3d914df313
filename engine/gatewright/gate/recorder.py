"""Writes audit rows for calls without stopping the event loop.

A row is committed where the call runs as long as nobody else is writing: that takes about 60 us, and going to a thread
and back would add 60 to 100 us more (measured on two cores), most of what a whole call may cost. Only when another
process or thread holds the log, so that the commit would have to wait, does it go to the one thread of this recorder;
until that thread is idle again later rows follow it there, which keeps their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from gatewright.record import renew_after_fork

if TYPE_CHECKING:
    from gatewright.gate.audit import RowBuilder

T = TypeVar("T")

Write = Callable[["RowBuilder", bool], bool]
"""Commits the rows; with False it does not wait, and answers False when it would have to. Raises AuditUnavailable."""


class Recorder:
    """The way of one gate to its audit log."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """The thread of a parent is not in its child."""
        self._waiting = 0
        self._thread: ThreadPoolExecutor | None = None

    async def __call__(self, build: RowBuilder) -> None:
        """Commit the rows, also when the caller is cancelled meanwhile; the cancellation is raised afterwards.

        Raises AuditUnavailable; the CancelledError of a cancelled caller has it as its cause.
        """
        if self._waiting == 0 and self._write(build, False):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-audit")
        self._waiting += 1
        try:
            await unbroken(asyncio.get_running_loop().run_in_executor(self._thread, self._write, build, True))
        finally:
            self._waiting -= 1


async def unbroken(future: asyncio.Future[T]) -> T:
    """What ``future`` gives, waited for to its end; a cancellation is raised when it has ended, from its exception."""
    cancelled = False
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError from future.exception()
    return future.result()
