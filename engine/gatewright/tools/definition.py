"""Tools known by their definitions alone, as MCP servers and manifests list them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeVar, cast

from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import is_text
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import check_schema
from gatewright.schema.operation import steps_of
from gatewright.schema.walk import Schema, as_list, as_object, linear_part, properties_of
from gatewright.tools.declaration import (
    Determinism,
    Normalization,
    ResourceBounds,
    ResultType,
    SideEffect,
    check_tool_name,
    major_of,
)

EXTRAS = "gatewright"
"""The key of our own part in a definition's ``_meta``."""

MAX_TOOLS = 5_000
MAX_DEPTH = 128
MAX_VALUES = 20_000
MAX_CHARACTERS = 1024 * 1024
_NAME = 128
_SCHEMA_KEYS = ("inputSchema", "input_schema", "parameters")
_OUTPUT_KEYS = ("outputSchema", "output_schema")
_CONDUCT = ("result_type", "normalization", "determinism", "side_effects", "bounds")
_EXTRA_KEYS = frozenset(
    {"version", "safety_tier", "destroys", "operation_tiers", "operation_outputs", "operation_field", "operations"}
    | {"arguments", *_CONDUCT}
)
_NORMALIZATIONS = (Normalization.JSON, Normalization.BINARY)
_BOUNDS = ("timeout_s", "memory_bytes", "cpu_s", "network_bytes", "max_requests")
_T = TypeVar("_T", bound=StrEnum)


@frozen
class Conduct:
    """The part of a definition about results and calls of a tool that this program runs; other definitions have
    none.
    """

    result_type: ResultType = ResultType.ANY
    normalization: Normalization | None = None
    determinism: Determinism = Determinism.NON_DETERMINISTIC
    side_effects: frozenset[SideEffect] | None = None
    bounds: ResourceBounds = ResourceBounds()


class ArgumentUse(StrEnum):
    """The use that a program makes of an argument of a tool that it runs itself.

    read, write, delete: of the file with that path; search: of all files in that folder; match: of those that fit that
    pattern; filter: of those in the folder whose names fit it. url, send: it fetches the address, or sends data there.
    command: a shell runs it, in the folder of the argument ``folder``. patch: it names the files to write and delete.
    The place ``.`` stands for the folder where the program works, which no argument names.
    """

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    SEARCH = "search"
    MATCH = "match"
    FILTER = "filter"
    URL = "url"
    SEND = "send"
    COMMAND = "command"
    FOLDER = "folder"
    PATCH = "patch"


@frozen
class ToolDefinition:
    """Name, words and schemas of a tool.

    An undeclared tier counts as privileged: ``safety_tier`` None, or an operation that ``operation_tiers`` lacks.
    ``operation_field`` and ``operations`` are as in a policy: an empty field means that no field selects operations.
    ``output_fault``: the reason why the given output schema is unusable and was dropped. ``destroys``: what its hints
    say, None without hints. ``run``: instructions for its executor, None without any. ``conduct`` counts if this
    program runs the tool. ``operation_outputs``: the result schemas of single operations. ``arguments``: the use of
    those arguments that are more than texts, by their places (``edits[].path``), for a tool that a program runs itself;
    None: unknown.
    """

    name: str
    description: str
    input_schema: Schema = field(hash=False)
    output_schema: Schema | None = field(default=None, hash=False)
    version: str = "1.0.0"
    safety_tier: SafetyTier | None = None
    operation_tiers: Mapping[str, SafetyTier] = field(default_factory=dict[str, SafetyTier], hash=False)
    operation_field: str | None = None
    operations: tuple[str, ...] | None = None
    output_fault: str = ""
    destroys: bool | None = None
    run: Schema | None = field(default=None, hash=False)
    conduct: Conduct = Conduct()
    operation_outputs: Mapping[str, Schema] = field(default_factory=dict[str, Schema], hash=False)
    arguments: Mapping[str, ArgumentUse] | None = field(default=None, hash=False)


@frozen
class DefinitionProblem:
    """The reason why a tool was left out.

    ``pointer`` (RFC 6901) leads into the manifest; ``name`` is empty if unknown.
    """

    pointer: str
    name: str
    message: str


