"""Tools as the Rust crate `genai` takes them (`chat::Tool`: `name`, `description`, `schema`).

The crate hands the schema on to whichever provider a model belongs to, so this is the form that all of them take.
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, Spelling
from gatewright.schema.formats.listing import ToolListing
from gatewright.schema.formats.loose import NAMES, loose_form


def _fit(listing: ToolListing) -> Fitted:
    loose = loose_form(listing.schema, "genai")

    def body(name: str) -> dict[str, Any]:
        return {"name": name, "description": listing.description, "schema": loose.schema}

    return Fitted(body, loose.step, loose.lints)


GENAI = Format("genai", "genai", Spelling(_fit, NAMES))
