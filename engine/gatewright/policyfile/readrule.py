"""Reads ``tool_rules``: makes a ToolRule of each table, reports every fault, and checks constraints against their tool.

``rule_type`` has three spellings: ``{ MaxCalls = 3 }``, ``"ContinueLoop"`` for a kind without payload, and Pattern's
``{ type = "MaxCalls", value = 3 }``. A constraint that cannot take effect as written is an error when the policy is
read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Annotated, cast

from pydantic import Field

from gatewright.base.errors import RawPath, Report, shown
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.row import Raw, Row, Shape, json_table, kind_of, one_of, table
from gatewright.policy.right import OperationFacts, ToolFacts
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
from gatewright.policy.rulekind import ABSENT
from gatewright.policy.verdict import Action
from gatewright.policyfile.names import Names
from gatewright.policyfile.table import Form, Id, JsonTable, Name, Plain, Table, plain, read_keys
from gatewright.schema.constraint import close_constraint
from gatewright.schema.fault import check_json_schema, contradictions, faults_of, is_empty, is_off
from gatewright.schema.walk import Schema


def kind_shape() -> Shape:
    """The JSON Schema of a ``rule_type``: a name, one name with its value, or a name and its value apart."""
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
    """Read the kind that ``value`` spells; None after an error."""
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
    """The name of the kind that a ``rule_type`` spells, known or not; None if it spells none."""
    if isinstance(value, dict):
        raw = cast("Raw", value)
        value = raw["type"] if "type" in raw else next(iter(raw), None)
    return value if isinstance(value, str) else None


def written_payload(row: Row) -> tuple[object, RawPath]:
    """The payload of the well-spelt ``rule_type`` of a rule, as the file has it, and its place."""
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


MOST_COMPARED = 32
ADDRESSEES = frozenset({"to", "recipient", "recipients"})
COPIES = frozenset({"cc", "bcc"})
DELETIONS = frozenset({"delete", "remove", "drop", "purge", "destroy", "erase", "cancel"})


def check_constraints(rule: ToolRule, facts: ToolFacts, place: RawPath, report: Report) -> None:
    """Report the faults that the constraints of ``rule``, at ``place``, have with the tool."""
    bound, fields = _bound(rule, facts), _fields(rule)
    carriers = facts.selection.fields if facts.selection is not None else frozenset[str]()
    taken = {name for operation in bound for name in operation.parameters} | carriers
    for name, schema in fields.items():
        path = (*place, name)
        if name in taken:
            _check_field(facts, bound, name, schema, path, report)
        elif taken:
            _report_unknown(facts, name, taken, path, report, at_value=False)
    for index, name in enumerate(_demands(rule)):
        path = (*place, "required", index)
        if taken and name not in taken and name not in fields:
            _report_unknown(facts, name, taken, path, report, at_value=True)
        elif name in taken and not any(name in facts.mandatory_arguments(rule, operation) for operation in bound):
            message = f"{shown(name)} has a default, which counts as given: constrain its value instead"
            report.warning(path, "rule-without-effect", message)


def check_together(rules: Sequence[tuple[ToolRule, ToolFacts, RawPath]], report: Report) -> None:
    """Report constraints by several rules that no call could meet together, and a field that must and must not be
    given.

    Values that clash are reported at the later rule.
    """
    before: dict[tuple[str, str], list[tuple[ToolRule, Schema]]] = {}
    for rule, facts, place in rules:
        for index, name in enumerate(_demands(rule)):
            asking = [operation for operation in facts.operations if name in facts.mandatory_arguments(rule, operation)]
            others = (held for held, of, _ in rules if of.name == facts.name and is_off(_fields(held).get(name)))
            if any(other.binds(operation.name) for other in islice(others, MOST_COMPARED) for operation in asking):
                message = (
                    f"{shown(name)} must be given here and is `false` by a rule, so no call under both could be made"
                )
                report.error((*place, "required", index), "no-value-left", message)
        for name, schema in _fields(rule).items():
            if is_off(schema) or not _is_sound(schema):
                continue
            others, closed = before.setdefault((facts.name, name), []), close_constraint(schema)
            for other, held in others[:MOST_COMPARED]:
                both = [operation for operation in _bound(rule, facts) if other.binds(operation.name)]
                own = _own(facts, both, name) if both else []
                fit = not any(is_empty([said, one]) for said in own for one in (closed, held))
                if own and fit and all(is_empty([said, closed, held]) for said in own):
                    message = f"together with another rule's constraint no value of {shown(name)} is left"
                    report.error((*place, name), "no-value-left", message)
                    break
            others.append((rule, closed))


def _report_unknown(
    facts: ToolFacts, name: str, taken: Set[str], path: RawPath, report: Report, *, at_value: bool
) -> None:
    lacks = f"no operation of `{facts.name}` under this rule takes" if facts.has_operations else f"`{facts.name}` lacks"
    near = report.near(name, taken)
    report.error(path, "unknown-field", f"{lacks} {shown(name)}", near=near, at_value=at_value)


def warn_open(rules: Sequence[tuple[ToolRule, ToolFacts, RawPath]], report: Report) -> None:
    """Warn about arguments of an operation that stay free beside a pinned one: copies of a mail, or what a deletion is
    about.
    """
    by_tool: dict[str, list[tuple[ToolRule, ToolFacts, RawPath]]] = {}
    for row in rules:
        by_tool.setdefault(row[1].name, []).append(row)
    for held in by_tool.values():
        facts, place = held[-1][1:]
        said: dict[str, None] = {}
        for operation in facts.operations:
            pinned = {name for rule, *_ in held if rule.binds(operation.name) for name in _fields(rule)}
            left = set(operation.parameters) - pinned
            pinned.intersection_update(operation.parameters)
            if pinned & ADDRESSEES:
                said |= dict.fromkeys(sorted(left & COPIES))
            words = re.split(r"[^a-z]+", (operation.name or facts.name).lower())
            if pinned and (Action.DELETE in operation.actions or not DELETIONS.isdisjoint(words)):
                said |= dict.fromkeys(sorted(name for name in left if name == "id" or name.endswith("_id")))
        if said:
            message = f"beside what is pinned here calls of `{facts.name}` may give any {', '.join(map(shown, said))}"
            report.warning(place, "argument-unpinned", message)


def _check_field(
    facts: ToolFacts, bound: list[OperationFacts], name: str, schema: JsonValue, path: RawPath, report: Report
) -> None:
    if not _is_sound(schema):
        return
    must_lack = is_off(schema)
    faults = [] if must_lack else list(contradictions(_own(facts, bound, name), close_constraint(schema)))
    if facts.selection is not None and not any(found.code != "unknown-value" for found in faults):
        refused = facts.selection.refused(name, schema)
        if refused and refused.issuperset(operation.name for operation in bound):
            report.error(path, "no-value-left", f"this leaves no operation of `{facts.name}`")
            return
    if must_lack and all(name in operation.required for operation in bound):
        report.error(path, "no-value-left", f"`{facts.name}` needs {shown(name)}: no call could be made")
    for found in faults:
        at = (*path, *found.pointer)
        message = f"{shown(name)} of `{facts.name}`: {found.message}"
        if found.code == "unknown-value":
            report.warning(at, found.code, message, near=found.near, at_value=True)
        else:
            report.error(at, found.code, message, near=found.near, at_value=not found.at_key)


def _is_sound(schema: JsonValue) -> bool:
    return isinstance(schema, bool) or not faults_of(canonical_json(schema))


def _own(facts: ToolFacts, bound: list[OperationFacts], name: str) -> list[JsonValue]:
    """The tool's own schemas of the field, by operation; equal ones once."""
    own = [operation.schemas[name] for operation in bound if name in operation.schemas]
    if not own and facts.selection is not None:
        own = [facts.selection.declared(name)]
    return [schema for at, schema in enumerate(own) if schema not in own[:at]]


