"""Tools as Anthropic's messages take them (tool use guide: `name`, `description`, `input_schema`)."""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Format, ProviderLint, ToolListing, name_lints
from gatewright.schema.formats.root import flat_root, root_lints


def _render(listing: ToolListing) -> dict[str, Any]:
    schema = flat_root(listing.schema).schema
    return {"name": listing.name, "description": listing.description, "input_schema": schema}


def _lints(listing: ToolListing) -> tuple[ProviderLint, ...]:
    return (*name_lints(listing, "Anthropic"), *root_lints(listing.schema, "Anthropic"))


ANTHROPIC = Format("anthropic", _render, _lints)
