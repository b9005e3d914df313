"""The pins of a workspace's catalogs (on disk, in force, waiting and accepted tools), and the run of an accepted tool.

A tool runs only if its exact executor is trusted and its listing still equals the accepted one. The accepted definition
is what runs. `CatalogTools` alone chooses the executor for each type of catalog.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import PolicyInvalid, ToolFailure, WorkspaceError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread
from gatewright.gate import AuditEntry, RowKind, key_folder, state_folder
from gatewright.policy.document import PINS, Catalog, CatalogType
from gatewright.policy.target import Confinement
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile import read_policy_text
from gatewright.policyfile.reader import value_of
from gatewright.record.process import fork_safe_lock
from gatewright.schema.walk import Schema
from gatewright.sources.ground import place_file, policy_path_of
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.pin import PINNED, Acceptance, Listing, Pin, accept, acceptance, relist, write_pin
from gatewright.tools.schemashape import Runner
from gatewright.tools.server_tool import propose
from gatewright.workspace.manifest import Manifest, read_listing, read_manifest
from gatewright.workspace.policy_reader import PolicyState
from gatewright.workspace.trust import NOT_TRUSTED, WAITS_FOR_PLACES, TrustRecords, require_accepted

if TYPE_CHECKING:
    from gatewright.adapters.subprocess_tool import ToolAdapter
    from gatewright.workspace.servers import Servers


_MOST_RECORDED = 200


@frozen
class CatalogState:
    """One catalog now: its pin (None: never imported, or run by a program), and its trust.

    ``is_trusted`` None: it needs no trust. ``tool_names``: its tools by their names in the policy; ``listed_names``:
    the same by the names of their program; ``held``: the tools that no agent sees until they are accepted. ``fault``:
    why its manifest is unreadable or missing; empty for a server.
    """

    catalog: Catalog
    pin: Pin | None
    is_trusted: bool | None
    tool_names: tuple[str, ...]
    listed_names: tuple[str, ...]
    held: tuple[str, ...]
    fault: str = ""


@frozen
class Waiting:
    """One tool that waits for acceptance; ``change`` is new, changed or vanished.

    ``before``: the accepted state; ``after``: the proposed one, with the reason ``why``. ``description``: as listed;
    ``difference``: between the definitions, as a unified diff.
    """

    name: str
    change: str
    before: Acceptance | None
    after: Acceptance | None
    why: str
    description: str
    difference: str


def waiting(pin: Pin, *, trusted: bool = False, needs_capabilities: bool = True) -> tuple[Waiting, ...]:
    """List the waiting tools of a pin with their proposed states."""
    rows: list[Waiting] = []
    for change, names in (("new", pin.drift.new), ("changed", pin.drift.changed), ("vanished", pin.drift.vanished)):
        for name in names:
            before, listed = pin.accepted.get(name), pin.listing.definitions.get(name)
            after, why = None, ""
            if listed is not None:
                proposed = propose(listed, pin.listing.read[name], trusted=trusted)
                after, why = acceptance(listed, before, proposed, needs_capabilities=needs_capabilities), proposed.why
            old = before.definition if before is not None else None
            is_kept = before is None or old is not None
            text = difference(old, listed) if is_kept else "the accepted definition was not stored\n"
            rows.append(Waiting(name, change, before, after, why, str((listed or {}).get("description") or ""), text))
    return tuple(rows)


def difference(old: Schema | None, new: Schema | None) -> str:
    """Return the unified diff of two definitions of a tool; None stands for a missing one."""
    return text_difference("\n".join(_lines(old)), "\n".join(_lines(new)))


def text_difference(old: str, new: str) -> str:
    """Return a unified diff of two texts."""
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), "accepted", "listed", lineterm="")
    return "".join(f"{row}\n" for row in rows)


def _lines(definition: Schema | None) -> Iterator[str]:
    for key in PINNED if definition is not None else ():
        value = (definition or {}).get(key)
        if isinstance(value, str):
            yield from f"{key}: {value}".splitlines()
        elif value is not None:
            yield from f"{key}: {json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)}".splitlines()


def store(folder: Path, catalog: Catalog, content: bytes) -> None:
    """Write the pin of a catalog below the policy's folder. Raises WorkspaceError."""
    if (folder / PINS).is_symlink():
        raise WorkspaceError(f"cannot write the pin of `{catalog.catalog_id}`: `{PINS}` is a link")
    try:
        place_file(folder, catalog.file, content)
    except OSError as error:
        why = error.strerror or error
        raise WorkspaceError(f"cannot write the pin `{catalog.file}` of `{catalog.catalog_id}`: {why}") from None


