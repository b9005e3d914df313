"""The form as a value tree: what goes in comes out, whatever the schema; operations, unions, lists, faults."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright.workspace import Workspace
from gatewright_gui.pages.trial.argument_check import checker_of
from gatewright_gui.pages.trial.call_example import example_values
from gatewright_gui.pages.trial.call_form import CallForm, FieldFault
from gatewright_gui.pages.trial.json_value import NOTHING, Path
from gatewright_gui.session.calls import OperationShape, ShownTool, visible_tools
from tests.support.demo import copy_demo

CORPORA = FilePath(__file__).resolve().parents[4] / "shared" / "corpora"
MAX_VIEWS = 400


def tool(schema: Mapping[str, Any], field: str | None = None, *shapes: OperationShape) -> ShownTool:
    return ShownTool("strange", "", schema, field, shapes)


def form_of(properties: dict[str, Any], *required: str, **rest: Any) -> CallForm:
    return CallForm(tool({"type": "object", "properties": properties, "required": list(required), **rest}))


def places(form: CallForm, path: Path = (), depth: int = 0) -> Iterator[Path]:
    """Every place that the form shows."""
    view = form.view(path)
    if path:
        yield path
    if depth > 5:
        return
    editor, value = view.editor, view.value
    if editor == "union" and form.branch(path) is None and path:
        return
    inner = form.inner(path).kind
    if editor in {"object", "union"} and inner == "object" and (path == () or value is not NOTHING):
        for name in (*form.fields(path), *form.extras(path)):
            yield from places(form, (*path, name), depth + 1)
    elif inner == "array" and isinstance(value, list):
        for index in range(len(value)):
            yield from places(form, (*path, index), depth + 1)


def retype(form: CallForm) -> None:
    """Type into every field what stands in it."""
    for number, path in enumerate(list(places(form))):
        if number > MAX_VIEWS:
            break
        view = form.view(path)
        if view.editor in {"line", "lines", "json"} and view.text:
            form.set_text(path, view.text)


def survives(form: CallForm, values: dict[str, JsonValue]) -> None:
    form.set_values(values)
    assert same(form.values(), values)
    assert same(json.loads(form.text()), values)
    retype(form)
    assert same(form.values(), values)


def same(one: object, other: object) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def corpus(name: str) -> Any:
    path = CORPORA / name
    if not path.is_file():
        pytest.skip(f"the corpus `{name}` is not beside this checkout")
    return json.loads(path.read_text("utf-8"))


def test_every_corpus_tool_makes_a_form_that_keeps_its_example() -> None:
    operations = {row["id"]: row for row in corpus("multi_op_annotations.json")}
    made = 0
    for row in corpus("mcp_tools.json"):
        schema: Any = row["tool"].get("inputSchema")
        if not isinstance(schema, dict):
            continue
        known = operations.get(row["id"])
        form = CallForm(tool(cast("dict[str, Any]", schema), known and known["operation_field"]))
        survives(form, {})
        survives(form, example_values(form))
        survives(form, {"odd key": [1, {"a": None}], **dict.fromkeys(form.fields(())[:8], "x\xa0\n7")})
        made += 1
    assert made > 1000


def test_every_annotated_operation_can_be_chosen_or_typed() -> None:
    tools = {row["id"]: row["tool"] for row in corpus("mcp_tools.json")}
    flat = 0
    for row in corpus("multi_op_annotations.json"):
        if row["id"] not in tools or "." in row["operation_field"] or "[]" in row["operation_field"]:
            continue
        shapes = [OperationShape(name, "", frozenset(), frozenset()) for name in row["operations"] or ()]
        form = CallForm(tool(tools[row["id"]]["inputSchema"], row["operation_field"], *shapes))
        if form.selector is None:
            continue
        flat += 1
        for name in row["operations"] or ():
            form.choose_operation(name)
            assert form.operation == name, row["id"]
    assert flat > 60


def test_every_library_shape_keeps_its_values() -> None:
    for row in corpus("library_schema_shapes.json"):
        form = CallForm(tool(row["schema"], row.get("operation_field")))
        survives(form, example_values(form))
        union = form.union(())
        for index in range(len(union.branches) if union is not None else 0):
            form.choose_branch((), index)
            assert form.branch(()) == index, row["source"]


def test_built_in_tools_keep_their_examples(tmp_path: FilePath) -> None:
    workspace = Workspace.open(copy_demo(tmp_path / "demo"))
    try:
        shown = visible_tools(workspace, "operator")
        assert len(shown) > 10
        for one in shown:
            form = CallForm(one)
            for shape in one.operations or (None,):
                form.choose_operation(shape.name if shape else None)
                survives(form, example_values(form))
    finally:
        workspace.close()


@pytest.mark.parametrize("checks", ["true", "false"])
def test_a_form_finds_a_text_that_is_not_of_its_format_where_the_gate_does(tmp_path: FilePath, checks: str) -> None:
    policy = copy_demo(tmp_path / "demo")
    host = '[[catalogs]]\nid = "mail"\ntype = "host"\nmanifest = "mail.json"\n\n'
    text = policy.read_text("utf-8").replace("[defaults]\n", f"[defaults]\ncheck_formats = {checks}\n", 1)
    policy.write_text(
        text.replace("[[sources]]", f"{host}[agents.clerk]\ntools = ['send_mail']\n\n[[sources]]", 1), "utf-8"
    )
    schema = {"type": "object", "properties": {"to": {"type": "string", "format": "email"}}}
    manifest = json.dumps({"tools": [{"name": "send_mail", "inputSchema": schema}]})
    (policy.parent / "mail.json").write_text(manifest, "utf-8")
    workspace = Workspace.open(policy)
    try:
        (shown,) = visible_tools(workspace, "clerk")
        found = [str(fault) for fault in checker_of(shown).faults({"to": "nobody"})]
        assert found == (["`to`: must be an e-mail address"] if checks == "true" else [])
        denied = workspace.decide("clerk", "send_mail", {"to": "nobody"}).stage == "schema"
        assert denied == bool(found)
    finally:
        workspace.close()


NAMES = st.sampled_from(["a", "b", "op", "content", "path", "ünï", "x y"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
    | st.sampled_from(["5", "seven", "", " 1 ", "true", "\r", "a\nb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
PLAIN: st.SearchStrategy[Any] = st.sampled_from(
    [
        True,
        {},
        {"type": "string"},
        {"type": "string", "maxLength": 900},
        {"type": ["integer", "null"]},
        {"type": ["string", "number"]},
        {"type": "number"},
        {"type": "boolean"},
        {"enum": ["a", 3, None]},
        {"const": "x"},
        {"$ref": "#"},
        {"$ref": "#/$defs/node"},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
    ]
)


def array(items: Any) -> Any:
    return {"type": "array", "items": items}


def row(first: Any, rest: Any) -> Any:
    return {"type": "array", "prefixItems": [first], "items": rest}


def table(names: Any, more: Any) -> Any:
    return {"type": "object", "properties": names, "additionalProperties": more}


def combined(key: str, parts: list[Any]) -> Any:
    return {key: parts}


def tagged(parts: list[Any]) -> Any:
    names = [{"op": {"const": f"op{at}"}, "b": part} for at, part in enumerate(parts)]
    return {"oneOf": [{"type": "object", "properties": one, "required": ["op"]} for one in names]}


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return (
        st.builds(array, inner)
        | st.builds(row, inner, inner)
        | st.builds(table, st.dictionaries(NAMES, inner, max_size=3), inner | st.just(False))
        | st.builds(combined, st.sampled_from(["anyOf", "oneOf", "allOf"]), several)
        | st.builds(tagged, several)
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(PLAIN, larger, max_leaves=8)
NODE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "array", "items": {"$ref": "#"}}}}


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, SCHEMAS, max_size=5) | SCHEMAS, st.dictionaries(NAMES, JSON, max_size=5))
def test_values_go_through_a_form_of_any_schema(schema: Any, values: dict[str, JsonValue]) -> None:
    root: dict[str, Any] = {"type": "object", "properties": schema} if not isinstance(schema, bool) else {}
    itself = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    for whole in (root, itself):
        survives(CallForm(tool({**whole, "$defs": {"node": NODE}}, "op")), values)


STEP = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"op": {"const": "add"}, "row": {"type": "string"}},
            "required": ["op", "row"],
        },
        {"type": "object", "properties": {"op": {"const": "cut"}, "at": {"type": "integer"}}, "required": ["op", "at"]},
    ]
}


def test_branch_of_a_nested_operation_is_told_by_the_value_and_can_be_changed_back() -> None:
    form = form_of({"steps": {"type": "array", "items": STEP}})
    form.set_values({"steps": [{"op": "cut", "at": 3}]})
    item: Path = ("steps", 0)
    assert (form.branch(item), form.fields(item)) == (1, ("at",))
    form.choose_branch(item, 0)
    assert form.values() == {"steps": [{"op": "add"}]}
    form.choose_branch(item, 1)
    assert form.values() == {"steps": [{"op": "cut", "at": 3}]}


def test_union_without_a_tag_takes_the_branch_that_knows_most_of_the_value() -> None:
    shapes = [
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
        {"type": "object", "properties": {"file": {"type": "string"}, "line": {"type": "integer"}}},
        {"type": "string"},
    ]
    form = form_of({"at": {"anyOf": shapes}})
    for value, branch in (({"file": "a"}, 1), ({"url": "b"}, 0), ("c", 2)):
        form.set_values({"at": cast("JsonValue", value)})
        assert form.branch(("at",)) == branch
    form.set_values({"at": 7})
    assert form.view(("at",)).editor == "json"


def test_items_carry_what_is_known_of_them_when_they_move() -> None:
    form = form_of({"rows": {"type": "array", "items": {"type": "object"}}})
    form.set_values({"rows": [{"a": 1}, {"b": 2}, {"c": 3}]})
    form.edit_as_json(("rows", 2), raw=True)
    form.set_text(("rows", 2), "{broken")
    assert form.move_item(("rows", 2), -1) == ("rows", 1)
    assert form.view(("rows", 1)).text == "{broken"
    assert form.move_item(("rows", 0), -1) is None
    form.remove_item(("rows", 0))
    assert form.view(("rows", 0)).text == "{broken"
    with pytest.raises(FieldFault, match="rows\\[0\\]"):
        form.values()
    assert "{broken" in form.text()
    with pytest.raises(JsonRefused):
        parse_object(form.text())
    assert cast("list[JsonValue]", form.values_as_far()["rows"])[0] is None


def test_what_holds_a_value_comes_and_goes_with_it() -> None:
    form = form_of(
        {"a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "integer"}}}}}}
    )
    form.set_text(("a", "b", "c"), "5")
    assert form.values() == {"a": {"b": {"c": 5}}}
    form.set_text(("a", "b", "c"), "")
    assert form.values() == {}
    form.set(("a",), {})
    form.set_text(("a", "b", "c"), "5")
    form.set_text(("a", "b", "c"), "")
    assert form.values() == {"a": {}}


def test_arguments_of_another_operation_wait_and_come_back() -> None:
    read = OperationShape("read", "", frozenset({"path"}), frozenset({"path"}))
    write = OperationShape("write", "", frozenset({"path", "content"}), frozenset({"path"}))
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("op", "path", "content")}}
    form = CallForm(tool(schema, "op", read, write))
    form.set_values({"op": "write", "path": "a", "content": "x"})
    form.choose_operation("read")
    assert form.values() == {"op": "read", "path": "a"}
    form.choose_operation("write")
    assert form.values() == {"op": "write", "path": "a", "content": "x"}
    form.set_values({"op": "read", "content": "typed as JSON"})
    assert form.values() == {"op": "read", "content": "typed as JSON"}
    assert not form.is_taken("content")


def test_keys_that_are_not_declared_can_be_named() -> None:
    form = form_of({}, additionalProperties={"type": "integer"})
    form.set(("a",), 1)
    form.set(("b",), 2)
    assert list(form.values()) == ["a", "b"]
    assert form.view(("b",)).editor == "line"
    closed = form_of({"x": {"type": "integer"}}, additionalProperties=False)
    closed.set_values({"y": [1]})
    assert (closed.view(("y",)).is_declared, closed.view(("y",)).editor) == (False, "json")


@pytest.mark.parametrize(
    ("shape", "value", "editor"),
    [
        ({"type": "string"}, "two\nlines", "lines"),
        ({"type": "string"}, "hard\u00a0space", "json"),
        ({"type": "string"}, 7, "json"),
        ({"type": "integer"}, "seven", "line"),
        ({"type": "integer"}, "7", "json"),
        ({"type": ["integer", "null"]}, None, "json"),
        ({"enum": ["a", 1]}, True, "json"),
        ({"enum": ["a", 1]}, 1, "choice"),
        ({"type": "boolean"}, "true", "json"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["b", "a"], "checklist"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "a"], "json"),
        ({"anyOf": [{"const": "x"}, {"const": "y"}]}, "y", "choice"),
    ],
)
def test_value_is_shown_in_a_field_that_holds_it(shape: dict[str, Any], value: JsonValue, editor: str) -> None:
    form = form_of({"x": shape})
    form.set_values({"x": value})
    assert form.view(("x",)).editor == editor
    retype(form)
    assert form.values() == {"x": value}


def test_recursive_schema_costs_nothing_until_it_is_looked_into() -> None:
    node: dict[str, Any] = {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}},
    }
    form = CallForm(tool({"$ref": "#/$defs/n", "$defs": {"n": node}}))
    path: Path = ()
    for _ in range(30):
        assert form.fields(path) == ("left", "right")
        path = (*path, "left")
    endless = {
        "allOf": [{"$ref": "#/$defs/n"}],
        "$defs": {"n": {"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}},
    }
    assert CallForm(tool(endless)).fields(()) == ()
    looped = {"anyOf": [{"$ref": "#/$defs/n"}], "$defs": {"n": {"anyOf": [{"$ref": "#/$defs/n"}]}}}
    assert CallForm(tool(looped)).fields(()) == ()


def test_broken_json_of_an_argument_that_the_next_operation_does_not_take_is_forgotten() -> None:
    read = OperationShape("read", "", frozenset({"path"}), frozenset({"path"}))
    write = OperationShape("write", "", frozenset({"path", "rows"}), frozenset({"path"}))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"op": {"type": "string"}, "path": {"type": "string"}, "rows": {"type": "array", "items": {}}},
    }
    form = CallForm(tool(schema, "op", read, write))
    form.choose_operation("write")
    form.set(("rows",), [])
    form.set_text(form.add_item(("rows",)), "{broken")
    form.choose_operation("read")
    assert form.values() == {"op": "read"}
    assert form.text() == '{\n  "op": "read"\n}'


def test_unions_in_unions_are_told_without_going_through_each_of_them_again() -> None:
    node: dict[str, Any] = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "leaf"}}, "required": ["kind"]},
            {
                "type": "object",
                "properties": {"kind": {"const": "not"}, "inner": {"$ref": "#/$defs/node"}},
                "required": ["kind"],
            },
        ]
    }
    form = CallForm(
        tool({"type": "object", "properties": {"filter": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    )
    value: JsonValue = {"kind": "leaf"}
    for _ in range(40):
        value = {"kind": "not", "inner": value}
    form.set_values({"filter": value})
    deepest = ("filter", *["inner"] * 40)
    assert form.branch(deepest) == 0
    assert form.view((*deepest, "kind")).value == "leaf"
