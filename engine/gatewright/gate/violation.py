"""What a call broke, as public values: a host can react to them without reading sentences. They decide nothing.

Names in them are the operator's: some may be hidden from the model.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, cast, get_args

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.decision import Decision

KEY = "violation"
"""Where a decision's facts hold it."""


@frozen
class StartConstraintsNotMet:
    """The start tools that have not succeeded yet."""

    tool: str
    required_start_tools: tuple[str, ...]


@frozen
class PrerequisitesNotMet:
    """What must have succeeded first, and which of it has."""

    tool: str
    required: tuple[str, ...]
    executed: tuple[str, ...]


@frozen
class OrderingViolation:
    """What the tool has to come before, and which of it succeeded or is being executed."""

    tool: str
    must_precede: tuple[str, ...]
    already_executed: tuple[str, ...]


@frozen
class ExclusiveGroupViolation:
    """The group, and which other members of it were called."""

    tool: str
    group: tuple[str, ...]
    already_called: tuple[str, ...]


@frozen
class MaxCallsExceeded:
    """The cap of the session, the calls made, and as how many this one counts (a batch: as many as it holds)."""

    tool: str
    max: int
    current: int
    asked: int = 1


@frozen
class CooldownActive:
    """How long until the tool may be called again."""

    tool: str
    remaining_s: float


@frozen
class RateLimited:
    """How long until the rate leaves room for another call."""

    tool: str
    wait_s: float


@frozen
class OperationNotAllowed:
    """The operation that is hidden from the agent, and those that are shown."""

    tool: str
    operation: str
    allowed: tuple[str, ...]


@frozen
class ConstraintViolation:
    """The field whose value is limited, and what is allowed."""

    tool: str
    field: str
    errors: tuple[str, ...]


@frozen
class ExitRequirementsPending:
    """What must have succeeded before the loop may end."""

    tool: str
    pending: tuple[str, ...]


Violation = (
    StartConstraintsNotMet
    | PrerequisitesNotMet
    | OrderingViolation
    | ExclusiveGroupViolation
    | MaxCallsExceeded
    | CooldownActive
    | RateLimited
    | OperationNotAllowed
    | ConstraintViolation
    | ExitRequirementsPending
)
_KINDS: dict[str, type[Violation]] = {kind.__name__: kind for kind in get_args(Violation)}


def to_json(violation: Violation) -> dict[str, JsonValue]:
    """``kind`` and the fields."""
    told: dict[str, JsonValue] = {"kind": type(violation).__name__}
    for name, value in asdict(violation).items():
        told[name] = list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
    return told


def from_json(data: object) -> Violation | None:
    """The violation that `to_json` gave; None for anything else."""
    if not isinstance(data, dict):
        return None
    table = dict(cast("dict[str, object]", data))
    kind = _KINDS.get(str(table.pop("kind", "")))
    if kind is None or set(table) != {one.name for one in fields(kind)}:
        return None
    values: dict[str, Any] = {}
    for one in fields(kind):
        value = table[one.name]
        if not _fits(value, str(one.type)):
            return None
        values[one.name] = tuple(cast("list[str]", value)) if isinstance(value, list) else value
    return kind(**values)


def violation_of(decision: Decision) -> Violation | None:
    """What the call broke, where a rule says so in values; None for an allow and for denials without one."""
    return from_json(decision.facts.get(KEY))


def _fits(value: object, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str)
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == "int" else isinstance(value, (int, float))
