"""Calls that their program names: each runs at most once, may wait for its answer without a process, and tells its
outcome again.

The key of such a call is agent, user, conversation and call id; its digest is the call's id in the log. The row with
which it begins is the truth: a writer of the log refuses a second one in the same transaction, and the row also names
the answer that the call spends. Wherever a process dies, the log says whether the call began. The store of questions
and the kept outcomes only follow: an answer whose call has begun is removed later, and an outcome counts if the row of
the end names its digest. A call that began and has no end runs as long as its process holds a file; after that its end
is unknown, and it is never repeated.

Without a conversation a call id names a question and no more: the answer is spent once, and a replay is a new call.

The steps of a composition are named calls too, by its id and their number. If a step waits, the composition waits too:
a row takes back its beginning. When its program makes it again, it runs anew, and its finished steps tell their
outcomes; the same holds if its process has died. All these runs have the same ``run`` in their rows, which names the
steps if there is no conversation.

More than 450 lines, since what makes a call happen once is read best in one place.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from gatewright.base.amount import Clock, iso_utc, new_id
from gatewright.base.errors import NotSupported, WorkspaceError
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import aio, unbroken
from gatewright.compile.rule_test import Finding
from gatewright.gate import record
from gatewright.gate.approval import Answer, Approval, ApprovalRequest, WholeCall
from gatewright.gate.approvalstore import ApprovalStore, QuestionTooLarge
from gatewright.gate.call import CallState, Status
from gatewright.gate.callrun import CallRun, Outcome, request_of
from gatewright.gate.chain import CALL_ENDS, AuditRow, LogRows, RowKind, read_object
from gatewright.gate.decision import NO_FACTS, Decision, Message, to_model
from gatewright.gate.history import OUTSIDE, QUESTION
from gatewright.gate.pipeline import Passage
from gatewright.gate.port import AuditUnavailable, Claims, Log
from gatewright.gate.scrub import scrub_text, scrub_value
from gatewright.gate.session import Mark
from gatewright.gate.sessiondata import call_words
from gatewright.gate.stages.approval import approval_digest
from gatewright.gate.stages.execute import EXECUTE
from gatewright.gate.stages.read import read_arguments
from gatewright.policy.composition import ORIGIN
from gatewright.policy.document import Questions
from gatewright.policy.verdict import Verdict
from gatewright.record.database import Database
from gatewright.record.process import Lifeline
from gatewright.tools.declaration import SideEffect

FILE_NAME = "outcomes.sqlite"
KEPT_S = 7 * 86_400.0
"""The time for which an outcome is kept."""
MOST_BYTES = 1 << 20
"""The size of the largest kept outcome; the data of a larger one is left out, and then all of it."""
RUNNING = "call-id-running"
_MARK = "run-"
_BUSY_S = 2.0
_MOST_HASHED = 8 << 20
_MOST_ID = 200
_TABLE = "CREATE TABLE IF NOT EXISTS outcomes (call_id TEXT PRIMARY KEY, wall_s REAL, body TEXT NOT NULL) WITHOUT ROWID"
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BEGINS = frozenset({RowKind.TOOL_INVOKED, RowKind.APPROVAL_RESOLVED})
_RAN = frozenset(CALL_ENDS) - {RowKind.TOOL_DENIED}
_RUN = "run"
_GONE = "the answer was taken back"
_CONTENT = "what the call would do has changed"
_POLICY = "the policy has changed"


class FileClaims:
    """The outcomes in the state folder, and the files of running calls."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._outcomes = Database(
            folder / FILE_NAME,
            what="the outcomes in",
            busy_s=_BUSY_S,
            pragmas=("synchronous = NORMAL", "secure_delete = ON"),
            make=lambda connection: connection.execute(_TABLE),
            most_bytes=2 * MOST_BYTES,
        )

    def keep(self, call_id: str, body: str) -> None:
        """Keep an outcome, and drop those whose time is over. Raises WorkspaceError."""
        wall_s = self._clock.wall_s()
        with self._outcomes.writing() as connection:
            connection.execute("DELETE FROM outcomes WHERE wall_s < ?", (wall_s - KEPT_S,))
            connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", (call_id, wall_s, body))

    def kept(self, call_id: str) -> str | None:
        """The outcome of the call, if its time is not over. Raises WorkspaceError."""
        question = "SELECT body FROM outcomes WHERE call_id = ? AND wall_s >= ?"
        with self._outcomes.reading() as connection:
            found = None
            if connection is not None:
                found = connection.execute(question, (call_id, self._clock.wall_s() - KEPT_S)).fetchone()
        return None if found is None else str(found[0])

    def life(self) -> Lifeline:
        """Shows that a call of this process runs, by a file of its own."""
        return Lifeline(self._folder, _MARK)

    def close(self) -> None:
        """Close the file."""
        self._outcomes.close()


