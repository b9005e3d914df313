"""The proof of one decision: what it was, by which policy, for which call, with which facts, under a MAC. It decides
nothing; whoever verifies one brings a way to decide again.

The MAC is HMAC-SHA-256 (RFC 2104, FIPS 180-4) over the canonical JSON of all else, with a key made from the key of the
audit log, or a random one of the gate where there is no log. What a proof costs
is spent when somebody asks for it.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from gatewright.base.errors import JsonRefused, WorkspaceError
from gatewright.base.ids import new_id
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate.approval import Answer
from gatewright.gate.call import CallState, RawArguments
from gatewright.gate.grant import Grant
from gatewright.gate.session import SessionFacts
from gatewright.gate.stages.parse import read_arguments
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.compile.snapshot import Snapshot
    from gatewright.gate.decision import Decision
    from gatewright.gate.inforce import ProofKeys

_VERSION = 1


class ProofInvalid(WorkspaceError):
    """What was given is no proof, or not as it was written."""


@dataclass(frozen=True, slots=True)
class ProvenCall:
    """The call that a proof is held against. ``arguments``: as the model sent them, or the canonical ones."""

    agent_id: str
    tool: str
    arguments: RawArguments = field(hash=False)
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionProof:
    """A decision with all it depended on. Digests are 64 hexadecimal digits, ``now_s`` and ``wall_s`` the clocks used.

    ``call_digest`` is of the canonical arguments, ``sent_digest`` of those that were sent; ``policy_digest`` names the
    policy in force, ``tool_digest`` the tool; ``rates`` are the seconds it had to wait for each rate, ``grant`` the
    standing approval that was used, ``answer`` the operator's.
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
        """Every field, under the names that ``from_json`` takes back."""
        return {**self._unsealed(), "mac": self.mac}

    def to_text(self) -> str:
        """Canonical JSON, the one text that ``from_text`` takes back."""
        return canonical_json(self.to_json()).decode()

    @classmethod
    def from_json(cls, data: object) -> DecisionProof:
        """The proof that ``to_json`` gave. Raises ProofInvalid for anything else, unknown fields included."""
        if not isinstance(data, dict) or cast("dict[object, object]", data).keys() != _TYPES.keys():
            raise ProofInvalid("this is no proof: its fields are not those of one")
        fields = cast("dict[str, Any]", data)
        for name, types in _TYPES.items():
            if type(fields[name]) not in types:
                raise ProofInvalid(f"this is no proof: `{name}` is of the wrong type")
        if fields["proof"] != _VERSION:
            raise ProofInvalid(f"a proof of version {fields['proof']} is not supported")
        try:
            return _proof_of(fields)
        except (ValueError, TypeError, LookupError, AttributeError, WorkspaceError) as error:
            raise ProofInvalid(f"this is no proof: {error}") from None

    @classmethod
    def from_text(cls, text: str | bytes) -> DecisionProof:
        """The proof that ``to_text`` gave, byte for byte. Raises ProofInvalid for anything else."""
        try:
            given = text.encode() if isinstance(text, str) else text
            proof = cls.from_json(json.loads(given))
            if canonical_json(proof.to_json()) == given:
                return proof
        except (ValueError, RecursionError):
            raise ProofInvalid("this is no proof: it is not JSON") from None
        raise ProofInvalid("this is not the text of a proof as it was written")

    def sealed(self, key: bytes) -> DecisionProof:
        """The proof with its MAC."""
        return replace(self, mac=self._mac(key))

    def is_sealed_by(self, key: bytes) -> bool:
        """Whether its MAC is the one that ``key`` gives."""
        try:
            mac = self._mac(key)
        except (ValueError, TypeError, RecursionError):  # what we sealed is JSON
            return False
        return hmac.compare_digest(mac.encode(), self.mac.encode("utf-8", "replace"))

    def _mac(self, key: bytes) -> str:
        return hmac.new(key, canonical_json(self._unsealed()), "sha256").hexdigest()

    def _unsealed(self) -> dict[str, JsonValue]:
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


