"""The policy in force: its value at one moment, the call that a proof is of, the log's rows about changes, the alarm.

The first call after a change records it, so that an edit without a call costs nothing, and every decision in the log
follows the row of its policy. The alarm rings after a failed change.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from gatewright.base.amount import iso_utc, new_id
from gatewright.base.errors import JsonRefused, Problem
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.call import CallState, RawArguments, Services, read_arguments
from gatewright.gate.chain import RowKind
from gatewright.gate.decision import Decision, Places
from gatewright.gate.port import AuditEntry, Log
from gatewright.policy.delegation import Lineage
from gatewright.policy.document import Policy
from gatewright.record.process import fork_safe_lock


@frozen
class InForce:
    """Everything in force at one moment, which changes as one: the compiled policy, the places of its parts, the
    ports.
    """

    snapshot: Snapshot
    places: Places
    services: Services
    keys: ProofKeys


class ProofKeys:
    """The key for new proofs and the keys of old ones, from the audit log, else from this gate."""

    def __init__(self, audit: Log | None) -> None:
        self._audit = audit
        self._own_id = new_id("gate")
        self._own = secrets.token_bytes(32)

    def current(self) -> tuple[str, bytes]:
        """The id of a key, and the key; no file is created."""
        held = self._audit.proof_key() if self._audit is not None else None
        return held or (self._own_id, self._own)

    def find(self, key_id: str) -> bytes | None:
        """The key of that id, or None if it is missing."""
        if key_id == self._own_id:
            return self._own
        held = self._audit.proof_key(key_id) if self._audit is not None else None
        return held[1] if held else None


def tool_digest(state: CallState) -> str | None:
    """The digest of the tool that the call reached; None if it reached none."""
    return state.tool.tool.digest if state.tool is not None else None


def call_digest(state: CallState, key: bytes, tool: str | None) -> str:
    """A digest of caller, tool (with its digest) and arguments: canonical as far as the stages came."""
    return _digest({**_who(state), "tool_digest": tool, "arguments": state.arguments}, key)


def sent_digest(state: CallState, key: bytes) -> str:
    """A digest of caller, tool and arguments as sent; as text if they are no JSON object."""
    sent: JsonValue = type(state.raw).__name__
    try:
        sent = read_arguments(state.raw)
    except JsonRefused:
        content = state.raw.encode("utf-8", "surrogatepass") if isinstance(state.raw, str) else state.raw
        if isinstance(content, bytes):
            sent = hmac.new(key, b"raw\0" + content, "sha256").hexdigest()
    except Exception:  # noqa: BLE001 a mapping of the host's may raise anything; the stage was a denial then
        pass
    return _digest({**_who(state), "sent": sent}, key)


def _who(state: CallState) -> dict[str, JsonValue]:
    session_id = state.facts.session_id if state.facts is not None else state.session.session_id
    return {
        "agent": _valid(state.agent_id),
        "user": _valid(state.user_id) if state.user_id is not None else None,
        "session": _valid(session_id),
        "tool": _valid(state.tool_name),
        **({"callers": [[_valid(one.agent_id), one.whole] for one in state.callers]} if state.callers else {}),
    }


def _digest(bound: dict[str, JsonValue], key: bytes) -> str:
    return hmac.new(key, b"call\0" + canonical_json(bound), "sha256").hexdigest()


def _valid(text: str) -> JsonValue:
    """``text`` as valid UTF-8; different texts stay different."""
    return text if text.isascii() else ["utf-8", text.encode("utf-8", "surrogatepass").hex()]


@frozen
class ProvenCall:
    """The call to compare a proof with. ``arguments``: as the model sent them, or the canonical ones; ``folder``: see
    `ToolExecutionContext`; ``lineage``: of a sub-agent's call.
    """

    agent_id: str
    tool: str
    arguments: RawArguments = field(hash=False)
    user_id: str | None = None
    folder: str | None = None
    lineage: Lineage | None = None


@frozen
class Verification:
    """The parts of a proof that hold. ``again``: the gate's present decision with the facts in the proof; None if
    skipped.

    ``mac``: we made it, and it is unchanged; ``call``: it is for this call; ``policy``: its policy is still in force;
    ``decision``: the second decision is the same. A proof under an earlier policy neither passes nor counts as forged.
    """

    mac: bool
    call: bool = False
    policy: bool = False
    decision: bool = False
    problems: tuple[str, ...] = ()
    again: Decision | None = None

    @property
    def holds(self) -> bool:
        """True if every part of the proof holds."""
        return self.mac and self.call and self.policy and self.decision

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: holds, mac, call, policy, decision, problems."""
        return {
            "holds": self.holds,
            "mac": self.mac,
            "call": self.call,
            "policy": self.policy,
            "decision": self.decision,
            "problems": list(self.problems),
        }


_MOST_WORDS, _MOST_REFUSED, _MOST_PROBLEMS, _LENGTH = 20, 20, 5, 300


@frozen
class Claim:
    """Rows that one writer has claimed, and the state to restore if it fails."""

    rows: tuple[AuditEntry, ...] = ()
    before: Snapshot | None = None
    refused: tuple[AuditEntry, ...] = ()


NOTHING = Claim()


