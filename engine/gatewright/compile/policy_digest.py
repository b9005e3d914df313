"""The digest of a policy: of everything that it says, nothing of how its file is laid out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, cast

from gatewright.base.jsonvalue import digest
from gatewright.policy.document import Agent, Policy


def policy_digest(policy: Policy, held: AgentDigests) -> str:
    """SHA-256 of everything that the policy says, 64 hexadecimal digits. ``held`` keeps what agents came to."""
    agents = {agent_id: held.of(agent) for agent_id, agent in policy.agents.items()}
    return digest({**_table(replace(policy, agents={})), "agents": agents})


class AgentDigests:
    """The digest of each agent as long as it is the same value, since most edits change one of many."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Agent, str]] = {}

    def of(self, agent: Agent) -> str:
        """The digest of everything that the policy says of the agent."""
        found = self._held.get(agent.agent_id)
        if found is None or found[0] is not agent:
            found = self._held[agent.agent_id] = (agent, digest(_table(agent)))
        return found[1]


def _table(value: object) -> dict[str, Any]:
    """A dataclass with its class as ``kind``."""
    kind = type(value)
    table: dict[str, Any] = {"kind": kind.__name__}
    for name in _names(kind):
        table[name] = _value(getattr(value, name))
    return table


@lru_cache(maxsize=256)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.compare)


def _value(value: object) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, tuple):
        return [_value(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, frozenset):
        return _sorted(cast("frozenset[object]", value))
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in cast("Mapping[object, object]", value).items()}
    return [_value(item) for item in cast("list[object]", value)] if isinstance(value, list) else _table(value)


@lru_cache(maxsize=4096)
def _sorted(names: frozenset[object]) -> list[str]:
    """The same few sets of operations stand in thousands of rules. Nobody changes the list."""
    return sorted(str(name) for name in names)
