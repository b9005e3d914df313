"""Reading ``capabilities``: ``"ClockRead"`` or ``{ NetRead = { allowlist = [...] } }``. It grants nothing."""

from __future__ import annotations

from typing import cast

from gatewright.base.report import RawPath, shown
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
    report = row.report
    for index, value in enumerate(row.items("capabilities")):
        path = row.at("capabilities", index)
        is_name = isinstance(value, str)
        if not is_name and not isinstance(value, dict):
            report.error(path, "wrong-type", f"a capability must be text or a table, not {kind_of(value)}")
            continue
        tagged: Raw = {value: {}} if is_name else cast("Raw", value)
        if len(tagged) != 1:
            example = "`{ NetRead = { allowlist = [...] } }`"
            report.error(path, "bad-value", f"a capability is one table with exactly one kind, such as {example}")
            continue
        name = next(iter(tagged))
        kind = _KINDS.get(name)
        if kind is None:
            place, near = path if is_name else (*path, name), report.near(name, _KINDS)
            message = f"no kind of capability is named {shown(name)}"
            report.error(place, "unknown-variant", message, near=near, at_value=False)
        elif is_name and kind.example:
            report.error(path, "bad-value", f"`{name}` needs a value, such as `{kind.example}`")
        elif (table_of := Row(tagged, path, report).table(name)) is not None:
            table_of.only(kind.keys, f"`{name}`")
            if (capability := kind.read(table_of)) is not None:
                found.append((capability, path))
    check_capabilities(found, report)
    return tuple(capability for capability, _ in found)
