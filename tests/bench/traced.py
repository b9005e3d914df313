"""Row "telemetry": what a call costs more while somebody follows it, in turns on the same files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gatewright.adapters.telemetry import trace_calls
from gatewright.gate import Gate, Outcome, Session, Status
from tests.bench.filework import AGENT, CPU, FileWork, file_work
from tests.bench.measure import Effort, figure, quiet, run, timer_cost
from tests.bench.row import Measured, Row, none_wrong, times_at_most

_ALONE, _HEARD = "a call that nobody follows", "with a listener to outcomes"
_UNHEARD, _SEEN = "traced, without a provider", "traced, spans and metrics in memory"
Follow = Callable[[Gate], Callable[[], None]]


def telemetry(effort: Effort) -> Row:
    """Whole calls, log included."""
    spans, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    ways: dict[str, Follow] = {
        _ALONE: lambda _: lambda: None,
        _HEARD: lambda gate: gate.on_outcome(_ignore),
        _UNHEARD: trace_calls,
        _SEEN: lambda gate: trace_calls(gate, tracer_provider=tracers, meter_provider=meters),
    }
    with file_work() as work:
        samples, wrong = run(lambda: _called(work, ways, replace(effort.scaled(0.1), block=20), spans.clear))
    tracers.shutdown()
    meters.shutdown()
    floor = timer_cost(CPU)
    figures: dict[str, Measured] = {
        name: replace(figure(found, floor), wrong=wrong[name]) for name, found in samples.items()
    }
    alone = figures[_ALONE]
    return Row(
        "telemetry",
        "the calls of the row `gate overhead`, whole, with their rows in the log",
        tuple(ways),
        figures,
        (
            times_at_most(_HEARD, figures[_HEARD], alone, 1.02),
            times_at_most(_UNHEARD, figures[_UNHEARD], alone, 1.02),
            none_wrong(figures, "every call is allowed"),
        ),
        _ALONE,
        ("processor time of the thread of the event loop; a program's exporter works in another",),
    )


def _ignore(_: Outcome) -> None:
    pass


async def _called(
    work: FileWork, ways: dict[str, Follow], effort: Effort, forget: Callable[[], None]
) -> tuple[dict[str, list[int]], dict[str, int]]:
    session, samples, wrong = Session(), {name: list[int]() for name in ways}, dict.fromkeys(ways, 0)
    for call in work.calls[:20]:
        await work.gate.call(AGENT, "file", call, session=session)
    for start in range(0, effort.calls, effort.block):
        part = [work.calls[number % len(work.calls)] for number in range(start, start + effort.block)]
        for name, follow in ways.items():
            stop = follow(work.gate)
            with quiet():
                for call in part:
                    began = CPU()
                    outcome = await work.gate.call(AGENT, "file", call, session=session)
                    samples[name].append(CPU() - began)
                    wrong[name] += outcome.status is not Status.ALLOWED
            stop()
            forget()
    return samples, wrong
