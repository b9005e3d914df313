"""Reading a rule's ``conditions``: ``operation:NAME`` on any rule, other tools on the kinds that speak of them.

It does not know sessions, nor whether a condition holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.report import shown
from gatewright.base.row import name_error
from gatewright.policy.rule import ANY_TOOL, OPERATION_CONDITION, RuleKind
from gatewright.policyfile.rulekind import WITH_CONDITIONS

if TYPE_CHECKING:
    from gatewright.base.report import RawPath
    from gatewright.base.row import Row
    from gatewright.policyfile.names import Names

Listed = tuple[str, ...] | None


def read_conditions(
    row: Row, names: Names, tool_name: str | None, kind: RuleKind | None, listed: Listed
) -> tuple[str, ...]:
    """The conditions as written, every fault reported."""
    seen: set[str] = set()
    found = row.texts("conditions")
    for index, condition in found:
        path = row.at("conditions", index)
        if why := name_error(condition.removeprefix(OPERATION_CONDITION)):
            row.report.error(path, "bad-condition", f"{shown(condition)} is no condition here: the name {why}")
        elif condition in seen:
            row.report.error(path, "duplicate", f"{shown(condition)} stands here twice")
        elif condition.startswith(OPERATION_CONDITION):
            _check_operation(condition, path, row, names, tool_name, listed)
        else:
            _check_tool(condition, path, row, names, kind)
        seen.add(condition)
    _require_tools(row, kind, [condition for _, condition in found])
    return tuple(condition for _, condition in found)


def _check_operation(
    condition: str, path: RawPath, row: Row, names: Names, tool_name: str | None, listed: Listed
) -> None:
    if tool_name == ANY_TOOL:
        message = f"{shown(condition)} names an operation of one tool: it cannot stand with `*`"
        row.report.error(path, "operations-on-plain-tool", message)
    elif tool_name is not None and (facts := names.seen(tool_name, listed)) is not None:
        if facts.has_operations:
            names.operation(facts, condition.removeprefix(OPERATION_CONDITION), path)
        else:
            row.report.error(path, "operations-on-plain-tool", f"`{facts.name}` has no operations to choose from")


def _check_tool(condition: str, path: RawPath, row: Row, names: Names, kind: RuleKind | None) -> None:
    if kind is None:
        return
    name = type(kind).__name__
    if name not in WITH_CONDITIONS:
        message = f"{shown(condition)} is no condition here: `{name}` takes only `operation:NAME`"
        row.report.error(path, "bad-condition", message)
    elif condition == ANY_TOOL:
        row.report.error(path, "bad-condition", f"`*` is no condition: name the tools that `{name}` speaks of")
    else:
        names.tool_or_operation(condition, path)


def _require_tools(row: Row, kind: RuleKind | None, conditions: list[str]) -> None:
    name = type(kind).__name__
    if name in WITH_CONDITIONS and all(text.startswith(OPERATION_CONDITION) for text in conditions):
        message = f"`{name}` says nothing without a tool in `conditions`, such as `tool` or `tool.operation`"
        row.report.error(row.at("conditions" if "conditions" in row.raw else "rule_type"), "bad-condition", message)
