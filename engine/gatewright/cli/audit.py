"""``audit list``, ``audit verify`` and ``audit export``: the log of a workspace."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer

from gatewright.base.clock import iso_utc
from gatewright.cli.output import (
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    user_name,
)
from gatewright.gate.audit_index import AuditFilter, AuditIndex, LoggedCall
from gatewright.policy.verdict import Verdict
from gatewright.workspace import audit_log

_MOST_TOLD = 5


def _option(name: str, what: str) -> typer.models.OptionInfo:
    return typer.Option(f"--{name}", help=what)


MovedOption = Annotated[
    bool, typer.Option("--moved", help="the workspace was moved here: have its log go on, and say so in it")
]
AgentFilter = Annotated[str, _option("agent", "only calls of this agent")]
ToolFilter = Annotated[str, _option("tool", "only calls of this tool, or of one operation: TOOL.OPERATION")]
VerdictFilter = Annotated[Verdict | None, _option("verdict", "only calls that came to this")]
ClientFilter = Annotated[str, _option("client", "only calls that this program sent")]
SinceFilter = Annotated[str, _option("since", "from this day or moment on, as in 2026-01-31 or 2026-01-31T09:30")]
UntilFilter = Annotated[str, _option("until", "before this day or moment")]
WithinFilter = Annotated[str, _option("within", "only the call with this id and the steps that it made")]
WordsFilter = Annotated[str, _option("reason", "only calls with these words in the reason")]


def list_(
    policy: PolicyArgument,
    agent: AgentFilter = "",
    tool: ToolFilter = "",
    verdict: VerdictFilter = None,
    client: ClientFilter = "",
    since: SinceFilter = "",
    until: UntilFilter = "",
    reason: WordsFilter = "",
    within: WithinFilter = "",
    most: Annotated[int, typer.Option("--most", min=1, help="so many at most")] = 100,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the calls in the log, and what else it says, newest first. It proves nothing."""
    wanted = _filter(agent, tool, verdict, client, since, until, reason, within)
    with _index(policy, state) as index:
        numbers = index.numbers(wanted)
        calls = index.calls(numbers[:most])
    if json:
        print_json([call.to_json() for call in calls])
        return
    for call in calls:
        print_line(_line(call))
    if len(numbers) > len(calls):
        print_error(f"{len(numbers) - len(calls):,} more (--most)")


def verify(
    policy: PolicyArgument, json: JsonOption = False, state: StateOption = None, moved: MovedOption = False
) -> None:
    """Prove the chain of the log; exit 1 when a row was edited, removed, moved, added or cut off.

    Calls that were begun and have no end, being under way or killed, are told and are no failure.
    Without ``--moved`` it changes nothing.
    """
    log = audit_log(policy, state=state)
    if moved:
        log.accept_move(user_name())
        log.close()
    report = log.verify()
    if json:
        print_json(report.to_json())
    else:
        for problem in report.problems:
            print_error(problem)
        print_line(f"{report.rows} rows proved, {len(report.problems)} problems")
        if report.unended:
            print_line(f"{len(report.unended)} calls without an end (under way or killed):")
        for row in report.unended[:_MOST_TOLD]:
            print_line(f"  {row.time} {row.agent} {row.tool} {row.call_id}")
        if len(report.unended) > _MOST_TOLD:
            print_line(f"  and {len(report.unended) - _MOST_TOLD} more")
    raise typer.Exit(Exit.OK if report.is_sound else Exit.PROBLEMS)


def export(
    policy: PolicyArgument,
    agent: AgentFilter = "",
    tool: ToolFilter = "",
    verdict: VerdictFilter = None,
    client: ClientFilter = "",
    since: SinceFilter = "",
    until: UntilFilter = "",
    reason: WordsFilter = "",
    within: WithinFilter = "",
    json: JsonOption = False,  # noqa: ARG001
    state: StateOption = None,
) -> None:
    """Print the log as JSON Lines, oldest row first; nothing when there is no log. It proves nothing.

    With a filter: every row of the calls that fit.
    """
    wanted = _filter(agent, tool, verdict, client, since, until, reason, within)
    if wanted == AuditFilter():
        for row in audit_log(policy, state=state).rows():
            print_line(row.to_line())
        return
    with _index(policy, state) as index:
        for row in index.rows(wanted):
            print_line(row.to_line())


@contextmanager
def _index(policy: PolicyArgument, state: StateOption) -> Generator[AuditIndex]:
    index = AuditIndex(audit_log(policy, state=state).path.parent)
    try:
        while index.read_older():
            pass
        yield index
    finally:
        index.close()


def _filter(
    agent: str, tool: str, verdict: Verdict | None, client: str, since: str, until: str, reason: str, within: str
) -> AuditFilter:
    return AuditFilter(
        agent,
        tool,
        str(verdict or ""),
        client,
        tuple(reason.split()),
        _moment(since, "since"),
        _moment(until, "until"),
        within,
    )


def _moment(text: str, option: str) -> float | None:
    """Seconds since 1970; without a zone it is the time of this machine."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageProblem(f"`--{option}` takes a day or a moment, as in 2026-01-31 or 2026-01-31T09:30") from None


def _line(call: LoggedCall) -> str:
    time = iso_utc(call.wall_s) if call.wall_s is not None else "?"
    if not call.is_call:
        whose = "  ".join(filter(None, (call.kind, call.agent, call.tool)))
        return f"{time}  {whose}  {call.reason}"
    links = f"  step {1 + (call.step or 0)} of {call.within}" if call.within else ""
    if call.steps:
        links += f"  {call.call_id}: {call.steps} step{'s' * (call.steps != 1)}"
    client = f"  from {call.client}" if call.client else ""
    said = f"{call.called}  {call.arguments}".rstrip() + links + client
    return f"{time}  {call.verdict or '?':5}  {call.agent}  {said}  {call.ended or 'no end'}  {call.reason}"
