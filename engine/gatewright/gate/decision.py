"""The decision about one call: verdict, rule, the trace of stages, its proof, and the sentences for the model.

Lines are looked up on demand: a decision has addresses in the policy, and a function that finds their places. A proof
records the decision, the policy, the call and the facts. Its MAC is HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the
canonical JSON of everything else, with a key derived from that of the audit log, or without a log with a random key of
the gate. A proof costs nothing until somebody asks for it; verifying it decides the call again.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

from gatewright.base.errors import Address, Place, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import late_regex
from gatewright.gate.approval import Answer
from gatewright.gate.approvalstore import Grant
from gatewright.gate.session import SessionFacts
from gatewright.policy.verdict import Verdict


class Message:
    """Standard sentences for the model: what it can do next, without hidden names or an echo of its input."""

    PREFIX = "Tool execution failed:"
    NO_SUCH_TOOL = "no tool of that name is available to you; use one of your own tools"
    INTERNAL = "the call could not be checked; try something else"
    PLACE = "that path is not available to you; choose another one"
    SEARCH = "not everything there is available to you; name a smaller folder, or one kind of files, such as `*.py`"
    PLACE_FIXED = "that path may not be changed in this way; choose another one or another way"
    NO_BLOCK = "no block has that label"
    BLOCK_FIXED = "that block may not be changed in this way; choose another one or another way"
    NO_SOURCE = "no file source is available to you"
    UNANSWERED = "this call needs the approval of an operator, and nobody answered; go on without it"
    AFTER_UNANSWERED = (
        "an earlier call of this turn was not approved, so this one was not made; make it again if it is still wanted"
    )
    WAITING = "this call waits for the approval of an operator and was not made yet; go on with other work meanwhile"
    ID_REUSED = "the id of this call belongs to another call of the conversation, so it was not made"
    ID_RUNNING = "this very call is being made already; wait for its result"
    END_UNKNOWN = "this call was started before and its end is unknown; it is not repeated: find out what it did"
    OUTCOME_GONE = "this call was made before, and its result is not kept; it is not repeated"
    REFUSED = "an operator did not approve this call; go on without it"
    STALE = "what this call would do has changed since an operator approved it; make the call again"
    NOT_IN_TIME = "this call needs the approval of an operator, and none came in time; go on without it"
    TOO_MANY_ASKS = "too many calls wait for an operator already; go on without this one, or try it again later"
    NOT_ASKABLE = "this call needs the approval of an operator, who could not be asked; go on without it"
    WITHDRAWN = "the approval was taken back, or an equal call used it; make the call again if it is still needed"
    UNRECORDED = "the call could not be recorded and was not made; try again later"
    RESULT_UNRECORDED = "the call was made, but its result could not be recorded and is withheld"
    TIMED_OUT = "the tool took too long and was stopped"
    ABANDONED = "the tool took too long and its result was discarded"
    CRASHED = "the tool had an internal error; try other arguments or go on without it"
    MISMATCH = "the tool ran, but its result is invalid and was discarded; do not make this call again"
    NO_USER = "this tool works for one user, and this session belongs to none; go on without it"
    STOPPED = "an operator has stopped your calls; make no more of them, and end here"
    NOT_INSTEAD = "this call may not go on to another address; make a call of its own for it"
    FOREIGN = "an operator must review this memory before you can use it; go on without it"
    NOT_IN_COPY = "this is a copy of the workspace, and the tool would act outside of it; nothing was done"
    MARKED = "the text contains `[REDACTED]`, the mark of something hidden from you; write without it"


def to_model(text: str) -> str:
    """``text`` with the prefix for a call that was not done."""
    return f"{Message.PREFIX} {text}"


Places = Callable[[Address], Place | None]
NO_FACTS: Mapping[str, JsonValue] = MappingProxyType({})


def no_facts() -> Mapping[str, JsonValue]:
    """The one empty mapping that all decisions without facts share."""
    return NO_FACTS


def nowhere(_address: Address) -> Place | None:
    """Find no place, since the policy has no file."""
    return None


@frozen
class RuleRef:
    """The deciding place in the policy. ``rule_id`` is the rule's own id, else its address as a dotted path."""

    rule_id: str
    address: Address
    places: Places = field(default=nowhere, repr=False, compare=False)

    @property
    def place(self) -> Place | None:
        """Its place in the file; for an omitted part that of the table that would contain it."""
        for length in range(len(self.address), 1, -1):
            place = self.places(self.address[:length])
            if place is not None:
                return place
        return None

    @property
    def file(self) -> str | None:
        """The file, or None for a policy without one."""
        place = self.place
        return place.file if place else None

    @property
    def line(self) -> int | None:
        """The line, from 1."""
        place = self.place
        return place.line if place else None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, file, line."""
        place = self.place
        return {"id": self.rule_id, "file": place.file if place else None, "line": place.line if place else None}


class Prover(Protocol):
    """Makes the proof of a decision on demand."""

    @property
    def decision_id(self) -> str:
        """The id of the decision."""
        ...

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided."""
        ...

    def proof(self, decision: Decision) -> DecisionProof:
        """The proof, the same one each time."""
        ...


