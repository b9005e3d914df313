"""Makes one call that fits a schema, from the schema alone; raises LookupError instead of guessing.

It uses constants, enums, examples and defaults that fit, otherwise the smallest value of a type, and the first fitting
branch of a union. Check the result, since it may still be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast

from gatewright.base.errors import GatewrightError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import folders_in
from gatewright.schema.check import SchemaChecker
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import ANY_KEY, EACH, EACH_MEMBER, Steps

_DEPTH = 16
_LONGEST = 1_000
_VARIED_DEPTH = 5
_MOST_VARIED = 2_000
_MOST_TRIED = 40
_UNIONS = ("oneOf", "anyOf")
Schema = dict[str, Any]
Wanted = tuple[Steps, ...]

_TEXTS = (
    "a",
    "abc",
    "a-b",
    "A",
    "ABC",
    "1",
    "12",
    "1234",
    "a1",
    "A1",
    "/a",
    "a.b",
    "a/b",
    "https://example.org/a",
    "http://example.org/a",
    "a@example.org",
    "2024-01-02",
    "2024-01-02T03:04:05Z",
    "03:04:05",
    "03:04",
    "123e4567-e89b-12d3-a456-426614174000",
    "#aabbcc",
    "#abc",
    "192.0.2.1",
    "2001:db8::1",
    "example.org",
    "P1D",
    "1.0.0",
    "A-1",
    "ABC-123",
    "0x1",
    "0" * 24,
    "a" * 32,
    "0" * 64,
    "0x" + "0" * 40,
)


_ODD: tuple[JsonValue, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 100, 0.5, -1_000_000, 1_000_000, 10**12, "", "a" * 999, "%", "é\n"),
    *([], ["a"], ["%", "a"], [0], [{}], {}, {"a": 0}, *_TEXTS),
)
"""Values that hardly any condition accepts all of."""


def witness(schema: Schema, wanted: Iterable[Steps] = (), *, check_formats: bool = False) -> JsonValue:
    """A value for ``schema``; ``wanted`` are places to fill besides the required ones. Raises LookupError.

    ``check_formats``: texts must match a known `format`.
    """
    try:
        inlined = inline_references(schema)
    except GatewrightError:
        raise LookupError from None
    return _Maker(inlined, check_formats=check_formats).value(inlined, tuple(wanted), _DEPTH)


def variations(schema: Schema, name: str, value: JsonValue) -> Iterator[JsonValue]:
    """Other values than ``value`` for the property ``name`` of ``schema``, near ones and odd ones; few of them fit."""
    try:
        inlined = inline_references(schema)
    except GatewrightError:
        return
    maker = _Maker(inlined)
    found = (one for own in maker.declarations(inlined, name) for one in maker.variations(own, value, _VARIED_DEPTH))
    yield from islice(found, _MOST_VARIED)
    yield from _ODD


class _Maker:
    """Makes values below one root, in which references are resolved."""

    def __init__(self, root: Schema, *, check_formats: bool = False) -> None:
        self._root, self._check_formats = root, check_formats

    def value(self, schema: object, wanted: Wanted, depth: int) -> JsonValue:
        if schema is True:
            return "a"
        if not isinstance(schema, dict):
            raise LookupError  # noqa: TRY004 nothing fits `false`
        table = self._flat(cast("Schema", schema), depth)
        if "const" in table:
            return table["const"]
        if table.get("enum"):
            values = cast("list[JsonValue]", table["enum"])
            return next((value for value in values[:_MOST_TRIED] if self._fits(table, value)), values[0])
        for said in () if any(wanted) else _suggestions(table):
            if self._fits(table, said):
                return said
        for keyword in _UNIONS:
            if keyword in table:
                return self._branch(table, keyword, wanted, depth)
        return self._by_type(table, wanted, depth)

    def declarations(self, schema: Schema, name: str) -> Iterator[Schema]:
        """The declarations of the property in the schema or its variants."""
        for branch in self._parts(schema):
            own = cast("Schema", branch.get("properties", {})).get(name)
            if isinstance(own, dict):
                yield cast("Schema", own)

    def variations(self, schema: object, value: JsonValue, depth: int) -> Iterator[JsonValue]:
        """Values that differ from ``value`` in one place, whether or not ``schema`` accepts them."""
        if not isinstance(schema, dict) or depth == 0:
            return
        for table in self._parts(cast("Schema", schema)):
            yield from cast("list[JsonValue]", table.get("enum", ()))[:_MOST_TRIED]
            if isinstance(value, list):
                yield from ([*value, *value], [*value, *value, *value], cast("list[JsonValue]", []))
                first = value[0] if value else None
                yield from ([one] for one in self.variations(table.get("items"), first, depth - 1))
            elif "items" in table:
                yield from ([one] for one in self.variations(table["items"], None, depth - 1))
            given = value if isinstance(value, dict) else {}
            yield from ({key: held for key, held in given.items() if key != name} for name in given)
            for name, own in cast("Schema", table.get("properties", {})).items():
                odd = (*self.variations(own, given.get(name), depth - 1), *_ODD)
                yield from ({**given, name: one} for one in odd)

    def _parts(self, schema: Schema) -> list[Schema]:
        """The schema with everything that applies together with it, and its variants."""
        try:
            flat = self._flat(schema, _DEPTH)
            variants = [one for keyword in _UNIONS if keyword in flat for one in self._branches(flat[keyword], _DEPTH)]
        except (LookupError, TypeError):
            return [schema]
        return [flat, *variants]

    def _flat(self, table: Schema, depth: int) -> Schema:
        """The schema with its references and ``allOf`` resolved."""
        for _ in range(depth):
            if "$ref" not in table:
                break
            rest = {key: value for key, value in table.items() if key != "$ref"}
            table = _merge(self._target(table["$ref"]), rest)
        else:
            raise LookupError
        if "allOf" in table:
            branches = cast("list[object]", table["allOf"])
            table = {key: value for key, value in table.items() if key != "allOf"}
            for branch in branches:
                if isinstance(branch, dict):
                    table = _merge(table, self._flat(cast("Schema", branch), depth - 1))
        return table

    def _target(self, reference: object) -> Schema:
        found = self._root
        for step in str(reference).split("/")[1:]:
            inner = found.get(step.replace("%25", "%").replace("~1", "/").replace("~0", "~"))
            found = cast("Schema", inner) if isinstance(inner, dict) else None
            if found is None:
                raise LookupError
        return found

    def _fits(self, table: Schema, value: object) -> bool:
        """Tell whether the value fits, by the schema alone."""
        shared = {key: self._root[key] for key in ("$schema", "$defs", "definitions") if key in self._root}
        try:
            return SchemaChecker({**table, **shared}, check_formats=self._check_formats).is_valid(value)
        except GatewrightError:
            return False

    def _branch(self, table: Schema, keyword: str, wanted: Wanted, depth: int) -> JsonValue:
        rest = {key: value for key, value in table.items() if key != keyword}
        made: list[JsonValue] = []
        for own in sorted(self._branches(table[keyword], depth), key=lambda one: not _holds(one, wanted)):
            try:
                made.append(self.value(_merge(rest, own), wanted, depth - 1))
            except LookupError:
                continue
            if self._fits(table, made[-1]):
                return made[-1]
        if not made:
            raise LookupError
        return made[0]

    def _branches(self, branches: object, depth: int) -> list[Schema]:
        found = cast("list[object]", branches)[:_MOST_TRIED]
        return [self._flat(cast("Schema", one), depth) if isinstance(one, dict) else {} for one in found if one]

    def _by_type(self, table: Schema, wanted: Wanted, depth: int) -> JsonValue:
        match _kind(table):
            case "object":
                return self._object(table, wanted, depth)
            case "array":
                return self._array(table, wanted, depth)
            case "string":
                return self._text(table)
            case "integer" | "number":
                return _number(table)
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return "a"

    def _object(self, table: Schema, wanted: Wanted, depth: int) -> JsonValue:
        properties = cast("Schema", table.get("properties", {}))
        more = (steps[0] for steps in wanted if steps and steps[0] in properties)
        names = dict.fromkeys([*cast("list[str]", table.get("required", [])), *more])
        made = {name: self.value(properties.get(name, True), _below(wanted, name), depth - 1) for name in names}
        members = _below(wanted, EACH_MEMBER)
        if members and isinstance(table.get("additionalProperties"), dict):
            made[ANY_KEY] = self.value(table["additionalProperties"], members, depth - 1)
        if "if" not in table:
            return made
        rest = {key: value for key, value in table.items() if key not in {"if", "then", "else"}}
        met = isinstance(table["if"], dict) and self._fits(cast("Schema", table["if"]), made)
        then = table.get("then" if met else "else")
        return self.value(_merge(rest, cast("Schema", then)), wanted, depth - 1) if isinstance(then, dict) else made

    def _array(self, table: Schema, wanted: Wanted, depth: int) -> JsonValue:
        least = _size(table, "minItems")
        size, below = max(least, 0 if table.get("maxItems") == 0 else 1), _below(wanted, EACH)
        fixed = cast("list[object]", table.get("prefixItems") or [])
        items = cast("object", table.get("items", True))
        try:
            made = [self.value(fixed[at] if at < len(fixed) else items, below, depth - 1) for at in range(size)]
        except LookupError:
            if least:
                raise
            return []
        return made

    def _text(self, table: Schema) -> JsonValue:
        plain = "a" * max(1, _size(table, "minLength")) if table.get("maxLength") != 0 else ""
        if "pattern" not in table and "format" not in table:
            return plain
        in_folders = (f"{folder}/a" for folder in folders_in(table))
        found = next((text for text in (plain, *in_folders, *_TEXTS) if self._fits(table, text)), None)
        if found is None:
            raise LookupError
        return found


def _below(wanted: Wanted, step: str) -> Wanted:
    return tuple(steps[1:] for steps in wanted if steps and steps[0] == step)


def _holds(table: Schema, wanted: Wanted) -> bool:
    """Tell whether the schema has room for the wanted places."""
    kind = _kind(table)
    return all(kind == ("array" if steps[0] == EACH else "object") for steps in wanted if steps)


def _suggestions(table: Schema) -> list[JsonValue]:
    """The values that the schema itself suggests."""
    examples = table.get("examples")
    given = cast("list[JsonValue]", examples)[:3] if isinstance(examples, list) else []
    return [table["default"], *given] if "default" in table else given


def _kind(table: Schema) -> object:
    kind = table.get("type")
    if isinstance(kind, list):
        kinds = cast("list[object]", kind)
        return next((one for one in kinds if one != "null"), next(iter(kinds), None))
    if kind is None:
        if "properties" in table or "required" in table:
            return "object"
        if "items" in table or "prefixItems" in table:
            return "array"
        return "string" if "pattern" in table else None
    return cast("object", kind)


def _merge(one: Schema, other: Schema) -> Schema:
    """A schema for both, as far as a witness needs it."""
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = _both(cast("Schema", one["properties"]), cast("Schema", other["properties"]))
    if "required" in one and "required" in other:
        merged["required"] = [*cast("list[str]", one["required"]), *cast("list[str]", other["required"])]
    if "enum" in one and "enum" in other:
        merged["enum"] = [value for value in cast("list[object]", one["enum"]) if value in other["enum"]]
    for keyword in _UNIONS:
        if keyword in one and keyword in other:
            rest = {key: value for key, value in other.items() if key != keyword}
            apart = {keyword: other[keyword]}
            return {**_merge(one, rest), "allOf": [*merged.get("allOf", []), apart]}
    return merged


def _both(one: Schema, other: Schema) -> Schema:
    return {
        name: _merge(one[name], other[name])
        if isinstance(one.get(name), dict) and isinstance(other.get(name), dict)
        else other.get(name, one.get(name))
        for name in {**one, **other}
    }


def _number(table: Schema) -> JsonValue:
    step = table.get("multipleOf")
    if "exclusiveMinimum" in table:
        low = table["exclusiveMinimum"]
        return low + (step or 1)
    if "exclusiveMaximum" in table and "minimum" not in table:
        return table["exclusiveMaximum"] - (step or 1)
    low = table.get("minimum", min(0, table.get("maximum", 0)))
    return low if not step or low % step == 0 else (low // step + 1) * step


def _size(table: Schema, keyword: str) -> int:
    size = table.get(keyword, 0)
    if not isinstance(size, int) or size > _LONGEST:
        raise LookupError
    return size
