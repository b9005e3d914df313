"""``approvals``, ``stop``, ``go``, ``audit``: the questions of running calls, their answers, the stop, and the log of a
workspace.

It reaches the processes that wait through the state folder of the workspace, and decides nothing by itself. It
exceeds 450 lines because it holds a function for each of these commands.
"""

from __future__ import annotations

import json as jsonlib
import queue
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer

from gatewright.base.amount import format_duration, iso_utc, parse_duration, plural
from gatewright.base.errors import NotSupported, PolicyInvalid, near_hint
from gatewright.cli.output import (
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    print_passage,
    user_name,
)
from gatewright.gate.audit import AuditLog
from gatewright.gate.audit_index import AuditFilter, AuditIndex, LoggedCall
from gatewright.policy.verdict import Verdict
from gatewright.workspace import (
    Approval,
    ApprovalRequest,
    Grant,
    PermissionBroker,
    Remember,
    StaleQuestion,
    Workspace,
    audit_log,
    permission_broker,
    stop_switch,
)

WhoOption = Annotated[str | None, typer.Option("--who", metavar="NAME", help="who answers (else the user's name)")]


def list_questions(
    policy: PolicyArgument,
    watch: Annotated[
        bool, typer.Option("--watch", help="go on until interrupted; calls wait for an answer meanwhile")
    ] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the calls that wait for an answer, the answers that still stand, and the questions gone stale."""
    with closing(permission_broker(policy, state=state)) as broker:
        if watch:
            _watch(broker, json=json)
        _print(broker.pending(), broker.standing(), broker.stale(), json=json)
        _print_notes(broker)


def answer(
    policy: PolicyArgument,
    request_id: Annotated[str, typer.Argument(metavar="ID", help="the question, as `approvals list` names it")],
    once: Annotated[bool, typer.Option("--once", help="allow exactly this call, one time")] = False,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="allow the operation so long, as in 10m; with --deny: refuse"),
    ] = None,
    scope: Annotated[bool, typer.Option("--scope", help="allow the scope of the rule for this session")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="refuse the call")] = False,
    because: Annotated[
        str | None, typer.Option("--because", metavar="TEXT", help="with --deny: the reason, told to the model")
    ] = None,
    who: WhoOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Answer one question: --once, --for DURATION, --scope or --deny."""
    given = _approval(once=once, duration=duration, scope=scope, deny=deny, who=who or user_name())
    if because is not None:
        if not deny:
            raise UsageProblem("--because goes with --deny")
        given = replace(given, reason=because)
    with closing(permission_broker(policy, state=state)) as broker:
        answered = broker.answer(request_id, given)
        if answered is None:
            near = near_hint(request_id, (one.request_id for one in broker.pending()), listed=True)
            raise UsageProblem(f"no open question `{request_id}`{near}")
        _print_notes(broker)
    lasting = {"remember": str(answered.remember), "seconds": answered.seconds, "grant": answered.grant_id or None}
    how_long = ""
    if answered.seconds is not None:
        how_long = f" for {format_duration(answered.seconds)} as {answered.grant_id}"
    elif answered.remember is Remember.SCOPE:
        how_long = f" for its scope as {answered.grant_id}"
    if json:
        print_json({"id": request_id, "approved": answered.approved, "who": answered.who, **lasting})
    else:
        print_line(f"{request_id} {'allowed' if answered.approved else 'refused'}{how_long}")


def revoke(
    policy: PolicyArgument,
    grant_id: Annotated[str, typer.Argument(metavar="ID", help="the standing answer, as `approvals list` names it")],
    who: WhoOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Take a standing answer back; calls that wait are decided without it."""
    with closing(permission_broker(policy, state=state)) as broker:
        grant = broker.revoke(grant_id, who or user_name())
        if grant is None:
            near = near_hint(grant_id, (one.grant_id for one in broker.standing()), listed=True)
            raise UsageProblem(f"no standing answer `{grant_id}`{near}")
    if json:
        print_json({"revoked": grant.to_json()})
    else:
        print_line(f"{grant_id} revoked")


def _approval(*, once: bool, duration: str | None, scope: bool, deny: bool, who: str) -> Approval:
    """Read the answer from the options. Raises UsageProblem for none or several."""
    if deny:
        if once or scope:
            raise UsageProblem("--deny goes alone, or with --for")
    elif once + scope + (duration is not None) != 1:
        raise UsageProblem("say one of --once, --for DURATION, --scope, --deny")
    if duration is None:
        return Approval(not deny, who, Remember.SCOPE if scope else Remember.ONCE)
    approval = Approval(not deny, who, Remember.DURATION, _seconds(duration))
    if not approval.lasts:
        raise UsageProblem(f"--for `{duration}`: an answer lasts longer than no time and at most a year")
    return approval


def _seconds(text: str) -> float:
    try:
        return parse_duration(float(text) if text.replace(".", "", 1).isdecimal() else text)
    except ValueError as error:
        raise UsageProblem(f"--for `{text}`: {error}") from None


def _watch(broker: PermissionBroker, *, json: bool) -> None:
    """Print every change until interrupted; while this runs, an operator counts as present."""
    news: queue.SimpleQueue[tuple[ApprovalRequest, ...]] = queue.SimpleQueue()
    leave = broker.subscribe(news.put)
    shown: set[str] = set()
    try:
        while True:
            pending = news.get()
            if json:
                print_line(jsonlib.dumps({"pending": [one.to_json() for one in pending]}, ensure_ascii=False))
                continue
            for request in pending:
                if request.request_id not in shown:
                    _print_request(request)
            for gone in sorted(shown - {one.request_id for one in pending}):
                print_line(f"closed {gone}")
            shown = {one.request_id for one in pending}
    finally:
        leave()


def _print(
    pending: Iterable[ApprovalRequest], standing: Iterable[Grant], stale: Iterable[StaleQuestion], *, json: bool
) -> None:
    open_ones, grants, gone = list(pending), list(standing), list(stale)
    if json:
        rows = {"pending": [one.to_json() for one in open_ones], "standing": [one.to_json() for one in grants]}
        print_json({**rows, **({"stale": [one.to_json() for one in gone]} if gone else {})})
        return
    for request in open_ones:
        _print_request(request)
    for grant in grants:
        what = f"{grant.tool} {grant.operation}".strip()
        verdict = "allowed" if grant.approved else "refused"
        how = f"scope {grant.scope}" if grant.scope else str(grant.kind)
        until = f", until {iso_utc(grant.expires_wall_s)}" if grant.expires_wall_s is not None else ""
        session = "" if grant.approved and grant.kind is Remember.DURATION else f", session {grant.session_id}"
        print_line(
            f"standing {grant.grant_id}  {grant.agent_id}: {what} {verdict} by {grant.who} ({how}{session}{until})"
        )
    for one in gone:
        what = f"{one.request.tool} {one.request.operation}".strip()
        print_line(f"stale {one.request.request_id}  {one.request.whose}: {what}, {one.why}")
    if not open_ones and not grants and not gone:
        print_line("no call waits for an answer, and no answer stands")


def _print_request(request: ApprovalRequest) -> None:
    now_s = time.time()
    user = f" for {request.user_id}" if request.user_id else ""
    what = f"{request.tool} {request.operation}".strip()
    if request.is_suspended:
        due = ", due" if request.is_due(now_s) else ""
        until = "" if request.expires_wall_s is None else f", until {iso_utc(request.expires_wall_s)}"
        age = format_duration(float(max(0, round(now_s - request.asked_wall_s))))
        waits = f"suspended for {age}{until}{due}"
    else:
        waits = _left(request, now_s)
    print_line(f"pending {request.request_id}  {request.whose}{user}: {what} [{request.safety_tier}], {waits}")
    if request.is_suspended:
        named = f" of the conversation {request.conversation}" if request.conversation else ""
        step = f" (a step of {request.whole.tool})" if request.whole is not None else ""
        print_line(f"  call {request.call_key}{step}{named}")
    for reason in request.reasons:
        print_passage("  because ", reason)
    if request.scope:
        print_line(f"  scope {request.scope}")
    print_line(f"  session {request.session_id}")
    if request.process_id:
        client = f", for {request.client}" if request.client else ""
        print_line(f"  process {request.process_id}{client}")
    print_line(f"  arguments {jsonlib.dumps(dict(request.arguments), ensure_ascii=False)}")
    for line in (request.diff or "").splitlines():
        print_line(f"  | {line}")
    for one in request.records:
        stands = jsonlib.dumps(one.record, ensure_ascii=False)
        print_line(f"  {one.argument} {one.value} stands for {stands}, by {one.called}")


def _left(request: ApprovalRequest, now_s: float) -> str:
    left = f", {max(0.0, request.expires_wall_s - now_s):.0f} s left" if request.expires_wall_s is not None else ""
    more = f", {request.waiting} identical calls" if request.waiting > 1 else ""
    return f"waits {max(0.0, now_s - request.asked_wall_s):.0f} s{left}{more}"


def _print_notes(broker: PermissionBroker) -> None:
    for note in broker.notes:
        print_error(f"gatewright: {note}")


AgentToStop = Annotated[str, typer.Option("--agent", metavar="AGENT", help="only this agent (else all of them)")]


def stop(
    policy: PolicyArgument,
    agent: AgentToStop = "",
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="the reason, for the log")] = "",
    who: WhoOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Stop all agents, or one, in every process of the workspace: running calls end, new ones are denied.

    It needs no key; `gatewright go` does.
    """
    if agent:
        _require_agent(policy, agent, state)
    with closing(stop_switch(policy, state=state)) as switch:
        made = switch.pull(who or user_name(), because, agent)
        is_recorded = not switch.is_loose
    if json:
        print_json({"stopped": made.to_json(), "recorded": is_recorded})
        return
    print_line(str(made))
    if not is_recorded:
        print_error("gatewright: the log has no row of it yet; the next gate that denies a call writes it")


def go(
    policy: PolicyArgument,
    agent: AgentToStop = "",
    who: WhoOption = None,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """End the stop of all agents, or that of one; it needs the key of the workspace."""
    with closing(stop_switch(policy, state=state)) as switch:
        gone = switch.lift(who or user_name(), agent)
        left = switch.look()
    if not gone:
        there = f"; {'; '.join(map(str, left))}" if left else ""
        raise UsageProblem(f"{f'agent `{agent}` is' if agent else 'all agents are'} not stopped{there}")
    if json:
        print_json({"ended": [one.to_json() for one in gone], "standing": [one.to_json() for one in left]})
        return
    print_line(f"{f'agent `{agent}` goes' if agent else 'all agents go'} on")
    for one in left:
        print_line(f"still: {one}")


def _require_agent(policy: PolicyArgument, agent: str, state: StateOption) -> None:
    """Raises UsageProblem for an agent that the policy does not have; one with errors has any."""
    with suppress(PolicyInvalid), closing(Workspace.open(policy, state=state)) as workspace:
        if agent not in workspace.policy.agents:
            raise UsageProblem(f"no agent `{agent}`{near_hint(agent, workspace.policy.agents, listed=True)}")


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


def observed(
    policy: PolicyArgument,
    agent: AgentFilter = "",
    tool: ToolFilter = "",
    since: SinceFilter = "",
    until: UntilFilter = "",
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Compare what observe mode passed with what enforcing would have made of it, by stage and rule."""
    with _index(policy, state) as index:
        found = index.compare(_filter(agent, tool, None, "", since, until, "", ""))
    if json:
        print_json(found.to_json())
        return
    print_line(str(found))
    for row in found.rows:
        print_line(f"  {row.count:,}  {row.verdict} at {row.stage}{f'  {row.rule}' if row.rule else ''}")


def list_calls(
    policy: PolicyArgument,
    agent: AgentFilter = "",
    tool: ToolFilter = "",
    verdict: VerdictFilter = None,
    client: ClientFilter = "",
    since: SinceFilter = "",
    until: UntilFilter = "",
    reason: WordsFilter = "",
    within: WithinFilter = "",
    observed: Annotated[bool, typer.Option("--observed", help="only calls that observe mode let through")] = False,
    most: Annotated[int, typer.Option("--most", min=1, help="so many at most")] = 100,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the calls in the log, and what else it says, newest first. It proves nothing."""
    wanted = _filter(agent, tool, verdict, client, since, until, reason, within)
    wanted = replace(wanted, noted="*") if observed else wanted
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
        if not isinstance(log, AuditLog):
            raise NotSupported("a shared state does not move with a folder")
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
    path = audit_log(policy, state=state).path
    if path is None:
        raise NotSupported("the calls of a shared state cannot be listed yet; `gatewright audit export` prints the log")
    index = AuditIndex(path.parent)
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
    links = ""
    if call.within:
        links = f"  under {call.within}" if call.step is None else f"  step {1 + call.step} of {call.within}"
    if call.steps:
        links += f"  {call.call_id}: {plural(call.steps, 'step')}"
    if call.started:
        links += f"  {call.call_id}: {plural(call.started, 'call')} under it"
    client = f"  from {call.client}" if call.client else ""
    said = f"{call.called}  {call.arguments}".rstrip() + links + client
    end = call.ended or ("waits, or was not answered" if call.verdict == "ask" else "no end")
    return f"{time}  {call.verdict or '?':5}  {call.whose}  {said}  {end}  {call.reason}"
