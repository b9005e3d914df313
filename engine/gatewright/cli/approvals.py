"""``approvals list``, ``answer`` and ``revoke``: the questions of running calls, and what was answered for longer.

It reaches the processes that wait through the state folder of the workspace, and decides nothing by itself.
"""

from __future__ import annotations

import json as jsonlib
import queue
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from gatewright.base.amount import format_duration, parse_duration
from gatewright.base.clock import iso_utc
from gatewright.base.problem import near_hint
from gatewright.cli.output import (
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
from gatewright.workspace import Approval, ApprovalRequest, Grant, PermissionBroker, Remember, permission_broker

WhoOption = Annotated[str | None, typer.Option("--who", metavar="NAME", help="who answers (else the user's name)")]


def list_(
    policy: PolicyArgument,
    watch: Annotated[
        bool, typer.Option("--watch", help="go on until interrupted; calls wait for an answer meanwhile")
    ] = False,
    json: JsonOption = False,
    state: StateOption = None,
) -> None:
    """Print the calls that wait for an answer, and the answers that still stand."""
    with closing(permission_broker(policy, state=state)) as broker:
        if watch:
            _watch(broker, json=json)
        _print(broker.pending(), broker.standing(), json=json)
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
    """Read the answer in the options. Raises UsageProblem for none or several."""
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
    """Print every change until interrupted; being here, the operator is attached."""
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


def _print(pending: Iterable[ApprovalRequest], standing: Iterable[Grant], *, json: bool) -> None:
    if json:
        rows = {"pending": [one.to_json() for one in pending], "standing": [one.to_json() for one in standing]}
        print_json(rows)
        return
    open_ones, grants = list(pending), list(standing)
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
    if not open_ones and not grants:
        print_line("no call waits for an answer, and no answer stands")


def _print_request(request: ApprovalRequest) -> None:
    now_s = time.time()
    left = f", {max(0.0, request.expires_wall_s - now_s):.0f} s left" if request.expires_wall_s is not None else ""
    more = f", {request.waiting} identical calls" if request.waiting > 1 else ""
    user = f" for {request.user_id}" if request.user_id else ""
    what = f"{request.tool} {request.operation}".strip()
    waits = f"waits {max(0.0, now_s - request.asked_wall_s):.0f} s{left}{more}"
    print_line(f"pending {request.request_id}  {request.agent_id}{user}: {what} [{request.safety_tier}], {waits}")
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


def _print_notes(broker: PermissionBroker) -> None:
    for note in broker.notes:
        print_error(f"gatewright: {note}")
