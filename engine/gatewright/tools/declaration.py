"""What a tool declares about itself besides its parameters: effects, determinism, bounds, kind of result."""

from __future__ import annotations

import math
from enum import StrEnum

from gatewright.base.errors import RegistrationError
from gatewright.base.frozen import frozen


class SideEffect(StrEnum):
    """One kind of thing that a tool touches outside itself; a tool without any declares the empty set."""

    NET_READ = "NetRead"
    NET_WRITE = "NetWrite"
    FS_READ = "FsRead"
    FS_WRITE = "FsWrite"
    DB_READ = "DbRead"
    DB_WRITE = "DbWrite"
    PROCESS_SPAWN = "ProcessSpawn"


class Determinism(StrEnum):
    """Whether the same arguments give the same result: always, within a run, perhaps, not at all."""

    PURE = "Pure"
    DETERMINISTIC = "Deterministic"
    MAYBE = "Maybe"
    NON_DETERMINISTIC = "NonDeterministic"


class ResultType(StrEnum):
    """The kind of value that a tool returns; ``any``: any JSON value, as of tools known by their definition."""

    ANY = "any"
    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    BINARY = "binary"
    STREAM = "stream"


class Normalization(StrEnum):
    """How a result becomes the bytes that are hashed: canonical JSON, the bytes themselves, or the tool's own way."""

    JSON = "json"
    BINARY = "binary"
    CUSTOM = "custom"


@frozen
class ResourceBounds:
    """What one call may use; None is unbounded. Raises RegistrationError for a bound that is not positive."""

    timeout_s: float = 30.0
    memory_bytes: int | None = None
    cpu_s: float | None = None
    network_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_s", "memory_bytes", "cpu_s", "network_bytes"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise RegistrationError(f"`{name}` of the resource bounds must be positive and finite")

    @property
    def is_timed_only(self) -> bool:
        """Whether time is all that it bounds."""
        return self.memory_bytes is None and self.cpu_s is None and self.network_bytes is None


def check_conduct(
    where: str,
    bounds: ResourceBounds,
    determinism: Determinism,
    effects: frozenset[SideEffect],
    *,
    enforces_bounds: bool,
) -> None:
    """Raises RegistrationError for bounds that nobody would enforce, and for a pure tool that touches something."""
    if not bounds.is_timed_only and not enforces_bounds:
        text = "memory, cpu and network bounds are not supported for a tool that runs inside this process"
        raise RegistrationError(f"{where}: {text}; only its `timeout_s` is enforced")
    if determinism is Determinism.PURE and effects:
        named = ", ".join(f"`{effect}`" for effect in sorted(effects))
        raise RegistrationError(f"{where} is declared pure and has side effects: {named}")
