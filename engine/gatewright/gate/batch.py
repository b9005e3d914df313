"""The calls of one turn: neighbouring read-only ones together, everything else alone and in order. It decides no call.

What may run together is read off the agent's plan before the call is made: its tier under the policy. A call whose
tool or operation nobody knows goes alone. A call that ends the loop does not cut the turn short: the model made all its
calls at once, and what ends is the loop, which whoever drives it sees at ``should_continue``. Whether a later call may
still be made is the gate's to say, by the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from gatewright.base import aio
from gatewright.base.frozen import frozen
from gatewright.gate.accumulator import BrokenCall, ToolCall, arguments_of
from gatewright.gate.call import MOST_AT_ONCE, RawArguments, Stage
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.lookup import LOOKUP
from gatewright.gate.stages.operation import OPERATION
from gatewright.gate.stages.parse import PARSE
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.gate.approval import Approver
    from gatewright.gate.call import CallState
    from gatewright.gate.decision import StageTrace
    from gatewright.gate.outcome import Outcome
    from gatewright.gate.session import Session
    from gatewright.tools.context import ToolExecutionContext

_KNOWING: tuple[Stage, ...] = (PARSE, LOOKUP, OPERATION)

OnCallStage = Callable[[int, "StageTrace"], None]
"""Told the number of a call within its turn, from 0, and the stage that it passed."""


class Caller(Protocol):
    """The part of a gate that makes calls."""

    def state(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
    ) -> CallState:
        """The call before its first stage."""
        ...

    async def call(
        self,
        agent_id: str,
        tool: str,
        arguments: RawArguments,
        *,
        session: Session | None = None,
        context: ToolExecutionContext | None = None,
        on_stage: Callable[[StageTrace], None] | None = None,
        approver: Approver | None = None,
    ) -> Outcome:
        """Decide and, if allowed or approved, execute."""
        ...


@frozen
class Turn:
    """What the calls of one turn have in common."""

    agent_id: str
    session: Session
    context: ToolExecutionContext | None = None
    on_stage: OnCallStage | None = None
    approver: Approver | None = None


async def call_many(
    gate: Caller, turn: Turn, calls: Iterable[ToolCall | BrokenCall], *, most: int = MOST_AT_ONCE
) -> tuple[Outcome, ...]:
    """The outcomes in the order of ``calls``, a denial for a broken one; at most ``most`` run at once.

    Cancelling it cancels all of them.
    """
    numbered = tuple(enumerate(calls))
    outcomes: dict[int, Outcome] = {}
    room = aio.Semaphore(max(1, most))

    async def make(number: int, call: ToolCall | BrokenCall) -> None:
        async with room:
            outcomes[number] = await gate.call(
                turn.agent_id,
                call.tool,
                arguments_of(call),
                session=turn.session,
                context=turn.context,
                on_stage=_watcher(turn.on_stage, number),
                approver=turn.approver,
            )

    for group in _groups(gate, turn, numbered):
        if len(group) == 1:
            await make(*group[0])
            continue
        async with aio.TaskGroup() as tasks:
            for number, call in group:
                tasks.create_task(make(number, call))
    return tuple(outcomes[number] for number, _ in numbered)


def _groups(
    gate: Caller, turn: Turn, calls: Iterable[tuple[int, ToolCall | BrokenCall]]
) -> Iterator[list[tuple[int, ToolCall | BrokenCall]]]:
    """The calls that go together, looked at when it is their turn, so that a policy swapped meanwhile counts."""
    gathered: list[tuple[int, ToolCall | BrokenCall]] = []
    for number, call in calls:
        if _only_reads(gate, turn, call):
            gathered.append((number, call))
            continue
        if gathered:
            yield gathered
            gathered = []
        yield [(number, call)]
    if gathered:
        yield gathered


def _only_reads(gate: Caller, turn: Turn, call: ToolCall | BrokenCall) -> bool:
    """Whether the call is of an operation that is read-only under this policy."""
    state = gate.state(turn.agent_id, call.tool, arguments_of(call), session=turn.session, context=turn.context)
    for stage in _KNOWING:
        result = run_stage(stage, state)
        if any(finding.verdict is Verdict.DENY for finding in result.findings):
            return False
    return state.chosen.right.tier is SafetyTier.READ_ONLY


def _watcher(on_stage: OnCallStage | None, number: int) -> Callable[[StageTrace], None] | None:
    return None if on_stage is None else lambda row: on_stage(number, row)
