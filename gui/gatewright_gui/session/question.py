"""A question to the operator and the answer to it, as values: who asks what, why, until when."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from gatewright.workspace.api import (
    SCOPE_S,
    Address,
    Approval,
    ApprovalRequest,
    Grant,
    IdRecord,
    JsonValue,
    Remember,
    StaleQuestion,
    frozen,
    spell_address,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.calls import argument_text, telling_argument, visible

Lasting = Literal["once", "duration", "scope"]
MAX_MINUTES = 366 * 24 * 60
"""The longest time for which an answer may be remembered."""
SCOPE_DAYS = round(SCOPE_S / 86_400)
"""How long an answer for this session stands at most."""
WHO = "a person in Try"
"""Who answers in Try, as the audit log keeps it."""
_MAX_TOLD = 3
"""Places that are named where an answer covers several."""
TIER_WORDS = {"read_only": mark("read only"), "side_effecting": mark("side effects"), "privileged": mark("privileged")}


@frozen
class Reply:
    """The operator's answer. `seconds` counts for a duration only, `reason` for a refusal: the model is told it."""

    approved: bool
    lasting: Lasting = "once"
    seconds: float | None = None
    reason: str = ""

    def approval(self, who: str) -> Approval:
        """The answer as the gate takes it."""
        return Approval(self.approved, who, Remember(self.lasting), self.seconds, reason=self.reason)


@frozen
class PendingApproval:
    """A call that waits for the operator. `arguments`: the exact ones as JSON text; `diff`: what would be written.

    Times are seconds since 1970; `expires_wall_s` None: it waits for as long as it takes. `once_only`: the tool itself
    asks because of the content of the moment, so that no answer can stand for other calls. `digest`: of the call.
    `client`: the program that sent it, as it calls itself; `process_id`: of the process that waits, 0 for this one.
    `places`: for each reason its part of the policy. `records`: what ids among the arguments stand for. `values`: the
    arguments themselves. `call_key`: the id of a suspended call in its `conversation`; no process waits for it, and at
    `due_wall_s` somebody should be reminded. `callers`: of a sub-agent, the outermost first.
    """

    agent_id: str
    tool: str
    operation: str
    arguments: str
    reasons: tuple[str, ...]
    diff: str | None
    answer: Callable[[Reply], None] = field(hash=False, compare=False)
    request_id: str = ""
    session_id: str = ""
    user_id: str | None = None
    tier: str = ""
    scope: str | None = None
    asked_wall_s: float = 0.0
    expires_wall_s: float | None = None
    waiting: int = 1
    once_only: bool = False
    about: tuple[str, ...] = ()
    digest: str = ""
    client: str = ""
    process_id: int = 0
    places: tuple[Address, ...] = ()
    records: tuple[IdRecord, ...] = ()
    call_id: str = ""
    values: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], hash=False, compare=False)
    call_key: str = ""
    conversation: str = ""
    due_wall_s: float | None = None
    callers: tuple[str, ...] = ()

    @property
    def whose(self) -> str:
        """The agent that asks, of a sub-agent with its callers, as it can be shown."""
        whose = visible(self.agent_id)
        for caller in reversed(self.callers):
            whose = tr("{agent}, started by {caller}", agent=whose, caller=visible(caller))
        return whose

    @property
    def called(self) -> str:
        """Tool and operation, as they can be shown."""
        return visible(f"{self.tool}.{self.operation}" if self.operation else self.tool)

    @property
    def touches(self) -> str:
        """The files or blocks that ask, else the argument that tells the call from others."""
        selector = next((name for name, value in self.values.items() if value == self.operation), "")
        return visible(", ".join(filter(None, self.about))) or telling_argument(self.values, selector)

    @property
    def duration_words(self) -> str:
        """The reach of an answer for a while."""
        return reach_of(self.called, self.about, tr("by {agent}, in any session", agent=visible(self.agent_id)))

    @property
    def scope_words(self) -> str:
        """The reach of an answer for this scope."""
        if self.scope is not None:
            what = tr("Every call of this session in the consent group `{group}`", group=visible(self.scope))
        else:
            what = reach_of(self.called, self.about, tr("in this session only"))
        return tr("{what}, for at most {days} days", what=what, days=SCOPE_DAYS)

    @property
    def asker(self) -> str:
        """Which process asks, and for whom."""
        parts = [tr("process {id}", id=self.process_id)] if self.process_id else []
        parts += [tr("suspended")] if self.call_key else []
        parts += [tr("conversation {name}", name=visible(self.conversation))] if self.conversation else []
        parts += [visible(self.client)] if self.client else []
        parts += [tr("user {id}", id=visible(self.user_id))] if self.user_id else []
        return " \u00b7 ".join(parts)

    def wait_words(self, now_s: float) -> str:
        """Words for how long it still waits."""
        if self.expires_wall_s is None:
            return tr("waits until it is answered")
        left_s = self.expires_wall_s - now_s
        if self.call_key and left_s >= 1:
            waits = tr("waits {time} more without a process", time=span(left_s))
            return tr("{waits}, due", waits=waits) if self.is_due(now_s) else waits
        return tr("denied in {time} if nobody answers", time=span(left_s)) if left_s >= 1 else tr("its time is over")

    def is_due(self, now_s: float) -> bool:
        """Tell whether it has waited for long."""
        return self.due_wall_s is not None and now_s >= self.due_wall_s


