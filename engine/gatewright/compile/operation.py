"""Operations of a tool: policies declare them, texts for the model hide them, and a call may combine them.

``[tools.NAME] operation_field`` and ``operations`` override a tool's own operations. A tool with a declaration is made
once and stays as long as both stay, so that everything compiled from it stays too.

A batch obeys the rules on each of its operations, and the strictest verdict wins. Its name, in approvals, grants and
the log, is the JSON list of the distinct names, sorted: ``["delete", "read"]``; if the tool has an operation of just
that name, it gets one more pair of brackets. So an approval of one operation never covers a batch with another.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.compile.rule_test import CompiledPolicyRule, Constraint, Finding
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.document import Policy, ToolSettings
from gatewright.policy.right import Layer, OperationFacts, OperationRight, Reason, ToolFacts, of_origin
from gatewright.policy.rulematch import settings_of
from gatewright.policy.target import Assessment
from gatewright.policy.verdict import STRICTNESS, Action, PathUse, SafetyTier, Verdict, strictest
from gatewright.record.process import fork_safe_lock
from gatewright.schema.operation import holds_batch
from gatewright.tools.parameter import At, Parameter, at_of
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool

UNUSABLE = "operations-unusable"
MOST_DECLARED = 16_384
Key = tuple[str, int]
_Declaration = tuple[str | None, tuple[str, ...] | None]


@frozen
class _Made:
    """A tool with a declaration applied; ``problem`` is the reason if that failed."""

    of: Tool
    tool: Tool
    facts: ToolFacts
    problem: str = ""


class DeclaredTools:
    """Tools with declarations applied, by tool and declaration; safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[tuple[Key, _Declaration], _Made] = {}
        self._lock = fork_safe_lock()

    def declare(self, tool: Tool, declared: _Declaration) -> _Made:
        """Apply a declaration; if it does not fit, return the tool as it is, with the problem."""
        key = ((tool.name, tool.major), declared)
        with self._lock:
            found = self._held.get(key)
            if found is None or found.of is not tool:
                if len(self._held) >= MOST_DECLARED:
                    self._held.clear()
                found = self._held[key] = _declare(tool, declared)
        return found


@frozen
class Offer:
    """The tools of one moment, as the policy declares them. ``unusable``: the closed tools, each with the reason."""

    tools: Mapping[Key, Tool] = field(hash=False)
    facts: tuple[ToolFacts, ...]
    unusable: Mapping[Key, Reason] = field(hash=False)


def make_offer(policy: Policy, registry: ToolRegistry, held: DeclaredTools) -> Offer:
    """Every registered tool, with the policy's declarations applied."""
    tools, facts = {(tool.name, tool.major): tool for tool in registry.tools()}, registry.facts()
    shut = {key: _unknown_operations(tool) for key, tool in tools.items() if tool.operations_problem}
    if not any(settings.declares for settings in policy.tools.values()):
        return Offer(tools, facts, shut)
    declared = {key: found for key in tools if (found := _settings(policy, key)) is not None}
    made = {key: held.declare(tools[key], (found.operation_field, found.operations)) for key, found in declared.items()}
    return Offer(
        {key: made[key].tool if key in made else tool for key, tool in tools.items()},
        tuple(
            of_origin(made[key].facts, row.origin) if (key := (row.name, row.major)) in made else row for row in facts
        ),
        {**{key: _misfit(policy, key, one.problem) for key, one in made.items() if one.problem}, **shut},
    )


def _unknown_operations(tool: Tool) -> Reason:
    text = f"the operations of `{tool.name}` are not known, so the tool is closed: {tool.operations_problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text)


def _settings(policy: Policy, key: Key) -> ToolSettings | None:
    found = settings_of(policy, *key)
    return found if found is not None and found.declares else None


def _declare(tool: Tool, declared: _Declaration) -> _Made:
    try:
        other = tool.with_operations(*declared)
        return _Made(tool, other, tool.facts() if other is tool else other.facts())
    except GatewrightError as error:
        return _Made(tool, tool, tool.facts(), str(error) or "it does not fit the tool")


def _misfit(policy: Policy, key: Key, problem: str) -> Reason:
    name, major = key
    written = f"{name}@{major}" if f"{name}@{major}" in policy.tools else name
    says = "operation_field" if policy.tools[written].operation_field is not None else "operations"
    address = ("tools", written, says)
    text = f"the operations that the policy declares for `{name}` do not fit it, so the tool is closed: {problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text, address)


EMPTY = "the tool could not do what it was asked"

_CLAUSE = late_regex(r"(?<=[,;:.])\s+|\n+")


