"""Tools as OpenAI's chat completions and responses take them, in strict mode where that says exactly the same.

Sources: OpenAI's guides "Function calling" and "Structured Outputs"; what the service answers to the rest: "schema must
have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "array schema missing items",
at most 1,024 characters of description and 128 tools. The responses interface tries strict mode by itself unless told
otherwise, so it is always told.
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, ProviderLint, Spelling
from gatewright.schema.formats.listing import ToolListing
from gatewright.schema.formats.loose import NAMES, Loose, loose_form
from gatewright.schema.formats.step import Step, chain
from gatewright.schema.formats.strict import Inexact, opened, strict_form
from gatewright.schema.walk import Schema

MAX_DESCRIPTION, MAX_TOOLS = 1024, 128
_PROVIDER = "OpenAI"
_CLOSING = ("additionalProperties", "unevaluatedProperties", "allOf")
"""Without any of these a root takes keys that it does not declare."""


def _fit_chat(listing: ToolListing) -> Fitted:
    schema, step, lints, strict = _schema(listing)
    text, schema, told = _described(listing.description, schema)

    def body(name: str) -> dict[str, Any]:
        function: dict[str, Any] = {"name": name, "description": text, "parameters": schema}
        return {"type": "function", "function": {**function, "strict": True} if strict else function}

    return Fitted(body, step, (*lints, *told))


def _fit_responses(listing: ToolListing) -> Fitted:
    schema, step, lints, strict = _schema(listing)
    text, schema, told = _described(listing.description, schema)

    def body(name: str) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": text, "parameters": schema, "strict": strict}

    return Fitted(body, step, (*lints, *told))


def _schema(listing: ToolListing) -> tuple[Schema, Step, tuple[ProviderLint, ...], bool]:
    loose = loose_form(listing.schema, _PROVIDER)
    try:
        schema, step = _strict(loose)
    except Inexact as obstacle:
        reason = f"not in strict mode: {obstacle.reason}"
        lint = ProviderLint("not-strict", _PROVIDER, loose.shown_at(obstacle.pointer), reason, obstacle.advice)
        return loose.schema, loose.step, (*loose.lints, lint), False
    return schema, step, loose.lints, True


def _strict(loose: Loose) -> tuple[Schema, Step]:
    if loose.made_from is None and loose.shown.keys().isdisjoint(_CLOSING):
        raise opened(())
    parts = loose.parts()
    if parts is None:
        raise Inexact((), "its references cannot be followed", "mend them")
    schema, step = strict_form(*parts)
    return schema, chain(step, loose.step)


def _described(text: str, schema: Schema) -> tuple[str, Schema, tuple[ProviderLint, ...]]:
    """A description within the limit; the rest of it stands before the parameters, where there is none."""
    if len(text) <= MAX_DESCRIPTION:
        return text, schema, ()
    cut = max(text.rfind("\n", 0, MAX_DESCRIPTION), text.rfind(" ", 0, MAX_DESCRIPTION)) + 1 or MAX_DESCRIPTION
    said = str(schema.get("description") or "")
    rest = f"{text[cut:]}\n{said}" if said else text[cut:]
    reason = f"{_PROVIDER} takes {MAX_DESCRIPTION:,} characters of description, and this one has {len(text):,}"
    lint = ProviderLint("description", _PROVIDER, "", reason, "the rest stands in the description of the parameters")
    return text[:cut], {**schema, "description": rest}, (lint,)


OPENAI = Format("openai", _PROVIDER, Spelling(_fit_chat, NAMES, MAX_TOOLS))
OPENAI_RESPONSES = Format("openai-responses", _PROVIDER, Spelling(_fit_responses, NAMES, MAX_TOOLS))
