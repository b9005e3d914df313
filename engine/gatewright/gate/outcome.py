"""What became of one call: the decision, how it ended, and what the model gets. It does not run anything."""

from __future__ import annotations

from dataclasses import dataclass

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import Status
from gatewright.gate.decision import Decision


@dataclass(frozen=True, slots=True)
class Outcome:
    """``output`` is the text for the model, a failure's included. ``output_hash``: SHA-256 of the text before cutting.

    ``code`` is the decision's, or the failure's when the call was executed and failed. ``elapsed_ms`` holds everything,
    waiting for an approval too.
    """

    decision: Decision
    status: Status
    code: str
    output: str
    call_id: str
    session_id: str
    truncated: bool = False
    output_hash: str | None = None
    output_bytes: int = 0
    elapsed_ms: float = 0.0

    def to_json(self) -> dict[str, JsonValue]:
        """The decision's shape and status, output, truncated, output_hash, call, session."""
        return {
            **self.decision.to_json(),
            "status": str(self.status),
            "code": self.code,
            "output": self.output,
            "truncated": self.truncated,
            "output_hash": self.output_hash,
            "call": self.call_id,
            "session": self.session_id,
        }
