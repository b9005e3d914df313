"""Standing approvals: a remembered answer, how long it lasts and what it covers.

A grant answers the asks that stood before the operator and no others. Each ask has a key (its code, its place in the
policy, its words), so an ask that is new, stricter or about another file is asked again. What the three kinds cover:

* **once**: one execution of exactly this call: agent, user, session, tool as it was, operation, canonical arguments and
  the text to be written. Identical calls that waited together share the prompt and not the execution.
* **duration**: the same operation of the same tool (as it was) for the same agent and user, in any session, other
  arguments included, until it expires. The level of one file is such an ask of its own: another file asks again.
* **scope**: in this session (for a month at most), every consent of that scope name, whatever the tool; any other ask,
  and a consent without a scope, only by its key for the same tool and operation.

What a tool itself asks (unsaved text would be thrown away) hangs on the content of the moment: only *once* answers it.
A standing refusal is a grant that is not ``approved``: identical calls are refused while it lasts, and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never, cast

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.once import once
from gatewright.gate.approval import Ask, Remember


@frozen
class Grant:
    """A standing approval, or with ``approved`` False a standing refusal. Times are seconds since 1970.

    ``asks``: the keys of what it answers. ``scope``: the scope name, for a grant of that kind. ``digest``: the exact
    call (for once, and for a refusal). ``expires_wall_s`` None: it stands until it is revoked. ``about``: what its asks
    were about, sorted, empty among them where some are not about one place; none at all when that was not kept.
    """

    grant_id: str
    kind: Remember
    agent_id: str
    user_id: str | None
    session_id: str
    tool: str
    operation: str
    tool_digest: str
    scope: str | None
    digest: str
    asks: frozenset[str]
    granted_wall_s: float
    expires_wall_s: float | None
    who: str
    approved: bool = True
    about: tuple[str, ...] = ()

    def has_expired(self, wall_s: float) -> bool:
        """Whether its time is over."""
        return self.expires_wall_s is not None and wall_s >= self.expires_wall_s

    def to_json(self) -> dict[str, JsonValue]:
        """Every field under its own name without units; ``asks`` as a sorted list."""
        asks: list[JsonValue] = [*sorted(self.asks)]
        return {
            "id": self.grant_id,
            "kind": str(self.kind),
            "approved": self.approved,
            "agent": self.agent_id,
            "user": self.user_id,
            "session": self.session_id,
            "tool": self.tool,
            "operation": self.operation,
            "tool_digest": self.tool_digest,
            "scope": self.scope,
            "digest": self.digest,
            "asks": asks,
            "granted": self.granted_wall_s,
            "expires": self.expires_wall_s,
            "who": self.who,
            "about": [*self.about],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Grant:
        """The reverse of ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            str(data["id"]),
            Remember(str(data["kind"])),
            str(data["agent"]),
            _optional(data["user"]),
            str(data["session"]),
            str(data["tool"]),
            str(data["operation"]),
            str(data["tool_digest"]),
            _optional(data["scope"]),
            str(data["digest"]),
            frozenset(map(str, cast("list[JsonValue]", data["asks"]))),
            _seconds(data["granted"]),
            None if data["expires"] is None else _seconds(data["expires"]),
            str(data["who"]),
            data["approved"] is True,
            tuple(map(str, cast("list[JsonValue]", data.get("about", [])))),
        )


@dataclass(frozen=True)
class Subject:
    """A call that asks, as a grant sees it. ``digest_of`` is only called where a grant hangs on the exact call."""

    agent_id: str
    user_id: str | None
    session_id: str
    tool: str
    operation: str
    tool_digest: str
    asks: tuple[Ask, ...]
    digest_of: Callable[[], str]

    @once
    def digest(self) -> str:
        """The digest of the exact call."""
        return self.digest_of()


def covers(grant: Grant, subject: Subject, wall_s: float) -> bool:
    """Whether the grant decides about the call: an approval answers all it asks, a refusal forbids just this call."""
    if grant.has_expired(wall_s) or (grant.agent_id, grant.user_id) != (subject.agent_id, subject.user_id):
        return False
    if not grant.approved:
        return grant.session_id == subject.session_id and grant.digest == subject.digest
    return all(_answers(grant, subject, ask) for ask in subject.asks)


def _answers(grant: Grant, subject: Subject, ask: Ask) -> bool:
    same = (grant.tool, grant.operation, grant.tool_digest) == (subject.tool, subject.operation, subject.tool_digest)
    known = same and ask.key in grant.asks
    match grant.kind:
        case Remember.ONCE:
            return known and grant.session_id == subject.session_id and grant.digest == subject.digest
        case Remember.DURATION:
            return known and not ask.once_only and grant.expires_wall_s is not None
        case Remember.SCOPE:
            if grant.session_id != subject.session_id or ask.once_only:
                return False
            return known or (ask.scope is not None and ask.scope == grant.scope)
    assert_never(grant.kind)


def _optional(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _seconds(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number of seconds")
    return float(value)
