"""The gate: it decides each call, carries it out and records it.

`gate/callrun.py` makes one run of a call through the tuple of stages in `gate/pipeline.py`. A stage decides by the
state alone (`gate/call.py`): a passage copies the facts of the session and both clocks into it when it begins; the
first stage that needs rates or the grant looks them up, once. That lets `Gate.verify` decide again by the facts of a
proof. Only `gate/stages/execute.py` reserves counters on the live session. The step of a composition is another run of
the same agent and session.

All processes of a workspace share questions and standing approvals (`gate/broker.py`, `gate/approvalstore.py`),
sessions (`gate/sessionstore.py`), earlier calls (`gate/history.py`) and the stop (`gate/stop.py`). `gate/audit.py`
writes the log, and `gate/chain.py` verifies its chain; `gate/audit_index.py` finds calls in it with an index in the
reader's memory, so that writing a row costs nothing more. `gate/ledger.py` makes the calls that their program names:
at most once, suspended until an answer, told again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.compile.view import AgentView
    from gatewright.gate.approval import Approval, ApprovalLimits, ApprovalRequest, Approver, Remember
    from gatewright.gate.approvalstore import ApprovalStore, Grant, StaleQuestion
    from gatewright.gate.audit import AuditLog
    from gatewright.gate.audit_index import AuditChoices, AuditFilter, AuditIndex, CallCount, LoggedCall, ToolCalls
    from gatewright.gate.broker import PermissionBroker
    from gatewright.gate.call import Status
    from gatewright.gate.callrun import Outcome
    from gatewright.gate.chain import AuditReport, AuditRow, RowKind
    from gatewright.gate.decision import Decision, DecisionProof, ProofInvalid, StageTrace
    from gatewright.gate.gate import Gate
    from gatewright.gate.history import RateBook
    from gatewright.gate.inforce import Alarm, ProvenCall, Verification
    from gatewright.gate.port import AuditEntry, AuditUnavailable, Log
    from gatewright.gate.selfcheck import Difference, SelfCheck, selfcheck
    from gatewright.gate.session import Phase, Session
    from gatewright.gate.sessionstore import SessionStore
    from gatewright.gate.stop import Stop, StopSwitch
    from gatewright.record.folder import STATE_FOLDER, is_durable, key_folder, state_folder
__all__ = [
    "STATE_FOLDER",
    "AgentView",
    "Alarm",
    "Approval",
    "ApprovalLimits",
    "ApprovalRequest",
    "ApprovalStore",
    "Approver",
    "AuditChoices",
    "AuditEntry",
    "AuditFilter",
    "AuditIndex",
    "AuditLog",
    "AuditReport",
    "AuditRow",
    "AuditUnavailable",
    "CallCount",
    "Decision",
    "DecisionProof",
    "Difference",
    "Gate",
    "Grant",
    "Log",
    "LoggedCall",
    "Outcome",
    "PermissionBroker",
    "Phase",
    "ProofInvalid",
    "ProvenCall",
    "RateBook",
    "Remember",
    "RowKind",
    "SelfCheck",
    "Session",
    "SessionStore",
    "StageTrace",
    "StaleQuestion",
    "Status",
    "Stop",
    "StopSwitch",
    "ToolCalls",
    "Verification",
    "is_durable",
    "key_folder",
    "selfcheck",
    "state_folder",
]

door(
    __name__,
    {
        "gatewright.gate.inforce": ("Alarm", "ProvenCall", "Verification"),
        "gatewright.gate.approval": ("ApprovalLimits", "Approval", "ApprovalRequest", "Approver", "Remember"),
        "gatewright.gate.approvalstore": ("ApprovalStore", "Grant", "StaleQuestion"),
        "gatewright.gate.audit": ("AuditLog",),
        "gatewright.gate.port": ("AuditEntry", "AuditUnavailable", "Log"),
        "gatewright.gate.audit_index": (
            "AuditChoices",
            "AuditFilter",
            "AuditIndex",
            "CallCount",
            "LoggedCall",
            "ToolCalls",
        ),
        "gatewright.gate.broker": ("PermissionBroker",),
        "gatewright.gate.call": ("Status",),
        "gatewright.gate.chain": ("AuditReport", "AuditRow", "RowKind"),
        "gatewright.gate.decision": ("Decision", "StageTrace", "DecisionProof", "ProofInvalid"),
        "gatewright.gate.gate": ("Gate",),
        "gatewright.gate.callrun": ("Outcome",),
        "gatewright.gate.history": ("RateBook",),
        "gatewright.gate.selfcheck": ("Difference", "SelfCheck", "selfcheck"),
        "gatewright.gate.session": (
            "Phase",
            "Session",
        ),
        "gatewright.gate.sessionstore": ("SessionStore",),
        "gatewright.gate.stop": ("Stop", "StopSwitch"),
        "gatewright.record.folder": ("STATE_FOLDER", "is_durable", "key_folder", "state_folder"),
        "gatewright.compile.view": ("AgentView",),
    },
)
