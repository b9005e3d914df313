"""Patience ends where nothing moves and where something computes without end, and nowhere else."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from gatewright_gui.app.patience import Patience
from tests.support.patience import InVainError, in_time, main, pace, patient, pause_until, until

ENDLESS = "while True: pass"
BELOW = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ENDLESS!r}])"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python in a group of processes of its own, all of which are ended."""
    groups: list[subprocess.Popen[bytes]] = []

    def begin(code: str, nice: int = 0) -> "subprocess.Popen[bytes]":
        groups.append(subprocess.Popen(["nice", "-n", str(nice), sys.executable, "-c", code], process_group=0))
        return groups[-1]

    yield begin
    for group in groups:
        os.killpg(group.pid, 9)
        group.wait()


def end_of(patience: Patience) -> str:
    pause = threading.Event()
    while not patience.is_over:
        pause.wait(0.01)
    return patience.vain.partition(" s ")[2]


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "import sys; sys.stdin.read()", "input()"])
def test_a_wait_in_which_all_sleep_is_in_vain(start: Start, code: str) -> None:
    assert end_of(Patience(0.5, 60.0, start(code).pid)) == "with nothing moving"


@pytest.mark.parametrize("code", [ENDLESS, BELOW])
def test_what_computes_without_end_is_in_vain_once_it_computed_enough(start: Start, code: str) -> None:
    assert end_of(Patience(5.0, 1.0, start(code).pid)) == "of computing"


def test_what_others_keep_from_the_processor_is_waited_for(start: Start) -> None:
    for _ in range(2 * (os.cpu_count() or 1)):
        start(ENDLESS)

    assert end_of(Patience(1.0, 0.1, start(ENDLESS, nice=5).pid)) == "of computing"


async def test_waiting_says_what_did_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience.__init__, "__defaults__", (0.3, 60.0, None))

    with pytest.raises(InVainError, match=r"in vain for the moon: \d+ s with nothing moving"):
        await until(lambda: False, "the moon")
    with pytest.raises(InVainError, match="in vain for the sun"):
        pause_until(lambda: False, "the sun")
    with pytest.raises(TimeoutError):
        async with patient():
            await asyncio.Event().wait()


def test_command_that_moves_has_the_status_that_it_ends_with() -> None:
    assert main([sys.executable, "-c", "raise SystemExit(3)"]) == 3


def test_pace_is_never_better_than_that_of_the_figures() -> None:
    assert 1.0 <= pace() < 100.0
    assert in_time(0.9, 1.0)
    assert not in_time(100.0, 1.0)
