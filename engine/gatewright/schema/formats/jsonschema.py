"""Formats that take JSON Schema: MCP as it is, genai and Anthropic with a plain object at the root.

Source for MCP: the specification's revision 2025-11-25, "Tools": `inputSchema` and, if there are structured results,
`outputSchema` have `type: object` and are 2020-12 unless they say otherwise; names of 1 to 128 letters, digits, `_`,
`-`, `.`.

The Rust crate `genai` (`chat::Tool`: `name`, `description`, `schema`) passes the schema to the provider of the model,
so its format is one that all providers take.

Sources for Anthropic: its guide "Tool use" (`name` within `^[a-zA-Z0-9_-]{1,64}$`, `description`, `input_schema`);
other rules from answers of the service: "input_schema does not support oneOf, allOf, or anyOf at the top level",
"Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", "JSON schema is invalid. It must match JSON Schema draft
2020-12". The format renames parameters that it refuses if a step can restore the name; inside `not`, `if`, `allOf` and
the like, and under patterns for keys, the name stays and gets a lint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatewright.schema.formats.format import (
    KEEP,
    Branch,
    Fitted,
    Format,
    NameRule,
    ProviderLint,
    Spelling,
    Step,
    chain,
    either,
    fields,
    fit_names,
    items,
)
from gatewright.schema.formats.plain import NAMES, loose_form
from gatewright.schema.operation import ToolListing
from gatewright.schema.walk import (
    Pointer,
    Schema,
    as_list,
    as_object,
    names_required,
    pointer_text,
    properties_of,
    walk,
)

MCP_NAMES = NameRule(r"[a-zA-Z0-9_.-]+", "[^a-zA-Z0-9_.-]", 128, "1 to 128 letters, digits, `_`, `-` and `.`")


def _fit_mcp(listing: ToolListing) -> Fitted:
    shown = listing.schema
    schema = shown if shown.get("type") == "object" else {**shown, "type": "object"}

    def body(name: str) -> dict[str, Any]:
        told = {"name": name, "description": listing.description, "inputSchema": schema}
        return told if listing.output is None else {**told, "outputSchema": listing.output}

    return Fitted(body)


MCP = Format("mcp", "MCP", Spelling(_fit_mcp, MCP_NAMES))


def _fit_genai(listing: ToolListing) -> Fitted:
    loose = loose_form(listing.schema, "genai")

    def body(name: str) -> dict[str, Any]:
        return {"name": name, "description": listing.description, "schema": loose.schema}

    return Fitted(body, loose.step, loose.lints)


GENAI = Format("genai", "genai", Spelling(_fit_genai, NAMES))


_BESIDE = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties"}
) | {
    "propertyNames",
    "unevaluatedProperties",
    "$ref",
    "enum",
    "const",
}
Tell = Callable[[str, str, bool], None]
"""Takes the pointer of a parameter, its name, and True if it could be renamed."""


def all_fit(schema: Schema, rule: NameRule) -> bool:
    """Tell whether every property name in the schema fits."""
    return all(rule.fits(name) for _, node in walk(schema) for name in properties_of(node))


def with_fit_keys(schema: Schema, rule: NameRule, tell: Tell, place: Pointer = ()) -> tuple[Schema, Step]:
    """Rename the keys in ``schema`` that break ``rule``, and return the step that undoes it."""
    if all_fit(schema, rule):
        return schema, KEEP
    unions = [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]
    properties = properties_of(schema)
    if properties and (_BESIDE & set(schema) or unions):
        return _report_names(schema, rule, tell, place), KEEP
    if unions:
        return (
            _union(schema, unions[0], rule, tell, place)
            if len(unions) == 1
            else (_report_names(schema, rule, tell, place), KEEP)
        )
    if properties:
        return _object(schema, rule, tell, place)
    inner = as_object(schema.get("items"))
    if inner is not None and "prefixItems" not in schema:
        sent, step = with_fit_keys(inner, rule, tell, (*place, "items"))
        return {**schema, "items": sent}, items(step)
    return _report_names(schema, rule, tell, place), KEEP


def _object(schema: Schema, rule: NameRule, tell: Tell, place: Pointer) -> tuple[Schema, Step]:
    properties = properties_of(schema)
    names = fit_names(properties, rule)
    sent: Schema = {}
    steps: dict[str, Step] = {}
    for name, value in properties.items():
        here = (*place, "properties", name)
        if names[name] != name:
            tell(pointer_text(here), name, True)
        inner = as_object(value)
        sent[names[name]], steps[name] = (value, KEEP) if inner is None else with_fit_keys(inner, rule, tell, here)
    result = {**schema, "properties": sent}
    if "required" in schema:
        result["required"] = [names.get(name, name) for name in names_required(schema)]
    return result, fields(names, steps)


def _union(schema: Schema, keyword: str, rule: NameRule, tell: Tell, place: Pointer) -> tuple[Schema, Step]:
    branches = as_list(schema[keyword]) or []
    sent: list[Any] = []
    known: list[Branch] = []
    for index, branch in enumerate(branches):
        own = as_object(branch)
        if own is None:
            return _report_names(schema, rule, tell, place), KEEP
        written, step = with_fit_keys(own, rule, tell, (*place, keyword, index))
        sent.append(written)
        known.append(Branch(written, own, step))
    return {**schema, keyword: sent}, either(known)


def _report_names(schema: Schema, rule: NameRule, tell: Tell, place: Pointer) -> Schema:
    for pointer, node in walk(schema, place):
        for name in properties_of(node):
            if not rule.fits(name):
                tell(pointer_text((*pointer, "properties", name)), name, False)
    return schema


KEYS = NameRule(r"[a-zA-Z0-9_.-]+", "[^a-zA-Z0-9_.-]", 64, "1 to 64 letters, digits, `_`, `.` and `-`")
_PROVIDER = "Anthropic"


def _fit_anthropic(listing: ToolListing) -> Fitted:
    loose = loose_form(listing.schema, _PROVIDER)
    lints = list(loose.lints)

    def tell(pointer: str, name: str, renamed: bool) -> None:
        reason = f"{_PROVIDER} takes parameter names of {KEYS.words}, and `{name[:80]}` is none"
        advice = "it is sent under a fitted name, and calls come back under its own" if renamed else "rename it"
        lints.append(
            ProviderLint(
                "key", _PROVIDER, loose.pointer_in_shown(pointer), reason, advice, "note" if renamed else "refused"
            )
        )

    schema, keys = with_fit_keys(loose.schema, KEYS, tell)

    def body(name: str) -> dict[str, Any]:
        return {"name": name, "description": listing.description, "input_schema": schema}

    return Fitted(body, chain(keys, loose.step), tuple(lints))


ANTHROPIC = Format("anthropic", _PROVIDER, Spelling(_fit_anthropic, NAMES))
