"""Everything that the app may import from the engine, values included, by floor; programs use `gatewright` itself.

A name loads its module at its first use (`base/late.py`), so importing this is free.

It exceeds 450 lines because it names all that the app may use of the engine.
"""

# the imports are the names of the door
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.base.late import door

if TYPE_CHECKING:
    from gatewright.adapters.hosts import HostScope
    from gatewright.adapters.mcp_client import ServerState, ServerStatus
    from gatewright.adapters.package_runner import read_runner
    from gatewright.base.amount import duration_words, parse_duration_words, rate_words
    from gatewright.base.errors import (
        Address,
        EditRefused,
        ForeignStore,
        GatewrightError,
        JsonRefused,
        PolicyInvalid,
        Problem,
        SchemaError,
        Subject,
        ToolFailure,
        WorkspaceError,
    )
    from gatewright.base.file import write_atomically
    from gatewright.base.frozen import frozen
    from gatewright.base.jsonvalue import JsonValue, parse_object
    from gatewright.base.pattern import folder_of, folder_pattern, is_folder, with_folder, with_pattern
    from gatewright.base.printable import media_type, plain_text, printable
    from gatewright.blocks.difftext import diff_text
    from gatewright.blocks.history import Step
    from gatewright.blocks.schema import (
        Append,
        BlockSchema,
        CompositeSchema,
        ListSchema,
        LogSchema,
        Overwrite,
        Redo,
        Replace,
        TextSchema,
        Undo,
    )
    from gatewright.blocks.schemajson import schema_from_json, schema_keys, type_name, value_schema, whole_value
    from gatewright.builtins import RootTool
    from gatewright.compile.agent import AgentSnapshot
    from gatewright.compile.rule_test import CallsTest, GapTest, GroupTest, OutsideTest, RateTest, SessionTest
    from gatewright.gate import (
        AgentView,
        Approval,
        ApprovalRequest,
        AuditChoices,
        AuditFilter,
        AuditIndex,
        AuditReport,
        AuditRow,
        CallCount,
        Decision,
        Difference,
        Grant,
        LoggedCall,
        Outcome,
        Remember,
        RowKind,
        Session,
        StageTrace,
        StaleQuestion,
        Stop,
        ToolCalls,
    )
    from gatewright.gate.approval import IdRecord
    from gatewright.gate.approvalstore import SCOPE_S
    from gatewright.gate.decision import spell_address, with_lines
    from gatewright.gate.history import Window
    from gatewright.gate.pipeline import STAGES, StepForecast
    from gatewright.gate.sessionstore import ClientSession, ServingProcess
    from gatewright.memory.agentblocks import AgentContext
    from gatewright.memory.blocks import BlockInfo, BlockService
    from gatewright.memory.blocktable import BlockRecord, BlockType
    from gatewright.memory.entrytable import Entry, EntryKind
    from gatewright.policy import agentedit, compositionedit, policyedit, rights, ruleedit, sourceedit
    from gatewright.policy.agentedit import (
        TIER_KEYS,
        Along,
        Granted,
        approval_keys,
        asks_to_read,
        copy_rights,
        needs,
        read_scope,
        rules_by_name,
    )
    from gatewright.policy.capability import Capability, CapabilityKind, FsRead, FsWrite, kind_of
    from gatewright.policy.composition import (
        MAX_STEPS,
        BadReference,
        Composition,
        CompositionStep,
        Reference,
        reference_of,
        references_in,
        step_operations,
    )
    from gatewright.policy.delegation import Lineage
    from gatewright.policy.document import (
        Agent,
        Catalog,
        CatalogType,
        Confine,
        Delegate,
        MemoryWeights,
        OutputCheck,
        PermissionRule,
        PlaceUse,
        Policy,
        Roots,
        SearchEngine,
        SearchProvider,
        ShellBackend,
        Source,
        SourceType,
        ToolSettings,
        Trust,
        Written,
        is_folder_place,
    )
    from gatewright.policy.edit import (
        AgentChange,
        ChangeSet,
        Edit,
        Field,
        ToolSettingsChange,
        apply,
        edit_between,
        inverse,
        text_of,
    )
    from gatewright.policy.glob import PermissionRules, check_pattern
    from gatewright.policy.observe import (
        MOST_OBSERVE_S,
        Comparison,
        NotedCount,
        Observed,
        ObservedKind,
        is_observed,
        observed_parts,
        set_observed,
    )
    from gatewright.policy.reach import (
        PathCondition,
        PlaceRight,
        path_condition,
        place_rights,
        sources_reached,
    )
    from gatewright.policy.right import (
        Effect,
        Layer,
        OperationFacts,
        OperationRight,
        PathArgument,
        Reason,
        RightWord,
        ToolFacts,
        ToolRight,
    )
    from gatewright.policy.rights import Preset, preset_edit, reset_tools
    from gatewright.policy.rightsdiff import (
        AgentDiff,
        ChangeKind,
        RightChange,
        RightState,
        agent_diff,
        policy_diff,
        rights_changes,
    )
    from gatewright.policy.rule import (
        ANY_TOOL,
        DAYS,
        OPERATION_CONDITION,
        AfterOutside,
        AllowedOperations,
        ArgumentConstraints,
        ContinueLoop,
        Cooldown,
        ExclusiveGroups,
        ExitLoop,
        MaxCalls,
        Needed,
        Periodic,
        PolicyRule,
        RateLimit,
        RequiredBeforeExit,
        RequiredBeforeExitIf,
        RequiresConsent,
        RequiresFollowingTools,
        RequiresPrecedingTools,
        RuleKind,
        StartConstraint,
        Times,
        ToolRule,
        UnknownZone,
        available_zones,
        minutes_of,
        place_in,
        zone_of,
    )
    from gatewright.policy.ruleedit import Limit, RulePosition, argument_names, free_fields
    from gatewright.policy.rulematch import all_with_settings, settings_of
    from gatewright.policy.shadow import Shadow, find_shadows
    from gatewright.policy.target import Confinement, Place, ProcessBounds, Refusal, Tree, View
    from gatewright.policy.verdict import (
        TIER_DEFAULTS,
        Action,
        AgentEndpoint,
        BlueskyEndpoint,
        DiscordEndpoint,
        PathUse,
        Permission,
        SafetyTier,
        Verdict,
        bare_names,
        is_more_open,
        names_tool,
        pick_tools,
        selected_catalog,
        selector_of,
        split_name,
        strictest,
        verdict_for,
    )
    from gatewright.policyfile import write_policy_text
    from gatewright.policyfile.reader import key_at
    from gatewright.policyfile.render import literal
    from gatewright.policyfile.table import Key
    from gatewright.schema import (
        Operation,
        OperationSet,
        Schema,
        SchemaChecker,
        Survey,
        discover_operations,
        inline_references,
    )
    from gatewright.schema.constraint import close_constraint
    from gatewright.schema.formats import FORMATS, Format, count_text, count_tokens, format_named
    from gatewright.schema.operation import Level, ToolListing
    from gatewright.schema.phrase import ArgumentError
    from gatewright.sources.basefolder import BaseFolder
    from gatewright.sources.descriptor import entries_of
    from gatewright.sources.filesource import FileSource
    from gatewright.sources.filetext import is_leftover
    from gatewright.sources.held import FileState
    from gatewright.sources.manager import SourceManager
    from gatewright.sources.roomview import RoomViews
    from gatewright.sources.tree import Listing, Overlay
    from gatewright.sources.watch import FolderNews, FolderWatch, Noticed, SourceWatching
    from gatewright.tools import ArgumentIssue
    from gatewright.tools.parameter import Role
    from gatewright.tools.pin import Pin
    from gatewright.tools.shape import PLAIN
    from gatewright.tools.tool import Tool
    from gatewright.workspace.assembly import audit_log
    from gatewright.workspace.attachment import roots_by_tool
    from gatewright.workspace.client_file import (
        ClientEdit,
        ClientFile,
        ClientServer,
        ClientStatus,
        client_files,
        client_status,
        content_of,
        gateway_command,
        gateway_edit,
        import_servers,
        read_client_file,
        read_typed_servers,
        write_client_file,
    )
    from gatewright.workspace.export import verify_export
    from gatewright.workspace.host_files import (
        HostEdit,
        host_around,
        host_file,
        host_of,
        install_edit,
        project_of,
        uninstall_edit,
        write_host_file,
    )
    from gatewright.workspace.host_status import (
        HostCalls,
        HostFact,
        HostLevel,
        HostStatus,
        find_hosts,
        host_effects,
        host_files_there,
    )
    from gatewright.workspace.pins import CatalogState, Waiting, waiting
    from gatewright.workspace.policy_reader import text_problems
    from gatewright.workspace.policytext import WorkspaceImage
    from gatewright.workspace.replay import (
        Replay,
        ReplayedCall,
        decide_again,
        lacks_of,
        lineage_of,
        replay,
        replay_rule,
        touches,
        worked_in,
    )
    from gatewright.workspace.sandbox import Copied, CopyCancelled, Sandbox, remove_dead_copies
    from gatewright.workspace.template import (
        SECRETS,
        Beginning,
        begin_workspace,
        create_workspace,
        example_names,
        write_agent_policy,
        write_demo,
    )
    from gatewright.workspace.toolfile import (
        ToolFile,
        catalog_of_file,
        place_manifest,
        propose_id,
        read_tool_file,
        says_tools,
    )
    from gatewright.workspace.trust import Journal, TypedText, TypedTexts, UnsavedPolicy, write_beside
    from gatewright.workspace.workspace import Workspace