def _bound(rule: ToolRule, facts: ToolFacts) -> list[OperationFacts]:
    return [operation for operation in facts.operations if rule.binds(operation.name)]


def _demands(rule: ToolRule) -> tuple[str, ...]:
    return rule.rule_type.required if isinstance(rule.rule_type, ArgumentConstraints) else ()


def _fields(rule: ToolRule) -> Mapping[str, JsonValue]:
    return rule.rule_type.fields if isinstance(rule.rule_type, ArgumentConstraints) else {}


def plain_kind(kind: RuleKind, *, adjacent: bool = False) -> object:
    """The value of ``rule_type``; ``adjacent``: as Pattern reads it, ``{ type, value }``."""
    name, payload = type(kind).__name__, kind.plain()
    if adjacent:
        return {"type": name} if payload is None else {"type": name, "value": payload}
    return name if payload is None else {name: payload}


class ToolRuleTable(Table, of=ToolRule):
    """A row of ``tool_rules`` or ``required_tools``."""

    tool_name: Id = Field(description="The tool that the rule is about: a name, `name@major`, or `*` for every tool")
    rule_type: Annotated[RuleKind, Form(kind_shape, None, plain_kind)] = Field(
        description="The kind of the rule with its value, such as `{ MaxCalls = 3 }`"
    )
    conditions: tuple[Name, ...] = Field(
        (), description="`operation:NAME`: only for these operations; for some kinds the names of other tools"
    )
    priority: int = Field(
        DEFAULT_PRIORITY,
        ge=0,
        le=MAX_PRIORITY,
        description="The order of reports, higher first; decisions do not depend on it",
    )
    rule_id: Id | None = Field(None, alias="id", description="Its own name in reports and the log")
    metadata: JsonTable | None = Field(None, description="Data for tools of your own; decisions do not depend on it")


