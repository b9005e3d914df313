"""A policy rule tried on the calls of the log before it is written, and what its form is completed with.

Both look through much and are for the worker process.
"""

from collections.abc import Iterator, Mapping

from gatewright.workspace.api import (
    Address,
    AuditFilter,
    AuditIndex,
    Edit,
    LoggedCall,
    PolicyRule,
    Verdict,
    Workspace,
    frozen,
    inverse,
    split_name,
)
from gatewright_gui.session.argument import Argument, arguments_of
from gatewright_gui.session.audit_call import CallDetail, detail_of
from gatewright_gui.session.verbs.policy import rule_edit

MOST_CALLS = 50
MOST_LOOKED_AT = 20_000
"""The newest calls of the log that are looked through."""
_AT_ONCE = 500


@frozen
class TriedCall:
    """A call of the log: its verdict then is the call's; `now` by the policy as it is, `drafted` with the rule.

    `reason`: why, with the rule; `lacks`: what of its arguments the log does not have, so that it may differ.
    """

    call: LoggedCall
    now: Verdict
    drafted: Verdict
    reason: str
    lacks: str

    @property
    def is_changed(self) -> bool:
        """Whether the rule makes a difference."""
        return self.now is not self.drafted


@frozen
class Tried:
    """The newest calls that the rule is about. `looked_at`: of how many calls, the newest of the log."""

    calls: tuple[TriedCall, ...]
    looked_at: int

    @property
    def words(self) -> str:
        """What the rule would change, in a line."""
        if not self.calls:
            if not self.looked_at:
                return "no calls are recorded yet: try one in the Console"
            return f"none of the newest {self.looked_at:,} calls is one that the rule is for"
        changed = [one for one in self.calls if one.is_changed]
        verdicts = {"deny": "denied", "ask": "asked first", "allow": "allowed"}
        told = [
            f"{count} {verdicts[verdict]}"
            for verdict in verdicts
            if (count := sum(one.drafted == verdict for one in changed))
        ]
        of = f"of the newest {len(self.calls):,} calls that it is for"
        return f"{of}, {len(changed):,} would differ: {', '.join(told)}" if changed else f"{of}, none would differ"


def try_rule(workspace: Workspace, index: int | None, rule: PolicyRule) -> Tried:
    """Decide the newest calls that the rule is about without it and with it, free of effects.

    `index`: the rule that it takes the place of; None: it is a new one. Raises EditRefused for a rule that could not be
    written, AuditUnavailable.
    """
    details, looked_at = _details(workspace, rule)
    now = [_decide(workspace, detail)[0] for detail in details]
    edit: Edit = rule_edit(workspace.policy, index, rule)
    workspace.apply(edit)
    try:
        drafted = [_decide(workspace, detail) for detail in details]
    finally:
        workspace.apply(inverse(edit))
    rows = zip(details, now, drafted, strict=True)
    return Tried(tuple(TriedCall(one.call, was, *then, one.lacks) for one, was, then in rows), looked_at)


def _decide(workspace: Workspace, detail: CallDetail) -> tuple[Verdict, str]:
    decision = workspace.decide(detail.call.agent, detail.call.tool, detail.arguments or {})
    return decision.verdict, decision.reason


def _details(workspace: Workspace, rule: PolicyRule) -> tuple[tuple[CallDetail, ...], int]:
    """The newest calls that the rule is about, by agent, tool and operation, and how many were looked at."""
    index = AuditIndex(workspace.state_folder)
    found: list[CallDetail] = []
    looked_at = 0
    try:
        index.read_older()
        for call in _newest(index):
            looked_at += 1
            if call.is_call and call.agent in workspace.policy.agents and _is_about(rule, call):
                found.append(detail_of(call, index.rows_of(call)))
            if len(found) == MOST_CALLS or looked_at == MOST_LOOKED_AT:
                break
    finally:
        index.close()
    return tuple(found), looked_at


def _newest(index: AuditIndex) -> Iterator[LoggedCall]:
    numbers = index.numbers(AuditFilter())
    for begin in range(0, len(numbers), _AT_ONCE):
        yield from index.calls(numbers[begin : begin + _AT_ONCE])


def _is_about(rule: PolicyRule, call: LoggedCall) -> bool:
    return (
        (rule.agents is None or call.agent in rule.agents)
        and (rule.tools is None or call.tool in {split_name(name)[0] for name in rule.tools})
        and (rule.operations is None or call.operation in rule.operations)
    )


def arguments_for(workspace: Workspace, tools: tuple[str, ...] | None) -> Mapping[str, Argument]:
    """The arguments of these tools (None: of all) by name; one that is of several kinds is of any."""
    names = [facts.name for facts in workspace.catalog] if tools is None else [split_name(name)[0] for name in tools]
    found: dict[str, Argument] = {}
    for tool in dict.fromkeys(names):
        for name, argument in arguments_of(workspace, tool).items():
            held = found.setdefault(name, argument)
            if held.kind != argument.kind:
                found[name] = Argument(name)
    return found


def rule_address(index: int) -> Address:
    """Where a policy rule stands."""
    return ("policy", "rules", index)
