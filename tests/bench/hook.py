"""Row "hook": a call asked of the resident gate, beside a Python that starts and does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.measure import Effort, figure, quiet
from tests.bench.row import Figure, Measured, Row, at_most
from tests.engine.hooks.world import HookWorld

BARE, CLIENT, CALL, FIRST, MORE = "Python alone", "client alone", "hook", "first of the day", "hook, more than Python"
_PYTHON = (sys.executable, "-I", "-S")


def hook(effort: Effort) -> Row:
    """From the start of the client to its end, by the clock, in turns with a bare Python; the gate is there already."""
    with TemporaryDirectory() as top, TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        world = HookWorld(Path(top), Path(run))
        try:
            figures = _measured(world, 5 if effort.quick else 300)
        finally:
            world.end()
    more = figures[MORE]
    bars = (
        at_most(MORE, more, 5_000),
        at_most(f"{MORE}, p99", Figure(more.p99 or 0.0), 20_000),
        at_most(FIRST, figures[FIRST], 800_000),
        at_most(f"{CLIENT}, beside {BARE}", Figure(figures[CLIENT].median / figures[BARE].median, None, "x"), 1.5, "x"),
    )
    shown: dict[str, Measured] = {**figures}
    work = "`Read` of Claude Code, allowed and recorded, with a log on disk"
    note = "by the clock: what else runs counts against it"
    return Row("hook", work, (CALL, FIRST, CLIENT), shown, bars, BARE, (note,))


def _measured(world: HookWorld, count: int) -> dict[str, Figure]:
    words = world.words()
    took: dict[str, list[int]] = {BARE: [], CLIENT: [], CALL: [], FIRST: []}
    more = list[int]()
    took[FIRST].append(_took(words, _message(world, "first"), world))
    with quiet():
        for number in range(count):
            took[BARE].append(_took((*_PYTHON, "-c", "pass"), b"", world))
            took[CLIENT].append(_took((*words[:4], "nobody"), b"", world))
            took[CALL].append(_took(words, _message(world, f"t{number}"), world))
            more.append(took[CALL][-1] - took[BARE][-1])
    return {name: figure(found) for name, found in took.items()} | {MORE: figure(more)}


def _message(world: HookWorld, call_id: str) -> bytes:
    return world.message("PreToolUse", "Read", {"file_path": "a.txt"}, call_id)


def _took(words: tuple[str, ...], message: bytes, world: HookWorld) -> int:
    began = time.perf_counter_ns()
    done = subprocess.run(words, input=message, capture_output=True, check=False, env=world.environment, cwd=os.sep)
    took = time.perf_counter_ns() - began
    if words[-1] not in {"pass", "nobody"}:
        assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "allow", done
    return took
