"""A whole call as a provider's program writes it, found in a pasted text."""

from collections.abc import Mapping
from typing import cast

from gatewright.workspace.api import JsonRefused, JsonValue, frozen
from gatewright_gui.pages.trial.json_value import parse_value
from gatewright_gui.qt.language import mark

MAX_PASTED = 1_000_000


@frozen
class PastedCall:
    """`format`: the engine's name of the provider's format; `more`: how many other calls stood beside it.

    `arguments`: an object, or its JSON text, as the provider writes them.
    """

    name: str
    arguments: str | dict[str, JsonValue]
    format: str
    words: str
    more: int = 0


def call_from_text(text: str, properties: frozenset[str] = frozenset()) -> PastedCall | None:
    """The call that a text is; None where it is none, or where it may as well be arguments with these properties."""
    if len(text) > MAX_PASTED or text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = parse_value(text)
    except JsonRefused:
        return None
    calls = _calls(value, 0)
    if not calls or (isinstance(value, dict) and value.keys() <= properties):
        return None
    first = calls[0]
    return PastedCall(first.name, first.arguments, first.format, first.words, len(calls) - 1)


def _calls(value: JsonValue, depth: int) -> list[PastedCall]:
    if depth > 6:
        return []
    if isinstance(value, list):
        return [call for one in value for call in _calls(one, depth + 1)]
    if not isinstance(value, dict):
        return []
    own = _call(value)
    if own is not None:
        return [own]
    for key in ("tool_calls", "content", "parts", "output", "message", "choices", "candidates", "input", "params"):
        if isinstance(value.get(key), dict | list):
            found = _calls(value[key], depth + 1)
            if found:
                return found
    return []


def _call(value: Mapping[str, JsonValue]) -> PastedCall | None:
    """One object that is a call."""
    inner = value.get("function")
    if isinstance(inner, dict):
        return _call_in(inner, ("arguments",), "openai", mark("an OpenAI call"))
    kind = value.get("type")
    if kind == "function_call":
        return _call_in(value, ("arguments",), "openai-responses", mark("an OpenAI call"))
    if kind == "tool_use":
        return _call_in(value, ("input",), "anthropic", mark("an Anthropic call"))
    for key in ("functionCall", "function_call"):
        inner = value.get(key)
        if isinstance(inner, dict):
            gemini = _call_in(inner, ("args",), "gemini", mark("a Gemini call"))
            return gemini or _call_in(inner, ("arguments",), "openai", mark("an OpenAI call"))
    inner = value.get("params")
    if value.get("method") == "tools/call" and isinstance(inner, dict):
        return _call_in(inner, ("arguments",), "mcp", mark("an MCP call"))
    if "name" in value and len(value) <= 4:
        text = isinstance(value.get("arguments"), str)
        plain = _call_in(value, ("arguments",), "openai" if text else "mcp", mark("a call"))
        return (
            plain
            or _call_in(value, ("input",), "anthropic", mark("a call"))
            or _call_in(value, ("args",), "gemini", mark("a call"))
        )
    return None


def _call_in(value: Mapping[str, JsonValue], keys: tuple[str, ...], form: str, words: str) -> PastedCall | None:
    name = value.get("name")
    arguments = next((value[key] for key in keys if key in value), None)
    if not isinstance(name, str) or not name or not isinstance(arguments, str | dict):
        return None
    return PastedCall(name, cast("str | dict[str, JsonValue]", arguments), form, words)
