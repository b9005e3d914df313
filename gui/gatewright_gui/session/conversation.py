"""Where the conversation of one agent stands: counts, pauses, rates, groups, what is due."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, cast

from gatewright.workspace.api import (
    AgentSnapshot,
    CallsTest,
    GapTest,
    Grant,
    GroupTest,
    OutsideTest,
    RateLimit,
    RateTest,
    Remember,
    Session,
    SessionTest,
    Verdict,
    Window,
    Workspace,
    WorkspaceError,
    duration_words,
    frozen,
    rate_words,
    spell_address,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.calls import RuleLink, visible
from gatewright_gui.session.question import Standing, standing_of

FactKind = Literal["calls", "cap", "pause", "rate", "group", "exit", "due", "outside"]


@frozen
class Fact:
    """One line on the conversation. `holds`: it holds calls back, or waits to be done.

    `left_s`: how long it still counts at `seen_s` (seconds of the steady clock). `window`: what counts of a rate then.
    """

    kind: FactKind
    what: str
    text: str
    holds: bool = False
    left_s: float | None = None
    seen_s: float = 0.0
    rule: RuleLink | None = None
    window: Window | None = None


@frozen
class SessionState:
    """The conversation of one agent so far. `calls`: name and count, by name.

    `facts` and `standing` are there once they were looked up (`is_whole`). `pending`: what the end waits for.
    """

    agent_id: str
    should_continue: bool
    phase: str
    calls: tuple[tuple[str, int], ...]
    session_id: str = ""
    is_whole: bool = False
    facts: tuple[Fact, ...] = ()
    pending: tuple[str, ...] = ()
    standing: tuple[Standing, ...] = field(default=())


def brief(agent_id: str, session: Session) -> SessionState:
    """The state that costs nothing to know."""
    state = cast("dict[str, Any]", session.to_json())
    calls = cast("dict[str, int]", state["calls"])
    return SessionState(
        agent_id, bool(state["should_continue"]), str(state["phase"]), tuple(calls.items()), session.session_id
    )


def whole(workspace: Workspace, agent_id: str, session: Session) -> SessionState:
    """All of it, as the gate of `workspace` would go by; reads the disk. Raises WorkspaceError."""
    told = brief(agent_id, session)
    agent = workspace.gate.snapshot().agent(agent_id)
    if agent is None:
        return told
    look = _Look(workspace, agent, session)
    pending = tuple(visible(name) for name in workspace.gate.pending_exit(agent_id, session))
    facts = (*look.counts(told.calls), *look.limits(), *look.ends(pending), *look.due())
    standing = tuple(standing_of(grant) for grant in workspace.broker.standing() if _concerns(grant, told))
    return SessionState(
        agent_id, told.should_continue, told.phase, told.calls, told.session_id, True, facts, pending, standing
    )


def _concerns(grant: Grant, state: SessionState) -> bool:
    if grant.agent_id != state.agent_id:
        return False
    anywhere = grant.kind is Remember.DURATION and grant.approved
    return anywhere or grant.session_id == state.session_id


class _Look:
    """One look at one conversation."""

    def __init__(self, workspace: Workspace, agent: AgentSnapshot, session: Session) -> None:
        self._workspace = workspace
        self._agent = agent
        self._session = session
        self._facts = session.facts()
        self._services = workspace.gate.in_force().services
        self._now_s = self._services.clock.monotonic_s()
        self._seen_s = time.monotonic()  # read after the gate's clock: a pause is never over before it is

    def counts(self, calls: Iterable[tuple[str, int]]) -> Iterator[Fact]:
        """Facts on how often each operation was called, and how often that succeeded."""
        succeeded = cast("Mapping[str, int]", self._session.to_json()["successes"])
        for name, made in calls:
            good = succeeded.get(name, 0)
            text = tr("{count} run", count=made)
            if good != made:
                text = tr("{count} run, {good} succeeded", count=made, good=good)
            yield Fact("calls", visible(name), text)

    def limits(self) -> Iterator[Fact]:
        """Facts on what limits the next calls, each rule once."""
        seen: set[object] = set()
        for plan in self._agent.plans():
            for operation in (plan.operations or ("",)) if plan.closed is None else ():
                book = self._agent.rules.book(plan.tool.name, operation)
                for test in (*book.tests, *book.rates):
                    key = _key(test)
                    if key not in seen:
                        seen.add(key)
                        yield from self._limit(test)

    def ends(self, pending: Iterable[str]) -> Iterator[Fact]:
        """Facts on what must succeed before the loop may end."""
        rules = {visible(str(test.required)): test.bound.address for test in self._agent.rules.requirements}
        for name in pending:
            yield Fact("exit", name, tr("has to succeed before the end"), True, rule=self._link(rules.get(name)))

    def due(self) -> Iterator[Fact]:
        """Facts on what the model is reminded of now."""
        if self._facts.began_s is None:
            return
        for sentence in self._workspace.gate.reminders(self._agent.agent.agent_id, self._session):
            yield Fact("due", tr("reminder"), visible(sentence.replace("`", "")), True)

    def _limit(self, test: SessionTest | RateTest) -> Iterator[Fact]:
        bound = test.bound
        link, at = self._link(bound.address), bound.source_id or ""

        def name_at(what: object) -> str:
            return visible(tr("{what} at {source}", what=what, source=at) if at else str(what))

        match test:
            case CallsTest():
                made = self._facts.calls(test.counted.tool, test.counted.operations, at)
                text = tr(
                    "{made} of {all} calls made, {left} left",
                    made=f"{made:,}",
                    all=f"{test.calls:,}",
                    left=f"{max(0, test.calls - made):,}",
                )
                yield Fact("cap", name_at(test.counted), text, made >= test.calls, rule=link)
            case GapTest():
                start_s = self._facts.last_start_s(test.counted.tool, test.counted.operations, at)
                left_s = 0.0 if start_s is None else max(0.0, test.gap_s - (self._now_s - start_s))
                text = tr("{time} from start to start", time=duration_words(test.gap_s))
                yield Fact("pause", name_at(test.counted), text, left_s > 0, left_s, self._seen_s, link)
            case GroupTest():
                used = [str(ref) for ref in (*test.own, *test.others) if self._facts.calls(ref.tool, ref.operations)]
                names = ", ".join(str(ref) for ref in (*test.own, *test.others))
                text = tr("one of them can be used")
                if used:
                    text = tr("used: {names}; the others are closed", names=", ".join(used))
                yield Fact("group", visible(names), visible(text), bool(used), rule=link)
            case OutsideTest(_, effect):
                mark, what = self._facts.outside, name_at(bound.rule.tool_name)
                text = tr("off after outside results") if effect is Verdict.DENY else tr("asks after outside results")
                if mark is not None:
                    at_time = time.strftime("%H:%M:%S", time.localtime(mark.wall_s))
                    by = tr("{tool} at {time}, {call}", tool=mark.tool, time=at_time, call=mark.call_id)
                    text = tr("{rule}: {result}", rule=text, result=by)
                yield Fact("outside", what, visible(text), mark is not None, rule=link)
            case RateTest():
                yield self._rate(test.rate.key, test.rate.rule, name_at(bound.rule.tool_name), link)
            case _:
                return

    def _rate(self, key: str, rule: RateLimit, name: str, link: RuleLink | None) -> Fact:
        pace = f"{rule.calls:,} per {duration_words(rule.per_s)}"
        if self._services.rates is None:
            return Fact("rate", name, pace, rule=link)
        try:
            window = self._services.rates.peek(key, rule, self._services.clock.wall_s())
        except WorkspaceError as error:
            return Fact("rate", name, visible(str(error)), True, rule=link)
        seen_s = time.monotonic()
        return Fact("rate", name, rate_words(rule.calls, rule.per_s), seen_s=seen_s, rule=link, window=window)

    def _link(self, address: tuple[str | int, ...] | None) -> RuleLink | None:
        if address is None:
            return None
        place = self._workspace.place(address)
        return RuleLink(spell_address(address), address, place.line if place is not None else None)


def _key(test: SessionTest | RateTest) -> object:
    """The same for what is one limit, although it is tested at several operations."""
    match test:
        case CallsTest() | GapTest():
            return id(test.bound), test.counted
        case GroupTest():
            return id(test.bound), frozenset((*test.own, *test.others))
        case OutsideTest():
            return id(test.bound)
        case RateTest():
            return test.rate.key
        case _:
            return id(test)