def _proof_of(fields: dict[str, Any]) -> DecisionProof:
    rates = {str(key): _number(level) for key, level in fields["rates"].items()}
    return DecisionProof(
        fields["decision"],
        Verdict(fields["verdict"]),
        fields["stage"],
        fields["code"],
        fields["reason"],
        fields["rule"],
        Grant.from_json(fields["grant"]) if fields["grant"] is not None else None,
        fields["policy"],
        fields["tool"],
        fields["call"],
        fields["sent"],
        SessionFacts.from_json(fields["session"]),
        fields["now_s"],
        fields["wall_s"],
        rates,
        Answer.from_json(fields["answer"]) if fields["answer"] is not None else None,
        fields["key"],
        fields["mac"],
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a level is no number")
    return value


@dataclass(frozen=True, slots=True)
class Verification:
    """What held of a proof. ``again``: what the gate says now, with the facts of then; None when it was not asked.

    ``mac``: written by us and unchanged; ``call``: for this call; ``policy``: the policy of then is still in force;
    ``decision``: deciding again gave the same. A proof whose policy has moved on is no pass, nor a forgery.
    """

    mac: bool
    call: bool = False
    policy: bool = False
    decision: bool = False
    problems: tuple[str, ...] = ()
    again: Decision | None = None

    @property
    def holds(self) -> bool:
        """Whether everything did."""
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


class Prover:
    """Makes the proof of a decision when it is first asked for; until then it only holds what the decision knew."""

    __slots__ = ("_decision_id", "_keys", "_made", "_snapshot", "state")

    def __init__(self, state: CallState, snapshot: Snapshot, keys: ProofKeys) -> None:
        self.state = state
        self._snapshot = snapshot
        self._keys = keys
        self._decision_id = ""
        self._made: tuple[Decision, DecisionProof] | None = None

    @property
    def decision_id(self) -> str:
        """The id of the decision, given when it is first asked for."""
        self._decision_id = self._decision_id or new_id("decision")
        return self._decision_id

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided."""
        return self._snapshot.policy_digest

    def proof(self, decision: Decision) -> DecisionProof:
        """The proof, the same one each time."""
        made = self._made
        if made is None or made[0] is not decision:
            made = self._made = (decision, self._proof(decision))
        return made[1]

    def _proof(self, decision: Decision) -> DecisionProof:
        state = self.state
        key_id, key = self._keys.current()
        return DecisionProof(
            self.decision_id,
            decision.verdict,
            decision.stage,
            decision.code,
            decision.reason.encode("utf-8", "replace").decode(),
            decision.rule.rule_id if decision.rule else None,
            state.grant,
            self.policy_digest,
            tool_digest(state),
            call_digest(state, key, tool_digest(state)),
            sent_digest(state, key),
            state.facts or state.session.facts(),
            state.now_s,
            state.wall_s,
            dict(state.rates),
            state.answer,
            key_id,
        ).sealed(key)


def tool_digest(state: CallState) -> str | None:
    """The digest of the tool that the call reached; None when it reached none."""
    return state.tool.tool.digest if state.tool is not None else None


def call_digest(state: CallState, key: bytes, tool: str | None) -> str:
    """Who calls what, the tool as it is with that digest, with which arguments: canonical as far as the stages came."""
    return _digest({**_who(state), "tool_digest": tool, "arguments": state.arguments}, key)


def sent_digest(state: CallState, key: bytes) -> str:
    """Who calls what with which arguments as they were sent; as text where they are no JSON object."""
    return _digest({**_who(state), "sent": _sent(state, key)}, key)


def _sent(state: CallState, key: bytes) -> JsonValue:
    try:
        return read_arguments(state.raw)
    except JsonRefused:
        return _raw_digest(state.raw, key)
    except Exception:  # noqa: BLE001 a mapping of the host's may raise anything; the stage was a denial then
        return type(state.raw).__name__


def _who(state: CallState) -> dict[str, JsonValue]:
    session_id = state.facts.session_id if state.facts is not None else state.session.session_id
    return {
        "agent": _valid(state.agent_id),
        "user": _valid(state.user_id) if state.user_id is not None else None,
        "session": _valid(session_id),
        "tool": _valid(state.tool_name),
    }


def _digest(bound: dict[str, JsonValue], key: bytes) -> str:
    return hmac.new(key, b"call\0" + canonical_json(bound), "sha256").hexdigest()


def _valid(text: str) -> JsonValue:
    """``text`` in a form that JSON can hold, still telling apart what differs."""
    return text if text.isascii() else ["utf-8", text.encode("utf-8", "surrogatepass").hex()]


def _raw_digest(raw: object, key: bytes) -> str:
    content = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    if not isinstance(content, bytes):
        return type(raw).__name__
    return hmac.new(key, b"raw\0" + content, "sha256").hexdigest()
