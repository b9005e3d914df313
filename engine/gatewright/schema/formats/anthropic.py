"""Tools as Anthropic's messages take them: 2020-12, a plain object at the root, parameter names within a pattern.

Sources: Anthropic's guide "Tool use" (`name` within `^[a-zA-Z0-9_-]{1,64}$`, `description`, `input_schema`); what the
service answers to the rest: "input_schema does not support oneOf, allOf, or anyOf at the top level", "Property keys
should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", "JSON schema is invalid. It must match JSON Schema draft 2020-12".
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, ProviderLint, Spelling
from gatewright.schema.formats.keys import with_fit_keys
from gatewright.schema.formats.listing import ToolListing
from gatewright.schema.formats.loose import NAMES, loose_form
from gatewright.schema.formats.name import NameRule
from gatewright.schema.formats.step import chain

KEYS = NameRule(r"[a-zA-Z0-9_.-]+", "[^a-zA-Z0-9_.-]", 64, "1 to 64 letters, digits, `_`, `.` and `-`")
_PROVIDER = "Anthropic"


def _fit(listing: ToolListing) -> Fitted:
    loose = loose_form(listing.schema, _PROVIDER)
    lints = list(loose.lints)

    def tell(pointer: str, name: str, renamed: bool) -> None:
        reason = f"{_PROVIDER} takes parameter names of {KEYS.words}, and `{name[:80]}` is none"
        advice = "it is sent under a fitted name, and calls come back under its own" if renamed else "rename it"
        lints.append(
            ProviderLint("key", _PROVIDER, loose.shown_at(pointer), reason, advice, "note" if renamed else "refused")
        )

    schema, keys = with_fit_keys(loose.schema, KEYS, tell)

    def body(name: str) -> dict[str, Any]:
        return {"name": name, "description": listing.description, "input_schema": schema}

    return Fitted(body, chain(keys, loose.step), tuple(lints))


ANTHROPIC = Format("anthropic", _PROVIDER, Spelling(_fit, NAMES))
