"""Row "start": how long the app takes from nothing to the painted demo, and what it holds then."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.workspace import write_demo
from tests.bench.guirow import child, middle
from tests.bench.measure import Effort
from tests.bench.row import Figure, Measured, Row, at_most, times_at_most

_APP, _EMPTY = "gatewright, demo shown", "QtWidgets and an empty window"
_PARTS = {_APP: "app", _EMPTY: "empty"}
_MEMORY_MIB = 150e6 / 2**20


def start(effort: Effort) -> Row:
    """From the start of the process to the first painting with tools in it, in turns with an empty window."""
    used: dict[str, list[float]] = {name: [] for name in _PARTS}
    clock: dict[str, list[float]] = {name: [] for name in _PARTS}
    memory = 0.0
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        demo = str(write_demo(Path(name, "demo")))
        compiled = None if effort.quick else Path(name, "compiled")
        for turn in range(1 if effort.quick else 8):
            for contestant, part in _PARTS.items():
                began = time.time_ns()
                found = child(part, demo, compiled=compiled)
                if turn == 0 and compiled is not None:
                    continue  # it compiled the modules
                clock[contestant].append((found["done_ns"] - began) / 1e6)
                used[contestant].append(found["processor_ns"] / 1e6)
                if contestant == _APP:
                    memory = max(memory, found["memory_kib"] / 1024)
    figures: dict[str, Measured] = {name: Figure(middle(taken), None, "ms") for name, taken in used.items()}
    figures |= {f"({name}, by the clock)": Figure(middle(taken), None, "ms") for name, taken in clock.items()}
    figures["memory"] = Figure(memory, None, "MiB")
    return Row(
        "start",
        "the demo is opened and shown, with nothing kept from an earlier start",
        (_APP, "memory"),
        figures,
        (
            times_at_most("an empty window", figures[_APP], figures[_EMPTY], 2.5),
            at_most("memory", figures["memory"], _MEMORY_MIB, "MiB"),
        ),
        _EMPTY,
        ("processor time of the process, all threads; modules were compiled by an earlier start",),
    )
