"""A schema reduced to allowed operations, texts included."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.schema.declare import with_declared
from gatewright.schema.discover import discover_operations
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet
from gatewright.schema.prose import clean_text
from gatewright.schema.shapes.reduce import reduced
from gatewright.schema.walk import Schema, as_object, children, walk
from gatewright.schema.wording import bearing_names, clean_wording


@frozen
class FilterLint:
    """Something that the operator should know about a filtered schema. ``code`` is stable and kebab-case."""

    code: str
    message: str


@frozen
class FilterResult:
    """A filtered schema (None: nothing to show) with what was found on the way.

    ``hidden`` are the operations left out; ``kept`` the names that the schema still needs.
    """

    schema: Schema | None
    lints: tuple[FilterLint, ...] = ()
    operations: OperationSet | None = None
    hidden: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    def clean(self, text: str) -> str:
        """A text outside the schema, such as the tool's description, cleaned like those inside it."""
        if not self.hidden or self.operations is None:
            return text
        allowed = frozenset(self.operations.names) - self.hidden
        return clean_text(text, self.hidden, self.kept, operations=allowed)


def filter_operations(
    schema: Schema, allowed: Iterable[str], *, field: str | None = None, operations: Iterable[str] | None = None
) -> Schema | None:
    """``schema`` with the ``allowed`` operations only: the same object when that is all of them, None when it is none.

    ``field`` names the operation field (a dotted path); ``operations`` declares what a free text there may be, and is
    shown as a closed list even when all are allowed. The input is never changed. Raises SchemaError when the schema
    offers no operations.
    """
    return filter_with_lints(schema, allowed, field=field, operations=operations).schema


def filter_with_lints(
    schema: Schema,
    allowed: Iterable[str],
    *,
    field: str | None = None,
    operations: Iterable[str] | None = None,
    found: OperationSet | None = None,
) -> FilterResult:
    """As `filter_operations`, with lints and the names that other texts need to lose.

    ``found``: what `discover_operations` read in the schema, where somebody asked before.
    """
    declared = None if operations is None else tuple(dict.fromkeys(operations))
    source = schema
    if declared is not None:
        source, field = with_declared(inline_references(schema), field, declared)
    found = found or discover_operations(source, field=field)
    if found is None:
        where = f" at `{field}`" if field else ""
        raise SchemaError(f"the schema offers no operations{where}")
    given = frozenset(allowed)
    wanted = given & frozenset(found.names)
    lints = tuple(
        FilterLint("unknown-operation", f"`{name}` is no operation of `{found.field}`")
        for name in sorted(given - wanted)
    )
    undeclared = _undeclared(schema, field) - frozenset(declared) if declared is not None else frozenset[str]()
    hidden = (frozenset(found.names) - wanted) | undeclared
    if not hidden:
        return FilterResult(schema if declared is None else source, lints, found)
    if not wanted:
        return FilterResult(None, lints, found, hidden)
    shaped = reduced_schema(source, found, wanted)
    kept = bearing_names(shaped) | wanted
    cleaned = clean_wording(shaped, found, hidden, kept)
    notes = [*lints, *_lints(cleaned, found, hidden & kept)]
    return FilterResult(_without_draft_name(cleaned, hidden - kept), tuple(notes), found, hidden, kept)


def reduced_schema(schema: Schema, found: OperationSet, wanted: frozenset[str]) -> Schema:
    """``schema`` with some of its operations only, as `discover_operations` found them; its texts stay as they are."""
    return without_unused_definitions(reduced(inline_references(schema), found, wanted))


def _undeclared(schema: Schema, field: str | None) -> frozenset[str]:
    """What the schema itself lists at the declared field; none of it may be named unless it is declared."""
    found = discover_operations(schema, field=field)
    return frozenset(found.names) if found else frozenset()


def _lints(schema: Schema, found: OperationSet, borne: frozenset[str]) -> list[FilterLint]:
    notes = [FilterLint("kept-word", f"`{name}` stays since something allowed bears it") for name in sorted(borne)]
    if found.confidence == "low":
        notes.append(FilterLint("uncertain-field", f"`{found.field}` may be an ordinary parameter"))
    if schema.get("additionalProperties") is True:
        notes.append(FilterLint("open-properties", "the schema accepts parameters that it does not name"))
    return notes


def without_unused_definitions(schema: Schema) -> Schema:
    """``schema`` without the `$defs` that nothing refers to any more."""
    names = [keyword for keyword in ("$defs", "definitions") if keyword in schema]
    if not names:
        return schema
    used: set[tuple[str, str]] = set()
    stack = [child for step, child in children(schema) if step[0] not in names] + [{"$ref": schema.get("$ref")}]
    while stack:
        for _, node in walk(stack.pop()):
            target = _definition(node.get("$ref"))
            if target is not None and target not in used:
                used.add(target)
                held = as_object((as_object(schema.get(target[0])) or {}).get(target[1]))
                stack.extend([held] if held is not None else [])
    result = {key: value for key, value in schema.items() if key not in names}
    for keyword in names:
        rest = {name: value for name, value in (as_object(schema[keyword]) or {}).items() if (keyword, name) in used}
        result |= {keyword: rest} if rest else {}
    return result


def _definition(reference: object) -> tuple[str, str] | None:
    """The keyword and name that a reference within the document leads to."""
    parts = reference.split("/") if isinstance(reference, str) else []
    if len(parts) < 3:
        return None
    return parts[1], parts[2].replace("%25", "%").replace("~1", "/").replace("~0", "~")


_DRAFT_BOUND = frozenset({"additionalItems", "dependencies", "$recursiveRef", "id", "$ref", "definitions"})


def _without_draft_name(schema: Schema, hidden: frozenset[str]) -> Schema:
    """Leave out `$schema` where its address happens to hold a hidden name and the schema means the same without it."""
    address = schema.get("$schema")
    tokens = re.findall(r"\w+", address) if isinstance(address, str) else []
    if hidden.isdisjoint(tokens):
        return schema
    bound = any(_DRAFT_BOUND & node.keys() or isinstance(node.get("items"), list) for _, node in walk(schema))
    return schema if bound else {key: value for key, value in schema.items() if key != "$schema"}
