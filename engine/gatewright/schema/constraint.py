"""Gives constraints on the fields of a schema their meaning, narrows schemas by them, and closes schemas to unknown
names.

In JSON Schema a `pattern` says nothing about a list, so every list meets it. Here a constraint admits only the types
that it speaks of: those that its keywords are for, and those that it names (`type`, `const`, `enum`). Each of its
branches, and each place inside, speaks for itself. Closing a constraint never admits more values. A narrowed schema
accepts exactly the values that both accept. A schema written to stay open stays open. References in a constraint lead
into the constraint itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, cast

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json
from gatewright.base.pattern import compile_linear
from gatewright.schema.check import SchemaChecker
from gatewright.schema.combine import NOTHING, both, own_words
from gatewright.schema.fault import ALL, KIND_OF, Kinds, kinds_named
from gatewright.schema.inline import inline_references, rehome
from gatewright.schema.walk import (
    UNIONS,
    Schema,
    as_list,
    as_object,
    at_one_draft,
    definition,
    finder,
    in_place,
    map_children,
    names_required,
    properties_of,
)

_OTHERS = ("additionalProperties", "unevaluatedProperties")
_OLD = ("draft-07", "draft-06", "draft-04")
_STRANGER = "\N{SNOWMAN} a name that no pattern is meant for"
_EXPLICIT = "its schema says so itself"


def with_closed_arguments(schema: Schema) -> tuple[Schema, str]:
    """Close ``schema`` to arguments that it does not name; if that is impossible, return the reason beside it.

    The same object comes back if it is closed already or stays open. The root names what any alternative names, so that
    a call which fitted one of them still does. Raises SchemaError for unreadable references.
    """
    is_old = any(draft in str(schema.get("$schema", "")) for draft in _OLD)
    if _is_closed(schema, is_old=is_old):
        return schema, ""
    plain = inline_references(schema) if any("$ref" in node for node in in_place(schema)) else schema
    find = finder(plain)
    parts = in_place(plain, find)
    # an `if` opens nothing, and the names that it tests are not declared
    declaring = in_place(plain, find, tests=False)
    if any(_is_open(part) for part in declaring):
        return schema, _EXPLICIT
    unread = any(  # some names may stand in places that this does not search
        ("$ref" in part and find(str(part["$ref"])) is None)
        or not part.keys().isdisjoint({"$dynamicRef", "dependencies"})
        for part in parts
    )
    if unread or (is_old and "$ref" in plain):
        return schema, "what its references name cannot be told"
    if not is_old and plain.get("unevaluatedProperties") is False and not any(_is_open(part) for part in parts):
        return schema, ""
    names: Schema = {}
    patterns: Schema = {}
    for part in parts[1:]:
        names |= {name: {} for name in properties_of(part)}
    for part in declaring:
        patterns |= {pattern: {} for pattern in as_object(part.get("patternProperties")) or {}}
        names |= {name: {} for name in names_required(part) if name not in names}
    own = properties_of(plain)
    closed: Schema = {**plain, "properties": {**own, **names, **own}, "additionalProperties": False}
    if patterns:
        closed["patternProperties"] = {**patterns, **(as_object(plain.get("patternProperties")) or {})}
    return closed, ""


def _is_closed(schema: Schema, *, is_old: bool) -> bool:
    """Tell whether the schema or every branch of its union is closed; an old draft ignores the neighbours of `$ref`."""
    if is_old and "$ref" in schema:
        return False
    if schema.get("additionalProperties") is False:
        return True
    unions = (as_list(schema.get(keyword)) for keyword in UNIONS)
    return any(
        branches and all(_is_closed(as_object(branch) or {}, is_old=is_old) for branch in branches)
        for branches in unions
    )


def _is_open(part: Schema) -> bool:
    """Tell whether the schema allows any name."""
    patterns = as_object(part.get("patternProperties")) or {}
    return any(part.get(keyword, False) is not False for keyword in _OTHERS) or any(
        compile_linear(pattern).search(_STRANGER) for pattern in patterns
    )


Way = Literal["asked", "part", "refused", "refused part", "raw"]
"""The role of a schema in a constraint: a value must fit it, alone or together with its neighbours, or must not fit it.

