"""Tools as the Model Context Protocol lists them (specification 2025-06-18, `tools/list`)."""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Format, ProviderLint, ToolListing, name_lints


def _render(listing: ToolListing) -> dict[str, Any]:
    schema = listing.schema if listing.schema.get("type") == "object" else {"type": "object", **_typeless(listing)}
    return {"name": listing.name, "description": listing.description, "inputSchema": schema}


def _typeless(listing: ToolListing) -> dict[str, Any]:
    return {key: value for key, value in listing.schema.items() if key != "type"}


def _lints(listing: ToolListing) -> tuple[ProviderLint, ...]:
    return name_lints(listing, "an MCP client")


MCP = Format("mcp", _render, _lints)
