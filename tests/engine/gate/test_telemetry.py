"""Spans and metrics of calls, read back by OpenTelemetry's own exporters in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gatewright.adapters.telemetry import OTHER, trace_calls
from gatewright.base.errors import ToolFailure
from gatewright.gate import Approval, ApprovalLimits, ApprovalRequest, PermissionBroker, Status
from gatewright.gate.pipeline import DECIDING, STAGES
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, Operator, World

MORE = (
    POLICY.replace('"vault"]', '"vault", "fail", "crash", "wait", "parrot"]')
    + "\n[tools.wait]\ntimeout = 0.01\n"
    + '\n[[policy.rules]]\nname = "never the tail"\neffect = "deny"\ntools = ["echo"]\n'
    + 'when = { properties = { text = { pattern = "tail$" } } }\n'
)


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
async def parrot(text: str) -> str:
    """Fail in the words that it got, wherever a failure has words.

    Args:
        text: What to repeat.
    """
    raise ToolFailure(text, code=text, detail=text)


class Collected:
    """What OpenTelemetry has of one gate."""

    def __init__(self, world: World, broker: PermissionBroker | None = None) -> None:
        self.world, self._spans, self._reader = world, InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self._reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.stop = trace_calls(world.gate, broker, tracer_provider=self.tracers, meter_provider=self.meters)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._spans.get_finished_spans()

    def points(self, name: str) -> list[dict[str, Any]]:
        data = self._reader.get_metrics_data()
        resources = data.resource_metrics if data is not None else ()
        metrics = [metric for one in resources for scope in one.scope_metrics for metric in scope.metrics]
        found: list[dict[str, Any]] = []
        for metric in metrics:
            if metric.name == name:
                found += [json.loads(point.to_json()) for point in metric.data.data_points]
        return found

    def text(self) -> str:
        """Everything that an exporter would get."""
        data = self._reader.get_metrics_data()
        return "\n".join([*(span.to_json() for span in self.spans), data.to_json() if data is not None else ""])

    def close(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


@contextmanager
def collected(world: World, broker: PermissionBroker | None = None) -> Generator[Collected]:
    made = Collected(world, broker)
    try:
        yield made
    finally:
        made.close()


async def given_up(world: World, tool_name: str, arguments: Any, **more: Any) -> None:
    """Make a call and give it up as soon as it can go no further by itself."""
    call = asyncio.ensure_future(world.call(tool_name, arguments, **more))
    for _ in range(5):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})


async def test_a_call_is_a_span_with_its_stages_and_no_more_words_than_names(world: World) -> None:
    (world.docs / "note.md").write_text("the words\n", "utf-8")
    with collected(world) as seen:
        outcome = await world.call("file", {"op": "read", "path": "note.md"})
    (span,) = seen.spans

    assert span.name == "execute_tool file"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "file",
        "gen_ai.tool.call.id": outcome.call_id,
        "gen_ai.agent.name": "archivist",
        "gen_ai.conversation.id": outcome.session_id,
        "gatewright.operation": "read",
        "gatewright.verdict": "allow",
        "gatewright.status": "allowed",
        "gatewright.stage": "approval",
        "gatewright.code": "allowed",
    }
    assert [event.name for event in span.events] == [stage.name for stage in STAGES]
    times = [event.timestamp for event in span.events]
    assert times == sorted(times)
    assert (span.start_time or 0) <= times[0]
    assert times[-1] <= (span.end_time or 0)


@pytest.mark.parametrize(
    ("tool_name", "arguments", "stage", "code", "rule"),
    [
        ("nothing", {}, "lookup", "unknown-tool", None),
        ("file", {"op": "delete", "path": "a"}, "operation", None, "agents.archivist.tool_rules[0]"),
        ("echo", {"text": "a tail"}, "policy", None, "never the tail"),
        ("echo", "no JSON", "parse", None, None),
        ("echo", {"text": 1}, "schema", None, None),
        ("file", {"op": "read", "path": "secret/a"}, "permission", None, "sources.docs.permission_rules[0]"),
    ],
)
async def test_a_denial_names_stage_code_and_rule(
    make_world: MakeWorld, tool_name: str, arguments: Any, stage: str, code: str | None, rule: str | None
) -> None:
    world = make_world(MORE, GateTool(), parrot)
    with collected(world) as seen:
        outcome = await world.call(tool_name, arguments)
    (span,) = seen.spans
    said = dict(span.attributes or {})

    assert (said["gatewright.verdict"], said["gatewright.status"], said["gatewright.stage"]) == (
        "deny",
        "denied",
        stage,
    )
    assert said["gatewright.code"] == said["error.type"] == outcome.code
    assert code is None or outcome.code == code
    assert said.get("gatewright.rule.id") == rule
    assert not span.status.is_ok
    assert span.status.description is None
    assert span.events[-1].name == stage


async def test_a_name_that_nobody_knows_is_in_no_span_and_no_metric(world: World) -> None:
    with collected(world) as seen:
        await world.call("made-up by a model", {})
        await world.call("echo", {"text": "a"}, agent="made-up by a program")

        assert "made-up" not in seen.text()
        assert {span.name for span in seen.spans} == {"execute_tool", "execute_tool echo"}
        assert OTHER in seen.text()


async def test_a_question_is_within_its_call_and_its_stages_are_those_after_the_answer(world: World) -> None:
    operator = Operator()
    operator.may_answer.clear()
    with collected(world) as seen:
        call = asyncio.ensure_future(world.call("vault", {}, approver=operator))
        await operator.asked.wait()
        operator.may_answer.set()
        await call
    (span,) = seen.spans

    assert [event.name for event in span.events] == [stage.name for stage in STAGES]
    assert span.events[0].timestamp > (span.start_time or 0)


async def test_a_call_that_is_given_up_has_its_span(make_world: MakeWorld) -> None:
    world, operator = make_world(MORE, GateTool(), parrot), Operator()
    operator.may_answer.clear()
    with collected(world) as seen:
        await given_up(world, "vault", {}, approver=operator)
        after = trace.get_current_span()
    (span,) = seen.spans
    said = dict(span.attributes or {})

    assert (said["gatewright.status"], said["gatewright.code"]) == ("abandoned", "cancelled")
    assert not after.get_span_context().is_valid


async def test_a_span_is_beneath_the_one_of_the_program_and_over_those_of_the_tool(make_world: MakeWorld) -> None:
    inner: list[trace.SpanContext] = []

    @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
    async def look() -> str:
        """Look at the span."""
        inner.append(trace.get_current_span().get_span_context())
        return "seen"

    world = make_world(POLICY.replace('"vault"]', '"vault", "look"]'), look)
    with collected(world) as seen:
        with seen.tracers.get_tracer("program").start_as_current_span("a turn") as turn:
            await world.call("look", {})
            assert trace.get_current_span() is turn
        span, _ = seen.spans
        rows = list(world.audit.rows()) if world.audit is not None else []

    assert span.parent == turn.get_span_context()
    assert inner == [span.context]
    traced = [json.loads(row.body).get("trace") for row in rows if row.kind == "ToolInvoked"]
    assert traced == [trace.format_trace_id(turn.get_span_context().trace_id)]


async def test_calls_are_counted_by_verdict_stage_and_tool_with_their_times(make_world: MakeWorld) -> None:
    world = make_world(MORE, GateTool(), parrot)
    with collected(world) as seen:
        for _ in range(3):
            await world.call("echo", {"text": "a"})
        await world.call("echo", {"text": "a tail"})
        await world.call("vault", {})
        counted = seen.points("gatewright.calls")
        timed = seen.points("gen_ai.execute_tool.duration")

    def by(point: dict[str, Any]) -> tuple[str, ...]:
        names = ("gatewright.verdict", "gatewright.status", "gatewright.stage", "gen_ai.tool.name")
        return tuple(point["attributes"][name] for name in names)

    assert {by(point): point["value"] for point in counted} == {
        ("allow", "allowed", "approval", "echo"): 3,
        ("deny", "denied", "policy", "echo"): 1,
        ("ask", "unanswered", "approval", "vault"): 1,
    }
    assert {by(point): point["count"] for point in timed} == {by(point): point["value"] for point in counted}
    assert all(0 < point["max"] < 60 for point in timed)


async def test_waiting_questions_are_counted_while_they_wait(make_world: MakeWorld) -> None:
    world = make_world()
    broker = PermissionBroker(limits=ApprovalLimits(timeout_s=600.0))
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(pending: tuple[ApprovalRequest, ...]) -> None:
        if pending:
            loop.call_soon_threadsafe(asked.set)

    leave = broker.subscribe(hear, announce=False)
    with collected(world, broker) as seen:
        call = asyncio.ensure_future(world.call("vault", {}, approver=broker))
        await asked.wait()
        (waiting,) = seen.points("gatewright.questions.waiting")
        broker.answer(broker.pending()[0].request_id, Approval(True, "dana"))
        await call
        (after,) = seen.points("gatewright.questions.waiting")
        seen.stop()
        leave()
        broker.close()

        assert (waiting["value"], after["value"]) == (1, 0)
        assert seen.points("gatewright.questions.waiting") == []


async def test_after_the_stop_nothing_is_traced(world: World) -> None:
    with collected(world) as seen:
        seen.stop()
        await world.call("echo", {"text": "a"})

        assert seen.spans == ()


async def test_without_a_provider_calls_are_as_ever(world: World) -> None:
    trace_calls(world.gate)
    outcome = await world.call("echo", {"text": "a"})

    assert outcome.status is Status.ALLOWED
    assert world.audit is not None
    assert "trace" not in json.loads(next(row for row in world.audit.rows() if row.kind == "ToolInvoked").body)


SECRETS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-/@", min_size=12, max_size=40).map(lambda text: f"s3cr3t{text}")
CALLS = st.sampled_from(
    [
        ("echo", "text"),
        ("echo", "unknown argument"),
        ("vault", "text"),
        ("fail", "text"),
        ("crash", "text"),
        ("parrot", "text"),
        ("wait", "op"),
        ("wait politely", "more"),
        ("file read", "path"),
        ("file append", "content"),
        ("file", "op"),
        ("file delete", "path"),
        ("block load", "source_id"),
        ("counter up", "by"),
        ("nothing", "text"),
        ("", "text"),
    ]
)
ENDS = st.sampled_from(["plain", "plain", "approved", "refused", "broken approver", "given up", "as text", "half JSON"])


async def answer(request: ApprovalRequest) -> Approval:
    return Approval(True, "dana", reason=json.dumps(dict(request.arguments)))


async def fail(request: ApprovalRequest) -> Approval:
    raise OSError(json.dumps(dict(request.arguments)))


async def make(world: World, what: tuple[str, str], end: str, secret: str) -> None:
    (name, _, operation), argument = what[0].partition(" "), what[1]
    arguments: Any = {**({"op": operation} if operation else {}), argument: secret}
    if name == "file" and operation == "append":
        arguments["path"] = "shared.md"
    if end in {"as text", "half JSON"}:
        arguments = json.dumps(arguments)[: -3 if end == "half JSON" else None]
    approver = {"approved": answer, "refused": Operator(approves=False), "broken approver": fail}.get(end)
    if end == "given up":
        waits = Operator()
        waits.may_answer.clear()
        await given_up(world, name, arguments, approver=waits)
        return
    await world.call(name, arguments, approver=approver)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CALLS, ENDS, SECRETS), min_size=4, max_size=8))
def test_no_value_of_an_argument_and_no_result_is_in_a_span_or_a_metric(
    calls: list[tuple[tuple[str, str], str, str]],
) -> None:
    async def run(world: World, seen: Collected) -> None:
        for what, end, secret in calls:
            await make(world, what, end, secret)
        text = seen.text()
        assert "s3cr3t" not in text
        for _, _, secret in calls:
            assert secret not in text
        assert len(seen.spans) == len(calls)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewright.gate.stages.execute.GRACE_S", 0.01)
        world = World(Path(folder), MORE, GateTool(), parrot)
        with collected(world) as seen:
            asyncio.run(run(world, seen))
        world.close()


async def test_a_code_of_a_tool_passes_as_words_unless_they_are_an_argument(make_world: MakeWorld) -> None:
    world = make_world(MORE, GateTool(), parrot)
    with collected(world) as seen:
        for text in ("not-found", "Anything else", "a" * 200):
            await world.call("parrot", {"text": text})
            await world.call("fail", {"text": text})
        codes = [str((span.attributes or {})["gatewright.code"]) for span in seen.spans]

    assert codes == [OTHER, "told"] * 3


async def test_every_status_and_every_stage_that_denies_leaves_the_values_out(make_world: MakeWorld) -> None:
    """The examples of the test before this one, of which none may be missed by chance."""
    world = make_world(MORE, GateTool(), parrot)
    (world.docs / "shared.md").write_text("one\n", "utf-8")
    secret = "s3cr3t-and-more"
    with collected(world) as seen:
        for what, end in [
            (("echo", "text"), "plain"),
            (("echo", "text"), "half JSON"),
            (("echo", "unknown argument"), "plain"),
            (("vault", "text"), "approved"),
            (("vault", "text"), "refused"),
            (("vault", "text"), "broken approver"),
            (("vault", "text"), "plain"),
            (("vault", "text"), "given up"),
            (("fail", "text"), "plain"),
            (("crash", "text"), "plain"),
            (("parrot", "text"), "plain"),
            (("wait politely", "more"), "plain"),
            (("file", "op"), "plain"),
            (("file append", "content"), "approved"),
            (("file read", "path"), "plain"),
            (("nothing", "text"), "plain"),
        ]:
            await make(world, what, end, secret)
        await world.call("wait", {"op": "politely"})
        await world.call("file", {"op": "read", "path": f"secret/{secret}"})
        await world.call("echo", {"text": f"{secret} tail"})
        text = seen.text()
        stages = {str((span.attributes or {})["gatewright.stage"]) for span in seen.spans}
        statuses = {str((span.attributes or {})["gatewright.status"]) for span in seen.spans}

    assert "s3cr3t" not in text
    assert {"allowed", "denied", "unanswered", "failed", "timed_out", "abandoned"} <= statuses
    assert stages >= {"parse", "lookup", "operation", "schema", "policy", "permission", "approval"}
    assert stages <= {stage.name for stage in DECIDING}
