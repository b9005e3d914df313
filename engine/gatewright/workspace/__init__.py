"""Assembly, and the one door for the app and the command line. It does not know widgets or options."""

from gatewright.gate import (
    Approval,
    ApprovalRequest,
    Decision,
    Grant,
    Outcome,
    PermissionBroker,
    Remember,
    Session,
    StageTrace,
    Status,
)
from gatewright.workspace.assembly import audit_log, permission_broker
from gatewright.workspace.library import format_names
from gatewright.workspace.pathrow import PathRow
from gatewright.workspace.sandbox import CopyCancelled, Sandbox
from gatewright.workspace.template import create_workspace, template_names, write_demo
from gatewright.workspace.watching import SourceWatching
from gatewright.workspace.workspace import Workspace

__all__ = [
    "Approval",
    "ApprovalRequest",
    "CopyCancelled",
    "Decision",
    "Grant",
    "Outcome",
    "PathRow",
    "PermissionBroker",
    "Remember",
    "Sandbox",
    "Session",
    "SourceWatching",
    "StageTrace",
    "Status",
    "Workspace",
    "audit_log",
    "create_workspace",
    "format_names",
    "permission_broker",
    "template_names",
    "write_demo",
]
