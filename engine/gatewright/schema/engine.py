"""The engine that checks values against JSON Schemas, with the one set of options that all of Gatewright uses."""

from __future__ import annotations

import jsonschema_rs

from gatewright.schema.walk import Schema

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)


def compiled(schema: Schema) -> jsonschema_rs.Validator:
    """The validator of ``schema``; it fetches nothing and runs patterns in linear time. Raises ValueError."""
    return jsonschema_rs.validator_for(
        schema, pattern_options=_PATTERNS, offline=True, mask="value", validate_formats=False
    )
