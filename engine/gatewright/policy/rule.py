"""Rules as values, each a row with a lasting identity: tool rules of an agent, and policy rules.

A tool rule has a kind with its value, a tool, and operations; a kind's class name is its spelling in the policy file.
Durations are seconds. Among the policy rules that match a call the strictest effect wins: deny before ask before allow,
before the default. `dataclasses.replace` and pickling carry a row's identity along; equal rows may differ in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Protocol, get_args

from gatewright.base.errors import EditRefused, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.row import json_table, name_error, whole_number
from gatewright.policy.callrule import AllowedOperations, ArgumentConstraints, Needed, RequiresConsent
from gatewright.policy.sessionrule import (
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    StartConstraint,
)
from gatewright.policy.verdict import ANY_TOOL, Verdict


class Row(Protocol):
    """A value with an identity."""

    @property
    def identity(self) -> int:
        """The number that identifies the row through edits."""
        ...


new_identity = count(os.getpid() << 40).__next__
"""A number that is unique in this process and among those that other processes hand over."""


def place_in(rows: Sequence[Row], row: Row, what: str) -> int:
    """The place of a row among others by its identity. ``what``: its name for the error.

    Raises EditRefused if they lack it: somebody removed it, or it belongs to another policy.
    """
    for at, one in enumerate(rows):
        if one.identity == row.identity:
            return at
    raise EditRefused(f"{what} no longer exists")


@frozen
class PolicyRule:
    """One rule of ``[policy]``. ``agents``, ``tools``, ``operations`` None: all. ``when``: a JSON Schema over the
    canonical arguments; None: always.

    ``message`` is for the operator and, on a denial, for the model too.
    """

    name: str
    effect: Verdict
    agents: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    when: Mapping[str, JsonValue] | bool | None = field(default=None, hash=False)
    message: str | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def is_unconditional(self) -> bool:
        """The rule holds whatever the arguments are."""
        return self.when is None or self.when is True or self.when == {}


DEFAULT_PRIORITY = 5
MAX_PRIORITY = 255
OPERATION_CONDITION = "operation:"

RuleKind = (
    AllowedOperations
    | ContinueLoop
    | ExitLoop
    | StartConstraint
    | RequiresPrecedingTools
    | RequiresFollowingTools
    | ExclusiveGroups
    | RequiredBeforeExit
    | RequiredBeforeExitIf
    | MaxCalls
    | Cooldown
    | RateLimit
    | Periodic
    | RequiresConsent
    | ArgumentConstraints
    | Needed
)

RULE_KINDS: dict[str, type[RuleKind]] = {kind.__name__: kind for kind in get_args(RuleKind)}


@frozen
class ToolRule:
    """One rule on one tool. ``tool_name`` may be ``*`` or ``name@major``; a higher ``priority`` is reported first."""

    tool_name: str
    rule_type: RuleKind
    conditions: tuple[str, ...] = ()
    priority: int = DEFAULT_PRIORITY
    rule_id: str | None = None
    metadata: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def kind(self) -> str:
        """The spelling of the kind in the policy file."""
        return type(self.rule_type).__name__

    @property
    def operations(self) -> frozenset[str] | None:
        """The operations that the conditions name; None if they name none and the rule is for all."""
        prefix = OPERATION_CONDITION
        named = frozenset(text.removeprefix(prefix) for text in self.conditions if text.startswith(prefix))
        return named or None

    def binds(self, operation: str) -> bool:
        """The rule applies to calls of that operation."""
        return self.operations is None or operation in self.operations

    def check(self, report: Report) -> None:
        """Report faults that make it invalid in any file, whichever tools exist."""
        for key, text in (("tool_name", self.tool_name), ("id", self.rule_id)):
            if text is not None and (why := name_error(text)):
                report.error((key,), "bad-value", f"`{key}` {why}")
        self.rule_type.check(("rule_type", self.kind), report)
        whole_number(self.priority, ("priority",), report, "`priority`", 0, MAX_PRIORITY)
        for index, code, message in condition_faults(self.conditions, self.tool_name, self.rule_type):
            report.error(("conditions",) if index is None else ("conditions", index), code, message)
        if self.metadata is not None:
            json_table(dict(self.metadata), ("metadata",), report)


def condition_faults(
    conditions: Sequence[str], tool_name: str | None, kind: RuleKind | None
) -> Iterator[tuple[int | None, str, str]]:
    """The faults of conditions, whichever tools exist: the index (None: all together), a code, a message.

    ``tool_name`` or ``kind`` None: unreadable in this rule.
    """
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if why := name_error(condition.removeprefix(OPERATION_CONDITION)):
            yield index, "bad-condition", f"{shown(condition)} is no condition here: the name {why}"
        elif condition in seen:
            yield index, "duplicate", f"{shown(condition)} stands here twice"
        elif condition.startswith(OPERATION_CONDITION):
            if tool_name == ANY_TOOL:
                message = f"{shown(condition)} names an operation of one tool: it cannot stand with `*`"
                yield index, "operations-on-plain-tool", message
        elif kind is not None and not kind.names_tools:
            message = f"{shown(condition)} is no condition here: `{type(kind).__name__}` takes only `operation:NAME`"
            yield index, "bad-condition", message
        elif kind is not None and condition == ANY_TOOL:
            message = f"`*` is no condition: name the tools that `{type(kind).__name__}` speaks of"
            yield index, "bad-condition", message
        seen.add(condition)
    if kind is not None and kind.names_tools and all(text.startswith(OPERATION_CONDITION) for text in conditions):
        example = "such as `tool` or `tool.operation`"
        yield None, "bad-condition", f"`{type(kind).__name__}` means nothing without a tool in `conditions`, {example}"
