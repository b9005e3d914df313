"""Puts a workspace together from its policy file, and is the one door for the app and the command line.

`Workspace` (`workspace/workspace.py`) is the face. `workspace/policy_reader.py` reads the file with its catalogs,
`workspace/assembly.py` makes the gate and what it needs and puts another policy into force, `workspace/program.py`
holds what the program itself brings. `workspace/pins.py` keeps what servers list and what of it was accepted; it alone
knows who executes the tools of which type of catalog, and asks for trust before a call (`workspace/trust.py`).
`workspace/servers.py` runs servers. `workspace/attachment.py` makes the tools that hang on the policy.

`workspace/policytext.py` makes the text of a policy: the least change of a base, which is what was read or saved last,
what somebody typed (`TextChange`), or after an undo over a save the text that the edit was made on.
`workspace/replay.py` decides recorded calls by the file and by what a save would write, and makes up a call of every
tool that may name a file and has the gate decide it. `workspace/confining.py` says where on disk a confinement stands,
and `workspace/commandfiles.py` what a command line needs to run. `workspace/sandbox.py` makes disposable copies.
`workspace/gateway.py` serves agents to MCP clients, by tokens of which `workspace/trust.py` keeps the hashes, and makes
the policy of `serve -- COMMAND`. The worker process of the app gets its workspace from the window, not from the disk
(`Workspace.image`, `of_image`, `follow`), so that what somebody does to the files meanwhile changes no answer.
"""

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
    from gatewright.gate import StaleQuestion as StaleQuestion
    from gatewright.gate import Status as Status
    from gatewright.workspace.assembly import audit_log as audit_log
    from gatewright.workspace.assembly import permission_broker as permission_broker
    from gatewright.workspace.assembly import stop_switch as stop_switch
    from gatewright.workspace.export import verify_export as verify_export
    from gatewright.workspace.migration import migrate as migrate
    from gatewright.workspace.migration import write_migrated as write_migrated
    from gatewright.workspace.policy_reader import format_names as format_names
    from gatewright.workspace.program import BlockSource as BlockSource
    from gatewright.workspace.program import StreamSource as StreamSource
    from gatewright.workspace.sandbox import CopyCancelled as CopyCancelled
    from gatewright.workspace.sandbox import remove_dead_copies as remove_dead_copies
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
            "StaleQuestion",
            "Status",
        ),
        "gatewright.workspace.assembly": ("audit_log", "permission_broker", "stop_switch"),
        "gatewright.workspace.policy_reader": ("format_names",),
        "gatewright.workspace.migration": ("migrate", "write_migrated"),
        "gatewright.workspace.template": (
            "create_workspace",
            "example_names",
            "name_schema",
            "template_names",
            "write_demo",
        ),
        "gatewright.workspace.program": ("BlockSource", "StreamSource"),
        "gatewright.workspace.sandbox": ("CopyCancelled", "remove_dead_copies"),
        "gatewright.workspace.export": ("verify_export",),
        "gatewright.workspace.workspace": ("Workspace",),
    },
)
