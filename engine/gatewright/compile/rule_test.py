"""Tests of a call, as values: one for each kind of tool rule, conditions on arguments, and the finding of a failure.

Conditions (`when` of policy rules, constraints) are compiled once and shared by whoever writes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.problem import Address
from gatewright.policy.rule import ArgumentConstraints, PolicyRule, RateLimit, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.record.process import fork_safe_lock
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import closed_constraint
from gatewright.schema.walk import Schema, as_object


def _no_facts() -> dict[str, JsonValue]:
    return {}


@frozen
class Finding:
    """What a stage objects to: ask or deny, why, where in the policy, and the words for the model.

    ``model`` is without the prefix; None where the stage's verdict is ask. ``about``: the one place or block that it is
    about, so that it does not stand for others.
    """

    verdict: Verdict
    code: str
    reason: str
    address: Address | None = None
    rule_id: str | None = None
    model: str | None = None
    facts: Mapping[str, JsonValue] = field(default_factory=_no_facts, hash=False)
    scope: str | None = None
    about: str = ""


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


_MAX_CONDITIONS = 16_384


class Conditions:
    """Compiled schemas by what they say; safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[bytes, SchemaChecker] = {}
        self._lock = fork_safe_lock()

    def checker(self, schema: object) -> SchemaChecker:
        """The compiled schema; true and false are schemas too. Raises SchemaError."""
        return self._held_or_made(schema, b"when", _as_table)

    def constraint(self, schema: object) -> SchemaChecker:
        """The same for a constraint on an argument, which closes the types of which it says nothing."""
        return self._held_or_made(schema, b"constraint", closed_constraint)

    def _held_or_made(self, schema: object, kind: bytes, table: Callable[[object], Schema]) -> SchemaChecker:
        try:
            key = kind + canonical_json(schema)
        except (ValueError, TypeError, RecursionError) as error:
            raise SchemaError(f"the condition is no JSON: {error}") from None
        found = self._held.get(key)
        if found is None:
            found = SchemaChecker(table(schema))
            with self._lock:
                if len(self._held) >= _MAX_CONDITIONS:
                    self._held.clear()
                self._held[key] = found
        return found


@frozen
class CompiledPolicyRule:
    """A policy rule that may match a call; ``checker`` None: it does, whatever the arguments."""

    rule: PolicyRule
    address: Address
    checker: SchemaChecker | None

    def matches(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Whether its condition holds for the canonical arguments. Raises SchemaError where that cannot be told."""
        return self.checker is None or self.checker.holds(arguments)


@frozen
class Constraint:
    """One ArgumentConstraints rule: fields of the arguments with what each must satisfy.

    ``source_id``: it binds only calls that go to that source; None: every call.
    """

    bound: BoundRule
    fields: tuple[tuple[str, SchemaChecker], ...]
    source_id: str | None = None


def compiled_rules(
    rules: Iterable[tuple[PolicyRule, Address]], conditions: Conditions
) -> tuple[CompiledPolicyRule, ...]:
    """The rules with their conditions compiled. Raises SchemaError."""
    return tuple(
        CompiledPolicyRule(rule, address, None if rule.is_unconditional else conditions.checker(rule.when))
        for rule, address in rules
    )


def constraints_of(
    rules: Iterable[BoundRule], operation: str | None, conditions: Conditions, source_id: str | None = None
) -> Iterator[Constraint]:
    """The constraints that a call of ``operation`` (None: of any) comes under. Raises SchemaError."""
    for bound in rules:
        kind = bound.rule.rule_type
        if isinstance(kind, ArgumentConstraints) and (operation is None or bound.binds(operation)):
            fields = tuple((name, conditions.constraint(schema)) for name, schema in kind.fields.items())
            yield Constraint(bound, fields, source_id)


def _as_table(schema: object) -> Schema:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    table = as_object(schema)
    if table is None:
        raise SchemaError("a condition must be a JSON Schema")
    return table
