"""The rules on a tool or an operation as rows, and each kind of rule in words: its title, short, in a sentence.

What a tick says (AllowedOperations) is no limit, nor is what goes without saying.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import assert_never

from gatewright.workspace.api import (
    ANY_TOOL,
    OPERATION_CONDITION,
    Address,
    Agent,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    JsonValue,
    MaxCalls,
    Needed,
    Periodic,
    Policy,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    RuleKind,
    RulePosition,
    Source,
    StartConstraint,
    ToolFacts,
    ToolRule,
    duration_words,
    frozen,
    names_tool,
    parse_duration_words,
    plural,
    rate_words,
)
from gatewright_gui.session.condition import constraint_words

MAX_CALLS = 1_000_000
RATE_EXAMPLE = "30 per 1 min"
_RATE = re.compile(r"\s*(\d[\d,]*)\s*(?:calls?)?\s*(?:per|/|in|every)\s*(.+)", re.IGNORECASE)


# rules in words


@frozen
class RuleWords:
    """A rule in one or two words, in a column, and in a sentence; empty where nothing more is to be said."""

    title: str
    short: str
    sentence: str


def words_of(rule: ToolRule) -> RuleWords:
    """What a rule means for the calls of its tool, for the operator."""
    kind = rule.rule_type
    every, either = _others(rule, " and "), _others(rule, " or ")
    match kind:
        case MaxCalls(calls):
            return RuleWords("Max calls", f"max {calls:,}", f"at most {calls:,} calls in a session")
        case Cooldown(seconds):
            pause = duration_words(seconds)
            return RuleWords("Pause", f"pause {pause}", f"calls start at least {pause} apart")
        case RateLimit(calls, per_s):
            rate = f"{calls:,} per {duration_words(per_s)}"
            return RuleWords("Rate", rate, f"calls: {rate_words(calls, per_s)}, over all sessions")
        case Periodic(seconds):
            time = duration_words(seconds)
            said = f"the model is reminded when nothing of it succeeded for {time}"
            return RuleWords("Reminder", f"due every {time}", said)
        case StartConstraint():
            return RuleWords("Comes first", "first", "has to succeed before any other tool")
        case RequiresPrecedingTools():
            return RuleWords("Comes after", f"after {every}", f"only once {every} succeeded")
        case RequiresFollowingTools():
            return RuleWords("Comes before", f"before {either}", f"not any more once {either} succeeded")
        case ExclusiveGroups(groups):
            named = [f"one of {', '.join(group)}" for group in groups]
            said = "; ".join(f"only {one} in a session" for one in named)
            return RuleWords("One of a group", "; ".join(named), said)
        case RequiredBeforeExit():
            return RuleWords("Before the end", "before the end", "has to succeed before the loop may end")
        case RequiredBeforeExitIf():
            said = f"has to succeed before the loop may end, if {every} did"
            return RuleWords("Before the end", f"before the end, if {every}", said)
        case RequiresConsent(scope):
            return RuleWords("Consent", f"consent {scope}" if scope else "consent", "")
        case ArgumentConstraints(fields, required):
            told = {name: constraint_words(schema) for name, schema in fields.items()}
            folders = [f"{name} {words}" for name, words in told.items() if "only in " in words]
            others = [name for name, words in told.items() if "only in " not in words]
            parts = (("limits", others), ("asks for", required))
            given = f"only with {', '.join(required)} given" if required else ""
            fit = f"only if the values of {', '.join(others)} fit what the rule says" if others else ""
            return RuleWords(
                "Arguments",
                ", ".join((*folders, *(f"{words} {', '.join(names)}" for words, names in parts if names))),
                ", ".join(text for text in (given, *folders, fit) if text),
            )
        case ContinueLoop():
            return RuleWords("Goes on", "loop continues", "after a successful call the loop continues")
        case ExitLoop():
            return RuleWords("Ends the loop", "ends", "a successful call ends the loop")
        case Needed():
            return RuleWords("Needed", "needed", "a source needs it")
        case AllowedOperations():
            return RuleWords("Operations", "", "")
        case _:
            assert_never(kind)


def _others(rule: ToolRule, word: str) -> str:
    """The tools and operations that the conditions name, but for the operations that the rule is for."""
    return word.join(text for text in rule.conditions if not text.startswith(OPERATION_CONDITION))


# rules where they stand


@frozen
class PlacedRule:
    """A rule where it stands; `address` None: the tool's own. `source_id`: it binds calls that go to that source."""

    rule: ToolRule
    address: Address | None
    source_id: str | None = None

    @property
    def is_limit(self) -> bool:
        """Whether it is neither a box nor what goes without saying."""
        kind = self.rule.rule_type
        without_saying = self.address is None and isinstance(kind, ContinueLoop)
        return not without_saying and not isinstance(kind, AllowedOperations)


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
    placed = [one for one in rules_on(agent, sources, facts) if one.is_limit and _concerns(one.rule, operation)]
    if len(placed) > 1:
        placed.sort(key=lambda one: isinstance(one.rule.rule_type, _LAST))
    words = ((words_of(one.rule).short, one.source_id) for one in placed)
    return ", ".join([f"{text} at {source_id}" if source_id else text for text, source_id in words if text])


