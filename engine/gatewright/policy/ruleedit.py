"""Edits of an agent's tool rules: set, change, bind to operations, and remove limits and constraints.

An edit keeps a rule's id, priority, metadata and place, and leaves all other rules alone. A limit for a tool goes into
the rule of that kind for the same operations, if one exists. Rules for ``*``, rules of sources and rules of tools
themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.agentedit import agent_of
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import (
    ANY_TOOL,
    OPERATION_CONDITION,
    AfterOutside,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiresConsent,
    RuleKind,
    ToolRule,
)
from gatewright.policy.verdict import names_tool, pick_tools

Limit = MaxCalls | Cooldown | RateLimit | Periodic | RequiresConsent | AfterOutside | ExitLoop | ContinueLoop
"""The kinds with one value for a tool or some of its operations."""


@frozen
class RulePosition:
    """A rule of an agent, and the place where the caller saw it; edits find its present place, and refuse if it has
    changed or is gone.
    """

    agent_id: str
    index: int
    rule: ToolRule


def set_limit(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    agent_id: str,
    tool: str,
    limit: Limit,
    operations: Iterable[str] | None = None,
) -> Edit:
    """Limit a tool or some of its operations, in the rule of that kind for exactly these operations, else in a new
    rule.
    """
    agent = agent_of(policy, agent_id)
    facts = _facts_of(catalog, agent, tool)
    conditions = _conditions(facts, operations)
    index = next((i for i, rule in _own(agent, facts) if _fits(rule, type(limit), conditions)), None)
    name = f"{limit.edit_name(_what(facts.name, conditions))} for `{agent_id}`"
    if index is None:
        return _edit(name, agent, (*agent.tool_rules, ToolRule(facts.name, limit, conditions)))
    return _edit(name, agent, _put(agent, index, replace(agent.tool_rules[index], rule_type=limit)))


def change_rule(policy: Policy, standing: RulePosition, kind: RuleKind) -> Edit:
    """Change the value of a rule in its place."""
    agent, at, rule = _locate(policy, standing)
    name = f"{kind.edit_name(_what(rule.tool_name, rule.conditions))} for `{agent.agent_id}`"
    return _edit(name, agent, _put(agent, at, replace(rule, rule_type=kind)))


def bind_rule(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    standing: RulePosition,
    operations: Iterable[str] | None,
    field: str | None = None,
) -> Edit:
    """Bind a rule to these operations (None: all of them); conditions that name tools stay.

    With a field, only the rule's constraint on that argument is bound; the rest stays as it is.
    """
    agent, at, rule = _locate(policy, standing)
    facts = _facts_named(catalog, agent, rule.tool_name)
    others = tuple(text for text in rule.conditions if not text.startswith(OPERATION_CONDITION))
    conditions = (*others, *_conditions(facts, operations))
    if set(conditions) == set(rule.conditions):
        return Edit("", ())
    where = _what(rule.tool_name, conditions) if operations is not None else f"all operations of `{rule.tool_name}`"
    what = rule.rule_type.noun if field is None else f"{rule.rule_type.noun} of `{field}`"
    bound = (replace(rule, conditions=conditions),)
    if field is not None:
        _check_field(facts, field, conditions)
        bound = _split(rule, field, conditions)
    rules = (*agent.tool_rules[:at], *bound, *agent.tool_rules[at + 1 :])
    return _edit(f"{what} of `{agent.agent_id}` is for {where}", agent, rules)


def remove_rule(policy: Policy, standing: RulePosition) -> Edit:
    """Remove a rule."""
    agent, at, rule = _locate(policy, standing)
    what = _what(rule.tool_name, rule.conditions)
    name = f"remove the {rule.rule_type.noun} of {what} for `{agent.agent_id}`"
    return _edit(name, agent, _put(agent, at, None))


def set_constraint(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    agent_id: str,
    tool: str,
    field: str,
    schema: JsonValue,
    operations: Iterable[str] | None = None,
    *,
    required: bool = False,
) -> Edit:
    """Constrain one more argument of a tool, in the rule for exactly these operations if one exists.

    ``schema`` None: any value; ``required``: a call must give it. Raises EditRefused if the argument already has a
    constraint: see ``change_constraint``.
    """
    agent = agent_of(policy, agent_id)
    facts = _facts_of(catalog, agent, tool)
    conditions = _conditions(facts, operations)
    _check_field(facts, field, conditions)
    fits = [i for i, rule in _own(agent, facts) if _fits(rule, ArgumentConstraints, conditions)]
    name = f"{_verb(schema)} `{field}` of {_what(facts.name, conditions)} for `{agent_id}`"
    if not fits:
        rule = ToolRule(
            facts.name, _with_constraint(ArgumentConstraints({}), field, schema, required=required), conditions
        )
        return _edit(name, agent, (*agent.tool_rules, rule))
    if any(field in _constraints(agent.tool_rules[i]).arguments for i in fits):
        raise EditRefused(f"`{field}` of {_what(facts.name, conditions)} is constrained already: change that one")
    rule = agent.tool_rules[fits[0]]
    constraints = _with_constraint(_constraints(rule), field, schema, required=required)
    return _edit(name, agent, _put(agent, fits[0], replace(rule, rule_type=constraints)))


def change_constraint(
    policy: Policy,
    catalog: Sequence[ToolFacts],
    standing: RulePosition,
    field: str,
    new_field: str,
    schema: JsonValue,
    *,
    required: bool = False,
) -> Edit:
    """Change a rule's constraint on one argument, or move it to another argument; other constraints stay.

    ``schema`` None: any value; ``required``: a call must give it.
    """
    agent, at, rule = _locate(policy, standing)
    held = _constraints(rule)
    if field not in held.arguments:
        raise EditRefused(f"the rule does not constrain `{field}` any more")
    if new_field != field:
        _check_field(_facts_named(catalog, agent, rule.tool_name), new_field, rule.conditions)
        if new_field in held.arguments:
            raise EditRefused(f"the rule constrains `{new_field}` already")
    named = ArgumentConstraints(
        {new_field if name == field else name: said for name, said in held.fields.items()},
        tuple(new_field if name == field else name for name in held.required),
    )
    after = _with_constraint(named, new_field, schema, required=required)
    name = f"{_verb(schema)} `{new_field}` of {_what(rule.tool_name, rule.conditions)} for `{agent.agent_id}`"
    return _edit(name, agent, _put(agent, at, replace(rule, rule_type=after)))


def remove_constraint(policy: Policy, standing: RulePosition, field: str) -> Edit:
    """Remove the constraint on one argument; after the last one the rule goes too."""
    agent, at, rule = _locate(policy, standing)
    rest = _with_constraint(_constraints(rule), field, None, required=False)
    what = _what(rule.tool_name, rule.conditions)
    name = f"remove the constraint of `{field}` of {what} for `{agent.agent_id}`"
    after = replace(rule, rule_type=rest) if rest.arguments else None
    return _edit(name, agent, _put(agent, at, after))


def free_fields(agent: Agent, facts: ToolFacts, operations: Iterable[str] | None = None) -> tuple[str, ...]:
    """The arguments that a new constraint may name, since no rule for exactly these operations constrains them."""
    chosen = None if operations is None else tuple(operations)
    conditions = _conditions(facts, chosen)
    fits = [rule for _, rule in _own(agent, facts) if _fits(rule, ArgumentConstraints, conditions)]
    held = {name for rule in fits for name in _constraints(rule).arguments}
    return tuple(name for name in argument_names(facts, chosen) if name not in held)


def argument_names(facts: ToolFacts, operations: Iterable[str] | None = None) -> tuple[str, ...]:
    """The arguments that some of these operations take (None: any operation), each once, in the tool's own order."""
    chosen = None if operations is None else frozenset(operations)
    rows = [row for row in facts.operations if chosen is None or row.name in chosen]
    return tuple(dict.fromkeys(name for row in rows for name in row.parameters))


