"""The proposal for a stranger's tool: tiers and effects, from its annotations and its names.

Annotations of MCP tools are hints (modelcontextprotocol.io, schema 2025-11-25, ToolAnnotations): a liar wants the lower
tier. If they and a name differ, the higher tier is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen
from gatewright.base.verb import CHANGES, READS
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.verdict import SafetyTier
from gatewright.schema.shapes.flat import snake
from gatewright.schema.walk import Schema, as_object, properties_of
from gatewright.tools.declaration import SideEffect, kinds_of_effects
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition

_ADDS = frozenset(
    {"add", "append", "attach", "book", "clone", "comment", "copy", "create", "duplicate", "fork", "insert"}
    | {"make", "mkdir", "post", "publish", "reply", "save", "schedule", "send", "submit", "subscribe", "tag", "upload"}
)
"""What destroys nothing, if a hint says so too."""
_UNDOUBTED = frozenset(
    re.findall(
        r"\w+",
        """
    append create delete drop edit exec execute insert install kill move put remove rename replace run send set update
    upsert write
    """,
    )
)
"""What makes a name that begins with reading say nothing: `get_or_create`."""
_SPAWNS = frozenset({"bash", "cmd", "command", "exec", "powershell", "script", "shell", "terminal"})
_PATHS = frozenset({"path", "paths", "source", "destination"})
_FILES = frozenset({"dir", "directories", "directory", "file", "files", "folder", "folders"})
_ON_FILES = frozenset({SideEffect.FS_READ, SideEffect.FS_WRITE})
_TIERS = tuple(SafetyTier)


@frozen
class Proposal:
    """The proposed tier of a tool. ``operation_tiers``: of every operation found; ``why``: for the operator."""

    tier: SafetyTier
    operation_tiers: Mapping[str, SafetyTier] = field(default_factory=dict[str, SafetyTier], hash=False)
    side_effects: frozenset[SideEffect] = frozenset()
    why: str = ""

    @property
    def capabilities(self) -> frozenset[CapabilityKind]:
        """The kinds that an agent must hold; those on files are left to the sources' levels."""
        return kinds_of_effects(self.side_effects - _ON_FILES)


def propose(definition: Schema, read: ToolDefinition, *, trusted: bool = False) -> Proposal:
    """Propose tiers and side effects for a definition as an MCP server lists it, and as this program read it.

    ``trusted``: believe its hints.
    """
    name, hints = str(definition.get("name", "")), as_object(definition.get("annotations")) or {}
    written = read.safety_tier if read.run is not None else None
    said, by_name = written or _tier_by_hints(hints), _tier_by_name(name)
    if said is None:
        tier = SafetyTier.READ_ONLY if by_name is SafetyTier.READ_ONLY else SafetyTier.PRIVILEGED
        why = "no hints; " + (f"by its name it {_WORDS[by_name]}" if by_name else "its name does not say what it does")
    elif trusted or by_name is None or _TIERS.index(by_name) <= _TIERS.index(said):
        tier, why = said, f"by its hints it {_WORDS[said]}"
    else:
        tier = SafetyTier.PRIVILEGED
        why = f"its hints say that it {_WORDS[said]}, its name that it {_WORDS[by_name]}"
    tiers: dict[str, SafetyTier] = {}
    for one in _operations(read):
        own, listed = _tier_by_name(one), read.operation_tiers.get(one) if read.run is not None else None
        if listed is not None:  # whoever imported a document knows it by method
            tiers[one] = max(listed, own or listed, key=_TIERS.index)
        elif own is None:
            tiers[one] = tier
        elif hints.get("readOnlyHint") is True:  # if it is believed, it only reads with all of its operations
            tiers[one] = tier if trusted else max(tier, own, key=_TIERS.index)
        else:
            reads = own is SafetyTier.READ_ONLY
            tiers[one] = own if reads else max(tier, SafetyTier.SIDE_EFFECTING, key=_TIERS.index)
    if tiers and read.run is not None and read.operation_tiers.keys() >= tiers.keys():
        tier, why = max(tiers.values(), key=_TIERS.index), "by the requests and the names of its operations"
    effects, declared = frozenset(_effects(name, definition, hints, tier, tiers)), read.conduct.side_effects
    if declared is not None:
        effects = declared if trusted else effects | declared
    return Proposal(tier, tiers, effects, why)


_WORDS = {
    SafetyTier.READ_ONLY: "only reads",
    SafetyTier.SIDE_EFFECTING: "adds without destroying",
    SafetyTier.PRIVILEGED: "may change or destroy",
}


def _tier_by_hints(hints: Schema) -> SafetyTier | None:
    """Read the tier from hints: ``destructiveHint`` counts as true unless ``readOnlyHint`` denies it; None without
    hints.
    """
    if hints.get("readOnlyHint") is True:
        return SafetyTier.READ_ONLY if hints.get("destructiveHint") is not True else SafetyTier.PRIVILEGED
    if hints.get("destructiveHint") is False:
        return SafetyTier.SIDE_EFFECTING
    if "readOnlyHint" in hints or "destructiveHint" in hints:
        return SafetyTier.PRIVILEGED
    return None


def _tier_by_name(name: str) -> SafetyTier | None:
    """Read the tier from the verbs in a name, the first above all; None without a known verb."""
    words = _words(name)
    verbs = [word for word in words if word in READS or word in CHANGES]
    if not verbs:
        return None
    if verbs[0] in _ADDS and _SPAWNS.isdisjoint(words):
        return SafetyTier.SIDE_EFFECTING
    if verbs[0] in CHANGES or not _SPAWNS.isdisjoint(words):
        return SafetyTier.PRIVILEGED
    return SafetyTier.READ_ONLY if _UNDOUBTED.isdisjoint(verbs) else None


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", snake(name))


def _operations(definition: ToolDefinition) -> tuple[str, ...]:
    """Return the operations found in the schema."""
    try:
        return tuple(spec.name for spec in DefinedTool(definition, origin="").operations)
    except (RegistrationError, RecursionError):
        return ()


def _effects(
    name: str, definition: Schema, hints: Schema, tier: SafetyTier, tiers: Mapping[str, SafetyTier]
) -> list[SideEffect]:
    """Guess the side effects: an open world by its hint, files and processes by name and arguments."""
    words = _words(name)
    writes = any(one is not SafetyTier.READ_ONLY for one in (*tiers.values(), *(() if tiers else (tier,))))
    found: list[SideEffect] = []
    if hints.get("openWorldHint") is True:
        found += [SideEffect.NET_READ, *([SideEffect.NET_WRITE] if writes else [])]
    arguments = properties_of(as_object(definition.get("inputSchema")) or {})
    if not _FILES.isdisjoint(words) and not _PATHS.isdisjoint(arguments):
        found += [SideEffect.FS_READ, *([SideEffect.FS_WRITE] if writes else [])]
    if not _SPAWNS.isdisjoint(words):
        found.append(SideEffect.PROCESS_SPAWN)
    return found
