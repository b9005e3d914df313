"""Reads ``[tools.NAME]``: the operator's settings for a tool, and the operations that he declares for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, cast

from pydantic import Field

from gatewright.base.errors import AuthorMustFix, shown
from gatewright.base.frozen import frozen
from gatewright.base.row import TEXT, Raw, Row, name_error
from gatewright.policy.document import OutputCheck, ToolSettings, Trust
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.verdict import PathUse, SafetyTier, Verdict, split_name
from gatewright.policyfile.names import Declare, KnownTools, Names
from gatewright.policyfile.readagent import check_timeout
from gatewright.policyfile.table import Form, Name, Seconds, Table, read_keys

DECLARATION_KEYS = ("operation_field", "operations")
MAX_NAMED = 5


@frozen
class Declaration:
    """The declaration in one table; ``at`` is the position of each operation in its list."""

    field: str | None = None
    operations: tuple[str, ...] | None = None
    at: tuple[int, ...] = ()


def read_declarations(table: Row, known: KnownTools | None) -> tuple[Mapping[str, Declaration], KnownTools | None]:
    """Read the declaration of each table, and apply it to ``known``; if that is None, no name is looked up."""
    said: dict[str, Declaration] = {}
    made: dict[tuple[str, int], ToolFacts] = {}
    for written, value in table.raw.items():
        if not isinstance(value, dict) or not any(key in value for key in DECLARATION_KEYS):
            continue
        row = Row(cast("Raw", value), table.at(written), table.report)
        said[written] = _declaration(row)
        if known is not None:
            for facts in _apply(row, said[written], _tools_of(written, table, known), known.declare):
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
    """Read the operations in their order, each with its position."""
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


def _tools_of(written: str, table: Row, known: KnownTools) -> list[ToolFacts]:
    """The tools to which a table applies; a major with a table of its own takes nothing from the bare name's."""
    bare = split_name(written)[1] is None
    return [f for f in known.of(written) if not (bare and f"{f.name}@{f.major}" in table.raw)]


def _apply(row: Row, said: Declaration, meant: list[ToolFacts], declare: Declare | None) -> list[ToolFacts]:
    """The tools as declared, up to the first that cannot be read that way."""
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
            # as the author meant them, so that one fault is not reported at every use of them
            if said.operations is not None:
                names = said.operations
                rest = [
                    replace(one, operations=tuple(OperationFacts(name, one.tier) for name in names)) for one in rest
                ]
            return [*made, *rest]
        _warn_narrowed(row, said, facts, read, declare)
        made.append(read)
    return made


def _refuse(row: Row, meant: list[ToolFacts]) -> None:
    """Report a declaration that cannot apply, since no schema can be read again."""
    for key in DECLARATION_KEYS:
        if key not in row.raw:
            continue
        if own := next((facts for facts in meant if facts.has_operations), None):
            _report_own(row, key, own)
        else:
            row.report.error(row.at(key), "not-supported", f"`{key}` of a tool is not supported yet", at_value=False)


def _report(row: Row, said: Declaration, facts: ToolFacts, words: str, declare: Declare) -> None:
    """Report the problem in the words of ``declare`` at the value that it is about: an operation, the field if the
    words name it, or the list.
    """
    if _declares_itself(facts, declare):
        for key in DECLARATION_KEYS:
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
    """Tell whether the tool's author declared the operations; any other tool can also be read as one without
    operations.
    """
    if not facts.has_operations:
        return False
    try:
        declare(facts, "", None)
    except AuthorMustFix:
        return True
    return False


def _warn_narrowed(row: Row, said: Declaration, facts: ToolFacts, read: ToolFacts, declare: Declare) -> None:
    """Warn about a list for a field that the schema itself closes: it takes operations away from every agent."""
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
    """The operations that the schema lists without a declaration."""
    if field is None:
        return facts.operation_names
    try:
        return declare(facts, field, None).operation_names
    except AuthorMustFix:
        return ()


