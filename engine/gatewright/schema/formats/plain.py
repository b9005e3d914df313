"""Writes a schema in a plain form that accepts the same values; every provider's spelling starts from it.

The form is draft 2020-12 with inlined references, unions of constants as enums, merged conjunctions, and without
keywords that change nothing; its root is a plain object. A schema that a provider takes unchanged stays unchanged.
https://json-schema.org/draft/2020-12/release-notes lists the changes since draft 7. `format` stays, as the note that it
is in every draft.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.schema.check import SchemaChecker
from gatewright.schema.combine import ANNOTATIONS, merge, same_json, types_of, values_of
from gatewright.schema.formats.format import KEEP, NameRule, ProviderLint, Step, Wrapped
from gatewright.schema.inline import inline_references
from gatewright.schema.walk import (
    NEW_ONLY,
    Schema,
    as_list,
    as_object,
    is_draft_7,
    map_children,
    names_required,
    objects,
    properties_of,
    walk,
)

_OLD = ("draft-07", "draft-06", "draft-04")
_DROPPED = frozenset({"$schema", "$id", "$anchor", "$comment", "definitions"})
OBJECT_MAPS = frozenset({"properties", "patternProperties"})
OBJECT_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
OBJECTS = frozenset({"items", "contains", "propertyNames", "not", "if", "then", "else"})
"""Keywords under which providers take only objects as schemas, not `true` or `false`."""
_LISTING = frozenset({"const", "enum", "type"})
_UNION_KEYS = _LISTING | {"title", "description", "deprecated"}


@frozen
class Plain:
    """The plain form; ``definitions`` are the recursive ones, which it names `#/$defs/...`."""

    schema: Schema
    definitions: Schema = field(default_factory=dict[str, Any])


def plain_form(shown: Schema) -> Plain:
    """Return the plain form of a tool's schema. Raises SchemaError for references that cannot be followed."""
    old = any(draft in str(shown.get("$schema", "")) for draft in _OLD)
    inlined = inline_references(shown)
    definitions = dict(as_object(inlined.get("$defs")) or {})
    body = {key: value for key, value in inlined.items() if key not in ("$defs", "definitions")}
    if inlined is not shown and _refers_to_root([body, definitions]):
        name = "root" if "root" not in definitions else "whole"
        definitions[name] = body
        body, definitions = _redirect(body, name), _redirect(definitions, name)
    tidy = _Tidier(old=old, counts=any("unevaluatedProperties" in node for _, node in walk(inlined)))
    whole = tidy.schema(body)
    if whole.get("type") != "object":
        whole = merge({"type": "object"}, whole) or {"type": "object", "allOf": [whole]}
    kept = {name: tidy.schema(table) for name, value in definitions.items() if (table := as_object(value)) is not None}
    return Plain(whole, kept)


def _refers_to_root(value: Any) -> bool:
    stack = [value]
    while stack:
        current = stack.pop()
        table = as_object(current)
        if table is not None:
            if table.get("$ref") == "#":
                return True
            stack.extend(table.values())
        stack.extend(as_list(current) or [])
    return False


def _redirect(value: Any, name: str) -> Any:
    table, array = as_object(value), as_list(value)
    if table is not None:
        whole = {key: _redirect(item, name) for key, item in table.items()}
        return {**whole, "$ref": f"#/$defs/{name}"} if table.get("$ref") == "#" else whole
    return value if array is None else [_redirect(item, name) for item in array]


