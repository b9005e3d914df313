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
    AfterOutside,
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
    Verdict,
    duration_words,
    frozen,
    names_tool,
    parse_duration_words,
    rate_words,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.condition import constraint_words, field_terms

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
    """The meaning of a rule for the calls of its tool, for the operator."""
    kind = rule.rule_type
    every, either = _others(rule, tr(" and ")), _others(rule, tr(" or "))
    match kind:
        case MaxCalls(calls):
            return RuleWords(
                tr("Max calls"),
                tr("max {count:,}", count=calls),
                tr("at most {count:,} calls in a session", count=calls),
            )
        case Cooldown(seconds):
            pause = duration_words(seconds)
            return RuleWords(
                tr("Pause"), tr("pause {time}", time=pause), tr("calls start at least {time} apart", time=pause)
            )
        case RateLimit(calls, per_s):
            rate = f"{calls:,} per {duration_words(per_s)}"
            return RuleWords(tr("Rate"), rate, tr("calls: {rate}, over all sessions", rate=rate_words(calls, per_s)))
        case Periodic(seconds):
            time = duration_words(seconds)
            said = tr("the model is reminded when nothing of it succeeded for {time}", time=time)
            return RuleWords(tr("Reminder"), tr("due every {time}", time=time), said)
        case StartConstraint():
            return RuleWords(tr("Comes first"), tr("first"), tr("has to succeed before any other tool"))
        case RequiresPrecedingTools():
            return RuleWords(
                tr("Comes after"), tr("after {tools}", tools=every), tr("only once {tools} succeeded", tools=every)
            )
        case RequiresFollowingTools():
            return RuleWords(
                tr("Comes before"),
                tr("before {tools}", tools=either),
                tr("denied once {tools} has succeeded", tools=either),
            )
        case ExclusiveGroups(groups):
            named = [tr("one of {tools}", tools=", ".join(group)) for group in groups]
            said = "; ".join(tr("only {one_of_tools} in a session", one_of_tools=one) for one in named)
            return RuleWords(tr("One of a group"), "; ".join(named), said)
        case RequiredBeforeExit():
            return RuleWords(tr("Before the end"), tr("before the end"), tr("has to succeed before the loop may end"))
        case RequiredBeforeExitIf():
            said = tr("has to succeed before the loop may end, if {tools} did", tools=every)
            return RuleWords(tr("Before the end"), tr("before the end, if {tools}", tools=every), said)
        case RequiresConsent(scope):
            asks = tr("asks first for {scope}", scope=scope) if scope else tr("asks first")
            return RuleWords(tr("Asks first"), asks, "")
        case ArgumentConstraints(fields, required):
            told = {name: constraint_words(schema) for name, schema in fields.items()}
            short = {name for name, schema in fields.items() if _names_folder(schema)}
            folders = [f"{name} {words}" for name, words in told.items() if name in short]
            others = [name for name in told if name not in short]
            parts = ((tr("limits"), others), (tr("asks for"), required))
            given = tr("only with {arguments} given", arguments=", ".join(required)) if required else ""
            fit = (
                tr("only if the values of {arguments} fit what the rule says", arguments=", ".join(others))
                if others
                else ""
            )
            return RuleWords(
                tr("Arguments"),
                ", ".join((*folders, *(f"{words} {', '.join(names)}" for words, names in parts if names))),
                ", ".join(text for text in (given, *folders, fit) if text),
            )
        case AfterOutside(effect):
            if effect is Verdict.DENY:
                said = tr("denied once the session got a result from outside")
                return RuleWords(tr("After outside results"), tr("off after outside results"), said)
            said = tr("asks first once the session got a result from outside")
            return RuleWords(tr("After outside results"), tr("asks after outside results"), said)
        case ContinueLoop():
            return RuleWords(tr("Goes on"), tr("keeps its turn"), tr("the agent keeps its turn after this call"))
        case ExitLoop():
            return RuleWords(tr("Ends the loop"), tr("ends"), tr("a successful call ends the loop"))
        case Needed():
            return RuleWords(tr("Needed"), tr("needed"), tr("a source needs it"))
        case AllowedOperations():
            return RuleWords(tr("Operations"), "", "")
        case _:
            assert_never(kind)


def _names_folder(schema: JsonValue) -> bool:
    """Tell whether it says in which folder the value, or each of the list, has to lie: short enough for a column."""
    if isinstance(schema, dict) and isinstance(schema.get("items"), dict):
        return _names_folder(schema["items"])
    return any(term.relation == "in folder" for term in field_terms(schema))


def _others(rule: ToolRule, word: str) -> str:
    """The tools and operations that the conditions name, but for the operations that the rule is for."""
    return word.join(text for text in rule.conditions if not text.startswith(OPERATION_CONDITION))


# rules where they stand


class Owner(StrEnum):
    """Whose rule it is; only the agent's own on this tool is edited here."""

    OWN = "own"
    EVERYWHERE = "everywhere"
    SOURCE = "source"
    TOOL = "tool"


@frozen
class PlacedRule:
    """A rule where it stands; `address` None: the tool's own. `source_id`: it binds calls that go to that source."""

    rule: ToolRule
    address: Address | None
    source_id: str | None = None

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        if self.address is None:
            return Owner.TOOL
        if self.source_id is not None:
            return Owner.SOURCE
        return Owner.EVERYWHERE if self.rule.tool_name == ANY_TOOL else Owner.OWN

    @property
    def is_limit(self) -> bool:
        """Tell whether it is neither a box nor what goes without saying."""
        kind = self.rule.rule_type
        without_saying = self.address is None and isinstance(kind, ContinueLoop)
        return not without_saying and not isinstance(kind, AllowedOperations)