class ToolTable(Table, of=ToolSettings):
    """``[tools.NAME]``."""

    operation_field: Annotated[str, Form(lambda: TEXT)] | None = Field(
        None, description="The argument that selects the operation; empty: none"
    )
    operations: tuple[Name, ...] | None = Field(
        None, min_length=1, description="The values of a field that takes any text"
    )
    extra_arguments: Literal[Verdict.ALLOW, Verdict.DENY] | None = Field(
        None, description="The verdict on arguments that the schema does not name"
    )
    timeout_s: Seconds | None = Field(None, alias="timeout", description="The time limit of a call")
    safety_tier: SafetyTier | None = Field(None, description="The harm that it can do; absent: the tool's own tier")
    operation_tiers: Mapping[str, SafetyTier] = Field({}, description="The harm that single operations can do")
    scrub: bool = Field(True, description="Take secrets out of results")
    output: OutputCheck | None = Field(
        None,
        description="The treatment of a result that misfits its schema: refuse it, accept and note it, or do not check",
    )
    paths: Mapping[str, PathUse] = Field({}, description="The arguments that are paths on disk, with their use")
    description: Name | None = Field(
        None, description="Its description for the model, in place of the tool's own words"
    )
    trust: Trust | None = Field(
        None, description="The author of its results: oneself, or somebody outside (`AfterOutside`)"
    )


TIERS = {str(tier): tier for tier in SafetyTier}
USES = {str(use): use for use in PathUse}
_NOTHING = Declaration()


def read_tool_settings(table: Row, names: Names, declared: Mapping[str, Declaration]) -> dict[str, ToolSettings]:
    """Read ``[tools.NAME]`` and ``[tools."NAME@MAJOR"]``, in the order of the file.

    ``declared``: their operations, read before; ``names`` knows the tools with these.
    """
    found: dict[str, ToolSettings] = {}
    for name in table.raw:
        row = table.table(name)
        if row is not None and name == ANY_TOOL:
            message = "`*` has no settings: what holds for all tools stands in `[defaults]`"
            row.report.error(row.path, "bad-value", message, at_value=False)
        elif row is not None:
            found[name] = _settings(row, names.tool(name, row.path), names, declared.get(name, _NOTHING))
            bare, major = split_name(name)
            if major is not None and name != f"{bare}@{major}":  # such as `@01`, which no look-up finds
                message = f"{shown(name)} must be written `{bare}@{major}`"
                row.report.error(row.path, "bad-value", message, at_value=False)
    return found


def _settings(row: Row, facts: tuple[ToolFacts, ...], names: Names, declared: Declaration) -> ToolSettings:
    found = read_keys(row, ToolTable, "the settings of a tool")
    check_timeout(row, found)
    if not found.get("description", "its own").strip():
        row.fault("description", "bad-value", "`description` may not be blank: leave it out to keep the tool's own")
    return ToolSettings(
        **found,
        operation_tiers=_operation_tiers(row, facts, names),
        operation_field=declared.field,
        operations=declared.operations,
        paths=_paths(row, facts),
    )


def _operation_tiers(row: Row, facts: tuple[ToolFacts, ...], names: Names) -> dict[str, SafetyTier]:
    table = row.table("operation_tiers")
    found: dict[str, SafetyTier] = {}
    if table is None:
        return found
    if table.raw and facts and not any(tool.has_operations for tool in facts):
        message = f"`{facts[0].name}` has no operations: set its `safety_tier`"
        row.report.error(table.path, "operations-on-plain-tool", message, at_value=False)
        facts = ()
    for operation in table.raw:
        if facts and not any(operation in tool.operation_names for tool in facts):
            names.operation(facts[-1], operation, table.at(operation), at_value=False)
        tier = table.choice(operation, TIERS)
        if tier is not None:
            found[operation] = tier
    return found


def _paths(row: Row, facts: tuple[ToolFacts, ...]) -> dict[str, PathUse]:
    """Read the path arguments, by their place (``edits[].path``)."""
    table = row.table("paths")
    found: dict[str, PathUse] = {}
    if table is None:
        return found
    known = {place for tool in facts for place in tool.texts or ()}
    says = bool(facts) and all(tool.texts is not None for tool in facts)
    for argument in table.raw:
        if says and argument not in known:
            message = f"{shown(facts[-1].name)} has no text at {shown(argument)} that could be a path"
            near = table.report.near(argument, known)
            table.report.error(table.at(argument), "unknown-argument", message, near=near, at_value=False)
        use = table.choice(argument, USES)
        if use is not None:
            found[argument] = use
    return found
