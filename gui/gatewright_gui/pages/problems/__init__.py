"""Everything that is wrong with the policy, and where."""

from gatewright_gui.pages.problems.problems_page import ProblemsPage

__all__ = ["ProblemsPage"]
