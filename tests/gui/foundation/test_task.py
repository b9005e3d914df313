"""The owner of tasks."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from gatewright_gui.qt.task import TaskOwner
from tests.support.patience import patient

T = TypeVar("T")


class Reports:
    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException]] = []
        self.arrived = asyncio.Event()

    def __call__(self, name: str, error: BaseException) -> None:
        self.seen.append((name, error))
        self.arrived.set()


async def forever() -> None:
    await asyncio.Event().wait()


def begun_by(owner: TaskOwner, coro: Coroutine[Any, Any, T], name: str, *, replace: bool = False) -> asyncio.Task[T]:
    task = owner.start(coro, name, replace=replace)
    assert task is not None
    return task


async def test_exception_of_a_task_is_reported_once_with_its_name() -> None:
    reports = Reports()
    owner = TaskOwner(reports)

    async def fail() -> None:
        raise ValueError("broken")

    owner.start(fail(), "derive")
    async with patient():
        await reports.arrived.wait()
    assert [(name, str(error)) for name, error in reports.seen] == [("derive", "broken")]
    assert owner.names == ()
    await owner.close()


async def test_base_exception_of_a_library_is_reported_too() -> None:
    reports = Reports()
    owner = TaskOwner(reports)

    class Panic(BaseException): ...

    async def fail() -> None:
        raise Panic

    owner.start(fail(), "merge")
    async with patient():
        await reports.arrived.wait()
    assert isinstance(reports.seen[0][1], Panic)
    await owner.close()


async def test_close_cancels_and_waits_until_clean_up_is_done() -> None:
    owner = TaskOwner(Reports())
    cleaned: list[str] = []
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await forever()
        finally:
            await asyncio.to_thread(cleaned.append, "done")

    task = begun_by(owner, work(), "work")
    await begun.wait()
    await owner.close()
    assert task.cancelled()
    assert cleaned == ["done"]
    assert owner.names == ()


async def test_cancelled_task_is_no_failure() -> None:
    reports = Reports()
    owner = TaskOwner(reports)
    task = begun_by(owner, forever(), "wait")
    owner.cancel("wait")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reports.seen == []
    await owner.close()


async def test_newest_task_of_a_name_replaces_the_one_before() -> None:
    owner = TaskOwner(Reports())
    first = begun_by(owner, forever(), "derive")
    other = begun_by(owner, forever(), "overlay")
    second = begun_by(owner, forever(), "derive", replace=True)
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not second.done()
    assert not other.done()
    await owner.close()


async def test_closed_owner_runs_no_new_task() -> None:
    owner = TaskOwner(Reports())
    await owner.close()
    assert owner.start(forever(), "late") is None
    assert owner.names == ()


def test_closed_owner_needs_no_loop_to_refuse() -> None:
    owner = TaskOwner(Reports())
    asyncio.run(owner.close())
    assert owner.start(forever(), "late") is None


async def test_owner_can_be_closed_by_one_of_its_tasks() -> None:
    owner = TaskOwner(Reports())
    other = begun_by(owner, forever(), "other")
    await begun_by(owner, owner.close(), "quit")
    assert other.cancelled()


def test_no_task_starts_without_a_loop() -> None:
    owner = TaskOwner(lambda _name, _error: None)
    with pytest.raises(RuntimeError):
        owner.start(forever(), "early")


async def test_result_of_a_task_can_be_awaited() -> None:
    owner = TaskOwner(Reports())

    async def answer() -> int:
        return 42

    assert await begun_by(owner, answer(), "ask") == 42
    await owner.close()
