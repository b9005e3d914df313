"""Checks of arguments against a schema, compiled once, and of schemas against their own rules.

A reference that leaves the document is a problem of the schema: nothing is fetched. Patterns run in linear time.
`format` and the content of texts (`contentEncoding`, `contentMediaType`) are notes in every draft, so that a schema
means the same in each draft, and the same to the reference implementation. On request the kinds of `format` in
`CHECKED_FORMATS` are checked, in every draft alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import jsonschema_rs

from gatewright.base.errors import GatewrightError, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import check_object
from gatewright.schema.inline import check_expansion, inline_references
from gatewright.schema.walk import (
    CHECKED_FORMATS,
    Schema,
    as_object,
    compile_schema,
    is_draft_7,
    map_children,
    pattern_problems,
    pointer_text,
    walk,
    with_lengths,
)

if TYPE_CHECKING:
    from gatewright.schema.misfit import Misfit
    from gatewright.schema.phrase import ArgumentError


MAX_ERRORS = 20
_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
}
_CONTENTS = frozenset({"contentEncoding", "contentMediaType"})
MAX_SCHEMA_DEPTH = 128


@frozen
class SchemaProblem:
    """The reason why a schema is unusable, with the pointer into it."""

    pointer: str
    message: str


class SchemaChecker:
    """One compiled schema; checking is thread-safe and never raises for any argument value."""

    __slots__ = ("_check_formats", "_misfit", "_schema", "_validator")

    def __init__(self, schema: Schema, *, check_formats: bool = False) -> None:
        """``check_formats``: check each `format` that can be checked.

        Raises SchemaError if the schema cannot be compiled.
        """
        if as_object(schema) is None:
            raise SchemaError("the schema of a tool must be a JSON object")
        check_expansion(schema)
        self._schema = _without_assertions(_with_draft(schema))
        if check_formats:
            self._schema = _with_checked_formats(self._schema)
        self._check_formats = check_formats
        self._schema, self._validator = _compile(self._schema, schema, check_formats=check_formats)
        self._misfit: Misfit | None = None

    def is_valid(self, value: object) -> bool:
        """Tell whether ``value`` fits; a value outside JSON does not.

        The validator reads a text only if the schema asks for more than its type, so half of a surrogate pair may pass
        here; `checked_object` refuses it earlier.
        """
        try:
            return self._validator.is_valid(value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return False

    def holds(self, value: object) -> bool:
        """Tell whether ``value`` fits. Raises SchemaError if nobody can tell."""
        try:
            return self._validator.is_valid(value)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise SchemaError(f"a value cannot be checked: {_unreadable(value, error).message}") from None

    def errors(self, value: object) -> tuple[ArgumentError, ...]:
        """Return the faults of ``value``, outermost first, at most `MAX_ERRORS`; empty exactly when it is valid.

        Messages name what is allowed and never repeat the input. Takes time and memory linear in the value.
        """
        try:
            if self._validator.is_valid(value):
                return ()
            if self._misfit is None:
                from gatewright.schema.misfit import Misfit

                self._misfit = Misfit(self._schema, check_formats=self._check_formats)
            found = self._misfit.errors(value)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            return (_unreadable(value, error),)
        from gatewright.schema.phrase import ArgumentError

        return found[:MAX_ERRORS] or (ArgumentError("", "something in this value does not fit the schema"),)


def _unreadable(value: object, error: Exception) -> ArgumentError:
    """Return a refusal for a value that the validator cannot read; the validator's own words may repeat the input."""
    from gatewright.schema.phrase import ArgumentError

    try:
        check_object(value)
    except GatewrightError as refused:
        return ArgumentError("", str(refused))
    except RecursionError:
        pass
    detail = "nesting is too deep" if "ecursion" in str(error) else "the arguments are not plain JSON"
    return ArgumentError("", detail)


def _compile(addressed: Schema, schema: Schema, *, check_formats: bool) -> tuple[Schema, jsonschema_rs.Validator]:
    try:
        try:
            return addressed, compile_schema(addressed, check_formats=check_formats)
        except ValueError:
            if (said := with_lengths(addressed)) is addressed:
                raise
            return said, compile_schema(said, check_formats=check_formats)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        problems = check_schema(schema)
        detail = problems[0].message if problems else str(error).splitlines()[0]
        where = f" at `{problems[0].pointer}`" if problems and problems[0].pointer else ""
        raise SchemaError(f"the schema cannot be used{where}: {detail}") from None


