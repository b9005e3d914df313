"""Safety tiers of tools and operations, and the verdict each has by itself."""

from __future__ import annotations

from gatewright.base.word import Word
from gatewright.policy.verdict import Verdict


class SafetyTier(Word):
    """How much an operation can do, the least first; spelt as in the policy file's ``approvals``."""

    READ_ONLY = "read_only"
    SIDE_EFFECTING = "side_effecting"
    PRIVILEGED = "privileged"


TIER_DEFAULTS = {
    SafetyTier.READ_ONLY: Verdict.ALLOW,
    SafetyTier.SIDE_EFFECTING: Verdict.ALLOW,
    SafetyTier.PRIVILEGED: Verdict.ASK,
}
"""The verdict of a tier where no ``approvals`` key says otherwise."""


def deciding_keys(tool: str, operation: str, tier: SafetyTier) -> tuple[str, ...]:
    """The keys of ``approvals`` that may say what becomes of an operation, the most specific first."""
    return (f"{tool}.{operation}", tool, str(tier)) if operation else (tool, str(tier))
