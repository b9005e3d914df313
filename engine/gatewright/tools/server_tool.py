"""A tool of an MCP server, whose results are `CallToolResult`s as the protocol spells them."""

from __future__ import annotations

from typing import cast

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.tools.defined import DefinedTool


class ServerTool(DefinedTool, abstract=True):
    """What its runner returns is the whole `CallToolResult` (see `checked_answer`), and stays so for the host.

    The model reads the texts of its content; the output schema is about its structured part.
    """

    def output_part(self, result: JsonValue) -> JsonValue:
        """The structured part, null where the server sent none."""
        return result.get("structuredContent") if isinstance(result, dict) else None

    def text_for_model(self, result: JsonValue) -> str | None:
        """The texts of the content, one below the other, with a word for what is no text."""
        return _text_of(result) if isinstance(result, dict) else None


def checked_answer(answer: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A server's answer to a call, where it is a result. Raises ToolFailure with the server's words where it failed."""
    content = answer.get("content", [])
    is_result = isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content)
    if not is_result or not isinstance(answer.get("structuredContent", {}), dict):
        text = "the tool ran, but its server sent something that is no result; do not make this call again"
        raise ToolFailure(text, code="bad-result")
    if answer.get("isError") is True:
        raise ToolFailure(_text_of(answer) or "the tool gave no reason")
    return answer


def _text_of(answer: dict[str, JsonValue]) -> str:
    content = cast("list[dict[str, JsonValue]]", answer.get("content", []))
    if not content and "structuredContent" in answer:
        return canonical_json(answer["structuredContent"]).decode()
    return "\n".join(map(_words, content))


def _words(block: dict[str, JsonValue]) -> str:
    inner = block.get("resource")
    text = block.get("text", inner.get("text") if isinstance(inner, dict) else None)
    if isinstance(text, str):
        return text
    what = [str(block.get("type"))]
    for held in (block, inner if isinstance(inner, dict) else {}):
        what += [named for key in ("mimeType", "name", "uri") if isinstance(named := held.get(key), str)]
    return f"[{' '.join(what)}]"
