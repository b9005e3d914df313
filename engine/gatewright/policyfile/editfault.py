"""What of an edited policy could not be loaded again; only what changed is looked at.

Of agents what their rules and capabilities say of themselves (names of tools and operations are the edit's own
business); of policy rules, defaults, ``[workspace]`` and compositions all that a reader of the file would find in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gatewright.base.jsonvalue import nulls_in
from gatewright.base.problem import Severity
from gatewright.base.report import RawPath, Report
from gatewright.base.row import Row
from gatewright.policy.composition import ORIGIN
from gatewright.policy.document import Agent, Catalog, Policy
from gatewright.policy.kinds.capability import check_capabilities
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policyfile.known import KnownTools
from gatewright.policyfile.names import Names
from gatewright.policyfile.plain import (
    plain_catalog,
    plain_composition,
    plain_defaults,
    plain_policy_rule,
    plain_workspace,
)
from gatewright.policyfile.readagent import read_defaults
from gatewright.policyfile.readcatalog import read_catalogs
from gatewright.policyfile.readcomposition import check_steps, read_compositions
from gatewright.policyfile.readpolicy import read_policy_rule
from gatewright.policyfile.readschema import check_schemas
from gatewright.policyfile.readworkspace import read_workspace

Fault = tuple[RawPath, str]
"""Where in the file something is wrong, e.g. ``("policy", "rules", 0, "when")``, and what."""


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


def catalog_fault(catalog: Catalog) -> str | None:
    """Why the catalog could not be read from a file; None when it could."""
    report = Report()
    read_catalogs([Row(plain_catalog(catalog), ("catalogs", 0), report)], None)
    return report.first_error[1] if report.first_error else None


def policy_faults(before: Policy, after: Policy, known: Callable[[], KnownTools]) -> tuple[Fault, ...]:
    """Faults of the rules, the defaults, the workspace and the compositions of ``after``.

    What ``before`` says as well is not looked at.

    ``known``: the tools that it may name, asked for if needed.
    """
    report, plain = Report(), plain_workspace(after)
    if plain != plain_workspace(before):
        read_workspace(Row(plain, ("workspace",), report), after.agents)
    if after.compositions is not before.compositions:
        tools = _compositions(after, known(), report)
        known = lambda: tools  # noqa: E731
    if after.rules is not before.rules or after.defaults is not before.defaults:
        names, read = Names(known(), report), {id(rule) for rule in before.rules}
        named = [rule.name for rule in after.rules]
        for index, rule in enumerate(after.rules):
            if id(rule) not in read:
                row = _row(plain_policy_rule(rule), ("policy", "rules", index), report)
                read_policy_rule(row, names, after.agents)
                if named.count(rule.name) > 1:
                    row.fault("name", "duplicate", f"a policy rule is named `{rule.name}` already")
        if after.defaults is not before.defaults:
            read_defaults(Row(plain_defaults(after.defaults), ("defaults",), report), names)
    return tuple((found.path, found.message) for found in report.findings if found.severity is Severity.ERROR)


def _compositions(after: Policy, there: KnownTools, report: Report) -> KnownTools:
    """The tools that there are with those of the compositions, in which all that is wrong is reported."""
    others = replace(there, facts=tuple(facts for facts in there.facts if facts.origin != ORIGIN))
    rows = [_row(plain_composition(one), ("compositions", at), report) for at, one in enumerate(after.compositions)]
    found, known = read_compositions(rows, others)
    known = known or others
    check_steps(rows, found, Names(known, report))
    return known


def _row(plain: Mapping[str, object], path: RawPath, report: Report) -> Row:
    """A row as a file would have it; null, which no file can hold, is reported."""
    for place in nulls_in(dict(plain)):
        report.error((*path, *place), "bad-value", "a policy file cannot hold null")
    return Row(dict(plain), path, report)
