"""Verbs on catalogs: added from a client's configuration, removed, and whether what they start is confined."""

from collections.abc import Iterable, Mapping

from gatewright.workspace.api import (
    Catalog,
    ClientServer,
    Edit,
    EditRefused,
    PlaceUse,
    Policy,
    import_servers,
    policyedit,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.document import Document


def add_servers(document: Document, servers: Iterable[ClientServer]) -> tuple[str, ...]:
    """Add servers to the policy in one edit; the ids of their catalogs, new or there before. What is left out is said.

    The values that a client's file has for their variables are lent to the servers, and get into no file.
    """
    chosen = tuple(servers)
    result = import_servers(document.policy, chosen, document.workspace.proposed_places)
    if result.reasons:
        reasons = result.reasons.items()
        said = (tr("`{server}` is not added: {reason}", server=name, reason=why) for name, why in reasons)
        document.say("warning", "; ".join(said))
    edit = result.edit
    if edit is not None and not document.push(lambda _policy, _tools: edit):
        return ()
    ids = {**result.ids, **result.there}
    for server in chosen:
        if server.server_id in ids:
            document.workspace.servers.lend(ids[server.server_id], server.values)
    return tuple(ids.values())


def remove_catalog(document: Document, catalog: Catalog) -> bool:
    """Take a catalog out of the policy, with what is said of its tools; refused where another has its name by now."""
    catalog_id = catalog.catalog_id

    def make(policy: Policy, _tools: object) -> Edit:
        if catalog not in policy.catalogs:
            raise EditRefused(tr("catalog `{catalog}` is gone, or was changed meanwhile", catalog=catalog_id))
        names = [tool.name for tool in document.catalog if tool.origin == catalog_id]
        return policyedit.remove_catalog(policy, catalog_id, names)

    return document.push(make)


def set_places(document: Document, places: Mapping[str, Mapping[str, PlaceUse]]) -> bool:
    """Give the processes of servers these places, in one edit, as a person accepted them; False where it is refused."""

    def make(policy: Policy, _tools: object) -> Edit:
        edits = [policyedit.set_places(policy, name, given) for name, given in places.items()]
        name = edits[0].name if len(edits) == 1 else tr("give {count} servers their places", count=len(edits))
        return Edit(name, tuple(change for edit in edits for change in edit.changes))

    held = {
        catalog.catalog_id: catalog.places if catalog.is_confined else catalog.places or {}
        for catalog in document.policy.catalogs
    }
    return all(held.get(name) == given for name, given in places.items()) or document.push(make)


def unconfine(document: Document, catalog_id: str | None) -> None:
    """Let the server of a catalog, or (None) shell commands, do all that the user may, once a person confirmed it."""
    if document.push(lambda policy, _tools: policyedit.unconfine(policy, catalog_id)):
        of_server = tr("the server of `{catalog}` may do all that you may", catalog=catalog_id)
        document.say(
            "warning", of_server if catalog_id else tr("shell commands may do all that you may"), can_undo=True
        )


def confine(document: Document, catalog_id: str | None) -> None:
    """Have the policy hold again for the server of a catalog, or (None) for shell commands."""
    if document.push(lambda policy, _tools: policyedit.confine(policy, catalog_id)):
        of_server = tr("the server of `{catalog}` is confined again", catalog=catalog_id)
        document.say("info", of_server if catalog_id else tr("shell commands are confined again"), can_undo=True)
