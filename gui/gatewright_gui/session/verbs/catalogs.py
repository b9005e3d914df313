"""Verbs on catalogs: added from a client's configuration, removed."""

from collections.abc import Iterable

from gatewright.workspace.api import ClientServer, Edit, Policy, catalogedit, import_servers
from gatewright_gui.session.document import Document


def add_servers(document: Document, servers: Iterable[ClientServer]) -> tuple[str, ...]:
    """Add servers to the policy in one edit; the ids of their catalogs. What is left out is said."""
    result = import_servers(document.policy, tuple(servers))
    if result.reasons:
        document.say("warning", "; ".join(f"`{name}` is not added: {why}" for name, why in result.reasons.items()))
    edit = result.edit
    if edit is None or not document.push(lambda _policy, _tools: edit):
        return ()
    return tuple(result.ids.values())


def remove_catalog(document: Document, catalog_id: str) -> bool:
    """Take a catalog out of the policy, with what is said of its tools."""

    def make(policy: Policy, _tools: object) -> Edit:
        names = [tool.name for tool in document.catalog if tool.origin == catalog_id]
        return catalogedit.remove_catalog(policy, catalog_id, names)

    return document.push(make)
