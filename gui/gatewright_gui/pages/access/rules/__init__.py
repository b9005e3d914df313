"""The page Policy: what holds for all agents at once, its rules and its settings."""

from gatewright_gui.pages.access.rules.page import RulesPage

__all__ = ["RulesPage"]
