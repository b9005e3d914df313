"""Spans and metrics of calls for OpenTelemetry, named by its conventions for GenAI and MCP.

A span holds names, ids, verdicts and codes. No argument, no result and no sentence about them goes into one, since
reasons and failures quote both. The providers belong to the program; `export_calls` makes those of a process of ours,
by the standard variables (``OTEL_...``).
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Any

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from gatewright.base.errors import WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Outcome, PermissionBroker, StageTrace
from gatewright.gate.call import CallState
from gatewright.gate.gate import Gate
from gatewright.policy.verdict import split_name

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.trace import Span

OTHER = "_OTHER"
"""Stands for a name that the policy does not know: a model may write anything there."""
END_S = 2.0
"""Time in s for the last spans and metrics as a process ends: a collector that is away does not hold it up."""
_SCOPE = "gatewright"
_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_CODE = re.compile(r"[a-z]{1,20}(?:-[a-z]{1,20}){0,4}")
_FINE = frozenset({"allowed", "waiting"})


def trace_calls(
    gate: Gate,
    broker: PermissionBroker | None = None,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Callable[[], None]:
    """Make a span of each call and count calls from now on; the returned function stops it.

    Without a provider OpenTelemetry's global one. ``broker``: its open questions are counted too.
    """
    followed = _Calls(gate, broker, tracer_provider, meter_provider)
    leave = gate.follow(followed.begin)

    def stop() -> None:
        followed.broker = None
        leave()

    return stop


class _Calls:
    """The instruments of one gate."""

    def __init__(
        self,
        gate: Gate,
        broker: PermissionBroker | None,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
    ) -> None:
        self._gate, self.broker = gate, broker
        self._is_global = tracer_provider is None and meter_provider is None
        ours = version("gatewright")
        self._tracer = trace.get_tracer(_SCOPE, ours, tracer_provider)
        meter = metrics.get_meter(_SCOPE, ours, meter_provider)
        self._count = meter.create_counter("gatewright.calls", "{call}", "Calls that have ended.")
        self._duration = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            "s",
            "Time from a call to its outcome, waiting for an answer included.",
            explicit_bucket_boundaries_advisory=_BOUNDS_S,
        )
        if broker is not None:
            meter.create_observable_up_down_counter(
                "gatewright.questions.waiting", [self._waiting], "{question}", "Questions that wait for an answer."
            )

    def begin(self, call: CallState) -> Callable[[Outcome], None] | None:
        """Begin the span of a call; what the call leads to is beneath it. None while nobody takes spans."""
        if self._is_global and _is_idle(trace.get_tracer_provider()) and _is_idle(metrics.get_meter_provider()):
            return None
        tool = call.tool_name if self._gate.snapshot().registry.get(*split_name(call.tool_name)) else OTHER
        names: dict[str, str] = {
            "gen_ai.tool.name": tool,
            "gen_ai.agent.name": call.agent_id if call.agent is not None else OTHER,
        }
        began_ns = time.time_ns()
        span = self._tracer.start_span(
            "execute_tool" if tool is OTHER else f"execute_tool {tool}",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.call.id": call.call_id,
                "gen_ai.conversation.id": call.session.session_id,
                **names,
            },
            start_time=began_ns,
        )
        ids = span.get_span_context()
        if ids.is_valid:
            call.trace_id = trace.format_trace_id(ids.trace_id)
        token = context.attach(trace.set_span_in_context(span))
        return partial(self._end, call, span, token, names, began_ns)

    def _end(
        self, call: CallState, span: Span, token: Any, names: dict[str, str], began_ns: int, outcome: Outcome
    ) -> None:
        context.detach(token)
        ended_ns = time.time_ns()
        decision, code = outcome.decision, _code_of(outcome)
        names["gatewright.verdict"] = decision.verdict.value
        names["gatewright.status"] = outcome.status.value
        names["gatewright.stage"] = decision.stage
        if outcome.status not in _FINE:
            names["error.type"] = code
        self._count.add(1, names)
        self._duration.record(outcome.elapsed_ms / 1000, names)
        if span.is_recording():
            span.set_attributes({**names, "gatewright.code": code})
            if outcome.operation:
                span.set_attribute("gatewright.operation", outcome.operation)
            if decision.rule is not None:
                span.set_attribute("gatewright.rule.id", decision.rule.rule_id)
            if outcome.status not in _FINE:
                span.set_status(trace.StatusCode.ERROR)
            _add_stages(span, decision.trace, began_ns if call.answer is None else None, ended_ns)
        span.end(ended_ns)

    def _waiting(self, _: CallbackOptions) -> Iterable[Observation]:
        if self.broker is not None:
            try:
                yield metrics.Observation(len(self.broker.pending()))
            except WorkspaceError:
                return


def _is_idle(provider: object) -> bool:
    """Tell whether a global provider is the one that stands in until the program sets its own."""
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


def _code_of(outcome: Outcome) -> str:
    """The code of a call. A tool may make its own of anything, so that passes only as words that no argument has."""
    decision, code = outcome.decision, outcome.code
    if code == decision.code:
        return code
    return code if _CODE.fullmatch(code) and code not in _texts(decision.arguments) else OTHER


def _texts(arguments: Mapping[str, JsonValue]) -> Iterator[str]:
    left: list[JsonValue] = [*arguments.values()]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one


def _add_stages(span: Span, rows: tuple[StageTrace, ...], began_ns: int | None, ended_ns: int) -> None:
    """Add an event for each stage, at its beginning. After an answer all stages run once more, up to the end."""
    at_ns = ended_ns - int(sum(row.elapsed_us for row in rows) * 1000) if began_ns is None else began_ns
    for row in rows:
        said: dict[str, str | float] = {
            "gatewright.verdict": row.verdict.value,
            "gatewright.elapsed_us": row.elapsed_us,
        }
        span.add_event(row.stage, said, at_ns)
        at_ns += int(row.elapsed_us * 1000)


def export_calls(gate: Gate, broker: PermissionBroker, tell: Callable[[str], None]) -> Callable[[], None]:
    """Export spans and metrics of this whole process as its environment says, and write trace ids into its log lines.

    The returned function sends the rest and ends it. Calls ``tell`` about an exporter that is not installed. Raises
    ModuleNotFoundError without OpenTelemetry's SDK.
    """
    from opentelemetry.sdk import metrics as sdk_metrics
    from opentelemetry.sdk import trace as sdk_trace
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    is_named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    name = os.environ.get("OTEL_SERVICE_NAME") or ("" if is_named else _SCOPE)
    resource = Resource.create({"service.name": name} if name else {})
    tracers = sdk_trace.TracerProvider(resource=resource, shutdown_on_exit=False)
    for one in _exporters("traces", tell):
        tracers.add_span_processor(BatchSpanProcessor(one))
    meters = sdk_metrics.MeterProvider(
        [PeriodicExportingMetricReader(one) for one in _exporters("metrics", tell)], resource, shutdown_on_exit=False
    )
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)
    lines = logging.StreamHandler()
    lines.addFilter(_add_ids)
    lines.setFormatter(logging.Formatter("%(message)s%(trace)s"))
    logging.getLogger(_SCOPE).addHandler(lines)
    stop = trace_calls(gate, broker)

    def end() -> None:
        stop()
        logging.getLogger(_SCOPE).removeHandler(lines)
        ends = [threading.Thread(target=one.shutdown, daemon=True) for one in (tracers, meters)]
        for one in ends:
            one.start()
        until_s = time.monotonic() + END_S
        for one in ends:
            one.join(max(0.0, until_s - time.monotonic()))

    return end


def exported(environment: Mapping[str, str], signal: str) -> tuple[str, ...]:
    """The exporters that the variables name for a signal: none by default, OTLP with an address alone."""
    upper = signal.upper()
    named = environment.get(f"OTEL_{upper}_EXPORTER", "")
    if not named and any(environment.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in ("", f"{upper}_")):
        named = "otlp"
    return tuple(one for word in named.split(",") if (one := word.strip()) not in {"", "none"})


def _exporters(signal: str, tell: Callable[[str], None]) -> Iterator[Any]:
    for name in exported(os.environ, signal):
        entry = name
        if name == "otlp":
            protocol = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
            protocol = protocol or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
            entry = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
        found = [*entry_points(group=f"opentelemetry_{signal}_exporter", name=entry)]
        if not found:
            tell(f"no {signal} are exported: `{name}` is not installed (pip install 'gatewright[telemetry]')")
        elif name == "console":  # standard output may be a client's
            yield found[0].load()(out=sys.stderr)
        else:
            yield found[0].load()()


def _add_ids(record: logging.LogRecord) -> bool:
    ids = trace.get_current_span().get_span_context()
    words = f" [trace_id={trace.format_trace_id(ids.trace_id)} span_id={trace.format_span_id(ids.span_id)}]"
    record.trace = words if ids.is_valid else ""
    return True
