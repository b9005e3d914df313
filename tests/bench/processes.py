"""Rows "processes" and "command start": whole calls of several processes on one log, and a command from nothing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.gate import AuditLog
from gatewright_resources import folder
from tests.bench.guirow import middle
from tests.bench.measure import Effort
from tests.bench.row import Figure, Measured, Row, at_least, none_wrong, times_at_most, times_faster

_UNIT = "calls/s"
_AT_ONCE = 16
_DECIDE, _IMPORTS = "gatewright decide", "import pydantic, jsonschema"
_CALL = ("--agent", "archivist", "--tool", "file", "--args", '{"op": "load", "path": "notes/x.md"}')
_COMMAND = "from gatewright.cli.main import script; script()"


def processes(effort: Effort) -> Row:
    """Calls with their audit rows, each committed before the tool runs, by one, two and four processes."""
    seconds, rounds = (0.2, 1) if effort.quick else (2.0, 3)
    figures: dict[str, Measured] = {}
    spent: dict[str, float] = {}
    for count, at_once in ((1, 1), (2, 1), (1, _AT_ONCE)) if effort.quick else ((1, 1), (2, 1), (4, 1), (1, _AT_ONCE)):
        found = [_together(count, seconds, at_once) for _ in range(rounds)]
        name = _named(count, at_once)
        rate = middle([made / seconds for made, _, _ in found])
        figures[name] = Figure(rate, None, _UNIT, sum(wrong for _, wrong, _ in found))
        spent[name] = middle([used for _, _, used in found])
    one, two = figures[_named(1)], figures[_named(2)]
    return Row(
        "processes",
        "whole calls of a small tool, on one state folder, two commits a call",
        tuple(figures),
        figures,
        (
            at_least("one process", one, 2_500, _UNIT),
            times_faster("one process, by two", one, two, 1.6),
            none_wrong(figures, "every call is allowed and the chain holds"),
        ),
        _named(1),
        (
            f"{os.cpu_count()} processors; what else runs on them counts against more processes",
            "processor time of a call: " + ", ".join(f"{name} {used:,.0f} us" for name, used in spent.items()),
        ),
    )


def command_start(effort: Effort) -> Row:
    """A decision by the command line in a process of its own, beside one that only imports two libraries."""
    used: dict[str, list[float]] = {_DECIDE: [], _IMPORTS: []}
    wrong = 0
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        demo = Path(name, "demo")
        shutil.copytree(Path(str(folder("demo"))), demo)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(name, "compiled"))}
        environment |= {"GATEWRIGHT_KEYS": str(Path(name, "keys"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        words = {_DECIDE: ("-c", _COMMAND, "decide", str(demo), *_CALL), _IMPORTS: ("-c", _IMPORTS)}
        for turn in range(2 if effort.quick else 12):
            for contestant, line in words.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run([sys.executable, *line], check=False, capture_output=True, env=environment)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                wrong += done.returncode != 0
                if turn:  # the first of each compiled its modules
                    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    used[contestant].append(spent * 1e3)
    figures: dict[str, Measured] = {name: Figure(middle(taken), None, "ms") for name, taken in used.items()}
    figures[_DECIDE] = Figure(middle(used[_DECIDE]), None, "ms", wrong)
    return Row(
        "command start",
        "one call of the demo workspace, decided by a fresh process",
        (_DECIDE,),
        figures,
        (
            times_at_most("importing pydantic and jsonschema", figures[_DECIDE], figures[_IMPORTS], 2.5),
            none_wrong(figures, "the call is allowed"),
        ),
        _IMPORTS,
        ("processor time of the process, Python's own start included",),
    )


def _named(count: int, at_once: int = 1) -> str:
    name = f"{count} process" if count == 1 else f"{count} processes"
    return name if at_once == 1 else f"{name}, {at_once} calls at once"


def _together(count: int, seconds: float, at_once: int) -> tuple[int, int, float]:
    """How many calls so many processes made at the same time, what went wrong, and the processor time of a call."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        state, keys = Path(name, "state"), Path(name, "keys")
        line = [sys.executable, "-m", "tests.bench.processchild", str(state), str(keys), str(seconds), str(at_once)]
        running = [
            subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
        ]
        for one in running:
            assert one.stdout is not None
            one.stdout.readline()
        for one in running:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        told = [one.communicate(timeout=seconds + 60)[0].split() for one in running]
        problems = AuditLog(state, keys).verify().problems
    wrong = sum(int(wrong) for _, wrong, _ in told) + len(problems)
    return sum(int(made) for made, _, _ in told), wrong, middle([float(used) for _, _, used in told])
