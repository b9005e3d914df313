"""Tools as Gemini's function declarations take them, in a subset of OpenAPI 3.0.

Source: the Gemini API reference, "Schema" and "FunctionDeclaration" (v1beta): names of letters, digits, `_`, `.` and
`-`, starting with a letter or `_`, 64 at most; no `parameters` for a tool without any. By reports, the service accepts
one `type` for each schema, `enum` of non-empty texts only, `anyOf` with nothing beside it (so the description of a
union goes to its first alternative), only arrays and objects that declare their elements and parameters, and only the
formats `enum` and `date-time`. The Vertex AI reference gives the rule for parameter names. So the format lacks
`additionalProperties`, `const`, `oneOf`, `allOf`, `not` and `$ref`. A value that the subset cannot describe is sent as
JSON text, and so is the target of a reference whose expansion would never end or grow too large.

The service refuses schemas beyond "the maximum allowed nesting depth" and names no number; reports of refused tools
(gemini-cli 5923 and 6031, Portkey's gateway 1616) begin at five levels of objects and arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gatewright.schema.combine import ANNOTATIONS, exclude_each_other, merge, values_of
from gatewright.schema.formats.format import (
    KEEP,
    Branch,
    Fitted,
    Format,
    Labels,
    NameRule,
    ProviderLint,
    Spelling,
    Step,
    Text,
    chain,
    either,
    fields,
    fit_names,
    items,
)
from gatewright.schema.formats.plain import Plain, by_type, is_anything, loose_form, with_text
from gatewright.schema.operation import Level, ToolListing
from gatewright.schema.walk import (
    Pointer,
    Schema,
    as_list,
    as_object,
    names_required,
    objects,
    pointer_text,
    properties_of,
    walk,
)

KEYS = NameRule(r"[a-zA-Z_][a-zA-Z0-9_]*", "[^a-zA-Z0-9_]", 64, "letters, digits and `_`, 64 at most", first="p_")
MAX_UNROLLED, MAX_REFERENCES, MAX_NODES = 1, 3, 1_000
"""Limits: how often a definition appears inside itself, how deep definitions nest, and how large the whole becomes."""
_NUMBERS = ("number", "integer")
_KEPT = {
    "string": frozenset({"minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
}
_ANY = "Any JSON value, as JSON text."
_LISTING = ANNOTATIONS | {"type", "enum", "const"}
"""The keywords of null and of listed values, and keywords that say nothing about them."""
TEXT: Step = Text()
Tell = Callable[[str, Pointer, str], None]
"""Takes a code, the place in the agent's schema, and the keyword or reason."""


def openapi_form(plain: Plain, root: Schema, tell: Tell) -> tuple[Schema, Step]:
    """Rewrite ``root`` in the subset, still as JSON Schema, and return its step; `spell` gives the provider's
    spelling.
    """
    return _Writer(plain, tell).node(root, (), ())


def spell(schema: Schema) -> Schema:
    """Write the provider's spelling: types in capitals, null as `nullable`."""
    result: Schema = {}
    for keyword, value in schema.items():
        match keyword:
            case "type":
                kinds = [str(kind) for kind in as_list(value) or [value]]
                result["type"] = next(kind for kind in kinds if kind != "null").upper()
                if "null" in kinds:
                    result["nullable"] = True
            case "enum":
                result |= {"format": "enum", "enum": [item for item in value if item is not None]}
            case "properties":
                result["properties"] = {name: spell(item) for name, item in value.items()}
            case "anyOf":
                result["anyOf"] = [spell(item) for item in value]
            case "items":
                result["items"] = spell(value)
            case _:
                result[keyword] = value
    return result


