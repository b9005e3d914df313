"""A tool's result as the text that a model gets. It cuts nothing."""

from __future__ import annotations

import json

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import message


def output_text(result: JsonValue | bytes) -> str:
    """Text as it stands, JSON compact with sorted keys, bytes when they are UTF-8. Raises ToolFailure, ValueError."""
    if isinstance(result, str):
        text = result
    elif isinstance(result, bytes):
        return _decoded(result)
    else:
        text = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return valid(text)


def valid(text: str) -> str:
    """``text`` as valid UTF-8 can hold it: halves of surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolFailure(message.BINARY, code="binary-result") from None