class _Tidier:
    """One rewriting of one document."""

    def __init__(self, *, old: bool, counts: bool) -> None:
        self._old = old
        self._counts = counts
        """True if a schema depends on which properties others describe: a permission for any property then stays."""

    def schema(self, schema: Schema) -> Schema:
        current = self._modern(schema) if self._old else schema
        current = {key: value for key, value in current.items() if key not in _DROPPED}
        current = map_children(current, self.schema)
        current = _without_idle(_close(_with_objects(current)))
        if not self._counts and current.get("additionalProperties") in (True, {}):
            del current["additionalProperties"]
        return self._fit_values(_merge_all(_enumerate(_unwrap_single(current))))

    def _fit_values(self, schema: Schema) -> Schema:
        """Drop listed values that break neighbouring keywords, then drop these keywords."""
        values, kinds = values_of(schema), types_of(schema)
        if values is None or any("$ref" in node for _, node in walk(schema)):
            return schema
        said = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        if schema.keys() <= _LISTING | ANNOTATIONS and all(is_of_one(value, kinds) for value in values):
            return schema
        dialect = {"$schema": "http://json-schema.org/draft-07/schema#"} if self._old else {}
        checker = SchemaChecker({**schema, **dialect})
        kept = [value for value in values if checker.is_valid(value)]
        if not kept:
            return {**said, "not": {}}
        held = [kind for kind in kinds or () if any(is_of_type(value, kind) for value in kept)]
        return {**said, **({"type": held[0] if len(held) == 1 else held} if held else {}), "enum": kept}

    @staticmethod
    def _modern(schema: Schema) -> Schema:
        """Write draft 7 as 2020-12: change tuples and dependencies, drop words that draft 7 does not know."""
        current = {key: value for key, value in schema.items() if key not in NEW_ONLY}
        tuple_items = as_list(current.get("items"))
        rest = current.pop("additionalItems", None)
        if tuple_items is not None:
            current["prefixItems"] = tuple_items
            del current["items"]
            if rest is not None:
                current["items"] = rest
        for key, value in (as_object(current.pop("dependencies", None)) or {}).items():
            kind = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
            current[kind] = {**current.get(kind, {}), key: value}
        if "dependentSchemas" in current:
            current["dependentSchemas"] = {
                key: value if isinstance(value, dict) else _as_schema(value)
                for key, value in current["dependentSchemas"].items()
            }
        return current


def _as_schema(value: Any) -> Any:
    return {} if value is True else {"not": {}} if value is False else value


def _with_objects(schema: Schema) -> Schema:
    """Replace `true` and `false` by objects where providers take only objects."""
    result = dict(schema)
    for keyword in OBJECT_MAPS & schema.keys():
        if (table := as_object(schema[keyword])) is not None:
            result[keyword] = {name: _as_schema(value) for name, value in table.items()}
    for keyword in OBJECT_LISTS & schema.keys():
        if (branches := as_list(schema[keyword])) is not None:
            result[keyword] = [_as_schema(branch) for branch in branches]
    for keyword in OBJECTS & schema.keys():
        result[keyword] = _as_schema(schema[keyword])
    return result


def _without_idle(schema: Schema) -> Schema:
    """Drop keywords that allow everything."""
    names = as_object(schema.get("propertyNames"))
    required = len(set(names_required(schema)))
    idle: dict[str, bool] = {
        "required": schema.get("required") == [],
        "uniqueItems": schema.get("uniqueItems") is False,
        "patternProperties": schema.get("patternProperties") == {},
        "propertyNames": names is not None
        and not set(names) - ANNOTATIONS - {"type"}
        and names.get("type", "string") == "string",
        "minProperties": isinstance(least := schema.get("minProperties"), int) and least <= required,
        **{keyword: schema.get(keyword) == 0 for keyword in ("minLength", "minItems")},
        **{keyword: schema.get(keyword) == {} for keyword in ("dependentRequired", "dependentSchemas")},
    }
    return {key: value for key, value in schema.items() if not idle.get(key, False)}


def _close(schema: Schema) -> Schema:
    """Write `unevaluatedProperties: false` as `additionalProperties: false` where nothing else describes properties."""
    if schema.get("unevaluatedProperties") is not False:
        return schema
    others = {"anyOf", "oneOf", "allOf", "if", "then", "else", "not", "$ref", "dependentSchemas", "patternProperties"}
    if others & set(schema) or "additionalProperties" in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "unevaluatedProperties"}
    return {**rest, "additionalProperties": False}


def _unwrap_single(schema: Schema) -> Schema:
    """Replace a union of one alternative by that alternative."""
    for keyword in ("oneOf", "anyOf"):
        branches = as_list(schema.get(keyword)) or []
        only = as_object(branches[0]) if len(branches) == 1 else None
        if only is None:
            continue
        rest = {key: value for key, value in schema.items() if key not in (keyword, "discriminator")}
        if (joined := merge(rest, only)) is not None:
            return _unwrap_single(joined)
    return schema


