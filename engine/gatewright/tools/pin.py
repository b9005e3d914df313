"""The tools that an MCP server or a manifest lists, and those that the operator has accepted.

A held tool waits for the operator, and no agent sees or calls it: every tool is held at first, and again when its
definition changes. Everything here is data: no code asks a server or runs a tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar, cast

from gatewright.base.errors import EditRefused, RegistrationError, WorkspaceError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json, digest, is_text
from gatewright.base.late import once
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.verdict import SafetyTier
from gatewright.schema.walk import Schema, as_list, as_object, objects
from gatewright.tools.declaration import SideEffect, check_tool_name
from gatewright.tools.definition import EXTRAS, MAX_TOOLS, DefinitionProblem, ToolDefinition, read_definitions
from gatewright.tools.server_tool import Proposal, propose

_T = TypeVar("_T")
_DIGEST = re.compile("[0-9a-f]{64}")
VERSION = 1
MAX_TEXT = 64 * 1024
MAX_NAME, MAX_SAID = 128, 400
MAX_BYTES = 8 * 1024 * 1024
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "run")
"""The parts of a definition whose changes count, besides our part of its ``_meta``.

``run``: instructions for its executor.
"""
KEPT = frozenset({*PINNED, "execution", "_meta"})
_HEAD = "gatewright_pin"
_OF_PACKAGE = ("package", "package_version")
_EFFECTS = {str(effect): effect for effect in SideEffect}
_KINDS = {str(kind): kind for kind in CapabilityKind}
_TIERS = {str(tier): tier for tier in SafetyTier}


@dataclass(frozen=True)
class Listing:
    """A server's answer: its name, version and instructions, and the definitions of its tools as MCP lists them.

    ``package``: the package that starts it, as its catalog requires it; ``package_version``: the installed version.
    ``left_out``: the unusable tools, each with the reason. Make one with ``Listing.of``.
    """

    name: str = ""
    version: str = ""
    instructions: str = ""
    tools: tuple[Schema, ...] = field(default=(), hash=False)
    left_out: tuple[DefinitionProblem, ...] = ()
    package: str = ""
    package_version: str = ""
    read: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition], hash=False, repr=False)

    @classmethod
    def of(
        cls,
        tools: object,
        *,
        name: str = "",
        version: str = "",
        instructions: str = "",
        package: str = "",
        package_version: str = "",
    ) -> Listing:
        """Build a listing within bounds: ``tools`` is the server's JSON list. Never raises for JSON values.

        Of equal names the first counts, and at most as many tools as a pin can hold stay.
        """
        kept, read, left_out, size = dict[str, Schema](), dict[str, ToolDefinition](), list[DefinitionProblem](), 0
        for index, row in enumerate(as_list(tools) or ()):
            said = {key: value for key, value in (as_object(row) or {}).items() if key in KEPT}
            found, refused = read_definitions([said or row])
            problem = refused[0] if refused else None
            if not found and problem is None:
                continue
            if problem is None:
                size += len(canonical_json(said))
                if found[0].name in kept:
                    problem = DefinitionProblem("/0", found[0].name, "the name stands twice; the first one counts")
                elif size > MAX_BYTES or len(kept) >= MAX_TOOLS:
                    problem = DefinitionProblem("/0", found[0].name, "a pin cannot hold so many tools")
            if problem is None:
                kept[found[0].name], read[found[0].name] = said, found[0]
            else:
                left_out.append(replace(problem, pointer=f"/{index}{problem.pointer.removeprefix('/0')}"))
        texts = (name, version, instructions, package, package_version)
        name, version, instructions, package, package_version = (text[:MAX_TEXT] * is_text(text) for text in texts)
        tools, left = tuple(kept.values()), tuple(left_out)
        return cls(name, version, instructions, tools, left, package, package_version, read)

    @classmethod
    def of_manifest(cls, value: object) -> Listing:
        """Build the listing of a manifest: a list of tools, or an object with one under ``tools``, and perhaps
        ``name``, ``version`` and ``instructions``. Raises WorkspaceError for anything else.
        """
        table = as_object(value) or {}
        rows = as_list(table.get("tools")) if table else as_list(value)
        if rows is None:
            raise WorkspaceError("a manifest is a list of tools, or an object with one under `tools`")
        said = {key: table.get(key, "") for key in ("name", "version", "instructions")}
        if not all(isinstance(text, str) for text in said.values()):
            raise WorkspaceError("`name`, `version` and `instructions` of a manifest are texts")
        return cls.of(rows, **cast("dict[str, str]", said))

    @once
    def definitions(self) -> Mapping[str, Schema]:
        """The definitions by the names that the server uses."""
        return dict(zip(self.read, self.tools, strict=True))


@frozen
class Acceptance:
    """The operator's acceptance of one tool: the digest of its definition, its tier and effects.

    ``definition``: the accepted one; None if it was not stored.
    """

    digest: str
    tier: SafetyTier = SafetyTier.PRIVILEGED
    operation_tiers: Mapping[str, SafetyTier] = field(default_factory=dict[str, SafetyTier], hash=False)
    side_effects: frozenset[SideEffect] = frozenset()
    capabilities: frozenset[CapabilityKind] = frozenset()
    definition: Schema | None = field(default=None, hash=False)


@frozen
class Drift:
    """The differences between a listing and the accepted tools, by the names that the server uses."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    instructions: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that wait for the operator to accept or forget them."""
        return (*self.new, *self.changed, *self.vanished)

    @property
    def is_empty(self) -> bool:
        """True if nothing waits."""
        return not (self.names or self.instructions)


