"""Calls of several operations at once: the plan that such a call comes under, and how often it uses each operation.

A batch comes under everything that each of its operations comes under, the strictest winning. Its name, in approvals,
grants and the log, is the JSON list of the distinct names, sorted: ``["delete", "read"]``; a tool that has an operation
of just that name gets one more pair of brackets. So an approval of one operation never covers a batch with another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from gatewright.base.frozen import frozen
from gatewright.compile.finding import Finding
from gatewright.policy.permission import Action, PathUse
from gatewright.policy.right import OperationRight
from gatewright.policy.tier import SafetyTier
from gatewright.policy.verdict import STRICTNESS, Verdict, strictest
from gatewright.schema.fieldpath import EACH, EACH_MEMBER, holds_batch, steps_of
from gatewright.tools.parameter import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import TypeVar

    from gatewright.compile.condition import CompiledPolicyRule, Constraint
    from gatewright.policy.kinds.capability import CapabilityKind
    from gatewright.policy.right import OperationFacts
    from gatewright.tools.mark import At
    from gatewright.tools.parameter import Parameter
    from gatewright.tools.tool import Tool

    T = TypeVar("T")

MOST_KEPT = 64
_TIERS = tuple(SafetyTier)
_STEPS = {EACH: Step.ITEMS, EACH_MEMBER: Step.VALUES}
_ANY_OF_THEM: Mapping[str, int] = {"": 1}


@frozen
class PathPlan:
    """An argument that is a path on disk, and what a call does there; ``action`` None: the policy says it is none.

    ``at`` leads to it in the arguments; ``default``: what stands for it where it is left out.
    """

    argument: str
    at: At
    action: Action | None
    default: str | None = None


def path_plans(facts: OperationFacts) -> tuple[PathPlan, ...]:
    """The paths that count, and those that are declared to be none; the tier tells what is done where nothing does."""
    found: list[PathPlan] = []
    unknown = Action.READ if facts.tier is SafetyTier.READ_ONLY else Action.OVERWRITE
    for one in facts.paths:
        if one.counts or one.confidence == "declared":
            steps = steps_of(one.argument)
            at = tuple(_STEPS.get(step, step) for step in steps)
            schema = facts.schemas.get(steps[0])
            default = schema.get("default") if isinstance(schema, dict) and len(steps) == 1 else None
            action = None if one.use is PathUse.NONE else unknown if one.use is None else one.use.action
            found.append(PathPlan(one.argument, at, action, default if isinstance(default, str) else None))
    return tuple(found)


@frozen
class OperationPlan:
    """One shown operation. ``roles``: its parameters that are paths, labels, sources. ``asks``: why it asks anyhow.

    ``actions``: what it may do to a place, the mildest first. ``capabilities``: the kinds that it needs.
    ``policy_rules``: those that may match, deny before ask before allow, then file order. ``constraints``: the agent's,
    the tool's own, and those of its sources. ``source_denials``: by source, why a call that goes there is denied.
    ``paths``: its arguments that are paths on disk, though its author did not mark them.
    ``parts``: the operations of a batch, whose plans together this is.
    """

    name: str
    actions: tuple[Action, ...]
    right: OperationRight
    asks: tuple[Finding, ...]
    roles: tuple[Parameter, ...]
    capabilities: frozenset[CapabilityKind] = frozenset()
    policy_rules: tuple[CompiledPolicyRule, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    source_denials: Mapping[str, Finding] = field(default_factory=dict[str, Finding], hash=False)
    paths: tuple[PathPlan, ...] = ()
    parts: tuple[OperationPlan, ...] = ()

    @property
    def each(self) -> tuple[OperationPlan, ...]:
        """The operations of a batch one by one; of a single operation itself."""
        return self.parts or (self,)


class CombinedPlans:
    """The plans of one tool's batches, made when one is first called; few are kept. Safe to use from any thread."""

    def __init__(self, operations: Mapping[str, OperationPlan], names: Iterable[str]) -> None:
        self._operations = operations
        self._names = frozenset(names)
        self._held: dict[frozenset[str], OperationPlan] = {}

    @property
    def kept(self) -> int:
        """How many of them are kept now."""
        return len(self._held)

    def of(self, names: frozenset[str]) -> OperationPlan:
        """The plan of a call of all these shown operations; of one, its own."""
        if len(names) == 1:
            return self._operations[next(iter(names))]
        found = self._held.get(names)
        if found is None:
            found = _combined([self._operations[name] for name in sorted(names)], self._names)
            if len(self._held) >= MOST_KEPT:
                self._held.clear()
            self._held[names] = found
        return found


