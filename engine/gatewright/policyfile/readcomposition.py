"""Reads ``[[compositions]]``, and adds their tools to the known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from gatewright.base.errors import AuthorMustFix, RawPath, SchemaError, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.row import JSON_TABLE, Row, json_table
from gatewright.policy.composition import (
    MAX_DEPTH,
    MAX_STEPS,
    NO_INPUT,
    ORIGIN,
    BadReference,
    Composition,
    CompositionStep,
    reference_of,
    step_operations,
    texts_in,
)
from gatewright.policy.document import Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.verdict import SafetyTier, split_name, tool_name_fault
from gatewright.policyfile.names import KnownTools, Names
from gatewright.policyfile.table import Form, Id, JsonTable, Table, When, read_keys
from gatewright.schema.check import check_schema
from gatewright.schema.fault import check_json_schema
from gatewright.schema.inline import inline_references
from gatewright.schema.walk import Schema, as_list, as_object, pattern_problems


class StepTable(Table, of=CompositionStep):
    """A row of the ``steps`` of a composition."""

    tool: Id = Field(description="The tool to call, by the name that its agent knows")
    arguments: Annotated[Mapping[str, JsonValue], Form(lambda: {**JSON_TABLE, "default": {}}, None, dict)] = Field(
        {},
        description='What it is given; a text that as a whole is `"$input.path"` or `"$steps.0.path"` is that value',
    )
    when: When | None = Field(
        None, description="A JSON Schema over `input` and `steps`: a step that does not fit it is skipped"
    )


class CompositionTable(Table, of=Composition):
    """A row of ``[[compositions]]``."""

    name: Id = Field(description="The name of the tool that agents see")
    description: str = Field("", description="Its description for the model")
    input: JsonTable = Field(NO_INPUT, description="The JSON Schema of its arguments; absent: it takes none")
    steps: tuple[CompositionStep, ...] = Field(
        min_length=1, max_length=MAX_STEPS, description="The calls that it makes, one after the other"
    )


_WHAT, _STEP = "a composition", "a step"
_INSIDE = ("$input.", "$steps.")


@frozen
class _Read:
    row: Row
    composition: Composition


def read_compositions(
    rows: Sequence[Row], known: KnownTools | None
) -> tuple[tuple[Composition, ...], KnownTools | None]:
    """Read the compositions that can be built, and add their tools to ``known``; if that is None, no name is looked up.

    `check_steps` checks the tools that they call.
    """
    if known is not None and known.compose is None:
        for row in rows:
            row.report.error(row.path, "not-supported", "`[[compositions]]` are not supported here", at_value=False)
        return (), known
    read: list[_Read] = []
    names: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        composition = _composition(row, known)
        if composition is None:
            continue
        if names.setdefault(composition.name, number) != number:
            message = f"composition {names[composition.name]} is named {shown(composition.name)} too"
            row.fault("name", "duplicate", message)
            continue
        read.append(_Read(row, composition))
    _check_nesting(read)
    found = tuple(one.composition for one in read)
    if known is None:
        return found, None
    known = _with_tools(read, known)
    named = dict.fromkeys(name for row in rows if isinstance(name := row.raw.get("name"), str))
    # a composition that calls a faulty one is not faulty for that
    faulty = tuple(_unmade(name) for name in named if not known.of(name))
    return found, replace(known, facts=(*known.facts, *faulty)) if faulty else known


def _with_tools(read: Sequence[_Read], known: KnownTools) -> KnownTools:
    """Add their tools to ``known``, up to the first unusable one, which is reported."""
    found = tuple(one.composition for one in read)
    try:
        return known.with_compositions(Policy(compositions=found))
    except AuthorMustFix:
        for end, one in enumerate(read, 1):
            try:
                known = known.with_compositions(Policy(compositions=found[:end]))
            except AuthorMustFix as error:
                one.row.report.error(one.row.path, "bad-value", str(error), at_value=False)
                return known
    return known


def _unmade(name: str) -> ToolFacts:
    tier = SafetyTier.PRIVILEGED
    return ToolFacts(name, 1, (OperationFacts("", tier),), tier, ORIGIN)


def check_steps(rows: Sequence[Row], compositions: Sequence[Composition], names: Names) -> None:
    """Check that every step calls an existing tool, by an operation that the tool has."""
    by_name = {one.name: one for one in compositions}
    for row in rows:
        composition = by_name.get(str(row.raw.get("name")))
        if composition is None or names.known is None:
            continue
        for index, step in enumerate(composition.steps):
            place = row.at("steps", index, "tool")
            if split_name(step.tool)[1] is not None:
                bare = shown(split_name(step.tool)[0])
                message = f"a step calls the version of a tool that its agent has: write {bare}"
                row.report.error(place, "bad-value", message)
                continue
            facts = names.tool(step.tool, place)
            if facts and not any(step_operations(one, step) for one in facts):
                _report_operation(row, row.at("steps", index, "arguments"), facts[-1], step)


def _report_operation(row: Row, place: RawPath, facts: ToolFacts, step: CompositionStep) -> None:
    fields = facts.selection.fields if facts.selection is not None else frozenset[str]()
    field = next(name for name in sorted(fields) if name in step.arguments)
    value = step.arguments[field]
    if isinstance(value, str):
        what, near = shown(value), row.report.near(value, facts.operation_names)
    else:
        what, near = "as what stands here", None
    row.report.error((*place, field), "unknown-operation", f"`{facts.name}` has no operation {what}", near=near)


def _composition(row: Row, known: KnownTools | None) -> Composition | None:
    found = read_keys(row, CompositionTable, _WHAT)
    _check_name(row, found, known)
    schema = _input(row)
    entries = row.rows("steps")
    if row.raw.get("steps") == []:
        row.fault("steps", "bad-value", "a composition has one step at least")
    if len(entries) > MAX_STEPS:
        row.report.error(row.at("steps", MAX_STEPS), "too-many-steps", f"a composition has at most {MAX_STEPS} steps")
        entries = entries[:MAX_STEPS]
    steps = [_step(entry, index, len(entries), schema) for index, entry in enumerate(entries)]
    if "name" not in found or schema is None or not steps or len(steps) != len(row.items("steps")):
        return None
    built = tuple(step for step in steps if step is not None)
    return Composition(**found, input=schema, steps=built) if len(built) == len(steps) else None


def _check_name(row: Row, found: dict[str, Any], known: KnownTools | None) -> None:
    """Report and drop a name that no tool can have, or that another tool has."""
    name = found.pop("name", None)
    if name is None:
        return
    if why := tool_name_fault(name):
        row.fault("name", "bad-value", why)
    elif known is not None and known.of(name):
        row.fault("name", "name-taken", f"there is a tool {shown(name)} already: give the composition another name")
    else:
        found["name"] = name


def _input(row: Row) -> Schema | None:
    """Read the schema, which is for an object; None if it cannot be used."""
    if "input" not in row.raw:
        return dict(NO_INPUT)
    table = row.table("input")
    schema = json_table(table.raw, table.path, row.report) if table else None
    if schema is None:
        return None
    place = row.at("input")
    if schema.get("type", "object") != "object":
        row.report.error((*place, "type"), "bad-value", "the input of a composition is an object")
        return None
    found = [((*place, *one.pointer.split("/")[1:]), one.message) for one in check_schema(schema)]
    found += [((*place, *one.pointer), one.message) for one in pattern_problems(schema)]
    for where, message in found:
        row.report.error(where, "bad-schema", f"this JSON Schema cannot be used: {message}")
    return None if found else schema


def _step(row: Row, number: int, count: int, schema: Schema | None) -> CompositionStep | None:
    found = read_keys(row, StepTable, _STEP)
    table = row.table("arguments")
    arguments: dict[str, JsonValue] | None = {}
    if "arguments" in row.raw:
        arguments = json_table(table.raw, table.path, row.report) if table else None
    for place, text in texts_in(arguments or {}):
        _check_reference(row, place, text, number, count, schema)
    when = _when(row)
    return (
        None if "tool" not in found or arguments is None else CompositionStep(**found, arguments=arguments, when=when)
    )


def _when(row: Row) -> Mapping[str, JsonValue] | bool | None:
    value = row.raw.get("when")
    if value is None or isinstance(value, bool):
        return value
    table = row.table("when")
    schema = json_table(table.raw, table.path, row.report) if table else None
    if schema is None:
        return None
    check_json_schema(schema, row.at("when"), row.report)
    for key in _properties(schema):
        if key not in {"input", "steps"}:
            near = row.report.near(key, ("input", "steps"))
            message = f"`when` is about `input` and `steps`: there is no {shown(key)}"
            row.report.error(row.at("when", "properties", key), "unknown-reference", message, near=near, at_value=False)
    return schema


def _check_reference(row: Row, place: RawPath, text: str, number: int, count: int, schema: Schema | None) -> None:
    where = row.at("arguments", *place)
    try:
        reference = reference_of(text)
    except BadReference as error:
        row.report.error(where, "unknown-reference", f"{error}; a text that begins with `$` is written `$$`")
        return
    if reference is None:
        if not text.startswith("$$") and any(one in text for one in _INSIDE):
            message = f"{shown(text)} is a text as it stands: a reference is a whole value"
            row.report.warning(where, "text-as-it-stands", message, at_value=True)
        return
    if reference.step is not None:
        if reference.step >= count:
            last = f"the last one is `$steps.{count - 1}`"
            row.report.error(where, "unknown-reference", f"`$steps.{reference.step}` names no step: {last}")
        elif reference.step >= number:
            message = "a step knows only the results of those before it"
            row.report.error(where, "forward-reference", f"{shown(text)} comes too late: {message}")
    elif schema is not None and (name := _unknown_part(schema, reference.path)) is not None:
        near = row.report.near(name, _properties(schema))
        row.report.error(where, "unknown-reference", f"`input` has no {shown(name)}", near=near)


def _unknown_part(schema: Schema, path: Sequence[str]) -> str | None:
    """The first part of a path that a schema with properties does not name; None if it names all, or names none."""
    try:
        node: object = inline_references(schema)
    except SchemaError:
        return None
    for name in path:
        table = as_object(node)
        if table is None or any(key in table for key in ("allOf", "anyOf", "oneOf", "if", "$ref", "patternProperties")):
            return None
        properties = as_object(table.get("properties"))
        if properties is not None and name in properties:
            node = properties[name]
        elif properties is not None or table.get("additionalProperties") is False:
            return name
        elif name.isdecimal() and as_list(table.get("prefixItems")) is None:
            node = table.get("items")
        else:
            return None
    return None


def _properties(schema: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(as_object(schema.get("properties")) or ())


def _check_nesting(read: Sequence[_Read]) -> None:
    """Report a composition that calls itself, or is nested too deep, at the step that leads there."""
    by_name = {one.composition.name: one for one in read}
    depths: dict[str, int] = {}

    def depth(name: str, above: tuple[str, ...]) -> int:
        if name in depths:
            return depths[name]
        one, deepest = by_name[name], 1
        for index, step in enumerate(one.composition.steps):
            if step.tool not in by_name:
                continue
            place = one.row.at("steps", index, "tool")
            if step.tool in (*above, name):
                way = [*above, name][[*above, name].index(step.tool) :]
                text = " calls ".join(map(shown, (*way, step.tool)))
                one.row.report.error(place, "composition-cycle", f"a composition may not come to itself: {text}")
                continue
            below = depth(step.tool, (*above, name)) + 1
            if below == MAX_DEPTH + 1:
                message = f"compositions stand at most {MAX_DEPTH} deep in each other"
                one.row.report.error(place, "composition-too-deep", message)
            deepest = max(deepest, below)
        depths[name] = deepest
        return deepest

    for name in by_name:
        depth(name, ())