class _SetAside(Exception):
    """An unusable definition; the pointer is relative to it."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message


def read_definitions(value: object) -> tuple[tuple[ToolDefinition, ...], tuple[DefinitionProblem, ...]]:
    """Read the tools of a parsed manifest, in its order, and its problems; never raises for a JSON value.

    ``value``: a list of tools as MCP, OpenAI or Anthropic spell them, or an object with such a list under ``tools``.
    """
    table = as_object(value)
    rows = as_list(table.get("tools")) if table is not None else as_list(value)
    if rows is None:
        return (), (DefinitionProblem("", "", "a manifest is a list of tools, or an object with one under `tools`"),)
    start = "/tools" if table is not None else ""
    definitions: dict[tuple[str, int], ToolDefinition] = {}
    problems: list[DefinitionProblem] = []
    for index, row in enumerate(rows[:MAX_TOOLS]):
        try:
            read = _read(row)
            _keep(definitions, read)
        except _SetAside as reason:
            problems.append(DefinitionProblem(f"{start}/{index}{reason.pointer}", _name_in(row), reason.message))
    if len(rows) > MAX_TOOLS:
        message = f"a manifest holds at most {MAX_TOOLS:,} tools; this and those behind it were left out"
        problems.append(DefinitionProblem(f"{start}/{MAX_TOOLS}", "", message))
    return tuple(definitions.values()), tuple(problems)


def _keep(definitions: dict[tuple[str, int], ToolDefinition], read: ToolDefinition) -> None:
    key = (read.name, major_of(read.version, read.name))
    if key in definitions:
        which = "" if key[1] == 1 else f" with major version {key[1]}"
        raise _SetAside("", f"the name `{read.name}` stands twice{which}; the first one is kept")
    definitions[key] = read


def _read(value: object) -> ToolDefinition:
    row = as_object(value)
    if row is None:
        raise _SetAside("", "a tool must be a JSON object")
    _check_size(row)
    base = ""
    if "function" in row:  # OpenAI puts everything into an inner object
        inner = as_object(row["function"])
        if row.get("type", "function") != "function" or inner is None:
            raise _SetAside("/function", 'a function must be a JSON object beside `"type": "function"`')
        meta = {"_meta": row["_meta"]} if "_meta" in row else {}
        base, row = "/function", {"type": "function", **inner, **meta}
    try:
        return _definition(row)
    except _SetAside as reason:
        raise _SetAside(base + reason.pointer, reason.message) from None


def _definition(row: Schema) -> ToolDefinition:
    name = row.get("name")
    if not isinstance(name, str) or not name:
        raise _SetAside("/name" if "name" in row else "", "the tool has no `name`")
    try:
        check_tool_name(name if len(name) <= _NAME else f"{name[:_NAME]}...")
    except RegistrationError as error:
        raise _SetAside("/name", str(error)) from None
    schema_key, schema = _input_schema(row)
    problems = check_schema(linear_part(schema))
    if problems:
        raise _SetAside(f"/{schema_key}{problems[0].pointer}", f"its schema cannot be used: {problems[0].message}")
    output, output_fault = _output_schema(row)
    said = _extras(row)
    version, asked = _version(said, name), said.get("operation_field")
    if asked is not None and not isinstance(asked, str):
        raise _extra("/operation_field", "`operation_field` must be a text, empty for none")
    return ToolDefinition(
        name,
        _text(row, "description"),
        schema,
        output,
        version,
        _tier(said.get("safety_tier"), "/safety_tier"),
        _operation_tiers(said),
        asked,
        _operations(said),
        output_fault,
        _destroys(said, as_object(row.get("annotations")) or {}),
        _run(row.get("run")),
        _conduct(said),
        _operation_outputs(said),
        _arguments(said, schema),
    )


def _arguments(said: Schema, schema: Schema) -> dict[str, ArgumentUse] | None:
    if "arguments" not in said:
        return None
    table = as_object(said["arguments"])
    if table is None:
        raise _extra("/arguments", "`arguments` must be a JSON object")
    there = {".", *properties_of(schema)}
    unknown = next((one for one in table if next(iter(steps_of(one)), one) not in there), None)
    if unknown is not None:
        raise _extra("/arguments", f"the schema has no argument `{unknown[:_NAME]}`")
    return {place: _one_of("arguments", use, ArgumentUse) for place, use in table.items()}


def _run(value: object) -> Schema | None:
    table = as_object(value)
    if value is not None and table is None:
        raise _SetAside("/run", "`run` must be a JSON object")
    return table


def _conduct(said: Schema) -> Conduct:
    effects = said.get("side_effects")
    rows = as_list(effects)
    if effects is not None and rows is None:
        raise _extra("/side_effects", "`side_effects` must be a list")
    result = _choice(said, "result_type", ResultType) or ResultType.ANY
    normal = _choice(said, "normalization", _NORMALIZATIONS)
    if result is ResultType.BINARY and normal is None:
        normal = Normalization.BINARY
    return Conduct(
        result,
        normal,
        _choice(said, "determinism", Determinism) or Determinism.NON_DETERMINISTIC,
        None if rows is None else frozenset(_one_of("side_effects", row, SideEffect) for row in rows),
        _bounds(said.get("bounds", {})),
    )


def _bounds(value: object) -> ResourceBounds:
    table = as_object(value)
    if table is None or not table.keys() <= set(_BOUNDS):
        raise _extra("/bounds", f"`bounds` is an object of {', '.join(f'`{key}`' for key in _BOUNDS)}")
    for key, number in table.items():
        is_whole = key.endswith("bytes") or key == "max_requests"
        if isinstance(number, bool) or not isinstance(number, int if is_whole else int | float):
            raise _extra(f"/bounds/{key}", f"`{key}` must be a {'whole ' if is_whole else ''}number")
    try:
        return ResourceBounds(**table)
    except (RegistrationError, OverflowError):
        raise _extra("/bounds", "`bounds` are positive numbers that a computer can hold") from None


def _choice(said: Schema, key: str, known: Iterable[_T]) -> _T | None:
    return _one_of(key, said[key], known) if said.get(key) is not None else None


def _one_of(key: str, value: object, known: Iterable[_T]) -> _T:
    found = next((one for one in known if one.value == value), None)
    if found is None:
        raise _extra(f"/{key}", f"`{key}` is one of {', '.join(f'`{one}`' for one in known)}")
    return found


def _destroys(said: Schema, hints: Schema) -> bool | None:
    """Tell from our own manifest's word, else from an MCP tool's annotations, whether it destroys.

    A tool that changes things destroys unless it denies that.
    """
    for told in (said.get("destroys"), hints.get("destructiveHint")):
        if isinstance(told, bool):
            return told
    reads = hints.get("readOnlyHint")
    return not reads if isinstance(reads, bool) else None


def _text(row: Schema, key: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise _SetAside(f"/{key}", f"`{key}` must be a text")
    return value or ""


def _input_schema(row: Schema) -> tuple[str, Schema]:
    """Return the schema under any of its keys; an OpenAI function without one takes no arguments."""
    given = [(key, row[key]) for key in _SCHEMA_KEYS if row.get(key) is not None]
    if not given and row.get("type") == "function":
        return "parameters", {"type": "object", "properties": {}}
    if not given:
        raise _SetAside("", "the tool has no `inputSchema`")
    key, value = given[0]
    if any(other != value for _, other in given[1:]):
        raise _SetAside(f"/{given[1][0]}", f"`{given[1][0]}` differs from `{key}`")
    schema = as_object(value)
    if schema is None:
        raise _SetAside(f"/{key}", "the schema of a tool must be a JSON object")
    return key, schema


def _output_schema(row: Schema) -> tuple[Schema | None, str]:
    """Return the output schema; if it is unusable, None and the reason."""
    key = next((key for key in _OUTPUT_KEYS if row.get(key) is not None), None)
    if key is None:
        return None, ""
    schema = as_object(row[key])
    problems = check_schema(row[key] if schema is None else linear_part(schema))
    if not problems:
        return schema, ""
    return None, f"{problems[0].message}, at `/{key}{problems[0].pointer}`"


def _extras(row: Schema) -> Schema:
    meta = row.get("_meta")
    if meta is None:
        return {}
    table = as_object(meta)
    if table is None:
        raise _SetAside("/_meta", "`_meta` must be a JSON object")
    said = as_object(table.get(EXTRAS, {}))
    if said is None:
        raise _SetAside(f"/_meta/{EXTRAS}", f"`{EXTRAS}` must be a JSON object")
    unknown = sorted(said.keys() - _EXTRA_KEYS)
    if unknown:
        raise _SetAside(f"/_meta/{EXTRAS}", f"unknown key `{unknown[0][:_NAME]}`")
    return said


def _version(said: Schema, name: str) -> str:
    version = said.get("version", "1.0.0")
    if not isinstance(version, str):
        raise _extra("/version", "`version` must be a text of the form `1.2.3`")
    try:
        major_of(version, name)
    except RegistrationError as error:
        raise _extra("/version", str(error)[:400]) from None
    return version


def _tier(value: object, place: str) -> SafetyTier | None:
    if value is None:
        return None
    found = next((tier for tier in SafetyTier if tier.value == value), None)
    if found is None:
        known = ", ".join(f"`{tier}`" for tier in SafetyTier)
        raise _extra(place, f"a safety tier is one of {known}")
    return found


def _operation_tiers(said: Schema) -> dict[str, SafetyTier]:
    table = as_object(said.get("operation_tiers", {}))
    if table is None:
        raise _extra("/operation_tiers", "`operation_tiers` must be a JSON object")
    read = {name: _tier(value, "/operation_tiers") for name, value in table.items()}
    return {name: tier for name, tier in read.items() if tier is not None}


def _operation_outputs(said: Schema) -> dict[str, Schema]:
    table = as_object(said.get("operation_outputs", {}))
    if table is None:
        raise _extra("/operation_outputs", "`operation_outputs` must be a JSON object")
    for name, value in table.items():
        schema = as_object(value)
        why = "it is no JSON object" if schema is None else result_schema_fault(schema)
        if why:
            raise _extra("/operation_outputs", f"the schema of the results of `{name[:_NAME]}` cannot be used: {why}")
    return table


def result_schema_fault(schema: Schema) -> str:
    """Return the reason why a schema of results of any type is unusable; empty if it is fine."""
    problems = check_schema({"type": "object", "properties": {"result": linear_part(schema)}})
    return problems[0].message if problems else ""


def _operations(said: Schema) -> tuple[str, ...] | None:
    value = said.get("operations")
    if value is None:
        return None
    rows = as_list(value)
    if not rows or not all(isinstance(row, str) and row for row in rows) or len(set(rows)) != len(rows):
        raise _extra("/operations", "`operations` must be a list of different names")
    return tuple(cast("list[str]", rows))


def _extra(place: str, message: str) -> _SetAside:
    return _SetAside(f"/_meta/{EXTRAS}{place}", message)


def _check_size(root: Schema) -> None:
    """Check depth, number of values, characters, and for texts and numbers that could not be written again."""
    characters = 0
    for seen, (value, depth) in enumerate(_values(root)):
        if depth > MAX_DEPTH:
            raise _SetAside("", f"the definition is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, str):
            characters += len(value)
            if not is_text(value):
                raise _SetAside("", "a text in the definition holds half of a surrogate pair")
        elif isinstance(value, float) and not math.isfinite(value):
            raise _SetAside("", "a number in the definition is not finite")
        if seen >= MAX_VALUES or characters > MAX_CHARACTERS:
            raise _SetAside("", f"the definition has more than {MAX_VALUES:,} values or {MAX_CHARACTERS:,} characters")


def _values(root: object) -> Iterator[tuple[object, int]]:
    """Yield every value and every key with its depth, without recursion."""
    stack: list[tuple[object, int]] = [(root, 1)]
    while stack:
        value, depth = stack.pop()
        yield value, depth
        table, rows = as_object(value), as_list(value)
        if table is not None:
            stack.extend((key, depth) for key in table)
            stack.extend((item, depth + 1) for item in table.values())
        elif rows is not None:
            stack.extend((item, depth + 1) for item in rows)


def _name_in(value: object) -> str:
    row = as_object(value) or {}
    name = row.get("name", (as_object(row.get("function")) or {}).get("name"))
    return name[:_NAME] if isinstance(name, str) and is_text(name) else ""