class StageTrace(NamedTuple):
    """One stage that the call passed; ``reason`` is its finding, for the operator, ``address`` the place in the policy.

    A tuple, because every decision makes ten and a dataclass takes four times as long.
    """

    stage: str
    verdict: Verdict
    reason: str
    elapsed_us: float = 0.0
    address: Address | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: stage, verdict, reason."""
        return {"stage": self.stage, "verdict": str(self.verdict), "reason": self.reason}


@frozen
class Decision:
    """Verdict, its stage and reason. ``arguments`` are canonical as far as the stages came.

    ``reason`` is for the operator; ``model_message`` is for the model: None for an allow and for an open question.
    ``passed``: what becomes of the call where observe mode passes the verdict; None: the verdict is enforced.
    """

    verdict: Verdict
    stage: str
    code: str
    reason: str
    rule: RuleRef | None = None
    model_message: str | None = None
    trace: tuple[StageTrace, ...] = ()
    arguments: Mapping[str, JsonValue] = field(default_factory=no_facts, hash=False)
    facts: Mapping[str, JsonValue] = field(default_factory=no_facts, hash=False)
    prover: Prover | None = field(default=None, repr=False, compare=False)
    passed: Verdict | None = None
    places: Places = field(default=nowhere, repr=False, compare=False)

    @property
    def enforced(self) -> bool:
        """The call gets the verdict."""
        return self.passed is None

    @property
    def effect(self) -> Verdict:
        """The verdict that decides the call: ``passed`` in observe mode."""
        return self.verdict if self.passed is None else self.passed

    @property
    def decision_id(self) -> str:
        """The id in the log and in the proof; empty for a decision without a gate."""
        return self.prover.decision_id if self.prover else ""

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided; empty for a decision without a gate."""
        return self.prover.policy_digest if self.prover else ""

    @property
    def proof(self) -> DecisionProof:
        """The proof, completed on first use. Raises LookupError for a decision without a gate."""
        if self.prover is None:
            raise LookupError("only a gate's decisions can be proved")
        return self.prover.proof(self)

    def to_json(self) -> dict[str, JsonValue]:
        """The shape of the command line: verdict, enforced, stage, code, reason, rule, model_message, trace."""
        return {
            "verdict": str(self.verdict),
            "enforced": self.enforced,
            "stage": self.stage,
            "code": self.code,
            "reason": with_lines(self.reason, self.places),
            "rule": self.rule.to_json() if self.rule else None,
            "model_message": self.model_message,
            "trace": [{**row.to_json(), "reason": with_lines(row.reason, self.places)} for row in self.trace],
        }


_ENTRY = late_regex(r"workspace\.shell\.(allow|ask)\[([0-9]+)\]")


def with_lines(reason: str, places: Places) -> str:
    """Return a reason in which the place of each entry of ``[workspace] shell`` is its line, if the file has one."""

    def line(found: re.Match[str]) -> str:
        place = places(("workspace", "shell", found[1], int(found[2])))
        return f"line {place.line}" if place is not None else found[0]

    return _ENTRY.sub(line, reason)


def spell_address(address: Address) -> str:
    """The spelling of an address for people: ``agents.archivist.tool_rules[0]``."""
    text = ""
    for part in address:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_VERSION = 1


class ProofInvalid(WorkspaceError):
    """The input is no proof, or not the proof's exact text."""