async def mend(path: Path, catalog_id: str, *, trust: bool = False, keys: Path | None = None) -> Pin | None:
    """Ask a catalog's server for its tools if its pin is lost or damaged, and pin them without accepting any.

    It is for a policy that cannot open without the pin; ``path`` is its file or folder. A damaged pin stays beside the
    new one. Returns None if nothing has to be repaired. Raises WorkspaceError, also for an untrusted server.
    """
    from gatewright.adapters.confine import Confiner
    from gatewright.adapters.host_proxy import HostProxy
    from gatewright.sources.roomplan import RoomPlanner
    from gatewright.workspace.confining import to_be_listed
    from gatewright.workspace.servers import Servers

    policy_path = policy_path_of(path)
    policy, records = value_of(read_policy_text(policy_path), ""), TrustRecords(key_folder(keys))
    catalog = policy.catalog(catalog_id) if policy is not None else None
    if policy is None or catalog is None or catalog.kind is not CatalogType.MCP:
        return None
    before, state = read_manifest(catalog, policy_path.parent), state_folder(policy_path)
    if before.pin is not None:
        return None
    if trust:
        records.trust_server(policy_path, catalog)

    def record(_: str, listing: Listing) -> Pin:
        damaged = policy_path.parent / catalog.file
        if damaged.is_file() and not damaged.is_symlink():
            damaged.replace(damaged.with_name(f"{damaged.name}.damaged"))
        pin = Pin(listing)
        store(policy_path.parent, catalog, write_pin(pin))
        return pin

    def proxy(confinement: Confinement) -> HostProxy:  # for the installation; the log opens only with the policy
        return HostProxy(confinement.hosts, confinement.allow_private, lambda _: None)

    servers = Servers(
        policy_path.parent,
        lambda: (catalog,),
        pin=lambda _: None,
        trusts=lambda one: records.trusts_server(policy_path, one),
        record=record,
        state=state,
        agents=lambda: (),
        confinement=lambda _, __: to_be_listed(policy, catalog, policy_path.parent, (state, key_folder(keys))),
        confiner=lambda: Confiner(RoomPlanner(state / "rooms"), proxy),
    )
    try:
        return await servers.refresh(catalog_id)
    finally:
        servers.close()


def acceptance_row(catalog: Catalog, before: Pin, after: Pin, who: str) -> AuditEntry:
    """Return the row CatalogAccepted: the tools with the digests of their definitions, and the dropped ones."""
    changed = [name for name, row in after.accepted.items() if before.accepted.get(name) != row]
    gone = [name for name in before.accepted if name not in after.accepted]
    tools: dict[str, JsonValue] = {
        name: {"digest": row.digest, "tier": str(row.tier)}
        for name in changed[:_MOST_RECORDED]
        for row in (after.accepted[name],)
    }
    body: dict[str, JsonValue] = {
        "catalog": catalog.catalog_id,
        "who": who,
        "digest": after.digest,
        "accepted": len(changed),
        "tools": tools,
    }
    if gone:
        body["forgotten"] = [*gone[:_MOST_RECORDED]]
    if after.instructions != before.instructions:
        body["instructions"] = True
    return AuditEntry(RowKind.CATALOG_ACCEPTED, body=body)


class ServerPins:
    """The pins of the policy in force; ``state`` returns the policy's state, ``put`` writes a pin, puts it in force and
    logs a row.
    """

    def __init__(
        self,
        policy_path: Path,
        records: TrustRecords,
        state: Callable[[], PolicyState],
        put: Callable[[Catalog, Pin, AuditEntry | None], None],
    ) -> None:
        self._policy_path, self._records, self._state, self._put = policy_path, records, state, put

    def states(self) -> tuple[CatalogState, ...]:
        """List the policy's catalogs as of now, in its order."""
        state = self._state()
        tools = state.book.tools(state.policy.catalogs)
        found: list[CatalogState] = []
        for catalog in state.policy.catalogs:
            own = [tool for tool in tools if tool.origin == catalog.catalog_id]
            found.append(
                CatalogState(
                    catalog,
                    state.book.manifest(catalog).pin,
                    self._records.trusts_server(self._policy_path, catalog) if catalog.kind.is_pinned else None,
                    tuple(tool.name for tool in own),
                    tuple(tool.listed_name for tool in own),
                    tuple(tool.name for tool in own if tool.held),
                    state.book.manifest(catalog).fault if catalog.kind.has_manifest else "",
                )
            )
        return tuple(found)

    def pin(self, catalog_id: str) -> Pin | None:
        """Return the listed and the accepted tools; None if never imported. Raises WorkspaceError."""
        return self._state().book.manifest(self.server(catalog_id)).pin

    def record(self, catalog_id: str, listing: Listing) -> Pin:
        """Store the present listing of a catalog's tools. Raises WorkspaceError, PolicyInvalid."""
        before, is_kept = self.pin(catalog_id), self._state().book.manifest(self.server(catalog_id)).content is not None
        after = relist(before or Pin(), listing)
        if before is None or not is_kept or write_pin(after) != write_pin(before):  # equal values may differ: 1, true
            self._put(self.server(catalog_id), after, None)
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
        """Accept tools as listed, like ``Workspace.accept_tools``."""
        catalog, before = self.server(catalog_id), self.pin(catalog_id)
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
                self._put(catalog, after, acceptance_row(catalog, before, after, who))
            return after

        try:
            return take(names)
        except PolicyInvalid:
            if names is not None or not before.drift.vanished:
                raise
            return take((*before.drift.new, *before.drift.changed))

    def server(self, catalog_id: str) -> Catalog:
        """Return the catalog with pinned tools. Raises WorkspaceError for an unknown one, and for one without a pin."""
        catalogs = self._state().policy.catalogs
        catalog = next((one for one in catalogs if one.catalog_id == catalog_id), None)
        if catalog is None:
            near = near_hint(catalog_id, (one.catalog_id for one in catalogs))
            raise WorkspaceError(f"no catalog `{catalog_id}`{near}")
        if not catalog.kind.is_pinned:
            raise WorkspaceError(f"catalog `{catalog_id}` is no server: another program runs its tools")
        return catalog


_NOT_RUN = "this tool cannot be run here now; try again later or go on without it"


class CatalogTools:
    """The executor of the tools of one workspace's catalogs; any thread and any loop may use it.

    ``catalog`` returns a catalog under the present policy, ``servers`` the MCP servers, ``adapters`` the adapters'
    makers for the other types. ``pin``, ``trusts`` and ``record`` are as for `Servers`.
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
        """Ask a server, or read the manifest, for the present tools, and hold those that nobody has accepted.

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
        from gatewright.workspace.commandfiles import shim_fault

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