def _enumerate(schema: Schema) -> Schema:
    """Write a union of constants as an enum with their descriptions as text, and narrow an `enum` beside it."""
    for keyword in ("oneOf", "anyOf"):
        branches = objects(schema.get(keyword))
        if not branches or len(branches) != len(schema[keyword]):
            continue
        values = [values_of(branch) for branch in branches]
        if any(value is None for value in values) or any(set(branch) - _UNION_KEYS for branch in branches):
            continue
        kept = [
            value
            for branch, own in zip(branches, values, strict=True)
            for value in own or []
            if is_of_one(value, types_of(branch))
        ]
        if keyword == "oneOf" and any(
            same_json(value, other) for i, value in enumerate(kept) for other in kept[i + 1 :]
        ):
            continue
        rest = {key: value for key, value in schema.items() if key not in (keyword, "discriminator")}
        types = {str(branch.get("type")) for branch in branches}
        listed: Schema = {"enum": _distinct(kept)}
        if len(types) == 1 and types != {"None"} and "type" not in rest and isinstance(branches[0]["type"], str):
            listed = {"type": branches[0]["type"], **listed}
        joined = merge(rest, listed) if kept else None
        if joined is not None:
            return _describe(joined, branches, values)
    return schema


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(same_json(value, other) for other in kept):
            kept.append(value)
    return kept


def _describe(schema: Schema, branches: list[Schema], values: list[list[Any] | None]) -> Schema:
    lines = [
        f"`{own[0]}`: {text}"
        for branch, own in zip(branches, values, strict=True)
        if own and len(own) == 1 and isinstance(text := branch.get("description") or branch.get("title"), str)
        if any(same_json(own[0], kept) for kept in schema["enum"])
    ]
    return with_text(schema, "\n".join(lines)) if lines else schema


def with_text(schema: Schema, text: str) -> Schema:
    """Put ``text`` after the description of ``schema``."""
    said = schema.get("description")
    if not isinstance(said, str):
        said = ""
    if text in said:
        return schema
    return {**schema, "description": f"{said}\n{text}" if said else text}


def _merge_all(schema: Schema) -> Schema:
    """Merge a conjunction into one schema, if one schema can express it."""
    branches = objects(schema.get("allOf"))
    if not branches or len(branches) != len(schema["allOf"]):
        return schema
    result: Schema | None = {key: value for key, value in schema.items() if key != "allOf"}
    for branch in branches:
        result = merge(result, branch) if result is not None else None
    return schema if result is None else result


def is_of_type(value: Any, kind: str) -> bool:
    """Tell whether a JSON value is of a type of JSON Schema."""
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def is_of_one(value: Any, kinds: list[str] | None) -> bool:
    """Tell whether a JSON value is of one of the types, or of any type if none are named."""
    return kinds is None or any(is_of_type(value, kind) for kind in kinds)


ALL_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_OF_TYPE = {
    "string": {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}
    | {"unevaluatedItems"},
    "object": {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"}
    | {"maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"},
}
_OF_TYPE["integer"] = _OF_TYPE["number"]
_TYPED = frozenset(keyword for keywords in _OF_TYPE.values() for keyword in keywords)


def by_type(schema: Schema) -> list[Schema]:
    """Split ``schema`` into one schema for each type that it allows, with the keywords for that type."""
    if schema.get("not") == {}:
        return []
    kinds, values = types_of(schema), values_of(schema)
    if kinds is None:
        kinds = (
            list(ALL_TYPES)
            if values is None
            else [next(kind for kind in ALL_TYPES if is_of_type(value, kind)) for value in values]
        )
    kinds = [kind for kind in dict.fromkeys(kinds) if kind != "integer" or "number" not in kinds]
    result: list[Schema] = []
    for kind in kinds:
        keep = _OF_TYPE.get(kind, set[str]())
        part = {key: value for key, value in schema.items() if key not in _TYPED or key in keep}
        part["type"] = kind
        if values is not None:
            part.pop("const", None)
            part["enum"] = [value for value in values if is_of_type(value, kind)]
            if not part["enum"]:
                continue
        result.append(part)
    return result


def is_anything(schema: Schema) -> bool:
    """Tell whether every value fits, judged by keywords alone."""
    return not set(schema) - ANNOTATIONS


NAMES = NameRule(r"[a-zA-Z0-9_-]+", "[^a-zA-Z0-9_-]", 64, "1 to 64 letters, digits, `_` and `-`")
_PLAIN_ONLY = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "definitions", "dependencies", "additionalItems"})


