"""Where audit rows are committed: by the caller where that takes no time, else in one thread, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from gatewright import Gate, Policy, ToolRegistry, tool
from gatewright.gate import AuditEntry, AuditLog, Log, RowKind
from gatewright.gate.call import Recorder
from gatewright.gate.port import AuditUnavailable, RowBuilder
from gatewright.gate.scrub import LARGE, apart, is_large
from gatewright.policy.document import Agent
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType


def no_rows(log: Log) -> Sequence[AuditEntry]:
    return ()


def one_row(log: Log) -> Sequence[AuditEntry]:
    return (AuditEntry(RowKind.TOOL_COMPLETED),)


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
        assert is_free.wait()
        order.extend(row.call_id for row in build(cast("Log", None)))
        return True

    recorder = Recorder(write)
    first = asyncio.create_task(recorder(lambda _: (AuditEntry(RowKind.TOOL_COMPLETED, "first"),)))
    await asyncio.sleep(0)
    second = asyncio.create_task(recorder(lambda _: (AuditEntry(RowKind.TOOL_COMPLETED, "second"),)))
    asyncio.get_running_loop().call_soon(is_free.set)
    await asyncio.gather(first, second)
    assert order == ["first", "second"]


async def test_rows_of_calls_that_are_under_way_together_are_committed_together() -> None:
    commits = list[int]()

    def write(build: RowBuilder, wait: bool) -> bool:
        commits.append(len(build(cast("Log", None))))
        return True

    recorder = Recorder(write)
    recorder.calls.update("abc")
    await asyncio.gather(*(recorder(one_row) for _ in range(3)))
    await recorder(one_row)
    assert commits == [3, 1]


async def test_what_waits_for_the_log_together_goes_to_the_thread_together() -> None:
    commits = list[tuple[int, bool]]()

    def write(build: RowBuilder, wait: bool) -> bool:
        if wait:
            commits.append((len(build(cast("Log", None))), threading.get_ident() == here))
        return wait

    here, recorder = threading.get_ident(), Recorder(write)
    recorder.calls.update("ab")
    await asyncio.gather(recorder(one_row), recorder(one_row))
    assert commits == [(2, False)]


async def test_what_comes_while_rows_are_committed_shares_the_next_commit_up_to_64() -> None:
    commits, is_free = list[int](), threading.Event()

    def write(build: RowBuilder, wait: bool) -> bool:
        if wait:
            assert is_free.wait()
            commits.append(len(build(cast("Log", None))))
        return wait

    recorder = Recorder(write)
    waiting = [asyncio.create_task(recorder(one_row))]
    for _ in range(100):
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(recorder(one_row)))
    await asyncio.sleep(0)
    is_free.set()
    await asyncio.gather(*waiting)
    assert commits == [1, 64, 36]


async def test_a_row_that_cannot_be_made_fails_its_own_call_alone_and_a_failed_commit_all_of_them() -> None:
    is_full = False

    def write(build: RowBuilder, wait: bool) -> bool:
        rows = build(cast("Log", None))
        if is_full:
            raise AuditUnavailable("the disk is full")
        committed.extend(rows)
        return True

    def broken(log: Log) -> Sequence[AuditEntry]:
        raise ValueError("no text")

    committed, recorder = list[AuditEntry](), Recorder(write)
    recorder.calls.update("abc")
    ends = await asyncio.gather(recorder(one_row), recorder(broken), recorder(one_row), return_exceptions=True)
    assert [type(end) for end in ends] == [type(None), AuditUnavailable, type(None)]
    assert len(committed) == 2
    is_full = True
    ends = await asyncio.gather(recorder(one_row), recorder(one_row), return_exceptions=True)
    assert [str(end) for end in ends] == ["the disk is full"] * 2


async def test_each_of_many_calls_at_once_is_in_the_log_before_it_runs_and_the_chain_holds(tmp_path: Path) -> None:
    seen = list[bool]()

    @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
    async def look(number: int) -> str:
        """Look.

        Args:
            number: Which.
        """
        invoked = [row for row in log.rows() if row.kind == "ToolInvoked" and f'"number":{number}}}' in row.body]
        seen.append(len(invoked) == 1)
        return str(number)

    registry = ToolRegistry()
    registry.register(look)
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    gate = Gate(Policy(agents={"a": Agent("a", tools=("look",))}), registry, audit=log)
    outcomes = await asyncio.gather(*(gate.call("a", "look", {"number": number}) for number in range(20)))
    assert [outcome.output for outcome in outcomes] == [str(number) for number in range(20)]
    assert seen == [True] * 20
    report = log.verify()
    assert (report.problems, report.unended) == ((), ())
    log.close()


async def test_only_what_is_large_is_worked_through_in_a_thread_of_its_own() -> None:
    assert await apart(is_large("short"), threading.get_ident) == threading.get_ident()
    assert await apart(is_large("x" * LARGE), threading.get_ident) != threading.get_ident()
