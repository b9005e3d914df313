"""Calls that are executed: results, failures, time, approvals, sessions."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, Phase, Session, StageTrace, Status
from gatewright.gate.pipeline import STAGES
from gatewright.gate.stages import execute
from gatewright.policy.verdict import Verdict
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, Operator, World

PREFIX = "Tool execution failed:"
MORE = POLICY.replace('"vault"]', '"vault", "fail", "crash", "wait"]')


def rule(tool_name: str, rule_type: str) -> str:
    return f'\n[[agents.archivist.tool_rules]]\ntool_name = "{tool_name}"\nrule_type = {rule_type}\n'


async def test_allowed_call_gives_compact_json_with_sorted_keys(world: World) -> None:
    seen: list[StageTrace] = []
    outcome = await world.call("counter", {"op": "up", "by": 2}, on_stage=seen.append)

    assert (outcome.status, outcome.output) == (Status.ALLOWED, '{"by":2,"value":2}')
    assert outcome.output_hash == hashlib.sha256(outcome.output.encode()).hexdigest()
    assert outcome.decision.verdict is Verdict.ALLOW
    assert [row.stage for row in seen] == [stage.name for stage in STAGES]


async def test_text_result_is_given_as_it_stands(world: World) -> None:
    assert (await world.call("echo", {"text": "tea & ü"})).output == "tea & ü"


async def test_file_tool_reads_a_real_file_through_the_gate(world: World) -> None:
    (world.docs / "note.md").write_text("hello\n", "utf-8")
    outcome = await world.call("file", {"op": "read", "path": "./note.md"})

    assert json.loads(outcome.output)["data"]["content"] == "hello\n"


async def test_denied_call_executes_nothing(world: World) -> None:
    (world.docs / "note.md").write_text("hello\n", "utf-8")
    outcome = await world.call("file", {"op": "delete", "path": "note.md"})

    assert outcome.status is Status.DENIED
    assert (outcome.output, outcome.output_hash) == (outcome.decision.model_message, None)
    assert (world.docs / "note.md").exists()


async def test_long_output_is_cut_on_a_character_boundary_with_the_exact_suffix(make_world: MakeWorld) -> None:
    world = make_world(POLICY + "\n[defaults]\nmax_output_bytes = 10\n")
    outcome = await world.call("echo", {"text": "ü" * 71_428 + "x"})

    assert outcome.truncated
    assert outcome.output == "üüüüü\n[output truncated — original size: 142,857 bytes]"
    odd = await world.call("echo", {"text": "xü" * 5})
    assert odd.output.splitlines()[0] == "xüxüxü" + "x"
    assert (await world.call("echo", {"text": "x" * 10})).truncated is False


async def test_tool_failure_reaches_the_model_with_the_prefix(make_world: MakeWorld) -> None:
    world = make_world(MORE, GateTool())
    outcome = await world.call("fail", {"text": "no such shelf"})

    assert (outcome.status, outcome.code) == (Status.FAILED, "told")
    assert outcome.output == f"{PREFIX} no such shelf"
    assert outcome.decision.verdict is Verdict.ALLOW


async def test_failure_message_loses_the_advice_to_use_a_hidden_operation(make_world: MakeWorld) -> None:
    limited = POLICY.replace('"append", "load", "save"', '"append", "save"')
    (world := make_world(limited)).docs.joinpath("note.md").write_text("one\n", "utf-8")
    assert (await world.call("file", {"op": "append", "path": "note.md", "content": "two\n"})).status is Status.ALLOWED
    (world.docs / "note.md").write_text("changed outside\n", "utf-8")
    outcome = await world.call("file", {"op": "save", "path": "note.md"})

    assert outcome.status is not Status.ALLOWED
    assert outcome.output.startswith(PREFIX)
    assert "load" not in outcome.output
    assert "modified externally" in outcome.output


async def test_failure_that_is_no_valid_text_is_recorded_and_told(make_world: MakeWorld) -> None:
    from gatewright.base.errors import ToolFailure

    class Mute(ToolFailure):
        def __str__(self) -> str:
            raise RuntimeError("speechless")

    async def execute(*_: object) -> str:
        raise failures.pop()

    world = make_world(MORE, GateTool())
    failures = [Mute("x", code="\ud800"), ToolFailure("half \ud800")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.counter), "execute", execute)
        outcomes = [await world.call("counter", {"op": "up"}) for _ in range(2)]

    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.FAILED]
    assert outcomes[0].output == f"{PREFIX} half ?"
    assert world.row_kinds()[2::3] == ["ToolFailed", "ToolFailed"]


async def test_unforeseen_error_of_a_tool_is_not_told_to_the_model(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await make_world(MORE, GateTool()).call("crash", {"text": "the cellar has password=hunter2 as its key"})

    assert (outcome.status, outcome.code) == (Status.FAILED, "tool-crashed")
    assert "cellar" not in outcome.output
    assert outcome.output.startswith(PREFIX)
    assert "cellar" in outcome.detail
    assert "hunter2" not in outcome.detail
    assert "Traceback" in caplog.text


async def test_tool_that_takes_too_long_is_stopped(make_world: MakeWorld) -> None:
    tool = GateTool()
    world = make_world(MORE + "\n[defaults]\ntimeout = 0.01\n", tool)
    outcome = await world.call("wait", {"op": "politely"})

    assert (outcome.status, outcome.code) == (Status.TIMED_OUT, "timed-out")
    assert tool.was_stopped
    assert world.row_kinds()[-1] == "ToolTimedOut"


async def test_tool_that_does_not_stop_is_abandoned(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "GRACE_S", 0.01)
    tool = GateTool()
    world = make_world(MORE + "\n[tools.wait]\ntimeout = 0.01\n", tool)
    outcome = await world.call("wait", {"op": "stubbornly"})
    tool.let_go.set()

    assert outcome.status is Status.ABANDONED
    assert "late" not in outcome.output
    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_cancelled_call_stops_the_tool_and_is_recorded(make_world: MakeWorld) -> None:
    tool = GateTool()
    world = make_world(MORE, tool)
    call = asyncio.ensure_future(world.call("wait", {"op": "politely"}))
    await tool.began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert tool.was_stopped
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolAbandoned"]


async def test_call_that_asks_without_an_approver_is_unanswered(world: World) -> None:
    outcome = await world.call("vault", {})

    assert (outcome.status, outcome.decision.verdict) == (Status.UNANSWERED, Verdict.ASK)
    assert outcome.output.startswith(PREFIX)
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolDenied"]


async def test_approved_call_is_decided_again_and_executed(world: World) -> None:
    operator = Operator()
    outcome = await world.call("vault", {"text": "please"}, approver=operator)

    assert (outcome.status, outcome.output) == (Status.ALLOWED, "open please")
    request = operator.requests[0]
    assert (request.agent_id, request.tool, dict(request.arguments)) == ("archivist", "vault", {"text": "please"})
    assert request.reasons
    assert next(row.reason for row in outcome.decision.trace if row.stage == "approval") == "approved by dana"
    assert world.row_kinds() == [
        "ToolInvoked",
        "PolicyDecision",
        "ApprovalRequested",
        "ApprovalResolved",
        "PolicyDecision",
        "ToolCompleted",
    ]


async def test_refused_call_is_denied_at_approval(world: World) -> None:
    outcome = await world.call("vault", {}, approver=Operator(approves=False))

    assert (outcome.status, outcome.decision.stage, outcome.code) == (Status.DENIED, "approval", "approval-refused")
    assert "dana" in outcome.decision.reason
    assert "dana" not in outcome.output


async def test_failing_approver_has_not_approved_and_is_told_and_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: ApprovalRequest) -> Approval:
        raise OSError("the line is dead")

    outcome = await world.call("vault", {}, approver=broken)

    assert (outcome.status, outcome.code) == (Status.DENIED, "approver-failed")
    assert outcome.decision.reason == "the approver raised OSError: the line is dead"
    assert "line" not in outcome.output
    assert "Traceback" in caplog.text


async def test_waiting_call_does_not_outlive_a_revocation(world: World) -> None:
    operator = Operator()
    operator.may_answer.clear()
    call = asyncio.ensure_future(world.call("vault", {}, approver=operator))
    await operator.asked.wait()
    world.reload(POLICY.replace(', "vault"', ""))
    operator.may_answer.set()
    outcome = await call

    assert (outcome.status, outcome.decision.stage, outcome.code) == (Status.DENIED, "lookup", "tool-not-listed")
    assert world.row_kinds()[-1] == "ToolDenied"


async def test_approval_does_not_hold_for_other_content(world: World) -> None:
    (world.docs / "shared.md").write_text("one\n", "utf-8")
    operator = Operator()
    operator.may_answer.clear()
    given = {"op": "append", "path": "shared.md", "content": "harmless"}
    call = asyncio.ensure_future(world.call("file", given, approver=operator))
    await operator.asked.wait()
    given["content"] = "harmful"
    operator.may_answer.set()
    outcome = await call

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-stale")
    assert operator.requests[0].diff is not None
    assert "+harmless" in operator.requests[0].diff


async def test_call_given_up_while_it_waits_for_an_answer_is_recorded(world: World) -> None:
    operator = Operator()
    operator.may_answer.clear()
    call = asyncio.ensure_future(world.call("vault", {}, approver=operator))
    await operator.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert world.row_kinds()[-1] == "ToolAbandoned"


async def test_concurrent_calls_cannot_overrun_max_calls(make_world: MakeWorld) -> None:
    tool, session = GateTool(), Session()
    world = make_world(MORE + rule("wait", "{ MaxCalls = 3 }"), tool)
    operator = Operator()
    operator.may_answer.clear()
    world.reload(MORE + rule("wait", "{ MaxCalls = 3 }") + rule("wait", '"RequiresConsent"'))
    calls = [
        asyncio.ensure_future(world.call("wait", {"op": "politely"}, session=session, approver=operator))
        for _ in range(10)
    ]
    while len(operator.requests) < 10:
        await asyncio.sleep(0)
    operator.may_answer.set()
    tool.let_go.set()
    outcomes = await asyncio.gather(*calls)

    assert tool.started == 3
    denied = [outcome for outcome in outcomes if outcome.status is Status.DENIED]
    assert len(denied) == 7
    assert {outcome.code for outcome in denied} == {"max-calls"}


async def test_failed_calls_count_against_max_calls(make_world: MakeWorld) -> None:
    world, session = make_world(MORE + rule("fail", "{ MaxCalls = 1 }"), GateTool()), Session()
    first = await world.call("fail", {"text": "x"}, session=session)
    second = await world.call("fail", {"text": "x"}, session=session)

    assert (first.status, second.status, second.code) == (Status.FAILED, Status.DENIED, "max-calls")


async def test_star_counts_each_tool_by_itself(make_world: MakeWorld) -> None:
    world, session = make_world(POLICY + rule("*", "{ MaxCalls = 1 }")), Session()

    assert (await world.call("echo", {"text": "x"}, session=session)).status is Status.ALLOWED
    assert (await world.call("counter", {"op": "up"}, session=session)).status is Status.ALLOWED
    assert (await world.call("echo", {"text": "x"}, session=session)).code == "max-calls"


async def test_cooldown_runs_from_start_to_start(make_world: MakeWorld) -> None:
    world, session = make_world(POLICY + rule("echo", '{ Cooldown = "10s" }')), Session()
    await world.call("echo", {"text": "x"}, session=session)
    world.clock.advance(4.0)
    soon = await world.call("echo", {"text": "x"}, session=session)
    world.clock.advance(6.0)
    later = await world.call("echo", {"text": "x"}, session=session)

    assert (soon.status, soon.code) == (Status.DENIED, "cooldown")
    assert soon.decision.facts["wait_s"] == 6.0
    assert later.status is Status.ALLOWED


async def test_exit_loop_ends_the_loop_after_success_only(make_world: MakeWorld) -> None:
    text = MORE + rule("fail", '"ExitLoop"') + rule("echo", '"ExitLoop"') + rule("echo", '"ContinueLoop"')
    world, session = make_world(text, GateTool()), Session()
    await world.call("fail", {"text": "x"}, session=session)
    went_on = session.should_continue
    await world.call("echo", {"text": "x"}, session=session)

    assert went_on
    assert not session.should_continue
    assert session.phase is Phase.ENDED


async def test_sessions_share_nothing(make_world: MakeWorld) -> None:
    world = make_world(POLICY + rule("echo", "{ MaxCalls = 1 }"))

    assert (await world.call("echo", {"text": "x"}, session=Session())).status is Status.ALLOWED
    assert (await world.call("echo", {"text": "x"}, session=Session())).status is Status.ALLOWED


async def test_failing_watcher_of_stages_stops_no_call(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def watch(row: StageTrace) -> None:
        raise RuntimeError("the window is gone")

    assert (await world.call("echo", {"text": "x"}, on_stage=watch)).status is Status.ALLOWED
    assert "an observer of stages failed" in caplog.text


async def test_binary_result_is_named_by_size_and_hash_and_the_host_gets_the_bytes(make_world: MakeWorld) -> None:
    from gatewright.policy.verdict import SafetyTier
    from gatewright.tools.declaration import Normalization, ResultType
    from gatewright.tools.registry import tool

    @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.BINARY, normalization=Normalization.BINARY)
    async def picture() -> bytes:
        """Give a picture."""
        return b"\x89PNG\xff"

    outcome = await make_world(POLICY.replace('"vault"', '"vault", "picture"'), picture).call("picture", {})

    assert (outcome.status, outcome.data) == (Status.ALLOWED, b"\x89PNG\xff")
    assert outcome.output_hash == hashlib.sha256(b"\x89PNG\xff").hexdigest()
    assert "binary result of 5 bytes" in outcome.output
    assert outcome.output_hash is not None
    assert outcome.output_hash in outcome.output


@pytest.mark.parametrize("answer", [None, True, "yes", Approval("yes")])  # pyright: ignore[reportArgumentType]
async def test_anything_but_a_plain_yes_has_not_approved(world: World, answer: Any) -> None:
    async def careless(request: ApprovalRequest) -> Approval:
        return answer

    outcome = await world.call("vault", {}, approver=careless)

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-refused")
    assert world.row_kinds()[-1] == "ToolDenied"


async def test_what_stands_in_the_log_for_a_name_has_no_control_characters_and_no_half_ones(world: World) -> None:
    assert world.audit is not None
    for name in ("a\x1b[2Jb", "a\nb", "\u00e9\x1b\n", "\ud83d!", "x" * 501):
        await world.call(name, {})

    told = [row.tool for row in world.audit.rows() if row.kind == "ToolInvoked"]
    assert told == ["a\ufffd[2Jb", "a\nb", "\u00e9\ufffd\n", "?!", "x" * 100]
