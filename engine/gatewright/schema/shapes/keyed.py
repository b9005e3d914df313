"""Variants told apart by the only key they have (`{"move": {...}}` or `{"copy": {...}}`), as serde writes enums."""

from __future__ import annotations

from gatewright.schema.operation import KEYED, Operation, OperationSet
from gatewright.schema.shapes.inplace import UNIONS
from gatewright.schema.shapes.shape import Candidate
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

FIELD = "{}"
"""What stands for the key in the name of the field."""


def key_of(branch: Schema) -> str | None:
    """The only key that a variant takes, when it is required."""
    names = list(properties_of(branch))
    sealed = branch.get("additionalProperties") is False and "patternProperties" not in branch
    return names[0] if sealed and len(names) == 1 and names == list(required_of(branch)) else None


def is_other_type(branch: Schema) -> bool:
    """Whether a variant is no object, so that no call can mean it."""
    if "type" in branch:
        return branch["type"] != "object"
    return isinstance(branch.get("const"), str) or all(isinstance(value, str) for value in branch.get("enum", [None]))


def keyed_candidates(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    """The reading of a root that is such a union."""
    if properties_of(schema) or field not in (None, FIELD):
        return ()
    for keyword in UNIONS:
        branches = objects(schema.get(keyword))
        meant = [branch for branch in branches if not is_other_type(branch)]
        keys = [key_of(branch) for branch in meant]
        names = [key for key in keys if key is not None]
        if (
            meant
            and len(names) == len(keys) == len(set(names))
            and len(branches) == len(as_list(schema[keyword]) or [])
        ):
            return (_candidate(names, meant),)
    return ()


def _candidate(names: list[str], branches: list[Schema]) -> Candidate:
    operations = tuple(_operation(name, branch) for name, branch in zip(names, branches, strict=True))
    return Candidate(OperationSet(FIELD, operations, KEYED, "medium" if len(names) > 1 else "low"), 20)


def _operation(name: str, branch: Schema) -> Operation:
    inner = as_object(properties_of(branch)[name]) or {}
    required = required_of(inner)
    return Operation(name, required, tuple(key for key in properties_of(inner) if key not in required))
