"""The page of what agents do: calls that wait for an answer, every call of the log, and the answers that stand."""

from gatewright_gui.pages.activity.page import ActivityPage

__all__ = ["ActivityPage"]
