"""What an operator is shown of an id in the arguments of a call that asks, through the library."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, Session
from gatewright.gate.approval import MOST_BYTES, EarlierResults, IdRecord
from gatewright.policy.verdict import SafetyTier
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


LONG = "i" * 200
Found = list[tuple[str, Any, str]]


@pytest.mark.parametrize(
    ("results", "arguments", "found"),
    [
        ([{"id": 1, "v": "old"}, {"id": 1, "v": "new"}], {"id": 1}, [("id", 1, "new")]),
        ([[{"id": 1, "v": "first"}, {"id": 1, "v": "later"}]], {"id": 1}, [("id", 1, "first")]),
        ([{"id": 1, "v": "own"}, {"user_id": 1, "v": "names it"}], {"ticket_id": 1}, [("ticket_id", 1, "own")]),
        ([{"id": 1, "v": "own"}, {"Ticket_ID": 1, "v": "same key"}], {"ticket_id": 1}, [("ticket_id", 1, "same key")]),
        ([{"user_id": 1, "v": "old"}, {"host_id": 1, "v": "new"}], {"ticket_id": 1}, [("ticket_id", 1, "new")]),
        ([{"ID": 1, "v": "a"}], {"IDS": [1]}, [("IDS[0]", 1, "a")]),
        ([{"id": 1, "v": "a"}], {"a": {"b_id": 1}}, [("a.b_id", 1, "a")]),
        ([{"id": True, "v": "a"}], {"id": 1}, []),
        ([{"id": 1, "v": "a"}], {"id": True}, []),
        ([{"id": 1.0, "v": "a"}], {"id": 1}, []),
        ([{"id": 1, "v": "a"}], {"count": 1}, []),
        ([{"count": 1, "v": "a"}, {"id": 9}], {"id": 1}, []),
        ([{"id": "A", "v": "a"}], {"name": "A"}, [("name", "A", "a")]),
        ([{"id": "", "v": "a"}], {"id": ""}, []),
        ([{"id": LONG, "v": "a"}], {"id": LONG}, [("id", LONG, "a")]),
        ([{"id": LONG + "i", "v": "a"}], {"id": LONG + "i"}, []),
        ([{"a": [{"b": {"id": 1, "v": "deep"}}]}], {"id": 1}, [("id", 1, "deep")]),
        ([{"type": "text", "text": ' {"id": 1, "v": "block"}'}], {"id": 1}, [("id", 1, "block")]),
        ([{"type": "text", "text": '[{"id": 1, "v": "block"}]'}], {"id": 1}, [("id", 1, "block")]),
        ([{"type": "text", "text": '{"id": 1, "v": "half"'}], {"id": 1}, []),
        ([{"type": "note", "text": '{"id": 1, "v": "note"}'}], {"id": 1}, []),
        ([{"id": at, "v": at} for at in range(6)], {"ids": [*range(6)]}, [(f"ids[{at}]", at, at) for at in range(5)]),
        ([{"id": 63, "v": "a"}, {"id": 64, "v": "b"}], {"ids": [*range(70)]}, [("ids[63]", 63, "a")]),
        ([{"id": 1, "v": "a"}, *[{"id": 0}] * 63], {"id": 1}, [("id", 1, "a")]),
        ([{"id": 1, "v": "a"}, *[{"id": 0}] * 64], {"id": 1}, []),
        ([{"id": 1, "v": "a"}, {"id": 2, "v": "b" * 600_000}], {"id": 1}, [("id", 1, "a")]),
        ([{"id": 1, "v": "a", "w": "a" * 600_000}, {"id": 2, "v": "b" * 600_000}], {"id": 1}, []),
    ],
)
def test_id_stands_for_the_nearest_object_of_the_results_that_are_kept(
    results: list[Any], arguments: dict[str, Any], found: Found
) -> None:
    session, earlier = Session(), EarlierResults()
    earlier.keep(session, "broken", b'{"id": 1', 1.0)
    for at, result in enumerate(results):
        earlier.keep(session, f"t{at}", json.dumps(result).encode(), float(at))

    told: list[Any] = list(earlier.of(session, arguments))
    assert [(one.argument, one.value, one.record["v"]) for one in told] == found


def test_result_is_kept_up_to_its_bound_with_the_call_and_the_time_that_gave_it() -> None:
    session, earlier = Session(), EarlierResults()
    assert earlier.of(session, {"id": 1}) == ()
    room = MOST_BYTES - len('{"id": 1, "v": ""}')
    for called, size in (("fits", room), ("too large", room + 1)):
        earlier.keep(session, called, json.dumps({"id": 1, "v": "v" * size}).encode(), 7.5)
    (found,) = earlier.of(session, {"id": 1})

    assert found == IdRecord("id", 1, found.record, "fits", 7.5)
