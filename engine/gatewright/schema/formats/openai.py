"""Tools as OpenAI's chat completions take them (function calling guide: a `function` with `parameters`)."""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Format, ProviderLint, ToolListing, name_lints
from gatewright.schema.formats.root import flat_root, root_lints


def _render(listing: ToolListing) -> dict[str, Any]:
    parameters = flat_root(listing.schema).schema
    function = {"name": listing.name, "description": listing.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _lints(listing: ToolListing) -> tuple[ProviderLint, ...]:
    return (*name_lints(listing, "OpenAI"), *root_lints(listing.schema, "OpenAI"))


OPENAI = Format("openai", _render, _lints)
