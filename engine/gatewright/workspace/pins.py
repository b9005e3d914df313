"""The pins of a workspace's catalogs: on disk, in force, with waiting and accepted tools."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from gatewright.base.errors import PolicyInvalid, WorkspaceError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import AuditEntry, RowKind, key_folder, state_folder
from gatewright.policy.document import PINS, Catalog, CatalogType
from gatewright.policy.target import Confinement
from gatewright.policy.verdict import SafetyTier
from gatewright.policyfile import read_policy_text
from gatewright.policyfile.reader import value_of
from gatewright.schema.walk import Schema
from gatewright.sources.ground import place_file, policy_path_of
from gatewright.tools.pin import PINNED, Acceptance, Listing, Pin, accept, acceptance, relist, write_pin
from gatewright.tools.server_tool import propose
from gatewright.workspace.manifest import read_manifest
from gatewright.workspace.policy_reader import PolicyState
from gatewright.workspace.trust import TrustRecords

_MOST_RECORDED = 200


@frozen
class CatalogState:
    """One catalog now: its pin (None: never imported, or run by a program), and its trust.

    ``is_trusted`` None: it needs no trust. ``tool_names``: its tools by their names in the policy; ``listed_names``:
    the same by their program's names; ``held``: the tools that no agent sees before their acceptance. ``fault``: why
    its manifest is unreadable or missing; empty for a server.
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
    """One tool that waits for acceptance: ``change`` is new, changed or vanished.

    ``before``: the accepted state, ``after``: the proposed one, with ``why``. ``description``: as listed;
    ``difference``: of the definitions, as a unified diff.
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
    """Ask a catalog's server for its tools if its pin is lost or damaged, and pin them without acceptance.

    For a policy that cannot open without its pin; ``path`` is its file or folder. A damaged pin stays beside the new
    one. None: nothing to mend. Raises WorkspaceError, also for an untrusted server.
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
    """Return the row CatalogAccepted: the tools with digests of their definitions, and the dropped ones."""
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
    """The pins of the policy in force: ``state`` returns it, ``put`` writes a pin, puts it in force and logs a row."""

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
        """Store the present listing of its tools. Raises WorkspaceError, PolicyInvalid."""
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