def plain_rule(rule: ToolRule, *, adjacent: bool = False) -> Plain:
    """The rule's table: ``tool_name``, ``rule_type`` and all that differs from the defaults."""
    return plain(rule) | ({"rule_type": plain_kind(rule.rule_type, adjacent=True)} if adjacent else {})


Listed = tuple[str, ...] | None


def read_rules(rows: list[Row], names: Names, listed: Listed) -> tuple[ToolRule, ...]:
    """Read the rules of one agent whose list of tools is ``listed``; a faulty rule is reported and left out."""
    seen: dict[str, int] = {}
    found: list[ToolRule] = []
    constraints: list[tuple[ToolRule, ToolFacts, RawPath]] = []
    for number, row in enumerate(rows, 1):
        rule = read_rule(row, names, listed)
        if rule is None:
            continue
        found.append(rule)
        if (facts := _constraint_target(rule, names, listed)) is not None:
            constraints.append((rule, facts, written_payload(row)[1]))
        if rule.rule_id is not None and seen.setdefault(rule.rule_id, number) != number:
            row.fault("id", "duplicate", f"rule {seen[rule.rule_id]} has the id {shown(rule.rule_id)} too")
    if constraints:
        check_together(constraints, rows[0].report)
    if constraints and rows[0].report.first_error is None:
        warn_open(constraints, rows[0].report)
    return tuple(found)


def read_required_tools(rows: list[Row], names: Names) -> tuple[ToolRule, ...]:
    """Read the rules of one source, which limit the calls to it; kinds that limit a whole session are errors."""
    for row in rows:
        kind = RULE_KINDS.get(name := kind_name(row.raw.get("rule_type")) or "")
        if kind is not None and not kind.fits_source:
            message = (
                f"`{name}` is about a whole session, not about the calls that go to one source: put it at an agent"
            )
            row.report.error(row.at("rule_type"), "not-for-a-source", message)
    return read_rules(rows, names, None)


def read_rule(row: Row, names: Names, listed: Listed) -> ToolRule | None:
    """Read one rule; None after an error."""
    found = read_keys(row, ToolRuleTable, "a tool rule")
    tool_name: str | None = found.get("tool_name")
    if tool_name is not None and tool_name != ANY_TOOL:
        names.tool(tool_name, row.at("tool_name"))
    kind = None
    if "rule_type" in row.raw:
        kind = read_kind(row.raw["rule_type"], row.at("rule_type"), row.report)
    conditions = _conditions(row, names, tool_name, kind, listed)
    metadata = row.table("metadata")
    data = json_table(metadata.raw, metadata.path, row.report) if metadata else None
    if tool_name is None or kind is None:
        return None
    rule = ToolRule(**found, rule_type=kind, conditions=conditions, metadata=data)
    _check_kind(row, names, rule, listed)
    return rule


def _conditions(
    row: Row, names: Names, tool_name: str | None, kind: RuleKind | None, listed: Listed
) -> tuple[str, ...]:
    """Read the conditions as written, and report every fault."""
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
    """Check what the kind itself says about tools, operations and arguments."""
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
            if (facts := _constraint_target(rule, names, listed)) is not None:
                check_constraints(rule, facts, place, row.report)
        case StartConstraint() if rule.tool_name == ANY_TOOL:
            row.fault("tool_name", "bad-value", "`StartConstraint` names the one tool to start with, not `*`")
        case _:
            pass


def _constraint_target(rule: ToolRule, names: Names, listed: Listed) -> ToolFacts | None:
    """The tool whose arguments the rule constrains; None for a rule on every tool, or on an unknown one."""
    if not isinstance(rule.rule_type, ArgumentConstraints) or rule.tool_name == ANY_TOOL:
        return None
    return names.seen(rule.tool_name, listed)


def check_schemas(kind: ArgumentConstraints, path: RawPath, report: Report) -> None:
    """Report the faults of the constraints at ``path``; constraints that are no schema were reported by the reader."""
    for name, schema in kind.fields.items():
        if isinstance(schema, dict | bool):
            check_json_schema(schema, (*path, name), report)
