"""Reading ``operation_field`` and ``operations`` of ``[tools.NAME]``, and the known tools as they declare them.

It reads no schema: whoever knows the tools does that behind a port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from gatewright.base.errors import AuthorMustFix
from gatewright.base.frozen import frozen
from gatewright.base.report import shown
from gatewright.base.row import Raw, Row, name_error
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.toolname import split_name
from gatewright.policyfile.known import Declare, KnownTools

KEYS = ("operation_field", "operations")
MAX_NAMED = 5


@frozen
class Declaration:
    """What one table says; ``at`` is the position of each operation in its list."""

    field: str | None = None
    operations: tuple[str, ...] | None = None
    at: tuple[int, ...] = ()


def read_declarations(table: Row, known: KnownTools | None) -> tuple[Mapping[str, Declaration], KnownTools | None]:
    """What each table declares, and ``known`` with the tools as declared; with ``known`` None nothing is looked up."""
    said: dict[str, Declaration] = {}
    made: dict[tuple[str, int], ToolFacts] = {}
    for written, value in table.raw.items():
        if not isinstance(value, dict) or not any(key in value for key in KEYS):
            continue
        row = Row(cast("Raw", value), table.at(written), table.report)
        said[written] = _declaration(row)
        if known is not None:
            for facts in _applied(row, said[written], _meant(written, table, known), known.declare):
                made[facts.name, facts.major] = facts
    if known is None or not made:
        return said, known
    return said, replace(known, facts=tuple(made.get((facts.name, facts.major), facts) for facts in known.facts))


def _declaration(row: Row) -> Declaration:
    field = row.text("operation_field")
    if field and (why := name_error(field)):
        hint = ': `""` says that no field selects operations' if not field.strip() else ""
        row.fault("operation_field", "bad-value", f"`operation_field` {why}{hint}")
        field = None
    if "operations" not in row.raw:
        return Declaration(field)
    named = _operations(row)
    if field == "":
        message = '`operations` need a field, and `operation_field = ""` says that there is none: remove one of them'
        row.report.error(row.at("operations"), "bad-value", message, at_value=False)
        return Declaration(field)
    if not named:
        return Declaration(field)
    return Declaration(field, tuple(named), tuple(named.values()))


def _operations(row: Row) -> dict[str, int]:
    """The operations in their order, each with its position."""
    found: dict[str, int] = {}
    if row.raw["operations"] == []:
        row.fault(
            "operations", "bad-value", "`operations` may not be empty: leave it out, or name what the tool can do"
        )
    for index, name in row.texts("operations"):
        place = row.at("operations", index)
        if why := name_error(name):
            row.report.error(place, "bad-value", f"an operation {why}")
        elif name in found:
            row.report.error(place, "duplicate", f"{shown(name)} stands here twice")
        else:
            found[name] = index
    return found


def _meant(written: str, table: Row, known: KnownTools) -> list[ToolFacts]:
    """The tools that this table holds for: a major with a table of its own has nothing of the bare one."""
    bare = split_name(written)[1] is None
    return [f for f in known.of(written) if not (bare and f"{f.name}@{f.major}" in table.raw)]


def _applied(row: Row, said: Declaration, meant: list[ToolFacts], declare: Declare | None) -> list[ToolFacts]:
    """The tools as declared, up to the first that cannot be read so."""
    if declare is None:
        _refuse(row, meant)
        return []
    if said.field is None and said.operations is None:
        return []
    made: list[ToolFacts] = []
    for facts in meant:
        try:
            read = declare(facts, said.field, said.operations)
        except AuthorMustFix as error:
            _report(row, said, facts, str(error), declare)
            rest = meant[len(made) :]
            if said.operations is not None:  # as they were meant: one fault is not reported at every use of them
                names = said.operations
                rest = [
                    replace(one, operations=tuple(OperationFacts(name, one.tier) for name in names)) for one in rest
                ]
            return [*made, *rest]
        _warn_narrowed(row, said, facts, read, declare)
        made.append(read)
    return made


def _refuse(row: Row, meant: list[ToolFacts]) -> None:
    """Where nobody can read a schema anew."""
    for key in KEYS:
        if key not in row.raw:
            continue
        if own := next((facts for facts in meant if facts.has_operations), None):
            _report_own(row, key, own)
        else:
            row.report.error(row.at(key), "not-supported", f"`{key}` of a tool is not supported yet", at_value=False)


def _report(row: Row, said: Declaration, facts: ToolFacts, words: str, declare: Declare) -> None:
    """The port's words at the value that they are about: an operation, the field where they name it, or the list."""
    if _declares_itself(facts, declare):
        for key in KEYS:
            if key in row.raw:
                _report_own(row, key, facts)
        return
    listed = _by_itself(facts, said.field, declare)
    foreign = [(name, index) for name, index in zip(said.operations or (), said.at, strict=True) if name not in listed]
    if listed and foreign and (said.field or len(foreign) < len(said.at)):
        for name, index in foreign:
            message = f"the schema of {shown(facts.name)} takes no operation {shown(name)}"
            near = row.report.near(name, listed)
            row.report.error(row.at("operations", index), "unknown-operation", message, near=near)
        return
    about_field = said.operations is None or (said.field is not None and f"`{said.field}`" in words)
    key = "operation_field" if about_field else "operations"
    row.report.error(row.at(key), "operations-unusable", f"{shown(facts.name)} cannot be read so: {words}")


def _report_own(row: Row, key: str, facts: ToolFacts) -> None:
    message = f"{shown(facts.name)} declares its own operations: `{key}` is for tools that do not"
    row.report.error(row.at(key), "operations-declared", message, at_value=False)


def _declares_itself(facts: ToolFacts, declare: Declare) -> bool:
    """Whether the tool's author declared the operations: any other tool can be read as one without operations."""
    if not facts.has_operations:
        return False
    try:
        declare(facts, "", None)
    except AuthorMustFix:
        return True
    return False


def _warn_narrowed(row: Row, said: Declaration, facts: ToolFacts, read: ToolFacts, declare: Declare) -> None:
    """A list for a field that the schema closes itself takes operations away from every agent."""
    if said.operations is None:
        return
    listed = _by_itself(facts, said.field, declare)
    lost = [name for name in listed if name not in read.operation_names]
    if lost and not set(said.operations).isdisjoint(listed):
        more = f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
        named = f"{', '.join(map(shown, lost[:MAX_NAMED]))}{more}"
        message = f"the schema of {shown(facts.name)} also takes {named}: not declared here, no agent can call them"
        row.report.warning(row.at("operations"), "operations-narrowed", message, at_value=True)


def _by_itself(facts: ToolFacts, field: str | None, declare: Declare) -> tuple[str, ...]:
    """The operations that the schema lists without help."""
    if field is None:
        return facts.operation_names
    try:
        return declare(facts, field, None).operation_names
    except AuthorMustFix:
        return ()
