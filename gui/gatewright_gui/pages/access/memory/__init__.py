"""What agents remember: blocks, notes of users, archives and conversations, in the operator's hand."""

from gatewright_gui.pages.access.memory.page import MemoryPage

__all__ = ["MemoryPage"]
