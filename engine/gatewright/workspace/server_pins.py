"""The MCP servers of an open workspace, for the operator: which are trusted, what they listed, what was accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import PolicyInvalid, WorkspaceError
from gatewright.base.problem import near_hint
from gatewright.gate import AuditEntry
from gatewright.policy.document import Catalog, CatalogType
from gatewright.policy.tier import SafetyTier
from gatewright.tools.pin import Listing, Pin, accept, relisted, write_pin
from gatewright.workspace.pins import CatalogState, accepted_row
from gatewright.workspace.trust import TrustRecords, server_digest

if TYPE_CHECKING:
    from gatewright.workspace.policy_reader import PolicyState


class ServerPins:
    """``state`` answers the policy as it is now, ``put`` writes a pin and puts it in force, with a row for the log."""

    def __init__(
        self,
        policy_path: Path,
        records: TrustRecords,
        state: Callable[[], PolicyState],
        put: Callable[[Catalog, Pin, AuditEntry | None], None],
    ) -> None:
        self._policy_path, self._records, self._state, self._put = policy_path, records, state, put

    def states(self) -> tuple[CatalogState, ...]:
        """The catalogs of the policy as they stand now, in its order."""
        state = self._state()
        tools = state.book.tools(state.policy.catalogs)
        found: list[CatalogState] = []
        for catalog in state.policy.catalogs:
            own = [tool for tool in tools if tool.origin == catalog.catalog_id]
            found.append(
                CatalogState(
                    catalog,
                    state.book.manifest(catalog).pin,
                    self._records.trusts_server(self._policy_path, catalog)
                    if catalog.kind is CatalogType.MCP
                    else None,
                    tuple(tool.name for tool in own),
                    tuple(tool.listed_name for tool in own),
                    tuple(tool.name for tool in own if tool.held),
                )
            )
        return tuple(found)

    def pin(self, catalog_id: str) -> Pin | None:
        """What a server listed and what of it was accepted; None where it was never imported. Raises WorkspaceError."""
        return self._state().book.manifest(self._catalog(catalog_id)).pin

    def trusts(self, catalog_id: str) -> bool:
        """Whether exactly this server was trusted. Raises WorkspaceError."""
        return self._records.trusts_server(self._policy_path, self._catalog(catalog_id))

    def trust(self, catalog_id: str) -> None:
        """Remember that this server may be started or asked. Raises WorkspaceError."""
        self._records.trust_server(self._policy_path, self._catalog(catalog_id))

    def digest(self, catalog_id: str) -> str:
        """What is trusted of a server: the digest of its definition. Raises WorkspaceError."""
        return server_digest(self._policy_path, self._catalog(catalog_id))

    def record(self, catalog_id: str, listing: Listing) -> Pin:
        """Keep what a server says of its tools now. Raises WorkspaceError, PolicyInvalid."""
        before = self.pin(catalog_id)
        after = relisted(before or Pin(), listing)
        if before is None or write_pin(after) != write_pin(before):  # values that are equal may differ: 1 and true
            self._put(self._catalog(catalog_id), after, None)
        return after

    def accept(
        self,
        catalog_id: str,
        names: Iterable[str] | None,
        *,
        tiers: Mapping[tuple[str, str], SafetyTier],
        needs_capabilities: bool,
        instructions: bool,
        who: str,
    ) -> Pin:
        """Accept tools as they are listed, as ``Workspace.accept_tools`` says."""
        catalog, before = self._catalog(catalog_id), self.pin(catalog_id)
        if before is None:
            raise WorkspaceError(f"the tools of catalog `{catalog_id}` were never imported")

        def take(wanted: Iterable[str] | None) -> Pin:
            after = accept(
                before,
                wanted,
                tiers=tiers,
                trusted=catalog.trusted,
                needs_capabilities=needs_capabilities,
                instructions=instructions,
            )
            if after != before:
                self._put(catalog, after, accepted_row(catalog, before, after, who))
            return after

        try:
            return take(names)
        except PolicyInvalid:
            if names is not None or not before.drift.vanished:
                raise
            return take((*before.drift.new, *before.drift.changed))

    def _catalog(self, catalog_id: str) -> Catalog:
        catalogs = self._state().policy.catalogs
        catalog = next((one for one in catalogs if one.catalog_id == catalog_id), None)
        if catalog is None:
            near = near_hint(catalog_id, (one.catalog_id for one in catalogs))
            raise WorkspaceError(f"no catalog `{catalog_id}`{near}")
        if catalog.kind is not CatalogType.MCP:
            raise WorkspaceError(f"catalog `{catalog_id}` is no server: its tools are run by another program")
        return catalog
