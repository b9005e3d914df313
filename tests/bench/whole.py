"""Rows "whole decide" and "gate overhead": one realistic call through all stages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jsonschema
import jsonschema_rs

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session, Status
from gatewright.policy.verdict import Verdict
from tests.bench import peers
from tests.bench.filework import AGENT, CPU, FileWork, Watch, file_work
from tests.bench.measure import Effort, figure, quiet, race_calls, run, timer_cost
from tests.bench.row import Measured, Missing, Row, at_most, none_wrong, p99_at_most, times_faster

Arguments = dict[str, JsonValue]
_DECIDE, _READ, _APPEND, _TEXT = "Gate.decide", "Gate.decide, read", "Gate.decide, append", "Gate.decide, JSON text"
_SLOW_CHECK, _FAST_CHECK = "AGT MCPGateway + jsonschema", "AGT MCPGateway + jsonschema-rs"
_ALONE = "AGT MCPGateway alone"


def whole_decide(effort: Effort) -> Row:
    """All stages to approval, beside a gateway that does much less."""
    with file_work() as work:
        calls, few = work.calls, effort.scaled(0.25)
        mixed = {_DECIDE: _decider(work)}
        wrong = sum(mixed[_DECIDE](call) is not Verdict.ALLOW for call in calls)
        others, absent = _gateways(work, effort)
        raced = race_calls({**mixed, **others}, calls, few, CPU)
        reads, appends = ([call for call in calls if call["op"] == kind] for kind in ("read", "append"))
        texts = [json.dumps(call) for call in calls]
        alone = race_calls({_READ: mixed[_DECIDE]}, reads, few, CPU) | race_calls(
            {_APPEND: mixed[_DECIDE]}, appends, few, CPU
        )
        alone |= race_calls({_TEXT: _decider(work)}, texts, few, CPU)
    figures: dict[str, Measured] = {_DECIDE: replace(raced.pop(_DECIDE), wrong=wrong), **alone, **raced, **absent}
    return Row(
        "whole decide",
        "`file` read and append on real files, 30 permission rules, tool rules, approvals, a policy rule with `when`",
        (_DECIDE, _READ, _APPEND, _TEXT),
        figures,
        (
            at_most("all stages", figures[_DECIDE], 60),
            times_faster(_SLOW_CHECK, figures[_DECIDE], figures[_SLOW_CHECK], 1),
            times_faster(_FAST_CHECK, figures[_DECIDE], figures[_FAST_CHECK], 1),
            none_wrong(figures, "every call is allowed"),
        ),
        _DECIDE,
        ("the gateway looks at a list of names and at the text of arguments: no file, rule or session",),
    )


def gate_overhead(effort: Effort) -> Row:
    """What the gate adds to a call, without the tool and without the commit of rows."""
    figures: dict[str, Measured] = {}
    for audited in (True, False):
        with file_work(audited=audited) as work:
            spent = run(lambda: _called(work, effort.scaled(0.1)))
        floor = timer_cost(CPU)
        kind = "with audit" if audited else "without audit"
        figures[f"overhead, {kind}"] = replace(figure(spent.rest, floor), wrong=spent.wrong)
        figures[f"(whole call, {kind})"] = figure(spent.whole, floor)
        figures[f"(tool, {kind})"] = figure(spent.tool, floor)
        if audited:
            figures["(commits of its rows)"] = figure(spent.rows, floor)
    with_audit, without = figures["overhead, with audit"], figures["overhead, without audit"]
    return Row(
        "gate overhead",
        "the same calls, carried out; per call: all but the tool itself and the commits of audit rows",
        ("overhead, with audit", "overhead, without audit"),
        figures,
        (
            at_most("with audit", with_audit, 100),
            p99_at_most("with audit", with_audit, 500),
            at_most("without audit", without, 100),
            p99_at_most("without audit", without, 500),
            none_wrong(figures, "every call is allowed"),
        ),
        notes=("processor time of the thread of the event loop; the tool itself works in another thread as well",),
    )


@dataclass(slots=True)
class Spent:
    """Nanoseconds of every call: the whole, its tool, its rows, what is left; and how many calls were not allowed."""

    whole: list[int] = field(default_factory=list[int])
    tool: list[int] = field(default_factory=list[int])
    rows: list[int] = field(default_factory=list[int])
    rest: list[int] = field(default_factory=list[int])
    wrong: int = 0

    def add(self, whole: int, watch: Watch) -> None:
        """One more call."""
        self.whole.append(whole)
        self.tool.append(watch.tool)
        self.rows.append(watch.rows)
        self.rest.append(whole - watch.tool - watch.rows)


async def _called(work: FileWork, effort: Effort) -> Spent:
    spent, session, calls = Spent(), Session(), work.calls
    for call in calls[:20]:
        await work.gate.call(AGENT, "file", call, session=session)
    for part in _parts(calls, effort):
        with quiet():
            for call in part:
                work.watch.tool = work.watch.rows = 0
                began = CPU()
                outcome = await work.gate.call(AGENT, "file", call, session=session)
                spent.add(CPU() - began, work.watch)
                spent.wrong += outcome.status is not Status.ALLOWED
    return spent


def _parts(calls: list[Arguments], effort: Effort) -> Iterator[list[Arguments]]:
    for start in range(0, effort.calls, effort.block):
        yield [calls[i % len(calls)] for i in range(start, start + effort.block)]


def _decider(work: FileWork) -> Callable[[Any], Verdict]:
    session, gate = Session(), work.gate

    def decide(arguments: Any) -> Verdict:
        return gate.decide(AGENT, "file", arguments, session=session).verdict

    return decide


def _gateways(work: FileWork, effort: Effort) -> tuple[dict[str, Callable[[Arguments], object]], dict[str, Missing]]:
    names = (_SLOW_CHECK, _FAST_CHECK, _ALONE)
    if not effort.peers:
        return {}, dict.fromkeys(names, Missing("peer left out"))
    try:
        gateway = peers.agt("agent_os.mcp_gateway").MCPGateway
        policy = peers.agt("agent_os.integrations.base").GovernancePolicy
    except ImportError:
        return {}, dict.fromkeys(names, Missing())
    schema = next(tool["inputSchema"] for tool in work.gate.view(AGENT).tools("mcp") if tool["name"] == "file")
    one: Any = gateway(policy(name="bench", allowed_tools=["file"], max_tool_calls=10**9))
    slow: Any = jsonschema.Draft202012Validator(schema)
    fast = jsonschema_rs.validator_for(schema)
    pass_on: Callable[[str, str, Arguments], tuple[bool, str]] = one.intercept_tool_call

    def with_slow(arguments: Arguments) -> bool:
        slow.validate(arguments)
        return pass_on(AGENT, "file", arguments)[0]

    def with_fast(arguments: Arguments) -> bool:
        fast.validate(arguments)
        return pass_on(AGENT, "file", arguments)[0]

    def alone(arguments: Arguments) -> bool:
        return pass_on(AGENT, "file", arguments)[0]

    return {_SLOW_CHECK: with_slow, _FAST_CHECK: with_fast, _ALONE: alone}, {}
