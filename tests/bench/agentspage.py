"""Rows "agents page" and "one tick": the window on a large policy."""

from __future__ import annotations

from tests.bench.guirow import child, in_ms
from tests.bench.measure import Effort
from tests.bench.row import Figure, Measured, Row, at_most, p99_at_most
from tests.support.largeworkspace import AGENTS, LIMITED, TOOLS

_BARS = (("show", 200), ("switch agent", 50), ("tick", 16), ("scroll the tree", 16))
_MATRIX = (("open the matrix", 200), ("scroll the matrix down", 16), ("scroll the matrix sideways", 16))
_ALL, _PIECE = "all current", "longest piece in the window's thread"
_TICK = {
    _ALL: "all current",
    "(preview and usage rules)": "preview",
    "(tokens)": "preview.tokens",
    "(problems)": "upkeep",
    "(what each provider takes, not in the bar)": "preview.providers",
    "(processor, the window)": "processor",
    "(processor, the worker process)": "worker processor",
    _PIECE: "longest piece",
}
_LARGE_PIECE = f"{_PIECE}, {AGENTS} agents x {TOOLS:,} tools"
_TICKED, _TICKED_QUICK = (20, 300, 0.33), (4, 20, LIMITED)
"""Agents, tools, the share of its tools that an agent has a rule for: about 1,000 rules."""
_MEMORY = {"(memory, the window)": "memory_kib", "(memory, the worker process)": "worker_memory_kib"}


def agents_page(effort: Effort) -> Row:
    """Processor time of the window's thread, painting included."""
    found = child("page", *_words(effort))
    figures: dict[str, Measured] = {name: in_ms(taken) for name, taken in found.items()}
    return Row(
        "agents page",
        _workload(effort),
        tuple(figures),
        figures,
        tuple(at_most(name, figures[name], limit, "ms") for name, limit in (*_BARS, *_MATRIX)),
        notes=("the window's own thread alone: what is worked out beside it is not counted",),
    )


def one_tick(effort: Effort) -> Row:
    """From the space bar until preview, usage rules, tokens and problems are those of the new policy."""
    agents, tools, limited = _TICKED_QUICK if effort.quick else _TICKED
    found = child("tick", str(agents), str(tools), str(limited))
    figures: dict[str, Measured] = {name: in_ms(found[key]) for name, key in _TICK.items()}
    if not effort.quick:
        figures[_LARGE_PIECE] = in_ms(child("tick", str(AGENTS), str(TOOLS), str(LIMITED))["longest piece"])
    figures |= {name: Figure(found[key][0] / 1024, None, "MiB") for name, key in _MEMORY.items()}
    return Row(
        "one tick",
        f"{agents} agents x {tools} tools x 8 operations",
        tuple(figures),
        figures,
        (
            at_most(_ALL, figures[_ALL], 250, "ms"),
            p99_at_most(_PIECE, figures[_PIECE], 16, "ms"),
            *(p99_at_most(name, one, 50, "ms") for name, one in figures.items() if name == _LARGE_PIECE),
        ),
        notes=(
            "by the clock, so a busy machine shows; painting included, and the self-check that begins again each time",
            "a piece: what the thread computes without looking at events again, several small ones may count as one",
        ),
    )


def _words(effort: Effort) -> tuple[str, ...]:
    return ("--quick",) if effort.quick else ()


def _workload(effort: Effort) -> str:
    return "4 agents x 20 tools x 8 operations" if effort.quick else "200 agents x 1,000 tools x 8 operations"
