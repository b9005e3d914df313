"""Defines tools: their declarations, their registry, and what a model reads of them.

A tool is a Python function (`tools/registry.py`), a class, or a definition in JSON (`tools/definition.py`;
`tools/schemashape.py` makes a tool of it). A tool of an MCP server comes from the server's pin (`tools/pin.py`): the
last listing of the server, and the definitions that the operator accepted, by digest. The difference between the two is
the drift. `tools/server_tool.py` proposes tiers and side effects from hints and names. `tools/defined.py` runs a
composition: it only fills in values, and each step goes through the gate. Built-ins reach everything outside through
the `Ports` of `tools/context.py`; `memory`, `sources` and `adapters` satisfy these by their shape, without importing
this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.tools.context import Ports as Ports
    from gatewright.tools.context import ToolExecutionContext as ToolExecutionContext
    from gatewright.tools.declaration import Determinism as Determinism
    from gatewright.tools.declaration import Normalization as Normalization
    from gatewright.tools.declaration import ResourceBounds as ResourceBounds
    from gatewright.tools.declaration import ResultType as ResultType
    from gatewright.tools.declaration import SideEffect as SideEffect
    from gatewright.tools.defined import DefinedTool as DefinedTool
    from gatewright.tools.definition import DefinitionProblem as DefinitionProblem
    from gatewright.tools.definition import ToolDefinition as ToolDefinition
    from gatewright.tools.definition import read_definitions as read_definitions
    from gatewright.tools.operation import ArgumentIssue as ArgumentIssue
    from gatewright.tools.operation import OperationSpec as OperationSpec
    from gatewright.tools.parameter import FileParameter as FileParameter
    from gatewright.tools.parameter import HostParameter as HostParameter
    from gatewright.tools.parameter import LabelParameter as LabelParameter
    from gatewright.tools.parameter import Parameter as Parameter
    from gatewright.tools.parameter import PathParameter as PathParameter
    from gatewright.tools.parameter import Role as Role
    from gatewright.tools.parameter import SourceParameter as SourceParameter
    from gatewright.tools.parameter import TableParameter as TableParameter
    from gatewright.tools.parameter import UrlParameter as UrlParameter
    from gatewright.tools.parameter import VariableParameter as VariableParameter
    from gatewright.tools.registry import FunctionTool as FunctionTool
    from gatewright.tools.registry import ToolRegistry as ToolRegistry
    from gatewright.tools.registry import operation as operation
    from gatewright.tools.registry import tool as tool
    from gatewright.tools.tool import Tool as Tool

door(
    __name__,
    {
        "gatewright.tools.context": ("Ports", "ToolExecutionContext"),
        "gatewright.tools.declaration": ("Determinism", "Normalization", "ResourceBounds", "ResultType", "SideEffect"),
        "gatewright.tools.registry": ("FunctionTool", "operation", "tool", "ToolRegistry"),
        "gatewright.tools.defined": ("DefinedTool",),
        "gatewright.tools.definition": ("DefinitionProblem", "ToolDefinition", "read_definitions"),
        "gatewright.tools.operation": ("ArgumentIssue", "OperationSpec"),
        "gatewright.tools.parameter": (
            "FileParameter",
            "HostParameter",
            "LabelParameter",
            "Parameter",
            "PathParameter",
            "Role",
            "SourceParameter",
            "TableParameter",
            "UrlParameter",
            "VariableParameter",
        ),
        "gatewright.tools.tool": ("Tool",),
    },
)
