"""What a schema says about operations at large: every reading, free texts with suggestions, what takes anything.

It decides nothing: it is for the operator, who declares a field or a list, and for whoever warns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from gatewright.base.frozen import frozen
from gatewright.base.regex import late_regex
from gatewright.schema.discover import readings_of
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.shapes.naming import is_operation_name, snake
from gatewright.schema.suggest import suggested_names
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

OpenKind = Literal["command", "code", "query"]

_COMMANDS = frozenset({"command", "commands", "cmd", "command_line", "shell_command", "cmdline", "argv", "bash"})
_CODE = frozenset({"code", "script", "source_code", "python_code", "javascript", "js", "expression", "function"})
_QUERIES = frozenset({"sql", "sql_query", "cypher", "graphql", "statement", "query"})
_RUNS = late_regex(r"\b(?:execut\w+|runs?|running|evaluat\w+|eval|shell|sends?)\b", re.IGNORECASE)
_LANGUAGE = late_regex(r"\b(?:sql|cypher|graphql|sparql)\b", re.IGNORECASE)
_WORDY = late_regex(r"\b(?:commands?|shell|terminal|process|kubectl|bash|powershell)\b", re.IGNORECASE)
_PROGRAM = late_regex(r"\b(?:code|script|javascript|python|typescript|snippet|expression|function)\b", re.IGNORECASE)


@frozen
class OpenEnd:
    """A field that takes a whole command, program or query: no list of operations can gate it."""

    field: str
    kind: OpenKind

    @property
    def reason(self) -> str:
        """In a sentence for the operator."""
        what = {"command": "a raw command", "code": "program code", "query": "a query language"}[self.kind]
        return f"`{self.field}` takes {what}: no list of operations can gate it; constraints, rules and approvals can"


@frozen
class Survey:
    """``found``: what would be enforced; ``readings``: all closed lists, the likeliest first.

    ``free``: fields named like operations that take any text, with the names that their description lists.
    """

    found: OperationSet | None
    readings: tuple[OperationSet, ...] = ()
    free: tuple[OperationSet, ...] = ()
    open_ends: tuple[OpenEnd, ...] = ()


def survey(schema: Schema, description: str = "") -> Survey:
    """Look through ``schema``; ``description`` is the tool's own. Raises SchemaError as discovery does."""
    readings = tuple(candidate.found for candidate in readings_of(schema, field=None, operations=None))
    found = readings[0] if readings and readings[0].confidence != "low" else None
    inlined = inline_references(schema)
    open_ends = tuple(_open_ends(inlined, description))
    taken = {end.field for end in open_ends}
    free = tuple(one for one in _free_texts(inlined, description) if one.field not in taken)
    return Survey(found, readings, free, open_ends)


def _free_texts(schema: Schema, description: str) -> Iterator[OperationSet]:
    required = required_of(schema)
    for name, value in properties_of(schema).items():
        own = as_object(value)
        if own is None or choice_of(own) or not is_operation_name(name) or not _is_text(own):
            continue
        said = own.get("description")
        names = _conditions(schema, name) or suggested_names(said if isinstance(said, str) else "", description)
        default = own.get("default")
        stated = default if name not in required and isinstance(default, str) and default else None
        yield OperationSet(name, (), "free-string", "low", stated, names, field_required=name in required)


def _conditions(schema: Schema, name: str) -> tuple[str, ...]:
    """What `if` asks of the field, in a schema that leaves the field itself open."""
    asked = [as_object(node.get("if")) for node in [schema, *objects(schema.get("allOf"))]]
    choices = [choice_of(properties_of(condition).get(name)) for condition in asked if condition]
    return tuple(dict.fromkeys(text for choice in choices if choice for text in choice.names))


def _open_ends(schema: Schema, description: str) -> Iterator[OpenEnd]:
    for name, value in properties_of(schema).items():
        own = as_object(value)
        if own is None or choice_of(own) or not (_is_text(own) or _is_text_list(own)):
            continue
        said = own.get("description")
        kind = _open_kind(snake(name), said if isinstance(said, str) else "", description)
        if kind is not None:
            yield OpenEnd(name, kind)


def _open_kind(name: str, said: str, description: str) -> OpenKind | None:
    runs = _RUNS.search(f"{said} {description}")
    if name in _COMMANDS and not suggested_names(said) and (runs or _WORDY.search(said)):
        return "command"
    if name in _CODE and runs and _PROGRAM.search(f"{said} {description}"):
        return "code"
    named = name in _QUERIES - {"query", "statement"}
    return "query" if name in _QUERIES and (named or _LANGUAGE.search(f"{said} {description}")) else None


def _is_text(schema: Schema) -> bool:
    kinds = schema.get("type")
    if kinds is None:
        branches = [*objects(schema.get("anyOf")), *objects(schema.get("oneOf"))]
        return any(map(_is_text, branches))
    return kinds == "string" or "string" in (as_list(kinds) or [])


def _is_text_list(schema: Schema) -> bool:
    items = as_object(schema.get("items"))
    return schema.get("type") == "array" and items is not None and _is_text(items)