raw: whether a value fits only selects further rules.
"""

_NONE: Final[Kinds] = frozenset()
_NULL: Final[Kinds] = frozenset({"null"})
_BESIDE = frozenset({"allOf", "dependentSchemas", "dependencies"})
_TESTS = frozenset({"if", "propertyNames"})


def close_constraint(constraint: object) -> Schema:
    """Close a constraint (a JSON Schema, true or false) to the types that it does not speak of. Raises SchemaError."""
    if isinstance(constraint, bool):
        return {} if constraint else {"not": {}}
    if as_object(constraint) is None:
        raise SchemaError("a constraint must be a JSON Schema")
    try:
        return _close(canonical_json(constraint))
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"the constraint is no JSON: {error}") from None


@lru_cache(maxsize=8192)
def _close(canonical: bytes) -> Schema:
    return _Closing(inline_references(cast("Schema", json.loads(canonical)))).result()


@frozen
class _Said:
    """The types that a schema mentions; ``rest``: the types left if it only excludes values."""

    kinds: Kinds = _NONE
    rest: Kinds = ALL

    @property
    def all(self) -> Kinds:
        return self.kinds or (_NONE if self.rest == ALL else self.rest)


class _Closing:
    """One constraint, inlined; a recursive definition is written once for each of its roles."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._find = finder(root)
        self._names: dict[tuple[str, Way], str] = {}
        self._left: list[tuple[str, Way]] = []
        self._known: dict[int, tuple[Schema, _Said]] = {}

    def result(self) -> Schema:
        closed = self._turn(_without_definitions(self._root), "asked")
        made: Schema = {}
        while self._left:
            reference, way = self._left.pop()
            target = self._find(reference)
            made[self._names[reference, way]] = {} if target is None else self._turn(_without_definitions(target), way)
        return {**closed, "$defs": made} if made else closed

    def _turn(self, node: Schema, way: Way) -> Schema:
        result: Schema = {}
        for keyword, value in node.items():
            inner = _way_inside(keyword, way, counts="maxContains" in node)
            result |= map_children({keyword: value}, lambda child, inner=inner: self._turn(child, inner))
        if "oneOf" in node and way in {"asked", "part"}:
            # A closed branch fits fewer values: require exactly one match of the branches as written, and one closed
            # match
            closed = [self._turn(one, "asked") if as_object(one) is not None else one for one in node["oneOf"]]
            if closed != result["oneOf"]:
                result["allOf"] = [*(as_list(result.get("allOf")) or []), {"anyOf": closed}]
        if isinstance(reference := node.get("$ref"), str):
            result["$ref"] = self._reference(reference, way)
        kinds = self._types_of(node).kinds
        if not kinds or kinds == ALL:
            return result
        if way == "asked" and {"type", "const", "enum"}.isdisjoint(node) and not own_words(node).keys() <= {*UNIONS}:
            return {"type": _type_of(kinds), **result}
        if way == "refused" and kinds != _NULL and not _is_type_alone(node):
            return {"anyOf": [result, {"not": {"type": _type_of(kinds)}}]}
        return result

    def _reference(self, reference: str, way: Way) -> str:
        if (reference, way) not in self._names:
            name = f"{reference.rsplit('/', 1)[-1].strip('#') or 'constraint'}_{way.replace(' ', '_')}"
            while name in self._names.values():
                name += "_"
            self._names[reference, way] = name
            self._left.append((reference, way))
        return definition(self._names[reference, way])

    def _types_of(self, node: object) -> _Said:
        table = as_object(node)
        if table is None:
            return _Said()
        if id(table) not in self._known:
            self._known[id(table)] = table, _Said()  # a reference back to itself adds no types
            self._known[id(table)] = table, self._types_by(table)
        return self._known[id(table)][1]

    def _types_by(self, table: Schema) -> _Said:
        kinds: Kinds = kinds_named(table) | {kind for word in table if (kind := KIND_OF.get(word)) is not None}
        rest = ALL
        beside: list[object] = [*(as_list(table.get("allOf")) or ())]
        if isinstance(reference := table.get("$ref"), str):
            beside.append(self._find(reference))
        for said in map(self._types_of, beside):
            kinds, rest = kinds | said.kinds, rest & said.rest
        branches = [one for keyword in UNIONS for one in as_list(table.get(keyword)) or ()]
        for one in (*branches, *(table.get(keyword) for keyword in ("if", "then", "else"))):
            kinds |= self._types_of(one).all
        if (refused := as_object(table.get("not"))) is not None:
            said = self._types_of(refused).all
            if _is_type_alone(refused) or said == _NULL:
                rest -= said
            else:
                kinds |= said
        return _Said(kinds, rest)


