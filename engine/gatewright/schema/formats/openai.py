"""Tools for OpenAI's chat completions and responses, in strict mode if that says exactly the same.

Sources: OpenAI's guides "Function calling" and "Structured Outputs"; other rules from answers of the service: "schema
must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "array schema missing
items", at most 1,024 characters of description and 128 tools. The responses interface tries strict mode unless the
request decides, so the format always says which mode it means.

Strict mode, by "Supported schemas": every object is closed and requires all its properties; an optional one becomes a
union with null. It knows number bounds, `multipleOf`, `minItems`, `maxItems`, `anyOf`, `$defs`, and string `pattern`
and nine formats; the format sends these last two as words, since strict mode would force a model to obey them although
no call is refused for one. Other keywords are refused. Limits: 5,000 properties, 10 levels, 120,000 characters of names
and values, 1,000 enum values, 15,000 characters in an enum of more than 250. Alternatives of a union must not share
their first key ("Objects provided via 'anyOf' must not share identical first keys"), unless a tag separates them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from gatewright.base.errors import SchemaError
from gatewright.schema.check import SchemaChecker
from gatewright.schema.combine import ANNOTATIONS, exclude_each_other, merge, same_json, types_of, values_of
from gatewright.schema.formats.format import (
    KEEP,
    Branch,
    Fitted,
    Format,
    Named,
    ProviderLint,
    Spelling,
    Step,
    chain,
    either,
    fields,
    items,
)
from gatewright.schema.formats.plain import NAMES, Loose, Plain, by_type, is_anything, loose_form, with_text
from gatewright.schema.operation import ToolListing
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

MAX_PROPERTIES, MAX_LEVELS, MAX_TEXT, MAX_VALUES = 5_000, 10, 120_000, 1_000
MANY_VALUES, MAX_VALUES_TEXT = 250, 15_000
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
_KEPT = frozenset({"type", "enum", "description", "title", "pattern", "multipleOf", "minimum", "maximum"}) | {
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
}


class Inexact(Exception):
    """Strict mode cannot express this; ``pointer`` is in the agent's schema."""

    def __init__(self, pointer: Pointer, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.pointer, self.reason, self.advice = pointer_text(pointer), reason, advice


def open_object(place: Pointer) -> Inexact:
    """Return the reason why an object with undeclared keys does not fit strict mode."""
    reason = "strict mode has closed objects only, and other keys are allowed here"
    return Inexact(place, reason, "declare `additionalProperties: false`")


def strict_form(plain: Plain, root: Schema) -> tuple[Schema, Step]:
    """Rewrite ``root`` in strict mode's subset, and return the step that undoes it. Raises Inexact."""
    writer = _Writer(plain)
    schema, step = writer.node(root, ())
    for name in writer.definitions_in_use():
        writer.define(name)
    whole = {**schema, "$defs": writer.definitions} if writer.definitions else schema
    _check_limits(whole)
    return whole, step


class _Writer:
    """One rewriting of one schema."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self.definitions: Schema = {}
        self._steps: dict[str, Step] = {}
        self._asked: list[str] = []

    def definitions_in_use(self) -> Iterator[str]:
        """Yield the definitions in use; writing one may add others."""
        yield from self._asked

    def define(self, name: str) -> None:
        own = as_object(self._plain.definitions.get(name)) or {}
        self.definitions[name], self._steps[name] = self.node(own, ("$defs", name))

    def node(self, schema: Schema, place: Pointer) -> tuple[Schema, Step]:
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema, keyword, place)
        parts = by_type(schema)
        if not parts:
            raise Inexact(place, "no value fits here", "drop the parameter")
        for keyword in ("not", "allOf", "if", "then", "else", "dependentRequired", "dependentSchemas"):
            if keyword in schema:
                raise Inexact((*place, keyword), f"strict mode has no `{keyword}`", "say it in the description")
        if is_anything(schema):
            raise Inexact(place, "strict mode needs a type here and any value is allowed", "declare the type")
        # several scalar types can share one schema if they are null and one other
        if all(part["type"] in _SCALARS for part in parts) and (
            len(parts) == 1 or sum(part["type"] != "null" for part in parts) == 1
        ):
            return self._scalars(schema, parts, place), KEEP
        if len(parts) == 1:
            write = self._object if parts[0]["type"] == "object" else self._array
            return write(parts[0], place)
        return self._branches([{**part, "description": ""} for part in parts], _texts_of(schema), place)

    def _reference(self, schema: Schema, place: Pointer) -> tuple[Schema, Step]:
        if set(schema) - ANNOTATIONS - {"$ref"}:
            raise Inexact(place, "strict mode takes nothing beside `$ref`", "move it into the definition")
        name = str(schema["$ref"]).removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        if name not in self._plain.definitions:
            raise Inexact(place, f"the definition `{name}` is not there", "declare it")
        if name not in self._asked:
            self._asked.append(name)
        return {"$ref": schema["$ref"]}, Named(name, self._steps)

    def _union(self, schema: Schema, keyword: str, place: Pointer) -> tuple[Schema, Step]:
        rest = {
            key: value
            for key, value in schema.items()
            if key not in (keyword, "discriminator") and key not in ANNOTATIONS
        }
        branches = objects(schema[keyword])
        if rest:
            joined = [merge(rest, branch) for branch in branches]
            if any(branch is None for branch in joined):
                raise Inexact(
                    place, f"what stands beside `{keyword}` cannot be said in each alternative", "split the tool"
                )
            branches = cast("list[Schema]", joined)
        if keyword == "oneOf" and not exclude_each_other(branches):
            raise Inexact(
                (*place, keyword),
                "strict mode has no `oneOf`, and a value may fit two alternatives",
                "use `anyOf` or a tag",
            )
        return self._branches(branches, _texts_of(schema), (*place, keyword))

    def _branches(self, branches: list[Schema], said: Schema, place: Pointer) -> tuple[Schema, Step]:
        if not branches:
            raise Inexact(place, "a union without alternatives", "drop the parameter")
        written: list[Schema] = []
        known: list[Branch] = []
        for index, branch in enumerate(branches):
            own = {key: value for key, value in branch.items() if key != "description" or value}
            sent, step = self.node(own, (*place, index))
            written.append(sent)
            known.append(Branch(sent, own, step))
        written = [_tag_first(branch) for branch in written]
        _check_first_keys(written, place)
        union: Schema = {**said, "anyOf": written}
        if all(branch.step is KEEP for branch in known):
            return union, KEEP
        sent, own = self.definitions, self._plain.definitions  # filled in before the first check
        return union, either([Branch(_whole(one.sent, sent), _whole(one.own, own), one.step) for one in known])

    def _scalars(self, schema: Schema, parts: list[Schema], place: Pointer) -> Schema:
        kinds = [str(part["type"]) for part in parts]
        result: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
        values = values_of(schema)
        if values is not None:
            result["enum"] = values
        said = {key: value for part in parts for key, value in part.items() if key not in ("type", "enum", "const")}
        for keyword, value in sorted(said.items(), key=lambda pair: pair[0] == "format"):  # after the description
            if keyword == "format":
                result = with_text(result, f"Format: {value}.")
            elif keyword in _KEPT:
                result[keyword] = value
            elif keyword not in ANNOTATIONS:
                raise Inexact((*place, keyword), f"strict mode has no `{keyword}`", "the gate checks it anyway")
        return _explain(result, schema)

    def _array(self, schema: Schema, place: Pointer) -> tuple[Schema, Step]:
        for keyword in schema:
            if keyword not in _KEPT | ANNOTATIONS | {"items"} or keyword == "enum":
                raise Inexact(
                    (*place, keyword), f"strict mode has no `{keyword}` for arrays", "the gate checks it anyway"
                )
        inner = as_object(schema.get("items"))
        if inner is None:
            raise Inexact(place, "strict mode needs the type of the elements", "declare `items`")
        sent, step = self.node(inner, (*place, "items"))
        kept = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
        return _explain({"type": "array", "items": sent, **kept, **_texts_of(schema)}, schema), items(step)

    def _object(self, schema: Schema, place: Pointer) -> tuple[Schema, Step]:
        if schema.get("additionalProperties") is not False:
            raise open_object(place)
        for keyword in schema:
            if keyword not in ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}:
                raise Inexact(
                    (*place, keyword), f"strict mode has no `{keyword}` for objects", "the gate checks it anyway"
                )
        required = names_required(schema)
        sent: Schema = {}
        steps: dict[str, Step] = {}
        nulls: set[str] = set()
        for name, value in properties_of(schema).items():
            inner, here = as_object(value) or {}, (*place, "properties", name)
            sent[name], steps[name] = self.node(inner, here)
            if name not in required:
                nulls.add(name)
                if not self._takes_null(inner):
                    sent[name] = _nullable(sent[name])
                elif inner.get("default", "") is not None:
                    raise Inexact(
                        here, "null and leaving it out are two things here, and strict mode has only null", "require it"
                    )
        if missing := [name for name in required if name not in sent]:
            raise Inexact((*place, "required"), f"`{missing[0]}` is required but not declared", "declare it")
        whole: Schema = {"type": "object", "properties": sent, "required": list(sent), "additionalProperties": False}
        return _explain({**whole, **_texts_of(schema)}, schema), fields({}, steps, frozenset(nulls))

    def _takes_null(self, schema: Schema) -> bool:
        try:
            return SchemaChecker({**schema, "$defs": self._plain.definitions}).is_valid(None)
        except SchemaError:
            return True


def _whole(schema: Schema, definitions: Schema) -> Schema:
    """Return an alternative together with its definitions, so that it can be checked alone."""
    return {**schema, "$defs": definitions} if any("$ref" in node for _, node in walk(schema)) else schema


def _texts_of(schema: Schema) -> Schema:
    return {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str) and schema[key]}


def _explain(result: Schema, schema: Schema) -> Schema:
    """Put keywords that strict mode lacks, and that refuse no call, into words."""
    if schema.get("default") is not None:
        result = with_text(result, f"Default: {_short(schema['default'])}.")
    if examples := as_list(schema.get("examples")):
        result = with_text(result, f"Examples: {', '.join(_short(example) for example in examples[:5])}.")
    return result


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _nullable(schema: Schema) -> Schema:
    kinds = types_of(schema)
    if kinds is not None and all(kind in _SCALARS for kind in kinds):
        values = as_list(schema.get("enum"))
        listed = {} if values is None else {"enum": [*values, None]}
        return {**schema, "type": [*kinds, "null"], **listed}
    if set(schema) <= {"anyOf", "title", "description"} and "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    said = _texts_of(schema)
    return {**said, "anyOf": [{key: value for key, value in schema.items() if key not in said}, {"type": "null"}]}


def _tag_first(schema: Schema) -> Schema:
    """Put an object's constant parameters first, so that alternatives differ in their first key."""
    properties = properties_of(schema)
    tags = [name for name, value in properties.items() if len(values_of(as_object(value) or {}) or ()) == 1]
    if not tags or list(properties)[: len(tags)] == tags:
        return schema
    order = [*tags, *(name for name in properties if name not in tags)]
    return {**schema, "properties": {name: properties[name] for name in order}, "required": order}


def _check_first_keys(branches: list[Schema], place: Pointer) -> None:
    firsts = [next(iter(properties_of(branch).items()), None) for branch in branches if "properties" in branch]
    for index, one in enumerate(firsts):
        for other in firsts[index + 1 :]:
            if one is None or other is None or one[0] != other[0]:
                continue
            left, right = values_of(as_object(one[1]) or {}), values_of(as_object(other[1]) or {})
            if not left or not right or any(same_json(a, b) for a in left for b in right):
                raise Inexact(
                    place,
                    f"two alternatives start with `{one[0]}` and strict mode cannot tell them apart",
                    "give each a tag of its own",
                )


def _check_limits(schema: Schema) -> None:
    nodes = list(walk(schema))
    names = [name for _, node in nodes for name in properties_of(node)]
    enums = [values for _, node in nodes if (values := as_list(node.get("enum"))) is not None]
    texts = [value for values in enums for value in values if isinstance(value, str)]
    counts = (
        (len(names), MAX_PROPERTIES, "parameters"),
        (max(_level(pointer) for pointer, _ in nodes), MAX_LEVELS, "levels of nesting"),
        (sum(map(len, [*names, *texts, *(schema.get("$defs") or {})])), MAX_TEXT, "characters of names and values"),
        (sum(map(len, enums)), MAX_VALUES, "enum values"),
        (
            max((_text(values) for values in enums if len(values) > MANY_VALUES), default=0),
            MAX_VALUES_TEXT,
            "characters in one enum",
        ),
    )
    for count, most, what in counts:
        if count > most:
            raise Inexact((), f"strict mode takes at most {most:,} {what}, and these are {count:,}", "split the tool")


def _level(pointer: Pointer) -> int:
    return 1 + sum(step in ("properties", "items") for step in pointer)


def _text(values: list[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


MAX_DESCRIPTION, MAX_TOOLS = 1024, 128
_PROVIDER = "OpenAI"
_CLOSING = ("additionalProperties", "unevaluatedProperties", "allOf")
"""A root without any of these keywords takes undeclared keys."""


def _fit_chat(listing: ToolListing) -> Fitted:
    schema, step, lints, strict = _schema(listing)
    text, schema, told = _cut_description(listing.description, schema)

    def body(name: str) -> dict[str, Any]:
        function: dict[str, Any] = {"name": name, "description": text, "parameters": schema}
        return {"type": "function", "function": {**function, "strict": True} if strict else function}

    return Fitted(body, step, (*lints, *told))


def _fit_responses(listing: ToolListing) -> Fitted:
    schema, step, lints, strict = _schema(listing)
    text, schema, told = _cut_description(listing.description, schema)

    def body(name: str) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": text, "parameters": schema, "strict": strict}

    return Fitted(body, step, (*lints, *told))


def _schema(listing: ToolListing) -> tuple[Schema, Step, tuple[ProviderLint, ...], bool]:
    loose = loose_form(listing.schema, _PROVIDER)
    try:
        schema, step = _strict(loose)
    except Inexact as obstacle:
        reason = f"not in strict mode: {obstacle.reason}"
        lint = ProviderLint("not-strict", _PROVIDER, loose.pointer_in_shown(obstacle.pointer), reason, obstacle.advice)
        return loose.schema, loose.step, (*loose.lints, lint), False
    return schema, step, loose.lints, True


def _strict(loose: Loose) -> tuple[Schema, Step]:
    if loose.made_from is None and loose.shown.keys().isdisjoint(_CLOSING):
        raise open_object(())
    parts = loose.parts()
    if parts is None:
        raise Inexact((), "its references cannot be followed", "mend them")
    schema, step = strict_form(*parts)
    return schema, chain(step, loose.step)


def _cut_description(text: str, schema: Schema) -> tuple[str, Schema, tuple[ProviderLint, ...]]:
    """Cut a description to the limit; the rest moves to the description of the parameters."""
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
