"""The calls of one turn: neighbouring read-only ones together, everything else alone and in order. It decides no call.

What may run together is read off the agent's plan before the call is made: its tier under the policy. A call whose
tool or operation nobody knows goes alone. A call that ends the loop does not cut the turn short: the model made all its
calls at once, and what ends is the loop, which whoever drives it sees at ``should_continue``. Whether a later call may
still be made is the gate's to say, by the rules. A call that changes something and waits for an answer, or was refused
one, does: what comes after it in the turn was meant to happen after it, and is not made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial

from gatewright.base import aio
from gatewright.gate.accumulator import BrokenCall, ToolCall, arguments_of
from gatewright.gate.call import CallState, Stage, Status
from gatewright.gate.decision import StageTrace
from gatewright.gate.outcome import Outcome
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.approval import APPROVAL
from gatewright.gate.stages.lookup import LOOKUP
from gatewright.gate.stages.operation import OPERATION
from gatewright.gate.stages.parse import PARSE
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import Verdict

_KNOWING: tuple[Stage, ...] = (PARSE, LOOKUP, OPERATION)

OnCallStage = Callable[[int, StageTrace], None]
"""Told the number of a call within its turn, from 0, and the stage that it passed."""


Make = Callable[..., Awaitable[Outcome]]
"""Makes a call of a tool with arguments; ``on_stage``: told each stage as it passes."""
Look = Callable[..., CallState]
"""The same call before its first stage."""


async def call_many(
    make: Make, look: Look, calls: Iterable[ToolCall | BrokenCall], on_stage: OnCallStage | None, *, most: int
) -> tuple[Outcome, ...]:
    """The outcomes in the order of ``calls``, a denial for a broken one; at most ``most`` run at once.

    After a call that is not only read-only and got no yes, the later ones are denied at the stage that asks. Cancelling
    it cancels all of them.
    """
    numbered = tuple(enumerate(calls))
    outcomes: dict[int, Outcome] = {}
    room = aio.Semaphore(max(1, most))

    unanswered = ""

    async def run(number: int, call: ToolCall | BrokenCall) -> None:
        async with room:
            watch = None if on_stage is None else partial(on_stage, number)
            outcomes[number] = await make(call.tool, arguments_of(call), on_stage=watch, unanswered=unanswered)

    for group, only_reads in _groups(look, numbered):
        if len(group) == 1:
            number, call = group[0]
            await run(number, call)
            if not only_reads and not unanswered and _got_no_yes(outcomes[number]):
                unanswered = call.tool
            continue
        async with aio.TaskGroup() as tasks:
            for number, call in group:
                tasks.create_task(run(number, call))
    return tuple(outcomes[number] for number, _ in numbered)


def _got_no_yes(outcome: Outcome) -> bool:
    return outcome.status is Status.UNANSWERED or (
        outcome.status is Status.DENIED and outcome.decision.stage == APPROVAL.name
    )


def _groups(
    look: Look, calls: Iterable[tuple[int, ToolCall | BrokenCall]]
) -> Iterator[tuple[list[tuple[int, ToolCall | BrokenCall]], bool]]:
    """The calls that go together, and whether they only read; looked at when it is their turn, so that a policy swapped
    meanwhile counts.
    """
    gathered: list[tuple[int, ToolCall | BrokenCall]] = []
    for number, call in calls:
        if _only_reads(look, call):
            gathered.append((number, call))
            continue
        if gathered:
            yield gathered, True
            gathered = []
        yield [(number, call)], False
    if gathered:
        yield gathered, True


def _only_reads(look: Look, call: ToolCall | BrokenCall) -> bool:
    """Whether the call is of an operation that is read-only under this policy."""
    state = look(call.tool, arguments_of(call))
    for stage in _KNOWING:
        result = run_stage(stage, state)
        if any(finding.verdict is Verdict.DENY for finding in result.findings):
            return False
    return state.chosen.right.tier is SafetyTier.READ_ONLY
