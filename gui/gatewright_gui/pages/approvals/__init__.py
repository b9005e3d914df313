"""The page Approvals: the calls of all processes that wait for an operator, and the answers that still stand."""

from gatewright_gui.pages.approvals.page import ApprovalsPage

__all__ = ["ApprovalsPage"]
