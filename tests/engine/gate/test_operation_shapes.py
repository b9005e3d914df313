"""Operations in rarer spellings, behind a gate: found, shown as far as allowed, and shown exactly when let through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatewright.tools import ToolDefinition
from tests.agreement.compare import compared
from tests.agreement.world import Stranger

Json = dict[str, Any]


def obj(*required: str, **properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def one_of(*names: str) -> Json:
    return {"type": "string", "pattern": f"^({'|'.join(names)})$"}


OP = one_of("read", "write", "delete")
PATTERNS: dict[str, Json] = {
    "at the root": obj("op", op=OP, path={"type": "string"}),
    "left out": obj(op={**OP, "default": "delete"}),
    "or null": obj(op={**OP, "type": ["string", "null"]}),
    "with a list": obj("op", op={**one_of("read", "write"), "enum": ["write", "read"]}),
    "one for each variant": {
        "oneOf": [obj("op", op=one_of("read")), obj("op", "text", op=one_of("write", "delete"), text={})]
    },
    "in a batch": obj("ops", ops={"type": "array", "items": obj("op", op=OP)}),
    "in elements": obj("commands", commands={"type": "array", "items": {"anyOf": [obj("op", op=OP)]}}),
    "further inside too": obj("op", op=OP, then=obj("op", op=OP)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_operations_that_a_pattern_lists_are_found_and_gated(name: str) -> None:
    stranger = Stranger(ToolDefinition("t", "Does things.", PATTERNS[name]), "there")

    names = {spec.name for spec in stranger.tool.operations}
    tally = compared(((stranger, number) for number in range(len(stranger.limits))), 60)

    assert names >= {"read", "write"}
    assert tally.disagreements == []
    assert tally.valid > tally.calls / 20
    for cell in stranger.cells:
        if cell.limit.shown and not cell.is_hidden:
            assert not [one for one in names - cell.limit.shown if one in json.dumps(cell.listing.schema)]
