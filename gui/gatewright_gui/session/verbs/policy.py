"""Verbs on what a policy says for all agents at once: its rules, its roots, its defaults.

A rule is named by the row that was seen: it is found by its identity, and where it is gone the edit is refused.
"""

from collections.abc import Callable, Iterable, Sequence

from gatewright.workspace.api import (
    Edit,
    EditRefused,
    Field,
    Observed,
    Policy,
    PolicyRule,
    agentedit,
    place_in,
    policyedit,
)
from gatewright.workspace.api import set_observed as observe_edit
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document

OBSERVE_S = 7 * 86_400.0
"""The time for which the app observes something."""
Fault = tuple[tuple[str | int, ...], str]
"""Where in the policy something is wrong, e.g. `("policy", "rules", 0, "name")`, and what."""


def add_rule(document: Document, rule: PolicyRule) -> bool:
    """A new rule, the last one."""
    return document.push(lambda policy, _tools: policyedit.add_rule(policy, rule))


def change_rule(document: Document, before: PolicyRule, after: PolicyRule) -> bool:
    """Put another rule in the place of one."""
    return document.push(lambda policy, _tools: policyedit.change_rule(policy, _place(policy, before), after))


def move_rules(document: Document, rules: Iterable[PolicyRule], before: PolicyRule | None) -> bool:
    """Move rules, in the order they have, so that they stand right before another one, or last."""
    chosen = tuple(rules)

    def make(policy: Policy, _tools: object) -> Edit:
        places = [_place(policy, rule) for rule in chosen]
        to = len(policy.rules) if before is None else _place(policy, before)
        return policyedit.move_rules(policy, places, to - sum(place < to for place in places))

    return document.push(make)


def remove_rules(document: Document, rules: Iterable[PolicyRule]) -> bool:
    """Remove rules."""
    chosen = tuple(rules)
    return document.push(
        lambda policy, _tools: policyedit.remove_rules(policy, [_place(policy, rule) for rule in chosen])
    )


def set_reading(document: Document, *, asks: bool) -> bool:
    """Make all that only reads ask first, or never ask."""
    return document.push(lambda policy, _tools: agentedit.set_reading(policy, asks=asks))


def set_field(document: Document, field: Field, after: object) -> bool:
    """Another value for a field of the policy."""
    return document.push(lambda policy, _tools: policyedit.set_field(policy, field, after))


def field_faults(document: Document, field: Field, after: object) -> tuple[Fault, ...]:
    """The faults of another value for a field of the policy."""
    return _faults(document, lambda policy: policyedit.set_field(policy, field, after), whole=True)


def rule_faults(document: Document, before: PolicyRule | None, rule: PolicyRule) -> tuple[Fault, ...]:
    """The faults of a rule that takes the place of another one, or comes as the last one."""
    return _faults(
        document,
        lambda policy: policyedit.put_rule(policy, None if before is None else _place(policy, before), rule),
    )


def _place(policy: Policy, rule: PolicyRule) -> int:
    """The place where the rule stands now. Raises EditRefused where it is gone."""
    return place_in(policy.rules, rule, tr("policy rule `{rule}`", rule=rule.name))


def _faults(document: Document, make: Callable[[Policy], Edit], *, whole: bool = False) -> tuple[Fault, ...]:
    """With ``whole`` also what stands in the way of all of it, which has no place and takes longer to find."""
    try:
        found = document.workspace.faults(make(document.policy))
    except EditRefused as error:
        return (((), str(error)),)
    if found or not whole:
        return found
    refused = document.refusal(lambda policy, _tools: make(policy))
    return (((), refused),) if refused else ()


def set_observed(document: Document, parts: Sequence[Observed], until_s: float | None) -> bool:
    """Observe agents, rules or catalogs until a moment; None: enforce them, in one edit."""
    chosen = tuple(parts)
    return bool(chosen) and document.push(lambda policy, _tools: observe_edit(policy, chosen, until_s))
