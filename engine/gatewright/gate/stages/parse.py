"""Parse: what the model sent must be one JSON object within the limits; blank is the empty one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from gatewright.base.errors import JsonRefused
from gatewright.base.json_copy import copied
from gatewright.base.jsonvalue import MAX_VALUES, JsonValue, checked_object, parse_object
from gatewright.gate.call import CallState, RawArguments, Stage, StageResult, denied

_PASSES = StageResult(note="one JSON object")


def _run(state: CallState) -> StageResult:
    try:
        state.arguments = read_arguments(state.raw)
    except JsonRefused as refused:
        model = f"the arguments were not accepted: {refused}; send one JSON object"
        return denied(refused.code, str(refused), model)
    return _PASSES


def read_arguments(raw: RawArguments) -> dict[str, JsonValue]:
    """The arguments as an object of their own. Raises JsonRefused, and whatever a mapping of the host's raises."""
    if isinstance(raw, str):
        return parse_object(str.__str__(raw))
    if isinstance(raw, bytes):
        return parse_object(raw)
    if isinstance(raw, JsonRefused):
        raise raw
    if not isinstance(raw, dict) and isinstance(raw, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raw = dict(islice(raw.items(), MAX_VALUES))
    return copied(checked_object(raw))  # which refuses whatever else a program may have passed


PARSE = Stage("parse", _run)
