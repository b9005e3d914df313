"""What a call is tested against by tool rules, as values: one test for each kind of rule. It compiles none of them."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.frozen import frozen
from gatewright.base.problem import Address
from gatewright.policy.rule import RateLimit, ToolRule


@frozen
class BoundRule:
    """A rule where it stands. ``address`` None: the tool's own. ``operations`` None: whatever the operation.

    ``source_id``: it binds only calls that go to that source. ``owner``: the tool whose own rule it is.
    """

    rule: ToolRule
    address: Address | None
    operations: frozenset[str] | None
    source_id: str | None = None
    owner: str | None = None

    def binds(self, operation: str) -> bool:
        """Whether a call of that operation comes under the rule."""
        return self.operations is None or operation in self.operations


@frozen
class Rate:
    """A rule by the key of its starts. ``calls``: for how many of them the call counts; a batch counts for more."""

    key: str
    rule: RateLimit
    calls: int = 1


@frozen
class ToolRef:
    """A tool, or some operations of it, as a rule names it. What no registered tool answers to never matches."""

    tool: str
    operations: frozenset[str] | None = None

    def covers(self, tool: str, operation: str) -> bool:
        """Whether a call of that operation is one of this."""
        return tool == self.tool and (self.operations is None or operation in self.operations)

    def __str__(self) -> str:
        """As people write it: ``tool``, ``tool.operation`` or ``tool.(a|b)``."""
        names = sorted(self.operations or ())
        return (
            self.tool
            if not names
            else f"{self.tool}.{names[0]}"
            if len(names) == 1
            else f"{self.tool}.({'|'.join(names)})"
        )


@frozen
class StartTest:
    """Another tool must have succeeded before this one."""

    bound: BoundRule
    start: ToolRef


@frozen
class PrecedingTest:
    """All of these must have succeeded."""

    bound: BoundRule
    required: tuple[ToolRef, ...]


@frozen
class FollowingTest:
    """None of these may have succeeded, or be under way."""

    bound: BoundRule
    later: tuple[ToolRef, ...]


@frozen
class GroupTest:
    """No other member may have been called. ``own``: the members that this call is one of."""

    bound: BoundRule
    own: tuple[ToolRef, ...]
    others: tuple[ToolRef, ...]


@frozen
class CallsTest:
    """At most so many calls of ``counted``."""

    bound: BoundRule
    counted: ToolRef
    calls: int


@frozen
class GapTest:
    """At least so many seconds since the last start of ``counted``."""

    bound: BoundRule
    counted: ToolRef
    gap_s: float


@frozen
class ExitTest:
    """Must have succeeded before the loop may end, once all of ``conditions`` have."""

    bound: BoundRule
    required: ToolRef
    conditions: tuple[ToolRef, ...] = ()


SessionTest = StartTest | PrecedingTest | FollowingTest | GroupTest | CallsTest | GapTest


@frozen
class RateTest:
    """A call must fit into this rate."""

    bound: BoundRule
    rate: Rate


@frozen
class RuleBook:
    """What a call of one operation is tested against, most important first.

    ``exits``: the rules that make a successful call end the loop; ``requirements`` are tested for such a call only.
    ``consents``: those of sources, which ask only for a call that goes there.
    """

    tests: tuple[SessionTest, ...] = ()
    rates: tuple[RateTest, ...] = ()
    exits: tuple[BoundRule, ...] = ()
    requirements: tuple[ExitTest, ...] = ()
    consents: tuple[BoundRule, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no rule limits the call."""
        return not (self.tests or self.rates or self.requirements or self.consents)

    def ends_loop(self, sources: Iterable[str] = ()) -> bool:
        """Whether a successful call that goes to ``sources`` ends the loop; an exit wins over a continue."""
        return any(applies(bound, frozenset(sources)) for bound in self.exits)


@frozen
class Due:
    """The model is reminded when nothing of ``counted`` succeeded for ``every_s``."""

    bound: BoundRule
    counted: ToolRef
    every_s: float


def applies(bound: BoundRule, sources: frozenset[str]) -> bool:
    """Whether a call that goes to ``sources`` comes under the rule, as far as that is what limits it."""
    return bound.source_id is None or bound.source_id in sources


def report_order(bound: BoundRule) -> tuple[int, int, int]:
    """Higher priority first; the agent's rules before a source's, those before a tool's own; then as in the file."""
    layer = 2 if bound.address is None else 1 if bound.source_id is not None else 0
    index = bound.address[-1] if bound.address else 0
    return -bound.rule.priority, layer, index if isinstance(index, int) else 0