def question_of(request: ApprovalRequest, answer: Callable[[Reply], None]) -> PendingApproval:
    """The question of a call, every character of it to be seen."""
    return PendingApproval(
        request.agent_id,
        request.tool,
        request.operation,
        argument_text(request.arguments),
        tuple(visible(reason) for reason in request.reasons),
        request.diff,
        answer,
        request.request_id,
        request.session_id,
        request.user_id,
        tr(TIER_WORDS.get(request.safety_tier, request.safety_tier)),
        request.scope,
        request.asked_wall_s,
        request.expires_wall_s,
        request.waiting,
        any(ask.once_only for ask in request.asks),
        tuple(sorted({ask.about for ask in request.asks})),
        request.digest,
        request.client,
        request.process_id,
        request.places,
        request.records,
        request.call_id,
        request.arguments,
        request.call_key,
        request.conversation,
        request.due_wall_s,
        request.callers,
    )


def place_words(address: Address, line: int | None = None) -> str:
    """A part of the policy and where it stands."""
    place = visible(spell_address(address))
    return place if line is None else tr("{place}, line {line}", place=place, line=line)


def reach_of(called: str, about: tuple[str, ...], where: str = "") -> str:
    """The reach of a lasting answer: an ask for the level of one file stands for that file, every other for any call.

    `about`: the files or blocks whose level asked, empty among them where something else asked too; () is not known.
    """
    whole = f"{_at_places(called, about)} {where}".rstrip()
    return tr("{call}, with any arguments", call=whole) if about and not any(about) else whole


def _at_places(called: str, about: tuple[str, ...]) -> str:
    places = [visible(place) for place in about if place]
    if not places:
        return called
    named = ", ".join(f"`{place}`" for place in places[:_MAX_TOLD])
    if len(places) > _MAX_TOLD:
        named = tr("{places} and {count} more", places=named, count=len(places) - _MAX_TOLD)
    return tr("{call} of {places}", call=called, places=named)


def own(text: str) -> str:
    """The words of a stage on an answer given here, to the one who gave it."""
    return text.replace(WHO, "you").replace("you was ", "you were ")


def who_words(who: str) -> str:
    """The name of who gave an answer, to the one who gave it here."""
    return tr("you") if who == WHO else visible(who)


@frozen
class Standing:
    """An answer that was remembered. `what` it covers, in which sessions (`where`), all of it in `words`.

    `who` gave it; `expires_wall_s` None: until it is revoked.
    """

    grant_id: str
    approved: bool
    what: str
    who: str
    granted_wall_s: float
    expires_wall_s: float | None
    where: str = ""
    words: str = ""
    agent_id: str = ""
    session_id: str = ""
    called: str = ""


_OTHERS = mark("whatever the other arguments. Another file or block whose own level asks is asked about again")


def standing_of(grant: Grant) -> Standing:
    """A standing approval or refusal to show."""
    called = visible(f"{grant.tool}.{grant.operation}" if grant.operation else grant.tool)
    places = any(grant.about)
    match grant.kind:
        case Remember.SCOPE if grant.scope is not None:
            what, where = tr("consent group {group}", group=visible(grant.scope)), tr("in this session")
        case Remember.SCOPE:
            what, where = _at_places(called, grant.about), tr("in this session")
        case Remember.DURATION if grant.approved:
            what, where = _at_places(called, grant.about), tr("in any session")
        case _:
            what, where, places = tr("one exact call of {call}", call=called), "", False
    what = what.replace("`", "")
    words = f"{what} {where}".rstrip()
    if places:
        words = f"{words}; {tr(_OTHERS)}"
    if grant.about == ("",) and where and grant.scope is None:
        words = tr("{call}, with any arguments", call=words)
    who = who_words(grant.who)
    times = grant.granted_wall_s, grant.expires_wall_s
    whose = visible(grant.agent_id), visible(grant.session_id)
    return Standing(grant.grant_id, grant.approved, what, who, *times, where, words, *whose, called)


@frozen
class Stale:
    """The question of a suspended call that no answer fits any more. `why`: the reason, as can be shown."""

    request_id: str
    called: str
    agent_id: str
    conversation: str
    arguments: str
    asked_wall_s: float
    why: str


_WHY_STALE = (
    *(mark("the policy has changed"), mark("what the call would do has changed"), mark("the answer was taken back")),
    *(mark("nobody answered in time"), mark("it was answered, and its program did not make the call again in time")),
)
"""The reasons of the engine that the app can say in its language; others name what has changed."""


def stale_of(question: StaleQuestion) -> Stale:
    """A stale question to show."""
    request = question.request
    called = visible(f"{request.tool}.{request.operation}" if request.operation else request.tool)
    why = tr(question.why) if question.why in _WHY_STALE else visible(question.why)
    whose = visible(request.agent_id), visible(request.conversation)
    return Stale(request.request_id, called, *whose, argument_text(request.arguments), request.asked_wall_s, why)


def span(seconds: float) -> str:
    """A time to wait, in words: `now`, `8 s`, `4 min`, `2 h 5 min`, `3 d`."""
    left = max(0, round(seconds))
    if left < 1:
        return tr("now")
    if left < 90:
        return f"{left} s"
    if left < 5_400:
        return f"{round(left / 60)} min"
    if left < 172_800:
        hours, minutes = divmod(round(left / 60), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return tr("{days} d", days=round(left / 86_400))
