"""Reading one agent's file in Pattern's shape: top-level rules, tools, data sources. It writes nothing.

Three keys of ours may stand there too (``description``, ``approvals``, ``defaults``): Pattern reads past them.
"""

from __future__ import annotations

from gatewright.base.row import Row
from gatewright.policy.document import Agent, Defaults, Dialect, Policy
from gatewright.policy.endpoint import Endpoints
from gatewright.policyfile.names import Names
from gatewright.policyfile.readagent import read_approvals, read_defaults, read_tools
from gatewright.policyfile.readrule import read_rules
from gatewright.policyfile.readsource import read_data_sources, read_sources

OWN_KEYS = ("name", "description", "tools", "tool_rules", "sources", "data_sources", "approvals", "defaults")
PATTERN_ENDPOINTS = Endpoints(user=True)
"""Such an agent sends to its user, and the file can say nothing else of it."""
FOREIGN_KEYS = (
    "id",
    "system_prompt",
    "system_prompt_path",
    "persona",
    "persona_path",
    "instructions",
    "bluesky_handle",
    "model",
    "context",
    "memory",
)


def read_pattern(row: Row, fallback_id: str, names: Names) -> Policy:
    """The policy of one agent, named by ``name`` or else ``fallback_id`` (the file's stem)."""
    for key in row.raw:
        if key in FOREIGN_KEYS:
            row.report.warning((key,), "pattern-key", f"`{key}` belongs to Pattern and is not read here")
    row.only((*OWN_KEYS, *FOREIGN_KEYS), "a file of one agent")
    sources = read_sources(row.rows("sources"), names)
    if (table := row.table("data_sources")) is not None:
        sources += read_data_sources(table, {source.source_id for source in sources})
    agent_id = row.text("name", filled=True) or fallback_id
    defaults = row.table("defaults")
    return Policy(
        defaults=read_defaults(defaults, names) if defaults else Defaults(),
        agents={agent_id: _agent(row, agent_id, names)},
        sources=tuple(sources),
        dialect=Dialect.PATTERN,
        endpoints=PATTERN_ENDPOINTS,
    )


def _agent(row: Row, agent_id: str, names: Names) -> Agent:
    tools = read_tools(row, names) or None
    return Agent(
        agent_id,
        description=row.text("description") or "",
        tools=tools,
        approvals=read_approvals(row, names),
        tool_rules=read_rules(row.rows("tool_rules"), names, tools),
    )
