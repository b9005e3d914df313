"""The result of a call for an MCP client: its text, its bytes as an image, a sound or a file, its structured content.

Where the tool is listed with an output schema, structured content that fits it comes with every result that is no
error. What is longer than a result may be is cut within; what does not fit (any more) is an error that says so.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from mcp.types import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent
from pydantic import ValidationError

from gatewright.base.content import media_type, plain_text
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.thread import in_own_thread
from gatewright.gate import Status
from gatewright.gate.stages.result import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.types import ContentBlock

    from gatewright.gate import Outcome
    from gatewright.schema import SchemaChecker

_SHORT_TEXT = 256
_UNFIT = "[the tool ran; its structured result is left out, since it does not fit the tool's output schema]"
_TOO_LONG = "[the tool ran; its structured result is left out, since it is longer than a result may be]"


def text_block(text: str) -> TextContent:
    """A text as content."""
    return TextContent(type="text", text=text)


async def result_of(
    outcome: Outcome, *, from_server: bool, promise: SchemaChecker | None, max_bytes: int
) -> CallToolResult:
    """The answer to a call. ``from_server``: its data is a server's result; ``promise``: the listed output schema."""
    passed, value = _passed_on(outcome) if from_server else None, None
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
            value = await in_own_thread(shortened, value, max_bytes)
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


def shortened(value: JsonValue, max_bytes: int) -> JsonValue:
    """The value with its longest lists and texts cut until its JSON fits; null where that is not enough."""
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


def _passed_on(outcome: Outcome) -> CallToolResult | None:
    """The server's own result, without its secrets; None for what is not the result of a server."""
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
    """The bytes of a result that is no text, whole."""
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