@dataclass(frozen=True)
class Pin:
    """One server: its last listing, and the accepted tools by the names that the server uses.

    ``instructions``: the accepted ones.
    """

    listing: Listing = Listing()
    accepted: Mapping[str, Acceptance] = field(default_factory=dict[str, Acceptance], hash=False)
    instructions: str = ""

    @once
    def drift(self) -> Drift:
        """The part of the listing that waits for acceptance."""
        return drift(self, self.listing)

    @once
    def held(self) -> Mapping[str, str]:
        """The reason for each held tool."""
        found = self.drift
        return {
            **dict.fromkeys(found.new, "it was never accepted"),
            **dict.fromkeys(found.changed, "its definition is not the one that was accepted"),
            **dict.fromkeys(found.vanished, "its server does not list it any more"),
        }

    def definition(self, name: str) -> Schema | None:
        """Return the definition that applies: the accepted one, else the listed one."""
        accepted, listed = self.accepted.get(name), self.listing.definitions.get(name)
        return listed if accepted is None or accepted.definition is None else accepted.definition

    def is_accepted(self, definition: Schema) -> bool:
        """Tell whether the operator accepted exactly this definition, which the server sent right before a call."""
        accepted = self.accepted.get(str(definition.get("name")))
        return accepted is not None and accepted.digest == digest_of(definition)

    @once
    def digest(self) -> str:
        """SHA-256 of everything accepted, 64 hexadecimal digits."""
        rows = {name: row.digest for name, row in self.accepted.items()}
        return digest({"tools": rows, "instructions": self.instructions})


def digest_of(definition: Schema) -> str:
    """Return SHA-256 of a definition's pinned parts, 64 hexadecimal digits."""
    said = {key: definition[key] for key in PINNED if definition.get(key) is not None}
    ours = (as_object(definition.get("_meta")) or {}).get(EXTRAS)
    return digest({**said, **({"_meta": {EXTRAS: ours}} if ours is not None else {})})


def drift(pin: Pin, listing: Listing) -> Drift:
    """Compare ``listing`` with the accepted tools."""
    listed, accepted = listing.definitions, pin.accepted
    return Drift(
        tuple(name for name in listed if name not in accepted),
        tuple(name for name in listed if name in accepted and digest_of(listed[name]) != accepted[name].digest),
        tuple(name for name in accepted if name not in listed),
        listing.instructions != pin.instructions,
    )


