"""Formats in which providers take tools, by name; each loads on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from gatewright.base.errors import NotSupported
from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.schema.formats.format import CallReader, Format, ProviderLint
    from gatewright.schema.operation import ToolListing

__all__ = ["FORMATS", "CallReader", "Format", "ProviderLint", "ToolListing", "format_named"]

door(
    __name__,
    {
        "gatewright.schema.formats.format": ("CallReader", "Format", "ProviderLint"),
        "gatewright.schema.operation": ("ToolListing",),
    },
)

_HOMES = {
    "mcp": ("gatewright.schema.formats.jsonschema", "MCP"),
    "openai": ("gatewright.schema.formats.openai", "OPENAI"),
    "openai-responses": ("gatewright.schema.formats.openai", "OPENAI_RESPONSES"),
    "anthropic": ("gatewright.schema.formats.jsonschema", "ANTHROPIC"),
    "gemini": ("gatewright.schema.formats.gemini", "GEMINI"),
    "genai": ("gatewright.schema.formats.jsonschema", "GENAI"),
}


class _Formats(Mapping[str, "Format"]):
    """The formats by name, in the order of the offer."""

    def __getitem__(self, name: str) -> Format:
        module, constant = _HOMES[name]
        return cast("Format", getattr(import_module(module), constant))

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


FORMATS: Mapping[str, Format] = _Formats()


def format_named(name: str) -> Format:
    """Return the format called ``name``. Raises NotSupported for any other."""
    found = FORMATS.get(name)
    if found is None:
        raise NotSupported(f"the format `{name}` is not supported; there are {', '.join(FORMATS)}")
    return found
