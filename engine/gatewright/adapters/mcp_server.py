"""One agent's tools as an MCP server: what its view shows, and calls that go through the gate."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.types import CallToolResult, PaginatedRequestParams, TextContent

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.gate import Status
from gatewright.tools import ToolExecutionContext

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.types import CallToolRequestParams

    from gatewright.gate import AgentView, Approval, ApprovalRequest, Gate, Outcome, PermissionBroker, Session

PROGRESS_S = 5.0
"""How often a client that asked for progress hears that its call is still under way."""
CONTINUE_KEY = "gatewright/should_continue"
"""In the ``_meta`` of a result after which the agent's loop is to end: false."""
_LONGEST_NAME = 200


@frozen
class Caller:
    """Whom a server serves: an agent, the user if there is one, and the session that their calls count in."""

    agent_id: str
    session: Session
    user_id: str | None = None


class AgentServer:
    """The server of one caller; any number of connections share it. ``broker``: asks the operator where a call asks."""

    def __init__(self, gate: Gate, caller: Caller, broker: PermissionBroker | None = None) -> None:
        self._gate = gate
        self._caller = caller
        self._broker = broker
        view = self._view()
        self.server = _ToolServer(
            "gatewright",
            version=version("gatewright"),
            instructions=view.usage_rules if view is not None else None,
            on_call_tool=self._call,
        )
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)

    def _view(self) -> AgentView | None:
        """What the agent sees now; None once an edit took it out of the policy."""
        try:
            return self._gate.view(self._caller.agent_id)
        except WorkspaceError:
            return None

    async def _list(self, _context: ServerRequestContext, _params: PaginatedRequestParams) -> dict[str, Any]:
        view = self._view()
        tools = view.tools("mcp") if view is not None else []
        return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def _call(self, context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        view, tool, arguments = self._view(), params.name, params.arguments or {}
        if view is not None:
            tool, arguments = view.restore("mcp", tool, arguments)
        caller, client = self._caller, _client_of(context)
        if not caller.session.should_continue:
            caller.session.begin_turn()
        progress = _Progress(context)
        telling = asyncio.ensure_future(progress.tell())
        try:
            outcome = await _uninterrupted(
                self._gate.call(
                    caller.agent_id,
                    tool,
                    arguments,
                    session=caller.session,
                    context=ToolExecutionContext(caller.agent_id, "", user_id=caller.user_id, client=client),
                    approver=_Consent(self._broker, progress) if self._broker is not None else None,
                )
            )
        finally:
            telling.cancel()
        return self._result(outcome)

    def _result(self, outcome: Outcome) -> CallToolResult:
        texts = [outcome.output]
        if outcome.status is Status.ALLOWED and self._view() is not None:
            texts += self._gate.reminders(self._caller.agent_id, self._caller.session)
        return CallToolResult(
            content=[TextContent(type="text", text=text) for text in texts],
            is_error=outcome.status is not Status.ALLOWED,
            _meta=None if outcome.should_continue else {CONTINUE_KEY: False},
        )


class _ToolServer(Server[dict[str, Any]]):
    """A server that says to every client, by whatever transport it comes, that its tools may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> InitializationOptions:
        """What a client is told at the handshake."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, *rest, **more)


class _Progress:
    """What a client that asked for it hears of its call while that lasts, so that it does not give up."""

    def __init__(self, context: ServerRequestContext) -> None:
        self._session = context.session
        self._began = time.monotonic()
        self._what = "running"
        self._news = asyncio.Event()

    def say(self, what: str) -> None:
        """Say from now on, and at once, what the call does."""
        self._what = what
        self._news.set()

    async def tell(self) -> None:
        """Send progress until cancelled: every few seconds, and when there is news."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), PROGRESS_S)
            self._news.clear()
            await self._session.report_progress(time.monotonic() - self._began, None, self._what)


class _Consent:
    """Asks the operator, and tells the client meanwhile what its call waits for."""

    def __init__(self, broker: PermissionBroker, progress: _Progress) -> None:
        self._broker = broker
        self._progress = progress

    async def is_attended(self) -> bool:
        """Whether an operator is attached."""
        return await self._broker.is_attended()

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """The operator's answer."""
        self._progress.say("waits for the approval of an operator")
        try:
            return await self._broker(request)
        finally:
            self._progress.say("running")


async def _uninterrupted(call: Coroutine[Any, Any, Outcome]) -> Outcome:
    """The outcome of a call in a task of its own, cancelled once when the client cancels it or goes away.

    The SDK's scopes interrupt every step of what they cancel, and the gate has its end to record.
    """
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})
        raise


def _client_of(context: ServerRequestContext) -> str:
    """Name and version as the client gives them; empty for one that gives none."""
    known = context.session.client_params
    return f"{known.client_info.name} {known.client_info.version}"[:_LONGEST_NAME].strip() if known else ""
