"""Rows "decision" and "growth": may this agent call this operation of this tool."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

from gatewright.gate import Gate
from gatewright.policy.verdict import Verdict
from tests.bench import peers
from tests.bench.matrix import Matrix, gate_of, matrix, plain_dict, wrong_answers
from tests.bench.measure import Ask, Effort, Triple, race
from tests.bench.row import Bar, Figure, Measured, Missing, Row, at_most, none_wrong, times_at_most, times_faster

DICT = "dict of frozensets"
_LIMIT_PEERS = (peers.REGORUS, peers.CEDAR, peers.CASBIN, peers.EVALUATOR)


def asking(gate: Gate) -> tuple[str, Ask]:
    """How a decision is asked for, and what it is called."""
    check: Ask | None = getattr(gate, "check", None)
    if check is not None:
        return "Gate.check", check

    def ask(agent: str, tool: str, operation: str) -> Verdict:
        compiled = gate.snapshot().agent(agent)
        right = compiled.rights.get(tool) if compiled is not None else None
        rows = right.operations if right is not None else ()
        return next((row.verdict for row in rows if row.operation == operation), Verdict.DENY)

    return "rights of the snapshot", ask


def decision(effort: Effort) -> Row:
    """The operation gate beside a bare dict and beside other libraries."""
    truth = matrix(8 if effort.quick else 200)
    queries = truth.queries(effort.calls)
    ours, ask = asking(gate_of(truth))
    figures: dict[str, Measured] = dict(_raced({ours: ask, DICT: plain_dict(truth)}, truth, queries, effort))
    slow, absent = _peers(truth, effort)
    figures |= absent
    figures |= _raced(slow, truth, queries, effort) if slow else {}
    memory = Figure(_bytes_per_rule(truth), None, "bytes")
    figures["memory of a compiled agent-tool rule"] = memory
    return Row(
        "decision",
        f"{len(truth.agents)} agents x {len(truth.tools)} tools x 6 operations, {truth.rules:,} agent-tool rules",
        (ours, "memory of a compiled agent-tool rule"),
        figures,
        (
            times_at_most("bare dict", figures[ours], figures[DICT], 3),
            *(times_faster(name, figures[ours], figures[name], 10) for name in _LIMIT_PEERS),
            at_most("memory of a rule", memory, 100, "bytes"),
            none_wrong(figures),
        ),
        DICT,
        ("memory is what compiling and asking every rule once adds, shared between all rules",),
    )


def growth(effort: Effort) -> Row:
    """The same question as the policy grows."""
    sizes = (2, 4, 8) if effort.quick else (20, 200, 2_000)
    figures: dict[str, Measured] = {}
    for agents in sizes:
        figures |= _at_size(agents, effort)
    ours = tuple(name for name in figures if not name.startswith(DICT))
    first, last = figures[ours[0]], figures[ours[-1]]
    return Row(
        "growth",
        f"{', '.join(f'{n:,}' for n in sizes)} agents x 60 tools x 6 operations",
        ours,
        figures,
        (
            times_at_most(f"{sizes[0]:,} -> {sizes[-1]:,} agents", last, first, 4),
            at_most(f"{sizes[-1]:,} agents", last, 5),
            _dict_growth([figures[f"{DICT}, {agents:,} agents"] for agents in (sizes[0], sizes[-1])]),
            none_wrong(figures),
        ),
    )


def _at_size(agents: int, effort: Effort) -> dict[str, Figure]:
    truth = matrix(agents)
    ours, ask = asking(gate_of(truth))
    found = _raced({ours: ask, DICT: plain_dict(truth)}, truth, truth.queries(effort.calls), effort)
    return {f"{name}, {agents:,} agents": one for name, one in found.items()}


def _dict_growth(found: list[Measured]) -> Bar:
    return replace(times_at_most("(a bare dict itself)", found[1], found[0], float("inf")), text="(a bare dict itself)")


def _peers(truth: Matrix, effort: Effort) -> tuple[dict[str, Ask], dict[str, Missing]]:
    made: dict[str, Ask] = {}
    absent: dict[str, Missing] = {}
    for name, make in peers.DECIDERS.items():
        if not effort.peers:
            absent[name] = Missing("peer left out")
            continue
        try:
            made[name] = make(truth)
        except ImportError:
            absent[name] = Missing()
        except Exception as error:  # noqa: BLE001 another release of somebody else's library
            absent[name] = Missing(f"peer failed: {type(error).__name__}: {error}"[:120])
    return made, absent


def _raced(contestants: dict[str, Ask], truth: Matrix, queries: list[Triple], effort: Effort) -> dict[str, Figure]:
    """Answers compared with the truth first, which warms everybody up; then the race."""
    wrong = {name: wrong_answers(truth, ask, queries) for name, ask in contestants.items()}
    return {name: replace(found, wrong=wrong[name]) for name, found in race(contestants, queries, effort).items()}


def _bytes_per_rule(truth: Matrix) -> float:
    """What compiling adds for each agent-tool rule; policy and registry are there before."""
    gate = gate_of(truth)
    _, ask = asking(gate)
    compile_all = _all_rules(truth, ask)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        compile_all()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / truth.rules
    finally:
        tracemalloc.stop()


def _all_rules(truth: Matrix, ask: Ask) -> Callable[[], None]:
    def compile_all() -> None:
        for agent, tools in truth.allowed.items():
            for tool, some in tools.items():
                ask(agent, tool, next(iter(some)))

    return compile_all
