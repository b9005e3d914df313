"""What an operator is shown of an id in the arguments of a call that asks, through the library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, Session
from gatewright.policy.tier import SafetyTier
from gatewright.tools import ResultType, tool
from gatewright.workspace import Workspace

POLICY = """\
gatewright = 1

[agents.desk]
tools = ["tickets", "told", "failing", "remove"]
approvals = { remove = "ask" }
"""
TICKETS: list[dict[str, Any]] = [
    {"id": 4711, "title": "Crane stuck", "customer_id": 7, "api_key": "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e"},
    {"id": 4712, "title": "x" * 5000},
    {"ticketId": "T-9", "title": "Text id"},
    {"id": 7, "title": "Ticket seven"},
]


@tool(safety_tier=SafetyTier.READ_ONLY)
async def tickets() -> list[dict[str, Any]]:
    """List tickets."""
    return TICKETS


@tool(safety_tier=SafetyTier.READ_ONLY)
async def told(text: str) -> dict[str, Any]:
    """Give a text in a block, as servers do.

    Args:
        text: The text.
    """
    return {"content": [{"type": "text", "text": text}]}


@tool(safety_tier=SafetyTier.READ_ONLY)
async def failing() -> dict[str, Any]:
    """Fail."""
    raise RuntimeError("{'id': 4711}")


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def remove(ticket_id: int | str, more: dict[str, Any] | None = None) -> str:
    """Remove a ticket.

    Args:
        ticket_id: Which.
        more: Others.
    """
    return f"removed {ticket_id} {more}"


class Desk:
    """Asks for removals and keeps the questions."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.session = Session("s-1")
        self.asked: list[ApprovalRequest] = []

    async def refuse(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return Approval(False, "dana")

    async def records(self, session: Session | None = None, **arguments: Any) -> list[tuple[str, Any, Any, str]]:
        count = len(self.asked)
        await self.workspace.call("desk", "remove", arguments, session=session or self.session, approver=self.refuse)
        assert len(self.asked) == count + 1
        return [(one.argument, one.value, one.record, one.called) for one in self.asked[-1].records]

    async def call(self, name: str, **arguments: Any) -> str:
        return str((await self.workspace.call("desk", name, arguments, session=self.session)).status)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    tools = (tickets, told, failing, remove)
    with Workspace.open(tmp_path, tools=tools, keys=tmp_path / "keys") as workspace:
        yield Desk(workspace)


async def test_id_that_an_earlier_result_had_is_told_with_its_object_and_call(desk: Desk) -> None:
    assert await desk.records(ticket_id=4711) == []
    assert await desk.call("tickets") == "allowed"

    [(argument, value, record, called)] = await desk.records(ticket_id=4711)

    assert (argument, value, called) == ("ticket_id", 4711, "tickets")
    assert record["title"] == "Crane stuck"
    assert record["customer_id"] == 7


async def test_record_holds_no_secret_and_is_bounded(desk: Desk) -> None:
    await desk.call("tickets")

    [(_, _, record, _)] = await desk.records(ticket_id=4711)
    assert "sk-live" not in str(record)
    [(_, _, long, _)] = await desk.records(ticket_id=4712)
    assert 0 < len(long["title"]) < 5000


async def test_value_of_another_type_or_under_another_key_stands_for_nothing(desk: Desk) -> None:
    await desk.call("tickets")

    assert await desk.records(ticket_id="4711") == []
    assert await desk.records(ticket_id="Crane stuck") == []
    assert await desk.records(ticket_id=1, more={"count": 4711}) == []


async def test_object_that_has_the_id_as_its_own_is_told_before_one_that_names_it(desk: Desk) -> None:
    await desk.call("tickets")

    [(_, _, record, _)] = await desk.records(ticket_id=7)
    assert record["title"] == "Ticket seven"
    [(argument, value, record, _)] = await desk.records(ticket_id=1, more={"others": [{"customer_id": 7}]})
    assert (argument, value) == ("more.others[0].customer_id", 7)
    assert record["title"] == "Crane stuck"


async def test_text_ids_and_json_in_blocks_of_text_are_found(desk: Desk) -> None:
    await desk.call("tickets")
    assert await desk.call("told", text='[{"id": "A-1", "name": "in a block"}]') == "allowed"

    assert (await desk.records(ticket_id="T-9"))[0][2]["title"] == "Text id"
    [(_, _, record, called)] = await desk.records(ticket_id="A-1")
    assert (record["name"], called) == ("in a block", "told")


async def test_failed_calls_and_other_sessions_tell_nothing(desk: Desk) -> None:
    assert await desk.call("failing") == "failed"
    assert await desk.records(ticket_id=4711) == []
    await desk.call("tickets")

    assert await desk.records(Session("s-2"), ticket_id=4711) == []


async def test_records_survive_the_way_to_another_process(desk: Desk) -> None:
    await desk.call("tickets")
    await desk.records(ticket_id=4711)

    request = desk.asked[-1]

    assert ApprovalRequest.from_json(request.to_json()).records == request.records
    assert request.places == (("agents", "desk", "approvals", "remove"),)


async def test_reason_of_a_refusal_is_told_to_the_model_and_to_the_operator(desk: Desk) -> None:
    async def refuse(request: ApprovalRequest) -> Approval:
        assert request.arguments == {"ticket_id": 1}
        return Approval(False, "dana", reason="close it \u202einstead")

    outcome = await desk.workspace.call("desk", "remove", {"ticket_id": 1}, session=desk.session, approver=refuse)

    assert outcome.status == "denied"
    assert outcome.output.endswith(
        "did not approve this call; go on without it. The operator says: close it \\u202einstead"
    )
    assert outcome.decision.reason == "dana did not approve the call: close it \\u202einstead"
