"""One call on its way through the stages, as an immutable value, and what a stage may say of it. No stage is here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.gate.decision import NO_FACTS, no_facts
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.base.clock import Clock
    from gatewright.gate.approval import Answer
    from gatewright.gate.audit import AuditEntry, AuditLog
    from gatewright.gate.plan import OperationPlan, ToolPlan
    from gatewright.gate.session import Session
    from gatewright.gate.snapshot import AgentSnapshot
    from gatewright.policy.target import Assessment, Located
    from gatewright.tools.port import SourcePort

RawArguments = str | bytes | Mapping[str, JsonValue]

RowBuilder = Callable[["AuditLog"], "Sequence[AuditEntry]"]
"""Makes audit rows once the log is known to be there (digests are keyed by the log)."""


class Status(StrEnum):
    """How a call ended. ``unanswered``: the decision is ask, and there was nobody to ask; nothing was executed."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNANSWERED = "unanswered"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a stage objects to: ask or deny, why, where in the policy, and the words for the model.

    ``model`` is without the prefix; None where the stage's verdict is ask.
    """

    verdict: Verdict
    code: str
    reason: str
    address: Address | None = None
    rule_id: str | None = None
    model: str | None = None
    facts: Mapping[str, JsonValue] = field(default_factory=no_facts, hash=False)
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class CallPorts:
    """What the stages reach outside themselves. ``commit`` writes audit rows, or raises AuditUnavailable.

    ``absent``: tools that are known and not there now, and why.
    """

    sources: SourcePort | None
    clock: Clock
    commit: Callable[[RowBuilder], None]
    absent: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)


@dataclass(frozen=True)
class CallState:
    """A call between two stages; each stage fills in what it found.

    ``agent`` None: there is no such agent now. ``pending``: the audit rows to be written before execution.
    Without slots, because copying a dictionary makes the next state in a tenth of the time (see ``having``).
    """

    call_id: str
    agent_id: str
    tool_name: str
    raw: RawArguments
    agent: AgentSnapshot | None
    session: Session
    ports: CallPorts
    user_id: str | None = None
    answer: Answer | None = None
    arguments: dict[str, JsonValue] = field(default_factory=dict, hash=False)
    tool: ToolPlan | None = None
    operation: OperationPlan | None = None
    places: tuple[Located, ...] = ()
    assessment: Assessment | None = None
    asks: tuple[Finding, ...] = ()
    pending: RowBuilder | None = None
    status: Status = Status.ALLOWED
    code: str = ""
    output: str | None = None
    output_hash: str = ""
    output_bytes: int = 0
    truncated: bool = False

    def having(self, **changes: object) -> CallState:
        """The state with some fields changed."""
        new = object.__new__(CallState)
        new.__dict__.update(self.__dict__, **changes)
        return new

    @property
    def plan(self) -> ToolPlan:
        """The tool; only stages after lookup may ask."""
        if self.tool is None:
            raise LookupError("a stage asked for the tool before lookup")
        return self.tool

    @property
    def chosen(self) -> OperationPlan:
        """The operation; only stages after operation may ask."""
        if self.operation is None:
            raise LookupError("a stage asked for the operation before it was known")
        return self.operation


@dataclass(frozen=True, slots=True)
class StageResult:
    """The state for the next stage and the objections, most important first; none means that the call passes.

    ``note`` is what the trace says of a call that passed.
    """

    state: CallState
    findings: tuple[Finding, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that decides; it changes nothing outside the state."""

    name: str
    run: Callable[[CallState], StageResult]


@dataclass(frozen=True, slots=True)
class EffectStage:
    """A stage that acts."""

    name: str
    run: Callable[[CallState], Awaitable[StageResult]]


def denied(
    state: CallState,
    code: str,
    reason: str,
    model: str,
    *,
    address: Address | None = None,
    rule_id: str | None = None,
    facts: Mapping[str, JsonValue] = NO_FACTS,
) -> StageResult:
    """The result of a stage that refuses."""
    return StageResult(state, (Finding(Verdict.DENY, code, reason, address, rule_id, model, facts),))
