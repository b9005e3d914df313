"""Tools as the Model Context Protocol lists them: JSON Schema as it is, with an object at the root.

Source: the specification's revision 2025-11-25, "Tools": `inputSchema` has `type: object` and is 2020-12 unless it says
otherwise, and so has `outputSchema`, where results have one; names of 1 to 128 letters, digits, `_`, `-` and `.`.
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, Spelling
from gatewright.schema.formats.listing import ToolListing
from gatewright.schema.formats.name import NameRule

NAMES = NameRule(r"[a-zA-Z0-9_.-]+", "[^a-zA-Z0-9_.-]", 128, "1 to 128 letters, digits, `_`, `-` and `.`")


def _fit(listing: ToolListing) -> Fitted:
    shown = listing.schema
    schema = shown if shown.get("type") == "object" else {**shown, "type": "object"}

    def body(name: str) -> dict[str, Any]:
        told = {"name": name, "description": listing.description, "inputSchema": schema}
        return told if listing.output is None else {**told, "outputSchema": listing.output}

    return Fitted(body)


MCP = Format("mcp", "MCP", Spelling(_fit, NAMES))
