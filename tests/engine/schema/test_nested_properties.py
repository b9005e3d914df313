"""Operations below the root, in generated schemas: what is shown takes exactly the calls that may be made."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.schema import SchemaChecker, check_schema, discover_operations, filter_operations
from tests.engine.schema.strategies import calls, property_enums, root_unions

Json = dict[str, Any]
_OTHERS: list[Any] = [None, "text", 1, [], {}]
OTHERS = st.sampled_from(_OTHERS)


Draw = Callable[[st.SearchStrategy[Any]], Any]
Wrap = Callable[[Draw, list[Json]], Any]


class Wrapped:
    """A schema around an object that selects operations, and how calls for it are made."""

    def __init__(self, schema: Json, wrap: Wrap, path: str) -> None:
        self.schema, self.wrap, self.path = schema, wrap, path


def one(draw: Draw, inner: list[Json]) -> Any:
    return inner[0] if draw(st.integers(0, 9)) else draw(OTHERS)


def many(draw: Draw, inner: list[Json]) -> Any:
    return [*inner, *draw(st.lists(OTHERS, max_size=1))] if not draw(st.integers(0, 5)) else inner


def single(draw: st.DrawFn, inner: Json) -> Json:
    """A parameter's schema that holds ``inner`` in one of the usual ways."""
    spelled = draw(st.sampled_from(["plain", "nullable", "allOf", "ref", "texts", "ref-nullable"]))
    match spelled:
        case "nullable":
            return {"anyOf": [inner, {"type": "null"}]}
        case "ref-nullable":
            return {"oneOf": [{"$ref": "#/$defs/Call"}, {"type": "null"}], "default": None}
        case "allOf":
            return {"allOf": [inner], "description": "What to do."}
        case "ref":
            return {"$ref": "#/$defs/Call"}
        case "texts":
            return {"anyOf": [{"type": "string"}, inner]}
        case _:
            return inner


@st.composite
def wrapped_schemas(draw: st.DrawFn) -> Wrapped:
    inner = draw(st.one_of(property_enums(), root_unions()))
    field = "operation" if "properties" in inner and "operation" in inner["properties"] else "action"
    kind = draw(
        st.sampled_from(["request", "batch", "deep batch", "batch or text", "one or many", "allOf", "nullable"])
    )
    required = ["request"] if draw(st.booleans()) else []
    held = single(draw, inner)
    defs: Json = {"$defs": {"Call": inner}}
    match kind:
        case "request":
            root: Json = {"properties": {"request": held, "note": {"type": "string"}}, "required": required}
            return Wrapped({"type": "object", **root, **defs}, lambda d, i: {"request": one(d, i)}, f"request.{field}")
        case "nullable":
            held = {**inner, "type": ["object", "null"]}
            root = {"properties": {"request": held}, "required": required, "additionalProperties": False}
            return Wrapped({"type": "object", **root}, lambda d, i: {"request": one(d, i)}, f"request.{field}")
        case "batch":
            root = {"properties": {"operations": {"type": "array", "items": held}}}
            return Wrapped(
                {"type": "object", **root, **defs}, lambda d, i: {"operations": many(d, i)}, f"operations[].{field}"
            )
        case "deep batch":
            rows = {"type": "object", "properties": {"rows": {"type": "array", "items": inner}}}
            root = {"properties": {"layout": {"anyOf": [rows, {"type": "null"}]}}}
            return Wrapped(
                {"type": "object", **root}, lambda d, i: {"layout": {"rows": many(d, i)}}, f"layout.rows[].{field}"
            )
        case "batch or text":
            root = {"properties": {"content": {"anyOf": [{"type": "string"}, {"type": "array", "items": inner}]}}}
            return Wrapped({"type": "object", **root}, lambda d, i: {"content": many(d, i)}, f"content[].{field}")
        case "one or many":
            both = [inner, {"type": "array", "items": {"$ref": "#/$defs/Call"}}]
            root = {"properties": {"steps": {"anyOf": both}}}
            return Wrapped(
                {"type": "object", **root, **defs},
                lambda d, i: {"steps": many(d, i) if d(st.booleans()) else one(d, i)},
                f"steps.{field}",
            )
        case _:
            root = {"allOf": [{"$ref": "#/$defs/Call"}, {"properties": {"note": {"type": "string"}}}]}
            return Wrapped({"type": "object", **root, **defs}, lambda _, i: i[0], field)


@settings(max_examples=400)
@given(wrapped_schemas(), st.data())
def test_what_is_shown_takes_exactly_the_calls_of_allowed_operations(wrapped: Wrapped, data: st.DataObject) -> None:
    schema = wrapped.schema
    before = copy.deepcopy(schema)
    found = discover_operations(schema, field=wrapped.path)
    assert found is not None, wrapped.path
    allowed = data.draw(st.sets(st.sampled_from(found.names), min_size=1))
    shown = filter_operations(schema, allowed, field=wrapped.path)
    assert schema == before
    assert shown is not None
    assert check_schema(shown) == ()
    assert (shown is schema) == (allowed == set(found.names))
    name = wrapped.path.rsplit(".", 1)[-1]
    inner = data.draw(st.lists(calls(name), min_size=1, max_size=3))
    call: Json = wrapped.wrap(data.draw, inner) if data.draw(st.integers(0, 19)) else {}
    called = found.of(call)
    may = called is not None and set(called) <= allowed
    fits, shows = SchemaChecker(schema).is_valid(call), SchemaChecker(shown).is_valid(call)
    assert not shows or (may and fits), (shown, call, called)
    if may and fits and not shows:
        assert has_unknown_keys(inner, schema), (shown, call)


def has_unknown_keys(inner: list[Json], schema: Json) -> bool:
    """Whether some object holds a key that its operation does not declare: filtering closes what was open."""
    return any(set(item) - declared(schema, item) for item in inner)


def declared(schema: Any, item: Json) -> set[str]:
    """Every key that some object schema declares beside the operation of ``item``."""
    found: set[str] = set()
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(node, dict):
            properties = node.get("properties", {})  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            for name in ("operation", "action"):
                if name in properties and mentions(properties[name], item.get(name)):
                    found |= set(properties)  # pyright: ignore[reportUnknownArgumentType]
            stack.extend(node.values())  # pyright: ignore[reportUnknownArgumentType]
    return found


def mentions(tag: Any, value: Any) -> bool:
    return value is None or f"'{value}'" in str(tag)