_LAST = (ContinueLoop, ExitLoop, Needed)


def _concerns(rule: ToolRule, operation: str | None) -> bool:
    named = rule.operations
    return named is None if operation is None else named is not None and operation in named


def sentence(placed: PlacedRule) -> str:
    """What a rule means, with the calls that it is for; empty where the reasons say it already."""
    text = words_of(placed.rule).sentence
    if not text:
        return ""
    named = sorted(placed.rule.operations or ())
    only = f"only {', '.join(named)}: " if named else ""
    where = f"for calls that go to {placed.source_id}: " if placed.source_id else ""
    return f"{where}{only}{text}"


# rows


class Owner(StrEnum):
    """Whose rule it is; only the agent's own on this tool is edited here."""

    OWN = "own"
    EVERYWHERE = "everywhere"
    SOURCE = "source"
    TOOL = "tool"


@frozen
class LimitRow:
    """One rule, or what it says of one argument (`field`). `standing`: where it can be edited; None: inherited or new.

    `operations` None: all of them. `address`: where it stands; None: the tool's own, or not written yet.
    """

    kind: RuleKind
    operations: frozenset[str] | None
    owner: Owner
    field: str | None = None
    address: Address | None = None
    standing: RulePosition | None = None
    source_id: str = ""
    has_operations: bool = True
    is_draft: bool = False
    text: str = ""

    @property
    def schema(self) -> JsonValue:
        """The schema of the argument; None where the rule says nothing of its value, or is of another kind."""
        kind = self.kind
        return kind.fields.get(self.field) if self.field and isinstance(kind, ArgumentConstraints) else None

    @property
    def is_required(self) -> bool:
        """Whether the rule makes calls give the argument."""
        return isinstance(self.kind, ArgumentConstraints) and self.field in self.kind.required

    @property
    def has_value(self) -> bool:
        """Whether its value can be edited in place."""
        return self.is_own and isinstance(self.kind, MaxCalls | Cooldown | RateLimit | Periodic | RequiresConsent)

    @property
    def is_own(self) -> bool:
        """Whether it can be edited here."""
        return self.standing is not None or self.is_draft

    @property
    def key(self) -> tuple[object, ...]:
        """What stays the same when only the value changes; a new row has the key of the rule that it becomes."""
        return (self.owner, self.source_id, type(self.kind).__name__, self.field, self.operations)

    @property
    def title(self) -> str:
        """What kind of rule it is, in one or two words."""
        return f"Argument {self.field}" if self.field else words_of(ToolRule("", self.kind)).title

    @property
    def holds_for(self) -> str:
        """For which calls it holds."""
        if self.operations is not None:
            return f"only {', '.join(sorted(self.operations))}"
        return "all operations" if self.has_operations else "every call"

    @property
    def owner_words(self) -> str:
        """Whose rule it is, where it is not edited here; empty for the agent's own on this tool."""
        match self.owner:
            case Owner.OWN:
                return ""
            case Owner.EVERYWHERE:
                return "every tool"
            case Owner.SOURCE:
                return f"source {self.source_id}"
            case Owner.TOOL:
                return "the tool's own"


