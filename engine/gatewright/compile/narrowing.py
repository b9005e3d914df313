"""Puts the constraints on arguments into the schema that the model sees, as far as a schema can express them.

The gate checks every constraint again on canonical values (stage rules), so the schema may leave out a constraint that
it cannot or must not express; a lint then gives the reason. The folder in which a path must lie is always described in
words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from gatewright.base.errors import GatewrightError, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json
from gatewright.base.pattern import folder_words, folders_in
from gatewright.compile.rule_test import BoundRule
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ArgumentConstraints
from gatewright.schema import inline_references, narrow
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import close_constraint, with_closed_arguments
from gatewright.schema.fault import is_off
from gatewright.schema.walk import (
    Schema,
    as_list,
    as_object,
    map_children,
    names_required,
    objects,
    properties_of,
    walk,
)
from gatewright.tools.parameter import Role
from gatewright.tools.tool import Tool

_UNREADABLE = (GatewrightError, RecursionError, TypeError, ValueError, LookupError)
_CANONICAL = "it holds for the canonical form, which may differ from the text that is sent"
_DEPENDS = "it holds for some operations only, and the operation lies deeper in the arguments"
_OTHER_WORDS = "the schema cannot express it in its own draft without naming something hidden"
_WORDS = frozenset({"title", "description", "$comment", "examples", "default", "deprecated"})


@frozen
class Limit:
    """A demand on one field of the arguments. ``operations`` None means every operation; ``required``: a call must give
    the field, with any value.

    Limits with the same demand are equal, whatever rule they come from.
    """

    name: str
    operations: frozenset[str] | None
    digest: bytes
    schema: Any = field(hash=False, compare=False)
    required: bool = False


@frozen
class Narrowed:
    """A schema that expresses the limits on ``names``, compiled.

    ``unsaid``: the other fields, each with the reason, empty if words in the schema express the limit. ``open_why``:
    the reason why it still accepts arguments that it does not name.
    """

    schema: Schema = field(hash=False)
    checker: SchemaChecker | None
    names: frozenset[str]
    unsaid: tuple[tuple[str, str], ...] = ()
    open_why: str = ""


def limits_of(rules: Iterable[BoundRule], facts: ToolFacts, shown: frozenset[str]) -> tuple[Limit, ...]:
    """The demands of the rules on calls of the ``shown`` operations; equal limits come in equal order."""
    found = {limit for bound in rules for limit in _limits(bound, facts, shown)}
    return tuple(sorted(found, key=lambda one: (one.name, sorted(one.operations or ()), one.digest)))


def _limits(bound: BoundRule, facts: ToolFacts, shown: frozenset[str]) -> Iterator[Limit]:
    kind = bound.rule.rule_type
    operations = shown if bound.operations is None else bound.operations & shown
    if not isinstance(kind, ArgumentConstraints) or not operations:
        return
    for name, schema in kind.fields.items():
        try:
            digest, closed = canonical_json(schema), close_constraint(schema)
        except _UNREADABLE:
            continue  # `Conditions` closes the tool for a constraint that cannot be compiled
        yield Limit(name, None if operations == shown else operations, digest, closed)
    asked = {row.name: facts.mandatory_arguments(bound.rule, row) for row in facts.operations if row.name in operations}
    for name in kind.required:
        if by := frozenset(operation for operation, names in asked.items() if name in names):
            yield Limit(name, None if by == shown else by, b"", True, required=True)


def apply_limits(
    tool: Tool,
    shown: frozenset[str],
    schema: Schema,
    limits: Iterable[Limit],
    *,
    closed: bool = False,
    check_formats: bool = False,
) -> Narrowed:
    """Add every limit that ``schema``, for the ``shown`` operations, can express; ``closed``: refuse unknown arguments.

    ``check_formats``: its checker demands that texts match a known `format`.
    """
    reading = _Reading(tool, shown, schema)
    result, checker, names, unsaid = schema, None, set[str](), dict[str, str]()
    taken = [limit for limit in limits if reading.takes(limit)]
    for limit in taken:
        why = reading.obstacle(limit)
        try:
            wanted = reading.with_demand(result, limit) if why else reading.with_limit(result, limit)
            checker = checker if wanted is result else SchemaChecker(wanted, check_formats=check_formats)
            result = wanted
        except _UNREADABLE:
            why = why or _OTHER_WORDS
        if why:
            is_told = why == _CANONICAL and limit.schema.keys() <= {"type", "pattern"} and folders_in(limit.schema)
            unsaid[limit.name] = unsaid.get(limit.name) or ("" if is_told else why)
        else:
            names.add(limit.name)
    open_why = ""
    if closed:
        try:
            wanted, open_why = with_closed_arguments(result)
            checker = checker if wanted is result else SchemaChecker(wanted, check_formats=check_formats)
            result = wanted
        except _UNREADABLE:
            open_why = "its references cannot be read"
    for limit in taken:
        for folder in folders_in(limit.schema):
            result = _with_words(result, limit, folder_words(folder))
    return Narrowed(result, checker, frozenset(names), tuple(unsaid.items()), open_why)


class _Reading:
    """The schema that the model sees, with facts about its operations and parameters."""

    def __init__(self, tool: Tool, shown: frozenset[str], schema: Schema) -> None:
        self._tool, self._shown, self._schema = tool, shown, schema
        found, self._selector = tool.operation_set, tool.selector
        self._is_flat = tool.has_operations and (found is None or (found.is_flat and len(found.places) == 1))
        self._field = tool.operation_field if found is None or not self._is_flat else found.places[0][0]
        self._hidden = frozenset(spec.name for spec in tool.operations) - shown
        parameters = [one for name in shown for one in tool.parameters(name)]
        self._marked = frozenset(one.name for one in parameters if one.role is not Role.PLAIN)
        self._taken = frozenset(one.name for one in parameters) | _member_names(schema)
        self._names_none = not tool.has_operations and not self._taken

    def takes(self, limit: Limit) -> bool:
        """Tell whether a call that fits the schema may give the field."""
        return self._names_none or limit.name in self._taken

    def obstacle(self, limit: Limit) -> str:
        """The reason why the schema cannot hold the limit: it must accept values as sent, and name nothing hidden."""
        if limit.name in self._marked and not limit.required:
            return _CANONICAL
        return "" if limit.operations is None or self._may_depend() else _DEPENDS

    def with_limit(self, schema: Schema, limit: Limit) -> Schema:
        """Add the limit to ``schema``. Raises SchemaError."""
        if limit.required:
            return narrow(schema, {}, when=self._when(limit.operations), required=(limit.name,))
        bound = limit.operations or self._shown
        bare = self._for_selector(limit.name, _bare(limit.schema))
        defaults = self._broken_defaults(limit.name, bound, bare)
        wanted, when = {limit.name: bare}, self._when(limit.operations)
        broken = dict.fromkeys([limit.name] if defaults else [], next(iter(defaults.values()), None))
        every = defaults.keys() == bound
        result = narrow(schema, wanted, when=when, defaults=broken if every else {})
        if broken and not every and self._may_depend():
            result = narrow(result, wanted, when=self._when(frozenset(defaults)), defaults=broken)
        return result

    def with_demand(self, schema: Schema, limit: Limit) -> Schema:
        """Demand the field if its default, which counts as given, breaks a limit that the schema cannot express.

        It is not demanded of operations with a label, since the label implies the path. Raises SchemaError.
        """
        if limit.required or not (limit.operations is None or self._may_depend()):
            return schema
        by_label = {name for name in self._shown if any(one.role is Role.LABEL for one in self._tool.parameters(name))}
        broken = self._broken_defaults(limit.name, (limit.operations or self._shown) - by_label, limit.schema)
        if not broken:
            return schema
        every = broken.keys() == self._shown
        return narrow(schema, {}, when=None if every else self._when(frozenset(broken)), required=(limit.name,))

    def _for_selector(self, name: str, bare: object) -> object:
        """Rewrite a limit on the field that selects operations so that it names no hidden one. Raises SchemaError."""
        selector, table = self._selector, as_object(bare)
        if selector is None or table is None or name not in selector.fields:
            return bare
        result = selector.rewritten(name, inline_references(table), self._shown)
        text = json.dumps(result, ensure_ascii=False)
        words = frozenset(re.findall(r"\w+", text))
        if any(hidden in words or json.dumps(hidden, ensure_ascii=False) in text for hidden in self._hidden):
            raise SchemaError("the constraint names a hidden operation")
        return result

    def _broken_defaults(self, name: str, operations: frozenset[str], schema: object) -> dict[str, object]:
        """By operation, the default for an omitted field, if it breaks the limit."""
        if is_off(schema):
            return {}
        checker = SchemaChecker(_as_table(schema))
        return {
            operation: value
            for operation in sorted(operations)
            for value in self._tool.defaults(operation, name)
            if not checker.is_valid(value)
        }

    def _may_depend(self) -> bool:
        """Tell whether the schema can express a limit for some operations only."""
        return self._is_flat and all("unevaluatedProperties" not in node for _, node in walk(self._schema))

    def _when(self, operations: frozenset[str] | None) -> tuple[str, list[Any]] | None:
        if operations is None:
            return None
        names: list[Any] = sorted(operations)
        called = self._tool.operations_of({})
        if called is not None and not operations.isdisjoint(called) and not _is_always_text(self._schema, self._field):
            names.append(None)
        return self._field, names


def _member_names(schema: Schema) -> frozenset[str]:
    """The names that the schema gives to the object's members, also in its branches."""
    names, stack = set[str](), [schema]
    while stack:
        node = stack.pop()
        names |= properties_of(node).keys()
        for keyword in ("allOf", "anyOf", "oneOf"):
            stack += objects(node.get(keyword))
        stack += [inner for keyword in ("then", "else") if (inner := as_object(node.get(keyword))) is not None]
    return frozenset(names)