def uses_of(tool: Tool, called: tuple[str, ...]) -> Mapping[str, int]:
    """How often a call that names these operations uses each.

    Where the field was left out and any of them may be meant, and in an empty batch: one call of any (``""``).
    """
    if not called:
        return _ANY_OF_THEM
    if _names_at_most_one(tool) and called == tuple(spec.name for spec in tool.operations):
        return _ANY_OF_THEM
    return Counter(called)


def _names_at_most_one(tool: Tool) -> bool:
    """Whether a call can name one operation only, so that several stand for a field that was left out."""
    found = tool.operation_set
    return found is None or (len(found.places) == 1 and found.repeats is None and not holds_batch(found.places[0]))


def combined_name(names: Iterable[str], known: frozenset[str]) -> str:
    """The name of a call of several operations; none of the ``known`` ones of the tool has it."""
    name = json.dumps(sorted(names), ensure_ascii=False)
    while name in known:
        name = f"[{name}]"
    return name


def _combined(parts: list[OperationPlan], known: frozenset[str]) -> OperationPlan:
    name = combined_name((part.name for part in parts), known)
    actions = {action for part in parts for action in part.actions}
    rules = _distinct((rule for part in parts for rule in part.policy_rules), lambda rule: rule.address)
    denials: dict[str, Finding] = {}
    for part in reversed(parts):
        denials |= part.source_denials
    return replace(
        parts[0],
        name=name,
        actions=tuple(action for action in Action if action in actions),
        right=_right(name, [part.right for part in parts]),
        asks=_distinct((ask for part in parts for ask in part.asks), _key_of_ask),
        roles=_distinct((role for part in parts for role in part.roles), _key_of_role),
        capabilities=frozenset().union(*(part.capabilities for part in parts)),
        policy_rules=tuple(sorted(rules, key=_rule_order)),
        constraints=_distinct((one for part in parts for one in part.constraints), lambda one: id(one.bound)),
        source_denials=denials,
        paths=_distinct((one for part in parts for one in part.paths), lambda one: (one.argument, one.action)),
        parts=tuple(parts),
    )


def _right(name: str, rights: list[OperationRight]) -> OperationRight:
    reasons = _distinct((reason for right in rights for reason in right.reasons), lambda reason: reason)
    return OperationRight(
        name,
        all(right.ticked for right in rights),
        strictest(*(right.verdict for right in rights)),
        max((right.tier for right in rights), key=_TIERS.index),
        tuple(sorted(reasons, key=lambda reason: -STRICTNESS[reason.verdict])),
        frozenset[Verdict]().union(*(right.by_path for right in rights)),
        frozenset[Verdict]().union(*(right.by_value for right in rights)),
        by_block=frozenset[Verdict]().union(*(right.by_block for right in rights)),
        by_text=frozenset[Verdict]().union(*(right.by_text for right in rights)),
    )


def _rule_order(rule: CompiledPolicyRule) -> tuple[int, int]:
    at = rule.address[-1]
    return -STRICTNESS[rule.rule.effect], at if isinstance(at, int) else 0


def _key_of_role(role: Parameter) -> Hashable:
    return role.name, role.marks, repr(role.default)


def _key_of_ask(ask: Finding) -> Hashable:
    return ask.verdict, ask.code, ask.reason, ask.address, ask.rule_id, ask.scope


def _distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    """The first of each key."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return tuple(found.values())
