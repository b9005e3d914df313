"""Tools as Gemini's function declarations take them (`name`, `description`, `parameters`).

Source: the Gemini API reference, "FunctionDeclaration": names of letters, digits, `_`, `.` and `-`, starting with a
letter or `_`, 64 at most; `parameters` in a subset of OpenAPI 3.0 (see `openapi`), left out when there are none. It
refuses what nests deeper than "the maximum allowed nesting depth" without saying what that is; reports of refused tools
(gemini-cli 5923 and 6031, Portkey's gateway 1616) begin at five levels of objects and arrays.
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, ProviderLint, Spelling
from gatewright.schema.formats.listing import Level, ToolListing
from gatewright.schema.formats.loose import loose_form
from gatewright.schema.formats.name import NameRule
from gatewright.schema.formats.openapi import openapi_form, spelled
from gatewright.schema.formats.step import KEEP, chain
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, pointer_text, properties_of

NAMES = NameRule(
    r"[a-zA-Z_][a-zA-Z0-9_.-]*", "[^a-zA-Z0-9_.-]", 64, "letters, digits, `_`, `.` and `-`, 64 at most", first="t_"
)
_PROVIDER = "Gemini"
SAFE_LEVELS = 4
"""Levels of objects and arrays that no report names as refused."""
_SAID: dict[str, tuple[str, str, Level]] = {
    "dropped": ("Gemini cannot say `{what}`", "it is left out, and the gate still checks it", "looser"),
    "other-keys": ("Gemini cannot forbid undeclared keys", "the gate still refuses them", "looser"),
    "json-text": ("sent as JSON text: {what}", "calls come back as values, and the gate still checks them", "looser"),
    "key": (
        "Gemini does not take the parameter name `{what}`",
        "it is sent under a fitted name and comes back",
        "note",
    ),
    "object-only": ("Gemini needs one type here", "only objects are asked for; declare the type", "narrower"),
}


def _fit(listing: ToolListing) -> Fitted:
    loose = loose_form(listing.schema, _PROVIDER)
    parts = loose.parts()
    if parts is None:
        return Fitted(lambda name: _body(name, listing, {}), KEEP, loose.lints)
    lints = [*loose.lints]

    def tell(code: str, place: Pointer, what: str) -> None:
        pointer = pointer_text(place)
        reason, advice, level = _SAID[code]
        reason = reason.format(what=what[:80])
        lints.append(ProviderLint(code, _PROVIDER, loose.shown_at(pointer), reason, advice, level))

    schema, step = openapi_form(*parts, tell)
    levels = _levels(schema)
    if levels > SAFE_LEVELS:
        reason = f"{levels} levels of objects and arrays: Gemini is known to refuse more than {SAFE_LEVELS} at times"
        lints.append(
            ProviderLint("deep", _PROVIDER, "", reason, "hide what nests that deep from this agent, or split it")
        )
    sent = spelled(schema)
    return Fitted(lambda name: _body(name, listing, sent), chain(step, loose.step), tuple(lints))


def _levels(schema: Schema) -> int:
    inner = [*properties_of(schema).values(), schema.get("items"), *schema.get("anyOf", ())]
    below = max((_levels(table) for one in inner if (table := as_object(one)) is not None), default=0)
    return below + (not {"object", "array"}.isdisjoint(as_list(schema.get("type")) or [schema.get("type")]))


def _body(name: str, listing: ToolListing, schema: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "description": listing.description}
    return {**body, "parameters": schema} if properties_of(schema) else body


GEMINI = Format("gemini", _PROVIDER, Spelling(_fit, NAMES))
