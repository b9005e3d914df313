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
    """A tool as an agent sees it, before any provider's spelling.

    ``output``: the result schema for the model. ``made``: the results of formats and token counts, which last as long
    as the listing.
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
    """The answer of `values_at` for a missing value: `MISSING` for the field, `ABSENT` for its holder."""


class Unreadable:
    """The answer of `values_at` for a value that cannot name an operation."""


MISSING: Final = Missing()
ABSENT: Final = Missing()
UNREADABLE: Final = Unreadable()


def path_text(steps: Steps) -> str:
    """Write the steps as one dotted text."""
    return ".".join(steps).replace(f".{EACH}", EACH).replace(f".{EACH_MEMBER}", EACH_MEMBER)


def steps_of(text: str) -> Steps:
    """Read the steps from a dotted text; it cannot express a name with dots of its own."""
    return tuple(step for part in text.split(".") for step in re.findall(r"\[\]|\{\}|.+?(?=\[\]|\{\}|$)", part))


def holds_batch(steps: Steps) -> bool:
    """Tell whether an array or a map comes on the way, so that a call may name no operation at all."""
    return EACH in steps or EACH_MEMBER in steps


def values_at(value: object, steps: Steps) -> Iterator[str | Missing | Unreadable]:
    """Yield the arguments' values there: every text, a mark for a missing or null one, and one for anything else.

    Another value in the place of a container is another way to use the tool and yields nothing; but an element of a
    batch must be what the batch holds.
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
    """Places further inside that name operations as well, at any depth."""

    def calls(self, arguments: Mapping[str, object], *, left_out: bool = True) -> Iterator[str]:
        """Yield every operation that ``arguments`` call there; ``left_out`` False: only written ones."""
        ...


@frozen
class OperationSet:
    """The operations of one schema, in its order. ``default``: the one that a call without the field means.

    ``field`` is a dotted path, with `[]` for the elements of an array; ``also`` are further places that hold the same
    operations. ``paths`` are all of them in steps, since a name may hold dots; empty stands for the flat ``field``.
    ``repeats`` finds the field further inside, at places that a call need not reach.
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
        """True if the field is one of the root's own."""
        return all(len(steps) == 1 for steps in self.places) and not self.is_keyed

    @property
    def is_keyed(self) -> bool:
        """True if the operation is the only key of the arguments rather than a value."""
        return self.shape == KEYED

    def of(
        self, arguments: Mapping[str, object], *, left_out: bool = True, unreadable: bool = False
    ) -> tuple[str, ...] | None:
        """Return every operation that ``arguments`` call, exactly as written, known or not; each must be allowed.

        Empty: the call names none and calls none (an empty batch). A missing or null value calls the default; if the
        schema states none, it could be any of them, and all count; ``left_out`` False: it counts as nothing. None:
        nobody can tell; with ``unreadable`` such a value could be any of them as well.
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
        """Return field, shape, confidence, default, operations, suggested; also, if it has further places."""
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
    """The texts in order, their keyword, and True for null, or something else than a text, among the values.

    A value that is not a text names no operation: it goes with the first operation that is hidden.
    """

    names: tuple[str, ...]
    keyword: str
    nullable: bool = False
    others: bool = False


def choice_of(value: object) -> Choice | None:
    """Return the closed list that ``value`` (a property's schema) allows, or None when it is open or not of texts."""
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
    """Return the alternatives of a pattern that takes nothing else (`^(read|write)$`), if only texts fit."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not _ALTERNATIVES.fullmatch(pattern):
        return None
    types = _types(schema)
    if "string" not in types or not {*types} <= {"string", "null"}:
        return None
    names = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(_LITERAL, pattern.replace("^(?:", "^(", 1))]
    return Choice(tuple(dict.fromkeys(names)), "pattern", "null" in types)


def is_other(branch: object) -> bool:
    """Tell whether a schema lists values, none of them a text, and not null alone."""
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
