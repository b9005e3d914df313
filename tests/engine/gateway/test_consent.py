"""Calls that ask: the operator in another process answers, the client hears that it waits, and may give up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, InputResponses

from gatewright import Gate, ToolRegistry
from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.server_tool import ServerTool, check_answer
from gatewright.workspace import Approval, ApprovalRequest, PermissionBroker, permission_broker
from tests.engine.gateway.conftest import Listen, Place, Serve
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import text
from tests.support.patience import patient

APPEND = {"op": "append", "path": "a.md", "content": "more\n"}


class Operator:
    """Somebody in another process who is there, and sees every question."""

    def __init__(self, broker: PermissionBroker) -> None:
        self.broker = broker
        self.pending: tuple[ApprovalRequest, ...] = ()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def hear(self, pending: tuple[ApprovalRequest, ...]) -> None:
        self.pending = pending
        self._loop.call_soon_threadsafe(self._news.set)

    async def sees(self, count: int) -> tuple[ApprovalRequest, ...]:
        async with patient():
            while len(self.pending) != count:
                await self._news.wait()
                self._news.clear()
        return self.pending


@asynccontextmanager
async def operator_of(place: Place) -> AsyncGenerator[Operator]:
    broker = permission_broker(place.policy)
    operator = Operator(broker)
    leave = broker.subscribe(operator.hear)
    try:
        yield operator
    finally:
        leave()
        await asyncio.to_thread(broker.close)


async def test_the_operator_answers_and_the_client_hears_that_it_waits(place: Place, listen: Listen) -> None:
    gate, told = listen(), asyncio.Queue[str | None]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.put_nowait(message)

    async with operator_of(place) as operator, connected(gate, place.token("writer", user_id="bob")) as client:
        call = asyncio.create_task(client.call_tool("file", APPEND, progress_callback=hear))
        (question,) = await operator.sees(1)
        async with patient():
            assert await told.get() == "waits for the approval of an operator"
        operator.broker.answer(question.request_id, Approval(True, "ann"))
        allowed = await call
        call = asyncio.create_task(client.call_tool("file", APPEND))
        (other,) = [one for one in await operator.sees(1) if one.request_id != question.request_id]
        operator.broker.answer(other.request_id, Approval(False, "ann"))
        refused = await call
    gate.end()

    assert (question.agent_id, question.user_id, question.operation) == ("writer", "bob", "append")
    assert (allowed.is_error, refused.is_error) == (False, True)
    assert "did not approve" in text(refused)
    assert [row["body"]["who"] for row in place.rows("ApprovalResolved")] == ["ann", "ann"]


async def test_a_client_that_gives_up_takes_its_question_back(place: Place, serve: Serve) -> None:
    served = serve("writer")
    await asyncio.to_thread(served.start)
    async with operator_of(place) as operator:
        params = {"name": "file", "arguments": APPEND}
        served.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
        await operator.sees(1)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        served.send(cancel)
        await operator.sees(0)
    after = await asyncio.to_thread(served.ask, 6, "tools/list")
    await asyncio.to_thread(served.end)

    assert "result" in after
    assert not [message for message in served.seen if message.get("id") == 5]
    assert place.rows("ToolAbandoned")[0]["body"]["code"] == "cancelled"


async def test_a_client_that_goes_away_over_http_takes_its_question_back(place: Place, listen: Listen) -> None:
    gate, token = listen(), place.token("writer")
    async with operator_of(place) as operator:
        async with connected(gate, token) as client:
            call = asyncio.create_task(client.call_tool("file", APPEND))
            await operator.sees(1)
            call.cancel()
            await asyncio.wait({call})
        await operator.sees(0)
    gate.end()

    assert place.rows("ToolAbandoned")[0]["body"]["code"] == "cancelled"


async def test_a_question_goes_to_the_user_of_the_client_only_where_the_token_says_so(
    place: Place, listen: Listen
) -> None:
    gate, asked, results = listen(), list[str](), list[CallToolResult]()

    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"approve": len(asked) % 2 == 1})

    for mode in ("legacy", "auto"):  # by a request of the server, and in place of the result
        async with connected(gate, place.token("writer", elicit=True), mode, elicitation_callback=elicit) as client:
            results += [await client.call_tool("file", APPEND) for _ in range(2)]
    async with connected(gate, place.token("writer"), "legacy", elicitation_callback=elicit) as client:
        nobody = await client.call_tool("file", APPEND)
    async with connected(gate, place.token("writer", elicit=True), "legacy") as client:
        cannot = await client.call_tool("file", APPEND)
    gate.end()

    assert [result.is_error for result in results] == [False, True, False, True]
    assert (nobody.is_error, cannot.is_error) == (True, True)
    assert len(asked) == 4
    assert asked == [asked[0]] * 4
    assert "file append" in asked[0]
    assert "more" in asked[0]
    answered = [row["body"]["who"] for row in place.rows("ApprovalResolved")]
    assert answered == ["user of tester 1.2, by elicitation"] * 4
    assert len(place.rows("ToolCompleted")) == 2


async def test_an_answer_counts_for_the_call_that_asked_and_once() -> None:
    registry, ran = ToolRegistry(), list[JsonValue]()

    async def run(arguments: Mapping[str, JsonValue], _: ToolExecutionContext) -> object:
        ran.append(arguments["to"])
        return check_answer({"content": []})

    registry.register(ServerTool(ToolDefinition("send", "Send.", {"type": "object"}), origin="far", runner=run))
    written = "gatewright = 1\n\n[agents.clerk]\ntools = ['send']\napprovals = { privileged = 'ask' }\n"
    policy = parse_policy(written, file="policy.toml", known=KnownTools(registry.facts())).policy
    assert policy is not None
    agent = AgentServer(Gate(policy, registry), Caller("clerk", Session(agent_id="clerk"), elicit=True))

    async def elicit(context: Any, params: ElicitRequestParams) -> ElicitResult:
        raise AssertionError("the client is driven by hand")

    async with Client(agent.server, elicitation_callback=elicit) as client:

        async def call(to: str, state: str | None = None) -> str | None:
            """The state of the question that is the answer; None for a result that is none."""
            answers: InputResponses = {
                "approval": ElicitResult(action="accept", content={"approve": state is not None})
            }
            result = await client.session.call_tool(
                "send", {"to": to}, input_responses=answers, request_state=state, allow_input_required=True
            )
            return result.request_state if isinstance(result, InputRequiredResult) else None

        first = await call("ann")
        other = await call("bob", first)
        assert ran == []
        assert await call("ann", first) is None
        again = await call("ann", first)
        await agent.withdraw()
        late = await call("bob", other)
        await agent.withdraw()

    assert ran == ["ann"]
    assert len({first, other, again, late, None}) == 5


async def test_gateway_says_how_long_its_calls_wait(place: Place, listen: Listen) -> None:
    gate = listen("--wait", "10m")
    async with operator_of(place) as operator, connected(gate, place.token("writer", user_id="bob")) as client:
        call = asyncio.create_task(client.call_tool("file", APPEND))
        (question,) = await operator.sees(1)

        assert question.expires_wall_s is not None
        assert 599 <= question.expires_wall_s - question.asked_wall_s <= 601
        assert question.client == "tester 1.2"
        assert question.process_id > 0
        operator.broker.answer(question.request_id, Approval(False, "dana", reason="not now"))
        result = await call
        assert result.is_error
        assert text(result).endswith("The operator says: not now")