class _Writer:
    """One rewriting of one schema."""

    def __init__(self, plain: Plain, tell: Tell) -> None:
        self._plain = plain
        self._tell = tell
        self._nodes = 0

    def node(self, schema: Schema, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        self._nodes += 1
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, place, inside)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema, keyword, place, inside)
        if is_anything(schema):
            return _as_text(schema, _ANY), TEXT
        if "type" not in schema and values_of(schema) is None and set(schema) & {"properties", "required"}:
            self._tell("object-only", place, "")
            schema = {**schema, "type": "object"}
        parts = by_type(schema)
        if not parts:
            return self._text(schema, place, "no value fits")
        nullable, parts = self._without_null(parts, place)
        if not parts:
            return _explain({"type": "string", "enum": ["null"]}, schema), Labels((("null", None),))
        if len(parts) > 1:
            return self._branches([_bare(part) for part in parts], schema, nullable, place, inside)
        sent, step = self._single(parts[0], place, inside)
        return (_nullable(sent) if nullable else sent), step

    def _text(self, schema: Schema, place: Pointer, reason: str) -> tuple[Schema, Step]:
        self._tell("json-text", place, reason)
        return _as_text(schema, "As JSON text."), TEXT

    def _reference(self, schema: Schema, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        reference = str(schema["$ref"])
        name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        target = as_object(self._plain.definitions.get(name))
        if target is None or inside.count(name) > MAX_UNROLLED or len(inside) > MAX_REFERENCES:
            return self._text(schema, place, f"it refers to itself, and here is level {len(inside) + 1} of it")
        if self._nodes > MAX_NODES:
            return self._text(schema, place, f"more than {MAX_NODES:,} schemas would be written out")
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        joined = merge(rest, target)
        if joined is None:
            self._tell("dropped", place, "$ref")
            joined = target
        return self.node(joined, place, (*inside, name))

    def _union(self, schema: Schema, keyword: str, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        branches = [self._look_up(branch, inside) for branch in objects(schema[keyword])]
        if keyword == "oneOf" and not exclude_each_other(branches):
            self._tell("dropped", place, "oneOf")
        rest = {key: value for key, value in schema.items() if key != keyword and key not in ANNOTATIONS}
        if rest:
            joined = [merge(rest, branch) for branch in branches]
            if any(branch is None for branch in joined):
                for left in sorted(set(rest) - {"type"}):
                    self._tell("dropped", (*place, left), left)
                if "type" not in rest:
                    joined = branches
                else:
                    joined = [merge({"type": rest["type"]}, branch) for branch in branches]
            branches = [branch for branch in joined if branch is not None]
        flat = [part for branch in branches for part in (_by_type(branch))]
        nullable, flat = self._without_null(flat, (*place, keyword))
        return self._branches(flat, schema, nullable, (*place, keyword), inside)

    def _without_null(self, parts: list[Schema], place: Pointer) -> tuple[bool, list[Schema]]:
        """Tell whether null is among the alternatives, and return the others; a description of null cannot be sent."""
        nulls = [part for part in parts if part.get("type") == "null"]
        others = [part for part in parts if part.get("type") != "null"]
        told = _LISTING.union(*others)
        for keyword in sorted({keyword for part in nulls for keyword in part} - told):
            self._tell("dropped", (*place, keyword), keyword)
        return bool(nulls), others

    def _look_up(self, branch: Schema, inside: tuple[str, ...]) -> Schema:
        """Resolve an alternative that is nothing but a reference, so that its type is visible."""
        name = str(branch.get("$ref", "")).removeprefix("#/$defs/")
        target = as_object(self._plain.definitions.get(name))
        return (
            target if target is not None and set(branch) == {"$ref"} and inside.count(name) < MAX_UNROLLED else branch
        )

    def _branches(
        self, branches: list[Schema], schema: Schema, nullable: bool, place: Pointer, inside: tuple[str, ...]
    ) -> tuple[Schema, Step]:
        if not branches:
            return self._text(schema, place, "no value fits")
        known: list[Branch] = []
        for index, own in enumerate(branches):
            sent, step = self.node(own, (*place, index), inside)
            inner = sent.get("anyOf")
            if isinstance(inner, list):
                return self._text(schema, place, "an alternative has alternatives")
            known.append(Branch(sent, self._whole(own), step))
        if len(known) == 1:
            sent = {**known[0].sent, **{key: schema[key] for key in ("title",) if key in schema}}
            sent = _explain(with_text(sent, str(schema.get("description") or "")), schema)
            return (_nullable(sent) if nullable else sent), known[0].step
        texts = [branch for branch in known if branch.sent.get("type") in ("string", ["string", "null"])]
        if len(texts) > 1 and any(branch.step is not KEEP for branch in texts):
            return self._text(schema, place, "its alternatives cannot be told apart")
        step = KEEP if all(branch.step is KEEP for branch in known) else either(known)
        sent = [_nullable(branch.sent) if nullable else branch.sent for branch in known]
        said = _explain({}, schema)
        first = {**sent[0], **{key: text for key, text in said.items() if key == "title"}}
        if "description" in said:
            first["description"] = "\n".join((said["description"], *[first[k] for k in ("description",) if k in first]))
        return {"anyOf": [first, *sent[1:]]}, step

    def _whole(self, schema: Schema) -> Schema:
        refers = any("$ref" in node for _, node in walk(schema))
        return {**schema, "$defs": self._plain.definitions} if refers else schema

    def _single(self, schema: Schema, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        kind = str(schema["type"])
        values = values_of(schema)
        if values is not None:
            for keyword in sorted(schema.keys() - _LISTING):
                self._tell("dropped", (*place, keyword), keyword)
            return self._values(schema, values, kind)
        if kind == "object":
            return self._object(schema, place, inside)
        if kind == "array":
            return self._array(schema, place, inside)
        result: Schema = {"type": kind, **_texts(schema)}
        for keyword, value in schema.items():
            if keyword in _KEPT.get(kind, ()):
                result[keyword] = value
            elif keyword in ("exclusiveMinimum", "exclusiveMaximum") and kind == "integer":
                bound, least = _bound(keyword, value)
                result[bound] = (
                    least if bound not in result else (max if bound == "minimum" else min)(result[bound], least)
                )
            elif keyword == "format":
                result = {**result, "format": value} if value == "date-time" else with_text(result, f"Format: {value}.")
            elif keyword not in ANNOTATIONS | {"type"}:
                self._tell("dropped", (*place, keyword), keyword)
        for keyword, pick in (("minimum", max), ("maximum", min)):
            if keyword in schema and kind == "integer":
                result[keyword] = pick(result[keyword], schema[keyword])
        return _explain(result, schema), KEEP

    @staticmethod
    def _values(schema: Schema, values: list[Any], kind: str) -> tuple[Schema, Step]:
        if kind == "boolean" and len(values) == 2:
            return _explain({"type": "boolean"}, schema), KEEP
        if kind == "string" and "" not in values:
            return _explain({"type": "string", "enum": values}, schema), KEEP
        labels = [json.dumps(value, ensure_ascii=False) if kind != "string" or not value else value for value in values]
        result = _explain({"type": "string", "enum": labels}, schema)
        return result, Labels(tuple(zip(labels, values, strict=True)))

    def _array(self, schema: Schema, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        for keyword in set(schema) - ANNOTATIONS - _KEPT["array"] - {"type", "items"}:
            self._tell("dropped", (*place, keyword), keyword)
        inner = as_object(schema.get("items"))
        if inner is None or "prefixItems" in schema:
            inner = {}
        sent, step = self.node(inner, (*place, "items"), inside)
        kept = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
        return _explain({"type": "array", "items": sent, **kept}, schema), items(step)

    def _object(self, schema: Schema, place: Pointer, inside: tuple[str, ...]) -> tuple[Schema, Step]:
        properties = properties_of(schema)
        required = names_required(schema)
        declared: Schema = {**properties, **{name: {} for name in required if name not in properties}}
        if not declared and place:
            return self._text(schema, place, "an object without declared keys cannot be described")
        kept = _KEPT["object"] if declared else frozenset[str]()
        for keyword in sorted(set(schema) - ANNOTATIONS - kept - {"type", "properties", "required"}):
            closed = keyword == "additionalProperties" and schema[keyword] is False
            self._tell("other-keys" if closed else "dropped", (*place, keyword), keyword)
        names = fit_names(declared, KEYS)
        sent: Schema = {}
        steps: dict[str, Step] = {}
        for name, value in declared.items():
            here = (*place, "properties", name)
            if names[name] != name:
                self._tell("key", here, name)
            sent[names[name]], steps[name] = self.node(as_object(value) or {}, here, inside)
        result: Schema = {"type": "object", "properties": sent}
        if required:
            result["required"] = [names[name] for name in dict.fromkeys(required)]
        result |= {key: schema[key] for key in ("minProperties", "maxProperties") if key in schema}
        return _explain(result, schema), fields(names, steps)


def _bare(part: Schema) -> Schema:
    return {key: value for key, value in part.items() if key not in ANNOTATIONS}


def _by_type(schema: Schema) -> list[Schema]:
    """Split an alternative by type, if it only names types."""
    if "type" not in schema or {"anyOf", "oneOf", "$ref"} & set(schema):
        return [schema]
    return by_type(schema)


def _bound(keyword: str, value: Any) -> tuple[str, int]:
    """Return the inclusive bound for whole numbers."""
    if keyword == "exclusiveMinimum":
        return "minimum", int(value // 1) + 1
    return "maximum", -(int(-value // 1) + 1)


def _as_text(schema: Schema, hint: str) -> Schema:
    said = {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
    return with_text(_explain({"type": "string", **said}, schema), hint)


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [_nullable(branch) for branch in schema["anyOf"]]}
    if isinstance(schema.get("type"), list):
        return schema
    listed = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **listed}


def _texts(schema: Schema) -> Schema:
    return {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str) and schema[key]}


def _explain(result: Schema, schema: Schema) -> Schema:
    """Add the texts of ``schema``, and its default and examples as words, since they may not fit the rewritten
    schema.
    """
    result = {**result, **{key: text for key, text in _texts(schema).items() if key not in result}}
    if schema.get("default") is not None:
        result = with_text(result, f"Default: {json.dumps(schema['default'], ensure_ascii=False)}.")
    return result


__all__ = ["KEYS", "openapi_form", "spell"]


NAMES = NameRule(
    r"[a-zA-Z_][a-zA-Z0-9_.-]*", "[^a-zA-Z0-9_.-]", 64, "letters, digits, `_`, `.` and `-`, 64 at most", first="t_"
)
_PROVIDER = "Gemini"
SAFE_LEVELS = 4
"""Levels of objects and arrays that were never reported as refused."""
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
        lints.append(ProviderLint(code, _PROVIDER, loose.pointer_in_shown(pointer), reason, advice, level))

    schema, step = openapi_form(*parts, tell)
    levels = _levels(schema)
    if levels > SAFE_LEVELS:
        reason = f"{levels} levels of objects and arrays: Gemini is known to refuse more than {SAFE_LEVELS} at times"
        lints.append(
            ProviderLint("deep", _PROVIDER, "", reason, "hide what nests that deep from this agent, or split it")
        )
    sent = spell(schema)
    return Fitted(lambda name: _body(name, listing, sent), chain(step, loose.step), tuple(lints))


def _levels(schema: Schema) -> int:
    inner = [*properties_of(schema).values(), schema.get("items"), *schema.get("anyOf", ())]
    below = max((_levels(table) for one in inner if (table := as_object(one)) is not None), default=0)
    return below + (not {"object", "array"}.isdisjoint(as_list(schema.get("type")) or [schema.get("type")]))


def _body(name: str, listing: ToolListing, schema: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "description": listing.description}
    return {**body, "parameters": schema} if properties_of(schema) else body


GEMINI = Format("gemini", _PROVIDER, Spelling(_fit, NAMES))
