"""What the gate decided about one call, with the rule and every stage passed. It does not decide.

Lines are looked up only when somebody asks for them: a decision carries addresses into the policy and the resolver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address, Place
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.gate.proof import DecisionProof

Places = Callable[[Address], Place | None]
NO_FACTS: Mapping[str, JsonValue] = MappingProxyType({})


def no_facts() -> Mapping[str, JsonValue]:
    """The one empty mapping that everything without facts shares."""
    return NO_FACTS


def nowhere(_address: Address) -> Place | None:
    """The resolver of a policy that has no file."""
    return None


@frozen
class RuleRef:
    """The deciding place in the policy. ``rule_id`` is the rule's own id, else its address as a dotted path."""

    rule_id: str
    address: Address
    places: Places = field(default=nowhere, repr=False, compare=False)

    @property
    def place(self) -> Place | None:
        """Where it stands; a part that the file leaves out leads to the table that would hold it."""
        for length in range(len(self.address), 1, -1):
            place = self.places(self.address[:length])
            if place is not None:
                return place
        return None

    @property
    def file(self) -> str | None:
        """The file, or None when the policy has none."""
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
    """Makes the proof of a decision when it is asked for."""

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
    """One stage as it passed; ``reason`` says what it found, for the operator, ``address`` where in the policy.

    A tuple, because ten are made for every decision and a dataclass takes four times as long.
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
    """Verdict, the stage that gave it, why. ``arguments`` are canonical as far as the stages came.

    ``reason`` is for the operator; ``model_message`` is for the model: None for an allow and for an open question.
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

    @property
    def decision_id(self) -> str:
        """The id in the log and in the proof; empty for a decision that no gate made."""
        return self.prover.decision_id if self.prover else ""

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided; empty for a decision that no gate made."""
        return self.prover.policy_digest if self.prover else ""

    @property
    def proof(self) -> DecisionProof:
        """The proof, completed when it is first asked for. Raises LookupError for a decision that no gate made."""
        if self.prover is None:
            raise LookupError("only a gate's decisions can be proved")
        return self.prover.proof(self)

    def to_json(self) -> dict[str, JsonValue]:
        """The shape of the command line: verdict, stage, code, reason, rule, model_message, trace."""
        return {
            "verdict": str(self.verdict),
            "stage": self.stage,
            "code": self.code,
            "reason": self.reason,
            "rule": self.rule.to_json() if self.rule else None,
            "model_message": self.model_message,
            "trace": [row.to_json() for row in self.trace],
        }


def dotted(address: Address) -> str:
    """An address as people write it: ``agents.archivist.tool_rules[0]``."""
    text = ""
    for part in address:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
