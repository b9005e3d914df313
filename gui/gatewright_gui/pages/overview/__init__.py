"""The page Overview: every agent with its share of rights, what is risky, what waits."""

from gatewright_gui.pages.overview.page import OverviewPage

__all__ = ["OverviewPage"]
