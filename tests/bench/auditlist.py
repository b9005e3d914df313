"""Row "audit list": calls found in a log of a million rows, as the page Audit and ``audit list`` find them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gatewright.gate import AuditFilter, AuditIndex
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Row, at_most
from tests.support.logged_calls import BEGIN_S, fill_log

_FIRST, _WHOLE, _FILTER, _PAGE, _COUNTS = (
    "the newest calls, from nothing",
    "the whole log",
    "a filter of agent, verdict and words",
    "a page of 100 calls in the middle",
    "the counts of the timeline",
)


def audit_list(effort: Effort) -> Row:
    """What reading takes, in milliseconds of processor time; writing a row costs nothing more for it (row "audit")."""
    calls, rounds = (1_000, 2) if effort.quick else (333_333, 15)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        state = Path(name, "state")
        fill_log(state, Path(name, "keys"), calls)
        with quiet():
            figures: dict[str, Measured] = {_FIRST: _timed(lambda: _first_page(state), rounds)}
            index = AuditIndex(state)
            figures[_WHOLE] = _timed(lambda: _read(index), 1)
            wanted = AuditFilter(agent="archivist", verdict="deny", words=("read",))
            found = index.numbers(AuditFilter())
            middle = found[len(found) // 2 :][:100]
            wrong = abs(len(index.numbers(wanted)) - calls // 33)
            figures[_FILTER] = _timed(lambda: index.numbers(wanted), rounds, wrong)
            figures[_PAGE] = _timed(lambda: index.calls(middle), rounds)
            figures[_COUNTS] = _timed(lambda: index.counts(wanted, BEGIN_S, 86_400), rounds)
        index.close()
    return Row(
        "audit list",
        f"{3 * calls + 1:,} rows of {calls:,} calls, read in a thread by SQLite alone",
        (_FIRST, _WHOLE, _FILTER, _PAGE, _COUNTS),
        figures,
        (
            at_most(_FIRST, figures[_FIRST], 100, "ms"),
            at_most(_FILTER, figures[_FILTER], 200, "ms"),
            at_most(_PAGE, figures[_PAGE], 16, "ms"),
        ),
        None,
    )


def _first_page(state: Path) -> None:
    index = AuditIndex(state)
    index.read_older(9_000)
    index.calls(index.numbers(AuditFilter())[:100])
    index.close()


def _read(index: AuditIndex) -> None:
    while index.read_older():
        pass


def _timed(work: Callable[[], object], rounds: int, wrong: int | None = None) -> Figure:
    times: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append((time.process_time() - begin) * 1e3)
    return Figure(sorted(times)[len(times) // 2], None, "ms", wrong)
