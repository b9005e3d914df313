"""What an operator is asked and answers.

An answer holds for one digest: agent, user, session, tool, operation, canonical arguments and the text to be written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol, cast, runtime_checkable

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.gate.idrecord import IdRecord

MOST_SECONDS = 366 * 86_400.0
"""The longest time for which an answer may be remembered."""

REFUSED_CODE = "approval-refused"
_MOST_TIMEOUT_S = 7 * 86_400.0


class Remember(StrEnum):
    """How long an answer lasts: this call only, for a time, or for the rule's scope in this session."""

    ONCE = "once"
    DURATION = "duration"
    SCOPE = "scope"


@frozen
class Ask:
    """One thing that asks. ``key``: what tells it from every other; ``once_only``: it hangs on the content.

    ``about``: the one place or block whose level asks, to be told; empty where any arguments ask the same.
    """

    key: str
    scope: str | None = None
    once_only: bool = False
    about: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: key, scope, once_only, about."""
        return {"key": self.key, "scope": self.scope, "once_only": self.once_only, "about": self.about}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Ask:
        """The reverse of ``to_json``."""
        scope = data["scope"]
        about = str(data.get("about", ""))
        return cls(str(data["key"]), None if scope is None else str(scope), data["once_only"] is True, about)


@frozen
class ApprovalRequest:
    """One question. ``reasons``: why it is asked, first the deciding one. ``diff``: the text change, if any.

    ``asks``: what an answer would answer, as grants know it. ``waiting``: how many identical calls wait for the answer.
    ``client``: the program that sent the call, as it calls itself; ``process_id``: of the process that waits.
    ``places``: for each reason its part of the policy, () where there is none. ``records``: what ids stand for.
    """

    agent_id: str
    tool: str
    operation: str
    arguments: Mapping[str, JsonValue] = field(hash=False)
    reasons: tuple[str, ...]
    diff: str | None
    scope: str | None
    digest: str
    call_id: str = ""
    session_id: str = ""
    user_id: str | None = None
    tool_digest: str = ""
    request_id: str = ""
    asked_wall_s: float = 0.0
    expires_wall_s: float | None = None
    safety_tier: str = ""
    asks: tuple[Ask, ...] = ()
    waiting: int = 1
    client: str = ""
    process_id: int = 0
    places: tuple[Address, ...] = ()
    records: tuple[IdRecord, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Every field; times in seconds since 1970."""
        reasons: list[JsonValue] = [*self.reasons]
        asks: list[JsonValue] = [ask.to_json() for ask in self.asks]
        places: list[JsonValue] = [[*place] for place in self.places]
        records: list[JsonValue] = [record.to_json() for record in self.records]
        return {
            "id": self.request_id,
            "agent": self.agent_id,
            "user": self.user_id,
            "session": self.session_id,
            "call": self.call_id,
            "tool": self.tool,
            "operation": self.operation,
            "safety_tier": self.safety_tier,
            "arguments": dict(self.arguments),
            "diff": self.diff,
            "reasons": reasons,
            "scope": self.scope,
            "asked": self.asked_wall_s,
            "expires": self.expires_wall_s,
            "waiting": self.waiting,
            "digest": self.digest,
            "tool_digest": self.tool_digest,
            "asks": asks,
            "client": self.client,
            "process": self.process_id,
            "places": places,
            "records": records,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> ApprovalRequest:
        """The reverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            agent_id=str(data["agent"]),
            tool=str(data["tool"]),
            operation=str(data["operation"]),
            arguments=cast("dict[str, JsonValue]", data["arguments"]),
            reasons=tuple(map(str, cast("list[JsonValue]", data["reasons"]))),
            diff=cast("str | None", data["diff"]),
            scope=cast("str | None", data["scope"]),
            digest=str(data["digest"]),
            call_id=str(data["call"]),
            session_id=str(data["session"]),
            user_id=cast("str | None", data["user"]),
            tool_digest=str(data["tool_digest"]),
            request_id=str(data["id"]),
            asked_wall_s=float(cast("float", data["asked"])),
            expires_wall_s=cast("float | None", data["expires"]),
            safety_tier=str(data["safety_tier"]),
            asks=tuple(
                Ask.from_json(cast("dict[str, JsonValue]", ask)) for ask in cast("list[JsonValue]", data["asks"])
            ),
            waiting=int(cast("int", data["waiting"])),
            client=str(data.get("client", "")),
            process_id=int(cast("int", data.get("process", 0))),
            places=tuple(_address(place) for place in cast("list[JsonValue]", data.get("places", []))),
            records=tuple(
                IdRecord.from_json(cast("dict[str, JsonValue]", record))
                for record in cast("list[JsonValue]", data.get("records", []))
            ),
        )


def _address(place: JsonValue) -> Address:
    steps = cast("list[JsonValue]", place)
    if not all(isinstance(step, str | int) for step in steps):
        raise TypeError("a place of the policy is made of texts and numbers")
    return tuple(cast("list[str | int]", steps))


@frozen
class ApprovalLimits:
    """How long a question waits, and what one agent with one user may ask.

    ``waiting``: calls that wait at the same time, in all processes; ``per_minute``: questions, in this process.
    """

    timeout_s: float = 45.0
    waiting: int = 10
    per_minute: int = 30

    def __post_init__(self) -> None:
        if not 0 < self.timeout_s <= _MOST_TIMEOUT_S:
            raise ValueError(f"`timeout_s` is {self.timeout_s!r}: more than 0 and at most {_MOST_TIMEOUT_S:g} seconds")
        if min(self.waiting, self.per_minute) < 0:
            raise ValueError("`waiting` and `per_minute` are 0 or more")


@frozen
class Approval:
    """The answer, whose it is, and how long it lasts. ``seconds`` counts for a duration only.

    A refusal may be for a duration too: identical calls are refused so long. ``grant_id``: the standing approval that
    the answer made, where it made one. ``code``: another one where nobody spoke the refusal (time, rate, no store), and
    ``reason`` then says why; of a refusal that somebody spoke ``reason`` is what the model is told of it.
    """

    approved: bool
    who: str = ""
    remember: Remember = Remember.ONCE
    seconds: float | None = None
    grant_id: str = ""
    code: str = REFUSED_CODE
    reason: str = ""

    @property
    def lasts(self) -> bool:
        """Whether it is to be remembered beyond this call, for a time or a scope that can be kept."""
        if self.remember is Remember.DURATION:
            seconds: object = self.seconds
            return isinstance(seconds, int | float) and math.isfinite(seconds) and 0 < seconds <= MOST_SECONDS
        return self.remember is Remember.SCOPE and self.approved is True

    def to_json(self) -> dict[str, JsonValue]:
        """Every field under its own name."""
        return {
            "approved": self.approved,
            "who": self.who,
            "remember": str(self.remember),
            "seconds": self.seconds,
            "grant": self.grant_id,
            "code": self.code,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Approval:
        """The reverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            data["approved"] is True,
            str(data["who"]),
            Remember(str(data["remember"])),
            cast("float | None", data["seconds"]),
            str(data["grant"]),
            str(data["code"]),
            str(data["reason"]),
        )


@frozen
class Answer:
    """An approval together with what it was given for: the digest, and the keys of the asks that were shown.

    ``asks`` None: nobody kept which they were.
    """

    approval: Approval
    digest: str
    asks: frozenset[str] | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: approval, digest, asks."""
        asks: list[JsonValue] | None = None if self.asks is None else [*sorted(self.asks)]
        return {"approval": self.approval.to_json(), "digest": self.digest, "asks": asks}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Answer:
        """The reverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        approval = Approval.from_json(cast("dict[str, JsonValue]", data["approval"]))
        asks = cast("list[JsonValue] | None", data["asks"])
        return cls(approval, str(data["digest"]), None if asks is None else frozenset(map(str, asks)))


class Approver(Protocol):
    """Asks somebody who may decide; takes as long as they take."""

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """The answer. Raises NobodyAnswered when there is none; raising anything else counts as a refusal."""
        ...


@runtime_checkable
class AttendedApprover(Approver, Protocol):
    """An approver that can tell beforehand whether anybody is there."""

    async def is_attended(self) -> bool:
        """Whether somebody would be asked."""
        ...
