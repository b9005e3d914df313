"""The engine that checks values against JSON Schemas, with the one set of options that all of Gatewright uses."""

from __future__ import annotations

import jsonschema_rs

from gatewright.schema.walk import Schema

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)


CHECKED_FORMATS = frozenset({"date-time", "date", "email", "uri", "uuid", "ipv4", "ipv6"})
"""The kinds of `format` that can be checked; every other is a note."""
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
_IS_UUID = jsonschema_rs.validator_for({"$schema": _NEWEST, "format": "uuid"}, validate_formats=True).is_valid
_IS_UUID("")  # the first check of all looks up types behind a lock: here nobody else does, and no fork comes meanwhile


def compiled(schema: Schema, *, check_formats: bool = False) -> jsonschema_rs.Validator:
    """The validator of ``schema``; it fetches nothing and runs patterns in linear time. Raises ValueError.

    ``check_formats``: each `format` in it that the engine knows is checked; else all are notes.
    """
    return jsonschema_rs.validator_for(
        schema,
        pattern_options=_PATTERNS,
        offline=True,
        mask="value",
        validate_formats=check_formats,
        formats={"uuid": _IS_UUID} if check_formats else None,  # draft 7 does not know it
    )
