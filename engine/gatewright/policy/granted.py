"""Which kinds of capabilities an agent has, and what an operation lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatewright.base.problem import Address
from gatewright.policy.document import Agent
from gatewright.policy.kinds.capability import SCOPED, Capability, CapabilityKind, Exec, WasmExec, kind_of
from gatewright.policy.right import Layer, OperationFacts, Reason, ToolFacts
from gatewright.policy.verdict import Verdict


def granted_kinds(capabilities: Iterable[Capability]) -> frozenset[CapabilityKind]:
    """The kinds that reach at least something: an empty list of hosts, prefixes, tables or names grants nothing."""
    return frozenset(kind_of(capability) for capability in capabilities if capability.scope != ())


def lacking(agent: Agent, granted: frozenset[CapabilityKind], facts: ToolFacts, op: OperationFacts) -> Reason | None:
    """Why every call of the operation is denied for want of a grant; None if some call may lie within."""
    if missing := op.capabilities - granted:
        code, text = "capability-not-granted", f"needs {_and(missing)}, which agent `{agent.agent_id}` is not granted"
    elif limited := frozenset(kind_of(one) for one in bounded(agent, op)) - op.judgeable:
        code = "capability-unjudgeable"
        text = f"names nothing that {_and(limited)} of agent `{agent.agent_id}` could be judged by"
    else:
        return None
    what = f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"
    where: Address = ("agents", agent.agent_id, "capabilities") if agent.capabilities else ("agents", agent.agent_id)
    return Reason(Layer.CAPABILITY, Verdict.DENY, code, f"{what} {text}", where)


def bounded(agent: Agent, op: OperationFacts) -> tuple[Capability, ...]:
    """The agent's grants of kinds that the operation needs where they leave something out."""
    kinds = {kind for kind in op.capabilities & SCOPED if not _is_whole(agent, kind)}
    return tuple(one for one in agent.capabilities if kind_of(one) in kinds)


def exec_limits(capabilities: Iterable[Capability]) -> tuple[float | None, int | None]:
    """Seconds of a processor and bytes that each process of an agent may use up; None: not limited by its grants."""
    held = [one for one in capabilities if isinstance(one, Exec)]
    memory = widest([one.mem_limit for one in held])
    return widest([one.cpu_limit for one in held]), None if memory is None else int(memory)


def wasm_fuel(capabilities: Iterable[Capability]) -> int | None:
    """Units of fuel that each module of an agent may use up; None: not limited by its grants."""
    fuel = widest([one.fuel for one in capabilities if isinstance(one, WasmExec)])
    return None if fuel is None else int(fuel)


def widest(limits: Sequence[float | None]) -> float | None:
    """The limit of several grants of one kind: the largest; None where one of them has none, or there is none."""
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None


def _and(kinds: Iterable[CapabilityKind]) -> str:
    return " and ".join(sorted(kinds))


def _is_whole(agent: Agent, kind: CapabilityKind) -> bool:
    """Whether one of the grants of that kind leaves nothing out."""
    return any(one.is_whole for one in agent.capabilities if kind_of(one) is kind)
