"""Conditions on arguments, compiled once and shared by whoever writes the same: `when` of policy rules, constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.problem import Address
from gatewright.compile.rule_test import BoundRule
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.rule import ArgumentConstraints
from gatewright.record.fork import fork_safe_lock
from gatewright.schema.check import SchemaChecker
from gatewright.schema.constraint import closed_constraint
from gatewright.schema.walk import Schema, as_object

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
