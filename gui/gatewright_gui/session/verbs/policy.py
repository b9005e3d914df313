"""Verbs on what a policy says for all agents at once: its rules, roots, defaults and compositions."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from gatewright.workspace.api import (
    Composition,
    CompositionStep,
    Edit,
    EditRefused,
    Field,
    JsonValue,
    Observed,
    Policy,
    PolicyRule,
    agentedit,
    compositionedit,
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


Faults = tuple[Fault, ...]


def add(document: Document, made: Composition) -> Faults:
    """A new composition, the last one."""
    return _push(document, lambda policy: compositionedit.add_composition(policy, made))


def duplicate(document: Document, row: Composition, name: str) -> Faults:
    """A copy under another name, right behind it."""
    return _push(document, lambda policy: compositionedit.duplicate_composition(policy, row, name))


def rename(document: Document, row: Composition, name: str) -> Faults:
    """Another name; all that the policy says of it follows."""
    return _push(document, lambda policy: compositionedit.rename_composition(policy, document.catalog, row, name))


def remove(document: Document, row: Composition) -> Faults:
    """Take it out, with what is said of it."""
    return _push(document, lambda policy: compositionedit.remove_composition(policy, document.catalog, row))


def describe(document: Document, row: Composition, text: str) -> Faults:
    """Another description."""
    return _push(document, lambda policy: compositionedit.describe_composition(policy, row, text))


def set_input(
    document: Document, row: Composition, schema: Mapping[str, JsonValue], renamed: Mapping[str, str]
) -> Faults:
    """Another schema of the input."""
    return _push(document, lambda policy: compositionedit.set_input(policy, row, schema, renamed))


def add_step(document: Document, row: Composition, step: CompositionStep, before: CompositionStep | None) -> Faults:
    """A new step before another one, or as the last one."""
    return _push(document, lambda policy: compositionedit.add_step(policy, row, step, before))


def change_step(document: Document, row: Composition, step: CompositionStep, after: CompositionStep) -> Faults:
    """Another tool, other arguments or another condition."""
    return _push(document, lambda policy: compositionedit.change_step(policy, row, step, after))


def move_step(document: Document, row: Composition, step: CompositionStep, to: int) -> Faults:
    """Another place among the steps."""
    return _push(document, lambda policy: compositionedit.move_step(policy, row, step, to))


def remove_step(document: Document, row: Composition, step: CompositionStep) -> Faults:
    """Take a step away."""
    return _push(document, lambda policy: compositionedit.remove_step(policy, row, step))


def _push(document: Document, make: Callable[[Policy], Edit]) -> Faults:
    try:
        edit = make(document.policy)
        if edit.is_empty:
            return ()
        found = document.workspace.faults(edit)
    except EditRefused as error:
        return (((), str(error)),)
    if found:
        return found
    refused = document.refusal(lambda _policy, _tools: edit)
    if refused:
        return (((), refused),)
    document.push(lambda _policy, _tools: edit)
    return ()
