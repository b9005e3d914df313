"""Gatewright: decide, see, try and enforce what each LLM agent may do with each tool.

The public face; every name is loaded when it is first asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright.gate import AgentView, Gate
    from gatewright.policy.document import Policy
    from gatewright.policy.rule import ToolRule
    from gatewright.tools import Tool, ToolRegistry, operation, tool
    from gatewright.workspace import Workspace
    from gatewright.workspace.library import load_policy, save_policy

__all__ = [
    "AgentView",
    "Gate",
    "Policy",
    "Tool",
    "ToolRegistry",
    "ToolRule",
    "Workspace",
    "load_policy",
    "operation",
    "save_policy",
    "tool",
]

_HOMES = {
    "AgentView": "gatewright.gate",
    "Gate": "gatewright.gate",
    "Policy": "gatewright.policy.document",
    "Tool": "gatewright.tools",
    "ToolRegistry": "gatewright.tools",
    "ToolRule": "gatewright.policy.rule",
    "Workspace": "gatewright.workspace",
    "load_policy": "gatewright.workspace.library",
    "operation": "gatewright.tools",
    "save_policy": "gatewright.workspace.library",
    "tool": "gatewright.tools",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `gatewright` has no attribute `{name}`")
    return getattr(import_module(home), name)