def _locate(policy: Policy, standing: RulePosition) -> tuple[Agent, int, ToolRule]:
    """The agent, place and present value of a rule, which its identity finds."""
    agent = agent_of(policy, standing.agent_id)
    for at, rule in enumerate(agent.tool_rules):
        if rule.identity == standing.rule.identity and rule == standing.rule:
            return agent, at, rule
    raise EditRefused(f"tool rule {standing.index + 1} of `{agent.agent_id}` is not what it was")


def _own(agent: Agent, facts: ToolFacts) -> list[tuple[int, ToolRule]]:
    return [
        (index, rule)
        for index, rule in enumerate(agent.tool_rules)
        if rule.tool_name != ANY_TOOL and names_tool(rule.tool_name, facts)
    ]


def _fits(rule: ToolRule, kind: type[object], conditions: tuple[str, ...]) -> bool:
    return isinstance(rule.rule_type, kind) and set(rule.conditions) == set(conditions)


def _conditions(facts: ToolFacts, operations: Iterable[str] | None) -> tuple[str, ...]:
    """The conditions that name exactly these operations, in the tool's own order; none for all operations."""
    if operations is None:
        return ()
    chosen = frozenset(operations)
    if not chosen:
        raise EditRefused("a rule for no operation would never apply: name one, or bind it to all")
    if unknown := sorted(chosen.difference(facts.operation_names)):
        raise EditRefused(f"`{facts.name}` has no operation `{unknown[0]}`")
    return tuple(f"{OPERATION_CONDITION}{name}" for name in facts.operation_names if name in chosen)


