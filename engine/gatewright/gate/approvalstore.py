"""Pending questions, their answers and the standing approvals (grants) of one workspace, shared by its processes.

The gate looks approvals up here, and a PermissionBroker waits for answers. They are rows of one file,
``approvals.sqlite`` in the state folder (a `SealedTable`), or of a shared state. A question ends with its time, its
withdrawal, or the process that waits; the question of a suspended call depends on no process, and its answer waits for
the call that takes it.

A grant answers the asks that the operator saw and no others. Each ask has a key (its code, its place in the policy, its
words), so a new or stricter ask, or one about another file, comes to the operator again. The kinds cover:

* **once**: one execution of exactly this call: agent, user, session, tool in its present form, operation, canonical
arguments and
the text to write. Identical calls that waited together share the prompt and not the execution.
* **duration**: the same operation of the same tool (in its present form) for the same agent and user, in any session,
with any
arguments, until it expires. The level of one file is an ask of its own: another file asks again.
* **scope**: in this session (for a month at most), every consent of that scope name, for any tool; any other ask,
and a consent without a scope, only by its key for the same tool and operation.
* An ask by the tool itself (it would lose unsaved text) depends on the present content: only *once* answers it.
* A standing refusal is a grant that is not ``approved``: while it lasts, identical calls are refused without a
question.

It exceeds 450 lines, since questions, answers and grants change together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never, cast

from gatewright.base.amount import Clock, SystemClock, new_id
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import once
from gatewright.gate.approval import Approval, ApprovalRequest, Ask, Remember
from gatewright.gate.port import Life, Operators, Table, TableChange, Tables
from gatewright.record.process import Lifeline, Presence
from gatewright.record.sealedtable import SealedRow, SealedTable, Version


@frozen
class Grant:
    """A standing approval, or with ``approved`` False a standing refusal. Times are seconds since 1970.

    ``asks``: the keys that it answers. ``scope``: the scope name, for a grant of that kind. ``digest``: the exact call
    (for once, and for a refusal). ``expires_wall_s`` None: until revoked. ``about``: the subjects of its asks, sorted;
    an ask about no single place has an empty one; () if unknown.
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
        """Tell whether the grant's time is over."""
        return self.expires_wall_s is not None and wall_s >= self.expires_wall_s

    def to_json(self) -> dict[str, JsonValue]:
        """Every field under its own name without units; ``asks`` as a sorted list."""
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
            "asks": [*sorted(self.asks)],
            "granted": self.granted_wall_s,
            "expires": self.expires_wall_s,
            "who": self.who,
            "about": [*self.about],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Grant:
        """Reverse ``to_json``. Raises KeyError, TypeError or ValueError for anything else."""
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
    """A call that asks, as a grant sees it. Only a grant for the exact call uses ``digest_of``."""

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
    """Tell whether the grant decides the call: an approval must answer all its asks, a refusal be of exactly this
    call.
    """
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


FILE_NAME = "approvals.sqlite"
ONCE_S = 60.0
"""How long an approval for one execution stays valid; long, since the call is already waiting."""
SCOPE_S = 30 * 86_400.0
"""The longest life of an approval for a scope: a longer session asks again."""
MOST_BYTES = 1 << 20
"""The most bytes of a question, since nobody would read more before an answer."""
MOST_QUESTIONS = 1000
"""The most calls that wait at the same time in a workspace, for all agents."""
MOST_SUSPENDED = 100
"""The most suspended calls of one agent with one user."""
STALE_S = 7 * 86_400.0
"""The time for which a question that nobody can answer any more is listed, with the reason."""
_KINDS = _REQUEST, _ANSWER, _GRANT, _STALE = "request", "answer", "grant", "stale"
EXPIRED, UNTAKEN = "nobody answered in time", "it was answered, and its program did not make the call again in time"


@frozen
class StaleQuestion:
    """A question of a suspended call that no answer fits any more, and the reason."""

    request: ApprovalRequest
    why: str

    def to_json(self) -> dict[str, JsonValue]:
        """The question's fields, and why."""
        return {**self.request.to_json(), "why": self.why}


