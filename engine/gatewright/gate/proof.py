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
from dataclasses import field, replace
from typing import Any, cast

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate.approval import Answer
from gatewright.gate.grant import Grant
from gatewright.gate.session import SessionFacts
from gatewright.policy.verdict import Verdict

_VERSION = 1


class ProofInvalid(WorkspaceError):
    """What was given is no proof, or not as it was written."""


@frozen
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


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a level is no number")
    return value
