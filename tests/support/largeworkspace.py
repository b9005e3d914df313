"""A workspace as large as the app is meant for: many tools of eight operations, many agents. It checks nothing."""

import random
from functools import lru_cache, partial
from pathlib import Path

from gatewright.policy.document import Agent, Defaults, Policy
from gatewright.policy.rule import AllowedOperations, ToolRule
from gatewright.policy.verdict import Verdict
from gatewright.policyfile import render_policy
from gatewright.tools import Tool
from gatewright_gui.session.opening import Opener
from tests.support.manyoperations import EIGHT, EightOperations

AGENTS, TOOLS = 200, 1_000
_SEED = 20_261_122
_LISTED = 0.51
"""The share of the tools that an agent has."""
LIMITED = 0.1
"""The share of these tools with restricted operations; with more of them the file would be too large to load."""


def tool_names(count: int = TOOLS) -> tuple[str, ...]:
    """The names of the tools, in their order."""
    return tuple(f"tool_{i:04}" for i in range(count))


def agent_names(count: int = AGENTS) -> tuple[str, ...]:
    """The names of the agents, in their order."""
    return tuple(f"agent_{i:04}" for i in range(count))


@lru_cache
def large_tools(count: int = TOOLS) -> tuple[Tool, ...]:
    """Return tools with eight operations; all callers share them, and nobody changes them."""
    return tuple(
        type(name, (EightOperations,), {"name": name, "description": f"Looks after the things of {name}."})()
        for name in tool_names(count)
    )


def large_policy(agents: int = AGENTS, tools: int = TOOLS, limited: float = LIMITED) -> Policy:
    """Return the same policy every time: every agent has about half of the tools, each with some of its operations."""
    draw = random.Random(_SEED)
    return Policy(
        defaults=Defaults(unlisted_tools=Verdict.DENY),
        agents={agent_id: _agent(draw, agent_id, tool_names(tools), limited) for agent_id in agent_names(agents)},
    )


def write_large(folder: Path, agents: int = AGENTS, tools: int = TOOLS, limited: float = LIMITED) -> Path:
    """Write the policy into a new folder and return its path."""
    folder.mkdir(parents=True)
    path = folder / "policy.toml"
    path.write_text(_text(agents, tools, limited), "utf-8")
    return path


@lru_cache
def _text(agents: int, tools: int, limited: float) -> str:
    return render_policy(large_policy(agents, tools, limited))


def large_opener(tools: int = TOOLS) -> Opener:
    """Opens the policy with its tools."""
    return Opener(partial(large_tools, tools))


def _agent(draw: random.Random, agent_id: str, names: tuple[str, ...], share: float) -> Agent:
    chosen = tuple(name for name in names if draw.random() < _LISTED)
    limited = [name for name in chosen if draw.random() < share]
    rules = tuple(
        ToolRule(name, AllowedOperations(frozenset(draw.sample(EIGHT, draw.randint(1, 7))))) for name in limited
    )
    return Agent(agent_id, description=f"Works on its part, number {agent_id[-4:]}", tools=chosen, tool_rules=rules)