def _way_inside(keyword: str, way: Way, *, counts: bool) -> Way:
    """Return the role of the schemas under a keyword; ``counts``: `contains` has an upper bound."""
    if way == "raw" or keyword in _TESTS:
        return "raw"
    if way in {"asked", "part"}:
        if keyword == "oneOf" or (keyword == "contains" and counts):
            return "raw"
        return "refused part" if keyword == "not" else "part" if keyword in _BESIDE else "asked"
    if keyword in {"oneOf", "contains"}:
        return "raw"
    if keyword == "not":
        return "part"
    return "refused part" if keyword in {*_BESIDE, "anyOf", "then", "else"} else "refused"


def _is_type_alone(schema: Schema) -> bool:
    return own_words(schema).keys() == {"type"}


def _type_of(kinds: Kinds) -> Any:
    names = sorted(kinds)
    return names[0] if len(names) == 1 else names


def _without_definitions(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in {"$defs", "definitions"}}


When = tuple[str, Iterable[str]]
"""The operation field, and the operations for which a narrowing holds."""


def narrow(
    schema: Schema,
    constraints: Mapping[str, object],
    *,
    when: When | None = None,
    defaults: Mapping[str, object] | None = None,
    required: Iterable[str] = (),
) -> Schema:
    """Narrow the top-level fields of ``schema`` by ``constraints`` (field = JSON Schema); ``required`` ones must be
    given.

    A constraint binds an omitted field only through its default: the one in ``defaults``, or the one that the schema
    declares. If that default breaks the constraint, the field becomes required. ``when`` limits the narrowing to some
    operations. The result is a new object, or the same one if ``constraints`` is empty. Raises SchemaError for a
    constraint that cannot be compiled, or that means something else in the draft of ``schema``.
    """
    result = schema
    for name in required:
        field = _Field(name, {}, SchemaChecker({}), needed=True)
        result = _conditional(result, field, when) if when is not None else _with_needed(result, name)
    for name, given in constraints.items():
        constraint = _own(given)
        if constraint is None:
            continue
        checker = SchemaChecker(constraint)
        result, constraint = at_one_draft(result, constraint)
        result, constraint = rehome(result, constraint)
        if defaults is not None:
            held = [defaults[name]] if name in defaults else []
        else:
            held = [own["default"] for own in _declarations(result, name) if "default" in own][:1]
        field = _Field(name, constraint, checker, any(not checker.is_valid(default) for default in held))
        result = _conditional(result, field, when) if when is not None else _bound(result, field)
    return result


class _Field:
    """One constrained field; ``needed``: a call without it would break the constraint."""

    __slots__ = ("checker", "constraint", "name", "needed")

    def __init__(self, name: str, constraint: Schema, checker: SchemaChecker, needed: bool) -> None:
        self.name, self.constraint, self.checker, self.needed = name, constraint, checker, needed


