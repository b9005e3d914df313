"""The pins of the MCP servers of a workspace: on disk, as a catalog stands now, and what waits to be accepted."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.gate import AuditEntry, RowKind
from gatewright.policy.document import PINS
from gatewright.tools.pin import PINNED, accept, write_pin
from gatewright.tools.proposal import propose
from gatewright.workspace.location import place_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gatewright.base.jsonvalue import JsonValue
    from gatewright.policy.document import Catalog
    from gatewright.schema.walk import Schema
    from gatewright.tools.pin import Acceptance, Pin

_MOST_RECORDED = 200


@frozen
class CatalogState:
    """One catalog as it stands now: its pin (None: never imported, or no server), and whether it may be started.

    ``is_trusted`` None: there is nothing to start. ``tool_names``: the tools that it gives, by their names in the
    policy; ``held``: those of them that no agent sees before they are accepted.
    """

    catalog: Catalog
    pin: Pin | None
    is_trusted: bool | None
    tool_names: tuple[str, ...]
    held: tuple[str, ...]


@frozen
class Waiting:
    """One tool that waits to be accepted: ``change`` is new, changed or vanished.

    ``before``: what was accepted, ``after``: what it would count as, and ``why``. ``description``: as it is listed;
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
    """What waits to be accepted of a pin, with what it would count as."""
    drift, after = pin.drift, accept(pin, None, trusted=trusted, needs_capabilities=needs_capabilities)
    rows = [(name, "new") for name in drift.new] + [(name, "changed") for name in drift.changed]
    return tuple(
        _waiting(pin, after, name, change, trusted=trusted)
        for name, change in (*rows, *((name, "vanished") for name in drift.vanished))
    )


def _waiting(pin: Pin, after: Pin, name: str, change: str, *, trusted: bool) -> Waiting:
    before, listed = pin.accepted.get(name), pin.listing.definitions.get(name)
    old = before.definition if before is not None else None
    why = "" if listed is None else propose(listed, trusted=trusted).why
    text = difference(old, listed) if old is not None or before is None else "the accepted definition was not kept\n"
    description = str((listed or {}).get("description") or "")
    return Waiting(name, change, before, after.accepted.get(name), why, description, text)


def difference(old: Schema | None, new: Schema | None) -> str:
    """What two definitions of a tool say differently, as a unified diff; None: there is none."""
    return text_difference("\n".join(_lines(old)), "\n".join(_lines(new)))


def text_difference(old: str, new: str) -> str:
    """A unified diff of two texts."""
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), "accepted", "listed", lineterm="")
    return "".join(f"{row}\n" for row in rows)


def _lines(definition: Schema | None) -> Iterator[str]:
    for key in PINNED if definition is not None else ():
        value = (definition or {}).get(key)
        if isinstance(value, str):
            yield from f"{key}: {value}".splitlines()
        elif value is not None:
            yield from f"{key}: {json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)}".splitlines()


def store(folder: Path, catalog: Catalog, pin: Pin) -> bytes:
    """Write the pin of a catalog below the policy's folder and answer what was written. Raises WorkspaceError."""
    content = write_pin(pin)
    if (folder / PINS).is_symlink():
        raise WorkspaceError(f"cannot write the pin of `{catalog.catalog_id}`: `{PINS}` is a link")
    try:
        place_file(folder, catalog.file, content)
    except OSError as error:
        why = error.strerror or error
        raise WorkspaceError(f"cannot write the pin `{catalog.file}` of `{catalog.catalog_id}`: {why}") from None
    return content


def accepted_row(catalog: Catalog, before: Pin, after: Pin, who: str) -> AuditEntry:
    """CatalogAccepted: the tools with the digests of their definitions, and those that were forgotten."""
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
        **_forgotten(gone),
    }
    if after.instructions != before.instructions:
        body["instructions"] = True
    return AuditEntry(RowKind.CATALOG_ACCEPTED, body=body)


def _forgotten(names: Iterable[str]) -> dict[str, JsonValue]:
    listed = list(names)
    return {"forgotten": [*listed[:_MOST_RECORDED]]} if listed else {}
