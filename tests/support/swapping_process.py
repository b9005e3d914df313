"""A program that keeps exchanging a folder and a symlink to elsewhere, for tests of races; run with the folders.

`swapping` does it in a thread, as fast as it can.

In every folder that it is given, ``sub`` and ``twin`` change places, each time in one step: one is a folder, the other
the link. It swaps as fast as it can, in bursts, and between them lays anew what somebody removed and spins for as long
as a call takes, mostly with the folder as ``sub``: calls meet every moment of a swap, and some get through. It says
``swapping`` once it has begun, and how often it swapped when it is told to terminate; after a minute it ends by itself.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest

SUB, TWIN = "sub", "twin"
FILES = ("a.md", "b.md", "deep/a.md", "deep/b.md")
INSIDE = "fine\nby far\n"
AT_CWD = -100
RENAME_EXCHANGE = 2
LONGEST_S = 60.0
LONGEST_BURST = 100
CALM_S = 0.010
OFTEN = 0.8


class Terminated(BaseException):
    """The test has ended."""


def lay(folder: Path) -> None:
    """Make what is missing in the one of the two that is no link; only this program swaps, so that one stays it."""
    real = folder / (TWIN if (folder / SUB).is_symlink() else SUB)
    with suppress(OSError):
        for name in FILES:
            (real / name).parent.mkdir(parents=True, exist_ok=True)
            if not (real / name).exists():
                (real / name).write_text(INSIDE)


def exchange_of(one: Path, other: Path) -> Callable[[], bool]:
    """Return a function that exchanges two names; it returns False if the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = (AT_CWD, os.fsencode(one), AT_CWD, os.fsencode(other), RENAME_EXCHANGE)
    return lambda: rename is not None and rename(*names) == 0


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """A thread that keeps exchanging two names, each time in one step, until the end of the block."""
    exchange, done = exchange_of(one, other), threading.Event()
    if not exchange():
        pytest.skip("the file system does not exchange names in one step")

    def swap() -> None:
        while not done.is_set():
            exchange()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def swap_for_ever(folders: list[Path], count: list[int]) -> None:
    """Swap in one folder after the other; ``count`` holds the number of swaps."""
    pairs = [(folder, exchange_of(folder / SUB, folder / TWIN)) for folder in folders]
    until, dice = time.monotonic() + LONGEST_S, random.Random(7)
    while time.monotonic() < until:
        for _ in range(dice.randrange(1, LONGEST_BURST)):
            for folder, exchange in pairs:
                if exchange():
                    count[0] += 1
                else:
                    lay(folder)
        for folder, exchange in pairs:
            if (folder / SUB).is_symlink() and dice.random() < OFTEN:
                exchange()
            lay(folder)
        calm = time.monotonic() + dice.uniform(0, CALM_S)
        while time.monotonic() < calm:
            pass


def main() -> int:
    """Swap until the signal comes."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated

    folders, count = [Path(name) for name in sys.argv[1:]], [0]
    for folder in folders:
        lay(folder)
        if not exchange_of(folder / SUB, folder / TWIN)():
            print("not supported", flush=True)
            return 1
    signal.signal(signal.SIGTERM, end)
    print("swapping", flush=True)
    with suppress(Terminated):
        swap_for_ever(folders, count)
    print(count[0], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
