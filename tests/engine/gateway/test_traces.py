"""``gatewright serve`` with exporters in its environment: whose trace a call belongs to, and what is told of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests.engine.gateway.conftest import Place, Served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
META = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
CONSOLE = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}
SECRET = "s3cr3t-file"


def serve(place: Place, **variables: str) -> Served:
    command = [sys.executable, *place.arguments("serve", str(place.policy), "--agent", "reader")]
    pipe, environment = subprocess.PIPE, {**place.environment, **variables}
    served = Served(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment))
    served.start()
    return served


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand in a text one behind the other, other lines left out."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        found, end = decoder.raw_decode(text, at)
        yield found
        at = text.find("{", end)


def test_a_call_continues_the_trace_of_its_client_and_tells_nothing_of_what_was_sent(place: Place) -> None:
    served = serve(place, **CONSOLE)
    read = {"op": "read", "path": "a.md"}
    assert not served.ask(1, "tools/call", name="file", arguments=read, _meta=META)["result"]["isError"]
    hidden = {"op": "delete", "path": SECRET}
    assert served.ask(2, "tools/call", name="file", arguments=hidden, _meta=META)["result"]["isError"]
    assert served.ask(3, "tools/call", name="file", arguments={"op": "read", "path": SECRET})["result"]["isError"]
    status, errors = served.end()
    found = [*objects(errors)]
    spans = {one["context"]["span_id"]: one for one in found if "context" in one}
    calls = [one for one in spans.values() if one["name"] == "execute_tool file"]
    metrics = [one for one in found if "resource_metrics" in one]

    assert status == 0
    assert len(calls) == 3
    assert [one["context"]["trace_id"] == f"0x{TRACE}" for one in calls] == [True, True, False]
    assert [spans[one["parent_id"]]["name"] for one in calls] == ["tools/call file"] * 3
    assert [spans[one["parent_id"]]["parent_id"] for one in calls[:2]] == [f"0x{PARENT}"] * 2
    assert calls[0]["resource"]["attributes"]["service.name"] == "gatewright"
    assert "gatewright.calls" in json.dumps(metrics)
    assert SECRET not in errors
    assert [row["body"].get("trace") for row in place.rows("ToolInvoked")][:2] == [TRACE] * 2


def test_nothing_is_exported_and_nothing_loaded_for_it_without_a_variable(place: Place) -> None:
    served = serve(place, OTEL_SERVICE_NAME="unused")
    served.ask(1, "tools/call", name="file", arguments={"op": "read", "path": "a.md"}, _meta=META)
    assert served.end() == (0, "")
    assert "trace" not in place.rows("ToolInvoked")[0]["body"]


def test_an_exporter_that_is_not_there_is_told_and_stops_nothing(place: Place) -> None:
    served = serve(place, OTEL_TRACES_EXPORTER="carrier-pigeon")
    answer = served.ask(1, "tools/call", name="file", arguments={"op": "read", "path": "a.md"})
    status, errors = served.end()

    assert not answer["result"]["isError"]
    assert (status, errors.count("carrier-pigeon")) == (0, 1)
    assert "gatewright[telemetry]" in errors


CRASHES = """
import asyncio, logging, sys
from pathlib import Path
from gatewright import Workspace, tool
from gatewright.adapters.telemetry import export_calls
from gatewright.policy.verdict import SafetyTier


@tool(safety_tier=SafetyTier.READ_ONLY)
async def crash() -> str:
    \"\"\"Crash.\"\"\"
    raise ZeroDivisionError("oh")


with Workspace.open(Path(sys.argv[1]), tools=[crash]) as workspace:
    end = export_calls(workspace.gate, workspace.broker, print)
    outcome = asyncio.run(workspace.call("a", "crash", {}))
    logging.getLogger("gatewright.somewhere").warning("after it")
    end()
    (row,) = [row for row in workspace.audit.rows() if row.kind == "ToolInvoked"]
    print(row.body)
"""


def test_log_lines_of_a_call_end_in_the_ids_of_its_span(place: Place) -> None:
    place.policy.write_text('gatewright = 1\n[agents.a]\ntools = ["crash"]\n', "utf-8")
    variables = {**place.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CRASHES, str(place.policy)], env=variables, capture_output=True, check=True, text=True
    )
    lines = [line for line in done.stderr.splitlines() if "the tool `crash` raised" in line or "after it" in line]
    trace_id = json.loads(done.stdout)["trace"]

    assert [line.partition(" [")[0] for line in lines] == ["the tool `crash` raised", "after it"]
    assert f" [trace_id={trace_id} span_id=" in lines[0]
    assert "trace_id" not in lines[1]
