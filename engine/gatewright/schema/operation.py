"""A tool as values: an agent's view of it, the operations that its schema offers, and their places in a call.

A place in a call is written `op`, `request.operation`, `steps[].op`, `commands{}.op`. There a schema offers operations
as a closed list of texts: `enum`, `const`, a pattern of alternatives, or a union of those.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Literal, Protocol, cast

from gatewright.base.frozen import frozen
from gatewright.schema.walk import Schema, as_list, as_object

Level = Literal["refused", "looser", "narrower", "note"]


@frozen
class ToolListing:
    """A tool as an agent sees it, before a provider's format spells it.

    ``output`` is the result schema for the model. ``made`` keeps what formats and token counts have computed for this
    listing.
    """

    name: str
    description: str
    schema: Schema
    output: Schema | None = None
    made: dict[object, Any] = field(default_factory=dict[object, Any], init=False, compare=False, repr=False)


Steps = tuple[str, ...]
EACH: Final = "[]"
"""The step into every element of an array."""
EACH_MEMBER: Final = "{}"
"""The step into every member of a map, whatever its key."""
ANY_KEY: Final = "a"
"""The key of such a member in an invented call."""


class Missing:
    """`values_at` yields `MISSING` for a field without a value, `ABSENT` if even the field's holder is missing."""


class Unreadable:
    """`values_at` yields `UNREADABLE` for a value that cannot name an operation."""


MISSING: Final = Missing()
ABSENT: Final = Missing()
UNREADABLE: Final = Unreadable()


def path_text(steps: Steps) -> str:
    """Write the steps as one dotted text."""
    return ".".join(steps).replace(f".{EACH}", EACH).replace(f".{EACH_MEMBER}", EACH_MEMBER)


def steps_of(text: str) -> Steps:
    """Read the steps from a dotted text, in which no name may hold a dot."""
    return tuple(step for part in text.split(".") for step in re.findall(r"\[\]|\{\}|.+?(?=\[\]|\{\}|$)", part))


def holds_batch(steps: Steps) -> bool:
    """Tell whether the steps pass through an array or a map: if that is empty, a call names no operation."""
    return EACH in steps or EACH_MEMBER in steps


def values_at(value: object, steps: Steps) -> Iterator[str | Missing | Unreadable]:
    """Yield the values at ``steps``: each text, a mark for a missing or null value, another mark for any other value.

    A container of another type means that the call uses the tool in another way, so it yields nothing. Elements of an
    array or map must have the expected type.
    """
    if not steps:
        yield value if isinstance(value, str) else MISSING if value is None else UNREADABLE
        return
    step, rest = steps[0], steps[1:]
    if step == EACH:
        yield from _each(as_list(value) or [], rest)
        return
    table = as_object(value)
    if table is None:
        return
    if step == EACH_MEMBER:
        yield from _each(list(table.values()), rest)
        return
    inner = table.get(step)
    if inner is None and rest:
        yield from () if holds_batch(rest) else (ABSENT,)
        return
    yield from values_at(inner, rest)


def _each(items: list[object], rest: Steps) -> Iterator[str | Missing | Unreadable]:
    wanted = str if not rest else list if rest[0] == EACH else dict
    for item in items:
        fits = isinstance(item, wanted)
        yield from values_at(cast("object", item), rest) if fits else (UNREADABLE,)


Confidence = Literal["declared", "high", "medium", "low"]
"""The certainty of a reading.

declared: the caller named the field; high: name, shape and place agree; medium: two of them do, worth a look; low: off
unless somebody says so.
"""


KEYED = "keyed-union"
"""The shape whose operation is the only key of the arguments."""


@frozen
class Operation:
    """One operation and the parameters that the schema ties to it, without the operation field.

    ``required`` and ``optional`` are parameters of the call itself; the ``inner`` ones stand beside an operation field
    below the root and are dotted paths.
    """

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    inner_required: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    inner_optional: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)

    def to_json(self) -> dict[str, object]:
        """Return name, required, optional; inner_required and inner_optional, if it has any."""
        inner = {"inner_required": list(self.inner_required), "inner_optional": list(self.inner_optional)}
        shown = {key: names for key, names in inner.items() if names}
        return {"name": self.name, "required": list(self.required), "optional": list(self.optional), **shown}


class Repeated(Protocol):
    """Finds operations that arguments name deeper inside, at any depth."""

    def calls(self, arguments: Mapping[str, object], *, left_out: bool = True) -> Iterator[str]:
        """Yield every operation that ``arguments`` name; if ``left_out`` is False, without the defaults of missing
        values.
        """
        ...


