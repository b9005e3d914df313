"""Verbs on an agent's tool rules: limits and constraints."""

from collections.abc import Sequence

from gatewright.workspace.api import Edit, JsonValue, Limit, Policy, RuleKind, RulePosition, ToolFacts, frozen, ruleedit
from gatewright_gui.session.document import Document

Operations = frozenset[str] | None


@frozen
class ConstraintWish:
    """An argument of a tool for some operations (None: all). `standing` and `was`: the one that stands, if any.

    `schema` None: its value may be anything; `required`: a call must give it.
    """

    agent_id: str
    tool: str
    field: str
    schema: JsonValue
    required: bool = False
    operations: frozenset[str] | None = None
    standing: RulePosition | None = None
    was: str | None = None


def set_limit(document: Document, agent_id: str, tool: str, limit: Limit, operations: Operations) -> bool:
    """Limit a tool, or only some operations of it."""
    return document.push(lambda policy, catalog: ruleedit.set_limit(policy, catalog, agent_id, tool, limit, operations))


def change_rule(document: Document, standing: RulePosition, kind: RuleKind) -> bool:
    """Another value for a rule where it stands."""
    return document.push(lambda policy, _tools: ruleedit.change_rule(policy, standing, kind))


def bind_rule(document: Document, standing: RulePosition, operations: Operations, field: str | None = None) -> bool:
    """Let a rule, or what it says of one argument, hold for some operations only, or for all of them."""
    return document.push(lambda policy, catalog: ruleedit.bind_rule(policy, catalog, standing, operations, field))


def remove_rule(document: Document, standing: RulePosition, field: str | None = None) -> bool:
    """Take a rule away; with a field, only what it says of that argument."""
    if field is None:
        return document.push(lambda policy, _tools: ruleedit.remove_rule(policy, standing))
    return document.push(lambda policy, _tools: ruleedit.remove_constraint(policy, standing, field))


def constrain(document: Document, wish: ConstraintWish) -> bool:
    """Write a constraint: a new one, or another for one that stands."""
    return document.push(lambda policy, catalog: _constraint_edit(policy, catalog, wish))


def constraint_refusal(document: Document, wish: ConstraintWish) -> str:
    """Why it could not be written; empty when it could."""
    return document.refusal(lambda policy, catalog: _constraint_edit(policy, catalog, wish))


def _constraint_edit(policy: Policy, catalog: Sequence[ToolFacts], wish: ConstraintWish) -> Edit:
    field, schema, required = wish.field, wish.schema, wish.required
    if wish.standing is None or wish.was is None:
        return ruleedit.set_constraint(
            policy, catalog, wish.agent_id, wish.tool, field, schema, wish.operations, required=required
        )
    return ruleedit.change_constraint(policy, catalog, wish.standing, wish.was, field, schema, required=required)