def rules_on(agent: Agent, sources: Iterable[Source], facts: ToolFacts) -> Iterator[PlacedRule]:
    """Every tool rule on a tool: the agent's, those of its sources, the tool's own."""

    def fits(rule: ToolRule) -> bool:
        return names_tool(rule.tool_name, facts)

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
    return ", ".join(
        [
            tr("{limit} at {source}", limit=text, source=source_id) if source_id else text
            for text, source_id in words
            if text
        ]
    )


_LAST = (ContinueLoop, ExitLoop, Needed)


def _concerns(rule: ToolRule, operation: str | None) -> bool:
    named = rule.operations
    return named is None if operation is None else named is not None and operation in named


def sentence(placed: PlacedRule) -> str:
    """The meaning of a rule, with the calls that it is for; empty where the reasons say it already."""
    text = words_of(placed.rule).sentence
    if not text:
        return ""
    named = sorted(placed.rule.operations or ())
    if named:
        text = tr("only {operations}: {sentence}", operations=", ".join(named), sentence=text)
    if placed.source_id:
        text = tr("for calls that go to {source}: {sentence}", source=placed.source_id, sentence=text)
    return text


# rows


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
        """Tell whether the rule makes calls give the argument."""
        return isinstance(self.kind, ArgumentConstraints) and self.field in self.kind.required

    @property
    def has_value(self) -> bool:
        """Tell whether its value can be edited in place."""
        return self.is_own and isinstance(self.kind, MaxCalls | Cooldown | RateLimit | Periodic | RequiresConsent)

    @property
    def is_own(self) -> bool:
        """Tell whether it can be edited here."""
        return self.standing is not None or self.is_draft

    @property
    def key(self) -> tuple[object, ...]:
        """Parts that stay the same when only the value changes; a new row has the key of the rule that it becomes."""
        return (self.owner, self.source_id, type(self.kind).__name__, self.field, self.operations)

    @property
    def title(self) -> str:
        """The kind of rule it is, in one or two words."""
        return tr("Argument {name}", name=self.field) if self.field else words_of(ToolRule("", self.kind)).title

    @property
    def holds_for(self) -> str:
        """For which calls it holds."""
        if self.operations is not None:
            return tr("only {operations}", operations=", ".join(sorted(self.operations)))
        return tr("all operations") if self.has_operations else tr("every call")

    @property
    def owner_words(self) -> str:
        """Whose rule it is, where it is not edited here; empty for the agent's own on this tool."""
        match self.owner:
            case Owner.OWN:
                return ""
            case Owner.EVERYWHERE:
                return tr("every tool")
            case Owner.SOURCE:
                return tr("source {name}", name=self.source_id)
            case Owner.TOOL:
                return tr("the tool's own")


def limit_rows(policy: Policy, agent: Agent, facts: ToolFacts, operation: str | None) -> tuple[LimitRow, ...]:
    """The rules that bind a tool or one operation of it: the agent's own first, then what is inherited."""
    found = [
        row
        for placed in rules_on(agent, policy.sources_of(agent), facts)
        if placed.is_limit and (operation is None or placed.rule.binds(operation))
        for row in _rows_of(placed, agent, facts)
    ]
    return tuple(sorted(found, key=lambda row: tuple(Owner).index(row.owner)))


def _rows_of(placed: PlacedRule, agent: Agent, facts: ToolFacts) -> Iterator[LimitRow]:
    """One row for a rule, or for each argument that it is about."""
    rule, index = placed.rule, placed.address[-1] if placed.address else None
    kind, is_own = rule.rule_type, placed.owner is Owner.OWN
    standing = RulePosition(agent.agent_id, index, rule) if is_own and isinstance(index, int) else None
    for field in kind.arguments if isinstance(kind, ArgumentConstraints) else (None,):
        yield LimitRow(
            kind,
            rule.operations,
            placed.owner,
            field,
            placed.address,
            standing,
            placed.source_id or "",
            facts.has_operations,
            text=words_of(rule).sentence,
        )


# values as text that one reads and types


def value_of(row: LimitRow) -> str:
    """Its value, or what it says, in words."""
    kind = row.kind
    match kind:
        case MaxCalls(calls):
            return tr("{calls} in a session", calls=counted(calls, "call", "calls"))
        case Cooldown():
            return tr("{time} from start to start", time=limit_text(kind))
        case RateLimit():
            return tr("{rate}, over all sessions", rate=limit_text(kind))
        case Periodic():
            return tr("every {time}", time=limit_text(kind))
        case RequiresConsent(scope):
            return tr("consent group {group}", group=scope) if scope else tr("asks, unless a grant covers it")
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
                raise ValueError(tr("a rate is calls per time, such as `{example}`", example=RATE_EXAMPLE))
            per = found[2] if found[2][0].isdigit() else f"1 {found[2]}"  # `30 per min`
            return RateLimit(_calls(found[1]), _seconds(per))
        case RequiresConsent():
            return RequiresConsent(text.strip() or None)
        case _:
            raise ValueError(tr("this rule has no value"))


def limit_fault(kind: RuleKind, text: str) -> str:
    """The fault in a typed value; empty when there is none."""
    try:
        read_limit(kind, text)
    except ValueError as error:
        return str(error)
    return ""


def _seconds(text: str) -> float:
    seconds = parse_duration_words(text)
    if seconds <= 0:
        raise ValueError(tr("a time must be longer than nothing"))
    return seconds


def _calls(text: str) -> int:
    plain = text.replace(",", "").strip()
    if not plain.isdecimal() or not 1 <= int(plain) <= MAX_CALLS:
        raise ValueError(tr("calls are a whole number from 1 to {most:,}", most=MAX_CALLS))
    return int(plain)
