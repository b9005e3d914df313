"""Verbs on what a policy says for all agents at once: its rules, its roots, its defaults."""

from collections.abc import Callable, Iterable

from gatewright.workspace.api import Edit, EditRefused, Field, Policy, PolicyRule, policyedit
from gatewright_gui.session.document import Document

Fault = tuple[tuple[str | int, ...], str]
"""Where in the policy something is wrong, e.g. `("policy", "rules", 0, "name")`, and what."""


def add_rule(document: Document, rule: PolicyRule, index: int | None = None) -> bool:
    """Insert a rule before `index`, or as the last one."""
    return document.push(lambda policy, _tools: policyedit.add_rule(policy, rule, index))


def change_rule(document: Document, index: int, rule: PolicyRule) -> bool:
    """Put another rule in the place of the one at `index`."""
    return document.push(lambda policy, _tools: policyedit.change_rule(policy, index, rule))


def move_rules(document: Document, indexes: Iterable[int], to: int) -> bool:
    """Move rules so that the first of them stands at `to` afterwards and the others right below it."""
    return document.push(lambda policy, _tools: policyedit.move_rules(policy, indexes, to))


def remove_rules(document: Document, indexes: Iterable[int]) -> bool:
    """Remove rules."""
    return document.push(lambda policy, _tools: policyedit.remove_rules(policy, indexes))


def set_field(document: Document, field: Field, after: object) -> bool:
    """Another value for a field of the policy."""
    return document.push(lambda policy, _tools: policyedit.set_field(policy, field, after))


def field_faults(document: Document, field: Field, after: object) -> tuple[Fault, ...]:
    """What is wrong with another value for a field of the policy."""
    return _faults(document, lambda policy: policyedit.set_field(policy, field, after), whole=True)


def rule_faults(document: Document, index: int | None, rule: PolicyRule) -> tuple[Fault, ...]:
    """What is wrong with a rule that takes the place of the one at `index`, or comes as the last one."""
    return _faults(document, lambda policy: policyedit.put_rule(policy, index, rule))


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
