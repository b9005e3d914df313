"""Constraints against the tool that they are on: what cannot mean what it says is an error, before anybody calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import islice

from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.report import RawPath, Report, shown
from gatewright.policy.permission import Action
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policyfile.readschema import faults_of
from gatewright.schema.constraint import closed_constraint
from gatewright.schema.contradiction import contradictions, is_empty, is_off
from gatewright.schema.walk import Schema

MOST_COMPARED = 32
ADDRESSEES = frozenset({"to", "recipient", "recipients"})
COPIES = frozenset({"cc", "bcc"})
DELETIONS = frozenset({"delete", "remove", "drop", "purge", "destroy", "erase", "cancel"})


def check_constraints(rule: ToolRule, facts: ToolFacts, place: RawPath, report: Report) -> None:
    """Report what is wrong with the constraints of ``rule``, which stand at ``place``, on the tool."""
    bound, fields = _bound(rule, facts), _fields(rule)
    carriers = facts.selection.fields if facts.selection is not None else frozenset[str]()
    taken = {name for operation in bound for name in operation.parameters} | carriers
    for name, schema in fields.items():
        path = (*place, name)
        if name in taken:
            _check_field(facts, bound, name, schema, path, report)
        elif taken:
            _report_unknown(facts, name, taken, path, report, at_value=False)
    for index, name in enumerate(_required(rule)):
        path = (*place, "required", index)
        if taken and name not in taken and name not in fields:
            _report_unknown(facts, name, taken, path, report, at_value=True)
        elif name in taken and not any(name in facts.asked_by(rule, operation) for operation in bound):
            message = f"{shown(name)} has a default, which counts as given: constrain its value instead"
            report.warning(path, "rule-without-effect", message)


def check_together(rules: Sequence[tuple[ToolRule, ToolFacts, RawPath]], report: Report) -> None:
    """Report what no call could meet: constraints of a field by several rules, and one that must be given and must not.

    Values that clash stand at the later rule.
    """
    before: dict[tuple[str, str], list[tuple[ToolRule, Schema]]] = {}
    for rule, facts, place in rules:
        for index, name in enumerate(_required(rule)):
            asking = [operation for operation in facts.operations if name in facts.asked_by(rule, operation)]
            others = (held for held, of, _ in rules if of.name == facts.name and is_off(_fields(held).get(name)))
            if any(other.binds(operation.name) for other in islice(others, MOST_COMPARED) for operation in asking):
                message = (
                    f"{shown(name)} must be given here and is `false` by a rule, so no call under both could be made"
                )
                report.error((*place, "required", index), "no-value-left", message)
        for name, schema in _fields(rule).items():
            if is_off(schema) or not _is_sound(schema):
                continue
            others, closed = before.setdefault((facts.name, name), []), closed_constraint(schema)
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
    """Warn of what an operation takes unpinned beside a pin: copies of a mail, and what a deletion is about."""
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
    faults = [] if must_lack else list(contradictions(_own(facts, bound, name), closed_constraint(schema)))
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
    """What the tool itself says of the field, by operation; equal words once."""
    own = [operation.schemas[name] for operation in bound if name in operation.schemas]
    if not own and facts.selection is not None:
        own = [facts.selection.declared(name)]
    return [schema for at, schema in enumerate(own) if schema not in own[:at]]


def _bound(rule: ToolRule, facts: ToolFacts) -> list[OperationFacts]:
    return [operation for operation in facts.operations if rule.binds(operation.name)]


def _required(rule: ToolRule) -> tuple[str, ...]:
    return rule.rule_type.required if isinstance(rule.rule_type, ArgumentConstraints) else ()


def _fields(rule: ToolRule) -> Mapping[str, JsonValue]:
    return rule.rule_type.fields if isinstance(rule.rule_type, ArgumentConstraints) else {}
