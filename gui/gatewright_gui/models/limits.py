"""The limits of a tool in a few words, for a column: calls, pauses, order, consent. It does not know what was used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from gatewright.base.durationwords import duration_words, rate_words
from gatewright.base.problem import Address
from gatewright.policy import rule as kinds
from gatewright.policy.document import Agent, Source
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import OPERATION_CONDITION, ToolRule
from gatewright.policy.toolname import names_tool


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule where it stands; `address` None: the tool's own. `source_id`: it binds calls that go to that source."""

    rule: ToolRule
    address: Address | None
    source_id: str | None = None


def rules_on(agent: Agent, sources: Iterable[Source], facts: ToolFacts) -> Iterator[PlacedRule]:
    """Every tool rule on a tool: the agent's, those of its sources, the tool's own."""

    def fits(rule: ToolRule) -> bool:
        return names_tool(rule.tool_name, facts.name, facts.major)

    for index, rule in enumerate(agent.tool_rules):
        if fits(rule):
            yield PlacedRule(rule, ("agents", agent.agent_id, "tool_rules", index))
    for source in sources:
        for index, rule in enumerate(source.required_tools):
            if fits(rule):
                yield PlacedRule(rule, ("sources", source.source_id, "required_tools", index), source.source_id)
    for rule in facts.tool_rules:
        if fits(rule):
            yield PlacedRule(rule, None)


def limits_of(agent: Agent, facts: ToolFacts, operation: str | None, sources: Iterable[Source] = ()) -> str:
    """Words for the rules on a tool; with an operation, only those whose conditions name it.

    What holds a call back comes first: a column may have no room for more.
    """
    found = [
        placed
        for placed in rules_on(agent, sources, facts)
        if _concerns(placed.rule, operation) and not _goes_without_saying(placed)
    ]
    if len(found) > 1:
        found.sort(key=lambda placed: isinstance(placed.rule.rule_type, _LAST))
    words = ((_words(placed.rule), placed.source_id) for placed in found)
    return ", ".join([f"{text} at {source_id}" if source_id else text for text, source_id in words if text])


_LAST = (kinds.ContinueLoop, kinds.ExitLoop, kinds.Needed)


def _goes_without_saying(placed: PlacedRule) -> bool:
    return placed.address is None and isinstance(placed.rule.rule_type, kinds.ContinueLoop)


def _concerns(rule: ToolRule, operation: str | None) -> bool:
    named = rule.operations
    return named is None if operation is None else named is not None and operation in named


def _words(rule: ToolRule) -> str:
    kind = rule.rule_type
    match kind:
        case kinds.MaxCalls():
            return f"max {kind.calls:,}"
        case kinds.Cooldown():
            return f"pause {duration_words(kind.seconds)}"
        case kinds.RateLimit():
            return f"{kind.calls:,} per {duration_words(kind.per_s)}"
        case kinds.Periodic():
            return f"due every {duration_words(kind.seconds)}"
        case kinds.StartConstraint():
            return "first"
        case kinds.RequiresPrecedingTools():
            return f"after {_named(rule, ' and ')}"
        case kinds.RequiresFollowingTools():
            return f"before {_named(rule, ' or ')}"
        case kinds.ExclusiveGroups():
            return "; ".join(f"one of {', '.join(group)}" for group in kind.groups)
        case kinds.RequiredBeforeExit():
            return "before the end"
        case kinds.RequiredBeforeExitIf():
            return f"before the end, if {_named(rule, ' and ')}"
        case kinds.RequiresConsent():
            return f"consent {kind.scope}" if kind.scope else "consent"
        case kinds.ArgumentConstraints():
            said = (("limits", kind.fields), ("asks for", kind.required))
            return ", ".join(f"{words} {', '.join(names)}" for words, names in said if names)
        case kinds.ContinueLoop():
            return "loop continues"
        case kinds.ExitLoop():
            return "ends"
        case kinds.AllowedOperations():
            return ""
        case kinds.Needed():
            return "needed"
        case _:
            assert_never(kind)


def _named(rule: ToolRule, word: str) -> str:
    return word.join(text for text in rule.conditions if not text.startswith(OPERATION_CONDITION))


def sentence(placed: PlacedRule) -> str:
    """What a rule means for the calls of its tool, for the operator; empty where the reasons say it already."""
    text = _sentence(placed.rule)
    if not text:
        return ""
    named = sorted(placed.rule.operations or ())
    only = f"only {', '.join(named)}: " if named else ""
    where = f"for calls that go to {placed.source_id}: " if placed.source_id else ""
    return f"{where}{only}{text}"


def _sentence(rule: ToolRule) -> str:
    kind = rule.rule_type
    match kind:
        case kinds.MaxCalls():
            return f"at most {kind.calls:,} calls in a session"
        case kinds.Cooldown():
            return f"calls start at least {duration_words(kind.seconds)} apart"
        case kinds.RateLimit():
            return f"calls: {rate_words(kind.calls, kind.per_s)}, over all sessions"
        case kinds.Periodic():
            return f"the model is reminded when nothing of it succeeded for {duration_words(kind.seconds)}"
        case kinds.StartConstraint():
            return "has to succeed before any other tool"
        case kinds.RequiresPrecedingTools():
            return f"only once {_named(rule, ' and ')} succeeded"
        case kinds.RequiresFollowingTools():
            return f"not any more once {_named(rule, ' or ')} succeeded"
        case kinds.ExclusiveGroups():
            return "; ".join(f"only one of {', '.join(group)} in a session" for group in kind.groups)
        case kinds.RequiredBeforeExit():
            return "has to succeed before the loop may end"
        case kinds.RequiredBeforeExitIf():
            return f"has to succeed before the loop may end, if {_named(rule, ' and ')} did"
        case kinds.ArgumentConstraints():
            fit = f"only if the values of {', '.join(kind.fields)} fit what the rule says" if kind.fields else ""
            given = f"only with {', '.join(kind.required)} given" if kind.required else ""
            return ", ".join(text for text in (given, fit) if text)
        case kinds.ExitLoop():
            return "a successful call ends the loop"
        case kinds.Needed():
            return "a source needs it"
        case kinds.ContinueLoop():
            return "after a successful call the loop continues"
        case kinds.RequiresConsent() | kinds.AllowedOperations():
            return ""
        case _:
            assert_never(kind)
