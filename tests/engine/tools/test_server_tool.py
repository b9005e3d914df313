"""Tools of MCP servers behind a gate: what the model reads of a result, what the host gets, what is checked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gatewright import Gate, ToolRegistry
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.gate import Outcome, Status
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.server_tool import ServerTool, check_answer

POLICY = """gatewright = 1

[agents.clerk]
tools = ["far"]
approvals = { privileged = "allow" }
"""
SUM: dict[str, object] = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}


def text(words: str) -> dict[str, JsonValue]:
    return {"type": "text", "text": words}


async def called(
    answer: dict[str, JsonValue] | Exception,
    *,
    output_schema: dict[str, object] | None = None,
    settings: str = "",
    context: ToolExecutionContext | None = None,
) -> Outcome:
    """What becomes of a call whose server answers so."""

    async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> object:
        if context.progress is not None:
            context.progress(1.0, 2.0, "half")
        if isinstance(answer, Exception):
            raise answer
        return check_answer(answer)

    registry = ToolRegistry()
    definition = ToolDefinition("far", "Far away.", {"type": "object"}, output_schema)
    registry.register(ServerTool(definition, origin="there", runner=run))
    loaded = parse_policy(POLICY + settings, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return await Gate(loaded.policy, registry).call("clerk", "far", {}, context=context)


async def test_the_model_reads_the_texts_and_the_host_gets_the_whole_result() -> None:
    answer: dict[str, JsonValue] = {
        "content": [
            text("one"),
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///notes", "name": "notes"},
            {"type": "resource", "resource": {"uri": "mem:1", "text": "embedded"}},
        ],
        "structuredContent": {"total": 3},
    }
    outcome = await called(answer)
    assert outcome.output == "one\n[image image/png]\n[resource_link notes file:///notes]\nembedded"
    assert outcome.data == canonical_json(answer)


async def test_of_a_result_without_content_the_model_reads_the_structured_part() -> None:
    assert (await called({"content": [], "structuredContent": {"b": 1, "a": 2}})).output == '{"a":2,"b":1}'


async def test_an_error_of_the_server_fails_the_tool_with_the_servers_words() -> None:
    outcome = await called({"content": [text("the disk is full")], "isError": True})
    assert outcome.status is Status.FAILED
    assert outcome.output == "Tool execution failed: the disk is full"


@pytest.mark.parametrize("check", ["", "strict", "warn", "off"])
@pytest.mark.parametrize(("structured", "fits"), [({"total": 3}, True), ({"total": "three"}, False), (None, False)])
async def test_the_output_schema_is_held_against_the_structured_part_as_the_policy_says(
    structured: dict[str, JsonValue] | None, fits: bool, check: str
) -> None:
    more: dict[str, JsonValue] = {} if structured is None else {"structuredContent": structured}
    settings = f'[tools.far]\noutput = "{check}"\n' if check else ""
    outcome = await called({"content": [text("3")], **more}, output_schema=SUM, settings=settings)

    told = next(row.reason for row in outcome.decision.trace if row.stage == "output")
    if check == "strict" and not fits:
        assert (outcome.status, outcome.code) == (Status.FAILED, "output-mismatch")
        assert outcome.output != "3"
        return
    assert (outcome.status, outcome.output) == (Status.ALLOWED, "3")
    assert ("does not fit the output schema" in told) == (check in {"", "warn"} and not fits)


NO_RESULTS: list[dict[str, JsonValue]] = [
    {"content": "text"},
    {"content": [7]},
    {"content": [{}]},
    {"content": [], "structuredContent": [1]},
]


@pytest.mark.parametrize("answer", NO_RESULTS)
async def test_what_is_no_result_is_not_taken(answer: dict[str, JsonValue]) -> None:
    outcome = await called(answer)
    assert (outcome.status, outcome.code) == (Status.FAILED, "bad-result")


async def test_the_operator_reads_the_detail_of_a_failure_and_the_model_does_not() -> None:
    outcome = await called(ToolFailure("try later", detail="the server ended with exit code 3"))
    assert outcome.output == "Tool execution failed: try later"
    assert outcome.detail == "the server ended with exit code 3"


async def test_the_tool_tells_the_caller_how_far_it_is() -> None:
    told: list[tuple[float, float | None, str | None]] = []

    def tell(done: float, whole: float | None, words: str | None) -> None:
        told.append((done, whole, words))

    context = ToolExecutionContext("clerk", "", progress=tell)
    await called({"content": []}, context=context)
    assert told == [(1.0, 2.0, "half")]
