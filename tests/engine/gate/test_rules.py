"""Each kind of tool rule through the gate: what it lets through, what it denies, and what it says."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from gatewright.gate import Decision, Outcome, Session, Status
from gatewright.gate.breach import (
    KEY,
    ConstraintViolation,
    CooldownActive,
    ExclusiveGroupViolation,
    ExitRequirementsPending,
    MaxCallsExceeded,
    OperationNotAllowed,
    OrderingViolation,
    PrerequisitesNotMet,
    RateLimited,
    StartConstraintsNotMet,
    violation_of,
)
from gatewright.gate.inforce import ProvenCall
from gatewright.gate.session import Reservation
from gatewright.policy.rule import ExclusiveGroups, ExitLoop, MaxCalls, StartConstraint, ToolRule
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.parameter import SourceParameter
from gatewright.tools.registry import tool
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import World

HELLO = {"text": "hello"}
UP, DOWN = {"op": "up"}, {"op": "down"}


def policy(*rules: str, tools: str = '"echo", "counter", "fail", "vault"', sources: str = "") -> str:
    tables = "\n".join(f"[[agents.archivist.tool_rules]]\n{rule}\n" for rule in rules)
    approvals = "approvals = { privileged = 'allow' }"
    return f"gatewright = 1\n[agents.archivist]\ntools = [{tools}]\n{approvals}\n{tables}\n{sources}"


def rule(tool: str, kind: str, *conditions: str, priority: int = 5, rule_id: str = "") -> str:
    named = f'id = "{rule_id}"\n' if rule_id else ""
    listed = ", ".join(f'"{one}"' for one in conditions)
    return f'tool_name = "{tool}"\nrule_type = {kind}\nconditions = [{listed}]\npriority = {priority}\n{named}'


async def done(world: World, session: Session, tool: str, arguments: Any = None) -> Outcome:
    outcome = await world.call(tool, arguments or HELLO, session=session)
    assert outcome.status is Status.ALLOWED, outcome.decision
    return outcome


def denied(world: World, session: Session, tool: str, arguments: Any = None, *, stage: str = "rules") -> Decision:
    decision = world.decide(tool, arguments or HELLO, session=session)
    assert str(decision.verdict) == "deny", decision
    assert decision.stage == stage
    return decision


def allowed(world: World, session: Session, tool: str, arguments: Any = None) -> bool:
    return str(world.decide(tool, arguments or HELLO, session=session).verdict) == "allow"


# the words of every kind

ALL, ECHO = '"echo", "counter", "fail", "vault"', '"echo"'
NO_MORE = "this tool may not be called again in this session; go on without it"
GONE = "this tool cannot be used in this session any more; go on without it"


@pytest.mark.parametrize(
    ("tools", "rules", "before", "code", "reason", "model", "facts"),
    [
        (
            ALL,
            (rule("counter", '"StartConstraint"', "operation:up"), rule("vault", '"StartConstraint"')),
            (),
            "start-required",
            "`counter` with `up` must have succeeded before any other tool",
            "call `counter` with `up` first",
            {},
        ),
        (
            ALL,
            (rule("echo", '"RequiresPrecedingTools"', "counter.up", "counter.down", "vault", "fail"),),
            ("counter.up",),
            "preceding-required",
            "`counter` with `down`, `vault` and `fail` must have succeeded before `echo`",
            "call `counter` with `down`, `vault` and `fail` first",
            {},
        ),
        (
            ECHO,
            (rule("echo", '"RequiresPrecedingTools"', "vault"),),
            (),
            "preceding-required",
            "`vault` must have succeeded before `echo`",
            "this tool cannot be used yet; go on without it",
            {},
        ),
        (
            ALL,
            (rule("echo", '"RequiresFollowingTools"', "counter.up", "vault", "fail"),),
            ("counter.up", "vault"),
            "too-late",
            "`echo` must come before `counter` with `up` and `vault`, which has run already",
            "this tool has to come before `counter` with `up` and `vault`, which came first; go on without it",
            {},
        ),
        (
            ECHO,
            (rule("echo", '"RequiresFollowingTools"', "vault"),),
            ("vault",),
            "too-late",
            "`echo` must come before `vault`, which has run already",
            GONE,
            {},
        ),
        (
            ALL,
            (rule("echo", '{ ExclusiveGroups = [["echo", "counter", "vault", "fail"]] }'),),
            ("counter.up", "vault"),
            "exclusive-group",
            "`echo` excludes `counter` and `vault` within a session, which was called already",
            "this tool excludes `counter` and `vault`, which was called in this session; go on without it",
            {},
        ),
        (
            ECHO,
            (rule("echo", '{ ExclusiveGroups = [["echo", "vault"]] }'),),
            ("vault",),
            "exclusive-group",
            "`echo` excludes `vault` within a session, which was called already",
            GONE,
            {},
        ),
        *(
            (
                ALL,
                (rule("echo", f"{{ MaxCalls = {calls} }}"),),
                ("echo",) * calls,
                "max-calls",
                f"`echo` may be called {told}",
                NO_MORE,
                {"calls": calls, "limit": calls},
            )
            for calls, told in (
                (0, "0 times per session, and 0 calls were made"),
                (1, "once per session, and 1 call was made"),
                (2, "2 times per session, and 2 calls were made"),
            )
        ),
        (
            ALL,
            (rule("echo", "{ Cooldown = 94.5 }"),),
            ("echo",),
            "cooldown",
            "`echo` needs 1 min 34.5 s between calls; 90.5 s are left",
            "this tool may be called again in 1 min 31 s; do something else until then",
            {"wait_s": 90.5},
        ),
        (
            ALL,
            (rule("echo", "{ Cooldown = 4.0004 }"),),
            ("echo",),
            "cooldown",
            "`echo` needs 4 s between calls; 0.1 s are left",
            "this tool may be called again in 1 s; do something else until then",
            {"wait_s": 0.0},
        ),
        (
            ALL,
            (
                rule("echo", '"ExitLoop"'),
                rule("counter", '"RequiredBeforeExit"', "operation:up"),
                rule("vault", '"RequiredBeforeExit"'),
            ),
            (),
            "exit-requirements-pending",
            "`counter` with `up` and `vault` must have succeeded before `echo` may end the loop",
            "call `counter` with `up` and `vault` before you finish",
            {},
        ),
    ],
)
def test_broken_rule_is_told_to_the_operator_whole_and_to_the_model_without_what_is_hidden(
    make_world: MakeWorld,
    tools: str,
    rules: tuple[str, ...],
    before: tuple[str, ...],
    code: str,
    reason: str,
    model: str,
    facts: dict[str, float],
) -> None:
    world, session = make_world(policy(*rules, tools=tools)), Session()
    for called in before:
        name, _, operation = called.partition(".")
        slot = session.reserve(name, operation, world.clock.monotonic_s())
        assert isinstance(slot, Reservation)
        session.settle(slot)
        session.add_success(name, operation)
    world.clock.advance(4)
    decision = denied(world, session, "echo")

    assert (decision.code, decision.reason) == (code, reason)
    assert decision.model_message == f"Tool execution failed: {model}"
    assert {name: value for name, value in decision.facts.items() if name != KEY} == facts


# StartConstraint


async def test_start_tool_comes_before_every_other(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("counter", '"StartConstraint"', rule_id="first"))), Session()
    decision = denied(world, session, "echo")

    assert decision.code == "start-required"
    assert decision.rule is not None
    assert decision.rule.rule_id == "first"
    assert decision.model_message == "Tool execution failed: call `counter` first"
    assert violation_of(decision) == StartConstraintsNotMet("echo", ("counter",))
    await done(world, session, "counter", UP)
    assert allowed(world, session, "echo")


async def test_start_tool_that_failed_has_not_started_anything(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("fail", '"StartConstraint"'))), Session()
    outcome = await world.call("fail", HELLO, session=session)

    assert outcome.status is Status.FAILED
    assert denied(world, session, "echo").code == "start-required"


async def test_start_in_one_operation_is_met_by_that_one_only(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", '"StartConstraint"', "operation:up")))
    session = Session()

    decision = denied(world, session, "counter", DOWN)
    assert decision.model_message == "Tool execution failed: call `counter` with `up` first"
    await done(world, session, "counter", UP)
    assert allowed(world, session, "counter", DOWN)


async def test_two_start_tools_do_not_wait_for_each_other(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", '"StartConstraint"'), rule("vault", '"StartConstraint"', priority=9)))
    session = Session()
    await done(world, session, "counter", UP)

    assert denied(world, session, "echo").model_message == "Tool execution failed: call `vault` first"
    await done(world, session, "vault")
    assert allowed(world, session, "echo")


# RequiresPrecedingTools


async def test_preceding_tools_must_all_have_succeeded(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '"RequiresPrecedingTools"', "counter.up", "vault")))
    session = Session()
    await done(world, session, "counter", DOWN)
    decision = denied(world, session, "echo")

    assert decision.code == "preceding-required"
    assert decision.model_message == "Tool execution failed: call `counter` with `up` and `vault` first"
    assert violation_of(decision) == PrerequisitesNotMet("echo", ("counter.up", "vault"), ())
    await done(world, session, "counter", UP)
    assert violation_of(denied(world, session, "echo")) == PrerequisitesNotMet(
        "echo", ("counter.up", "vault"), ("counter.up",)
    )
    await done(world, session, "vault")
    assert allowed(world, session, "echo")


async def test_failed_call_is_no_preceding_one(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("echo", '"RequiresPrecedingTools"', "fail"))), Session()
    await world.call("fail", HELLO, session=session)

    assert denied(world, session, "echo").code == "preceding-required"


async def test_preceding_for_every_tool_leaves_a_way_to_begin(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("*", '"RequiresPrecedingTools"', "counter", "vault")))
    session = Session()

    assert denied(world, session, "echo").code == "preceding-required"
    await done(world, session, "counter", UP)
    await done(world, session, "vault")
    assert allowed(world, session, "echo")


def test_preceding_of_one_operation_leaves_the_others_alone(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", '"RequiresPrecedingTools"', "vault", "operation:down")))

    assert allowed(world, Session(), "counter", UP)
    assert denied(world, Session(), "counter", DOWN).code == "preceding-required"


def test_hidden_preceding_tool_is_not_named_to_the_model(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '"RequiresPrecedingTools"', "vault"), tools='"echo"'))
    decision = denied(world, Session(), "echo")

    assert decision.model_message == "Tool execution failed: this tool cannot be used yet; go on without it"
    assert "`vault`" in decision.reason


# RequiresFollowingTools


async def test_tool_that_must_come_before_comes_too_late_after(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '"RequiresFollowingTools"', "counter.up", "vault")))
    session = Session()
    await done(world, session, "counter", DOWN)
    await done(world, session, "echo")
    await done(world, session, "counter", UP)
    decision = denied(world, session, "echo")

    assert decision.code == "too-late"
    assert decision.model_message is not None
    assert "`counter` with `up`" in decision.model_message
    assert "vault" not in decision.model_message
    assert violation_of(decision) == OrderingViolation("echo", ("counter.up", "vault"), ("counter.up",))


async def test_following_for_every_tool_lets_the_last_one_repeat(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("*", '"RequiresFollowingTools"', "counter"))), Session()
    await done(world, session, "counter", UP)

    assert allowed(world, session, "counter", UP)
    assert denied(world, session, "echo").code == "too-late"


# ExclusiveGroups

GROUPS = '{ ExclusiveGroups = [["echo", "counter"], ["fail", "vault"]] }'


@pytest.mark.parametrize("stands_on", ["echo", "counter", "vault", "*"])
async def test_group_holds_whichever_tool_its_rule_stands_on(make_world: MakeWorld, stands_on: str) -> None:
    world, session = make_world(policy(rule(stands_on, GROUPS))), Session()
    await done(world, session, "echo")
    decision = denied(world, session, "counter", UP)

    assert decision.code == "exclusive-group"
    assert violation_of(decision) == ExclusiveGroupViolation("counter", ("counter", "echo"), ("echo",))
    assert allowed(world, session, "echo")
    assert allowed(world, session, "vault")


async def test_failed_call_claims_no_group(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("vault", GROUPS))), Session()
    await world.call("fail", HELLO, session=session)

    assert allowed(world, session, "vault")
    assert (await world.call("fail", HELLO, session=session)).status is Status.FAILED


async def test_denied_call_claims_nothing(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("*", GROUPS), rule("echo", "{ MaxCalls = 0 }")))
    session = Session()
    await world.call("echo", HELLO, session=session)

    assert allowed(world, session, "counter", UP)


async def test_group_limited_to_an_operation_leaves_the_others_out(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", GROUPS, "operation:down")))
    session = Session()
    await done(world, session, "counter", UP)

    assert allowed(world, session, "echo")
    await done(world, session, "counter", DOWN)
    assert denied(world, session, "echo").code == "exclusive-group"
    assert allowed(world, session, "counter", UP)


# MaxCalls


async def test_calls_are_capped_and_failed_ones_count(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("fail", "{ MaxCalls = 2 }"))), Session()
    await world.call("fail", HELLO, session=session)
    await world.call("fail", HELLO, session=session)
    decision = denied(world, session, "fail")

    assert decision.code == "max-calls"
    assert violation_of(decision) == MaxCallsExceeded("fail", 2, 2)
    assert (decision.facts["calls"], decision.facts["limit"]) == (2, 2)
    assert decision.reason == "`fail` may be called 2 times per session, and 2 calls were made"
    assert decision.model_message == (
        "Tool execution failed: this tool may not be called again in this session; go on without it"
    )
    assert str((await world.call("fail", HELLO, session=Session())).status) == "failed"


async def test_cap_for_every_tool_counts_each_tool_by_itself_and_each_call_once(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("*", "{ MaxCalls = 3 }"), rule("echo", "{ MaxCalls = 2 }")))
    session = Session()
    for _ in range(2):
        await done(world, session, "echo")
    for _ in range(3):
        await done(world, session, "counter", UP)

    assert violation_of(denied(world, session, "echo")) == MaxCallsExceeded("echo", 2, 2)
    assert violation_of(denied(world, session, "counter", DOWN)) == MaxCallsExceeded("counter", 3, 3)


async def test_cap_on_operations_counts_any_of_them_together(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", "{ MaxCalls = 1 }", "operation:up"), rule("counter", "{ MaxCalls = 3 }")))
    session = Session()
    await done(world, session, "counter", DOWN)
    await done(world, session, "counter", UP)

    assert violation_of(denied(world, session, "counter", UP)) == MaxCallsExceeded("counter", 1, 1)
    assert allowed(world, session, "counter", DOWN)


# Cooldown


async def test_calls_start_a_gap_apart(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("echo", "{ Cooldown = 10 }"))), Session()
    await done(world, session, "echo")
    world.clock.advance(4)
    decision = denied(world, session, "echo")

    assert decision.code == "cooldown"
    assert decision.model_message == (
        "Tool execution failed: this tool may be called again in 6 s; do something else until then"
    )
    assert violation_of(decision) == CooldownActive("echo", 6.0)
    world.clock.advance(0.1234564)
    assert violation_of(denied(world, session, "echo")) == CooldownActive("echo", 5.876544)
    world.clock.advance(6)
    assert allowed(world, session, "echo")


async def test_denied_call_does_not_start_the_gap_again(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("echo", "{ Cooldown = 10 }"))), Session()
    await done(world, session, "echo")
    world.clock.advance(9)
    await world.call("echo", HELLO, session=session)
    world.clock.advance(1)

    assert allowed(world, session, "echo")


async def test_resumed_session_keeps_cap_and_gap(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", "{ Cooldown = 10 }"), rule("counter", "{ MaxCalls = 1 }")))
    session = Session()
    await done(world, session, "echo")
    await done(world, session, "counter", UP)
    data = session.to_saved(world.clock)
    world.clock.advance(4)
    again = Session.resume(data, world.clock)

    assert violation_of(denied(world, again, "echo")) == CooldownActive("echo", 6.0)
    assert denied(world, again, "counter", UP).code == "max-calls"


# RateLimit


async def test_rate_holds_across_sessions_for_the_whole_period(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '{ RateLimit = { calls = 2, per = "1m" } }')))
    await done(world, Session(), "echo")
    await done(world, Session(), "echo")
    decision = denied(world, Session(), "echo")

    assert decision.code == "rate-limit"
    assert violation_of(decision) == RateLimited("echo", 60.0)
    assert decision.reason == "`echo` may be called 2 times per 1 min; 60.0 s are left"
    told = "this tool was called too often; it may be called again in 1 min"
    assert decision.model_message == f"Tool execution failed: {told}"
    assert decision.facts["wait_s"] == 60.0
    world.clock.advance(59.5)
    assert denied(world, Session(), "echo").reason == "`echo` may be called 2 times per 1 min; 0.5 s are left"
    world.clock.advance(0.4996)
    assert denied(world, Session(), "echo").reason == "`echo` may be called 2 times per 1 min; 0.1 s are left"
    assert denied(world, Session(), "echo").model_message == f"Tool execution failed: {told.replace('1 min', '1 s')}"
    world.clock.advance(0.0004)
    await done(world, Session(), "echo")
    await done(world, Session(), "echo")
    assert denied(world, Session(), "echo").code == "rate-limit"


async def test_other_numbers_of_a_rate_do_not_open_it(make_world: MakeWorld) -> None:
    def limited(*rates: str) -> str:
        return policy(*(rule("echo", f"{{ RateLimit = {{ {rate} }} }}") for rate in rates))

    world = make_world(limited('calls = 2, per = "1m"'))
    await done(world, Session(), "echo")
    await done(world, Session(), "echo")
    for again in (
        ['calls = 2, per = "2m"'],
        ['calls = 1, per = "1m"'],
        ['calls = 1, per = "10s"', 'calls = 2, per = "1h"'],
    ):
        world.reload(limited(*again))
        assert denied(world, Session(), "echo").code == "rate-limit"


async def test_deciding_takes_nothing_from_the_rate(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '{ RateLimit = { calls = 1, per = "1m" } }')))
    for _ in range(5):
        assert allowed(world, Session(), "echo")
    await done(world, Session(), "echo")


async def test_rate_for_every_tool_gives_each_tool_a_rate(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("*", '{ RateLimit = { calls = 1, per = "1h" } }')))
    await done(world, Session(), "echo")

    assert allowed(world, Session(), "counter", UP)
    assert denied(world, Session(), "echo").code == "rate-limit"


async def test_two_equal_rates_count_a_call_once(make_world: MakeWorld) -> None:
    text = '{ RateLimit = { calls = 2, per = "1h" } }'
    world = make_world(policy(rule("*", text), rule("echo", text)))
    await done(world, Session(), "echo")
    await done(world, Session(), "echo")

    assert denied(world, Session(), "echo").code == "rate-limit"


async def test_call_over_its_cap_counts_against_no_rate(make_world: MakeWorld) -> None:
    world = make_world(
        policy(rule("echo", "{ MaxCalls = 0 }"), rule("echo", '{ RateLimit = { calls = 1, per = "1h" } }'))
    )
    await world.call("echo", HELLO)
    world.reload(policy(rule("echo", '{ RateLimit = { calls = 1, per = "1h" } }')))

    assert allowed(world, Session(), "echo")


# ArgumentConstraints

LIMITED = "{ ArgumentConstraints = { by = { maximum = 3 } } }"


def test_limited_argument_is_denied_with_what_is_allowed(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", LIMITED)))
    decision = denied(world, Session(), "counter", {"op": "up", "by": 4}, stage="schema")

    assert decision.code == "argument-constraint"
    assert decision.model_message is not None
    assert "/by: must be at most 3" in decision.model_message
    assert violation_of(decision) == ConstraintViolation("counter", "by", ("/by: must be at most 3",))
    assert allowed(world, Session(), "counter", {"op": "up", "by": 3})


def test_default_of_an_argument_left_out_is_limited_too(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", "{ ArgumentConstraints = { by = { minimum = 2 } } }")))

    assert denied(world, Session(), "counter", UP, stage="schema").code == "argument-constraint"
    assert allowed(world, Session(), "counter", {"op": "up", "by": 2})


def test_constraint_of_an_operation_leaves_the_others_alone(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", LIMITED, "operation:up")))

    assert denied(world, Session(), "counter", {"op": "up", "by": 9}, stage="schema").code == "argument-constraint"
    assert allowed(world, Session(), "counter", {"op": "down", "by": 9})


# the end of the loop


async def test_end_waits_for_what_is_required_before_it(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '"ExitLoop"'), rule("counter", '"RequiredBeforeExit"', "operation:up")))
    session = Session()
    await done(world, session, "counter", DOWN)
    decision = denied(world, session, "echo")

    assert decision.code == "exit-requirements-pending"
    assert decision.model_message == "Tool execution failed: call `counter` with `up` before you finish"
    assert violation_of(decision) == ExitRequirementsPending("echo", ("counter.up",))
    assert world.gate.pending_exit("archivist", session) == ("counter.up",)
    await done(world, session, "counter", UP)
    assert world.gate.pending_exit("archivist", session) == ()
    await done(world, session, "echo")
    assert not session.should_continue


async def test_requirement_with_a_condition_holds_once_all_of_it_was_called(make_world: MakeWorld) -> None:
    world = make_world(
        policy(rule("echo", '"ExitLoop"'), rule("vault", '"RequiredBeforeExitIf"', "counter.up", "fail"))
    )
    session = Session()
    await done(world, session, "counter", UP)
    await world.call("fail", HELLO, session=session)

    assert allowed(world, session, "echo")
    session.add_success("fail", "")
    assert denied(world, session, "echo").code == "exit-requirements-pending"
    await done(world, session, "vault")
    assert allowed(world, session, "echo")


def test_everything_that_the_end_waits_for_is_named_as_far_as_it_is_shown(make_world: MakeWorld) -> None:
    rules = (rule("echo", '"ExitLoop"'), rule("*", '"RequiredBeforeExit"'), rule("fail", '"RequiredBeforeExit"'))
    decision = denied(make_world(policy(*rules, tools='"echo", "fail", "vault"')), Session(), "echo")

    assert decision.model_message == "Tool execution failed: call `fail` and `vault` before you finish"
    assert violation_of(decision) == ExitRequirementsPending("echo", ("fail", "vault"))


async def test_tool_that_ends_may_be_required_itself(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("echo", '"ExitLoop"'), rule("echo", '"RequiredBeforeExit"')))
    session = Session()
    await done(world, session, "echo")

    assert not session.should_continue


async def test_end_in_one_operation_leaves_the_others_going_on(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", '"ContinueLoop"'), rule("counter", '"ExitLoop"', "operation:down")))
    session = Session()
    await done(world, session, "counter", UP)
    assert session.should_continue
    await done(world, session, "counter", DOWN)
    assert not session.should_continue


async def test_failed_call_does_not_end_the_loop(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("fail", '"ExitLoop"'))), Session()
    await world.call("fail", HELLO, session=session)

    assert session.should_continue


# Periodic


async def test_model_is_reminded_when_a_tool_is_due(make_world: MakeWorld) -> None:
    world = make_world(
        policy(rule("counter", '{ Periodic = "10m" }', "operation:up"), rule("vault", "{ Periodic = 60 }"))
    )
    session = Session()
    assert world.gate.reminders("archivist", session) == ()
    world.clock.advance(60)
    assert world.gate.reminders("archivist", session) == ("`vault` is due: call it every 1 min.",)
    await done(world, session, "vault")
    world.clock.advance(540)

    assert world.gate.reminders("archivist", session) == (
        "`counter` with `up` is due: call it every 10 min.",
        "`vault` is due: call it every 1 min.",
    )
    await done(world, session, "counter", UP)
    await done(world, session, "vault")
    assert world.gate.reminders("archivist", session) == ()


async def test_failed_call_leaves_the_reminder(make_world: MakeWorld) -> None:
    world, session = make_world(policy(rule("fail", "{ Periodic = 60 }"))), Session()
    await world.call("fail", HELLO, session=session)
    world.clock.advance(60)

    assert len(world.gate.reminders("archivist", session)) == 1


def test_nothing_hidden_is_reminded_of(make_world: MakeWorld) -> None:
    rules = (rule("vault", "{ Periodic = 1 }"), rule("*", "{ Periodic = 2 }"))
    world, session = make_world(policy(*rules, tools='"echo"')), Session()
    world.gate.reminders("archivist", session)
    world.clock.advance(5)

    assert world.gate.reminders("archivist", session) == ("`echo` is due: call it every 2 s.",)


# the order of reports, and what belongs to a source


async def test_higher_priority_is_reported_first_and_the_rest_still_holds(make_world: MakeWorld) -> None:
    rules = (
        rule("echo", "{ MaxCalls = 1 }", priority=1),
        rule("echo", "{ Cooldown = 10 }", priority=9),
        rule("echo", '"RequiresPrecedingTools"', "vault", priority=5),
    )
    world, session = make_world(policy(*rules)), Session()
    session.add_success("vault", "")
    await done(world, session, "echo")
    session_without = Session()

    assert denied(world, session, "echo").code == "cooldown"
    world.clock.advance(10)
    assert denied(world, session, "echo").code == "max-calls"
    assert denied(world, session_without, "echo").code == "preceding-required"


async def test_equal_priority_is_reported_in_the_order_of_the_file(make_world: MakeWorld) -> None:
    rules = (rule("*", "{ MaxCalls = 0 }", rule_id="one"), rule("echo", "{ MaxCalls = 0 }", rule_id="two"))
    decision = denied(make_world(policy(*rules)), Session(), "echo")

    assert decision.rule is not None
    assert decision.rule.rule_id == "one"


def test_hidden_operation_is_a_violation_with_what_is_open(make_world: MakeWorld) -> None:
    world = make_world(policy(rule("counter", '{ AllowedOperations = ["up"] }')))
    decision = world.decide("counter", DOWN)

    assert decision.stage == "operation"
    assert violation_of(decision) == OperationNotAllowed("counter", "down", ("up",))


def test_allowed_call_breaks_nothing(make_world: MakeWorld) -> None:
    assert violation_of(make_world(policy()).decide("echo", HELLO)) is None


SOURCES = """
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"

