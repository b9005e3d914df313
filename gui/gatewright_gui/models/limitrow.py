"""The rules on a row of the tree as rows of their own: what each is, its value, for what it holds, whose it is.

It does not know how a row is edited. What a tick says (AllowedOperations) is not here, nor what goes without saying.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gatewright.base.durationwords import duration_words
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.problem import Address
from gatewright.policy import rule as kinds
from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL, RuleKind
from gatewright.policy.ruleedit import Standing
from gatewright_gui.models.constraint import constraint_words
from gatewright_gui.models.limits import PlacedRule, rules_on, sentence


class Owner(StrEnum):
    """Whose rule it is; only the agent's own on this tool is edited here."""

    OWN = "own"
    EVERYWHERE = "everywhere"
    SOURCE = "source"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One rule, or what it says of one argument (`field`). `standing`: where it can be edited; None: inherited or new.

    `operations` None: all of them. `address`: where it stands; None: the tool's own, or not written yet.
    """

    kind: RuleKind
    operations: frozenset[str] | None
    owner: Owner
    field: str | None = None
    address: Address | None = None
    standing: Standing | None = None
    source_id: str = ""
    has_operations: bool = True
    is_draft: bool = False
    text: str = ""

    @property
    def schema(self) -> JsonValue:
        """The schema of the argument; None where the rule says nothing of its value, or is of another kind."""
        kind = self.kind
        return kind.fields.get(self.field) if self.field and isinstance(kind, kinds.ArgumentConstraints) else None

    @property
    def is_required(self) -> bool:
        """Whether the rule makes calls give the argument."""
        return isinstance(self.kind, kinds.ArgumentConstraints) and self.field in self.kind.required

    @property
    def has_value(self) -> bool:
        """Whether its value can be edited in place."""
        return self.is_own and isinstance(
            self.kind, kinds.MaxCalls | kinds.Cooldown | kinds.RateLimit | kinds.Periodic | kinds.RequiresConsent
        )

    @property
    def is_own(self) -> bool:
        """Whether it can be edited here."""
        return self.standing is not None or self.is_draft

    @property
    def key(self) -> tuple[object, ...]:
        """What stays the same when only the value changes; a new row has the key of the rule that it becomes."""
        return (self.owner, self.source_id, type(self.kind).__name__, self.field, self.operations)


def limit_rows(policy: Policy, agent: Agent, facts: ToolFacts, operation: str | None) -> tuple[LimitRow, ...]:
    """The rules that bind a tool or one operation of it: the agent's own first, then what is inherited."""
    found = list(_rows(policy, agent, facts, operation))
    order = tuple(Owner)
    return tuple(sorted(found, key=lambda row: order.index(row.owner)))


def _rows(policy: Policy, agent: Agent, facts: ToolFacts, operation: str | None) -> Iterator[LimitRow]:
    for placed in rules_on(agent, policy.sources_of(agent), facts):
        rule, owner = placed.rule, _owner(placed)
        if operation is not None and not rule.binds(operation):
            continue
        if isinstance(rule.rule_type, kinds.AllowedOperations) or _goes_without_saying(placed):
            continue
        index = placed.address[-1] if placed.address else None
        own = owner is Owner.OWN and isinstance(index, int)
        standing = Standing(agent.agent_id, index, rule) if own and isinstance(index, int) else None
        fields: tuple[str | None, ...] = (None,)
        if isinstance(rule.rule_type, kinds.ArgumentConstraints):
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
                text=sentence(PlacedRule(kinds.ToolRule(rule.tool_name, rule.rule_type, _named(rule)), None)),
            )


def title_of(row: LimitRow) -> str:
    """What kind of rule it is, in one or two words."""
    return f"Argument {row.field}" if row.field else _TITLES[type(row.kind)]


def value_of(row: LimitRow) -> str:
    """Its value, or what it says, in words."""
    kind = row.kind
    match kind:
        case kinds.MaxCalls(calls):
            return f"{calls:,} call{'' if calls == 1 else 's'} in a session"
        case kinds.Cooldown(seconds):
            return f"{duration_words(seconds)} from start to start"
        case kinds.RateLimit(calls, per_s):
            return f"{calls:,} per {duration_words(per_s)}, over all sessions"
        case kinds.Periodic(seconds):
            return f"every {duration_words(seconds)}"
        case kinds.RequiresConsent(scope):
            return f"scope {scope}" if scope else "asks, unless a grant covers it"
        case kinds.ArgumentConstraints():
            return constraint_words(row.schema, required=row.is_required)
        case _:
            return row.text


def holds_for(row: LimitRow) -> str:
    """For which calls it holds."""
    if row.operations is not None:
        return f"only {', '.join(sorted(row.operations))}"
    return "all operations" if row.has_operations else "every call"


def owner_words(row: LimitRow) -> str:
    """Whose rule it is, where it is not edited here; empty for the agent's own on this tool."""
    match row.owner:
        case Owner.OWN:
            return ""
        case Owner.EVERYWHERE:
            return "every tool"
        case Owner.SOURCE:
            return f"source {row.source_id}"
        case Owner.TOOL:
            return "the tool's own"


def _owner(placed: PlacedRule) -> Owner:
    if placed.address is None:
        return Owner.TOOL
    if placed.source_id is not None:
        return Owner.SOURCE
    return Owner.EVERYWHERE if placed.rule.tool_name == ANY_TOOL else Owner.OWN


def _goes_without_saying(placed: PlacedRule) -> bool:
    return placed.address is None and isinstance(placed.rule.rule_type, kinds.ContinueLoop)


def _named(rule: kinds.ToolRule) -> tuple[str, ...]:
    return tuple(text for text in rule.conditions if not text.startswith(kinds.OPERATION_CONDITION))


_TITLES: dict[type[object], str] = {
    kinds.MaxCalls: "Max calls",
    kinds.Cooldown: "Pause",
    kinds.RateLimit: "Rate",
    kinds.Periodic: "Reminder",
    kinds.RequiresConsent: "Consent",
    kinds.ArgumentConstraints: "Arguments",
    kinds.ExitLoop: "Ends the loop",
    kinds.ContinueLoop: "Goes on",
    kinds.StartConstraint: "Comes first",
    kinds.RequiresPrecedingTools: "Comes after",
    kinds.RequiresFollowingTools: "Comes before",
    kinds.ExclusiveGroups: "One of a group",
    kinds.RequiredBeforeExit: "Before the end",
    kinds.RequiredBeforeExitIf: "Before the end",
    kinds.AllowedOperations: "Operations",
    kinds.Needed: "Needed",
}
