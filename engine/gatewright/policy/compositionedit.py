"""Edits of compositions and their steps.

Each finds its row by identity, wherever the row stands now. When a step moves or an argument gets a new name, the
references change with it; when a tool gets a new name, every mention in the policy does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.composition import (
    INPUT,
    STEPS,
    BadReference,
    Composition,
    CompositionStep,
    Reference,
    ordinal,
    with_references,
)
from gatewright.policy.document import Policy
from gatewright.policy.edit import Change, Edit, FieldChange, move_rows
from gatewright.policy.policyedit import follow_names
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import new_identity, place_in


def add_composition(policy: Policy, composition: Composition) -> Edit:
    """Append a composition; agents with a list of tools do not get its tool."""
    return _edit(f"add composition `{composition.name}`", policy, (*policy.compositions, composition))


def duplicate_composition(policy: Policy, composition: Composition, name: str) -> Edit:
    """Copy a composition under another name, right behind it; agents with a list of tools do not get the copy's
    tool.
    """
    at, held = _current(policy, composition)
    steps = tuple(replace(step, identity=new_identity()) for step in held.steps)
    copy = replace(held, name=name, steps=steps, identity=new_identity())
    rows = (*policy.compositions[: at + 1], copy, *policy.compositions[at + 1 :])
    return _edit(f"duplicate composition `{held.name}` as `{name}`", policy, rows)


def rename_composition(policy: Policy, catalog: Iterable[ToolFacts], composition: Composition, name: str) -> Edit:
    """Rename a composition, and with it its tool in the steps that call it and everywhere else in the policy."""
    _, held = _current(policy, composition)
    if name == held.name:
        return Edit("", ())
    rows = tuple(_calling(one, held.name, name) for one in policy.compositions)
    rows = tuple(replace(one, name=name) if one.identity == held.identity else one for one in rows)
    return _edit_with_names(policy, catalog, f"rename composition `{held.name}` to `{name}`", {held.name: name}, rows)


def remove_composition(policy: Policy, catalog: Iterable[ToolFacts], composition: Composition) -> Edit:
    """Remove a composition and the mentions of its tool. Raises EditRefused while another composition calls it."""
    _, held = _current(policy, composition)
    rows = tuple(one for one in policy.compositions if one.identity != held.identity)
    for one in rows:
        for number, step in enumerate(one.steps):
            if step.tool == held.name:
                where = f"the {ordinal(number)} step of `{one.name}`"
                raise EditRefused(f"{where} calls `{held.name}`: change that step first")
    return _edit_with_names(policy, catalog, f"remove composition `{held.name}`", {held.name: None}, rows)


def describe_composition(policy: Policy, composition: Composition, description: str) -> Edit:
    """Change the description."""
    _, held = _current(policy, composition)
    return _replace_edit(policy, f"describe composition `{held.name}`", replace(held, description=description))


def set_input(
    policy: Policy,
    composition: Composition,
    schema: Mapping[str, JsonValue],
    renamed: Mapping[str, str] | None = None,
) -> Edit:
    """Change the schema of the input.

    ``renamed``: old to new names of arguments, which references and conditions take over.
    """
    _, held = _current(policy, composition)
    names = renamed or {}

    def follow(reference: Reference) -> Reference:
        if reference.step is not None or not reference.path:
            return reference
        return replace(reference, path=(names.get(reference.path[0], reference.path[0]), *reference.path[1:]))

    steps = held.steps
    if names:
        steps = tuple(replace(_refers(step, follow), when=_about_input(step.when, names)) for step in held.steps)
    after = replace(held, input=dict(schema), steps=steps)
    return _replace_edit(policy, f"change the input of composition `{held.name}`", after)


def add_step(
    policy: Policy, composition: Composition, step: CompositionStep, before: CompositionStep | None = None
) -> Edit:
    """Add a step before another one, or as the last."""
    _, held = _current(policy, composition)
    at = len(held.steps) if before is None else _step(held, before)
    order: list[int | None] = list(range(len(held.steps)))
    order.insert(at, None)
    return _replace_edit(policy, f"add a step to composition `{held.name}`", _reorder(held, order, step))


def change_step(policy: Policy, composition: Composition, step: CompositionStep, after: CompositionStep) -> Edit:
    """Change the tool, arguments or condition of a step in its place."""
    _, held = _current(policy, composition)
    at = _step(held, step)
    steps = (*held.steps[:at], replace(after, identity=held.steps[at].identity), *held.steps[at + 1 :])
    name = f"change the {ordinal(at)} step of composition `{held.name}`"
    return _replace_edit(policy, name, replace(held, steps=steps))


def move_step(policy: Policy, composition: Composition, step: CompositionStep, to: int) -> Edit:
    """Move a step to another place, from 0, and adjust the references.

    Raises EditRefused if a reference would then lead to a later step.
    """
    _, held = _current(policy, composition)
    at = _step(held, step)
    order = move_rows(range(len(held.steps)), (at,), to)
    name = f"move the {ordinal(at)} step of composition `{held.name}`"
    return _replace_edit(policy, name, _reorder(held, order))


def remove_step(policy: Policy, composition: Composition, step: CompositionStep) -> Edit:
    """Remove a step. Raises EditRefused while a later step needs its result."""
    _, held = _current(policy, composition)
    at = _step(held, step)
    order = [number for number in range(len(held.steps)) if number != at]
    name = f"remove the {ordinal(at)} step of composition `{held.name}`"
    return _replace_edit(policy, name, _reorder(held, order))


def _current(policy: Policy, composition: Composition) -> tuple[int, Composition]:
    """The composition as it is now, and its place. Raises EditRefused if it is gone."""
    at = place_in(policy.compositions, composition, f"composition `{composition.name}`")
    return at, policy.compositions[at]


def _step(held: Composition, step: CompositionStep) -> int:
    return place_in(held.steps, step, f"the step of composition `{held.name}` that calls `{step.tool}`")


def _reorder(held: Composition, order: Sequence[int | None], new: CompositionStep | None = None) -> Composition:
    """Reorder the steps by their old numbers, with None for the new step, and adjust the references."""
    now = {old: number for number, old in enumerate(order) if old is not None}
    steps: list[CompositionStep] = []
    for number, old in enumerate(order):
        if old is None:
            steps += [new] if new is not None else []
        elif all(now.get(one) == one for one in range(max(number, old))):
            steps.append(held.steps[old])
        else:
            steps.append(_renumber(held.steps[old], old, now, number))
    return replace(held, steps=tuple(steps))


def _renumber(step: CompositionStep, old: int, now: Mapping[int, int], number: int) -> CompositionStep:
    """Renumber a step from ``old`` to ``number``, with its references.

    ``now``: the new numbers of all steps, by the old ones.
    """

    def follow(reference: Reference) -> Reference:
        if reference.step is None:
            return reference
        if reference.step not in now:
            raise EditRefused(
                f"the {ordinal(old)} step needs the result of the {ordinal(reference.step)}: change that first"
            )
        if now[reference.step] >= number:
            raise EditRefused(f"the {ordinal(old)} step needs the result of the {ordinal(reference.step)}, before it")
        return replace(reference, step=now[reference.step])

    return replace(_refers(step, follow), when=_about_results(step.when, old, now, number))


def _refers(step: CompositionStep, follow: Callable[[Reference], Reference]) -> CompositionStep:
    try:
        arguments = {key: with_references(held, follow) for key, held in step.arguments.items()}
    except BadReference as error:
        raise EditRefused(str(error)) from None
    return step if arguments == step.arguments else replace(step, arguments=arguments)


When = Mapping[str, JsonValue] | bool | None


def _about_results(when: When, old: int, now: Mapping[int, int], number: int) -> When:
    """Renumber what a condition says about single results.

    Raises EditRefused for a condition that it cannot rewrite.
    """
    if not isinstance(when, Mapping):
        return when
    properties = when.get("properties", {})
    is_plain = isinstance(properties, dict) and when.keys() <= {"properties", "required", "type"}
    steps = properties.get(STEPS, {}) if isinstance(properties, dict) and properties.keys() <= {INPUT, STEPS} else None
    is_plain = is_plain and isinstance(steps, dict) and steps.keys() <= {"prefixItems", "type"}
    listed = steps.get("prefixItems", []) if isinstance(steps, dict) else None
    if not is_plain or not isinstance(properties, dict) or not isinstance(steps, dict) or not isinstance(listed, list):
        which = f"the condition of the {ordinal(old)} step"
        raise EditRefused(f"{which} refers to results by number: change it first")
    if not listed:
        return when
    placed: dict[int, JsonValue] = {}
    for one, said in enumerate(listed):
        if said in ({}, True):
            continue
        if one not in now or now[one] >= number:
            text = f"the condition of the {ordinal(old)} step needs the result of the {ordinal(one)}"
            raise EditRefused(f"{text}: change that first")
        placed[now[one]] = said
    items: list[JsonValue] = [placed.get(at, {}) for at in range(max(placed, default=-1) + 1)]
    return {**when, "properties": {**properties, STEPS: {**steps, "prefixItems": items}}}


def _about_input(when: When, renamed: Mapping[str, str]) -> When:
    """Rename the arguments in a condition, if it names them plainly."""
    properties = when.get("properties") if isinstance(when, Mapping) else None
    said = properties.get(INPUT) if isinstance(properties, Mapping) else None
    if not isinstance(when, Mapping) or not isinstance(properties, Mapping) or not isinstance(said, Mapping):
        return when
    after: dict[str, JsonValue] = dict(said)
    named, required = after.get("properties"), after.get("required")
    if isinstance(named, dict):
        after["properties"] = {renamed.get(key, key): held for key, held in named.items()}
    if isinstance(required, list):
        after["required"] = [renamed.get(key, key) if isinstance(key, str) else key for key in required]
    return {**when, "properties": {**properties, INPUT: after}}


def _calling(one: Composition, old: str, new: str) -> Composition:
    steps = tuple(replace(step, tool=new) if step.tool == old else step for step in one.steps)
    return one if steps == one.steps else replace(one, steps=steps)


def _edit_with_names(
    policy: Policy,
    catalog: Iterable[ToolFacts],
    name: str,
    names: Mapping[str, str | None],
    rows: tuple[Composition, ...],
) -> Edit:
    changes: list[Change] = list(follow_names(policy, names, {facts.name for facts in catalog}))
    return Edit(name, (*changes, FieldChange("compositions", policy.compositions, rows)))


def _replace_edit(policy: Policy, name: str, after: Composition) -> Edit:
    rows = tuple(after if one.identity == after.identity else one for one in policy.compositions)
    return _edit(name, policy, rows)


def _edit(name: str, policy: Policy, rows: tuple[Composition, ...]) -> Edit:
    return Edit(name, (FieldChange("compositions", policy.compositions, rows),))
