"""Parse: what the model sent must be one JSON object within the limits; blank is the empty one. It knows no schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, checked_object, parse_object
from gatewright.gate.call import CallState, RawArguments, Stage, StageResult, denied
from gatewright.gate.jsoncopy import copied


def _run(state: CallState) -> StageResult:
    try:
        arguments = _read(state.raw)
    except JsonRefused as refused:
        model = f"the arguments were not accepted: {refused}; send one JSON object"
        return denied(state, refused.code, str(refused), model)
    return StageResult(state.having(arguments=arguments), note="one JSON object")


def _read(raw: RawArguments) -> dict[str, JsonValue]:
    if isinstance(raw, str | bytes):
        return parse_object(raw)
    given = raw if isinstance(raw, dict) else _as_dict(raw)
    return {key: copied(value) for key, value in checked_object(given).items()}


def _as_dict(raw: object) -> object:
    """Any mapping as a dict; anything else as it is, for the check to refuse."""
    return dict(cast("Mapping[str, JsonValue]", raw)) if isinstance(raw, Mapping) else raw


PARSE = Stage("parse", _run)
