"""Recorded calls decided again by two policies: what a change would have meant for what agents did lately.

Each call is decided without effect and without the calls before it in its session, so its limits there do not count.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, cast

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.gate import AuditFilter, AuditIndex, LoggedCall, RowKind
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from gatewright.gate import AuditRow, Decision
    from gatewright.policy.document import Policy
    from gatewright.workspace.workspace import Workspace

NEWEST = 2_000
"""So many calls are decided again."""
MOST = 200
"""So many that differ are told; more are counted."""
_ROWS_A_CALL = 5
_A_PIECE = 20


@frozen
class ReplayedCall:
    """A call that two policies decide differently. ``reason``: of the second decision.

    ``is_whole`` False: the log keeps its arguments without secrets or cut, so that it may differ.
    """

    call: LoggedCall
    before: Verdict
    after: Verdict
    reason: str
    is_whole: bool


@frozen
class Replay:
    """The calls that differ, newest first; ``differing``: how many there are in all; ``decided``: of how many."""

    calls: tuple[ReplayedCall, ...]
    differing: int
    decided: int


def replay(workspace: Workspace, before: Policy, after: Policy) -> Generator[int, None, Replay]:
    """Decide the newest recorded calls by both policies; yields how many are decided after every few.

    Reads the log, so not for the GUI thread. Raises AuditUnavailable, PolicyInvalid.
    """
    found: list[ReplayedCall] = []
    differing = decided = 0
    with ExitStack() as stack:
        index = stack.enter_context(closing(AuditIndex(workspace.audit.path.parent)))
        sides = [
            workspace if policy is workspace.policy else stack.enter_context(workspace.under(policy))
            for policy in (before, after)
        ]
        index.read_older(NEWEST * _ROWS_A_CALL)
        for call in index.calls(index.numbers(AuditFilter())[:NEWEST]):
            sent = _sent(index.rows_of(call)) if call.is_call else None
            if sent is None:
                continue
            decided += 1
            one, other = (_decide(side, call, sent["arguments"]) for side in sides)
            if one is not None and other is not None and one.verdict is not other.verdict:
                differing += 1
                if len(found) < MOST:
                    is_whole = not (sent.get("scrubbed") or sent.get("cut"))
                    found.append(ReplayedCall(call, one.verdict, other.verdict, other.reason, is_whole))
            if decided % _A_PIECE == 0:
                yield decided
    return Replay(tuple(found), differing, decided)


def _sent(rows: Sequence[AuditRow]) -> dict[str, Any] | None:
    """What the log keeps of the arguments of a call; None where it has none."""
    for row in rows:
        if row.kind == RowKind.TOOL_INVOKED:
            try:
                body = cast("object", json.loads(row.body))
            except (ValueError, RecursionError):
                return None
            if isinstance(body, dict) and isinstance(cast("dict[str, Any]", body).get("arguments"), dict):
                return cast("dict[str, Any]", body)
    return None


def _decide(workspace: Workspace, call: LoggedCall, arguments: dict[str, Any]) -> Decision | None:
    try:
        return workspace.decide(call.agent, call.tool, arguments)
    except GatewrightError:  # a policy that has no such agent any more, or not yet
        return None