class Redactor:
    """Removes mentions of hidden operations and tools from a tool's own message.

    It drops each clause that contains a hidden operation as a word, or a hidden tool in backticks (or bare, unless its
    name is a plain word): the model could not follow such advice.
    """

    def __init__(self, operations: Iterable[str], tools: Iterable[str] = ()) -> None:
        words = [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in sorted(operations) if name]
        self._operations = re.compile("|".join(words), re.IGNORECASE) if words else None
        self._tools = frozenset(name.casefold() for name in tools if name)
        self._longest = max(map(len, self._tools), default=0)

    def __call__(self, text: str) -> str:
        """``text`` without the clauses that name something hidden; a general sentence if none remains."""
        return self.visible(text) or EMPTY

    def visible(self, text: str) -> str:
        """``text`` without the clauses that name something hidden."""
        if not self._names_hidden(text):
            return text
        kept = [clause for clause in _CLAUSE.split(text) if not self._names_hidden(clause)]
        return " ".join(kept).rstrip(" ,;:")

    def _names_hidden(self, text: str) -> bool:
        if self._operations is not None and self._operations.search(text) is not None:
            return True
        if not self._tools:
            return False
        quoted = (_TAIL.split(found.strip(), maxsplit=1)[0] for found in _QUOTED.findall(text))
        return any(map(self._is_hidden, quoted)) or any(map(self._is_hidden, _MADE_UP.findall(text)))

    def _is_hidden(self, word: str) -> bool:
        """Tell whether a word is a hidden tool, or a hidden operation behind its tool's name."""
        word = word.casefold()
        head = word[: self._longest + 1]  # the name of a tool with a dot cannot begin later
        return word in self._tools or any(head[:at] in self._tools for at, letter in enumerate(head) if letter == ".")


_QUOTED = late_regex(r"`([^`]{1,300})`")
_TAIL = late_regex(r"[@(\s]")
_MADE_UP = late_regex(r"(?<![\w.-])[^\W_]+(?:[_.-][^\W_]+)+(?![\w-])")


T = TypeVar("T")

MOST_BATCHES = 64
_TIERS = tuple(SafetyTier)
_ANY_OF_THEM: Mapping[str, int] = {"": 1}


@frozen
class PathPlan:
    """A path argument and the action there; ``action`` None means that the policy declares it to be no path.

    ``at`` leads to it in the arguments; ``default``: its value if omitted.
    """

    argument: str
    at: At
    action: Action | None
    default: str | None = None


def path_plans(facts: OperationFacts) -> tuple[PathPlan, ...]:
    """The paths that the gate judges, and those declared to be none; the tier decides an unknown action."""
    found: list[PathPlan] = []
    unknown = Action.READ if facts.tier is SafetyTier.READ_ONLY else Action.OVERWRITE
    for one in facts.paths:
        if one.counts or one.confidence == "declared":
            at = at_of(one.argument)
            schema = facts.schemas.get(str(at[0]))
            default = schema.get("default") if isinstance(schema, dict) and len(at) == 1 else None
            action = None if one.use is PathUse.NONE else unknown if one.use is None else one.use.action
            found.append(PathPlan(one.argument, at, action, default if isinstance(default, str) else None))
    return tuple(found)


@frozen
class OperationPlan:
    """One shown operation. ``roles``: its parameters that are paths, labels, sources. ``asks``: reasons to ask for
    every call.

    ``actions``: its possible actions at a place, the mildest first. ``capabilities``: the kinds that it needs.
    ``policy_rules``: those that may match, deny before ask before allow, then file order. ``constraints``: those of the
    agent, the tool and its sources. ``source_denials``: by source, the denial of calls to it. ``paths``: its arguments
    that are paths on disk without the author's mark. ``takes_labels``: some role is a label. ``assessment``: the effect
    of every call; None if the tool assesses each call. ``parts``: the operations of a batch, combined in this plan.
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
    takes_labels: bool = False
    assessment: Assessment | None = None
    parts: tuple[OperationPlan, ...] = ()


class CombinedPlans:
    """The plans of one tool's batches, made on first use and kept in a small cache. Safe to use from any thread."""

    def __init__(self, operations: Mapping[str, OperationPlan], names: Iterable[str]) -> None:
        self._operations = operations
        self._names = frozenset(names)
        self._held: dict[frozenset[str], OperationPlan] = {}

    @property
    def count(self) -> int:
        """The number of cached plans."""
        return len(self._held)

    def of(self, names: frozenset[str]) -> OperationPlan:
        """The plan of a call of all these visible operations; a single operation has its own plan."""
        if len(names) == 1:
            return self._operations[next(iter(names))]
        found = self._held.get(names)
        if found is None:
            found = _combine([self._operations[name] for name in sorted(names)], self._names)
            if len(self._held) >= MOST_BATCHES:
                self._held.clear()
            self._held[names] = found
        return found


def uses_of(tool: Tool, called: tuple[str, ...]) -> Mapping[str, int]:
    """The number of uses of each operation in a call that names these operations.

    If a call omits the field and may mean any operation, or is an empty batch, it counts as one call of any (``""``).
    """
    if not called:
        return _ANY_OF_THEM
    if _names_at_most_one(tool) and called == tuple(spec.name for spec in tool.operations):
        return _ANY_OF_THEM
    return Counter(called)


def _names_at_most_one(tool: Tool) -> bool:
    """Tell whether a call can name at most one operation, so that several mean an omitted field."""
    found = tool.operation_set
    return found is None or (len(found.places) == 1 and found.repeats is None and not holds_batch(found.places[0]))


def batch_name(names: Iterable[str], known: frozenset[str]) -> str:
    """The name of a call of several operations, which none of the ``known`` operations has."""
    name = json.dumps(sorted(names), ensure_ascii=False)
    while name in known:
        name = f"[{name}]"
    return name


def _combine(parts: list[OperationPlan], known: frozenset[str]) -> OperationPlan:
    name = batch_name((part.name for part in parts), known)
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
        takes_labels=any(part.takes_labels for part in parts),
        assessment=None,
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
    """The first item of each key."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return tuple(found.values())
