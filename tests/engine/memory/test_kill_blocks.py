"""Killing a program in the middle of edits.

The long form, some minutes: ``GATEWRIGHT_KILLS=500`` in the environment.
"""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from gatewright.blocks.schema import SetField
from gatewright.memory import BlockService
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Action
from tests.support.block_worker import LABEL, OWNER, SCHEMA, digest

KILLS = int(os.environ.get("GATEWRIGHT_KILLS", "60"))


def test_what_was_acknowledged_survives_every_kill_and_nothing_else_appears(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    with BlockStore(path) as store:
        BlockService(store, owner=OWNER).create(LABEL, SCHEMA, author="operator")
    dice = random.Random(7)
    last = 1
    command = [sys.executable, "-m", "tests.support.block_worker", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        for turn in range(KILLS):
            worker.stdin.write(f"{turn}\n")
            worker.stdin.flush()
            child = 0
            acknowledged: dict[int, str] = {}
            stop_after = dice.randrange(1, 7)
            for line in worker.stdout:
                if line == "ended\n":
                    break
                first, second = line.split()
                if first == "pid":
                    child = int(second)
                else:
                    acknowledged[int(first)] = second
                if child and len(acknowledged) == stop_after:
                    os.kill(child, signal.SIGKILL)
            assert len(acknowledged) >= stop_after
            last = check(path, last, acknowledged)
        worker.stdin.close()


def check(path: Path, before: int, acknowledged: dict[int, str]) -> int:
    """The number of the last step, when everything acknowledged is there and at most one step more."""
    with BlockStore(path) as store:
        service = BlockService(store, owner=OWNER)
        steps = service.history(LABEL, limit=100_000)
        numbers = [step.number for step in steps]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert list(acknowledged) == list(range(before + 1, before + 1 + len(acknowledged)))
        assert numbers[-1] - max(acknowledged) in {0, 1}
        for number, wanted in acknowledged.items():
            assert digest(service.value_at(LABEL, number)) == wanted
        assert digest(service.value(LABEL)) == digest(service.value_at(LABEL, numbers[-1]))
        step = service.edit(
            LABEL, SetField("n", max(acknowledged) + 100, "m"), author="operator", granted=Action.OVERWRITE
        ).step
        assert step is not None
        return step.number
