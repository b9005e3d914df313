"""The page of the audit log: who called what when, why it was decided so, and what to do about it."""

from gatewright_gui.pages.activity.page import CallsPage

__all__ = ["CallsPage"]