def _own(given: object) -> Schema | None:
    """Inline the references of a constraint; None if it restricts nothing."""
    if isinstance(given, bool):
        return None if given else dict(NOTHING)
    table = as_object(given)
    if table is None:
        raise SchemaError("a constraint must be a JSON Schema")
    inlined = inline_references(table)
    return inlined if own_words(inlined) else None


def _declarations(schema: Schema, name: str) -> list[Schema]:
    held = [schema, *(b for keyword in UNIONS for item in as_list(schema.get(keyword)) or [] if (b := as_object(item)))]
    return [own for node in held if (own := as_object(properties_of(node).get(name))) is not None]


def _conditional(schema: Schema, field: _Field, when: When) -> Schema:
    """Add the constraint for some operations only, and evaluate no property if the schema asks which ones were."""
    selector, operations = when
    names = list(operations)
    default = next((own.get("default") for own in _declarations(schema, selector)), None)
    condition: Schema = {"properties": {selector: {"enum": names}}}
    if default not in names:
        condition["required"] = [selector]
    bound: Schema = {"properties": {field.name: field.constraint}} if field.constraint else {}
    if field.needed:
        bound["required"] = [field.name]
    said: Schema = {"if": condition, "then": bound}
    if "unevaluatedProperties" in schema:
        said = {"not": {**condition, "not": bound}}
    return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), said]}


def _bound(schema: Schema, field: _Field) -> Schema:
    result = _constrain(schema, field)
    return _with_needed(result, field.name) if field.needed else result


def _with_needed(schema: Schema, name: str) -> Schema:
    named = names_required(schema)
    return schema if name in named else {**schema, "required": [*named, name]}


def _constrain(schema: Schema, field: _Field) -> Schema:
    name, known = field.name, properties_of(schema)
    if name in known:
        own = as_object(known[name])
        narrowed = known[name] if own is None and known[name] is False else _narrow(schema, own or {}, field)
        return {**schema, "properties": {**known, name: narrowed}}
    inside = _in_variants(schema, field)
    if inside is not None:
        return inside
    if "unevaluatedProperties" in schema:
        # this does not declare the field, so `unevaluatedProperties` sees what it saw before
        refused = {"not": {"required": [field.name], "properties": {field.name: {"not": field.constraint}}}}
        return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), refused]}
    if not _takes(schema, name):
        return schema
    others = as_object(schema.get("additionalProperties"))
    plain = not _matches(schema, name) and others is not None
    added = _narrow(schema, others, field) if plain and others is not None else field.constraint
    return {**schema, "properties": {**known, name: added}}


def _narrow(root: Schema, own: Schema, field: _Field) -> Schema:
    return both(own, field.constraint, field.checker, root)


def _in_variants(schema: Schema, field: _Field) -> Schema | None:
    """Narrow the variants of a union that declare the field; None if another variant might take the field
    undeclared.
    """
    for keyword in UNIONS:
        branches = [as_object(branch) for branch in as_list(schema.get(keyword)) or []]
        variants = [branch for branch in branches if branch is not None]
        if not variants or len(variants) < len(branches):
            continue
        declaring = [field.name in properties_of(variant) for variant in variants]
        if any(declaring) and all(d or not _takes(v, field.name) for d, v in zip(declaring, variants, strict=True)):
            return {**schema, keyword: [_constrain(variant, field) for variant in variants]}
    return None


def _takes(schema: Schema, name: str) -> bool:
    """Tell whether an object may have ``name`` without a property of that name."""
    return schema.get("additionalProperties") is not False or "$ref" in schema or _matches(schema, name)


def _matches(schema: Schema, name: str) -> bool:
    patterns = as_object(schema.get("patternProperties")) or {}
    return bool(patterns) and not SchemaChecker({"patternProperties": dict.fromkeys(patterns, False)}).is_valid(
        {name: 0}
    )