@frozen
class OperationSet:
    """The operations of one schema, in its order; ``default`` is the one that a call without the field means.

    ``field`` is a dotted path, with `[]` for the elements of an array; ``also`` lists further places with the same
    operations. ``paths`` has all these places as steps, since a name may hold dots; an empty tuple means the flat
    ``field``. ``repeats`` finds the field deeper inside, where a call may leave it out.
    """

    field: str
    operations: tuple[Operation, ...]
    shape: str
    confidence: Confidence
    default: str | None = None
    suggested: tuple[str, ...] = ()
    field_required: bool = dataclasses.field(default=True, kw_only=True)
    paths: tuple[Steps, ...] = dataclasses.field(default=(), kw_only=True)
    repeats: Repeated | None = dataclasses.field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the schema's order."""
        return tuple(operation.name for operation in self.operations)

    @property
    def places(self) -> tuple[Steps, ...]:
        """Every place of the operation field."""
        return self.paths or ((self.field,),)

    @property
    def also(self) -> tuple[str, ...]:
        """The places besides ``field``."""
        return tuple(path_text(steps) for steps in self.places[1:])

    @property
    def is_flat(self) -> bool:
        """True if the field is a property of the root itself."""
        return all(len(steps) == 1 for steps in self.places) and not self.is_keyed

    @property
    def is_keyed(self) -> bool:
        """True if the operation is the only key of the arguments rather than a value."""
        return self.shape == KEYED

    def of(
        self, arguments: Mapping[str, object], *, left_out: bool = True, unreadable: bool = False
    ) -> tuple[str, ...] | None:
        """Return every operation that ``arguments`` call, as the caller wrote them, known or not; each must be allowed.

        The result is empty if the call names no operation (an empty batch). A missing or null value calls the default;
        without a default it may mean any operation, so all of them count. With ``left_out`` False a missing value
        counts as none. If a value cannot be read, the result is None; with ``unreadable`` all operations count instead.
        """
        if self.is_keyed:
            return tuple(arguments) or None
        called: list[str] = []
        for steps in self.places:
            for value in values_at(dict(arguments), steps):
                if isinstance(value, Unreadable):
                    if not unreadable:
                        return None
                    called += self.names
                elif not isinstance(value, Missing):
                    called.append(value)
                elif left_out:
                    called += self._default_names(value)
        if self.repeats is not None:
            called += self.repeats.calls(arguments, left_out=left_out)
        return tuple(called)

    def _default_names(self, what: Missing) -> tuple[str, ...]:
        return (self.default,) if what is MISSING and self.default is not None else self.names

    def to_json(self) -> dict[str, object]:
        """Return field, shape, confidence, default, operations and suggested, and also the further places if it has
        any.
        """
        shown: dict[str, object] = {
            "field": self.field,
            "shape": self.shape,
            "confidence": self.confidence,
            "default": self.default,
            "operations": [operation.to_json() for operation in self.operations],
            "suggested": list(self.suggested),
        }
        return {**shown, "also": list(self.also)} if self.also else shown


_WORDS = frozenset({"title", "description"})
_UNIONS = ("oneOf", "anyOf")
_NAME_LISTS = (
    "enumNames",
    "enumDescriptions",
    "x-enumNames",
    "x-enum-varnames",
    "x-enumDescriptions",
    "x-enum-descriptions",
)
_LITERAL = r"(?:[^\\^$.|?*+()\[\]{}\n]|\\[^\w\s<>])+"
_ALTERNATIVES = re.compile(rf"\^\((?:\?:)?{_LITERAL}(?:\|{_LITERAL})*\)\$|\^{_LITERAL}\$(?:\|\^{_LITERAL}\$)*")


@frozen
class Choice:
    """The texts that a closed list allows, in order, and the keyword that lists them.

    ``nullable``: the list allows null; ``others``: it allows other values that are not texts. Such values name no
    operation, so hiding any operation removes them.
    """

    names: tuple[str, ...]
    keyword: str
    nullable: bool = False
    others: bool = False


def choice_of(value: object) -> Choice | None:
    """Return the closed list of texts that ``value`` (a property's schema) allows; None if it is open or has no
    texts.
    """
    schema = as_object(value)
    if schema is None:
        return None
    const = schema.get("const")
    said = (
        _enum(schema),
        Choice((const,), "const") if isinstance(const, str) else None,
        *(_union(schema, keyword) for keyword in _UNIONS),
        *(choice_of(branch) for branch in as_list(schema.get("allOf")) or ()),
        _pattern(schema),
    )
    found = [choice for choice in said if choice]
    types = _types(schema)
    if not found or (types and "string" not in types):
        return None
    others = [frozenset(other.names) for other in found[1:]]
    names = tuple([name for name in found[0].names if all(name in other for other in others)])
    nullable = all(choice.nullable for choice in found) or schema.get("nullable") is True
    others = all(choice.others for choice in found) and (not types or not {*types} <= {"string", "null"})
    return Choice(names, found[0].keyword, nullable, others) if names else None


