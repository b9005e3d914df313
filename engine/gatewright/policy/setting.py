"""``[tools.NAME]`` put over what a tool says of itself: tiers, description, paths.

Everything that asks for a tier or a description asks here, so that approvals, presets and the view agree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gatewright.policy.document import Policy, ToolSettings
from gatewright.policy.permission import PathUse
from gatewright.policy.right import OperationFacts, PathArgument, ToolFacts
from gatewright.policy.tier import SafetyTier

_TIERS = tuple(SafetyTier)


def settings_of(policy: Policy, name: str, major: int) -> ToolSettings | None:
    """The settings of a tool: those of ``name@major`` before those of ``name``."""
    if not policy.tools:
        return None
    return policy.tools.get(f"{name}@{major}") or policy.tools.get(name)


def overridden(policy: Policy, facts: ToolFacts) -> ToolFacts:
    """``facts`` as the policy's settings change them; the same object where they change nothing."""
    settings = settings_of(policy, facts.name, facts.major)
    if settings is None:
        return facts
    if not (settings.safety_tier or settings.operation_tiers or settings.description or settings.paths):
        return facts
    tiers, paths = tuple(sorted(settings.operation_tiers.items())), tuple(settings.paths.items())
    return _overridden(facts, settings.safety_tier, tiers, settings.description, paths)


def overridden_all(policy: Policy, catalog: tuple[ToolFacts, ...]) -> tuple[ToolFacts, ...]:
    """``catalog`` as the policy's settings change it; the same object where they change nothing."""
    if not policy.tools:
        return catalog
    return tuple(overridden(policy, facts) for facts in catalog)


@lru_cache(maxsize=4096)
def _overridden(
    facts: ToolFacts,
    safety_tier: SafetyTier | None,
    operation_tiers: tuple[tuple[str, SafetyTier], ...],
    description: str | None,
    paths: tuple[tuple[str, PathUse], ...],
) -> ToolFacts:
    named = dict(operation_tiers)
    rows = tuple(_row(row, named.get(row.name, safety_tier), description, paths) for row in facts.operations)
    tier = max((row.tier for row in rows), key=_TIERS.index, default=safety_tier or facts.tier)
    return replace(facts, operations=rows, tier=tier, description=description or facts.description)


def _row(
    row: OperationFacts, tier: SafetyTier | None, description: str | None, paths: tuple[tuple[str, PathUse], ...]
) -> OperationFacts:
    text = row.description if row.name else description or row.description
    declared = {name: PathArgument(name, use, "declared") for name, use in paths}
    kept = (declared.pop(one.argument, one) for one in row.paths)
    return replace(row, tier=tier or row.tier, description=text, paths=(*kept, *declared.values()))
