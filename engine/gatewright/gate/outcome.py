"""What became of one call: the decision, how it ended, and what the model gets. It does not run anything."""

from __future__ import annotations

from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import Status
from gatewright.gate.decision import Decision
from gatewright.tools.declaration import SideEffect


@frozen
class Outcome:
    """``output`` is the text for the model, a failure's included. ``data``: the whole result, normalised, for the host.

    ``output_hash``: SHA-256 of ``data``, of a failure's text otherwise; ``output_bytes``: how large the text was before
    cutting, for a binary result the data. ``code`` is the decision's, or the failure's when the call was executed and
    failed; ``detail`` is what went wrong then, for the operator. ``raw``: what the tool gave, before secrets were taken
    out, for the program that runs it and in no JSON; it counts where ``data`` is not None. ``side_effects``: what the
    tool declares that it touches; nothing where it was not run. ``elapsed_ms`` holds everything, waiting for an
    approval too. ``reused``: a pure tool was not run again. ``should_continue``: whether the agent's loop goes on.
    ``secrets``: how many were taken out of the result. ``steps``: of a composition, the calls that it made.
    """

    decision: Decision
    status: Status
    code: str
    output: str
    call_id: str
    session_id: str
    truncated: bool
    output_hash: str | None
    output_bytes: int
    elapsed_ms: float
    data: bytes | None = field(repr=False)
    detail: str
    reused: bool
    should_continue: bool
    secrets: int
    raw: JsonValue | bytes = field(repr=False)
    side_effects: frozenset[SideEffect]
    steps: tuple[Outcome, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The decision's shape and status, output, detail, truncated, reused, output_hash, bytes, call and so on.

        Without ``data`` and ``raw``: JSON is printed and kept, and ``raw`` holds the secrets.
        """
        return {
            **self.decision.to_json(),
            "status": str(self.status),
            "code": self.code,
            "output": self.output,
            "detail": self.detail,
            "truncated": self.truncated,
            "reused": self.reused,
            "output_hash": self.output_hash,
            "output_bytes": self.output_bytes,
            "side_effects": [str(effect) for effect in sorted(self.side_effects)],
            "call": self.call_id,
            "session": self.session_id,
            "should_continue": self.should_continue,
            "elapsed_ms": round(self.elapsed_ms, 3),
            **({"steps": [step.to_json() for step in self.steps]} if self.steps else {}),
        }
