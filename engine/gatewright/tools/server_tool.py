"""A tool of an MCP server, whose results are `CallToolResult`s as the protocol spells them."""

from __future__ import annotations

from typing import cast

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import late_regex
from gatewright.tools.defined import DefinedTool
from gatewright.tools.tool import Scrub

_BASE64 = late_regex(r"[A-Za-z0-9+/]+={0,2}")


class ServerTool(DefinedTool, abstract=True):
    """A tool whose runner returns the whole `CallToolResult` (see `check_answer`), unchanged for the host.

    The model reads the texts of its content; the output schema describes its structured part.
    """

    def output_part(self, result: JsonValue) -> JsonValue:
        """Return the structured part, null if the server sent none."""
        return result.get("structuredContent") if isinstance(result, dict) else None

    def scrub_result(self, result: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
        """Remove secrets; the bytes of images, sounds and files stay, since secrets in them are chance."""
        if not isinstance(result, dict) or not isinstance(content := result.get("content"), list):
            return scrub(result)
        rest, count = _scrub_object({**result, "content": []}, scrub)
        blocks: list[JsonValue] = []
        for block in content:
            kept, taken = _scrub_block(block, scrub)
            blocks.append(kept)
            count += taken
        return {**rest, "content": blocks}, count

    def text_for_model(self, result: JsonValue) -> str | None:
        """Return the texts of the content, one below the other, with a word for anything else."""
        return _text_of(result) if isinstance(result, dict) else None


def check_answer(answer: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a server's answer if it is a result. Raises ToolFailure with the server's words for a failed call."""
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


def _scrub_object(value: dict[str, JsonValue], scrub: Scrub) -> tuple[dict[str, JsonValue], int]:
    kept, count = scrub(value)
    return cast("dict[str, JsonValue]", kept), count  # an object stays one


def _scrub_block(block: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
    if not isinstance(block, dict):
        return scrub(block)
    inner = block.get("resource")
    if isinstance(inner, dict):
        held, count = _scrub_beside("blob", inner, scrub)
        kept, more = _scrub_object({**block, "resource": {}}, scrub)
        return {**kept, "resource": held}, count + more
    return _scrub_beside("data", block, scrub)


def _scrub_beside(name: str, value: dict[str, JsonValue], scrub: Scrub) -> tuple[JsonValue, int]:
    """Remove the object's secrets, except from the base64 bytes under that name."""
    data = value.get(name)
    if not isinstance(data, str) or len(data) % 4 or _BASE64.fullmatch(data) is None:
        return scrub(value)
    kept, count = _scrub_object({key: held for key, held in value.items() if key != name}, scrub)
    return {**kept, name: data}, count
