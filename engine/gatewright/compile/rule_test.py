"""Tests of a call, as values: one for each kind of tool rule, conditions on arguments, and the finding when a test
fails.

Equal conditions (`when` of policy rules, constraints) are compiled once and shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from gatewright.base.errors import Address, SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.policy.rule import ArgumentConstraints, PolicyRule, RateLimit, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.record.process import fork_safe_lock
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import close_constraint
from gatewright.schema.walk import Schema, as_object


def _no_facts() -> dict[str, JsonValue]:
    return {}


@frozen
class Finding:
    """A stage's objection: ask or deny, the reason, its place in the policy, and the words for the model.

    ``model`` has no prefix; None if the stage asks. ``about``: the one place or block that it concerns, so that it does
    not stand for others. ``noted``: observe mode passes it.
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
    noted: bool = False


@frozen
class BoundRule:
    """A rule with its place. ``address`` None: a tool's own rule. ``operations`` None: every operation.

    ``source_id``: it limits only calls to that source. ``owner``: the tool whose own rule it is.
    """

    rule: ToolRule
    address: Address | None
    operations: frozenset[str] | None
    source_id: str | None = None
    owner: str | None = None

    def binds(self, operation: str) -> bool:
        """Tell whether the rule applies to calls of that operation."""
        return self.operations is None or operation in self.operations


@frozen
class Rate:
    """A rate rule with the key of its recorded starts.

    ``calls``: for how many the call counts; more than one for a batch.
    """

    key: str
    rule: RateLimit
    calls: int = 1


@frozen
class ToolRef:
    """A tool, or some of its operations, as a rule names it. A name without a registered tool never matches."""

    tool: str
    operations: frozenset[str] | None = None

    def covers(self, tool: str, operation: str) -> bool:
        """Tell whether a call of that operation counts."""
        return tool == self.tool and (self.operations is None or operation in self.operations)

    def __str__(self) -> str:
        """The name as people write it: ``tool``, ``tool.operation`` or ``tool.(a|b)``."""
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
    """None of these may have succeeded or be running."""

    bound: BoundRule
    later: tuple[ToolRef, ...]


@frozen
class GroupTest:
    """No other member of the group may have been called. ``own``: the members that this call belongs to."""

    bound: BoundRule
    own: tuple[ToolRef, ...]
    others: tuple[ToolRef, ...]


@frozen
class CallsTest:
    """Calls of ``counted`` must stay within a maximum."""

    bound: BoundRule
    counted: ToolRef
    calls: int


@frozen
class GapTest:
    """Since the last start of ``counted`` a minimum of seconds must have passed."""

    bound: BoundRule
    counted: ToolRef
    gap_s: float


@frozen
class ExitTest:
    """The tool must have succeeded before the loop may end, if all of ``conditions`` succeeded."""

    bound: BoundRule
    required: ToolRef
    conditions: tuple[ToolRef, ...] = ()


@frozen
class OutsideTest:
    """No result of an outside tool may have come before; else the call asks or is denied."""

    bound: BoundRule
    effect: Verdict


SessionTest = StartTest | PrecedingTest | FollowingTest | GroupTest | CallsTest | GapTest | OutsideTest


@frozen
class RateTest:
    """A call must fit into this rate."""

    bound: BoundRule
    rate: Rate


@frozen
class RuleBook:
    """The tests of a call of one operation, the most important first. ``exits``: the rules by which a successful call
    ends the loop.

    ``requirements`` apply to such a call only. ``consents``: those of sources, which ask only for calls to them.
    """

    tests: tuple[SessionTest, ...] = ()
    rates: tuple[RateTest, ...] = ()
    exits: tuple[BoundRule, ...] = ()
    requirements: tuple[ExitTest, ...] = ()
    consents: tuple[BoundRule, ...] = ()

    def ends_loop(self, sources: Iterable[str] = ()) -> bool:
        """Tell whether a successful call to ``sources`` ends the loop; an exit wins over a continue."""
        return any(applies(bound, frozenset(sources)) for bound in self.exits)


@frozen
class Due:
    """A reminder to the model, after ``every_s`` without a successful call of ``counted``."""

    bound: BoundRule
    counted: ToolRef
    every_s: float


def applies(bound: BoundRule, sources: frozenset[str]) -> bool:
    """Tell whether the rule applies to a call to ``sources``, if sources limit it at all."""
    return bound.source_id is None or bound.source_id in sources


def report_order(bound: BoundRule) -> tuple[int, int, int]:
    """A sort key: higher priority first; the agent's rules, then a source's, then a tool's own; then file order."""
    layer = 2 if bound.address is None else 1 if bound.source_id is not None else 0
    index = bound.address[-1] if bound.address else 0
    return -bound.rule.priority, layer, index if isinstance(index, int) else 0


_MAX_CONDITIONS = 16_384


class Conditions:
    """Compiled schemas by content; safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[bytes, SchemaChecker] = {}
        self._lock = fork_safe_lock()

    def checker(self, schema: object) -> SchemaChecker:
        """The compiled schema; true and false are schemas too. Raises SchemaError."""
        return self._compile(schema, b"when", _as_table)

    def constraint(self, schema: object) -> SchemaChecker:
        """The compiled schema of a constraint on an argument, which excludes types that it does not mention."""
        return self._compile(schema, b"constraint", close_constraint)

    def _compile(self, schema: object, kind: bytes, table: Callable[[object], Schema]) -> SchemaChecker:
        try:
            key = kind + canonical_json(schema)
        except (ValueError, TypeError, RecursionError) as error:
            raise SchemaError(f"the condition is not JSON: {error}") from None
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
    """A policy rule that may match a call; ``checker`` None means that it matches any arguments."""

    rule: PolicyRule
    address: Address
    checker: SchemaChecker | None

    def matches(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Tell whether its condition holds for the canonical arguments. Raises SchemaError if that is undecidable."""
        return self.checker is None or self.checker.holds(arguments)


@frozen
class Constraint:
    """One ArgumentConstraints rule: fields of the arguments, each with a checker.

    ``source_id``: it limits only calls to that source; None means every call.
    """

    bound: BoundRule
    fields: tuple[tuple[str, SchemaChecker], ...]
    source_id: str | None = None


def compile_rules(
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
    """The constraints on a call of ``operation`` (None: of any operation). Raises SchemaError."""
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
