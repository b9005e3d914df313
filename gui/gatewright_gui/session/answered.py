"""What became of calls that asked, as the audit log tells it: who answered what, and how the call ended."""

import json
from datetime import datetime
from typing import Any, cast

from gatewright.workspace.api import AuditFilter, AuditIndex, AuditRow, Workspace, frozen
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.calls import visible
from gatewright_gui.session.question import SCOPE_DAYS, span

MOST_ROWS = 50_000
"""The newest rows of the log that are looked through."""
_NOBODY = {
    "approval-timed-out": mark("nobody answered in time"),
    "approval-rate": mark("too many questions"),
    "approval-unavailable": mark("could not be asked"),
    "approval-too-large": mark("too large to be asked"),
}
_ENDS = {
    "ToolCompleted": mark("done"),
    "ToolFailed": mark("failed"),
    "ToolTimedOut": mark("timed out"),
    "ToolAbandoned": mark("given up by its caller"),
}


@frozen
class Answered:
    """A call that asked and waits no more. `answer`: who said what; `outcome`: how the call ended, empty till then."""

    call_id: str
    agent_id: str
    called: str
    wall_s: float
    approved: bool
    answer: str
    outcome: str


@frozen
class Answers:
    """The calls that asked, newest first, and how often each standing approval was used, by its id.

    ``unreached``: so many more asked while nobody could be reached, and were denied at once. ``problem``: why none of
    this is known.
    """

    answered: tuple[Answered, ...] = ()
    uses: tuple[tuple[str, int], ...] = ()
    unreached: int = 0
    problem: str = ""


def answers_since(workspace: Workspace, since_s: float) -> Answers:
    """Those of calls that began since then, within the newest rows. Takes time; raises AuditUnavailable."""
    index = AuditIndex(workspace.state_folder)
    try:
        index.read_older(MOST_ROWS)
        calls: dict[str, dict[str, AuditRow]] = {}
        uses: dict[str, int] = {}
        for row in index.rows(AuditFilter(since_s=since_s)):
            if row.call_id:
                calls.setdefault(row.call_id, {})[row.kind] = row
            if row.kind == "PolicyDecision" and '"grant"' in row.body:
                grant_id = str(_body(row).get("grant", ""))
                uses[grant_id] = uses.get(grant_id, 0) + 1
    finally:
        index.close()
    found = [_answered(call_id, rows) for call_id, rows in calls.items() if _is_over(rows)]
    unreached = sum(_was_unreached(rows) for rows in calls.values())
    return Answers(tuple(sorted(found, key=lambda one: -one.wall_s)), tuple(uses.items()), unreached)


def _was_unreached(rows: dict[str, AuditRow]) -> bool:
    """Whether the call would have asked, and nobody was there."""
    denied = rows.get("ToolDenied")
    return denied is not None and "ApprovalRequested" not in rows and _body(denied).get("code") == "unanswered"


def _is_over(rows: dict[str, AuditRow]) -> bool:
    """Whether the call asked, and somebody answered or it ended."""
    return "ApprovalRequested" in rows and bool({"ApprovalResolved", "ToolDenied", *_ENDS} & rows.keys())


def _answered(call_id: str, rows: dict[str, AuditRow]) -> Answered:
    asked = rows["ApprovalRequested"]
    resolved, denied = rows.get("ApprovalResolved"), rows.get("ToolDenied")
    told = resolved or denied or asked
    said, code = (_body(resolved) if resolved is not None else {}), str(_body(denied).get("code", "")) if denied else ""
    outcome = next((tr(words) for kind, words in _ENDS.items() if kind in rows), "")
    if not outcome and "CallWaits" in rows:
        outcome = tr("waits for its program")
    if denied is not None:
        other = tr("not made") if code == "approval-refused" else tr("denied: {code}", code=visible(code))
        outcome = tr(_NOBODY[code]) if code in _NOBODY else other
    called = visible(f"{asked.tool}.{asked.operation}" if asked.operation else asked.tool)
    wall_s = datetime.fromisoformat(told.time).timestamp()
    is_approved = said.get("approved") is True
    return Answered(call_id, visible(asked.agent), called, wall_s, is_approved, _words(said, code), outcome)


def _words(said: dict[str, Any], code: str) -> str:
    if not said or code in _NOBODY:
        return tr(_NOBODY[code]) if code in _NOBODY else tr("not answered")
    who = visible(str(said.get("who") or tr("the operator")))
    if said.get("approved") is not True:
        return tr("denied by {who}", who=who)
    seconds = said.get("seconds")
    if isinstance(seconds, int | float):
        return tr("allowed for {time} by {who}", time=span(seconds), who=who)
    match said.get("remember"):
        case "scope":
            return tr("allowed for {days} days in its session by {who}", days=SCOPE_DAYS, who=who)
        case "once":
            return tr("allowed once by {who}", who=who)
        case _:
            return tr("allowed by {who}", who=who)


def _body(row: AuditRow) -> dict[str, Any]:
    try:
        body = json.loads(row.body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}
