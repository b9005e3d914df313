"""Gatewright: decide, see, try and enforce what each LLM agent may do with each tool.

The public face; every name is loaded when it is first asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatewright.base.errors import (
        GatewrightError,
        NobodyAnswered,
        PolicyInvalid,
        RegistrationError,
        SessionConflict,
        ToolFailure,
        WorkspaceError,
    )
    from gatewright.gate import (
        AgentView,
        Alarm,
        Approval,
        ApprovalLimits,
        ApprovalRequest,
        Approver,
        AuditLog,
        AuditReport,
        AuditRow,
        Decision,
        DecisionProof,
        Gate,
        Grant,
        Outcome,
        PermissionBroker,
        ProofInvalid,
        ProvenCall,
        RateBook,
        Remember,
        Session,
        SessionStore,
        Status,
        Verification,
        selfcheck,
    )
    from gatewright.gate.breach import (
        ConstraintViolation,
        CooldownActive,
        ExclusiveGroupViolation,
        ExitRequirementsPending,
        MaxCallsExceeded,
        OperationNotAllowed,
        OrderingViolation,
        OutsideResult,
        PrerequisitesNotMet,
        RateLimited,
        StartConstraintsNotMet,
        Violation,
        violation_of,
    )
    from gatewright.gate.turn import BrokenCall, ToolCall, ToolCallAccumulator
    from gatewright.policy.document import Agent, Policy, Source
    from gatewright.policy.rule import PolicyRule, ToolRule
    from gatewright.policy.verdict import Verdict
    from gatewright.tools import Tool, ToolRegistry, operation, tool
    from gatewright.tools.context import Ports, ToolExecutionContext
    from gatewright.workspace import Workspace
    from gatewright.workspace.policy_reader import load_policy, save_policy

__all__ = [
    "Agent",
    "AgentView",
    "Alarm",
    "Approval",
    "ApprovalLimits",
    "ApprovalRequest",
    "Approver",
    "AuditLog",
    "AuditReport",
    "AuditRow",
    "BrokenCall",
    "ConstraintViolation",
    "CooldownActive",
    "Decision",
    "DecisionProof",
    "ExclusiveGroupViolation",
    "ExitRequirementsPending",
    "Gate",
    "GatewrightError",
    "Grant",
    "MaxCallsExceeded",
    "NobodyAnswered",
    "OperationNotAllowed",
    "OrderingViolation",
    "Outcome",
    "OutsideResult",
    "PermissionBroker",
    "Policy",
    "PolicyInvalid",
    "PolicyRule",
    "Ports",
    "PrerequisitesNotMet",
    "ProofInvalid",
    "ProvenCall",
    "RateBook",
    "RateLimited",
    "RegistrationError",
    "Remember",
    "Session",
    "SessionConflict",
    "SessionStore",
    "Source",
    "StartConstraintsNotMet",
    "Status",
    "Tool",
    "ToolCall",
    "ToolCallAccumulator",
    "ToolExecutionContext",
    "ToolFailure",
    "ToolRegistry",
    "ToolRule",
    "Verdict",
    "Verification",
    "Violation",
    "Workspace",
    "WorkspaceError",
    "load_policy",
    "operation",
    "save_policy",
    "selfcheck",
    "tool",
    "violation_of",
]

_HOMES = {
    "Agent": "gatewright.policy.document",
    "AgentView": "gatewright.gate",
    "Alarm": "gatewright.gate",
    "Approval": "gatewright.gate",
    "ApprovalLimits": "gatewright.gate",
    "ApprovalRequest": "gatewright.gate",
    "Approver": "gatewright.gate",
    "AuditLog": "gatewright.gate",
    "AuditReport": "gatewright.gate",
    "AuditRow": "gatewright.gate",
    "BrokenCall": "gatewright.gate.turn",
    "ConstraintViolation": "gatewright.gate.breach",
    "CooldownActive": "gatewright.gate.breach",
    "Decision": "gatewright.gate",
    "DecisionProof": "gatewright.gate",
    "ExclusiveGroupViolation": "gatewright.gate.breach",
    "ExitRequirementsPending": "gatewright.gate.breach",
    "Gate": "gatewright.gate",
    "GatewrightError": "gatewright.base.errors",
    "Grant": "gatewright.gate",
    "MaxCallsExceeded": "gatewright.gate.breach",
    "NobodyAnswered": "gatewright.base.errors",
    "OperationNotAllowed": "gatewright.gate.breach",
    "OrderingViolation": "gatewright.gate.breach",
    "Outcome": "gatewright.gate",
    "OutsideResult": "gatewright.gate.breach",
    "PermissionBroker": "gatewright.gate",
    "Policy": "gatewright.policy.document",
    "PolicyInvalid": "gatewright.base.errors",
    "PolicyRule": "gatewright.policy.rule",
    "Ports": "gatewright.tools.context",
    "PrerequisitesNotMet": "gatewright.gate.breach",
    "ProofInvalid": "gatewright.gate",
    "ProvenCall": "gatewright.gate",
    "RateBook": "gatewright.gate",
    "RateLimited": "gatewright.gate.breach",
    "RegistrationError": "gatewright.base.errors",
    "Remember": "gatewright.gate",
    "Session": "gatewright.gate",
    "SessionConflict": "gatewright.base.errors",
    "SessionStore": "gatewright.gate",
    "Source": "gatewright.policy.document",
    "StartConstraintsNotMet": "gatewright.gate.breach",
    "Status": "gatewright.gate",
    "Tool": "gatewright.tools",
    "ToolCall": "gatewright.gate.turn",
    "ToolCallAccumulator": "gatewright.gate.turn",
    "ToolExecutionContext": "gatewright.tools.context",
    "ToolFailure": "gatewright.base.errors",
    "ToolRegistry": "gatewright.tools",
    "ToolRule": "gatewright.policy.rule",
    "Verdict": "gatewright.policy.verdict",
    "Verification": "gatewright.gate",
    "Violation": "gatewright.gate.breach",
    "Workspace": "gatewright.workspace",
    "WorkspaceError": "gatewright.base.errors",
    "load_policy": "gatewright.workspace.policy_reader",
    "operation": "gatewright.tools",
    "save_policy": "gatewright.workspace.policy_reader",
    "selfcheck": "gatewright.gate",
    "tool": "gatewright.tools",
    "violation_of": "gatewright.gate.breach",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module `gatewright` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
