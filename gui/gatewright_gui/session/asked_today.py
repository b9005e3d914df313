"""The questions of an agent today, and the rules that would have answered them, worked out by the worker process."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import closing, suppress

from gatewright.workspace.api import (
    AuditFilter,
    AuditIndex,
    Edit,
    EditRefused,
    GatewrightError,
    LoggedCall,
    Verdict,
    Workspace,
    apply,
    decide_again,
    frozen,
    replay,
)
from gatewright_gui.session.audit_call import CallDetail, Mending, detail_of, mendings_of

MOST_CALLS = 500
"""Calls that asked, the newest, that are looked at."""
MOST_RULES = 8


@frozen
class AskedRule:
    """A rule that would have answered. ``answers``: the calls of today that it lets through; ``changes``: the recorded
    calls, of the ``looked_at`` newest ones, that it decides otherwise; ``call_id``: one that it is made of, and
    ``place`` its place among the rules that can be made of it.
    """

    called: str
    words: str
    asked: int
    answers: int
    changes: int
    looked_at: int
    call_id: str
    place: int


@frozen
class AskedToday:
    """The calls of an agent that asked since midnight, and rules for them, those that answer most first."""

    asked: int
    rules: tuple[AskedRule, ...]

    @property
    def could_be_rules(self) -> int:
        """The calls that one of the rules would have answered."""
        return sum(rule.answers for rule in self.rules)


def questions_today(workspace: Workspace, agent_id: str, since_s: float) -> Generator[int, None, AskedToday]:
    """Count the calls of an agent that asked, and try a rule for each kind that asked more than once.

    Raises AuditUnavailable.
    """
    with closing(AuditIndex(workspace.state_folder)) as index:
        index.tally(since_s)
        numbers = index.numbers(AuditFilter(agent=agent_id, verdict="ask", since_s=since_s))
        kinds: dict[tuple[str, str], list[LoggedCall]] = defaultdict(list)
        for call in index.calls(numbers[:MOST_CALLS]):
            kinds[call.tool, call.operation].append(call)
        found: list[AskedRule] = []
        wanted = sorted((calls for calls in kinds.values() if len(calls) > 1), key=len, reverse=True)
        for done, calls in enumerate(wanted[:MOST_RULES]):
            details = [detail_of(call, index.rows_of(call)) for call in calls]
            with suppress(GatewrightError):
                rule = yield from _rule_for(workspace, details)
                found += [rule] if rule is not None else []
            yield done + 1
    return AskedToday(len(numbers), tuple(sorted(found, key=lambda one: -one.answers)))


def mending_of(workspace: Workspace, rule: AskedRule) -> Mending | None:
    """Find the rule again by its call, to carry it out; not for the GUI thread. Raises AuditUnavailable."""
    with closing(AuditIndex(workspace.state_folder)) as index:
        number = index.number_of(rule.call_id)
        while number is None and index.read_older():
            number = index.number_of(rule.call_id)
        for call in index.calls([number] if number is not None else []):
            made = mendings_of(workspace, detail_of(call, index.rows_of(call)))
            if rule.place < len(made) and made[rule.place].words == rule.words:
                return made[rule.place]
    return None


def _rule_for(workspace: Workspace, details: Sequence[CallDetail]) -> Generator[int, None, AskedRule | None]:
    """Return the first rule that would have let the newest call through."""
    for place, mending in enumerate(mendings_of(workspace, details[0])):
        edit = _edit_of(workspace, mending)
        if edit is None:
            continue
        after = apply(workspace.policy, edit)
        with workspace.under(after) as trial:
            if not _is_allowed(trial, details[0]):
                continue
            answers = sum(_is_allowed(trial, detail) for detail in details)
        covered = yield from replay(workspace, workspace.policy, after)
        call = details[0].call
        return AskedRule(
            call.called, mending.words, len(details), answers, covered.differing, covered.looked_at, call.call_id, place
        )
    return None


def _edit_of(workspace: Workspace, mending: Mending) -> Edit | None:
    try:
        return mending.make(workspace.policy, workspace.catalog)
    except EditRefused:
        return None


def _is_allowed(trial: Workspace, detail: CallDetail) -> bool:
    try:
        decision = decide_again(trial, detail.call, detail.sent)
    except GatewrightError:
        return False
    return decision.verdict is Verdict.ALLOW
