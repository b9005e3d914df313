"""Questions to an operator, and the answers.

An answer holds for one digest: agent, user, session, tool, operation, canonical arguments and the text to write. Beside
the arguments the operator sees the objects behind ids, if an earlier result of the same session contained them. An id
is a text, or a whole number whose key is `id` or ends with it. It stands for an object in a result with the same value,
of the same type, under such a key.

It exceeds 450 lines, since a question is asked, stored and read back as one value.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable
from weakref import WeakKeyDictionary

from gatewright.base.errors import Address
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.scrub import cut_to_size, scrub_value
from gatewright.gate.session import Session
from gatewright.policy.delegation import Lineage
from gatewright.record.process import fork_safe_lock

MOST_RECORDS = 5
"""The most ids of one call to explain."""
MOST_RESULTS, MOST_BYTES = 64, 1 << 20
"""The most results of one session to store, the newest first, and the most bytes of all."""
_MOST_IDS, _LONGEST_ID = 64, 200
_MAY_HOLD = re.compile(rb'id\\*"', re.IGNORECASE)
_Id = tuple[type, "str | int"]


@frozen
class IdRecord:
    """The object behind one id. ``argument``: the id's place in the arguments, as in `ticket_id` or `items[0].id`.

    ``record``: the object, bounded and without secrets; ``called``: tool and operation of the call that returned it, at
    ``wall_s`` in seconds since 1970.
    """

    argument: str
    value: str | int
    record: JsonValue
    called: str
    wall_s: float

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: argument, value, record, called, time."""
        return {
            "argument": self.argument,
            "value": self.value,
            "record": self.record,
            "called": self.called,
            "time": self.wall_s,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> IdRecord:
        """Reverse ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        value = data["value"]
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise TypeError("an id is a text or a whole number")
        time_s = float(cast("float", data["time"]))
        return cls(str(data["argument"]), value, data["record"], str(data["called"]), time_s)


class _Kept(NamedTuple):
    called: str
    normal: bytes
    wall_s: float


class _Wanted(NamedTuple):
    argument: str
    key: str


class EarlierResults:
    """The results in the sessions of one gate, for looking up ids; they end with their session."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: WeakKeyDictionary[Session, deque[_Kept]] = WeakKeyDictionary()

    def keep(self, session: Session, called: str, normal: bytes, wall_s: float) -> None:
        """Store the bytes of a successful result if they may contain an id."""
        if len(normal) > MOST_BYTES or not _MAY_HOLD.search(normal):
            return
        with self._lock:
            kept = self._kept.setdefault(session, deque(maxlen=MOST_RESULTS))
            kept.append(_Kept(called, normal, wall_s))
            size = sum(len(one.normal) for one in kept)
            while size > MOST_BYTES:
                size -= len(kept.popleft().normal)

    def of(self, session: Session, arguments: Mapping[str, JsonValue]) -> tuple[IdRecord, ...]:
        """The objects behind the ids among the arguments; slow if there are many results."""
        with self._lock:
            kept = tuple(self._kept.get(session, ()))
        wanted = dict(_ids_in(arguments))
        found: dict[_Id, tuple[int, IdRecord]] = {}
        for one in reversed(kept):
            _look(one, wanted, found)
        return tuple(found[known][1] for known in wanted if known in found)[:MOST_RECORDS]


def _look(kept: _Kept, wanted: Mapping[_Id, _Wanted], found: dict[_Id, tuple[int, IdRecord]]) -> None:
    """Add the objects of a result that have a wanted id. An object with the value under `id`, or under the argument's
    own key, beats one that has it under another key; among equals the newest, then the first wins.
    """
    for table in _objects(_read(kept.normal)):
        for key, value in table.items():
            if not isinstance(value, str | int) or not _names_id(key):
                continue
            known = _id(value)
            if (asked := wanted.get(known)) is None:
                continue
            rank = 2 if key.casefold() in {"id", asked.key.casefold()} else 1
            if rank > found.get(known, (0,))[0]:
                record, _ = scrub_value(cut_to_size(table)[0])
                found[known] = rank, IdRecord(asked.argument, value, record, kept.called, kept.wall_s)


def _ids_in(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[_Id, _Wanted]]:
    """Values that may be ids, in order, each with the argument that contains it."""
    seen: set[_Id] = set()
    stack: list[tuple[str, str, JsonValue]] = [(key, key, value) for key, value in reversed([*arguments.items()])]
    while stack and len(seen) < _MOST_IDS:
        argument, key, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{argument}.{name}", name, inner) for name, inner in reversed([*value.items()])]
        elif isinstance(value, list):
            stack += [(f"{argument}[{at}]", key, inner) for at, inner in reversed([*enumerate(value)])]
        elif isinstance(value, str | int) and (known := _id(value)) not in seen:
            is_text = isinstance(value, str)
            if 0 < len(value) <= _LONGEST_ID if is_text else not isinstance(value, bool) and _names_id(key):
                seen.add(known)
                yield known, _Wanted(argument, key)


def _id(value: str | int) -> _Id:
    """A key by which a text never equals a number, nor `true` the number 1."""
    return type(value), value


def _names_id(key: str) -> bool:
    return key.casefold().endswith(("id", "ids"))


def _read(normal: bytes) -> Any:
    try:
        return json.loads(normal)
    except (ValueError, RecursionError):
        return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value, in order; also those in text blocks of MCP servers that are JSON."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack += reversed(cast("list[Any]", one))
        elif isinstance(one, dict):
            table = cast("dict[str, Any]", one)
            yield table
            text = table.get("text") if table.get("type") == "text" else None
            if isinstance(text, str) and text.lstrip()[:1] in {"{", "["}:
                stack.append(_read(text.encode("utf-8", "replace")))
            stack += reversed(table.values())


MOST_SECONDS = 366 * 86_400.0
"""The longest time for which an answer may be remembered."""

REFUSED_CODE = "approval-refused"
_BINDING = "conversation", "policy_digest", "folder"
_MOST_TIMEOUT_S = 7 * 86_400.0


class Remember(StrEnum):
    """The life of an answer: for this call only, for a time, or for the rule's scope in this session."""

    ONCE = "once"
    DURATION = "duration"
    SCOPE = "scope"


@frozen
class Ask:
    """One reason to ask. ``key`` identifies it; ``once_only``: it depends on the present content.

    ``about``: the one place or block whose level asks, for the operator; empty if any arguments would ask the same.
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
        """Reverse ``to_json``."""
        scope = cast("str | None", data["scope"])
        return cls(str(data["key"]), scope, data["once_only"] is True, str(data.get("about", "")))


class WholeCall(NamedTuple):
    """The call that takes the answer to a question, by the id that its program gave it."""

    tool: str
    arguments: Mapping[str, JsonValue]
    call_id: str


@frozen
class ApprovalRequest:
    """One question. ``reasons``: the reasons to ask, the deciding one first. ``diff``: the text change, if any.

    ``asks``: the parts that an answer covers, as grants know them. ``waiting``: the number of identical calls that
    wait. ``client``: the name that the calling program gave itself; ``process_id``: of the process that waits.
    ``places``: for each reason its place in the policy, () for none. ``records``: the objects behind ids. Of a
    suspended call: ``call_key``, the call id that its program gave it, in ``conversation``; ``policy_digest``;
    ``forms``, the keyed digests of the call as sent and as canonical; ``due_wall_s``, when to remind the operator;
    ``whole``, if it is a step, the composition's call; ``folder``, in which its program works. Of a sub-agent:
    ``callers``, the outermost first, and ``lineage``, by which the call is made again.
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
    call_key: str = ""
    conversation: str = ""
    policy_digest: str = ""
    forms: tuple[str, ...] = ()
    due_wall_s: float | None = None
    whole: WholeCall | None = field(default=None, hash=False)
    callers: tuple[str, ...] = ()
    lineage: Lineage | None = None
    folder: str = ""

    @property
    def whose(self) -> str:
        """The agent that asks, in words, with those that started it."""
        return ", started by ".join((self.agent_id, *reversed(self.callers)))

    @property
    def again(self) -> WholeCall:
        """The suspended call to make again."""
        return self.whole or WholeCall(self.tool, self.arguments, self.call_key)

    @property
    def is_suspended(self) -> bool:
        """No process waits: the same call, made again with the same call id, takes the answer."""
        return self.call_key != ""

    def is_due(self, wall_s: float) -> bool:
        """Tell whether it has waited for so long that somebody should be reminded."""
        return self.due_wall_s is not None and wall_s >= self.due_wall_s

    def to_json(self) -> dict[str, JsonValue]:
        """Every field, those of suspension only of a suspended call; times in seconds since 1970."""
        reasons: list[JsonValue] = [*self.reasons]
        asks: list[JsonValue] = [ask.to_json() for ask in self.asks]
        places: list[JsonValue] = [[*place] for place in self.places]
        records: list[JsonValue] = [record.to_json() for record in self.records]
        suspended: dict[str, JsonValue] = {"call_id": self.call_key, "due": self.due_wall_s, "forms": [*self.forms]}
        suspended |= {name: getattr(self, name) for name in _BINDING}
        suspended |= {} if self.whole is None else {"whole": {**self.whole._asdict()}}
        suspended |= {} if self.lineage is None else {"lineage": self.lineage.to_json()}
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
            **({"callers": [*self.callers]} if self.callers else {}),
            **(suspended if self.call_key else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> ApprovalRequest:
        """Reverse ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
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
            call_key=str(data.get("call_id", "")),
            **{name: str(data.get(name, "")) for name in _BINDING},
            forms=tuple(cast("list[str]", data.get("forms", []))),
            due_wall_s=cast("float | None", data.get("due")),
            whole=WholeCall(**cast("dict[str, Any]", data["whole"])) if "whole" in data else None,
            callers=tuple(map(str, cast("list[JsonValue]", data.get("callers", [])))),
            lineage=Lineage.from_json(data["lineage"]) if "lineage" in data else None,
        )


def _address(place: JsonValue) -> Address:
    steps = cast("list[JsonValue]", place)
    if not all(isinstance(step, str | int) for step in steps):
        raise TypeError("a place of the policy is made of texts and numbers")
    return tuple(cast("list[str | int]", steps))


@frozen
class ApprovalLimits:
    """The time that a question waits, and the most that one agent with one user may ask.

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
    """The answer, its author and how long it counts; ``seconds`` matters for a duration only.

    A refusal may last too: then identical calls are refused for its duration. ``grant_id``: the standing approval that
    the answer made, if any. ``code``: another code if nobody spoke the refusal (time, rate, no store), with the reason
    in ``reason``. For a spoken refusal ``reason`` is its text for the model.
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
        """True if the answer should outlive this call and has a valid time or scope."""
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
        """Reverse ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
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
    """An approval with what it answers: the digest, and the keys of the asks that the operator saw.

    ``asks`` None: unknown.
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
        """Reverse ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
        approval = Approval.from_json(cast("dict[str, JsonValue]", data["approval"]))
        asks = cast("list[JsonValue] | None", data["asks"])
        return cls(approval, str(data["digest"]), None if asks is None else frozenset(map(str, asks)))


class Approver(Protocol):
    """Asks somebody who may decide, and takes as long as that person takes."""

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """The answer. Raises NobodyAnswered if nobody gives one; any other exception counts as a refusal."""
        ...


@runtime_checkable
class AttendedApprover(Approver, Protocol):
    """An approver that knows beforehand whether anybody is there."""

    async def is_attended(self) -> bool:
        """Tell whether somebody would be asked."""
        ...
