"""Reading ``[tools.NAME]``: what the operator overrides of a tool."""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.report import shown
from gatewright.base.row import Row
from gatewright.base.shape import DURATION, FLAG, NAME, TEXT, Shape, by_name, one_of, several, told
from gatewright.policy.document import OutputCheck, ToolSettings
from gatewright.policy.permission import PathUse
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.tier import SafetyTier
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.names import Names
from gatewright.policyfile.readagent import read_timeout
from gatewright.policyfile.readdeclaration import Declaration

TIERS = {str(tier): tier for tier in SafetyTier}
USES = {str(use): use for use in PathUse}
EXTRA = {str(verdict): verdict for verdict in (Verdict.ALLOW, Verdict.DENY)}
OUTPUTS = {str(check): check for check in OutputCheck}
KEYS: dict[str, Shape] = {
    "operation_field": told(TEXT, "The argument that selects the operation; empty: there is none"),
    "operations": told(several(NAME, 1), "What a free text there may be"),
    "extra_arguments": told(one_of(EXTRA), "Whether a call may give arguments that the schema does not name"),
    "operation_tiers": told(by_name(one_of(TIERS)), "How much harm single operations can do"),
    "safety_tier": told(one_of(TIERS), "How much harm it can do; absent: as the tool says"),
    "timeout": told(DURATION, "How long a call may take"),
    "output": told(
        one_of(OUTPUTS), "What becomes of a result that misfits its schema: refused, taken and noted, not checked"
    ),
    "scrub": told(FLAG, "Take secrets out of results", default=True),
    "description": told(NAME, "What the model is told of it, in place of the tool's own words"),
    "paths": told(by_name(one_of(USES)), "Which arguments are paths on disk, and what is done there"),
}
_NOTHING = Declaration()


def read_tool_settings(table: Row, names: Names, declared: Mapping[str, Declaration]) -> dict[str, ToolSettings]:
    """``[tools.NAME]`` and ``[tools."NAME@MAJOR"]`` as they are named, in the order of the file.

    ``declared``: what was read of their operations before; ``names`` knows the tools so.
    """
    found: dict[str, ToolSettings] = {}
    for name in table.raw:
        row = table.table(name)
        if row is not None and name == ANY_TOOL:
            message = "`*` has no settings: what holds for all tools stands in `[defaults]`"
            row.report.error(row.path, "bad-value", message, at_value=False)
        elif row is not None:
            row.only(KEYS, "the settings of a tool")
            found[name] = _settings(row, names.tool(name, row.path), names, declared.get(name, _NOTHING))
            bare, major = split_name(name)
            if major is not None and name != f"{bare}@{major}":  # as `@01`: it is not looked up so
                message = f"{shown(name)} must be written `{bare}@{major}`"
                row.report.error(row.path, "bad-value", message, at_value=False)
    return found


def _settings(row: Row, facts: tuple[ToolFacts, ...], names: Names, declared: Declaration) -> ToolSettings:
    text = row.text("description")
    if text is not None and not text.strip():
        row.fault("description", "bad-value", "`description` may not be blank: leave it out to keep the tool's own")
    return ToolSettings(
        timeout_s=read_timeout(row),
        safety_tier=row.choice("safety_tier", TIERS),
        operation_tiers=_operation_tiers(row, facts, names),
        scrub=row.flag("scrub", otherwise=True),
        description=text,
        operation_field=declared.field,
        operations=declared.operations,
        extra_arguments=row.choice("extra_arguments", EXTRA),
        paths=_paths(row, facts),
        output=row.choice("output", OUTPUTS),
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
    """What the arguments are, by their place (``edits[].path``)."""
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