def limit_rows(policy: Policy, agent: Agent, facts: ToolFacts, operation: str | None) -> tuple[LimitRow, ...]:
    """The rules that bind a tool or one operation of it: the agent's own first, then what is inherited."""
    found = [
        row
        for placed in rules_on(agent, policy.sources_of(agent), facts)
        if placed.is_limit and (operation is None or placed.rule.binds(operation))
        for row in _rows_of(placed, agent, facts)
    ]
    order = tuple(Owner)
    return tuple(sorted(found, key=lambda row: order.index(row.owner)))


def _rows_of(placed: PlacedRule, agent: Agent, facts: ToolFacts) -> Iterator[LimitRow]:
    rule, owner = placed.rule, _owner(placed)
    index = placed.address[-1] if placed.address else None
    own = owner is Owner.OWN and isinstance(index, int)
    standing = RulePosition(agent.agent_id, index, rule) if own and isinstance(index, int) else None
    fields: tuple[str | None, ...] = (None,)
    if isinstance(rule.rule_type, ArgumentConstraints):
        fields = rule.rule_type.arguments
    for field in fields:
        yield LimitRow(
            rule.rule_type,
            rule.operations,
            owner,
            field,
            placed.address,
            standing,
            placed.source_id or "",
            facts.has_operations,
            text=words_of(rule).sentence,
        )


def _owner(placed: PlacedRule) -> Owner:
    if placed.address is None:
        return Owner.TOOL
    if placed.source_id is not None:
        return Owner.SOURCE
    return Owner.EVERYWHERE if placed.rule.tool_name == ANY_TOOL else Owner.OWN


# values as text that one reads and types


def value_of(row: LimitRow) -> str:
    """Its value, or what it says, in words."""
    kind = row.kind
    match kind:
        case MaxCalls(calls):
            return f"{plural(calls, 'call')} in a session"
        case Cooldown():
            return f"{limit_text(kind)} from start to start"
        case RateLimit():
            return f"{limit_text(kind)}, over all sessions"
        case Periodic():
            return f"every {limit_text(kind)}"
        case RequiresConsent(scope):
            return f"scope {scope}" if scope else "asks, unless a grant covers it"
        case ArgumentConstraints():
            return constraint_words(row.schema, required=row.is_required)
        case _:
            return row.text


def limit_text(kind: RuleKind) -> str:
    """The value as it can be typed again; empty for a kind without one."""
    match kind:
        case MaxCalls(calls):
            return str(calls)
        case Cooldown(seconds) | Periodic(seconds):
            return duration_words(seconds)
        case RateLimit(calls, per_s):
            return f"{calls:,} per {duration_words(per_s)}"
        case RequiresConsent(scope):
            return scope or ""
        case _:
            return ""


def read_limit(kind: RuleKind, text: str) -> RuleKind:
    """A limit of the same kind with the value that was typed. Raises ValueError saying what is accepted."""
    match kind:
        case MaxCalls():
            return MaxCalls(_calls(text))
        case Cooldown() | Periodic():
            return type(kind)(_seconds(text))
        case RateLimit():
            found = _RATE.fullmatch(text)
            if found is None:
                raise ValueError(f"a rate is calls per time, such as `{RATE_EXAMPLE}`")
            per = found[2] if found[2][0].isdigit() else f"1 {found[2]}"  # `30 per min`
            return RateLimit(_calls(found[1]), _seconds(per))
        case RequiresConsent():
            return RequiresConsent(text.strip() or None)
        case _:
            raise ValueError("this rule has no value")


def limit_fault(kind: RuleKind, text: str) -> str:
    """What is wrong with a typed value; empty when nothing is."""
    try:
        read_limit(kind, text)
    except ValueError as error:
        return str(error)
    return ""


def _seconds(text: str) -> float:
    seconds = parse_duration_words(text)
    if seconds <= 0:
        raise ValueError("a time must be longer than nothing")
    return seconds


def _calls(text: str) -> int:
    plain = text.replace(",", "").strip()
    if not plain.isdecimal() or not 1 <= int(plain) <= MAX_CALLS:
        raise ValueError(f"calls are a whole number from 1 to {MAX_CALLS:,}")
    return int(plain)
