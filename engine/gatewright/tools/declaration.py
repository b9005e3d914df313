"""The declaration of a tool besides its parameters: name, tier, effects, bounds, kind of result, capabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

from gatewright.base.errors import RegistrationError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.rule import ToolRule
from gatewright.policy.verdict import Action, SafetyTier, tool_name_fault
from gatewright.schema.walk import Schema
from gatewright.tools.parameter import Parameter, Role

_OPERATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SEMVER = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
    r"(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def check_tool_name(name: object) -> None:
    """Raise RegistrationError unless policies and protocols can write ``name``."""
    if why := tool_name_fault(name):
        raise RegistrationError(why)


def check_operation_name(name: str, tool_name: str) -> None:
    """Raise RegistrationError unless a policy can write ``name``."""
    if not _OPERATION.fullmatch(name):
        raise RegistrationError(
            f"`{name}` of tool `{tool_name}` is no operation name: letters, digits, `_`, `-`, `.`, up to 64"
        )


@lru_cache(maxsize=4096)
def major_of(version: str, tool_name: str) -> int:
    """Return the major number of a semantic version (semver.org, 2.0.0). Raises RegistrationError for any other
    text.
    """
    found = _SEMVER.fullmatch(version)
    if found is None:
        raise RegistrationError(f"version `{version}` of tool `{tool_name}` is not of the form `1.2.3`")
    return int(found[1])


class SideEffect(StrEnum):
    """One kind of effect outside the tool; a tool without effects declares the empty set."""

    NET_READ = "NetRead"
    NET_WRITE = "NetWrite"
    FS_READ = "FsRead"
    FS_WRITE = "FsWrite"
    DB_READ = "DbRead"
    DB_WRITE = "DbWrite"
    PROCESS_SPAWN = "ProcessSpawn"


class Determinism(StrEnum):
    """The sources of a result besides the arguments.

    Pure: none. Deterministic: the workspace (files, blocks, notes). Maybe: also the world outside. NonDeterministic:
    time or chance, such as a new id.
    """

    PURE = "Pure"
    DETERMINISTIC = "Deterministic"
    MAYBE = "Maybe"
    NON_DETERMINISTIC = "NonDeterministic"


class ResultType(StrEnum):
    """The kind of value that a tool returns; ``any`` is any JSON value, as for tools that only a definition
    describes.
    """

    ANY = "any"
    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    BINARY = "binary"
    STREAM = "stream"


class Normalization(StrEnum):
    """The way from a result to the bytes that are hashed: canonical JSON, the bytes themselves, or the tool's own
    way.
    """

    JSON = "json"
    BINARY = "binary"
    CUSTOM = "custom"


@frozen
class ResourceBounds:
    """The limits of one call; None is unbounded. Raises RegistrationError for a bound that is not positive.

    ``network_bytes`` counts bytes sent and received, ``max_requests`` requests to servers, redirects included.
    """

    timeout_s: float = 30.0
    memory_bytes: int | None = None
    cpu_s: float | None = None
    network_bytes: int | None = None
    max_requests: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_s", "memory_bytes", "cpu_s", "network_bytes", "max_requests"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise RegistrationError(f"`{name}` of the resource bounds must be positive and finite")

    @property
    def is_timed_only(self) -> bool:
        """True if only the time is bounded."""
        others = (self.memory_bytes, self.cpu_s, self.network_bytes, self.max_requests)
        return all(bound is None for bound in others)


class Declaration:
    """The attributes that every tool class declares.

    ``safety_tier`` applies to operations without a tier of their own; its default is the strictest.
    ``required_capabilities``: the kinds that an agent must hold; None means those of the side effects. ``examples``:
    arguments of calls to try, for operators, never for models. ``needs_user``: a call for nobody is denied.
    ``enforces_bounds``: the tool's runner (a process of its own) enforces all its bounds; a tool that runs inside this
    process can bound time only, and is not registered with other bounds. ``is_executable``: this program can run it;
    else each call fails at execution. ``held``: the reason why nobody may see it before the operator accepts it.
    ``leaves_copy``: its effects happen elsewhere, even in a disposable copy of a workspace. ``instructions``: its
    server's words about all its tools, as the operator accepted them. ``listed_name``: its name in the program that
    runs it. ``outmoded``: only agents whose policy lists it get it. ``texts``: arguments that hold plain texts and
    never paths, so that no level of a source applies to them. ``actions``: what a tool without operations may do to a
    file, block or note. ``source``: the id of the program's source that brings it (`Tool.of_source`). ``destroys``:
    True if it removes something for good; None means that its name decides. ``recipe``: the part of its definition that
    its executor reads. ``outside``: its results are words of strangers, unless the policy says otherwise.
    ``in_folder``: the calling program runs it itself, and relative paths start in the folder where that works.
    """

    name: str = ""
    version: str = "1.0.0"
    description: str = ""
    origin: str = "built-in"
    safety_tier: SafetyTier = SafetyTier.PRIVILEGED
    side_effects: frozenset[SideEffect] = frozenset()
    determinism: Determinism = Determinism.NON_DETERMINISTIC
    resource_bounds: ResourceBounds = ResourceBounds()
    result_type: ResultType | None = None
    normalization: Normalization | None = None
    output_schema: Schema | None = None
    operation_field: str = "op"
    usage_rule: str | None = None
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    tool_rules: tuple[ToolRule, ...] = ()
    needs_source: bool = False
    source: str = ""
    outside: bool = False
    needs_user: bool = False
    outmoded: bool = False
    enforces_bounds: bool = False
    is_executable: bool = True
    held: str = ""
    leaves_copy: bool = False
    instructions: str = ""
    listed_name: str = ""
    required_capabilities: Collection[str] | None = None
    texts: Collection[str] = frozenset()
    actions: tuple[Action, ...] = ()
    destroys: bool | None = None
    recipe: Schema | None = None
    assessed: Collection[str] | None = None
    in_folder: bool = False

    input_model: ClassVar[Any] = None
    operation_tiers: ClassVar[Mapping[str, SafetyTier]] = MappingProxyType({})
    operation_actions: ClassVar[Mapping[str, tuple[Action, ...]]] = MappingProxyType({})
    operation_usage_rules: ClassVar[Mapping[str, str]] = MappingProxyType({})
    operation_capabilities: ClassVar[Mapping[str, Collection[str]]] = MappingProxyType({})

    needs_description: ClassVar[bool] = True


def check_conduct(
    where: str,
    bounds: ResourceBounds,
    determinism: Determinism,
    effects: frozenset[SideEffect],
    *,
    enforces_bounds: bool,
) -> None:
    """Raise RegistrationError for bounds that nobody would enforce, and for a pure tool with side effects."""
    if not bounds.is_timed_only and not enforces_bounds:
        text = "bounds of memory, cpu, network and requests are not supported for a tool that runs inside this process"
        raise RegistrationError(f"{where}: {text}; only its `timeout_s` is enforced")
    if determinism is Determinism.PURE and effects:
        named = ", ".join(f"`{effect}`" for effect in sorted(effects))
        raise RegistrationError(f"{where} is declared pure and has side effects: {named}")


_NONE: frozenset[CapabilityKind] = frozenset()
_NET = frozenset({CapabilityKind.NET_READ, CapabilityKind.NET_WRITE})
_FS = frozenset({CapabilityKind.FS_READ, CapabilityKind.FS_WRITE})
_JUDGED = {
    **dict.fromkeys((Role.URL, Role.HOST), _NET),
    **dict.fromkeys((Role.FILE, Role.PATH, Role.LABEL), _FS),
    Role.TABLE: frozenset({CapabilityKind.DB_READ, CapabilityKind.DB_WRITE}),
    Role.VARIABLE: frozenset({CapabilityKind.ENV_READ}),
}
_KINDS = {str(kind): kind for kind in CapabilityKind}


def kinds_of(declared: Collection[str], where: str) -> frozenset[CapabilityKind]:
    """Return the declared kinds of capability. Raises RegistrationError for an unknown one."""
    if isinstance(declared, str):
        raise RegistrationError(f"{where}: capabilities are a collection of kinds, not one text")
    return frozenset(_kind(name, where) for name in declared)


def kinds_of_effects(effects: Collection[SideEffect]) -> frozenset[CapabilityKind]:
    """Return the kinds of capability for side effects; starting a process is Exec."""
    return frozenset(
        CapabilityKind.EXEC if effect is SideEffect.PROCESS_SPAWN else CapabilityKind(str(effect)) for effect in effects
    )


def kinds_from_parameters(parameters: Iterable[Parameter]) -> frozenset[CapabilityKind]:
    """Return the kinds whose reach a parameter shows: an address, a path, a table, a variable."""
    found = (_JUDGED.get(mark.role, _NONE) for parameter in parameters for mark in parameter.marks)
    return _NONE.union(*found)


def _kind(name: str, where: str) -> CapabilityKind:
    found = _KINDS.get(str(name))
    if found is None:
        raise RegistrationError(f"{where}: `{name}` is no kind of capability{near_hint(str(name), _KINDS)}")
    return found
