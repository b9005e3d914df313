"""Who is asked where nobody else is named: the operator of the workspace, at every door."""

import asyncio
from pathlib import Path

from gatewright import ToolCall
from gatewright.workspace import Approval, ApprovalRequest, Outcome, Status, Workspace, create_workspace
from gatewright.workspace.assembly import permission_broker

DELETE = {"op": "delete", "path": "drafts/report.md"}


def opened(folder: Path) -> Workspace:
    return Workspace.open(create_workspace(folder / "demo", "demo"))


async def asked(workspace: Workspace, door: str) -> Outcome:
    if door == "gate":
        return await workspace.gate.call("operator", "file", DELETE)
    if door == "many":
        return (await workspace.gate.call_many("operator", [ToolCall("file", DELETE)]))[0]
    return await workspace.call("operator", "file", DELETE)


async def test_a_call_without_an_approver_waits_for_the_operator_at_every_door(tmp_path: Path) -> None:
    for door in ("workspace", "gate", "many"):
        with opened(tmp_path / door) as workspace:
            assert (await asked(workspace, door)).status is Status.UNANSWERED  # nobody is there
            operator = permission_broker(workspace.policy_path)
            heard: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
            loop = asyncio.get_running_loop()

            def hear(
                requests: tuple[ApprovalRequest, ...],
                loop: asyncio.AbstractEventLoop = loop,
                heard: asyncio.Queue[ApprovalRequest] = heard,
            ) -> None:
                for request in requests:
                    loop.call_soon_threadsafe(heard.put_nowait, request)

            operator.subscribe(hear)
            call = asyncio.ensure_future(asked(workspace, door))
            request = await heard.get()
            assert (request.tool, request.operation) == ("file", "delete")
            operator.answer(request.request_id, Approval(approved=True, who="the test"))
            assert (await call).status is Status.ALLOWED, door
            operator.close()


async def test_an_approver_that_is_named_is_asked_instead(tmp_path: Path) -> None:
    async def refuse(request: ApprovalRequest) -> Approval:
        return Approval(approved=False, who=request.agent_id)

    with opened(tmp_path) as workspace:
        outcome = await workspace.call("operator", "file", DELETE, approver=refuse)
        assert (outcome.status, outcome.code) == (Status.DENIED, "approval-refused")
