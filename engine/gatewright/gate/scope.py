"""How far an agent's grants reach: hosts, folders with links resolved, names, bounds. It does not judge a call.

A relative prefix starts from the folder of the policy; without one it grants nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.policy.document import Agent
from gatewright.policy.granted import exec_limits, widest
from gatewright.policy.kinds.capability import (
    Capability,
    CapabilityKind,
    DbRead,
    DbWrite,
    EnvRead,
    FsRead,
    FsWrite,
    NetRead,
    NetWrite,
    WasmExec,
    kind_of,
)
from gatewright.policy.prefix import check_prefix
from gatewright.tools.declaration import ResourceBounds

if TYPE_CHECKING:
    from gatewright.gate.call import CallState

_EVERY = "*"
_TOP = "/"


def granted(agent: Agent, kind: CapabilityKind) -> list[tuple[int, Capability]]:
    """The agent's capabilities of that kind, with their place in the list."""
    return [(index, held) for index, held in enumerate(agent.capabilities) if kind_of(held) is kind]


def hosts_of(capability: Capability) -> tuple[str, ...]:
    """The host patterns of a capability."""
    return capability.allowlist if isinstance(capability, NetRead | NetWrite) else ()


def names_of(capability: Capability) -> tuple[str, ...]:
    """The tables or variables of a capability."""
    if isinstance(capability, DbRead | DbWrite):
        return capability.tables
    return capability.names if isinstance(capability, EnvRead) else ()


def prefixes_of(capability: Capability, folder: str | None, real: Callable[[str], str] = os.path.realpath) -> list[str]:
    """The prefixes of a capability, absolute and with links resolved by ``real`` as they are now."""
    written = capability.prefixes if isinstance(capability, FsRead | FsWrite) else ()
    found = (_resolved(prefix, folder, real) for prefix in written)
    return [prefix for prefix in found if prefix is not None]


def covers_name(names: Sequence[str], name: str) -> bool:
    """Whether a list of exact names holds ``name``; ``*`` holds every one."""
    return _EVERY in names or name in names


def file_prefixes(state: CallState) -> tuple[str, ...]:
    """Every prefix that the agent may read or write below."""
    agent = state.agent.agent if state.agent is not None else None
    held, ports = agent.capabilities if agent is not None else (), state.ports
    return tuple(prefix for capability in held for prefix in prefixes_of(capability, ports.folder, ports.real))


def bounds_of(bounds: ResourceBounds, kinds: Iterable[CapabilityKind], agent: Agent) -> ResourceBounds:
    """The tool's own ``bounds``, narrowed to what the agent is granted for the ``kinds`` that an operation needs.

    Of several grants of one kind the widest counts; a grant without a limit leaves the tool's own.
    """
    needed = frozenset(kinds)
    cpu_s, memory = bounds.cpu_s, bounds.memory_bytes
    if CapabilityKind.EXEC in needed:
        granted_cpu_s, granted_memory = exec_limits(agent.capabilities)
        cpu_s, memory = _narrower(cpu_s, granted_cpu_s), _narrower(memory, granted_memory)
    if CapabilityKind.WASM_EXEC in needed:
        modules = [one for _, one in granted(agent, CapabilityKind.WASM_EXEC) if isinstance(one, WasmExec)]
        memory = _narrower(memory, widest([one.memory for one in modules]))
    return replace(bounds, cpu_s=cpu_s, memory_bytes=None if memory is None else int(memory))


def _resolved(prefix: str, folder: str | None, real: Callable[[str], str]) -> str | None:
    if check_prefix(prefix) is not None or (folder is None and not prefix.startswith(_TOP)):
        return None
    try:
        return real(os.path.join(folder or _TOP, prefix))  # noqa: PTH118 - plain texts
    except (OSError, ValueError):
        return None


def _narrower(own: float | None, grant: float | None) -> float | None:
    known = [limit for limit in (own, grant) if limit is not None]
    return min(known, default=None)