def relist(pin: Pin, listing: Listing) -> Pin:
    """Replace the listing of a pin; earlier acceptances stay, and nothing new is accepted."""
    kept = dict(pin.accepted)
    for name, row in pin.accepted.items():
        listed = pin.listing.definitions.get(name)
        if row.definition is None and listed is not None and digest_of(listed) == row.digest:
            kept[name] = replace(row, definition=listed)
    return Pin(listing, kept, pin.instructions)


def accept(
    pin: Pin,
    names: Iterable[str] | None,
    *,
    tiers: Mapping[tuple[str, str], SafetyTier] = MappingProxyType({}),
    trusted: bool = False,
    needs_capabilities: bool = True,
    instructions: bool = False,
) -> Pin:
    """Accept the listed definitions of ``names`` (None: all that wait), and forget vanished ones.

    Accepted tools keep their tiers, new ones get those of ``propose``. ``tiers``: the operator's own choice, by name
    and operation ("" for the tool). ``needs_capabilities``: agents need the grants for the side effects.
    ``instructions``: also accept the server's instructions. Raises EditRefused for an unknown name.
    """
    wanted = pin.drift.names if names is None else tuple(dict.fromkeys(names))
    listed, accepted = pin.listing.definitions, dict(pin.accepted)
    for name in wanted:
        if name not in listed and name not in accepted:
            raise EditRefused(f"the server lists no tool `{name}`{near_hint(name, (*listed, *accepted))}")
    rows = {name: accepted.get(name) for name in wanted if name in listed}
    for name, before in rows.items():
        proposed = propose(listed[name], pin.listing.read[name], trusted=trusted)
        accepted[name] = acceptance(listed[name], before, proposed, needs_capabilities=needs_capabilities)
    for name in wanted:
        if name not in listed:
            del accepted[name]
    for (name, operation), tier in sorted(tiers.items()):
        if name not in accepted:
            raise EditRefused(f"`{name}`{near_hint(name, accepted)} is not accepted, so it has no tier")
        row = accepted[name]
        if operation and operation not in row.operation_tiers:
            raise EditRefused(f"`{name}` has no operation `{operation}`{near_hint(operation, row.operation_tiers)}")
        changed = {operation: tier} if operation else dict.fromkeys(row.operation_tiers, tier)
        own = row.tier if operation else tier
        accepted[name] = replace(row, tier=own, operation_tiers={**row.operation_tiers, **changed})
    words = pin.listing.instructions if instructions else pin.instructions
    return Pin(pin.listing, accepted, words)


def to_json(pin: Pin) -> Schema:
    """Return JSON values that `read_pin` reads back as the same pin."""
    listing = pin.listing
    packed = {"package": listing.package, "package_version": listing.package_version} if listing.package else {}
    return {
        _HEAD: VERSION,
        "server": {"name": listing.name, "version": listing.version, "instructions": listing.instructions, **packed},
        "instructions": pin.instructions,
        "accepted": {name: _plain(row, listing.definitions.get(name)) for name, row in sorted(pin.accepted.items())},
        "left_out": [{"name": one.name, "pointer": one.pointer, "message": one.message} for one in listing.left_out],
        "tools": list(listing.tools),
    }


def write_pin(pin: Pin) -> bytes:
    """Return the text of a pin's file."""
    return f"{json.dumps(to_json(pin), indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()


def read_pin(value: object) -> Pin:
    """Read a pin from a parsed file. Raises WorkspaceError for anything else."""
    table = as_object(value)
    if table is None or table.get(_HEAD) != VERSION:
        raise WorkspaceError(f"a pin is an object with `{_HEAD}` = {VERSION}")
    server, rows = as_object(table.get("server")), as_list(table.get("tools"))
    accepted, words = as_object(table.get("accepted")), table.get("instructions", "")
    if server is None or rows is None or accepted is None or not isinstance(words, str) or not is_text(words):
        raise WorkspaceError("a pin has `server`, `tools`, `accepted` and `instructions`")
    said = {key: server.get(key, "") for key in ("name", "version", "instructions", *_OF_PACKAGE)}
    if not all(isinstance(text, str) for text in said.values()) or len(objects(rows)) != len(rows):
        raise WorkspaceError("what a pin says of its server is text, and each of its tools an object")
    listing = Listing.of(rows, **cast("dict[str, str]", said))
    known = [_problem(row) for row in objects(table.get("left_out", []))]
    listing = replace(listing, left_out=(*known, *listing.left_out))
    return Pin(listing, {name: _read(name, row, listing) for name, row in accepted.items()}, words)


