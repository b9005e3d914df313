"""Verbs on compositions and their steps. Each names its row as it was seen; what is gone refuses the edit.

A verb gives back what is wrong with the edit, by place; it is made where nothing is.
"""

from collections.abc import Callable, Mapping

from gatewright.workspace.api import Composition, CompositionStep, Edit, EditRefused, JsonValue, Policy, compositionedit
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.policy import Fault

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