def restrict(schema: Schema, allowed: frozenset[str], *, keep_null: bool) -> Schema:
    """Copy a property's schema so that it accepts only the ``allowed`` texts, and null when ``keep_null``."""
    result = {key: value for key, value in schema.items() if not _is_lost(key, value, allowed, keep_null=keep_null)}
    values = as_list(schema.get("enum"))
    pattern = _pattern(schema)
    if pattern is not None:
        del result["pattern"]
        allowed &= frozenset(pattern.names)
        if values is None:
            values = [*pattern.names, *([None] if pattern.nullable else [])]
    if values is not None:
        _restrict_enum(result, values, allowed, keep_null=keep_null)
    for keyword in (*_UNIONS, "allOf"):
        branches = as_list(schema.get(keyword))
        if branches is not None:
            kept = [branch for branch in branches if keyword == "allOf" or not is_other(branch)]
            rest = _restrict_branches(kept, allowed, keep_null=keep_null)
            only = as_object(rest[0]) if len(rest) == 1 else None
            if only is not None and not any(key in result for key in only if key not in _WORDS):
                del result[keyword]
                result = {**only, **result}
            else:
                result[keyword] = rest
    types = as_list(schema.get("type"))
    if types is not None and not keep_null:
        rest = [name for name in types if name != "null"]
        result["type"] = rest[0] if len(rest) == 1 else rest
    examples = as_list(schema.get("examples"))
    if examples is not None:
        result["examples"] = [example for example in examples if example in allowed]
    return {key: value for key, value in result.items() if key != "examples" or value}


def _is_lost(key: str, value: object, allowed: frozenset[str], *, keep_null: bool) -> bool:
    if key == "default":
        return not (isinstance(value, str) and value in allowed) and not (value is None and keep_null)
    if key == "example":
        return not (isinstance(value, str) and value in allowed)
    return key == "nullable" and not keep_null


def _restrict_enum(result: Schema, values: list[Any], allowed: frozenset[str], *, keep_null: bool) -> None:
    wanted = {*allowed, None} if keep_null else allowed
    kept = [index for index, value in enumerate(values) if isinstance(value, str | None) and value in wanted]
    result["enum"] = [values[index] for index in kept]
    for keyword in _NAME_LISTS:
        labels, table = as_list(result.get(keyword)), as_object(result.get(keyword))
        if labels is not None and len(labels) == len(values):
            result[keyword] = [labels[index] for index in kept]
        elif labels is not None:
            del result[keyword]
        elif table is not None:
            result[keyword] = {name: text for name, text in table.items() if name in allowed}


def _restrict_branches(branches: list[Any], allowed: frozenset[str], *, keep_null: bool) -> list[Any]:
    result: list[Any] = []
    for branch in branches:
        choice, schema = choice_of(branch), as_object(branch)
        if schema is not None and choice is not None:
            if any(name in allowed for name in choice.names):
                result.append(restrict(schema, allowed, keep_null=keep_null))
        elif keep_null or not _is_null(branch):
            result.append(branch)
    return result


def _types(schema: Schema) -> list[Any]:
    given = schema.get("type")
    return [given] if isinstance(given, str) else as_list(given) or []


def _enum(schema: Schema) -> Choice | None:
    values = as_list(schema.get("enum"))
    if not values or not any(value is None or isinstance(value, str) for value in values):
        return None
    names = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    return Choice(names, "enum", None in values, not all(value is None or isinstance(value, str) for value in values))


def _union(schema: Schema, keyword: str) -> Choice | None:
    branches = as_list(schema.get(keyword))
    if not branches:
        return None
    read = [choice_of(branch) for branch in branches if not _is_null(branch) and not is_other(branch)]
    choices = [choice for choice in read if choice is not None]
    if not choices or len(choices) < len(read):
        return None
    names = dict.fromkeys(name for choice in choices for name in choice.names)
    nullable = any(map(_is_null, branches)) or any(choice.nullable for choice in choices)
    others = any(map(is_other, branches)) or any(choice.others for choice in choices)
    return Choice(tuple(names), choices[0].keyword if len(choices) == 1 else keyword, nullable, others)


def _pattern(schema: Schema) -> Choice | None:
    """Return the alternatives of a pattern that matches nothing else (`^(read|write)$`), if the schema allows only
    texts.
    """
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not _ALTERNATIVES.fullmatch(pattern):
        return None
    types = _types(schema)
    if "string" not in types or not {*types} <= {"string", "null"}:
        return None
    names = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(_LITERAL, pattern.replace("^(?:", "^(", 1))]
    return Choice(tuple(dict.fromkeys(names)), "pattern", "null" in types)


def is_other(branch: object) -> bool:
    """Tell whether a schema lists only values that are no texts, other than null alone."""
    schema = as_object(branch)
    if schema is None or _is_null(branch):
        return False
    values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    return bool(values) and not any(isinstance(value, str) for value in values or ())


def _is_null(branch: object) -> bool:
    schema = as_object(branch)
    if schema is None:
        return False
    return (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None) or schema.get("enum") == [None]
    )