class QuestionTooLarge(WorkspaceError):
    """A question with more text than an operator could look through."""


class ApprovalStore:
    """The approvals of one workspace; without ``state`` they live in memory. The first write creates the file.

    Safe to use from any thread. Methods that say so raise WorkspaceError; the others treat an unreadable store as empty
    and leave a note.
    """

    def __init__(
        self, state: Path | Tables | None = None, keys: Path | None = None, *, clock: Clock | None = None
    ) -> None:
        self._rows: Table
        self._lifeline: Life
        self._presence: Operators
        self._clock = clock or SystemClock()
        if state is None or isinstance(state, Path):
            self._rows = SealedTable(None if state is None else state / FILE_NAME, keys, _KINDS, "approvals")
            self._lifeline, self._presence = Lifeline(state), Presence(state, keys)
        else:
            self._rows, self._lifeline, self._presence = state.table(_KINDS, "approvals")
        self._grants: tuple[Version, tuple[Grant, ...]] = ((), ())

    @property
    def notes(self) -> tuple[str, ...]:
        """The faults found in the store so far, for the operator."""
        return self._rows.notes

    # -- standing approvals

    def find(self, subject: Subject) -> Grant | None:
        """A refusal of exactly this call, else a grant that answers all its asks; neither is spent."""
        wall_s = self._clock.wall_s()
        found = [grant for grant in self._all_grants() if covers(grant, subject, wall_s)]
        refusal = next((grant for grant in found if not grant.approved), None)
        lasting = next((grant for grant in found if grant.kind is not Remember.ONCE), None)
        return refusal or lasting or next(iter(found), None)

    def get(self, grant_id: str) -> Grant | None:
        """The grant of that id, if valid."""
        return next((grant for grant in self.standing() if grant.grant_id == grant_id), None)

    def standing(self) -> tuple[Grant, ...]:
        """Every valid grant, oldest first."""
        wall_s = self._clock.wall_s()
        return tuple(grant for grant in self._all_grants() if not grant.has_expired(wall_s))

    def spend(self, grant: Grant) -> bool:
        """Use a grant; True if it is valid now. A grant for a single execution is deleted in the same transaction."""
        try:
            if grant.kind is not Remember.ONCE:
                return self.get(grant.grant_id) == grant
            with self._rows.changing() as change:
                row = _one(change.rows, _GRANT, grant.grant_id)
                if row is None or _grant(row) != grant or grant.has_expired(self._clock.wall_s()):
                    return False
                change.delete([row])
        except WorkspaceError as error:
            self._rows.note(str(error))
            return False
        return True

    def remember(self, request: ApprovalRequest, approval: Approval) -> Grant:
        """Store an answer as a grant. Raises WorkspaceError."""
        with self._rows.changing() as change:
            self._purge(change)
            return self._remember(change, request, approval)

    def revoke(self, grant_id: str) -> Grant | None:
        """Take a grant back; None if no valid one has that id. Raises WorkspaceError."""
        if not self._rows.version():
            return None
        with self._rows.changing() as change:
            row = _one(change.rows, _GRANT, grant_id)
            if row is None or _is_over(row, self._clock.wall_s()):
                return None
            change.delete([row])
            return _grant(row)

    # -- questions

    def post(self, request: ApprovalRequest, most: int) -> bool:
        """Publish a question; False if ``most`` calls of its agent and user wait already, or `MOST_QUESTIONS` of all.

        Raises WorkspaceError if the store fails, QuestionTooLarge for a question too long to read.
        """
        body = _bytes_of(request)
        with self._lifeline.release_on_error(request.request_id), self._rows.changing() as change:
            self._purge(change)
            if not self._has_room(change, request, most):
                return False
            owner = self._lifeline.hold(request.request_id)
            change.put(_row(request, owner, body))
        return True

    def suspend(self, request: ApprovalRequest, void: str = "", why: str = "") -> ApprovalRequest | None:
        """Publish the question of a suspended call; ``void``: the id of the question that it replaces, with the reason.

        Returns the question that stands: of callers of one moment the first one's. None, and then nothing has changed,
        if too many calls of its agent and user wait. Raises as ``post`` does.
        """
        body = _bytes_of(request)
        with self._rows.changing() as change:
            self._purge(change)
            alike = [row for row in self._alive(change.rows) if row.kind == _REQUEST and row.digest == request.digest]
            for one in map(_request, alike):
                if one.is_suspended and one.request_id != void:
                    return one
            if not self._has_room(change, request, MOST_SUSPENDED + bool(void)):
                return None
            self._void(change, void, why)
            change.put(_row(request, "", body))
        return request

    def suspended(self, call_id: str) -> tuple[tuple[ApprovalRequest, Approval | None], ...]:
        """The questions of suspended calls by their id in the log, with their answers. Raises WorkspaceError."""
        alive = self._alive(self._rows.rows())
        answers = {row.row_id: _approval(row) for row in alive if row.kind == _ANSWER}
        asked = (_request(row) for row in alive if row.kind == _REQUEST)
        return tuple((one, answers.get(one.request_id)) for one in asked if one.is_suspended and one.call_id == call_id)

    def find_alike(self, agent_id: str, conversation: str, form: str) -> ApprovalRequest | None:
        """The question of a suspended call with these arguments, under whatever call id. Raises WorkspaceError."""
        asked = (_request(row) for row in self._alive(self._rows.rows()) if row.kind == _REQUEST)
        same = (one for one in asked if one.is_suspended and form in one.forms)
        return next((one for one in same if (one.agent_id, one.conversation) == (agent_id, conversation)), None)

    def waiting(self, request_id: str) -> ApprovalRequest | None:
        """The suspended question of that id, answered or not. Raises WorkspaceError."""
        row = _one(self._alive(self._rows.rows()), _REQUEST, request_id)
        request = None if row is None else _request(row)
        return request if request is not None and request.is_suspended else None

    def find_open(self, request_id: str) -> ApprovalRequest | None:
        """The open question of that id, also where ``pending`` shows an identical one. Raises WorkspaceError."""
        row = _one(self._open_questions(self._rows.rows()), _REQUEST, request_id)
        return None if row is None else _request(row)

    def stale(self) -> tuple[StaleQuestion, ...]:
        """The suspended questions that came to nothing in the last days, oldest first."""
        try:
            rows = self._rows.rows()
        except WorkspaceError as error:
            self._rows.note(str(error))
            return ()
        wall_s = self._clock.wall_s()
        found = [_stale(row) for row in rows if row.kind == _STALE and not _is_over(row, wall_s)]
        lapsed = [row for row in rows if _has_lapsed(row, wall_s)]
        found += [StaleQuestion(_request(row), _why_lapsed(row, rows)) for row in lapsed]
        return tuple(sorted(found, key=lambda one: (one.request.asked_wall_s, one.request.request_id)))

    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The open questions, oldest first; identical calls are one question with their number."""
        first: dict[str, ApprovalRequest] = {}
        try:
            rows = self._open_questions(self._rows.rows())
        except WorkspaceError as error:
            self._rows.note(str(error))
            return ()
        for request in sorted(map(_request, rows), key=lambda one: (one.asked_wall_s, one.request_id)):
            known = first.get(request.digest)
            first[request.digest] = request if known is None else replace(known, waiting=known.waiting + 1)
        return tuple(first.values())

    def answer(
        self, request_id: str, approval: Approval, record: Callable[[ApprovalRequest, Approval], None] | None = None
    ) -> Approval | None:
        """Answer a question for every identical call that waits; None if it is not open.

        The answer to a suspended call makes a grant only if it lasts; ``record`` writes it into the log, and if that
        fails nothing is answered. Returns the answer with the grant that it made. Raises WorkspaceError.
        """
        if not self._rows.version():
            return None
        with self._rows.changing() as change:
            rows = self._open_questions(change.rows)
            asked = _one(rows, _REQUEST, request_id)
            if asked is None:
                return None
            request = _request(asked)
            if approval.lasts or (approval.approved is True and not request.is_suspended):
                grant = self._remember(change, request, approval)
                approval = replace(approval, grant_id=grant.grant_id, remember=grant.kind)
            text = canonical_json(approval.to_json()).decode()
            for row in rows:
                if row.digest == asked.digest:
                    until_s = row.until_s if request.is_suspended else None
                    change.put(replace(row, kind=_ANSWER, until_s=until_s, body=text))
            if request.is_suspended and record is not None:
                record(request, approval)
        return approval

    def answers(self) -> dict[str, Approval]:
        """The answers that no call has taken yet, by the id of their question. Raises WorkspaceError."""
        return {row.row_id: _approval(row) for row in self._rows.rows() if row.kind == _ANSWER}

    def withdraw(self, request_id: str) -> Approval | None:
        """Remove a question, and return its answer if it has one. Raises WorkspaceError."""
        try:
            with self._rows.changing() as change:
                mine = [row for row in change.rows if row.row_id == request_id]
                change.delete(mine)
        finally:
            self._lifeline.let_go(request_id)
        answer = _one(mine, _ANSWER, request_id)
        return None if answer is None else _approval(answer)

    # -- operators

    def attach(self) -> str:
        """Announce an operator here, until ``detach`` or the end of the process. Raises WorkspaceError."""
        listener = new_id("listener")
        self._presence.begin(listener)
        return listener

    def detach(self, listener: str) -> None:
        """Withdraw the operator."""
        self._presence.end(listener)

    def has_listener(self) -> bool:
        """Tell whether an operator listens in some process."""
        try:
            return self._presence.is_anybody()
        except WorkspaceError as error:
            self._rows.note(str(error))
            return False

    def version(self) -> Version:
        """A value that changes with any change. Raises WorkspaceError."""
        return self._rows.version()

    def close(self) -> None:
        """Close the file, and end all waiting here."""
        self._rows.close()
        self._lifeline.close()
        self._presence.close()

    def _all_grants(self) -> tuple[Grant, ...]:
        """Every grant in the store, even an expired one, oldest first; read once for each version."""
        try:
            version = self._rows.version()
            known, grants = self._grants
            if known != version:
                found = [_grant(row) for row in self._rows.rows() if row.kind == _GRANT]
                grants = tuple(sorted(found, key=lambda one: (one.granted_wall_s, one.grant_id)))
                self._grants = version, grants
        except WorkspaceError as error:
            self._rows.note(str(error))
            return ()
        return grants

    def _remember(self, change: TableChange, request: ApprovalRequest, approval: Approval) -> Grant:
        now_s = self._clock.wall_s()
        kind = approval.remember if approval.lasts else Remember.ONCE
        seconds = {Remember.ONCE: ONCE_S, Remember.DURATION: approval.seconds, Remember.SCOPE: SCOPE_S}[kind]
        lasting = kind is not Remember.ONCE and approval.approved is True
        grant = Grant(
            new_id("grant"),
            kind,
            request.agent_id,
            request.user_id,
            request.session_id,
            request.tool,
            request.operation,
            request.tool_digest,
            request.scope if kind is Remember.SCOPE else None,
            "" if lasting else request.digest,
            frozenset(ask.key for ask in request.asks if not (lasting and ask.once_only)),
            now_s,
            now_s + (seconds or 0.0),
            approval.who,
            approval.approved is True,
            tuple(sorted({ask.about for ask in request.asks})),
        )
        body = canonical_json(grant.to_json()).decode()
        change.put(SealedRow(_GRANT, grant.grant_id, grant.agent_id, grant.digest, "", grant.expires_wall_s, body))
        return grant

    def _has_room(self, change: TableChange, request: ApprovalRequest, most: int) -> bool:
        """Tell whether one more call of the agent and user may wait: in a process, or suspended."""
        waiting = self._open_questions(change.rows)
        asked = [_request(row) for row in waiting if row.agent == request.agent_id]
        alike = [one for one in asked if (one.user_id, one.is_suspended) == (request.user_id, request.is_suspended)]
        return len(alike) < most and len(waiting) < MOST_QUESTIONS

    def _void(self, change: TableChange, request_id: str, why: str) -> None:
        """Turn a suspended question, with its answer, into a stale one."""
        row = _one(change.rows, _REQUEST, request_id)
        if row is None:
            return
        change.delete(one for one in change.rows if one.row_id == request_id)
        body = canonical_json({"question": _data(row), "why": why}).decode()
        change.put(replace(row, kind=_STALE, until_s=self._clock.wall_s() + STALE_S, body=body))

    def _open_questions(self, rows: Iterable[SealedRow]) -> list[SealedRow]:
        """The unanswered questions that somebody waits for."""
        alive = self._alive(rows)
        answered = {row.row_id for row in alive if row.kind == _ANSWER}
        return [row for row in alive if row.kind == _REQUEST and row.row_id not in answered]

    def _alive(self, rows: Iterable[SealedRow]) -> list[SealedRow]:
        """The rows whose time is not over and whose owner lives."""
        wall_s = self._clock.wall_s()
        living: dict[str, bool] = {"": True}
        alive: list[SealedRow] = []
        for row in rows:
            if row.owner not in living:
                living[row.owner] = self._lifeline.lives(row.owner)
            if living[row.owner] and not _is_over(row, wall_s):
                alive.append(row)
        return alive

    def _purge(self, change: TableChange) -> None:
        """Drop expired rows; an answer stays for its waiting process while that lives."""
        wall_s = self._clock.wall_s()
        for row in change.rows:
            if _has_lapsed(row, wall_s):
                self._void(change, row.row_id, _why_lapsed(row, change.rows))
        kept = {(row.kind, row.row_id) for row in self._alive(change.rows)}
        change.delete(row for row in change.rows if (row.kind, row.row_id) not in kept)


def _one(rows: Iterable[SealedRow], kind: str, row_id: str) -> SealedRow | None:
    return next((row for row in rows if row.kind == kind and row.row_id == row_id), None)


def _is_over(row: SealedRow, wall_s: float) -> bool:
    return row.until_s is not None and wall_s >= row.until_s


def _has_lapsed(row: SealedRow, wall_s: float) -> bool:
    """Tell whether it is a suspended question whose time is over."""
    return row.kind == _REQUEST and _is_over(row, wall_s) and _request(row).is_suspended


def _why_lapsed(row: SealedRow, rows: Iterable[SealedRow]) -> str:
    return EXPIRED if _one(rows, _ANSWER, row.row_id) is None else UNTAKEN


def _bytes_of(request: ApprovalRequest) -> bytes:
    body = canonical_json(request.to_json())
    if len(body) > MOST_BYTES:
        text = f"the question has {len(body):,} bytes, more than the {MOST_BYTES:,} that an operator may see"
        raise QuestionTooLarge(text)
    return body


def _row(request: ApprovalRequest, owner: str, body: bytes) -> SealedRow:
    names = request.request_id, request.agent_id, request.digest
    return SealedRow(_REQUEST, *names, owner, request.expires_wall_s, body.decode())


def _stale(row: SealedRow) -> StaleQuestion:
    data = _data(row)
    return StaleQuestion(ApprovalRequest.from_json(cast("dict[str, JsonValue]", data["question"])), str(data["why"]))


def _data(row: SealedRow) -> dict[str, JsonValue]:
    return json.loads(row.body)


def _grant(row: SealedRow) -> Grant:
    return Grant.from_json(_data(row))


def _request(row: SealedRow) -> ApprovalRequest:
    return ApprovalRequest.from_json(_data(row))


def _approval(row: SealedRow) -> Approval:
    return Approval.from_json(_data(row))