@frozen
class DecisionProof:
    """A decision with everything that it depended on. Digests are 64 hexadecimal digits, ``now_s`` and ``wall_s`` the
    clocks.

    ``call_digest`` covers the canonical arguments, ``sent_digest`` the original ones; ``policy_digest`` identifies the
    policy in force, ``tool_digest`` the tool; ``rates`` are the seconds to wait for each rate, ``grant`` the standing
    approval, ``answer`` the operator's.
    """

    decision_id: str
    verdict: Verdict
    stage: str
    code: str
    reason: str
    rule: str | None
    grant: Grant | None
    policy_digest: str
    tool_digest: str | None
    call_digest: str
    sent_digest: str
    facts: SessionFacts
    now_s: float
    wall_s: float
    rates: Mapping[str, float] = field(hash=False)
    answer: Answer | None
    key_id: str
    mac: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Every field, under the names that ``from_json`` reads."""
        return {**self._content(), "mac": self.mac}

    def to_text(self) -> str:
        """Canonical JSON, the only text that ``from_text`` accepts."""
        return canonical_json(self.to_json()).decode()

    @classmethod
    def from_json(cls, data: object) -> DecisionProof:
        """The proof that ``to_json`` wrote. Raises ProofInvalid for anything else, unknown fields included."""
        if not isinstance(data, dict) or cast("dict[object, object]", data).keys() != _TYPES.keys():
            raise ProofInvalid("this is no proof: it has other fields")
        fields = cast("dict[str, Any]", data)
        for name, types in _TYPES.items():
            if type(fields[name]) not in types:
                raise ProofInvalid(f"this is no proof: `{name}` is of the wrong type")
        if fields["proof"] != _VERSION:
            raise ProofInvalid(f"a proof of version {fields['proof']} is not supported")
        try:
            grant, answer = fields["grant"], fields["answer"]
            return cls(
                fields["decision"],
                Verdict(fields["verdict"]),
                fields["stage"],
                fields["code"],
                fields["reason"],
                fields["rule"],
                Grant.from_json(grant) if grant is not None else None,
                fields["policy"],
                fields["tool"],
                fields["call"],
                fields["sent"],
                SessionFacts.from_json(fields["session"]),
                fields["now_s"],
                fields["wall_s"],
                {str(key): _number(level) for key, level in fields["rates"].items()},
                Answer.from_json(answer) if answer is not None else None,
                fields["key"],
                fields["mac"],
            )
        except (ValueError, TypeError, LookupError, AttributeError, WorkspaceError) as error:
            raise ProofInvalid(f"this is no proof: {error}") from None

    @classmethod
    def from_text(cls, text: str | bytes) -> DecisionProof:
        """The proof that ``to_text`` wrote, byte for byte. Raises ProofInvalid for anything else."""
        try:
            given = text.encode() if isinstance(text, str) else text
            proof = cls.from_json(json.loads(given))
            if canonical_json(proof.to_json()) == given:
                return proof
        except (ValueError, RecursionError):
            raise ProofInvalid("this is no proof: it is not JSON") from None
        raise ProofInvalid("this text differs from the original text of the proof")

    def seal(self, key: bytes) -> DecisionProof:
        """The proof with its MAC."""
        return replace(self, mac=self._mac(key))

    def is_sealed_by(self, key: bytes) -> bool:
        """Tell whether ``key`` gives its MAC."""
        try:
            mac = self._mac(key)
        except (ValueError, TypeError, RecursionError):  # everything that we seal is JSON
            return False
        return hmac.compare_digest(mac.encode(), self.mac.encode("utf-8", "replace"))

    def _mac(self, key: bytes) -> str:
        return hmac.new(key, canonical_json(self._content()), "sha256").hexdigest()

    def _content(self) -> dict[str, JsonValue]:
        return {
            "proof": _VERSION,
            "decision": self.decision_id,
            "verdict": str(self.verdict),
            "stage": self.stage,
            "code": self.code,
            "reason": self.reason,
            "rule": self.rule,
            "grant": self.grant.to_json() if self.grant is not None else None,
            "policy": self.policy_digest,
            "tool": self.tool_digest,
            "call": self.call_digest,
            "sent": self.sent_digest,
            "session": self.facts.to_json(),
            "now_s": self.now_s,
            "wall_s": self.wall_s,
            "rates": dict(self.rates),
            "answer": self.answer.to_json() if self.answer is not None else None,
            "key": self.key_id,
        }


_TEXT, _NUMBER, _MAYBE = (str,), (int, float), (str, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "proof": (int,),
    "decision": _TEXT,
    "verdict": _TEXT,
    "stage": _TEXT,
    "code": _TEXT,
    "reason": _TEXT,
    "rule": _MAYBE,
    "grant": (dict, type(None)),
    "policy": _TEXT,
    "tool": _MAYBE,
    "call": _TEXT,
    "sent": _TEXT,
    "session": (dict,),
    "now_s": _NUMBER,
    "wall_s": _NUMBER,
    "rates": (dict,),
    "answer": (dict, type(None)),
    "key": _TEXT,
    "mac": _TEXT,
}


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a level is not a number")
    return value