@frozen
class Loose:
    """A schema whose root has no refused keywords, the step that undoes the rewriting, and the original."""

    schema: Schema
    step: Step
    lints: tuple[ProviderLint, ...]
    shown: Schema
    made_from: tuple[Plain, Schema] | None = None

    def parts(self) -> tuple[Plain, Schema] | None:
        """Return the plain form, and its root as sent: wrapped if providers refuse it. None without a plain form."""
        if self.made_from is not None or any(lint.level == "refused" for lint in self.lints):
            return self.made_from
        plain = plain_form(self.shown)
        return plain, plain.schema

    def pointer_in_shown(self, pointer: str) -> str:
        """Translate a pointer in the sent root to one in the agent's schema."""
        return pointer.removeprefix(f"/properties/{self.step.key}") if isinstance(self.step, Wrapped) else pointer


def loose_form(shown: Schema, provider: str) -> Loose:
    """Write ``shown`` for providers that have no subset of their own."""
    if _is_taken_as_it_is(shown):
        return Loose(_with_root(shown), KEEP, (), shown)
    try:
        plain = plain_form(shown)
    except SchemaError as error:
        lint = ProviderLint("reference", provider, "", str(error), "mend the references of the schema", "refused")
        return Loose(shown, KEEP, (lint,), shown)
    root, step = wrap(plain.schema)
    lints: list[ProviderLint] = []
    if step is not KEEP:
        key = next(iter(root["properties"]))
        keyword = obstacles_at(plain.schema)[0]
        reason = f"{provider} refuses `{keyword}` at the root, so the arguments are sent as the parameter `{key}`"
        lints.append(ProviderLint("root-wrapped", provider, f"/{keyword}", reason, "calls come back unwrapped"))
    schema = {**root, "$defs": plain.definitions} if plain.definitions else root
    return Loose(_with_root(schema), step, tuple(lints), shown, (plain, root))


def _is_taken_as_it_is(shown: Schema) -> bool:
    """Tell whether every provider takes ``shown`` unchanged."""
    if shown.get("type") != "object" or obstacles_at(shown):
        return False
    idle = NEW_ONLY if is_draft_7(shown) else frozenset[str]()
    for _, node in walk(shown):
        if not idle.isdisjoint(node):
            return False
        if not _PLAIN_ONLY.isdisjoint(node) or ("enum" in node and ("oneOf" in node or "anyOf" in node)):
            return False
        if _holds_boolean(node) or isinstance(node.get("items"), list) or _lacks_items(node):
            return False
    return True


def _holds_boolean(node: Schema) -> bool:
    """Tell whether `true` or `false` is used as a schema where providers take only objects."""
    held = [node[keyword] for keyword in OBJECTS & node.keys()]
    for keyword in OBJECT_MAPS & node.keys():
        held += (as_object(node[keyword]) or {}).values()
    for keyword in OBJECT_LISTS & node.keys():
        held += as_list(node[keyword]) or []
    return any(isinstance(one, bool) for one in held)


def _with_root(schema: Schema) -> Schema:
    result = _with_items(schema)
    return result if "properties" in result else {**result, "properties": {}}


def _with_items(value: Any) -> Any:
    """Give every schema that allows arrays a schema for the elements, even an empty one."""
    table = as_object(value)
    if table is None:
        return value
    if not any(_lacks_items(node) for _, node in walk(table)):
        return table
    current = map_children(table, _with_items)
    return {**current, "items": {}} if _lacks_items(current) else current


def _lacks_items(node: Schema) -> bool:
    return "items" not in node and "array" in (as_list(node.get("type")) or [node.get("type")])


REFUSED_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref")
_KEYS = ("input", "arguments", "call", "input_object")


def obstacles_at(root: Schema) -> tuple[str, ...]:
    """Return the keywords of ``root`` that function calling does not allow at the root."""
    return tuple(keyword for keyword in REFUSED_AT_ROOT if keyword in root)


def wrap(root: Schema) -> tuple[Schema, Step]:
    """Make ``root`` the only parameter of an object, and return the step that undoes it."""
    if not obstacles_at(root):
        return root, KEEP
    known = {name for _, node in walk(root) for name in properties_of(node)}
    key = next((key for key in _KEYS if key not in known), "_".join(_KEYS))
    whole: Schema = {"type": "object", "properties": {key: root}, "required": [key], "additionalProperties": False}
    return whole, Wrapped(key)