class Ledger:
    """The named calls of one gate: its log, its questions, and their outcomes."""

    def __init__(self, log: Log, store: ApprovalStore | None, clock: Clock) -> None:
        self.log, self.store, self.clock = log, store, clock
        self.claims: Claims
        if log.path is not None:
            self.claims = FileClaims(log.path.parent, clock)
        elif log.claims is not None:
            self.claims = log.claims
        else:
            raise NotSupported("this log keeps no calls with an id")

    def kept(self, call_id: str, wanted: str) -> dict[str, Any] | None:
        """The outcome with that digest; None if it is not kept any more. Raises WorkspaceError."""
        found = self.claims.kept(call_id)
        if found is None or hashlib.sha256(found.encode()).hexdigest() != wanted:
            return None
        return cast("dict[str, Any] | None", read_object(found))

    def close(self) -> None:
        """Close the outcomes."""
        self.claims.close()


class Past(NamedTuple):
    """The last execution of a call in the log: its first row, its last one, and the answers spent by all of them.

    ``waits``: the first row of a composition that waits with a step.
    """

    begun: AuditRow | None
    end: AuditRow | None
    spent: frozenset[str]
    waits: AuditRow | None = None

    @classmethod
    def of(cls, rows: Iterable[AuditRow]) -> Past:
        """Read the rows of a call; an execution that was recorded and never began does not count."""
        begun = end = waits = None
        spent: list[str] = []
        for row in rows:
            said = _said(row)
            if row.kind in _BEGINS and "forms" in said:
                begun, end, waits = row, None, None
                spent.append(str(said.get("answer", "")))
            elif row.kind in _RAN and begun is not None and end is None:
                if said.get("started") is False:
                    begun, waits = None, begun if QUESTION in said else None
                    spent.pop()
                else:
                    end = row
        return cls(begun, end, frozenset(spent) - {""}, waits)


