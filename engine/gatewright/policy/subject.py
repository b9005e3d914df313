"""Which agents and tools a part of a policy is about, as the policy itself says. It finds no fault with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatewright.base.problem import Address, Subject, ToolPart
from gatewright.policy.document import Agent, Policy
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import ANY_TOOL, ToolRule
from gatewright.policy.toolname import split_name


def subject_of(policy: Policy, address: Address) -> Subject:
    """The subject of a finding at that address; of a part that the policy lacks only what the address says."""
    match address:
        case ("agents", str(agent_id), *rest):
            agent = policy.agents.get(agent_id)
            return Subject(address, (agent_id,), _of_agent(agent, rest) if agent is not None else ())
        case ("sources", str(source_id), "required_tools", int(index), *_):
            source = policy.source(source_id)
            rules = source.required_tools if source is not None else ()
            return Subject(address, tools=_of_rule(rules, index))
        case ("policy", "rules", int(index), *rest) if index < len(policy.rules):
            rule = policy.rules[index]
            return Subject(address, rule.agents or (), _of_policy_rule(rule, rest))
        case ("tools", str(written), *_):
            return Subject(address, tools=_parts((written,), None))
        case _:
            return Subject(address)


def _of_agent(agent: Agent, rest: Sequence[str | int]) -> tuple[ToolPart, ...]:
    match rest:
        case ["tool_rules", int(index), *_]:
            return _of_rule(agent.tool_rules, index)
        case ["tools", int(index), *_] if index < len(agent.tools or ()):
            return _parts((agent.tools or ())[index : index + 1], None)
        case _:
            return ()


def _of_rule(rules: Sequence[ToolRule], index: int) -> tuple[ToolPart, ...]:
    if index >= len(rules) or rules[index].tool_name == ANY_TOOL:
        return ()
    return _parts((rules[index].tool_name,), rules[index].operations)


def _of_policy_rule(rule: PolicyRule, rest: Sequence[str | int]) -> tuple[ToolPart, ...]:
    match rest:
        case ["tools", int(index), *_] if index < len(rule.tools or ()):
            return _parts((rule.tools or ())[index : index + 1], None)
        case _:
            return _parts(rule.tools or (), rule.operations)


def _parts(names: Iterable[str], operations: Iterable[str] | None) -> tuple[ToolPart, ...]:
    """Each tool with the operation, where it is one alone."""
    only = list(operations or ())
    operation = only[0] if len(only) == 1 else None
    return tuple(dict.fromkeys((split_name(name)[0], operation) for name in names))