def _with_draft(schema: Schema) -> Schema:
    """Name the draft 2020-12 in a schema whose `$schema` is missing or unknown."""
    address = schema.get("$schema")
    if isinstance(address, str) and address.rstrip("#") in _DRAFTS:
        return schema
    return {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}


def _without_assertions(schema: Schema) -> Schema:
    """Drop the checks of contents that the validator makes in draft 7 only; in every draft they are notes, like
    formats.
    """
    if not is_draft_7(schema) or not any(_CONTENTS & node.keys() for _, node in walk(schema)):
        return schema
    return _without_contents(schema)


def _without_contents(schema: Schema) -> Schema:
    return {key: value for key, value in map_children(schema, _without_contents).items() if key not in _CONTENTS}


def _with_checked_formats(schema: Schema) -> Schema:
    """Drop each `format` that cannot be checked."""
    result = map_children(schema, _with_checked_formats)
    if "format" not in result or is_checked_format(result["format"]):
        return result
    return {key: value for key, value in result.items() if key != "format"}


def is_checked_format(kind: object) -> bool:
    """Tell whether `format` with this value can be checked."""
    return isinstance(kind, str) and kind in CHECKED_FORMATS


def check_schema(schema: object) -> tuple[SchemaProblem, ...]:
    """Return everything that keeps ``schema`` from being a tool's input schema; empty if nothing does."""
    root = as_object(schema)
    if root is None:
        return (SchemaProblem("", "the schema of a tool must be a JSON object"),)
    try:
        return tuple(_problems(root))
    except RecursionError:
        return (SchemaProblem("", "the schema is nested too deeply"),)


def _problems(root: Schema) -> Iterator[SchemaProblem]:
    address = root.get("$schema")
    if address is not None and not (isinstance(address, str) and address.rstrip("#") in _DRAFTS):
        yield SchemaProblem("/$schema", "only the drafts 7, 2019-09 and 2020-12 are supported")
        return
    if any(len(pointer) > MAX_SCHEMA_DEPTH for pointer, _ in walk(root)):
        yield SchemaProblem("", "the schema is nested too deeply")
        return
    patterns = [
        SchemaProblem(pointer_text(one.pointer), f"the pattern cannot be checked: {one.message}")
        for one in pattern_problems(root)
    ]
    found = list(_metaschema_problems(root)) if patterns or not _is_surely_a_schema(root) else []
    places = {problem.pointer for problem in found}
    found += [problem for problem in patterns if problem.pointer not in places]
    yield from found
    if found:
        return
    try:
        inlined = inline_references(root)
    except SchemaError as error:
        yield SchemaProblem("", str(error))
        return
    if not _is_object_schema(inlined):
        yield SchemaProblem("/type", "the root of a tool's schema must be an object")


def _is_surely_a_schema(root: Schema) -> bool:
    """Ask the validator first: the reference names the fault, but takes a few hundred times as long."""
    try:
        return jsonschema_rs.meta.is_valid(_with_draft(root))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


def _metaschema_problems(root: Schema) -> Iterator[SchemaProblem]:
    # Only a faulty schema needs the reference: most processes never load it.
    from jsonschema.exceptions import SchemaError as MetaschemaError
    from jsonschema.validators import validator_for

    addressed = _with_draft(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        validator = cast("Any", validator_for(addressed))
        try:
            validator.check_schema(addressed)
        except MetaschemaError as error:
            path = tuple(error.absolute_path)
            said = f"not a valid schema: {error.message[:200]}"
            if error.validator in ("anyOf", "oneOf"):
                said = f"not a valid schema: this value is not allowed for `{path[-1] if path else 'a schema'}`"
            yield SchemaProblem(pointer_text(path), said)


def _is_object_schema(schema: Schema) -> bool:
    kind = schema.get("type")
    if kind is not None:
        return kind == "object"
    return "enum" not in schema and "const" not in schema and not _only_other_types(schema)


def _only_other_types(schema: Schema) -> bool:
    branches = [
        branch for keyword in ("oneOf", "anyOf") for branch in schema.get(keyword, ()) if as_object(branch) is not None
    ]
    return bool(branches) and any(not _is_object_schema(branch) for branch in branches)
