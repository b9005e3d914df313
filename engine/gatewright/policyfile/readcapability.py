"""Reading ``capabilities``: ``"ClockRead"`` or ``{ NetRead = { allowlist = [...] } }``. It grants nothing."""

from __future__ import annotations

from typing import cast

from gatewright.base.report import RawPath, Report, shown
from gatewright.base.row import Raw, Row, kind_of
from gatewright.base.shape import Shape, one_of, table
from gatewright.policy.kinds.capability import CAPABILITIES, Capability, check_capabilities

_KINDS = {str(kind): value for kind, value in CAPABILITIES.items()}


def capability_shape() -> Shape:
    """What an entry of ``capabilities`` looks like: a name, or one name with its table."""
    alone = [name for name, kind in _KINDS.items() if not kind.example]
    return {
        "anyOf": [
            one_of(alone),
            *(
                table({name: table(kind.keys, *(kind.keys if kind.example else ()))}, name)
                for name, kind in _KINDS.items()
            ),
        ]
    }


def read_capabilities(row: Row) -> tuple[Capability, ...]:
    """The capabilities of one agent; one that cannot be built is left out (an error)."""
    found: list[tuple[Capability, RawPath]] = []
    for index, value in enumerate(row.items("capabilities")):
        path = row.at("capabilities", index)
        if (capability := _capability(value, path, row.report)) is not None:
            found.append((capability, path))
    check_capabilities(found, row.report)
    return tuple(capability for capability, _ in found)


def _capability(value: object, path: RawPath, report: Report) -> Capability | None:
    is_name = isinstance(value, str)
    if not is_name and not isinstance(value, dict):
        report.error(path, "wrong-type", f"a capability must be text or a table, not {kind_of(value)}")
        return None
    tagged: Raw = {value: {}} if is_name else cast("Raw", value)
    if len(tagged) != 1:
        example = "`{ NetRead = { allowlist = [...] } }`"
        report.error(path, "bad-value", f"a capability is one table with exactly one kind, such as {example}")
        return None
    name = next(iter(tagged))
    kind = _KINDS.get(name)
    if kind is None:
        place = path if is_name else (*path, name)
        near = report.near(name, _KINDS)
        message = f"no kind of capability is named {shown(name)}"
        report.error(place, "unknown-variant", message, near=near, at_value=False)
        return None
    if is_name and kind.example:
        report.error(path, "bad-value", f"`{name}` needs a value, such as `{kind.example}`")
        return None
    row = Row(tagged, path, report).table(name)
    if row is None:
        return None
    row.only(kind.keys, f"`{name}`")
    return kind.read(row)
