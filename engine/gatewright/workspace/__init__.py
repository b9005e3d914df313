"""Assembly, and the one door for the app and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.door import door

if TYPE_CHECKING:
    from gatewright.gate import (
        Approval,
        ApprovalRequest,
        Decision,
        Grant,
        Outcome,
        PermissionBroker,
        Remember,
        Session,
        Status,
    )
    from gatewright.workspace.assembly import audit_log, permission_broker
    from gatewright.workspace.library import format_names
    from gatewright.workspace.migration import migrate
    from gatewright.workspace.sandbox import CopyCancelled, remove_dead_copies
    from gatewright.workspace.team import verify_export
    from gatewright.workspace.template import create_workspace, example_names, name_schema, template_names, write_demo
    from gatewright.workspace.workspace import Workspace

__all__ = [
    "Approval",
    "ApprovalRequest",
    "CopyCancelled",
    "Decision",
    "Grant",
    "Outcome",
    "PermissionBroker",
    "Remember",
    "Session",
    "Status",
    "Workspace",
    "audit_log",
    "create_workspace",
    "example_names",
    "format_names",
    "migrate",
    "name_schema",
    "permission_broker",
    "remove_dead_copies",
    "template_names",
    "verify_export",
    "write_demo",
]

door(
    __name__,
    {
        "gatewright.gate": (
            "Approval",
            "ApprovalRequest",
            "Decision",
            "Grant",
            "Outcome",
            "PermissionBroker",
            "Remember",
            "Session",
            "Status",
        ),
        "gatewright.workspace.assembly": ("audit_log", "permission_broker"),
        "gatewright.workspace.library": ("format_names",),
        "gatewright.workspace.migration": ("migrate",),
        "gatewright.workspace.sandbox": ("CopyCancelled", "remove_dead_copies"),
        "gatewright.workspace.team": ("verify_export",),
        "gatewright.workspace.template": (
            "create_workspace",
            "example_names",
            "name_schema",
            "template_names",
            "write_demo",
        ),
        "gatewright.workspace.workspace": ("Workspace",),
    },
)
