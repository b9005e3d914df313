"""Recorded calls decided again by two policies: the effect of a change on agents' recent work.

Each decision is free of effects and ignores the earlier calls of its session, so limits there do not count.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any, cast

from gatewright.base.amount import plural
from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.gate import AuditFilter, AuditIndex, AuditRow, Decision, LoggedCall, RowKind
from gatewright.policy import policyedit
from gatewright.policy.document import Policy
from gatewright.policy.edit import inverse
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict, split_name
from gatewright.workspace.workspace import Workspace

NEWEST = 2_000
"""Limit of calls to decide again."""
MOST = 200
"""Limit of differing calls to report; the rest is counted."""
MOST_OF_RULE, NEWEST_OF_RULE = 50, 20_000
"""Limits for one rule: calls to decide again, and calls to look at."""
_ROWS_A_CALL = 5
_A_PIECE = 20
_AT_ONCE = 500


@frozen
class ReplayedCall:
    """A recorded call with its verdicts by two policies. ``reason``: of the second decision.

    ``lacks``: arguments that the log lacks, so that the verdict may differ.
    """

    call: LoggedCall
    before: Verdict
    after: Verdict
    reason: str
    lacks: str

    @property
    def is_changed(self) -> bool:
        """True if the policies decide it differently."""
        return self.before is not self.after


@frozen
class Replay:
    """Calls, newest first; ``differing``: the number of all that differ; ``looked_at``: of the newest ones read."""

    calls: tuple[ReplayedCall, ...]
    differing: int
    looked_at: int


def replay(workspace: Workspace, before: Policy, after: Policy) -> Generator[int, None, Replay]:
    """Decide the newest recorded calls by both policies, and return those that differ; yield the count after every few
    decisions.

    Reads the log, so keep it off the GUI thread. Raises AuditUnavailable, PolicyInvalid.
    """
    found: list[ReplayedCall] = []
    differing = decided = 0
    with ExitStack() as stack:
        index = stack.enter_context(closing(AuditIndex(workspace.state_folder)))
        sides = [
            workspace if policy is workspace.policy else stack.enter_context(workspace.under(policy))
            for policy in (before, after)
        ]
        index.read_older(NEWEST * _ROWS_A_CALL)
        for call in islice(_newest(index), NEWEST):
            sent = sent_of(index.rows_of(call)) if call.is_call else {}
            if not sent:
                continue
            decided += 1
            one, other = (_decide(side, call, sent) for side in sides)
            if one is not None and other is not None and one.verdict is not other.verdict:
                differing += 1
                if len(found) < MOST:
                    found.append(ReplayedCall(call, one.verdict, other.verdict, other.reason, lacks_of(sent)))
            if decided % _A_PIECE == 0:
                yield decided
    return Replay(tuple(found), differing, decided)


def replay_rule(workspace: Workspace, index: int | None, rule: PolicyRule) -> Replay:
    """Decide the newest recorded calls that concern a policy rule, without it and with it.

    ``index``: the rule that it replaces; None: it is new. Reads the log, so keep it off the GUI thread. Raises
    EditRefused for an impossible rule, AuditUnavailable.
    """
    tools = None if rule.tools is None else {split_name(name)[0] for name in rule.tools}
    with closing(AuditIndex(workspace.state_folder)) as log:
        log.read_older()
        looked_at, about = 0, list[tuple[LoggedCall, dict[str, Any]]]()
        for call in islice(_newest(log), NEWEST_OF_RULE):
            looked_at += 1
            if (
                call.is_call
                and call.agent in workspace.policy.agents
                and (rule.agents is None or call.agent in rule.agents)
                and (tools is None or call.tool in tools)
                and (rule.operations is None or call.operation in rule.operations)
            ):
                about.append((call, sent_of(log.rows_of(call))))
            if len(about) == MOST_OF_RULE:
                break
    before = [_decide(workspace, *one) for one in about]
    edit = policyedit.put_rule(workspace.policy, index, rule)
    workspace.apply(edit)
    try:
        after = [_decide(workspace, *one) for one in about]
    finally:
        workspace.apply(inverse(edit))
    calls = tuple(
        ReplayedCall(call, one.verdict, other.verdict, other.reason, lacks_of(sent))
        for (call, sent), one, other in zip(about, before, after, strict=True)
        if one is not None and other is not None
    )
    return Replay(calls, sum(call.is_changed for call in calls), looked_at)


def sent_of(rows: Sequence[AuditRow]) -> dict[str, Any]:
    """Return the logged values of a call; empty if the log has none of the arguments."""
    for row in rows:
        if row.kind == RowKind.TOOL_INVOKED:
            try:
                body = cast("object", json.loads(row.body))
            except (ValueError, RecursionError):
                return {}
            if isinstance(body, dict) and isinstance(cast("dict[str, Any]", body).get("arguments"), dict):
                return cast("dict[str, Any]", body)
    return {}


def lacks_of(sent: Mapping[str, Any]) -> str:
    """Describe the arguments that the log lacks; empty if complete."""
    scrubbed, cut = sent.get("scrubbed"), sent.get("cut")
    parts = [f"{plural(scrubbed, 'secret')} taken out"] if isinstance(scrubbed, int) and scrubbed else []
    return "; ".join((*parts, *(map(str, cast("list[object]", cut)) if isinstance(cut, list) else ())))


def _newest(index: AuditIndex) -> Iterator[LoggedCall]:
    numbers = index.numbers(AuditFilter())
    for begin in range(0, len(numbers), _AT_ONCE):
        yield from index.calls(numbers[begin : begin + _AT_ONCE])


def _decide(workspace: Workspace, call: LoggedCall, sent: Mapping[str, Any]) -> Decision | None:
    try:
        return workspace.decide(call.agent, call.tool, sent.get("arguments", {}))
    except GatewrightError:  # a policy may lack the agent
        return None
