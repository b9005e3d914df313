"""Where audit rows are committed: by the caller where that takes no time, else in one thread, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from gatewright.gate import AuditEntry, AuditLog
from gatewright.gate.audit import RowBuilder
from gatewright.gate.heavy import LARGE, apart
from gatewright.gate.recorder import Recorder


def no_rows(log: AuditLog) -> Sequence[AuditEntry]:
    return ()


async def test_after_a_row_that_had_to_wait_the_next_is_committed_by_the_caller_again() -> None:
    threads, is_busy = list[int](), True

    def write(build: RowBuilder, wait: bool) -> bool:
        if is_busy and not wait:
            return False
        threads.append(threading.get_ident())
        return True

    recorder = Recorder(write)
    await recorder(no_rows)
    is_busy = False
    await recorder(no_rows)
    assert (threads[0] == threading.get_ident(), threads[1] == threading.get_ident()) == (False, True)


async def test_a_row_follows_those_that_wait_though_the_log_is_free_again() -> None:
    order, is_free = list[str](), threading.Event()

    def write(build: RowBuilder, wait: bool) -> bool:
        if not wait and not is_free.is_set():
            return False
        assert is_free.wait(10)
        order.append("waited" if wait else "at once")
        return True

    recorder = Recorder(write)
    first = asyncio.create_task(recorder(no_rows))
    await asyncio.sleep(0)
    second = asyncio.create_task(recorder(no_rows))
    asyncio.get_running_loop().call_soon(is_free.set)
    await asyncio.gather(first, second)
    assert order == ["waited", "waited"]


async def test_only_what_is_large_is_worked_through_in_a_thread_of_its_own() -> None:
    assert await apart("short", threading.get_ident) == threading.get_ident()
    assert await apart("x" * LARGE, threading.get_ident) != threading.get_ident()
