"""A call towards its MCP client: its progress, its wait for an operator, and its result.

If the tool's listing has an output schema, every successful result has structured content that fits it. Values that are
too long for a result are cut; content that does not fit afterwards becomes an error that says so.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from math import inf
from typing import TYPE_CHECKING

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestedSchema,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextContent,
)
from pydantic import ValidationError

from gatewright.base.errors import NobodyAnswered
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import in_own_thread
from gatewright.base.printable import media_type, plain_text, printable
from gatewright.gate import Approval, ApprovalRequest, PermissionBroker, Status
from gatewright.gate.stages.result import cut
from gatewright.schema import SchemaChecker

if TYPE_CHECKING:
    from gatewright.gate import Outcome


_SHORT_TEXT = 256
_UNFIT = "[the tool ran; its structured result is left out, since it does not fit the tool's output schema]"
_TOO_LONG = "[the tool ran; its structured result is left out, since it is longer than a result may be]"


def text_block(text: str) -> TextContent:
    """Return a text as content."""
    return TextContent(type="text", text=text)


async def result_of(
    outcome: Outcome, *, from_server: bool, promise: SchemaChecker | None, max_bytes: int
) -> CallToolResult:
    """Return the answer to a call. ``from_server``: its data is a server's result; ``promise``: the listed schema."""
    passed, value = _server_result(outcome) if from_server else None, None
    if passed is None:
        result = CallToolResult(content=[text_block(outcome.output), *_bytes_of(outcome)])
        if promise is not None and outcome.data is not None:
            value = json.loads(outcome.data)
    else:
        result, value = passed, passed.structured_content
        result.structured_content = None
    result.is_error = outcome.status is not Status.ALLOWED
    if result.is_error or (value is None and promise is None):
        return result
    size = len(canonical_json(value))
    said = ""
    if promise is not None:
        said = "" if promise.is_valid(value) else _UNFIT
        if not said and size > max_bytes:
            value = await in_own_thread(shorten, value, max_bytes)
            said = "" if promise.is_valid(value) else _TOO_LONG
        result.is_error = bool(said)
    elif outcome.truncated:
        return result
    elif size > max_bytes:
        said = f"[structured result left out: {size:,} bytes]"
    if said:
        result.content.append(text_block(said))
    else:
        result.structured_content = value
    return result


def shorten(value: JsonValue, max_bytes: int) -> JsonValue:
    """Cut the longest lists and texts of a value until its JSON fits; null if that is not enough."""
    items, chars = max(max_bytes // 2, 1), max_bytes
    while True:
        found = _cut_within(value, items, chars)
        if len(canonical_json(found)) <= max_bytes:
            return found
        if chars > _SHORT_TEXT:
            chars //= 2
        elif items:
            items //= 2
        else:
            return None


def _cut_within(value: JsonValue, items: int, chars: int) -> JsonValue:
    if isinstance(value, str):
        return cut(value, chars) or value
    if isinstance(value, list):
        return [_cut_within(one, items, chars) for one in value[:items]]
    if isinstance(value, dict):
        return {key: _cut_within(one, items, chars) for key, one in value.items()}
    return value


def _server_result(outcome: Outcome) -> CallToolResult | None:
    """Return the server's own result without its secrets; None for any other data."""
    if outcome.data is None:
        return None
    try:
        result = CallToolResult.model_validate_json(outcome.data)
    except ValidationError:
        return None
    if outcome.truncated:
        others = [block for block in result.content if not isinstance(block, TextContent)]
        result.content = [text_block(outcome.output), *others]
    return result


def _bytes_of(outcome: Outcome) -> Iterator[ContentBlock]:
    """Yield the bytes of a binary result, whole."""
    if not isinstance(outcome.raw, bytes) or outcome.data is None or plain_text(outcome.data) is not None:
        return
    kind, coded = media_type(outcome.data), base64.b64encode(outcome.data).decode()
    if kind.startswith("image/"):
        yield ImageContent(type="image", data=coded, mime_type=kind)
    elif kind.startswith("audio/"):
        yield AudioContent(type="audio", data=coded, mime_type=kind)
    else:
        held = BlobResourceContents(uri=f"gatewright://results/{outcome.call_id}", mime_type=kind, blob=coded)
        yield EmbeddedResource(type="resource", resource=held)


PROGRESS_S = 5.0
"""The seconds between progress messages for a client that asked for progress."""
_LONGEST_QUESTION = 8_000
_LEAST_SHOWN, _ROOM_FOR_CUT = 40, 130
_MOST_UNSENT = 100
_APPROVAL = "approval"
_QUESTION: ElicitRequestedSchema = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Allow it, this once", "default": False}},
    "required": ["approve"],
}


class Call:
    """A running call. ``params``: the client's request; ``task``: its end.

    Some protocol revisions forbid requests of a server. Then the client gets the question for its user as the result,
    and sends the same call again with the answer; the call waits meanwhile.
    """

    task: asyncio.Task[CallToolResult]

    def __init__(self, context: ServerRequestContext, params: CallToolRequestParams) -> None:
        self.params = params
        self.progress = Progress(context)
        self.question: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def ask(self, question: str) -> ElicitResult:
        """Ask the question, and return the user's answer once the client brings it."""
        self.question.set_result(question)
        answer = await self._answer
        return answer if isinstance(answer, ElicitResult) else ElicitResult(action="cancel")

    def question_as_result(self, state: str) -> InputRequiredResult:
        """Return the question as a result for the client, which sends it back with ``state``."""
        asked = ElicitRequestFormParams(message=self.question.result(), requested_schema=_QUESTION)
        return InputRequiredResult(input_requests={_APPROVAL: ElicitRequest(params=asked)}, request_state=state)

    def answer(self, context: ServerRequestContext, params: CallToolRequestParams) -> None:
        """Take the answer from the repeated call; progress goes to that request from now on."""
        self.progress.go_on(context)
        self._answer.set_result((params.input_responses or {}).get(_APPROVAL))

    async def wait(self) -> None:
        """Wait until the call ends or asks; if the client cancels or leaves, cancel the call once.

        The SDK's scopes interrupt every step of a cancelled task, but the gate still has to record the end.
        """
        waited = {self.task} if self._answer.done() else {self.task, self.question}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({self.task})
            raise


