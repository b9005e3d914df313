"""The page Policy: what holds for all agents at once, its rules and its settings."""

from gatewright_gui.pages.policy.page import PolicyPage

__all__ = ["PolicyPage"]
