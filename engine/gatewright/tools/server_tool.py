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
    """What its runner returns is the whole `CallToolResult` (see `checked_answer`), and stays so for the host.

    The model reads the texts of its content; the output schema is about its structured part.
    """

    def output_part(self, result: JsonValue) -> JsonValue:
        """The structured part, null where the server sent none."""
        return result.get("structuredContent") if isinstance(result, dict) else None

    def scrubbed(self, result: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
        """Without secrets; the bytes of images, sounds and files stay: what looks like a secret there is chance."""
        if not isinstance(result, dict) or not isinstance(content := result.get("content"), list):
            return scrub(result)
        rest, count = _scrubbed_object({**result, "content": []}, scrub)
        blocks: list[JsonValue] = []
        for block in content:
            kept, taken = _scrubbed_block(block, scrub)
            blocks.append(kept)
            count += taken
        return {**rest, "content": blocks}, count

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


def _scrubbed_object(value: dict[str, JsonValue], scrub: Scrub) -> tuple[dict[str, JsonValue], int]:
    kept, count = scrub(value)
    return cast("dict[str, JsonValue]", kept), count  # an object stays one


def _scrubbed_block(block: JsonValue, scrub: Scrub) -> tuple[JsonValue, int]:
    if not isinstance(block, dict):
        return scrub(block)
    inner = block.get("resource")
    if isinstance(inner, dict):
        held, count = _scrubbed_beside("blob", inner, scrub)
        kept, more = _scrubbed_object({**block, "resource": {}}, scrub)
        return {**kept, "resource": held}, count + more
    return _scrubbed_beside("data", block, scrub)


def _scrubbed_beside(name: str, value: dict[str, JsonValue], scrub: Scrub) -> tuple[JsonValue, int]:
    """The object without its secrets, but for the bytes that it holds under that name in base64."""
    data = value.get(name)
    if not isinstance(data, str) or len(data) % 4 or _BASE64.fullmatch(data) is None:
        return scrub(value)
    kept, count = _scrubbed_object({key: held for key, held in value.items() if key != name}, scrub)
    return {**kept, name: data}, count
