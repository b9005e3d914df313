"""Tool rules: sixteen kinds as values. It does not know sessions, nor how a kind is enforced.

A kind's class name is its spelling in the policy file. Durations are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gatewright.policy.identity import new_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gatewright.base.jsonvalue import JsonValue

DEFAULT_PRIORITY = 5
ANY_TOOL = "*"
OPERATION_CONDITION = "operation:"


@dataclass(frozen=True, slots=True)
class AllowedOperations:
    """Only these operations; several rules intersect."""

    operations: frozenset[str]


@dataclass(frozen=True, slots=True)
class ContinueLoop:
    """After a successful call the loop goes on."""


@dataclass(frozen=True, slots=True)
class ExitLoop:
    """After a successful call the loop ends."""


@dataclass(frozen=True, slots=True)
class StartConstraint:
    """Must succeed before any other tool."""


@dataclass(frozen=True, slots=True)
class RequiresPrecedingTools:
    """The tools of the conditions must have succeeded earlier."""


@dataclass(frozen=True, slots=True)
class RequiresFollowingTools:
    """Must come before the tools of the conditions."""


@dataclass(frozen=True, slots=True)
class ExclusiveGroups:
    """At most one tool of each group per session."""

    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RequiredBeforeExit:
    """Must have succeeded before the loop may end."""


@dataclass(frozen=True, slots=True)
class RequiredBeforeExitIf:
    """As RequiredBeforeExit, if the tools of the conditions were called."""


@dataclass(frozen=True, slots=True)
class MaxCalls:
    """At most ``calls`` per session."""

    calls: int


@dataclass(frozen=True, slots=True)
class Cooldown:
    """At least ``seconds`` from start to start."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Never more than ``calls`` started in any stretch of ``per_s`` seconds, across sessions and processes."""

    calls: int
    per_s: float


@dataclass(frozen=True, slots=True)
class Periodic:
    """The model is reminded every ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RequiresConsent:
    """Ask unless a standing grant covers it."""

    scope: str | None = None


@dataclass(frozen=True, slots=True)
class ArgumentConstraints:
    """Every call's fields must satisfy these schemas; ``required``: the fields that a call must give."""

    fields: Mapping[str, JsonValue] = field(hash=False)
    required: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Every argument that the rule says something of, each once."""
        return tuple(dict.fromkeys((*self.fields, *self.required)))


@dataclass(frozen=True, slots=True)
class Needed:
    """Marks a tool that a source needs."""


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


@dataclass(frozen=True, slots=True)
class ToolRule:
    """One rule on one tool. ``tool_name`` may be ``*`` or ``name@major``; higher ``priority`` is reported first."""

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
        """The operations that the conditions name; None when they name none: then the rule is for all of them."""
        prefix = OPERATION_CONDITION
        named = frozenset(text.removeprefix(prefix) for text in self.conditions if text.startswith(prefix))
        return named or None

    def binds(self, operation: str) -> bool:
        """Whether a call of that operation comes under the rule."""
        return self.operations is None or operation in self.operations