class Progress:
    """The progress of a call for a client that asked for it, so that the client does not give up.

    The amounts have to grow: until the tool reports any, they are millionths of the seconds that passed.
    """

    def __init__(self, context: ServerRequestContext) -> None:
        self._began = time.monotonic()
        self._what = "running"
        self._amount = -inf
        self._unsent: deque[tuple[float, float | None, str | None]] = deque(maxlen=_MOST_UNSENT)
        self._sender: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.go_on(context)

    def go_on(self, context: ServerRequestContext) -> None:
        """Send progress to this request from now on."""
        self.is_wanted = context.meta is not None and "progress_token" in context.meta
        self._session = context.session
        if self.is_wanted:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_S, self._repeat)

    def say(self, what: str) -> None:
        """Send what the call is doing, now and at intervals."""
        self._what = what
        self.pass_on((time.monotonic() - self._began) / 1e6, None, what)

    def pass_on(self, amount: float, whole: float | None, words: str | None) -> None:
        """Send the tool's own progress; of fast messages only the latest."""
        if self.is_wanted:
            self._unsent.append((amount, whole, words))
            if self._sender is None or self._sender.done():
                self._sender = asyncio.create_task(self._send())

    async def flush(self) -> None:
        """Send the last message, since a client gets no progress of a call after its answer."""
        if self._sender is not None:
            await self._sender

    def stop(self) -> None:
        """Stop sending."""
        self.is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
        if self._sender is not None:
            self._sender.cancel()

    def _repeat(self) -> None:
        self.say(self._what)
        self._timer = asyncio.get_running_loop().call_later(PROGRESS_S, self._repeat)

    async def _send(self) -> None:
        while self._unsent:
            amount, whole, words = self._unsent.popleft()
            if amount > self._amount:
                self._amount = amount
                await self._session.report_progress(amount, whole, words)


class OperatorConsent:
    """Approval by the operator; meanwhile the client learns why its call waits."""

    def __init__(self, broker: PermissionBroker, progress: Progress, waits: list[str]) -> None:
        self._broker = broker
        self._progress = progress
        self._waits = waits

    async def is_attended(self) -> bool:
        """Tell whether an operator is attached."""
        return await self._broker.is_attended()

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """Return the operator's answer."""
        self._progress.say("waits for the approval of an operator")
        self._waits.append(request.digest)
        try:
            return await self._broker(request)
        finally:
            self._waits.remove(request.digest)
            self._progress.say("running")


class UserConsent:
    """Approval by the client's user, by elicitation. The question has the model's arguments, but not our reasons."""

    def __init__(
        self, elicit: Callable[[str], Awaitable[ElicitResult]], client: str, progress: Progress, wait_s: float
    ) -> None:
        self._elicit = elicit
        self._client = client
        self._wait_s = wait_s
        self._progress = progress

    async def __call__(self, request: ApprovalRequest) -> Approval:
        """Return the user's answer, which counts once."""
        self._progress.say("waits for the approval of the user")
        who = f"user of {self._client or 'the client'}, by elicitation"
        try:
            async with asyncio.timeout(self._wait_s):
                answer = await self._elicit(question_of(request))
        except (TimeoutError, MCPError, ValidationError) as error:
            why = "no answer came in time" if isinstance(error, TimeoutError) else "the client could not ask"
            raise NobodyAnswered(why) from None
        finally:
            self._progress.say("running")
        approved = answer.action == "accept" and (answer.content or {}).get("approve") is True
        return Approval(approved, who)


def question_of(request: ApprovalRequest) -> str:
    """Write the question for the user: the call with all its arguments, short values first.

    The longest values are cut first, and the hidden rest is counted; invisible characters are spelled out.
    """
    what = printable(f"{request.tool} {request.operation}".strip())
    sent = sorted(
        ((_text(name), _text(value)) for name, value in request.arguments.items()), key=lambda row: len(row[1])
    )
    lines, left = [f"Allow this call of {what}?"], _LONGEST_QUESTION
    for number, (name, value) in enumerate(sent):
        share = left // (len(sent) - number) - _ROOM_FOR_CUT
        if share < _LEAST_SHOWN:
            lines.append(f"[NOT SHOWN: {len(sent) - number:,} more arguments]")
            break
        lines.append(f"{_cut(name, share // 4)}: {_cut(value, share - min(len(name), share // 4))}")
        left -= len(lines[-1])
    return "\n".join(lines)


def _text(value: JsonValue) -> str:
    return printable(json.dumps(value, ensure_ascii=False))


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]} [CUT: {len(text) - most:,} of {len(text):,} characters are not shown]"


async def elicit(context: ServerRequestContext, question: str) -> ElicitResult:
    """Ask the user of a client that accepts requests from a server."""
    return await context.session.elicit_form(question, _QUESTION, context.request_id)
