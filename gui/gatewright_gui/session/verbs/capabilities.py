"""Verbs on an agent's capabilities; scopes come as the text that one types."""

from gatewright.workspace.api import CapabilityKind, EditRefused, Granted, capabilityedit, kind_of, read_scope
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document

__all__ = ["change_capability", "grant", "grant_refusal", "revoke", "scope_example", "scope_tip"]


def scope_example(document: Document, kind: CapabilityKind) -> str:
    """What one may type for a kind: of folders, those that the policy names."""
    return capabilityedit.scope_example(kind, document.policy)


def scope_tip(kind: CapabilityKind) -> str:
    """How the scope of a kind is read, where that is not plain; else empty."""
    if kind not in {CapabilityKind.FS_READ, CapabilityKind.FS_WRITE}:
        return ""
    return tr("Folders as seen from the policy file's own, separated by commas; all that lies below them counts")


def grant(document: Document, agent_id: str, kind: CapabilityKind, scope: str = "") -> bool:
    """Grant one more."""
    return document.push(lambda policy, _tools: capabilityedit.grant(policy, agent_id, read_scope(kind, scope)))


def change_capability(document: Document, granted: Granted, scope: str) -> bool:
    """Another scope for a grant."""
    kind = kind_of(granted.capability)
    return document.push(
        lambda policy, _tools: capabilityedit.change_capability(policy, granted, read_scope(kind, scope))
    )


def revoke(document: Document, granted: Granted) -> bool:
    """Take a grant away."""
    return document.push(lambda policy, _tools: capabilityedit.revoke(policy, granted))


def grant_refusal(kind: CapabilityKind, scope: str) -> str:
    """What is wrong with a scope; empty when nothing is."""
    try:
        read_scope(kind, scope)
    except EditRefused as error:
        return str(error)
    return ""