class PolicyHistory:
    """The few rows about the policy that are still to be written.

    ``recorded``: the policy that the log knows; ``refused``: the rows of rejected policies.
    """

    def __init__(self, snapshot: Snapshot, file: str | None) -> None:
        self._lock = fork_safe_lock()
        self.recorded = snapshot
        self.refused: list[AuditEntry] = []
        self.file = file

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Record a rejected policy."""
        from gatewright.gate.record import clean

        words: list[JsonValue] = [clean(str(problem), _LENGTH) for problem in problems if problem.is_error]
        body: dict[str, JsonValue] = {"refused": True, "file": self.file, "problems": words[:_MOST_PROBLEMS]}
        with self._lock:
            self.refused = [*self.refused, AuditEntry(RowKind.POLICY_CHANGED, body=body)][-_MOST_REFUSED:]

    def claim(self, in_force: Callable[[], Snapshot]) -> Claim:
        """The rows to write before those of a call; a writer that fails gives them back.

        ``in_force`` is read under the lock, so that no concurrent writer returns to an older policy.
        """
        with self._lock:
            before, refused, now = self.recorded, self.refused, in_force()
            changed = now.policy is not before.policy and now.policy_digest != before.policy_digest
            self.recorded, self.refused = now, []
            return Claim((*refused, *((self._change_row(before, now),) if changed else ())), before, tuple(refused))

    def give_back(self, claim: Claim) -> None:
        """Restore rows that could not be written."""
        if claim.before is None:
            return
        with self._lock:
            self.recorded = claim.before
            self.refused = [*claim.refused, *self.refused][-_MOST_REFUSED:]

    def _change_row(self, before: Snapshot, now: Snapshot) -> AuditEntry:
        from gatewright.gate.record import clean

        words: list[JsonValue] = [clean(word, _LENGTH) for word in changes(before.policy, now.policy)]
        more = len(words) - _MOST_WORDS
        body: dict[str, JsonValue] = {
            "refused": False,
            "file": self.file,
            "before": before.policy_digest,
            "after": now.policy_digest,
            "changes": [*words[:_MOST_WORDS], *([f"and {more} more"] if more > 0 else [])],
        }
        return AuditEntry(RowKind.POLICY_CHANGED, body=body)


def changes(before: Policy, after: Policy) -> list[str]:
    """The differences, one short sentence for each agent, source and table."""
    found = [*_of("agent", before.agents, after.agents), *_of("settings of tool", before.tools, after.tools)]
    sources = ({s.source_id: s for s in policy.sources} for policy in (before, after))
    found += _of("source", *sources)
    found += _of("policy rule", _rules_by_name(before), _rules_by_name(after))
    if before.default != after.default:
        found.append(f"the default of the policy rules is `{after.default}`")
    if before.defaults != after.defaults:
        found.append("the defaults changed")
    return found or ["another part changed"]


def _rules_by_name(policy: Policy) -> dict[str, object]:
    return {rule.name or f"#{index + 1}": rule for index, rule in enumerate(policy.rules)}


def _of(what: str, before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    gone = [f"{what} `{name}` was removed" for name in before if name not in after]
    fresh = [f"{what} `{name}` is new" for name in after if name not in before]
    changed = [f"{what} `{name}` changed" for name in after if name in before and before[name] != after[name]]
    return [*gone, *fresh, *changed]


_log = logging.getLogger(__name__)


@frozen
class Alarm:
    """A policy was rejected, and the last good one stays in force: the time, the problems and the file.

    ``raised_wall_s``: seconds since 1970.
    """

    raised_wall_s: float
    problems: tuple[Problem, ...]
    file: str | None = None

    def __str__(self) -> str:
        count = sum(problem.is_error for problem in self.problems)
        errors = "1 error" if count == 1 else f"{count} errors"
        return f"{f'`{self.file}`' if self.file else 'the policy'} has {errors}; the last good policy stays in force"

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: raised, file, problems."""
        problems: list[JsonValue] = [problem.to_json() for problem in self.problems]  # pyright: ignore[reportAssignmentType]
        return {"raised": iso_utc(self.raised_wall_s), "file": self.file, "problems": problems}


OnAlarm = Callable[[Alarm | None], None]
"""Receives the alarm when it is raised and None when it is over, in the thread that reloaded."""


class AlarmBell:
    """Holds the present alarm and calls the subscribers."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._alarm: Alarm | None = None
        self._listeners: tuple[OnAlarm, ...] = ()

    @property
    def alarm(self) -> Alarm | None:
        """The present alarm."""
        return self._alarm

    def subscribe(self, listener: OnAlarm) -> Callable[[], None]:
        """Call ``listener`` from now on; the returned function stops it."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return lambda: self._unsubscribe(listener)

    def ring(self, alarm: Alarm) -> None:
        """Raise the alarm, replacing an earlier one."""
        self._set(alarm)

    def clear(self) -> None:
        """End the alarm: a good policy is in force again."""
        if self._alarm is not None:
            self._set(None)

    def _set(self, alarm: Alarm | None) -> None:
        with self._lock:
            self._alarm, listeners = alarm, self._listeners
        for listener in listeners:
            try:
                listener(alarm)
            except Exception:  # noqa: BLE001 the listener is the host's code
                _log.exception("a listener to alarms failed")

    def _unsubscribe(self, listener: OnAlarm) -> None:
        with self._lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)
