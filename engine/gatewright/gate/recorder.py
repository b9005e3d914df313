"""Writes audit rows for calls without stopping the event loop.

A row is committed where the call runs as long as nobody else is writing: that takes about 60 us, and going to a thread
and back would add 60 to 100 us more (measured on two cores), most of what a whole call may cost. Rows of calls that are
under way at the same time are committed together, once all of them had their turn of the loop. Only when another
process or thread holds the log, so that the commit would have to wait, does it go to the one thread of this recorder;
until that thread is idle again later rows follow it there, which keeps their order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gatewright.base import aio
from gatewright.base.thread import unbroken
from gatewright.gate.audit import AuditEntry, AuditLog, AuditUnavailable, RowBuilder
from gatewright.record.fork import renew_after_fork

T = TypeVar("T")

Write = Callable[["RowBuilder", bool], bool]
"""Commits the rows; with False it does not wait, and answers False when it would have to. Raises AuditUnavailable."""


class Recorder:
    """The way of one gate to its audit log. ``calls``: the ids of those that are under way."""

    def __init__(self, write: Write) -> None:
        self.calls: set[str] = set()
        self._write = write
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """The thread of a parent is not in its child, nor are its calls."""
        self.calls.clear()
        self._waiting = 0
        self._thread: ThreadPoolExecutor | None = None
        self._batch: _Batch | None = None

    async def __call__(self, build: RowBuilder) -> None:
        """Commit the rows, also when the caller is cancelled meanwhile; the cancellation is raised afterwards.

        Raises AuditUnavailable; the CancelledError of a cancelled caller has it as its cause.
        """
        if len(self.calls) > 1:
            loop, batch = aio.get_running_loop(), self._batch
            if batch is None or batch.loop is not loop:  # else these go along with what others write in this turn
                batch = self._batch = _Batch(loop)
                loop.call_soon(self._commit, batch)
            await unbroken(batch.add(build))
        elif self._waiting or not self._write(build, False):
            await unbroken(self._to_thread(build))

    def _commit(self, batch: _Batch) -> None:
        if self._batch is batch:
            self._batch = None
        try:
            is_written = not self._waiting and self._write(batch.rows, False)
        except Exception as error:  # noqa: BLE001 - whatever it is, the calls that wait for the commit get it
            batch.end(error)
            return
        if is_written:
            batch.end(None)
        else:
            self._to_thread(batch.rows).add_done_callback(lambda done: batch.end(done.exception()))

    def _to_thread(self, build: RowBuilder) -> aio.Future[bool]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="gatewright-audit")
        self._waiting += 1
        future = aio.get_running_loop().run_in_executor(self._thread, self._write, build, True)
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: object) -> None:
        self._waiting -= 1


class _Batch:
    """Rows of several calls of one loop for one commit. Those of a call that cannot be made are that call's failure."""

    def __init__(self, loop: aio.AbstractEventLoop) -> None:
        self.loop = loop
        self._parts: list[tuple[RowBuilder, aio.Future[None]]] = []
        self._failed: dict[int, AuditUnavailable] = {}

    def add(self, build: RowBuilder) -> aio.Future[None]:
        """Take the rows in; the answer is done when they are committed."""
        written = self.loop.create_future()
        self._parts.append((build, written))
        return written

    def rows(self, log: AuditLog) -> list[AuditEntry]:
        """The rows of all of them."""
        rows: list[AuditEntry] = []
        self._failed = {}
        for number, (build, _) in enumerate(self._parts):
            try:
                rows += build(log)
            except (ValueError, TypeError, RecursionError) as error:
                self._failed[number] = AuditUnavailable(f"a row for the audit log cannot be made: {error}")
            except AuditUnavailable as error:
                self._failed[number] = error
        return rows

    def end(self, error: BaseException | None) -> None:
        """Tell every call what became of its rows."""
        for number, (_, written) in enumerate(self._parts):
            failure = error or self._failed.get(number)
            if failure is None:
                written.set_result(None)
            else:
                written.set_exception(failure)