def _problem(row: Schema) -> DefinitionProblem:
    said = (str(row.get(key, ""))[:MAX_SAID] for key in ("pointer", "name", "message"))
    pointer, name, message = (text * is_text(text) for text in said)
    return DefinitionProblem(pointer, name, message)


def acceptance(
    definition: Schema, before: Acceptance | None, proposed: Proposal, *, needs_capabilities: bool = True
) -> Acceptance:
    """Return the acceptance of a listed definition: the values of ``before``, or those proposed for a new tool."""
    tiers = proposed.operation_tiers
    capabilities = proposed.capabilities if needs_capabilities else frozenset[CapabilityKind]()
    if before is None:
        tier, effects = proposed.tier, proposed.side_effects
    else:
        tier, effects, capabilities = before.tier, before.side_effects, before.capabilities
        tiers = {name: before.operation_tiers.get(name, tiers[name]) for name in tiers}
    return Acceptance(digest_of(definition), tier, tiers, effects, capabilities, definition)


def _plain(row: Acceptance, listed: Schema | None) -> Schema:
    """Return the row of an acceptance; it contains ``definition`` only if the listing has another one."""
    said: Schema = {"digest": row.digest, "tier": str(row.tier)}
    if row.operation_tiers:
        said["operation_tiers"] = {name: str(tier) for name, tier in row.operation_tiers.items()}
    if row.side_effects:
        said["side_effects"] = sorted(map(str, row.side_effects))
    if row.capabilities:
        said["capabilities"] = sorted(map(str, row.capabilities))
    if row.definition is not None and (listed is None or digest_of(listed) != row.digest):
        said["definition"] = row.definition
    return said


def _read(name: str, value: object, listing: Listing) -> Acceptance:
    row = as_object(value)
    try:
        check_tool_name(name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}...")
    except RegistrationError as error:
        raise WorkspaceError(str(error)) from None
    if row is None or not isinstance(row.get("digest"), str) or not _DIGEST.fullmatch(row["digest"]):
        raise WorkspaceError(f"what was accepted of `{name}` has a `digest`")
    tiers = as_object(row.get("operation_tiers", {}))
    if tiers is None or not all(map(is_text, tiers)):
        raise WorkspaceError(f"`operation_tiers` of `{name}` is an object, its keys are operations")
    definition = _find_accepted(name, row["digest"], row.get("definition"), listing)
    return Acceptance(
        row["digest"],
        _one(name, row.get("tier"), _TIERS, "tier"),
        {operation: _one(name, tier, _TIERS, "tier") for operation, tier in tiers.items()},
        frozenset(_one(name, one, _EFFECTS, "side effect") for one in as_list(row.get("side_effects", [])) or ()),
        frozenset(_one(name, one, _KINDS, "capability") for one in as_list(row.get("capabilities", [])) or ()),
        definition,
    )


def _find_accepted(name: str, expected: str, value: object, listing: Listing) -> Schema | None:
    """Return the accepted definition, from the place that its row names; None if none there has the digest."""
    for one in (as_object(value), listing.definitions.get(name)):
        with suppress(ValueError, RecursionError):
            if one is not None and digest_of(one) == expected:
                return one
    return None


def _one(name: str, value: object, known: Mapping[str, _T], what: str) -> _T:
    found = known.get(value) if isinstance(value, str) else None
    if found is None:
        raise WorkspaceError(f"`{name}` has a {what} that is none of {', '.join(f'`{one}`' for one in known)}")
    return found
