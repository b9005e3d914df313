"""Tools as Gemini's function declarations take them (`name`, `description`, `parameters`).

Source: the Gemini API reference, "FunctionDeclaration": names of letters, digits, `_`, `.` and `-`, starting with a
letter or `_`, 64 at most; `parameters` in a subset of OpenAPI 3.0 (see `openapi`), left out when there are none.
"""

from __future__ import annotations

from typing import Any

from gatewright.schema.formats.format import Fitted, Format, Level, ProviderLint, Spelling, ToolListing
from gatewright.schema.formats.loose import loose_form
from gatewright.schema.formats.name import NameRule
from gatewright.schema.formats.openapi import openapi_form, spelled
from gatewright.schema.formats.step import KEEP, chain
from gatewright.schema.walk import Pointer, pointer_text, properties_of

NAMES = NameRule(
    r"[a-zA-Z_][a-zA-Z0-9_.-]*", "[^a-zA-Z0-9_.-]", 64, "letters, digits, `_`, `.` and `-`, 64 at most", first="t_"
)
_PROVIDER = "Gemini"
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
    lints = [lint for lint in loose.lints if lint.code != "format"]

    def tell(code: str, place: Pointer, what: str) -> None:
        pointer = pointer_text(place)
        reason, advice, level = _SAID[code]
        reason = reason.format(what=what[:80])
        lints.append(ProviderLint(code, _PROVIDER, loose.shown_at(pointer), reason, advice, level))

    schema, step = openapi_form(*parts, tell)
    sent = spelled(schema)
    return Fitted(lambda name: _body(name, listing, sent), chain(step, loose.step), tuple(lints))


def _body(name: str, listing: ToolListing, schema: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "description": listing.description}
    return {**body, "parameters": schema} if properties_of(schema) else body


GEMINI = Format("gemini", _PROVIDER, Spelling(_fit, NAMES))
