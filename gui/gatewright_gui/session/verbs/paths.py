"""Verbs on which arguments of a stranger's tool are paths. They write `[tools.NAME] paths`."""

from collections.abc import Mapping
from dataclasses import replace

from gatewright.workspace.api import Edit, PathUse, Policy, ToolSettings, ToolSettingsChange
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.operations import settings_key

Paths = Mapping[str, PathUse]


def declared_paths(policy: Policy, tool: str, major: int) -> Paths:
    """What the policy says of the arguments now."""
    settings = policy.tools.get(settings_key(policy, tool, major))
    return settings.paths if settings is not None else {}


def paths_edit(policy: Policy, tool: str, major: int, wanted: Paths) -> Edit:
    """The edit that makes the policy say that of the arguments, and nothing else of the tool's settings."""
    key = settings_key(policy, tool, major)
    before = policy.tools.get(key)
    after = replace(before or ToolSettings(), paths=dict(wanted))
    settings = None if after == ToolSettings() and (before is None or before.paths) else after
    name = tr("say which arguments of `{tool}` are paths", tool=tool)
    return Edit(name, (ToolSettingsChange(key, before, settings),))


def declare_paths(document: Document, tool: str, major: int, wanted: Paths) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: paths_edit(policy, tool, major, wanted))


def paths_refusal(document: Document, tool: str, major: int, wanted: Paths) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: paths_edit(policy, tool, major, wanted))
