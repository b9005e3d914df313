"""The execution of catalogs' tools: the one place that chooses the executor for each type.

A tool runs only if its exact executor is trusted and its listing still equals the accepted one. The accepted definition
is what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread
from gatewright.policy.document import Catalog, CatalogType
from gatewright.record.process import fork_safe_lock
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.pin import Listing, Pin
from gatewright.tools.schemashape import Runner
from gatewright.workspace.commandfiles import shim_fault
from gatewright.workspace.manifest import Manifest, read_listing
from gatewright.workspace.trust import NOT_TRUSTED, WAITS_FOR_PLACES, require_accepted

if TYPE_CHECKING:
    from gatewright.adapters.subprocess_tool import ToolAdapter
    from gatewright.workspace.servers import Servers

_NOT_RUN = "this tool cannot be run here now; try again later or go on without it"


class CatalogTools:
    """The executor of the tools of one workspace's catalogs; any thread and any loop may use it.

    ``catalog`` returns one under the present policy, ``servers`` the MCP servers, ``adapters`` the adapter's maker for
    each other type. ``pin``, ``trusts`` and ``record`` are as for `Servers`.
    """

    def __init__(
        self,
        folder: Path,
        catalog: Callable[[str], Catalog | None],
        *,
        servers: Callable[[], Servers],
        adapters: Mapping[CatalogType, Callable[[], ToolAdapter]],
        pin: Callable[[Catalog], Pin | None],
        trusts: Callable[[Catalog], bool],
        record: Callable[[str, Listing], Pin],
    ) -> None:
        self._folder, self._catalog, self._servers, self._make = folder, catalog, servers, adapters
        self._pin, self._trusts, self._record = pin, trusts, record
        self._lock = fork_safe_lock()
        self._made: dict[CatalogType, ToolAdapter] = {}
        self._listed: dict[str, tuple[Catalog, Manifest, Listing]] = {}

    def runner(self, catalog: Catalog, definition: ToolDefinition) -> Runner | None:
        """Return the runner of a tool; None if another program runs it. Raises RegistrationError.

        ``definition``: the accepted one, under its catalog's name.
        """
        catalog_id, kind = catalog.catalog_id, catalog.kind
        adapter = self._adapter(kind)
        if adapter is not None:
            adapter.check(definition)
        elif kind is not CatalogType.MCP:
            return None

        async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> object:
            if kind is CatalogType.MCP:
                return await self._servers().run(catalog_id, definition.name, arguments, context)
            return await self._run(catalog, definition, arguments, context)

        return run

    async def refresh(self, catalog_id: str) -> Pin:
        """Ask a server, or read the manifest, for the present tools, and hold the ones that nobody accepted.

        Raises WorkspaceError, and PolicyInvalid if the policy could not be loaded with them.
        """
        catalog = self._require(catalog_id)
        if catalog.kind is CatalogType.MCP:
            return await self._servers().refresh(catalog_id)
        if not self._trusts(catalog):
            raise WorkspaceError("; ".join(NOT_TRUSTED))
        return await in_own_thread(self._record, catalog_id, await self._listing(catalog))

    def close(self) -> None:
        """End all running calls; wait a few seconds at most."""
        with self._lock:
            made, self._made = self._made, {}
        for adapter in made.values():
            adapter.close()

    async def _run(
        self,
        made_of: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> object:
        """Run a call; ``made_of``: the catalog at the time of the decision."""
        catalog_id = made_of.catalog_id
        try:
            catalog, adapter = self._require(catalog_id), self._adapter(made_of.kind)
            if (catalog.kind, catalog.url) != (made_of.kind, made_of.url) or adapter is None:
                raise WorkspaceError("its type or address changed")
            # trust in a module includes its content, which its adapter checks
            if not catalog.module and not await in_own_thread(self._trusts, catalog):
                raise WorkspaceError("; ".join(NOT_TRUSTED))
            if catalog.waits_for_places:
                raise WorkspaceError("; ".join(WAITS_FOR_PLACES))
            listing = await self._listing(catalog)
            await require_accepted(definition.name, catalog, listing, self._pin(catalog), self._record)
            start = self._folder / (catalog.cwd or ".")
            if catalog.is_confined and (fault := await in_own_thread(shim_fault, catalog.command or "", start)):
                raise WorkspaceError("; ".join(fault))
            return await adapter.run(catalog, definition, arguments, context)
        except WorkspaceError as error:
            detail = f"catalog `{catalog_id}`: {error}"
            raise ToolFailure(_NOT_RUN, code="not-run", detail=detail) from None

    async def _listing(self, catalog: Catalog) -> Listing:
        """Read the manifest's present listing. Raises WorkspaceError."""
        held = self._listed.get(catalog.catalog_id)
        before = held[1] if held is not None and held[0] == catalog else None
        if held is not None and before is not None and not before.is_rewritten():
            return held[2]
        listing, manifest = await in_own_thread(read_listing, catalog, self._folder, before)
        self._listed[catalog.catalog_id] = catalog, manifest, listing
        return listing

    def _adapter(self, kind: CatalogType) -> ToolAdapter | None:
        with self._lock:
            if kind not in self._made and (make := self._make.get(kind)) is not None:
                self._made[kind] = make()
            return self._made.get(kind)

    def _require(self, catalog_id: str) -> Catalog:
        catalog = self._catalog(catalog_id)
        if catalog is None or not catalog.kind.is_pinned:
            raise WorkspaceError(f"the policy has no catalog `{catalog_id}` whose tools run here")
        return catalog