[[sources.required_tools]]
tool_name = "file"
rule_type = { MaxCalls = 1 }

[[sources.required_tools]]
tool_name = "file"
rule_type = { RequiresConsent = { scope = "notes" } }
conditions = ["operation:append"]

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"
"""


def write_note(world: World) -> None:
    (world.folder / "notes").mkdir(exist_ok=True)
    (world.folder / "notes" / "b.md").write_text("b")


async def test_rules_of_a_source_bind_only_calls_that_go_there(make_world: MakeWorld) -> None:
    world = make_world(policy(tools='"file"', sources=SOURCES))
    (world.docs / "a.md").write_text("a")
    write_note(world)
    session = Session()
    docs, notes = {"op": "read", "path": "a.md", "source": "docs"}, {"op": "read", "path": "b.md", "source": "notes"}
    await done(world, session, "file", notes)
    await done(world, session, "file", notes)
    await done(world, session, "file", docs)

    assert violation_of(denied(world, session, "file", docs)) == MaxCallsExceeded("file", 1, 1)
    assert allowed(world, session, "file", notes)


def test_consent_of_a_source_is_asked_for_calls_that_go_there(make_world: MakeWorld) -> None:
    world = make_world(policy(tools='"file"', sources=SOURCES))
    (world.docs / "a.md").write_text("a")
    write_note(world)
    asked = world.decide("file", {"op": "append", "path": "a.md", "content": "x", "source": "docs"})

    assert (str(asked.verdict), asked.stage, asked.code) == ("ask", "approval", "requires-consent")
    assert allowed(world, Session(), "file", {"op": "append", "path": "b.md", "content": "x", "source": "notes"})


# a tool's own rules


def own_tool(*rules: ToolRule) -> Tool:
    @tool(
        safety_tier=SafetyTier.READ_ONLY,
        result_type=ResultType.STRING,
        normalization=Normalization.JSON,
        tool_rules=rules,
    )
    async def own(text: str) -> str:
        """Give the text back.

        Args:
            text: What to give back.
        """
        return text

    return own


OWN = '"echo", "counter", "own"'


async def test_own_cap_of_a_tool_holds_beside_the_agents(make_world: MakeWorld) -> None:
    text = policy(rule("own", "{ MaxCalls = 2 }", priority=1), tools=OWN)
    world, session = make_world(text, own_tool(ToolRule("own", MaxCalls(1), priority=9))), Session()
    await done(world, session, "own")
    decision = denied(world, session, "own")

    assert violation_of(decision) == MaxCallsExceeded("own", 1, 1)
    assert decision.rule is None


@pytest.mark.parametrize(
    ("agents", "source", "first"),
    [("1m", "2m", ("rate-limit", "agents")), ("", "2m", ("rate-limit", "sources")), ("", "", ("max-calls", ""))],
)
async def test_equal_priority_is_reported_of_the_agent_before_a_source_and_that_before_the_tool_itself(
    make_world: MakeWorld, agents: str, source: str, first: tuple[str, str]
) -> None:
    capped = (ToolRule("own", MaxCalls(1)),)

    @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, tool_rules=capped)
    async def own(place: Annotated[str, SourceParameter()]) -> str:
        """Look there.

        Args:
            place: Where.
        """
        return place

    def limit(per: str) -> str:
        return rule("own", f'{{ RateLimit = {{ calls = 1, per = "{per}" }} }}')

    table = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n'
    table += f"[[sources.required_tools]]\n{limit(source)}" if source else ""
    world = make_world(policy(*([limit(agents)] if agents else []), tools=OWN, sources=table), own)
    session = Session()
    await done(world, session, "own", {"place": "docs"})
    decision = denied(world, session, "own", {"place": "docs"})

    assert (decision.code, str(decision.rule.address[0]) if decision.rule else "") == first


async def test_own_group_of_a_tool_binds_the_others_in_it(make_world: MakeWorld) -> None:
    own = own_tool(ToolRule("own", ExclusiveGroups((("own", "echo"),))))
    world, session = make_world(policy(tools=OWN), own), Session()
    await done(world, session, "own")

    assert denied(world, session, "echo").code == "exclusive-group"
    assert allowed(world, session, "counter", UP)


def test_own_rules_of_a_hidden_tool_bind_nobody(make_world: MakeWorld) -> None:
    own = own_tool(ToolRule("own", StartConstraint()))

    assert denied(make_world(policy(tools=OWN), own), Session(), "echo").code == "start-required"
    assert allowed(make_world(policy(tools='"echo"'), own), Session(), "echo")


async def test_own_end_of_a_tool_ends_the_loop(make_world: MakeWorld) -> None:
    world, session = make_world(policy(tools=OWN), own_tool(ToolRule("own", ExitLoop()))), Session()
    await done(world, session, "own")

    assert not session.should_continue


# what a proof carries


async def test_proof_of_a_refusal_holds_after_the_session_has_moved_on(make_world: MakeWorld) -> None:
    rules = (rule("echo", "{ Cooldown = 10 }"), rule("counter", '{ RateLimit = { calls = 1, per = "1m" } }'))
    world, session = make_world(policy(*rules)), Session()
    await done(world, session, "echo")
    await done(world, session, "counter", UP)
    calls = (("echo", HELLO), ("counter", UP))
    decisions = [denied(world, session, name, given) for name, given in calls]
    world.clock.advance(1000)

    for (name, given), decision in zip(calls, decisions, strict=True):
        assert allowed(world, session, name, given)
        assert decision.proof is not None
        verified = world.gate.verify(decision.proof, ProvenCall("archivist", name, given))
        assert verified.holds, verified
