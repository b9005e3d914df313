"""The main page: agents, the tree of boxes, why, and the preview beside it."""

from gatewright_gui.pages.agents.agents_page import AgentsPage

__all__ = ["AgentsPage"]
