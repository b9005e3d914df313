"""What a form makes of a JSON schema: one shape for each place, read when it is asked for.

References are followed one at a time, so that a schema that holds itself costs nothing until somebody looks into it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.json_value import NOTHING, Value
from gatewright_gui.qt.language import tr

MAX_DEPTH = 8
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


def as_map(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def as_maps(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of a JSON array."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", one) for one in listed if isinstance(one, Mapping)]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both at once: properties and what is required of both; else what `over` says counts.

    A property of which `over` says nothing (a branch that only names it) stays as it is.
    """
    made = {**base, **over}
    names = dict(as_map(base.get("properties")))
    for name, part in as_map(over.get("properties")).items():
        if part not in ({}, True) or name not in names:
            names[name] = part
    if names:
        made["properties"] = names
    needed = [*_texts(base.get("required")), *_texts(over.get("required"))]
    if needed:
        made["required"] = list(dict.fromkeys(needed))
    return made


def type_names(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names, without null."""
    kind = schema.get("type")
    listed = cast("list[object]", kind) if isinstance(kind, list) else [kind]
    return [one for one in listed if isinstance(one, str) and one in _TYPES and one != "null"]


def without_null(
    schema: dict[str, Any], resolved: Callable[[object], dict[str, Any]], depth: int = 0
) -> tuple[dict[str, Any], bool]:
    """The schema beside null, and whether null may stand there."""
    nullable = schema.get("nullable") is True
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind and len(cast("list[object]", kind)) > 1:
        kinds = type_names(schema)
        schema, nullable = {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}, True
    for key in ("anyOf", "oneOf"):
        listed = schema.get(key)
        if not isinstance(listed, list):
            continue
        parts = cast("list[object]", listed)
        real = [part for part in parts if not _is_null(resolved(part))]
        rest = {name: value for name, value in schema.items() if name != key}
        if len(real) == 1 and depth < MAX_DEPTH:
            inner, inner_nullable = without_null(merge(resolved(real[0]), rest), resolved, depth + 1)
            return inner, nullable or inner_nullable or len(real) < len(parts)
        if len(real) < len(parts):
            schema, nullable = {**rest, key: real}, True
    return schema, nullable


def _is_null(schema: Mapping[str, Any]) -> bool:
    return (
        schema.get("type") == "null"
        or ("const" in schema and schema["const"] is None)
        or (schema.get("enum") == [None])
    )


def _texts(value: object) -> list[str]:
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else []


Kind = Literal[
    "text", "lines", "integer", "number", "boolean", "choice", "checklist", "object", "array", "union", "json"
]
MAX_CHECKLIST = 40
LONG_TEXT = 5_000
MAX_RESOLVED = 100
_LONG_WORDS = frozenset({
    "content", "text", "body", "old", "new", "old_text", "new_text", "code", "query", "message", "description",
    "diff", "patch", "sql", "script", "prompt", "html", "markdown", "instructions", "comment", "summary",
})  # fmt: skip
_KEYS = {
    "object": {"properties", "additionalProperties", "patternProperties", "required", "propertyNames"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "string": {"minLength", "maxLength", "pattern", "format", "contentEncoding"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
"""By which keys a schema that names no type says what it is for."""
_SAYS_NOTHING = frozenset({"title", "description", "required", "not", "minProperties", "maxProperties"})


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The shape of what may stand at a place. `schema` has its references, `allOf` and null taken out."""

    kind: Kind
    schema: Mapping[str, Any]
    nullable: bool = False
    choices: tuple[JsonValue, ...] = ()

    @property
    def description(self) -> str:
        """The help text."""
        return str(self.schema.get("description") or "")

    @property
    def default(self) -> Value:
        """The value that holds when nothing is given, where the schema says so."""
        return self.schema.get("default", NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A property of an object, by its own name."""

    name: str
    schema: object
    required: bool


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One way to fill a union in. `tags`: the values of the union's tag that stand for it."""

    label: str
    schema: Mapping[str, Any]
    tags: tuple[JsonValue, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """The branches, and the property that tells them apart, where one does."""

    branches: tuple[Branch, ...]
    tag: str | None = None

    def branch_of(self, value: object) -> int | None:
        """The branch that a value's tag selects."""
        if self.tag is None or not isinstance(value, dict) or self.tag not in value:
            return None
        given = cast("dict[str, JsonValue]", value)[self.tag]
        for at, branch in enumerate(self.branches):
            if any(type(given) is type(one) and given == one for one in branch.tags):
                return at
        return None


class Shapes:
    """The shapes of one schema. `prefer`: a property that tells branches apart before others (an operation field)."""

    def __init__(self, root: Mapping[str, Any], prefer: str | None = None) -> None:
        self._root = root
        self._prefer = prefer
        self._kept: dict[
            tuple[str, int, str], tuple[object, Any]
        ] = {}  # holds the schema, so that its id stays its own

    def root(self) -> Shape:
        """The shape of the arguments: an object, whatever the schema forgets to say."""
        shape = self.of(self._root)
        return shape if shape.kind in {"object", "union"} else Shape("object", shape.schema)

    def of(self, schema: object, name: str = "") -> Shape:
        """The shape of a place with this schema; `name` helps to tell long texts from short ones."""
        return self._keep("shape", schema, name, lambda: self._shape(schema, name))

    def fields(self, shape: Shape) -> Mapping[str, Field]:
        """The declared properties of an object."""
        return self._keep("fields", shape.schema, "", lambda: _fields(shape.schema))

    def inside(self, shape: Shape, step: str | int) -> Shape:
        """The shape of what stands one step inside a place; anything, where the schema does not say."""
        schema: object = {}
        if isinstance(step, int):
            schema = self.item(shape, step) if shape.kind in {"array", "checklist"} else {}
        elif shape.kind == "object":
            field = self.fields(shape).get(step)
            extra = self.extra(shape) if field is None else field.schema
            schema = {} if extra is None else extra
        return self.of(schema, str(step))

    def names(self) -> Mapping[str, Field]:
        """The properties of the arguments themselves, with the tag of their union."""
        root = self.root()
        tag = self.union(root).tag if root.kind == "union" else None
        return {**self.fields(root), **({tag: Field(tag, {}, True)} if tag is not None else {})}

    def extra(self, shape: Shape) -> object:
        """The schema of a property that is not declared; None where there may be none."""
        patterns = as_map(shape.schema.get("patternProperties"))
        more = shape.schema.get("additionalProperties", None if patterns else True)
        if patterns:
            return next(iter(patterns.values())) if len(patterns) == 1 and more in (None, False) else {}
        return None if more is False else {} if more in (True, None) else more

    def item(self, shape: Shape, index: int) -> object:
        """The schema of an item of an array."""
        prefix = shape.schema.get("prefixItems")
        items = shape.schema.get("items", {})
        if isinstance(items, list):
            prefix, items = cast("list[object]", items), shape.schema.get("additionalItems", {})
        listed = cast("list[object]", prefix) if isinstance(prefix, list) else []
        return listed[index] if index < len(listed) else items

    def union(self, shape: Shape) -> Union:
        """The branches of a union."""
        return self._keep("union", shape.schema, "", lambda: self._union(shape))

    def resolve(self, schema: object) -> dict[str, Any]:
        """The schema with what it refers to, and all parts of an `allOf`, put into it."""
        return self._resolve(schema, [MAX_RESOLVED])

    def _keep(self, what: str, schema: object, name: str, make: Callable[[], T]) -> T:
        key = (what, id(schema), name)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = schema, make()
        return kept[1]

    def _resolve(self, schema: object, budget: list[int]) -> dict[str, Any]:
        """`budget`: how many schemas may still be put together; those that hold themselves come to an end by it."""
        budget[0] -= 1
        if schema is False or budget[0] < 0:
            return {"not": {}} if schema is False else {}
        made = dict(as_map(schema))
        reference = made.pop("$ref", None)
        if isinstance(reference, str):
            made = merge(self._resolve(self._target(reference), budget), made)
        parts = as_maps(made.pop("allOf", None))
        for part in parts:
            made = merge(self._resolve(part, budget), made)
        return made

    def _target(self, reference: str) -> object:
        if not reference.startswith("#"):
            return {}
        current: object = self._root
        for step in reference[1:].split("/")[1:]:
            key = step.replace("%25", "%").replace("~1", "/").replace("~0", "~")
            table = as_map(current)
            listed = cast("list[object]", current) if isinstance(current, list) else None
            if key in table:
                current = table[key]
            elif listed is not None and key.isdigit() and int(key) < len(listed):
                current = listed[int(key)]
            else:
                return {}
        return current

    def _shape(self, schema: object, name: str) -> Shape:
        plain, nullable = without_null(self.resolve(schema), self.resolve)
        choices = self._choices(plain)
        if choices:
            return Shape("choice", plain, nullable or None in choices, choices)
        if len(self._branches(plain)) > 1:
            return Shape("union", plain, nullable)
        kind = _kind(plain, name)
        if kind == "array":
            listed = self._choices(self.resolve(plain.get("items"))) if "prefixItems" not in plain else ()
            if 0 < len(listed) <= MAX_CHECKLIST:
                return Shape("checklist", plain, nullable, listed)
        return Shape(kind, plain, nullable)

    def _choices(self, plain: Mapping[str, Any]) -> tuple[JsonValue, ...]:
        """The values of `const`, `enum`, or a union of nothing but those."""
        if "const" in plain:
            return (plain["const"],)
        listed = plain.get("enum")
        if isinstance(listed, list):
            return tuple(cast("list[JsonValue]", listed))
        found: list[JsonValue] = []
        for branch in _branches_of(plain):
            part = self.resolve(branch)
            inner = self._choices(part) if "const" in part or "enum" in part else ()
            if not inner:
                return ()
            found += inner
        return tuple(found)

    def _branches(self, plain: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The schemas of the branches; branches that only say what is required are no ways to fill something in."""
        listed = [self.resolve(branch) for branch in _branches_of(plain)]
        base = {key: value for key, value in plain.items() if key not in {"oneOf", "anyOf", "discriminator"}}
        if listed and not all(branch.keys() <= _SAYS_NOTHING for branch in listed):
            return [merge(base, branch) for branch in listed]
        kinds = type_names(plain)
        return [{**plain, "type": kind} for kind in kinds] if len(kinds) > 1 else []

    def _union(self, shape: Shape) -> Union:
        branches = self._branches(shape.schema)
        tag = self._tag(branches)
        tags = [self._tags(branch, tag) for branch in branches]
        labels = [_label(branch, values, at) for at, (branch, values) in enumerate(zip(branches, tags, strict=True))]
        told = [label if labels.count(label) == 1 else f"{label} ({at + 1})" for at, label in enumerate(labels)]
        rows = zip(told, branches, tags, strict=True)
        return Union(tuple(Branch(label, branch, values) for label, branch, values in rows), tag)

    def _tag(self, branches: list[dict[str, Any]]) -> str | None:
        names = list(as_map(branches[0].get("properties"))) if branches else []
        for name in sorted(names, key=lambda name: name != self._prefer):
            values = [self._tags(branch, name) for branch in branches]
            every = [repr(value) for part in values for value in part]
            if all(values) and len(set(every)) == len(every):
                return name
        return None

    def _tags(self, branch: Mapping[str, Any], tag: str | None) -> tuple[JsonValue, ...]:
        properties = as_map(branch.get("properties"))
        return self._choices(self.resolve(properties[tag])) if tag is not None and tag in properties else ()


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Field]:
    required = schema.get("required")
    needed = set(map(str, cast("list[object]", required))) if isinstance(required, list) else set[str]()
    return {name: Field(name, part, name in needed) for name, part in as_map(schema.get("properties")).items()}


def _branches_of(plain: Mapping[str, Any]) -> list[object]:
    for key in ("oneOf", "anyOf"):
        listed = plain.get(key)
        if isinstance(listed, list) and listed:
            return cast("list[object]", listed)
    return []


def _kind(plain: Mapping[str, Any], name: str) -> Kind:
    kinds = type_names(plain)
    if "type" in plain and not kinds:
        return "json"
    match kinds[0] if kinds else next((kind for kind, keys in _KEYS.items() if keys & plain.keys()), ""):
        case "string":
            is_long = name.casefold() in _LONG_WORDS or _is_over(plain.get("maxLength"), LONG_TEXT)
            is_short = not _is_over(plain.get("maxLength"), 80) and "maxLength" in plain
            return "lines" if is_long and not is_short and not plain.get("format") else "text"
        case "boolean" | "integer" | "number" | "object" | "array" as kind:
            return kind
        case _:
            return "json"


def _is_over(value: object, limit: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > limit


def _label(branch: Mapping[str, Any], tags: tuple[JsonValue, ...], at: int) -> str:
    if tags:
        return ", ".join(tag if isinstance(tag, str) else repr(tag) for tag in tags[:3])
    title = branch.get("title")
    if isinstance(title, str) and title:
        return title
    required = branch.get("required")
    names = cast("list[object]", required) if isinstance(required, list) else []
    if len(names) == 1:
        return str(names[0])
    if "const" in branch:
        return repr(branch["const"])
    kind = branch.get("type")
    if not kind:
        return tr("option {number}", number=at + 1)
    return {"string": tr("text"), "integer": tr("whole number"), "array": tr("list")}.get(str(kind), str(kind))
