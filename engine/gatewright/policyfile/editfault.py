"""What of an edited agent could not be loaded again: values go through the readers of the file before it is written.

Names of tools and operations are the edit's own business; only what changed is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.report import Report
from gatewright.base.row import Row
from gatewright.policy.kinds.capability import check_capabilities
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policyfile.names import Names
from gatewright.policyfile.plain import plain_payload, plain_rule
from gatewright.policyfile.readrule import read_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gatewright.base.jsonvalue import JsonValue
    from gatewright.base.report import RawPath
    from gatewright.policy.document import Agent
    from gatewright.policy.kinds.capability import Capability
    from gatewright.policy.rule import ToolRule


def agent_fault(before: Agent | None, after: Agent) -> str | None:
    """The first fault of what ``after`` has and ``before`` has not; None when it can be written and read."""
    known = {id(rule) for rule in before.tool_rules} if before else set[int]()
    for rule in after.tool_rules:
        if id(rule) not in known and (fault := rule_fault(rule)):
            return fault
    if before is None or before.capabilities != after.capabilities:
        return capability_fault(after.capabilities)
    return None


def rule_fault(rule: ToolRule) -> str | None:
    """Why the rule could not be read from a file, with the place inside its value; None when it could."""
    kind = rule.rule_type
    if isinstance(kind, ArgumentConstraints):
        if kind.required and "required" in kind.fields:
            return "what an argument named `required` may be stands in a rule of its own"
        for name, schema in kind.fields.items():
            if (place := next(_nulls(schema), None)) is not None:
                return f"{_place((name, *place))}: a policy file cannot hold null"
    report = Report()
    read_rule(Row(dict(plain_rule(rule)), (), report), Names(None, report), None)
    return _said(report, ("rule_type", rule.kind) if plain_payload(kind) is not None else ("rule_type",))


def capability_fault(capabilities: Sequence[Capability]) -> str | None:
    """The first fault of an agent's capabilities; None when there is none."""
    report = Report()
    check_capabilities([(capability, ()) for capability in capabilities], report)
    return report.first_error[1] if report.first_error else None


def _said(report: Report, above: RawPath) -> str | None:
    if report.first_error is None:
        return None
    path, message = report.first_error
    inside = path[len(above) :] if path[: len(above)] == above else ()
    return f"{_place(inside)}: {message}" if len(inside) > 1 else message


def _place(path: RawPath) -> str:
    return "`" + ".".join(str(step) for step in path) + "`"


def _nulls(value: JsonValue) -> Iterator[tuple[str | int, ...]]:
    if value is None:
        yield ()
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from ((key, *rest) for rest in _nulls(held))
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from ((index, *rest) for rest in _nulls(held))
