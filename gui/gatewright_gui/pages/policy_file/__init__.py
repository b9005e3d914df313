"""The policy file as it would be saved now."""

from gatewright_gui.pages.policy_file.text_page import TextPage

__all__ = ["TextPage"]