# fmt: off
door(
    __name__,
    {
        # base
        "gatewright.base.file": ("write_atomically",),
        "gatewright.base.amount": ("duration_words", "parse_duration_words", "rate_words"),
        "gatewright.base.errors": (
            "EditRefused", "ForeignStore", "GatewrightError", "JsonRefused", "PolicyInvalid", "SchemaError",
            "ToolFailure", "WorkspaceError", "Address", "Problem", "Subject",
        ),
        "gatewright.base.pattern": ("folder_of", "folder_pattern", "is_folder", "with_folder", "with_pattern"),
        "gatewright.base.frozen": ("frozen",),
        "gatewright.base.jsonvalue": ("JsonValue", "parse_object"),
        "gatewright.base.printable": ("media_type", "plain_text", "printable"),
        # schema
        "gatewright.schema": (
            "Operation", "OperationSet", "Schema", "SchemaChecker", "Survey", "discover_operations",
            "inline_references",
        ),
        "gatewright.schema.constraint": ("close_constraint",),
        "gatewright.schema.formats": ("FORMATS", "Format", "format_named", "count_text", "count_tokens"),
        "gatewright.schema.operation": ("Level", "ToolListing"),
        "gatewright.schema.phrase": ("ArgumentError",),
        # blocks
        "gatewright.blocks.difftext": ("diff_text",),
        "gatewright.blocks.schema": (
            "Append", "Overwrite", "Redo", "Replace", "Undo", "BlockSchema", "CompositeSchema", "ListSchema",
            "LogSchema", "TextSchema",
        ),
        "gatewright.blocks.history": ("Step",),
        "gatewright.blocks.schemajson": ("schema_from_json", "schema_keys", "type_name", "value_schema", "whole_value"),
        # policy
        "gatewright.policy": (
            "agentedit", "compositionedit", "policyedit",
            "rights", "ruleedit", "sourceedit",
        ),
        "gatewright.policy.agentedit": (
            "TIER_KEYS", "Along", "Granted", "approval_keys", "asks_to_read", "copy_rights", "needs", "read_scope",
            "rules_by_name",
        ),
        "gatewright.policy.composition": (
            "BadReference", "Composition", "CompositionStep", "MAX_STEPS", "Reference", "step_operations",
            "reference_of", "references_in",
        ),
        "gatewright.policy.delegation": ("Lineage",),
        "gatewright.policy.observe": (
            "Comparison", "MOST_OBSERVE_S", "NotedCount", "Observed", "ObservedKind", "is_observed", "observed_parts",
            "set_observed",
        ),
        "gatewright.policy.target": ("Confinement", "Place", "ProcessBounds", "Refusal", "Tree", "View"),
        "gatewright.policy.document": (
            "Agent", "Catalog", "CatalogType", "Confine", "Delegate", "MemoryWeights", "OutputCheck", "PermissionRule",
            "PlaceUse", "Policy", "Roots", "SearchEngine", "SearchProvider", "ShellBackend", "Source", "SourceType",
            "ToolSettings", "Trust", "Written", "is_folder_place",
        ),
        "gatewright.policy.edit": (
            "AgentChange", "ChangeSet", "Edit", "Field", "ToolSettingsChange", "apply",
            "edit_between", "inverse", "text_of",
        ),
        "gatewright.policy.verdict": (
            "AgentEndpoint", "BlueskyEndpoint", "DiscordEndpoint", "TIER_DEFAULTS", "Action", "PathUse", "Permission",
            "SafetyTier", "Verdict", "bare_names", "pick_tools", "is_more_open", "names_tool", "selected_catalog",
            "selector_of", "split_name", "strictest", "verdict_for",
        ),
        "gatewright.policy.glob": ("PermissionRules", "check_pattern"),
        "gatewright.policy.rule": (
            "ANY_TOOL", "OPERATION_CONDITION", "AfterOutside", "AllowedOperations", "ArgumentConstraints",
            "ContinueLoop", "Cooldown", "ExclusiveGroups", "ExitLoop", "MaxCalls", "Needed", "Periodic", "PolicyRule",
            "RateLimit", "RequiredBeforeExit", "RequiredBeforeExitIf", "RequiresConsent",
            "RequiresFollowingTools", "RequiresPrecedingTools", "RuleKind", "StartConstraint", "Times", "ToolRule",
            "UnknownZone", "DAYS", "available_zones", "minutes_of", "place_in", "zone_of",
        ),
        "gatewright.policy.capability": ("Capability", "CapabilityKind", "FsRead", "FsWrite", "kind_of"),
        "gatewright.policy.reach": (
            "PathCondition", "PlaceRight", "path_condition", "place_rights",
            "sources_reached",
        ),
        "gatewright.policy.rights": ("Preset", "preset_edit", "reset_tools"),
        "gatewright.policy.right": (
            "Effect", "Layer", "OperationFacts", "OperationRight", "PathArgument", "Reason", "RightWord", "ToolFacts",
            "ToolRight",
        ),
        "gatewright.policy.rightsdiff": (
            "AgentDiff", "ChangeKind", "RightChange", "RightState", "agent_diff", "policy_diff",
            "rights_changes",
        ),
        "gatewright.policy.ruleedit": ("Limit", "RulePosition", "free_fields", "argument_names"),
        "gatewright.policy.rulematch": ("all_with_settings", "settings_of"),
        "gatewright.policy.shadow": ("Shadow", "find_shadows"),
        # policyfile
        "gatewright.policyfile": ("write_policy_text",),
        "gatewright.policyfile.reader": ("key_at",),
        "gatewright.policyfile.render": ("literal",),
        "gatewright.policyfile.table": ("Key",),
        # sources
        "gatewright.sources.filesource": ("FileSource",),
        "gatewright.sources.held": ("FileState",),
        "gatewright.sources.watch": ("Noticed", "SourceWatching", "FolderNews", "FolderWatch"),
        "gatewright.sources.basefolder": ("BaseFolder",),
        "gatewright.sources.descriptor": ("entries_of",),
        "gatewright.sources.filetext": ("is_leftover",),
        "gatewright.sources.manager": ("SourceManager",),
        "gatewright.sources.tree": ("Listing", "Overlay"),
        "gatewright.sources.roomview": ("RoomViews",),
        # memory
        "gatewright.memory.blocks": ("BlockInfo", "BlockService"),
        "gatewright.memory.agentblocks": ("AgentContext",),
        "gatewright.memory.entrytable": ("Entry", "EntryKind"),
        "gatewright.memory.blocktable": ("BlockRecord", "BlockType"),
        # tools
        "gatewright.tools": ("ArgumentIssue",),
        "gatewright.tools.parameter": ("Role",),
        "gatewright.tools.pin": ("Pin",),
        "gatewright.tools.shape": ("PLAIN",),
        "gatewright.tools.tool": ("Tool",),
        # builtins
        "gatewright.builtins": ("RootTool",),
        # compile
        "gatewright.compile.agent": ("AgentSnapshot",),
        "gatewright.compile.rule_test": ("CallsTest", "GapTest", "GroupTest", "OutsideTest", "RateTest", "SessionTest"),
        # gate
        "gatewright.gate": (
            "AgentView", "Approval", "ApprovalRequest", "AuditChoices", "AuditFilter", "AuditIndex", "AuditReport",
            "AuditRow", "CallCount", "Decision", "Difference", "Grant", "LoggedCall", "Outcome", "Remember", "RowKind",
            "Session", "StageTrace", "StaleQuestion", "Stop", "ToolCalls",
        ),
        "gatewright.gate.approvalstore": ("SCOPE_S",),
        "gatewright.gate.decision": ("spell_address", "with_lines"),
        "gatewright.gate.pipeline": ("StepForecast", "STAGES"),
        "gatewright.gate.approval": ("IdRecord",),
        "gatewright.gate.history": ("Window",),
        "gatewright.gate.sessionstore": ("ClientSession", "ServingProcess"),
        # adapters
        "gatewright.adapters.mcp_client": ("ServerState", "ServerStatus"),
        "gatewright.adapters.package_runner": ("read_runner",),
        "gatewright.adapters.hosts": ("HostScope",),
        # workspace
        "gatewright.workspace.assembly": ("audit_log",),
        "gatewright.workspace.template": (
            "SECRETS", "Beginning", "begin_workspace", "create_workspace", "example_names",
            "write_agent_policy", "write_demo",
        ),
        "gatewright.workspace.client_file": (
            "ClientEdit", "ClientFile", "ClientServer", "ClientStatus", "client_files", "client_status", "content_of",
            "gateway_command", "gateway_edit", "import_servers", "read_client_file", "read_typed_servers",
            "write_client_file",
        ),
        "gatewright.workspace.export": ("verify_export",),
        "gatewright.workspace.host_files": (
            "HostEdit", "host_around", "host_file", "host_of", "install_edit", "project_of", "uninstall_edit",
            "write_host_file",
        ),
        "gatewright.workspace.host_status": (
            "HostCalls", "HostFact", "HostLevel", "HostStatus", "find_hosts", "host_effects", "host_files_there",
        ),
        "gatewright.workspace.sandbox": ("Copied", "CopyCancelled", "Sandbox", "remove_dead_copies"),
        "gatewright.workspace.trust": ("Journal", "TypedText", "TypedTexts", "UnsavedPolicy", "write_beside"),
        "gatewright.workspace.pins": ("CatalogState", "Waiting", "waiting"),
        "gatewright.workspace.policytext": ("WorkspaceImage",),
        "gatewright.workspace.policy_reader": ("text_problems",),
        "gatewright.workspace.replay": (
            "Replay", "ReplayedCall", "decide_again", "lacks_of", "lineage_of", "replay", "replay_rule", "touches",
            "worked_in",
        ),
        "gatewright.workspace.attachment": ("roots_by_tool",),
        "gatewright.workspace.toolfile": (
            "ToolFile", "catalog_of_file", "place_manifest", "propose_id", "read_tool_file", "says_tools",
        ),
        "gatewright.workspace.workspace": ("Workspace",),
    },
)
# fmt: on

MODULES_NEEDED_LATER = (
    "gatewright.policyfile.patch",
    "gatewright.workspace.refusal",
    "gatewright.gate.callrun",
    "gatewright.workspace.template",
    "gatewright.workspace.sandbox",
    "gatewright.workspace.export",
    "gatewright.workspace.client_file",
    "gatewright.workspace.servers",
    "gatewright.workspace.confining",
    "gatewright.workspace.pins",
    "gatewright.gate.sessionstore",
)
"""Modules for the first edit, call or export; idle code may import them before."""
