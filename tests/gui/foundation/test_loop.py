"""The loop that runs asyncio and Qt together."""

import asyncio
from asyncio import events

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from gatewright_gui.qt.loop import run
from tests.support.patience import patient, pause_until


def test_qt_and_asyncio_run_side_by_side_until_main_returns(qapp: QApplication) -> None:
    seen: list[str] = []

    async def main() -> str:
        fired = asyncio.Event()
        QTimer.singleShot(0, fired.set)
        async with patient():
            await fired.wait()
        seen.append(await asyncio.to_thread(str, "from a thread"))
        return "done"

    assert run(qapp, main) == "done"
    assert seen == ["from a thread"]


def test_tasks_left_over_are_cancelled_before_run_returns(qapp: QApplication) -> None:
    ended: list[str] = []

    async def left_over() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(left_over())
        await asyncio.sleep(0)
        return task

    assert run(qapp, main).cancelled()
    assert ended == ["cleaned"]


def test_a_task_goes_on_though_another_one_handles_events_meanwhile(qapp: QApplication) -> None:
    """The step of one task comes within that of another, as with a dialog that one waits for, or a drag."""
    steps: list[str] = []

    async def other() -> None:
        steps.append("begun")
        await asyncio.sleep(0)
        steps.append(await asyncio.to_thread(str, "ended"))

    async def main() -> None:
        outer, task = asyncio.current_task(), asyncio.create_task(other())
        pause_until(lambda: qapp.processEvents() or "begun" in steps)
        assert asyncio.current_task() is outer
        async with patient():
            await task

    run(qapp, main)
    assert steps == ["begun", "ended"]


def test_nothing_runs_without_the_loop_once_main_returned(qapp: QApplication) -> None:
    ran_in_loop: list[bool] = []

    def step() -> None:
        ran_in_loop.append(events._get_running_loop() is not None)
        loops[0].call_soon(step)

    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        step()
        await asyncio.sleep(0)

    run(qapp, main)
    assert all(ran_in_loop)
