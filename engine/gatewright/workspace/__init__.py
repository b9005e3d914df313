"""Assembly, and the one door for the app and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.gate import Approval as Approval
    from gatewright.gate import ApprovalRequest as ApprovalRequest
    from gatewright.gate import Decision as Decision
    from gatewright.gate import Grant as Grant
    from gatewright.gate import Outcome as Outcome
    from gatewright.gate import PermissionBroker as PermissionBroker
    from gatewright.gate import Remember as Remember
    from gatewright.gate import Session as Session
    from gatewright.gate import Status as Status
    from gatewright.workspace.assembly import audit_log as audit_log
    from gatewright.workspace.assembly import permission_broker as permission_broker
    from gatewright.workspace.migration import migrate as migrate
    from gatewright.workspace.policy_reader import format_names as format_names
    from gatewright.workspace.program import BlockSource as BlockSource
    from gatewright.workspace.program import StreamSource as StreamSource
    from gatewright.workspace.sandbox import CopyCancelled as CopyCancelled
    from gatewright.workspace.sandbox import remove_dead_copies as remove_dead_copies
    from gatewright.workspace.team import verify_export as verify_export
    from gatewright.workspace.template import create_workspace as create_workspace
    from gatewright.workspace.template import example_names as example_names
    from gatewright.workspace.template import name_schema as name_schema
    from gatewright.workspace.template import template_names as template_names
    from gatewright.workspace.template import write_demo as write_demo
    from gatewright.workspace.workspace import Workspace as Workspace

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
        "gatewright.workspace.policy_reader": ("format_names",),
        "gatewright.workspace.migration": ("migrate",),
        "gatewright.workspace.program": ("BlockSource", "StreamSource"),
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