def _check_field(facts: ToolFacts, field: str, conditions: tuple[str, ...]) -> None:
    named = [text.removeprefix(OPERATION_CONDITION) for text in conditions if text.startswith(OPERATION_CONDITION)]
    taken = argument_names(facts, named or None)
    if not field or (taken and field not in taken):
        listed = ", ".join(f"`{name}`" for name in taken[:8])
        raise EditRefused(f"{_what(facts.name, conditions)} takes no `{field}`; it takes {listed or 'nothing'}")


def _constraints(rule: ToolRule) -> ArgumentConstraints:
    kind = rule.rule_type
    if not isinstance(kind, ArgumentConstraints):
        raise EditRefused("the rule constrains no arguments")
    return kind


def _with_constraint(
    held: ArgumentConstraints, field: str, schema: JsonValue, *, required: bool
) -> ArgumentConstraints:
    """The constraints with a new one on an argument; ``schema`` None: any value."""
    fields = {name: said for name, said in held.fields.items() if schema is not None or name != field}
    if schema is not None:
        fields[field] = schema
    others = (*held.required, field) if required and field not in held.required else held.required
    return ArgumentConstraints(fields, others if required else tuple(name for name in others if name != field))


def _verb(schema: JsonValue) -> str:
    return "require" if schema is None else "constrain"


def _split(rule: ToolRule, field: str, conditions: tuple[str, ...]) -> tuple[ToolRule, ...]:
    """The rule without its constraint on one argument, and a second rule with this constraint under other
    conditions.
    """
    held = _constraints(rule)
    if field not in held.arguments:
        raise EditRefused(f"the rule does not constrain `{field}` any more")
    if len(held.arguments) == 1:
        return (replace(rule, conditions=conditions),)
    own = _with_constraint(ArgumentConstraints({}), field, held.fields.get(field), required=field in held.required)
    beside = ToolRule(rule.tool_name, own, conditions, rule.priority)
    return (replace(rule, rule_type=_with_constraint(held, field, None, required=False)), beside)


def _facts_of(catalog: Sequence[ToolFacts], agent: Agent, tool: str) -> ToolFacts:
    """The facts of the tool, in the major that the agent sees."""
    found = pick_tools([facts for facts in catalog if facts.name == tool], agent.tools).get(tool)
    if found is None:
        raise EditRefused(f"no tool `{tool}`")
    return found


def _facts_named(catalog: Sequence[ToolFacts], agent: Agent, written: str) -> ToolFacts:
    """The tool that a rule of the agent names, in the major that the agent sees."""
    found = [facts for facts in catalog if names_tool(written, facts)]
    if written == ANY_TOOL or not found:
        raise EditRefused(f"no tool `{written}`")
    return next(iter(pick_tools(found, agent.tools).values()))


def _put(agent: Agent, index: int, rule: ToolRule | None) -> tuple[ToolRule, ...]:
    middle = () if rule is None else (rule,)
    return (*agent.tool_rules[:index], *middle, *agent.tool_rules[index + 1 :])


def _edit(name: str, agent: Agent, rules: tuple[ToolRule, ...]) -> Edit:
    return Edit(name, (AgentChange(agent, replace(agent, tool_rules=rules)),))


def _what(tool: str, conditions: tuple[str, ...]) -> str:
    named = [text.removeprefix(OPERATION_CONDITION) for text in conditions if text.startswith(OPERATION_CONDITION)]
    return ", ".join(f"`{tool}.{name}`" for name in named) or f"`{tool}`"
