"""The strictest of several levels."""

from __future__ import annotations

from collections.abc import Sequence

from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import strictest


def strictest_level(decisions: Sequence[LevelDecision]) -> LevelDecision:
    """The decision that no other one is stricter than; read_only where two differ in both ways (append, partner)."""
    if len(decisions) == 1:
        return decisions[0]
    for one in decisions:
        if all(_at_least_as_strict(one.permission, other.permission) for other in decisions):
            return one
    return LevelDecision(Permission.READ_ONLY)


def _at_least_as_strict(one: Permission, other: Permission) -> bool:
    pairs = ((verdict_for(one, action), verdict_for(other, action)) for action in Action)
    return all(strictest(mine, theirs) is mine for mine, theirs in pairs)
