"""Capabilities: what kind of thing an agent may touch, and how far. It does not know tools, paths on disk or calls.

A kind's class name is its spelling in the policy file. An agent without a capability of a kind may not use what needs
that kind. Scopes are as written: hosts as patterns, prefixes relative to the policy file or absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CapabilityKind(StrEnum):
    """The kinds, spelt as in the policy file and in a tool's ``required_capabilities``."""

    NET_READ = "NetRead"
    NET_WRITE = "NetWrite"
    FS_READ = "FsRead"
    FS_WRITE = "FsWrite"
    DB_READ = "DbRead"
    DB_WRITE = "DbWrite"
    EXEC = "Exec"
    WASM_EXEC = "WasmExec"
    CLOCK_READ = "ClockRead"
    ENV_READ = "EnvRead"
    ADVANCED_EDIT = "AdvancedEdit"


@dataclass(frozen=True, slots=True)
class NetRead:
    """Reading from hosts that a pattern of ``allowlist`` matches."""

    allowlist: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NetWrite:
    """Sending to hosts that a pattern of ``allowlist`` matches."""

    allowlist: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FsRead:
    """Reading at or below one of ``prefixes``, by whole components."""

    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FsWrite:
    """Writing at or below one of ``prefixes``, by whole components."""

    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DbRead:
    """Reading the ``tables``, by exact name; ``*`` is every one."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DbWrite:
    """Writing the ``tables``, by exact name; ``*`` is every one."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exec:
    """Starting processes, at most ``cpu_limit`` seconds and ``mem_limit`` bytes each; None: as the tool declares."""

    cpu_limit: float | None = None
    mem_limit: int | None = None


@dataclass(frozen=True, slots=True)
class WasmExec:
    """Running WASM modules, at most ``fuel`` units and ``memory`` bytes each; None: as the tool declares."""

    fuel: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class ClockRead:
    """Reading the clock."""


@dataclass(frozen=True, slots=True)
class EnvRead:
    """Reading the environment variables ``names`` (``vars`` in the file), by exact name; ``*`` is every one."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AdvancedEdit:
    """Editing by patch."""


Capability = (
    NetRead | NetWrite | FsRead | FsWrite | DbRead | DbWrite | Exec | WasmExec | ClockRead | EnvRead | AdvancedEdit
)


def kind_of(capability: Capability) -> CapabilityKind:
    """The kind of a capability."""
    return CapabilityKind(type(capability).__name__)
