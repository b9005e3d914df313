"""What the model is reminded of: shown tools that have not succeeded for as long as a rule allows. It calls nothing."""

from __future__ import annotations

from gatewright.base.durationwords import duration_words
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.rule_test import Due
from gatewright.gate.rulewords import named
from gatewright.gate.session import SessionFacts


def reminders(agent: AgentSnapshot, facts: SessionFacts, now_s: float) -> tuple[str, ...]:
    """One sentence for each tool that is due, most important first; a session that never began is owed nothing."""
    told = (_sentence(agent, one) for one in agent.rules.due if is_due(one, facts, now_s))
    return tuple(dict.fromkeys(text for text in told if text is not None))


def is_due(one: Due, facts: SessionFacts, now_s: float) -> bool:
    """Whether nothing of it succeeded for long enough, counted from the beginning of the session at the earliest."""
    last_s = facts.last_success_s(one.counted.tool, one.counted.operations)
    since_s = last_s if last_s is not None else facts.began_s
    return since_s is not None and now_s - since_s >= one.every_s


def _sentence(agent: AgentSnapshot, one: Due) -> str | None:
    names = named([one.counted], agent)
    return f"{names[0]} is due: it is to be called every {duration_words(one.every_s)}." if names else None
