"""The gate: what is decided about a call, how it is carried out, what is recorded of it."""

from gatewright.gate.approval import Approval, ApprovalRequest, Approver
from gatewright.gate.audit import AuditEntry, AuditLog, AuditUnavailable, RowKind
from gatewright.gate.call import Status
from gatewright.gate.chain import AuditReport, AuditRow
from gatewright.gate.decision import Decision, RuleRef, StageTrace
from gatewright.gate.gate import Gate
from gatewright.gate.outcome import Outcome
from gatewright.gate.selfcheck import Difference, SelfCheck, selfcheck
from gatewright.gate.session import Phase, Session
from gatewright.gate.state import STATE_FOLDER, key_folder, state_folder
from gatewright.gate.view import AgentView

__all__ = [
    "STATE_FOLDER",
    "AgentView",
    "Approval",
    "ApprovalRequest",
    "Approver",
    "AuditEntry",
    "AuditLog",
    "AuditReport",
    "AuditRow",
    "AuditUnavailable",
    "Decision",
    "Difference",
    "Gate",
    "Outcome",
    "Phase",
    "RowKind",
    "RuleRef",
    "SelfCheck",
    "Session",
    "StageTrace",
    "Status",
    "key_folder",
    "selfcheck",
    "state_folder",
]
