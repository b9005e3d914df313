"""JSON Schemas inside a policy (``when``, ArgumentConstraints): whether they can be enforced as written, and where not.

It checks no arguments. A schema is compiled once, however often it stands in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import cast

from gatewright.base.errors import SchemaError
from gatewright.base.folder import IN_FOLDER, folder_fault
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.problem import near_miss
from gatewright.base.report import RawPath, Report, shown
from gatewright.policy.rule import ArgumentConstraints
from gatewright.schema.check import SchemaChecker, check_schema
from gatewright.schema.contradiction import Fault
from gatewright.schema.inline import check_expansion
from gatewright.schema.pattern import pattern_problems
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, walk

_CORE = "$schema $id $anchor $ref $defs $comment definitions allOf anyOf oneOf not if then else"
_OBJECT = (
    "properties patternProperties additionalProperties propertyNames required minProperties maxProperties "
    "dependentRequired dependentSchemas dependencies unevaluatedProperties"
)
_ARRAY = (
    "items prefixItems additionalItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems"
)
_VALUE = "type enum const minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
_NOTE = "title description default examples deprecated readOnly writeOnly"
KEYWORDS = frozenset(f"{_CORE} {_OBJECT} {_ARRAY} {_VALUE} {_NOTE}".split())
NOT_CHECKED = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""Notes in draft 2020-12: a condition that relies on one would hold for every text."""
MAX_FAULTS = 20


def check_schemas(kind: ArgumentConstraints, path: RawPath, report: Report) -> None:
    """Report what keeps the constraints at ``path`` from being enforced; one that is no schema is reported already."""
    for name, schema in kind.fields.items():
        if isinstance(schema, dict | bool):
            check_json_schema(schema, (*path, name), report)


def check_json_schema(schema: JsonValue, path: RawPath, report: Report) -> None:
    """Report what keeps ``schema`` (a JSON object or a boolean) at ``path`` from being enforced."""
    if isinstance(schema, bool):
        return
    for fault in faults_of(canonical_json(schema)):
        place = (*path, *fault.pointer)
        report.error(place, fault.code, fault.message, near=fault.near, at_value=not fault.at_key)


@lru_cache(maxsize=8192)
def faults_of(canonical: bytes) -> tuple[Fault, ...]:
    """The faults of the schema with this canonical JSON; empty when it can be enforced."""
    schema = as_object(json.loads(canonical))
    if schema is None:
        return (Fault((), "bad-schema", "a JSON Schema is a table"),)
    found = tuple(islice(_faults(schema), MAX_FAULTS))
    return found or _uncompilable(schema)


def _faults(root: Schema) -> Iterator[Fault]:
    for pointer, node in walk(root):
        for key in node:
            if key in NOT_CHECKED:
                message = f"`{key}` is only a note in JSON Schema and is not checked: say it with `pattern`"
                yield Fault((*pointer, key), "not-checked", message, at_key=True)
            elif key == IN_FOLDER:
                message = folder_fault(node) or "`in_folder` is for ArgumentConstraints: say it with `pattern` here"
                yield Fault((*pointer, key), "bad-value", message)
            elif key not in KEYWORDS and not key.startswith("x-"):
                yield _unknown(pointer, key, node[key])
    for one in pattern_problems(root):
        yield Fault(one.pointer, one.code, f"{shown(one.pattern)} cannot be checked: {one.message}", at_key=one.at_key)


def _unknown(pointer: Pointer, key: str, value: object) -> Fault:
    near = near_miss(key[:64], KEYWORDS)
    message = f"JSON Schema has no keyword {shown(key)}: it would be passed over"
    if near is None and isinstance(value, dict):
        example = f"`{{ properties = {{ {shown(key)[1:-1]} = ... }} }}`"
        message += f"; an argument of that name stands under `properties`: {example}"
    return Fault((*pointer, key), "unknown-keyword", message, near, at_key=True)


def _uncompilable(schema: Schema) -> tuple[Fault, ...]:
    dialect = schema.get("$schema")
    try:
        check_expansion(schema)
    except SchemaError as error:
        return (Fault((), "bad-schema", str(error)),)
    try:
        SchemaChecker(schema)
    except SchemaError as error:
        problems = check_schema(schema)
        found = [Fault(_steps(schema, problem.pointer), "bad-schema", problem.message) for problem in problems]
        return tuple(found) or (Fault((), "bad-schema", str(error)),)
    if dialect is None:
        return ()
    problems = [problem for problem in check_schema(schema) if problem.pointer == "/$schema"]
    return tuple(Fault(("$schema",), "bad-schema", problem.message) for problem in problems)


def _steps(schema: Schema, pointer: str) -> Pointer:
    """The steps of a JSON pointer, with numbers where it leads into a list."""
    steps: list[str | int] = []
    current: object = schema
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        as_array, as_map = as_list(current), as_object(current)
        if as_array is not None and step.isdecimal() and int(step) < len(as_array):
            steps.append(int(step))
            current = cast("object", as_array[int(step)])
        else:
            steps.append(step)
            current = as_map.get(step) if as_map is not None else None
    return tuple(steps)
