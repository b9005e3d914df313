"""Tools: what they declare, how they are written, which there are, and what a model is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.tools.context import ToolExecutionContext
    from gatewright.tools.declaration import Determinism, Normalization, ResourceBounds, ResultType, SideEffect
    from gatewright.tools.decorator import FunctionTool, operation, tool
    from gatewright.tools.defined import DefinedTool
    from gatewright.tools.definition import DefinitionProblem, ToolDefinition, read_definitions
    from gatewright.tools.operation import ArgumentIssue, OperationSpec
    from gatewright.tools.parameter import (
        FileParameter,
        HostParameter,
        LabelParameter,
        Parameter,
        PathParameter,
        Role,
        SourceParameter,
        TableParameter,
        UrlParameter,
        VariableParameter,
    )
    from gatewright.tools.registry import ToolRegistry
    from gatewright.tools.tool import Tool
    from gatewright.tools.usage import UsageRow, rule_sentence, usage_rules

__all__ = [
    "ArgumentIssue",
    "DefinedTool",
    "DefinitionProblem",
    "Determinism",
    "FileParameter",
    "FunctionTool",
    "HostParameter",
    "LabelParameter",
    "Normalization",
    "OperationSpec",
    "Parameter",
    "PathParameter",
    "ResourceBounds",
    "ResultType",
    "Role",
    "SideEffect",
    "SourceParameter",
    "TableParameter",
    "Tool",
    "ToolDefinition",
    "ToolExecutionContext",
    "ToolRegistry",
    "UrlParameter",
    "UsageRow",
    "VariableParameter",
    "operation",
    "read_definitions",
    "rule_sentence",
    "tool",
    "usage_rules",
]

door(
    __name__,
    {
        "gatewright.tools.context": ("ToolExecutionContext",),
        "gatewright.tools.declaration": ("Determinism", "Normalization", "ResourceBounds", "ResultType", "SideEffect"),
        "gatewright.tools.decorator": ("FunctionTool", "operation", "tool"),
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
        "gatewright.tools.registry": ("ToolRegistry",),
        "gatewright.tools.tool": ("Tool",),
        "gatewright.tools.usage": ("UsageRow", "rule_sentence", "usage_rules"),
    },
)
