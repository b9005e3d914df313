"""A question to the operator and the answer to it, as values: who asks what, why, until when. It asks nobody."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from gatewright.workspace import Approval, ApprovalRequest, Grant, Remember
from gatewright_gui.session.calls import argument_text, operator_words, visible

Lasting = Literal["once", "duration", "scope"]
MAX_MINUTES = 366 * 24 * 60
"""The longest time for which an answer may be remembered."""
_TIERS = {"read_only": "read only", "side_effecting": "side effects", "privileged": "privileged"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the operator says. `seconds` counts for a duration only."""

    approved: bool
    lasting: Lasting = "once"
    seconds: float | None = None

    def approval(self, who: str) -> Approval:
        """The answer as the gate takes it."""
        return Approval(self.approved, who, Remember(self.lasting), self.seconds)


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for the operator. `arguments`: the exact ones as JSON text; `diff`: what would be written.

    Times are seconds since 1970; `expires_wall_s` None: it waits for as long as it takes. `once_only`: the tool itself
    asks because of the content of the moment, so that no answer can stand for other calls.
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

    @property
    def called(self) -> str:
        """Tool and operation, as they can be shown."""
        return visible(f"{self.tool}.{self.operation}" if self.operation else self.tool)

    @property
    def duration_words(self) -> str:
        """What an answer for a while covers."""
        return f"{self.called} by {visible(self.agent_id)} in any session, with other arguments too"

    @property
    def scope_words(self) -> str:
        """What an answer for this scope covers."""
        if self.scope is not None:
            return f"everything that asks for consent to `{visible(self.scope)}` in this session"
        return f"{self.called} in this session, with other arguments too"


def question_of(request: ApprovalRequest, answer: Callable[[Reply], None]) -> PendingApproval:
    """The question of a call, every character of it to be seen."""
    return PendingApproval(
        request.agent_id,
        request.tool,
        request.operation,
        argument_text(request.arguments),
        tuple(visible(operator_words(reason, request.operation)) for reason in request.reasons),
        request.diff,
        answer,
        request.request_id,
        request.session_id,
        request.user_id,
        _TIERS.get(request.safety_tier, request.safety_tier),
        request.scope,
        request.asked_wall_s,
        request.expires_wall_s,
        request.waiting,
        any(ask.once_only for ask in request.asks),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """An answer that was remembered. `what` it covers, `who` gave it; `expires_wall_s` None: until it is revoked."""

    grant_id: str
    approved: bool
    what: str
    who: str
    granted_wall_s: float
    expires_wall_s: float | None


def standing_of(grant: Grant) -> Standing:
    """A standing approval or refusal to show."""
    called = f"{grant.tool}.{grant.operation}" if grant.operation else grant.tool
    match grant.kind:
        case Remember.SCOPE if grant.scope is not None:
            what = f"consent to {grant.scope} in this session"
        case Remember.SCOPE:
            what = f"{called} in this session"
        case Remember.DURATION if grant.approved:
            what = f"{called} in any session"
        case _:
            what = f"one exact call of {called}"
    return Standing(
        grant.grant_id, grant.approved, visible(what), visible(grant.who), grant.granted_wall_s, grant.expires_wall_s
    )


def span(seconds: float) -> str:
    """A time to wait, in words: `now`, `8 s`, `4 min`, `2 h 5 min`, `3 d`."""
    left = max(0, round(seconds))
    if left < 1:
        return "now"
    if left < 90:
        return f"{left} s"
    if left < 5_400:
        return f"{round(left / 60)} min"
    if left < 172_800:
        hours, minutes = divmod(round(left / 60), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(left / 86_400)} d"
