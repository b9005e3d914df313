"""Reading ``tool_rules``: one table to one ToolRule, with every fault. It does not know sessions or calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gatewright.policy.rule import (
    ANY_TOOL,
    DEFAULT_PRIORITY,
    OPERATION_CONDITION,
    AllowedOperations,
    RuleKind,
    ToolRule,
)
from gatewright.policy.toolname import split_name
from gatewright.policyfile.report import shown
from gatewright.policyfile.row import Raw, name_error
from gatewright.policyfile.rulekind import WITH_CONDITIONS, json_table, payload_path, read_kind

if TYPE_CHECKING:
    from gatewright.policyfile.names import Names
    from gatewright.policyfile.row import Row

RULE_KEYS = ("tool_name", "rule_type", "conditions", "priority", "id", "metadata")


def read_rules(rows: list[Row], names: Names, listed: tuple[str, ...] | None) -> tuple[ToolRule, ...]:
    """The rules of one agent whose list of tools is ``listed``; a rule that cannot be built is left out (an error)."""
    seen: dict[str, int] = {}
    found: list[ToolRule] = []
    for number, row in enumerate(rows, 1):
        rule = read_rule(row, names, listed)
        if rule is None:
            continue
        found.append(rule)
        if rule.rule_id is not None and seen.setdefault(rule.rule_id, number) != number:
            row.fault("id", "duplicate", f"rule {seen[rule.rule_id]} has the id {shown(rule.rule_id)} too")
    return tuple(found)


def read_rule(row: Row, names: Names, listed: tuple[str, ...] | None) -> ToolRule | None:
    """One rule, or None after an error."""
    row.only(RULE_KEYS, "a tool rule")
    tool_name = _tool_name(row, names)
    kind = None
    if row.require("rule_type", "a tool rule"):
        kind = read_kind(row.raw["rule_type"], row.at("rule_type"), row.report)
    priority = row.integer("priority", 0, 255)
    conditions = _conditions(row, names, kind)
    rule_id = row.text("id", filled=True)
    metadata = row.table("metadata")
    data = json_table(metadata.raw, metadata.path, row.report) if metadata else None
    if tool_name is None or kind is None:
        return None
    if isinstance(kind, AllowedOperations):
        _check_operations(row, names, tool_name, listed)
    return ToolRule(tool_name, kind, conditions, DEFAULT_PRIORITY if priority is None else priority, rule_id, data)


def _tool_name(row: Row, names: Names) -> str | None:
    if not row.require("tool_name", "a tool rule"):
        return None
    written = row.text("tool_name", filled=True)
    if written is not None and written != ANY_TOOL:
        names.tool(written, row.at("tool_name"))
    return written


def _check_operations(row: Row, names: Names, tool_name: str, listed: tuple[str, ...] | None) -> None:
    path = row.at("rule_type")
    if tool_name == ANY_TOOL:
        message = "`AllowedOperations` names operations of one tool: it cannot stand with `*`"
        row.report.error(path, "operations-on-plain-tool", message)
        return
    if names.known is None or not (candidates := names.known.of(tool_name)):
        return
    name, major = split_name(tool_name)
    facts = candidates[0] if major is not None else names.chosen(listed).get(name, candidates[0])
    if not facts.has_operations:
        row.report.error(path, "operations-on-plain-tool", f"`{facts.name}` has no operations to choose from")
        return
    value = row.raw["rule_type"]
    place = payload_path(value, path)
    for index, operation in _payload_texts(value):
        names.operation(facts, operation, (*place, index))


def _payload_texts(value: object) -> list[tuple[int, str]]:
    found = value
    if isinstance(value, dict):
        raw = cast("Raw", value)
        found = raw["value"] if "type" in raw else next(iter(raw.values()))
    if not isinstance(found, list):
        return []
    return [(index, word) for index, word in enumerate(cast("list[object]", found)) if isinstance(word, str)]


def _conditions(row: Row, names: Names, kind: RuleKind | None) -> tuple[str, ...]:
    """Every condition is an error for now: one that is meaningless, or one that is not supported yet."""
    found = row.texts("conditions")
    for index, condition in found:
        path = row.at("conditions", index)
        fault = _condition_fault(condition, kind)
        if fault is not None:
            row.report.error(path, "bad-condition", f"{shown(condition)} is no condition here: {fault}")
        else:
            row.report.error(path, "not-supported", f"the condition {shown(condition)} is not supported yet")
            if not condition.startswith(OPERATION_CONDITION):
                names.approval_key(condition, path)
    return tuple(condition for _, condition in found)


def _condition_fault(condition: str, kind: RuleKind | None) -> str | None:
    if why := name_error(condition.removeprefix(OPERATION_CONDITION)):
        return f"the name {why}"
    if kind is None or condition.startswith(OPERATION_CONDITION) or type(kind).__name__ in WITH_CONDITIONS:
        return None
    return f"`{type(kind).__name__}` takes only `operation:NAME`"