def _with_words(schema: Schema, limit: Limit, words: str) -> Schema:
    """Add a sentence to the description of the field, in all branches."""
    known = properties_of(schema)
    if (own := as_object(known.get(limit.name))) is not None:
        said = words if limit.operations is None else f"for {', '.join(sorted(limit.operations))} {words}"
        description = f"{own.get('description', '')} {said[0].upper()}{said[1:]}.".lstrip()
        schema = {**schema, "properties": {**known, limit.name: {**own, "description": description}}}
    for keyword in ("anyOf", "oneOf"):
        if (branches := as_list(schema.get(keyword))) is not None:
            told = (one if (held := as_object(one)) is None else _with_words(held, limit, words) for one in branches)
            schema = {**schema, keyword: list(told)}
    return schema


def _is_always_text(schema: Schema, name: str) -> bool:
    """Tell whether the field has a text in every valid call."""
    own = as_object(properties_of(schema).get(name))
    return name in names_required(schema) and own is not None and own.get("type") == "string"


def _bare(schema: object) -> object:
    """The schema without its author's words, which are for the operator and may name hidden things."""
    table = as_object(schema)
    return schema if table is None else _without_words(table)


def _without_words(schema: Schema) -> Schema:
    return {key: value for key, value in map_children(schema, _without_words).items() if key not in _WORDS}


def _as_table(schema: object) -> Schema:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    table = as_object(schema)
    if table is None:
        raise SchemaError("a constraint must be a JSON Schema")
    return table
