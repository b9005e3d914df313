"""Verbs on what a tool takes and answers: which arguments of it are paths, and who writes its results. They write
`[tools.NAME] paths` and `trust`.
"""

from collections.abc import Mapping
from dataclasses import replace

from gatewright.workspace.api import Edit, PathUse, Policy, ToolSettings, ToolSettingsChange, Trust
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.operations import settings_key

Paths = Mapping[str, PathUse]


def declared_paths(policy: Policy, tool: str, major: int) -> Paths:
    """The policy's declaration of the arguments now."""
    return _settings(policy, tool, major).paths


def paths_edit(policy: Policy, tool: str, major: int, wanted: Paths) -> Edit:
    """The edit that makes the policy say that of the arguments, and nothing else of the tool's settings."""
    after = replace(_settings(policy, tool, major), paths=dict(wanted))
    return _edit(policy, tool, major, after, tr("say which arguments of `{tool}` are paths", tool=tool))


def declare_paths(document: Document, tool: str, major: int, wanted: Paths) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: paths_edit(policy, tool, major, wanted))


def paths_refusal(document: Document, tool: str, major: int, wanted: Paths) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: paths_edit(policy, tool, major, wanted))


def declared_trust(policy: Policy, tool: str, major: int) -> Trust | None:
    """The author of the tool's results by the policy; None where it does not say."""
    return _settings(policy, tool, major).trust


def trust_edit(policy: Policy, tool: str, major: int, wanted: Trust | None) -> Edit:
    """The edit that makes the policy name the author of the tool's results; None: as found."""
    after = replace(_settings(policy, tool, major), trust=wanted)
    return _edit(policy, tool, major, after, tr("say who writes the results of `{tool}`", tool=tool))


def declare_trust(document: Document, tool: str, major: int, wanted: Trust | None) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: trust_edit(policy, tool, major, wanted))


def trust_refusal(document: Document, tool: str, major: int, wanted: Trust | None) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: trust_edit(policy, tool, major, wanted))


def _settings(policy: Policy, tool: str, major: int) -> ToolSettings:
    return policy.tools.get(settings_key(policy, tool, major), ToolSettings())


def _edit(policy: Policy, tool: str, major: int, after: ToolSettings, name: str) -> Edit:
    """The edit of a tool's settings; a table that says nothing any more goes, unless an author left it empty."""
    key = settings_key(policy, tool, major)
    before = policy.tools.get(key)
    settings = None if after == ToolSettings() and before != after else after
    return Edit(name, (ToolSettingsChange(key, before, settings),))
