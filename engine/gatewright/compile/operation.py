"""Operations of a tool: as the policy declares them, hidden in texts for the model, and several named by one call.

``[tools.NAME] operation_field`` and ``operations`` are put over what a tool is. A declared tool is made once and kept
as long as the tool and the declaration are the same, so that what is compiled from it stays too.

A batch comes under everything that each of its operations comes under, the strictest winning. Its name, in approvals,
grants and the log, is the JSON list of the distinct names, sorted: ``["delete", "read"]``; a tool that has an operation
of just that name gets one more pair of brackets. So an approval of one operation never covers a batch with another.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.base.late import late_regex
from gatewright.compile.rule_test import Finding
from gatewright.policy.document import Policy, ToolSettings
from gatewright.policy.right import Layer, OperationRight, Reason, ToolFacts
from gatewright.policy.rulematch import settings_of
from gatewright.policy.verdict import STRICTNESS, Action, PathUse, SafetyTier, Verdict, strictest
from gatewright.record.process import fork_safe_lock
from gatewright.schema.operation import EACH, EACH_MEMBER, holds_batch, steps_of
from gatewright.tools.parameter import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from gatewright.compile.rule_test import CompiledPolicyRule, Constraint
    from gatewright.policy.kinds.capability import CapabilityKind
    from gatewright.policy.right import OperationFacts
    from gatewright.policy.target import Assessment
    from gatewright.tools.mark import At
    from gatewright.tools.parameter import Parameter
    from gatewright.tools.registry import ToolRegistry
    from gatewright.tools.tool import Tool


UNUSABLE = "operations-unusable"
MOST_DECLARED = 16_384
Key = tuple[str, int]
_Declaration = tuple[str | None, tuple[str, ...] | None]


@frozen
class _Made:
    """What a declaration made of a tool, or, with ``problem``, why it could not."""

    of: Tool
    tool: Tool
    facts: ToolFacts
    problem: str = ""


class DeclaredTools:
    """What declarations made of tools, by tool and declaration; safe to use from any thread."""

    def __init__(self) -> None:
        self._held: dict[tuple[Key, _Declaration], _Made] = {}
        self._lock = fork_safe_lock()

    def made(self, tool: Tool, declared: _Declaration) -> _Made:
        """The tool so read. One that cannot be read so is as it was, with the problem."""
        key = ((tool.name, tool.major), declared)
        with self._lock:
            found = self._held.get(key)
            if found is None or found.of is not tool:
                if len(self._held) >= MOST_DECLARED:
                    self._held.clear()
                found = self._held[key] = _made(tool, declared)
        return found


@frozen
class Offer:
    """The tools of one moment, as the policy declares them. ``unusable``: those that are closed, and why."""

    tools: Mapping[Key, Tool] = field(hash=False)
    facts: tuple[ToolFacts, ...]
    unusable: Mapping[Key, Reason] = field(hash=False)


def offered(policy: Policy, registry: ToolRegistry, held: DeclaredTools) -> Offer:
    """Every registered tool, those that the policy declares in that form."""
    tools, facts = {(tool.name, tool.major): tool for tool in registry.tools()}, registry.facts()
    shut = {key: _unlisted(tool) for key, tool in tools.items() if tool.operations_problem}
    if not any(settings.declares for settings in policy.tools.values()):
        return Offer(tools, facts, shut)
    declared = {key: found for key in tools if (found := _settings(policy, key)) is not None}
    made = {key: held.made(tools[key], (found.operation_field, found.operations)) for key, found in declared.items()}
    return Offer(
        {key: made[key].tool if key in made else tool for key, tool in tools.items()},
        tuple(made[key].facts if (key := (row.name, row.major)) in made else row for row in facts),
        {**{key: _closed(policy, key, one.problem) for key, one in made.items() if one.problem}, **shut},
    )


def _unlisted(tool: Tool) -> Reason:
    text = f"the operations of `{tool.name}` are not known, so the tool is closed: {tool.operations_problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text)


def _settings(policy: Policy, key: Key) -> ToolSettings | None:
    found = settings_of(policy, *key)
    return found if found is not None and found.declares else None


def _made(tool: Tool, declared: _Declaration) -> _Made:
    try:
        other = tool.declared(*declared)
        return _Made(tool, other, tool.facts() if other is tool else other.facts())
    except GatewrightError as error:
        return _Made(tool, tool, tool.facts(), str(error) or "it cannot be read so")


def _closed(policy: Policy, key: Key, problem: str) -> Reason:
    name, major = key
    written = f"{name}@{major}" if f"{name}@{major}" in policy.tools else name
    says = "operation_field" if policy.tools[written].operation_field is not None else "operations"
    address = ("tools", written, says)
    text = f"the operations that the policy declares for `{name}` do not fit it, so the tool is closed: {problem}"
    return Reason(Layer.TOOLS, Verdict.DENY, UNUSABLE, text, address)


EMPTY = "the tool could not do what it was asked"

_CLAUSE = late_regex(r"(?<=[,;:.])\s+|\n+")


class Redactor:
    """Takes what names a hidden operation or tool out of a tool's own message.

    A clause goes as a whole when a hidden operation stands in it as a word, or a hidden tool in backticks (without them
    too, where its name is no plain word): advice that the model cannot follow is of no use to it.
    """

    def __init__(self, operations: Iterable[str], tools: Iterable[str] = ()) -> None:
        words = [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in sorted(operations) if name]
        self._operations = re.compile("|".join(words), re.IGNORECASE) if words else None
        self._tools = frozenset(name.casefold() for name in tools if name)
        self._longest = max(map(len, self._tools), default=0)

    def __call__(self, text: str) -> str:
        """``text`` without the clauses that name something hidden; a general sentence when none is left."""
        return self.kept(text) or EMPTY

    def kept(self, text: str) -> str:
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
        """Whether it is a hidden tool, or an operation of one."""
        word = word.casefold()
        head = word[: self._longest + 1]  # no longer one can begin with a tool's name and a dot
        return word in self._tools or any(head[:at] in self._tools for at, letter in enumerate(head) if letter == ".")


_QUOTED = late_regex(r"`([^`]{1,300})`")
_TAIL = late_regex(r"[@(\s]")
_MADE_UP = late_regex(r"(?<![\w.-])[^\W_]+(?:[_.-][^\W_]+)+(?![\w-])")


T = TypeVar("T")

MOST_BATCHES = 64
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
    ``takes_labels``: some role is a label. ``assessment``: what every call does; None: the tool says it of each call.
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
    takes_labels: bool = False
    assessment: Assessment | None = None
    parts: tuple[OperationPlan, ...] = ()


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
            if len(self._held) >= MOST_BATCHES:
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
    """The first of each key."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return tuple(found.values())
