"""Reading ``tool_rules``: one table to one ToolRule, with every fault."""

from __future__ import annotations

from typing import cast

from gatewright.base.report import RawPath, shown
from gatewright.base.row import Row, json_table
from gatewright.base.shape import JSON_TABLE, NAME, Shape, several, table, told, whole
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import (
    ANY_TOOL,
    DEFAULT_PRIORITY,
    MAX_PRIORITY,
    OPERATION_CONDITION,
    RULE_KINDS,
    AllowedOperations,
    ArgumentConstraints,
    ExclusiveGroups,
    RuleKind,
    StartConstraint,
    ToolRule,
    condition_faults,
)
from gatewright.policyfile.checkconstraint import check_constraints, check_together, warn_open
from gatewright.policyfile.names import Names
from gatewright.policyfile.readschema import check_schemas
from gatewright.policyfile.rulekind import kind_name, kind_shape, read_kind, written_payload

Listed = tuple[str, ...] | None
RULE_KEYS: dict[str, Shape] = {
    "tool_name": told(NAME, "The tool that the rule is about: a name, `name@major`, or `*` for every tool"),
    "rule_type": told(kind_shape(), "What the rule says, such as `{ MaxCalls = 3 }`"),
    "conditions": told(
        several(NAME), "`operation:NAME`: only for these operations; for some kinds the tools that it names", []
    ),
    "priority": told(
        whole(0, MAX_PRIORITY), "The order of reports, higher first; it overrides nothing", DEFAULT_PRIORITY
    ),
    "id": told(NAME, "A name of its own, by which reports and the log call it"),
    "metadata": told(JSON_TABLE, "Anything that tools of your own want to keep here; it decides nothing"),
}
RULES = several(table(RULE_KEYS, "tool_name", "rule_type"))


def read_rules(rows: list[Row], names: Names, listed: Listed) -> tuple[ToolRule, ...]:
    """The rules of one agent whose list of tools is ``listed``; a rule that cannot be built is left out (an error)."""
    seen: dict[str, int] = {}
    found: list[ToolRule] = []
    constraints: list[tuple[ToolRule, ToolFacts, RawPath]] = []
    for number, row in enumerate(rows, 1):
        rule = read_rule(row, names, listed)
        if rule is None:
            continue
        found.append(rule)
        if (facts := _constrained(rule, names, listed)) is not None:
            constraints.append((rule, facts, written_payload(row)[1]))
        if rule.rule_id is not None and seen.setdefault(rule.rule_id, number) != number:
            row.fault("id", "duplicate", f"rule {seen[rule.rule_id]} has the id {shown(rule.rule_id)} too")
    if constraints:
        check_together(constraints, rows[0].report)
    if constraints and rows[0].report.first_error is None:
        warn_open(constraints, rows[0].report)
    return tuple(found)


def read_required_tools(rows: list[Row], names: Names) -> tuple[ToolRule, ...]:
    """The rules of one source, which bind the calls that go to it; kinds that are about a whole session are errors."""
    for row in rows:
        kind = RULE_KINDS.get(name := kind_name(row.raw.get("rule_type")) or "")
        if kind is not None and not kind.fits_source:
            message = (
                f"`{name}` is about a whole session, not about the calls that go to one source: put it at an agent"
            )
            row.report.error(row.at("rule_type"), "not-for-a-source", message)
    return read_rules(rows, names, None)


def read_rule(row: Row, names: Names, listed: Listed) -> ToolRule | None:
    """One rule, or None after an error."""
    row.only(RULE_KEYS, "a tool rule")
    tool_name = row.text("tool_name", filled=True) if row.require("tool_name", "a tool rule") else None
    if tool_name is not None and tool_name != ANY_TOOL:
        names.tool(tool_name, row.at("tool_name"))
    kind = None
    if row.require("rule_type", "a tool rule"):
        kind = read_kind(row.raw["rule_type"], row.at("rule_type"), row.report)
    priority = row.integer("priority", 0, MAX_PRIORITY)
    conditions = _conditions(row, names, tool_name, kind, listed)
    rule_id = row.text("id", filled=True)
    metadata = row.table("metadata")
    data = json_table(metadata.raw, metadata.path, row.report) if metadata else None
    if tool_name is None or kind is None:
        return None
    priority = DEFAULT_PRIORITY if priority is None else priority
    rule = ToolRule(tool_name, kind, conditions, priority, rule_id, data)
    _check_kind(row, names, rule, listed)
    return rule


def _conditions(
    row: Row, names: Names, tool_name: str | None, kind: RuleKind | None, listed: Listed
) -> tuple[str, ...]:
    """The conditions as written, every fault reported."""
    written = row.texts("conditions")
    found = tuple(condition for _, condition in written)
    faults = {position: fault for position, *fault in condition_faults(found, tool_name, kind)}
    for position, (index, condition) in enumerate(written):
        path = row.at("conditions", index)
        if position in faults:
            row.report.error(path, *faults[position])
        elif not condition.startswith(OPERATION_CONDITION):
            if kind is not None:
                names.tool_or_operation(condition, path)
        elif tool_name is not None and (facts := names.seen(tool_name, listed)) is not None:
            if facts.has_operations:
                names.operation(facts, condition.removeprefix(OPERATION_CONDITION), path)
            else:
                row.report.error(path, "operations-on-plain-tool", f"`{facts.name}` has no operations to choose from")
    if None in faults:
        row.fault("conditions" if "conditions" in row.raw else "rule_type", *faults[None])
    return found


def _check_kind(row: Row, names: Names, rule: ToolRule, listed: Listed) -> None:
    """What the kind itself says about tools, operations and arguments."""
    match rule.rule_type:
        case AllowedOperations():
            payload, place = written_payload(row)
            facts = names.seen(rule.tool_name, listed)
            if rule.tool_name == ANY_TOOL:
                message = "`AllowedOperations` names operations of one tool: it cannot stand with `*`"
                row.fault("rule_type", "operations-on-plain-tool", message)
            elif facts is not None and not facts.has_operations:
                row.fault("rule_type", "operations-on-plain-tool", f"`{facts.name}` has no operations to choose from")
            elif facts is not None and isinstance(payload, list):
                for index, operation in enumerate(cast("list[object]", payload)):
                    if isinstance(operation, str):
                        names.operation(facts, operation, (*place, index))
        case ExclusiveGroups(groups):
            place = written_payload(row)[1]
            for index, group in enumerate(groups):
                for position, written in enumerate(group):
                    if written != ANY_TOOL:
                        names.tool(written, (*place, index, position))
        case ArgumentConstraints():
            place = written_payload(row)[1]
            check_schemas(rule.rule_type, place, row.report)
            if (facts := _constrained(rule, names, listed)) is not None:
                check_constraints(rule, facts, place, row.report)
        case StartConstraint() if rule.tool_name == ANY_TOOL:
            row.fault("tool_name", "bad-value", "`StartConstraint` names the one tool to start with, not `*`")
        case _:
            pass


def _constrained(rule: ToolRule, names: Names, listed: Listed) -> ToolFacts | None:
    """The tool whose arguments the rule constrains; None for every tool, and for one that is unknown."""
    if not isinstance(rule.rule_type, ArgumentConstraints) or rule.tool_name == ANY_TOOL:
        return None
    return names.seen(rule.tool_name, listed)
