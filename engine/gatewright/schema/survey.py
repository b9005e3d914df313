"""Surveys a schema for the operator who declares operations: readings, suggestions, fields that take anything.

Suggestions are names that a text lists (`a, b, or c`, `a | b`, bulleted lists, quoted names), for a field that takes
any text; nothing enforces them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.schema.filter import readings_of
from gatewright.schema.flat import is_operation_name, is_verb, snake
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet, choice_of
from gatewright.schema.walk import Schema, as_list, as_object, names_required, objects, properties_of

MAX_NAMES = 60
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:[-:./][A-Za-z0-9_]+)*"
_QUOTE = r"[`'\"*]*"
_NOTE = r"(?:\s\([^()\n]{1,40}\))?"
_ITEM = rf"{_QUOTE}{_NAME}{_QUOTE}{_NOTE}"
_BULLET = late_regex(
    rf"^\s*(?:[-*•+]|\d{{1,2}}[.)])\s+{_QUOTE}({_NAME}){_QUOTE}{_NOTE}\s*(?::|=|—|–|-\s|->|→)", re.MULTILINE
)
_BARE_BULLET = late_regex(rf"^\s*[-*•+]\s+{_QUOTE}({_NAME}){_QUOTE}\s*$", re.MULTILINE)
_PIPES = late_regex(rf"{_ITEM}(?:\s*\|\s*{_ITEM})+")
_COMMAS = late_regex(rf"{_ITEM}(?:\s*,\s*(?:(?:and/or|and|or)\s+)?{_ITEM}|\s+(?:or|and)\s+{_ITEM})+")
_LED = late_regex(rf"(?::|\bone of|\beither|\bsupports?|\bvalues?|\bavailable|\boptions?)\s+{_ITEM}", re.IGNORECASE)
_QUOTED = late_regex(rf"[`'\"]({_NAME})[`'\"]")
_SLASHES = late_regex(rf"(?<![\w/:])({_NAME}(?:\s+/\s+{_NAME})+)")


def suggest_names(*texts: str) -> tuple[str, ...]:
    """Return the possible values that the first of ``texts`` with a list names; empty if none lists any."""
    for text in texts:
        for reading in (_bullets, _from_pipes, _from_brackets, _from_sentence, _from_slashes, _from_quotes):
            names = tuple(dict.fromkeys(reading(text)))
            if 2 <= len(names) <= MAX_NAMES and any(map(is_verb, names)):
                return names
    return ()


def _bullets(text: str) -> list[str]:
    return _BULLET.findall(text) or _BARE_BULLET.findall(text)


def _from_pipes(text: str) -> list[str]:
    match = _PIPES.search(text)
    return _items(match.group(), r"\|") if match else []


def _from_brackets(text: str) -> list[str]:
    """Read `Operation to perform (query, create, delete)`."""
    for inner in re.findall(r"\(([^()]*)\)", text):
        body = re.sub(r"^\s*(?:e\.g\.,?|i\.e\.,?|one of:?|either)\s+", "", inner)
        if _COMMAS.fullmatch(body.strip(" .:")):
            return _from_list(body)
    return []


def _from_sentence(text: str) -> list[str]:
    """Read `Operation to perform: create, delete, or list.`"""
    for lead in _LED.finditer(text):
        start = re.search(rf"{_ITEM}$", lead.group())
        match = _COMMAS.match(text, lead.start() + start.start()) if start else None
        # an enumeration ends with its sentence or clause
        if match and re.match(r"\s*(?:[.;)\n(—–]|$|-\s)", text[match.end() :]) is not None:
            return _from_list(match.group())
    return []


def _from_slashes(text: str) -> list[str]:
    match = _SLASHES.search(text)
    return _items(match.group(1), "/") if match else []


def _from_quotes(text: str) -> list[str]:
    return _QUOTED.findall(text)


def _from_list(text: str) -> list[str]:
    return _items(text, r",|\s+(?:or|and)\s+")


def _items(text: str, joint: str) -> list[str]:
    found: list[str] = []
    for piece in re.split(joint, text):
        bare = re.sub(r"\([^()]*\)", "", re.sub(r"^\s*(?:and/or|and|or)\s+", "", piece)).strip(" \t\n`'\"*.")
        if re.fullmatch(_NAME, bare):
            found.append(bare)
    return found


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
    """A field that takes a whole command, program or query, so that no list of operations can gate it."""

    field: str
    kind: OpenKind

    @property
    def reason(self) -> str:
        """A sentence for the operator."""
        what = {"command": "a raw command", "code": "program code", "query": "a query language"}[self.kind]
        return f"`{self.field}` takes {what}: no list of operations can gate it; constraints, rules and approvals can"


@frozen
class Survey:
    """``found``: the operations to enforce; ``readings``: all closed lists, the likeliest first.

    ``free``: fields named like operations that take any text, with the names that their description lists.
    """

    found: OperationSet | None
    readings: tuple[OperationSet, ...] = ()
    free: tuple[OperationSet, ...] = ()
    open_ends: tuple[OpenEnd, ...] = ()


def survey(schema: Schema, description: str = "") -> Survey:
    """Survey ``schema``; ``description`` is the tool's own. Raises SchemaError as discovery does."""
    readings = tuple(candidate.found for candidate in readings_of(schema, field=None, operations=None))
    found = readings[0] if readings and readings[0].confidence != "low" else None
    inlined = inline_references(schema)
    open_ends = tuple(_open_ends(inlined, description))
    taken = {end.field for end in open_ends}
    free = tuple(one for one in _free_texts(inlined, description) if one.field not in taken)
    return Survey(found, readings, free, open_ends)


def _free_texts(schema: Schema, description: str) -> Iterator[OperationSet]:
    required = names_required(schema)
    for name, value in properties_of(schema).items():
        own = as_object(value)
        if own is None or choice_of(own) or not is_operation_name(name) or not _is_text(own):
            continue
        said = own.get("description")
        names = _conditions(schema, name) or suggest_names(said if isinstance(said, str) else "", description)
        default = own.get("default")
        stated = default if name not in required and isinstance(default, str) and default else None
        yield OperationSet(name, (), "free-string", "low", stated, names, field_required=name in required)


def _conditions(schema: Schema, name: str) -> tuple[str, ...]:
    """Return the values that an `if` tests the field for, in a schema that leaves the field itself open."""
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
    if name in _COMMANDS and not suggest_names(said) and (runs or _WORDY.search(said)):
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
