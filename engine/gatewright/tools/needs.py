"""Which capabilities a tool needs, as declared or by its side effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gatewright.base.errors import RegistrationError
from gatewright.base.problem import near_hint
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.tools.declaration import SideEffect
from gatewright.tools.parameter import Parameter, Role

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
    """The declared kinds. Raises RegistrationError for an unknown one."""
    if isinstance(declared, str):
        raise RegistrationError(f"{where}: capabilities are a collection of kinds, not one text")
    return frozenset(_kind(name, where) for name in declared)


def kinds_of_effects(effects: Collection[SideEffect]) -> frozenset[CapabilityKind]:
    """The kinds that side effects come under; starting a process is Exec."""
    return frozenset(
        CapabilityKind.EXEC if effect is SideEffect.PROCESS_SPAWN else CapabilityKind(str(effect)) for effect in effects
    )


def judged_kinds(parameters: Iterable[Parameter]) -> frozenset[CapabilityKind]:
    """The kinds whose reach some parameter tells: an address, a path, a table, a variable."""
    found = (_JUDGED.get(mark.role, _NONE) for parameter in parameters for mark in parameter.marks)
    return _NONE.union(*found)


def _kind(name: str, where: str) -> CapabilityKind:
    found = _KINDS.get(str(name))
    if found is None:
        raise RegistrationError(f"{where}: `{name}` is no kind of capability{near_hint(str(name), _KINDS)}")
    return found
