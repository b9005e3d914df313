"""What calls of one operation come to at one file of a source: by its level, and by all that is said of paths alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Policy, Source
from gatewright.policy.permission import Permission, verdict_for
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.reach import level_verdict, source_rules
from gatewright.policy.right import Limit, OperationFacts, OperationRight, ToolFacts, ToolRight
from gatewright.policy.rule import ArgumentConstraints, ToolRule
from gatewright.policy.rulematch import Numbered, rules_for_agent, rules_for_operation, rules_for_tool
from gatewright.policy.verdict import Verdict, strictest

PathCondition = Mapping[str, "JsonValue"]
"""A JSON Schema of the arguments that speaks of nothing but paths in sources."""


def path_condition(limit: Limit, op: OperationFacts) -> PathCondition | None:
    """What the limit asks of the paths of a call; None where it speaks of anything else."""
    match limit:
        case ToolRule(rule_type=ArgumentConstraints(fields, required)):
            condition: PathCondition = {"properties": dict(fields)}
        case PolicyRule(when=Mapping() as when) if when.keys() <= {"properties", "required"}:
            condition, required = when, cast("Sequence[str]", when.get("required", ()))
        case _:
            return None
    spoken = cast("Mapping[str, object]", condition.get("properties", {}))
    return condition if spoken and op.places.issuperset((*spoken, *required)) else None


class PlaceRight:
    """How the calls of one operation of an agent go by the file that they name.

    ``rules``: the policy rules that may match a call of the tool. What goes by other arguments is left out of account.
    """

    def __init__(
        self, policy: Policy, rules: tuple[Numbered, ...], facts: ToolFacts, op: OperationFacts, right: OperationRight
    ) -> None:
        self._facts, self._op, self._right = facts, op, right
        self._default = policy.default
        conditions: list[PathCondition] = []
        self._rules: list[tuple[Verdict, int | None]] = []
        """Effects, each with the number of its condition; None: it always holds."""
        for _, rule in rules_for_operation(rules, op.name):
            if rule.is_unconditional:
                self._rules.append((rule.effect, None))
            elif (condition := path_condition(rule, op)) is not None:
                self._rules.append((rule.effect, len(conditions)))
                conditions.append(condition)
            else:
                self._default = Verdict.ALLOW  # it may match a call with any path
        own = {id(rule): one.source_id for one in policy.file_sources for _, rule in source_rules(one, facts)}
        self._constraints: list[tuple[str | None, int]] = []
        """The source that a constraint is of, None for the agent's and the tool's; the number of its condition."""
        for limit in right.limits:
            if isinstance(limit, ToolRule) and (condition := path_condition(limit, op)) is not None:
                self._constraints.append((own.get(id(limit)), len(conditions)))
                conditions.append(condition)
        self.conditions = tuple(conditions)
        """All that is asked of paths."""

    def verdict(self, source: Source, level: Permission, met: Sequence[bool]) -> Verdict:
        """At a file of the source with that level; ``met``: which of `conditions` its path meets."""
        found = [self._right.verdict, level_verdict(source, self._facts, self._op, level)]
        if not all(met[at] for owner, at in self._constraints if owner in {None, source.source_id}):
            found.append(Verdict.DENY)
        matching = [effect for effect, at in self._rules if at is None or met[at]]
        return strictest(*found, *(matching or (self._default,)))

    def block_verdict(self, level: Permission) -> Verdict:
        """At a block of memory with that level."""
        found = [verdict_for(level, action) for action in self._op.actions]
        matching = [effect for effect, at in self._rules if at is None]
        return strictest(self._right.verdict, *found, *(matching or (self._default,)))


def place_rights(policy: Policy, agent_id: str, tool: ToolRight) -> dict[str, PlaceRight]:
    """Of the operations of a tool that an agent sees and whose calls go by the path or block."""
    facts = tool.facts
    rules = rules_for_tool(rules_for_agent(policy, agent_id), facts.name, facts.major)
    rows = zip(facts.operations, tool.operations, strict=True)
    return {
        op.name: PlaceRight(policy, rules, facts, op, right)
        for op, right in rows
        if (right.by_path or right.by_block) and not right.is_hidden
    }
