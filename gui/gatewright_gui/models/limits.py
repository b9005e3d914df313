"""The limits of a tool in a few words, for a column: calls, pauses, consent. It does not know what was used up."""

from gatewright.policy.document import Agent
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import (
    AllowedOperations,
    ContinueLoop,
    Cooldown,
    ExitLoop,
    MaxCalls,
    RequiresConsent,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.toolname import names_tool

OPERATION_PREFIX = "operation:"


def limits_of(agent: Agent, facts: ToolFacts, operation: str | None) -> str:
    """Words for the agent's rules on a tool; with an operation, only those whose conditions name it."""
    words = [
        text
        for rule in agent.tool_rules
        if names_tool(rule.tool_name, facts.name, facts.major) and _concerns(rule, operation)
        if (text := _words(rule))
    ]
    return ", ".join(words)


def _concerns(rule: ToolRule, operation: str | None) -> bool:
    named = {c.removeprefix(OPERATION_PREFIX) for c in rule.conditions if c.startswith(OPERATION_PREFIX)}
    return operation in named if operation is not None else not named


def _words(rule: ToolRule) -> str:
    match rule.rule_type:
        case MaxCalls(calls):
            return f"max {calls:,}"
        case Cooldown(seconds):
            return f"every {seconds:g} s"
        case StartConstraint():
            return "first"
        case ContinueLoop():
            return "goes on"
        case ExitLoop():
            return "ends"
        case RequiresConsent():
            return "consent"
        case AllowedOperations():
            return ""
        case _:
            return rule.kind