class Claim:
    """One call by the id that its program gave it. ``suspends``: it does not wait for an answer in its process.

    ``scope``: where the id means one call: its conversation, or the run of the composition that it is a step of.
    ``whole``: the call of the outermost composition, and ``place``: the step's number in each.
    """

    whole: WholeCall | None = None
    place: tuple[int, ...] = ()

    def __init__(self, ledger: Ledger, call_key: str, conversation: str, *, suspends: bool, waits: Questions) -> None:
        self.ledger, self.waits = ledger, waits
        self.call_key, self.conversation = call_key, conversation
        self.suspends, self.scope = suspends, conversation
        self.arguments: dict[str, JsonValue] = {}
        self.tool = self.sent = self.log_id = self.answer_id = self._owner = self._run = self._folder = ""
        self._follows = 0
        """The number of the row that it may begin anew."""
        self._life = ledger.claims.life()

    def read(self, state: CallState) -> bool:
        """Read the call; False for arguments that are not JSON. Raises AuditUnavailable without the key of the log."""
        try:
            self.arguments = read_arguments(state.raw)
        except Exception:  # noqa: BLE001 a mapping of the host's may raise anything; the stage parse denies it
            return False
        self._folder = state.folder or ""
        self.tool, self.sent = state.tool_name, self._digest(state.tool_name, self.arguments)
        key = [state.agent_id, state.user_id, self.scope, self.again.call_id, *self.place]
        self.log_id = f"claim-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}"
        return True

    @property
    def again(self) -> WholeCall:
        """The call that its program makes again."""
        return self.whole or WholeCall(self.tool, self.arguments, self.call_key)

    def step(self, number: int) -> Claim:
        """The claim of a step, if the call is a composition."""
        below = Claim(
            self.ledger, f"{self.call_key}:{number}", self.conversation, suspends=self.suspends, waits=self.waits
        )
        below.scope, below.whole, below.place = self.scope or self._run, self.again, (*self.place, number)
        return below

    def _digest(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        where = [self._folder] if self._folder else []
        return self.ledger.log.digest([ascii(tool), dict(arguments), *where])

    def forms(self, state: CallState) -> list[str]:
        """The digests of the call as sent, and as the stages made it canonical."""
        return list(dict.fromkeys((self.sent, self._digest(state.tool_name, state.arguments))))

    def past(self) -> Past:
        """The earlier rows of this call in the log; none without a conversation, where every call is a new one."""
        past = Past.of(self.ledger.log.claimed(self.log_id))
        is_left = past.begun is not None and past.end is None and _RUN in _said(past.begun)
        if past.begun is not None and is_left and not self.is_running(past.begun):
            past = past._replace(begun=None, waits=past.begun)
        return past if self._counts(past) else past._replace(begun=None, end=None)

    def is_running(self, begun: AuditRow) -> bool:
        """Tell whether the process of an execution without an end lives."""
        return self._life.lives(str(_said(begun).get("owner", "")))

    def follow(self, begun: AuditRow) -> None:
        """Go on with the run of a composition that waits or was left."""
        self._run, self._follows = str(_said(begun)[_RUN]), begun.seq

    def refusal(self, rows: LogRows) -> Finding | None:
        """The objection of the log, in the transaction that would begin the call."""
        past = Past.of(rows.of_call(self.log_id))
        if not self._counts(past) or (past.begun is not None and past.begun.seq == self._follows):
            return None
        reason = "another caller has begun the call with this id"
        return Finding(Verdict.DENY, RUNNING, reason, model=Message.ID_RUNNING)

    def _counts(self, past: Past) -> bool:
        return past.begun is not None and (self.scope != "" or self.answer_id in past.spent)

    def said(self, state: CallState) -> dict[str, JsonValue]:
        """The fields of the row with which the call begins: its digests, its process, the answer that it spends."""
        more: dict[str, JsonValue] = {"answer": self.answer_id} if self.answer_id else {}
        if state.plan.tool.origin == ORIGIN:
            more[_RUN] = self._run = self._run or new_id("run")
        return {"forms": [*self.forms(state)], "owner": self._owner, **more}

    def bound(self, state: CallState) -> dict[str, JsonValue]:
        """The parts of the approval's digest: this very call, in its conversation, and the files as they are now."""
        places = {file.stands or file.absolute for file in state.files}
        places |= {place.absolute for place in (*state.places, *state.named)}
        before: list[JsonValue] = [[place, *_look(place)] for place in sorted(places)]
        blocks: list[JsonValue] = [block.block_id for block in state.blocks]
        return {"session": self.conversation, "call": self.log_id, "before": before, "blocks": blocks}

    def hold(self) -> None:
        """Show others that the call runs, until ``let_go`` or the end of the process. Raises WorkspaceError."""
        self._owner = self._life.hold(self.log_id)

    def let_go(self) -> None:
        """Stop showing it."""
        self._life.let_go(self.log_id)

    def keep(self, state: CallState) -> dict[str, JsonValue]:
        """Keep the outcome of the call, without secrets; the fields for the row of its end."""
        body = _body_of(state)
        if len(body) > MOST_BYTES:
            return {}
        try:
            self.ledger.claims.keep(self.log_id, body)
        except WorkspaceError:
            return {}
        return {"outcome": hashlib.sha256(body.encode()).hexdigest()}


class ClaimedRun(CallRun):
    """One run of a named call: told again, resumed, suspended, or made as any other."""

    _claim: Claim
    _question: ApprovalRequest | None = None
    _why = ""
    """The reason why the question is void."""

    async def run(self) -> Outcome:
        """Find out what became of the call, then decide it anew."""
        state = self._first
        claim = self._claim = cast("Claim", state.claim)
        try:
            found = await aio.to_thread(self._find)
            if found is None:
                state.claim = None
                return await super().run()
            state.call_id, state.raw = claim.log_id, claim.arguments
            questions, past = found
            asked = next((one for one in questions if claim.scope or self._is_same(one[0].forms)), None)
            if asked is not None and asked[1] is not None:
                claim.answer_id = asked[0].request_id
            if past is None:
                past = await aio.to_thread(claim.past)
            if past.waits is not None and self._is_same(_forms(past.waits)):
                claim.follow(past.waits)
            elif past.waits is not None and claim.scope:
                return await self._refuse_other(past.waits.time)
            if past.begun is not None:
                return await self._tell_again(past.begun, past.end)
        except WorkspaceError as error:
            return await self._refuse("audit-unavailable", str(error), Message.UNRECORDED)
        if asked is None:
            return await super().run()
        self._question, answer = asked
        if not self._is_same(self._question.forms):
            return await self._refuse_other(iso_utc(self._question.asked_wall_s))
        return await self._resume(self._question, answer)

    def _find(self) -> tuple[tuple[tuple[ApprovalRequest, Approval | None], ...], Past | None] | None:
        """Read the call, and find its questions with their answers; only if it has none, its rows in the log count.

        Return None for arguments that are not JSON. Raises WorkspaceError. All of this is one task for a thread, since
        a hook waits for each task.
        """
        claim = self._claim
        if not claim.read(self._first):
            return None
        store = claim.ledger.store
        questions = () if store is None else store.suspended(claim.log_id)
        return questions, None if questions else claim.past()

    def _is_same(self, forms: Iterable[object]) -> bool:
        """Tell whether the call is that one: as it was sent, or else in its canonical form."""
        known = frozenset(forms)
        if self._claim.sent in known:
            return True
        passage = self._passage(self._first, None)
        passage.decide()
        return not known.isdisjoint(self._claim.forms(passage.state))

    async def _resume(self, question: ApprovalRequest, answer: Approval | None) -> Outcome:
        """Decide the call by all stages under the policy of now, with the answer if it still fits."""
        state, asks = self._first, frozenset(ask.key for ask in question.asks)
        if answer is not None:
            state.answer = Answer(answer, question.digest, asks)
        passage = self._last = self._passage(state, self._on_stage)
        decision = passage.decide()
        if answer is None or answer.approved is True:
            self._why = _why_void(question, passage, decision)
            if self._why:
                state.answer, self._claim.answer_id = None, ""
                passage = self._last = self._passage(state, self._on_stage)
                decision = passage.decide()
        if decision.effect is Verdict.ASK:
            return await self._ask(passage.state, decision)

        def first(log: Log) -> record.AuditEntry:
            return record.invocation(passage.state, log)

        return await self._settle(passage, decision, first)

    async def _ask(self, state: CallState, decision: Decision) -> Outcome:
        if not self._claim.suspends or self._claim.ledger.store is None:
            return await super()._ask(state, decision)
        if self._question is not None and not self._why:
            return self._waiting(state, decision, self._question)
        return await self._suspend(state, decision, self._claim.ledger.store)

    async def _suspend(self, state: CallState, decision: Decision, store: ApprovalStore) -> Outcome:
        """Publish the question, then record that the call waits: no question is lost, whatever dies in between."""
        claim, now_s = self._claim, self._claim.ledger.clock.wall_s()
        records = await aio.to_thread(state.services.earlier.of, state.session, state.arguments)
        request = replace(
            request_of(state),
            records=records,
            request_id=new_id("ask"),
            asked_wall_s=now_s,
            expires_wall_s=now_s + claim.waits.wait_s,
            due_wall_s=now_s + claim.waits.remind_s,
            call_key=claim.call_key[:_MOST_ID],
            conversation=claim.conversation[:_MOST_ID],
            policy_digest=decision.policy_digest,
            forms=tuple(claim.forms(state)),
            whole=claim.whole,
            lineage=state.lineage,
            folder=state.folder or "",
        )
        replaced = self._question.request_id if self._question is not None else ""
        post = aio.ensure_future(aio.to_thread(store.suspend, request, replaced, self._why))
        try:
            stands = await unbroken(post)
            if stands is None:
                reason = "too many calls of the agent wait for an answer already"
                return await self._refuse("approval-rate", reason, Message.TOO_MANY_ASKS)
        except QuestionTooLarge as error:
            return await self._refuse("approval-too-large", str(error), Message.NOT_ASKABLE)
        except WorkspaceError as error:
            return await self._refuse("approval-unavailable", str(error), Message.NOT_ASKABLE)
        if stands is not request:
            return self._waiting(state, decision, stands)

        def rows(log: Log) -> tuple[record.AuditEntry, ...]:
            asked = record.approval_request(state, request), record.wait(state, request, replaced, self._why)
            return record.invocation(state, log), *record.judgement(state, decision), *asked

        try:
            await state.services.record(rows)
        except AuditUnavailable as error:
            with suppress(WorkspaceError):
                await aio.to_thread(store.withdraw, request.request_id)
            return await self._refuse("audit-unavailable", str(error), Message.UNRECORDED)
        return self._waiting(state, decision, request)

    def _waiting(self, state: CallState, decision: Decision, request: ApprovalRequest) -> Outcome:
        outcome = self._outcome(state, decision, Status.WAITING, to_model(Message.WAITING))
        return replace(outcome, question=request)

    async def _settle(self, passage: Passage, decision: Decision, first: record.EntryMaker) -> Outcome:
        """Hold the call while it runs, and forget its question once its row has spent the answer."""
        if decision.effect is not Verdict.ALLOW:
            return await super()._settle(passage, decision, first)
        try:
            self._claim.hold()
            outcome = await super()._settle(passage, decision, first)
        except WorkspaceError as error:
            return await self._refuse("audit-unavailable", str(error), Message.UNRECORDED)
        finally:
            await unbroken(aio.ensure_future(aio.to_thread(self._claim.let_go)))
        store, question = self._claim.ledger.store, self._question
        if passage.state.status is Status.WAITING:
            return replace(outcome, question=passage.state.question)
        if passage.state.execution is not None and store is not None and question is not None:
            with suppress(WorkspaceError):  # the row in the log says that it is spent
                await unbroken(aio.ensure_future(aio.to_thread(store.withdraw, question.request_id)))
        return outcome

    async def _tell_again(self, begun: AuditRow, end: AuditRow | None) -> Outcome:
        """The recorded outcome of the call, or why there is none."""
        claim = self._claim
        if not self._is_same(_forms(begun)):
            return await self._refuse_other(begun.time)
        if end is None:
            if claim.is_running(begun):
                reason = f"the call with this id began at {begun.time} and is still running"
                return await self._refuse(RUNNING, reason, Message.ID_RUNNING)
            reason = f"the call with this id was started at {begun.time}, end unknown: its process has ended"
            return await self._refuse("end-unknown", reason, Message.END_UNKNOWN, Status.UNKNOWN)
        wanted = str(_said(end).get("outcome", ""))
        kept = await aio.to_thread(claim.ledger.kept, claim.log_id, wanted) if wanted else None
        if kept is None:
            reason = f"the call with this id ended at {end.time} as {end.kind}, and its outcome is not kept"
            return await self._refuse("outcome-not-kept", reason, Message.OUTCOME_GONE, Status.UNKNOWN)
        if _said(begun).get(OUTSIDE) is True:
            called = call_words(begun.tool, begun.operation)
            self._first.session.mark(Mark(called, begun.call_id, claim.ledger.clock.wall_s()))
        reason = f"the call with this id ended at {end.time}; this is its recorded outcome"
        decision = Decision(Verdict.ALLOW, EXECUTE.name, "replayed", reason, arguments=claim.arguments)
        names = self._first.agent_id, self._first.tool_name, begun.operation
        return _outcome_of(kept, decision, claim.log_id, self._first.session.session_id, names)

    async def _refuse_other(self, time: str) -> Outcome:
        reason = f"this call id names another call of the conversation, of {time}"
        return await self._refuse("call-id-reused", reason, Message.ID_REUSED)

    async def _refuse(self, code: str, reason: str, model: str, status: Status = Status.DENIED) -> Outcome:
        """Deny and record a call without its stages, under an id of its own."""
        state, arguments = self._first, self._claim.arguments
        state.call_id, state.arguments = new_id("call"), arguments
        decision = Decision(
            Verdict.DENY, EXECUTE.name, code, reason, None, to_model(model), arguments=arguments, facts=NO_FACTS
        )

        def rows(log: Log) -> tuple[record.AuditEntry, ...]:
            return record.invocation(state, log), record.decision_row(state, decision), record.denial(state, code)

        await self._try_record(state, rows)
        return self._outcome(state, decision, status)


def _said(row: AuditRow) -> dict[str, object]:
    return read_object(row.body) or {}


def _forms(begun: AuditRow) -> list[object]:
    """The digests of the call that began."""
    return cast("list[object]", _said(begun).get("forms", []))


def _why_void(question: ApprovalRequest, passage: Passage, decision: Decision) -> str:
    """The reason why an answer to the question means another call than the present one; empty if it fits."""
    state = passage.state
    if decision.effect is Verdict.DENY:
        return {"approval-stale": decision.reason, "approval-withdrawn": _GONE}.get(decision.code, "")
    if decision.policy_digest != question.policy_digest:
        return _POLICY
    is_same = decision.effect is not Verdict.ASK or question.digest == approval_digest(state)
    return "" if is_same else _CONTENT


def _look(place: str) -> list[JsonValue]:
    """Identity and bytes of the file at a path; of a large one its size and time; nothing where no file is."""
    try:
        descriptor = os.open(place, _FILE)
    except OSError:
        return []
    try:
        facts = os.fstat(descriptor)
        identity: list[JsonValue] = [facts.st_dev, facts.st_ino]
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_HASHED:
            return [*identity, facts.st_size, facts.st_mtime_ns]
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return [*identity, hashlib.sha256(file.read(_MOST_HASHED + 1)).hexdigest()]
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _body_of(state: CallState) -> str:
    """The outcome as JSON, scrubbed whatever the policy says of the tool."""
    data, is_binary = state.normal if state.has_result else b"", isinstance(state.result, bytes)
    output, detail = scrub_text(state.output or "")[0], scrub_text(state.detail)[0]
    if data and not is_binary and not state.plan.scrub:
        data = canonical_json(scrub_value(json.loads(data))[0])
    body: dict[str, JsonValue] = {
        "status": str(state.status),
        "code": state.code,
        "output": output,
        "detail": detail,
        "truncated": state.truncated,
        "hash": state.output_hash or None,
        "bytes": state.output_bytes,
        "secrets": state.secrets,
        "effects": [*sorted(map(str, state.plan.tool.side_effects))] if state.has_run else [],
        "goes_on": not state.session.facts().ended,
        "binary": is_binary,
    }
    with_data = {**body, "data": base64.b64encode(data).decode()} if state.has_result else body
    text = canonical_json(with_data).decode()
    return text if len(text) <= MOST_BYTES else canonical_json(body).decode()


def _outcome_of(
    kept: Mapping[str, Any], decision: Decision, call_id: str, session_id: str, names: tuple[str, str, str]
) -> Outcome:
    """The outcome that was kept."""
    data = base64.b64decode(kept["data"]) if "data" in kept else None
    raw: JsonValue | bytes = data if kept["binary"] else None if data is None else json.loads(data)
    return Outcome(
        decision,
        Status(kept["status"]),
        kept["code"] or decision.code,
        kept["output"],
        call_id,
        session_id,
        kept["truncated"],
        kept["hash"],
        kept["bytes"],
        0.0,
        data,
        kept["detail"],
        False,
        kept["goes_on"],
        kept["secrets"],
        raw,
        frozenset(map(SideEffect, kept["effects"])),
        (),
        *names,
        replayed=True,
    )
