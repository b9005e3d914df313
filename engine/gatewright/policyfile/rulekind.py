"""Reading ``rule_type`` in each of its three spellings. What the value of a kind may be, the kind itself says.

Spellings: ``{ MaxCalls = 3 }``, ``"ContinueLoop"`` for a kind without payload, and Pattern's
``{ type = "MaxCalls", value = 3 }``.
"""

from __future__ import annotations

from typing import cast

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.report import RawPath, Report, shown
from gatewright.base.row import Raw, Row, kind_of
from gatewright.base.shape import Shape, one_of, table
from gatewright.policy.kinds.kind import ABSENT
from gatewright.policy.rule import RULE_KINDS, RuleKind


def kind_shape() -> Shape:
    """What a ``rule_type`` looks like: a name, one name with its value, or a name and its value apart."""
    shapes = {name: kind.shape for name, kind in RULE_KINDS.items()}
    alone = [name for name, kind in RULE_KINDS.items() if kind.read(ABSENT, (), Report()) is not None]
    tagged: list[JsonValue] = [table({name: shape}, name) for name, shape in shapes.items() if shape is not None]
    apart: list[JsonValue] = [
        table({"type": one_of([name]), "value": shape}, "type", "value")
        for name, shape in shapes.items()
        if shape is not None
    ]
    return {"anyOf": [one_of(alone), *tagged, table({"type": one_of(alone)}, "type"), *apart]}


def read_kind(value: object, path: RawPath, report: Report) -> RuleKind | None:
    """The kind that ``value`` spells; None after an error."""
    spelt = _spelling(value, path, report)
    if spelt is None:
        return None
    name, payload, payload_path = spelt
    kind = RULE_KINDS.get(name)
    if kind is not None:
        return kind.read(payload, payload_path, report)
    near = report.near(name, RULE_KINDS)
    report.error(path, "unknown-variant", f"no kind of rule is named {shown(name)}", near=near)
    return None


def kind_name(value: object) -> str | None:
    """The name of the kind that a ``rule_type`` spells, right or wrong; None when it spells none."""
    if isinstance(value, dict):
        raw = cast("Raw", value)
        value = raw["type"] if "type" in raw else next(iter(raw), None)
    return value if isinstance(value, str) else None


def written_payload(row: Row) -> tuple[object, RawPath]:
    """The payload of the well-spelt ``rule_type`` of a rule, as it is written, and where it stands."""
    value, path = row.raw["rule_type"], row.at("rule_type")
    if not isinstance(value, dict):
        return value, path
    raw = cast("Raw", value)
    key = "value" if "type" in raw else next(iter(raw))
    return raw.get(key), (*path, key)


def _spelling(value: object, path: RawPath, report: Report) -> tuple[str, object, RawPath] | None:
    if isinstance(value, str):
        return value, ABSENT, path
    if not isinstance(value, dict):
        report.error(path, "wrong-type", f"`rule_type` must be text or a table, not {kind_of(value)}")
        return None
    raw = cast("Raw", value)
    if "type" in raw:
        row = Row(raw, path, report)
        row.only(("type", "value"), "a `rule_type` with `type`")
        name = row.text("type")
        return None if name is None else (name, raw.get("value", ABSENT), row.at("value") if "value" in raw else path)
    if len(raw) != 1:
        report.error(path, "bad-value", "`rule_type` holds exactly one kind, such as `{ MaxCalls = 3 }`")
        return None
    name, payload = next(iter(raw.items()))
    return name, payload, (*path, name)
