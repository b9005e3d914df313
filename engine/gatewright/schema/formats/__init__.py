"""How providers take tools: one module per provider, all behind one table. They do not know policies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gatewright.base.errors import NotSupported
from gatewright.schema.formats.anthropic import ANTHROPIC
from gatewright.schema.formats.format import CallReader, Format, ProviderLint, ToolListing
from gatewright.schema.formats.gemini import GEMINI
from gatewright.schema.formats.genai import GENAI
from gatewright.schema.formats.mcp import MCP
from gatewright.schema.formats.openai import OPENAI, OPENAI_RESPONSES

FORMATS: Mapping[str, Format] = MappingProxyType(
    {form.name: form for form in (MCP, OPENAI, OPENAI_RESPONSES, ANTHROPIC, GEMINI, GENAI)}
)


def format_named(name: str) -> Format:
    """The format called ``name``. Raises NotSupported for any other."""
    found = FORMATS.get(name)
    if found is None:
        raise NotSupported(f"the format `{name}` is not supported; there are {', '.join(FORMATS)}")
    return found


__all__ = ["FORMATS", "CallReader", "Format", "ProviderLint", "ToolListing", "format_named"]
