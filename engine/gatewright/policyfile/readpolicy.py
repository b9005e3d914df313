"""Reading ``[policy]`` and ``[[policy.rules]]``: tables to values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.report import shown
from gatewright.base.row import Row, json_table
from gatewright.base.shape import JSON_SCHEMA, NAME, TEXT, Shape, one_of, several, table, told
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.names import Names
from gatewright.policyfile.readagent import VERDICTS
from gatewright.policyfile.readschema import check_json_schema

RULE_KEYS: dict[str, Shape] = {
    "name": told(NAME, "What reports, refusals and the log call it"),
    "effect": told(one_of(VERDICTS), "What becomes of the calls that it matches; the strictest rule wins"),
    "agents": told(several(NAME, 1), "Whose calls; absent: everybody's"),
    "tools": told(several(NAME, 1), "Of which tools; absent: of all"),
    "operations": told(several(NAME, 1), "Of which operations; absent: of all"),
    "when": told(JSON_SCHEMA, "A JSON Schema that the canonical arguments must fit; absent: always"),
    "message": told(TEXT, "What the model is told when it denies"),
}
POLICY_KEYS: dict[str, Shape] = {
    "default": told(one_of(VERDICTS), "What holds for calls that no rule matches", str(Verdict.ALLOW)),
    "rules": told(several(table(RULE_KEYS, "name", "effect")), "Rules for calls of any agent", []),
}
_WHAT = "a policy rule"


def read_policy_rules(row: Row | None, names: Names, agents: Collection[str]) -> tuple[Verdict, tuple[PolicyRule, ...]]:
    """The default and the rules; a rule that cannot be built is left out (an error)."""
    if row is None:
        return Verdict.ALLOW, ()
    row.only(POLICY_KEYS, "`[policy]`")
    seen: dict[str, int] = {}
    found: list[PolicyRule] = []
    for number, entry in enumerate(row.rows("rules"), 1):
        rule = read_policy_rule(entry, names, agents)
        if rule is None:
            continue
        found.append(rule)
        if seen.setdefault(rule.name, number) != number:
            entry.fault("name", "duplicate", f"policy rule {seen[rule.name]} is named {shown(rule.name)} too")
    return row.choice("default", VERDICTS) or Verdict.ALLOW, tuple(found)


def read_policy_rule(row: Row, names: Names, agents: Collection[str]) -> PolicyRule | None:
    """One rule; None where it cannot be built (an error)."""
    row.only(RULE_KEYS, _WHAT)
    name = row.text("name", filled=True) if row.require("name", _WHAT) else None
    effect = row.choice("effect", VERDICTS) if row.require("effect", _WHAT) else None
    who = _agents(row, agents, names)
    tools, facts = _tools(row, names)
    operations = _operations(row, names, facts)
    rule = (who, tools, operations, _when(row), row.text("message"))
    return None if name is None or effect is None else PolicyRule(name, effect, *rule)


def _words(row: Row, key: str) -> list[tuple[int, str]] | None:
    """A list of different texts, None when absent; an empty one is an error, as it matches nothing."""
    if key not in row.raw:
        return None
    found = row.texts(key)
    if row.raw[key] == []:
        row.fault(key, "bad-value", f"an empty `{key}` matches nothing: leave it out to mean all of them")
    seen: set[str] = set()
    for index, word in found:
        if word in seen:
            row.report.error(row.at(key, index), "duplicate", f"{shown(word)} is listed already")
        seen.add(word)
    return found


def _agents(row: Row, known: Collection[str], names: Names) -> tuple[str, ...] | None:
    found = _words(row, "agents")
    for index, agent_id in found or ():
        if agent_id not in known and names.known is not None:
            near = row.report.near(agent_id, known)
            row.report.error(
                row.at("agents", index), "unknown-agent", f"no agent is named {shown(agent_id)}", near=near
            )
    return None if found is None else tuple(word for _, word in found)


def _tools(row: Row, names: Names) -> tuple[tuple[str, ...] | None, tuple[ToolFacts, ...]]:
    """The names as written, and the tools that the rule may match."""
    found = _words(row, "tools")
    if found is None:
        return None, names.known.facts if names.known else ()
    facts: list[ToolFacts] = []
    for index, written in found:
        if written == ANY_TOOL:
            message = "`*` is no tool: to mean every tool leave `tools` out"
            row.report.error(row.at("tools", index), "bad-value", message)
        else:
            facts += names.tool(written, row.at("tools", index))
    return tuple(word for _, word in found), tuple(facts)


def _operations(row: Row, names: Names, facts: tuple[ToolFacts, ...]) -> tuple[str, ...] | None:
    found = _words(row, "operations")
    where = "none of the tools of the rule" if "tools" in row.raw else "no tool"
    if facts:
        for index, operation in found or ():
            names.operation_of_any(facts, operation, row.at("operations", index), where)
    return None if found is None else tuple(word for _, word in found)


def _when(row: Row) -> Mapping[str, JsonValue] | bool | None:
    value = row.raw.get("when")
    if value is None:
        return None
    if isinstance(value, bool):
        if not value:
            message = "`when = false` fits no call: the rule has no effect"
            row.report.warning(row.at("when"), "rule-without-effect", message)
        return value
    table = row.table("when")
    schema = json_table(table.raw, table.path, row.report) if table else None
    if schema is not None:
        check_json_schema(schema, row.at("when"), row.report)
    return schema
