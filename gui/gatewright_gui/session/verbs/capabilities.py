"""Verbs on an agent's capabilities; scopes come as the text that one types."""

from collections.abc import Iterable

from gatewright.workspace.api import (
    CapabilityKind,
    EditRefused,
    Granted,
    OperationRight,
    ToolRight,
    agentedit,
    kind_of,
    read_scope,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.session.document import Document

__all__ = [
    "ACCESS_WORDS",
    "change_capability",
    "grant",
    "grant_refusal",
    "lacking_kind",
    "ready_scope",
    "revoke",
    "scope_example",
    "scope_tip",
]
ACCESS_WORDS = {
    CapabilityKind.NET_READ: mark("network access"),
    CapabilityKind.NET_WRITE: mark("leave to send to the network"),
    CapabilityKind.FS_READ: mark("read access"),
    CapabilityKind.FS_WRITE: mark("write access"),
    CapabilityKind.DB_READ: mark("access to databases"),
    CapabilityKind.DB_WRITE: mark("leave to change databases"),
    CapabilityKind.EXEC: mark("leave to run programs"),
    CapabilityKind.WASM_EXEC: mark("leave to run modules"),
    CapabilityKind.CLOCK_READ: mark("the clock"),
    CapabilityKind.ENV_READ: mark("environment variables"),
    CapabilityKind.ADVANCED_EDIT: mark("advanced editing"),
}
"""The kinds in words that end `needs ...` and `Grant ...`."""
_FOLDERS = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})


def scope_example(document: Document, kind: CapabilityKind) -> str:
    """An example of what one may type for a kind: of folders, those that the policy names."""
    return agentedit.scope_example(kind, document.policy)


def ready_scope(document: Document, kind: CapabilityKind) -> str | None:
    """The scope that a grant would have without a question: the folders of the policy, "" for a kind without one.

    None: somebody has to say it.
    """
    policy, example = document.policy, scope_example(document, kind)
    is_named = kind in _FOLDERS and bool(policy.roots.folders or policy.file_sources)
    return example if is_named or not example else None


def lacking_kind(
    document: Document, agent_id: str, tool: ToolRight, rows: Iterable[OperationRight]
) -> CapabilityKind | None:
    """The first kind that a ticked one of these operations needs and the agent is not granted; None: it has all."""
    agent = document.policy.agents.get(agent_id)
    if agent is None:
        return None
    held = {kind_of(one) for one in agent.capabilities if one.scope != ()}
    needed = {facts.name: facts.capabilities for facts in tool.facts.operations}
    lacks = {kind for row in rows if row.ticked for kind in needed.get(row.operation, ()) if kind not in held}
    return next((kind for kind in CapabilityKind if kind in lacks), None)


def scope_tip(kind: CapabilityKind) -> str:
    """Words on how the scope of a kind is read, where that is not plain; else empty."""
    if kind not in _FOLDERS:
        return ""
    return tr("Folders as seen from the policy file's own, separated by commas; all that lies below them counts")


def grant(document: Document, agent_id: str, kind: CapabilityKind, scope: str = "") -> bool:
    """Grant one more."""
    return document.push(lambda policy, _tools: agentedit.grant(policy, agent_id, read_scope(kind, scope)))


def change_capability(document: Document, granted: Granted, scope: str) -> bool:
    """Another scope for a grant."""
    kind = kind_of(granted.capability)
    return document.push(lambda policy, _tools: agentedit.change_capability(policy, granted, read_scope(kind, scope)))


def revoke(document: Document, granted: Granted) -> bool:
    """Take a grant away."""
    return document.push(lambda policy, _tools: agentedit.revoke(policy, granted))


def grant_refusal(kind: CapabilityKind, scope: str) -> str:
    """The fault in a scope; empty when there is none."""
    try:
        read_scope(kind, scope)
    except EditRefused as error:
        return str(error)
    return ""
