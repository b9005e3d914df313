"""Verbs on an agent's approvals keys."""

from gatewright.workspace.api import Verdict, agentedit
from gatewright_gui.session.document import Document


def set_approval(document: Document, agent_id: str, key: str, verdict: Verdict) -> bool:
    """Give a key a verdict."""
    return document.push(lambda policy, catalog: agentedit.set_approval(policy, catalog, agent_id, key, verdict))


def rename_approval(document: Document, agent_id: str, key: str, new_key: str) -> bool:
    """The same verdict for another key."""
    return document.push(lambda policy, catalog: agentedit.rename_approval(policy, catalog, agent_id, key, new_key))


def remove_approval(document: Document, agent_id: str, key: str) -> bool:
    """Take a key away."""
    return document.push(lambda policy, _tools: agentedit.remove_approval(policy, agent_id, key))


def approval_refusal(document: Document, agent_id: str, key: str, was: str | None = None) -> str:
    """Why there cannot be such a key; empty when there can."""
    if was is not None:
        return document.refusal(lambda policy, catalog: agentedit.rename_approval(policy, catalog, agent_id, was, key))
    return document.refusal(lambda policy, catalog: agentedit.set_approval(policy, catalog, agent_id, key, Verdict.ASK))
