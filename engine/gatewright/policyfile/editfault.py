"""What of an edited agent could not be loaded again: what its rules and capabilities say of themselves.

Names of tools and operations are the edit's own business; only what changed is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.report import Report
from gatewright.policy.kinds.capability import check_capabilities
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policyfile.readschema import check_schemas

if TYPE_CHECKING:
    from gatewright.policy.document import Agent
    from gatewright.policy.rule import ToolRule


def agent_fault(before: Agent | None, after: Agent) -> str | None:
    """The first fault of what ``after`` has and ``before`` has not; None when it can be written and read."""
    known = {id(rule) for rule in before.tool_rules} if before else set[int]()
    for rule in after.tool_rules:
        if id(rule) not in known and (fault := rule_fault(rule)):
            return fault
    if before is not None and before.capabilities == after.capabilities:
        return None
    report = Report()
    check_capabilities([(capability, ()) for capability in after.capabilities], report)
    return report.first_error[1] if report.first_error else None


def rule_fault(rule: ToolRule) -> str | None:
    """Why the rule could not be read from a file, with the place inside its value; None when it could."""
    report = Report()
    rule.check(report)
    if report.first_error is None and isinstance(rule.rule_type, ArgumentConstraints):
        check_schemas(rule.rule_type, ("rule_type", rule.kind), report)
    if report.first_error is None:
        return None
    (key, *inside), message = report.first_error
    place = ".".join(map(str, inside[1:]))
    return f"`{place}`: {message}" if key == "rule_type" and len(inside) > 2 else message
