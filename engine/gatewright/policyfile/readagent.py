"""Reading ``[agents.ID]``, ``approvals`` and ``[defaults]``: tables to values. It runs no rule."""

from __future__ import annotations

from collections.abc import Collection

from gatewright.base.report import shown
from gatewright.base.row import Row, name_error
from gatewright.base.shape import DURATION, FLAG, NAME, TEXT, Shape, by_name, one_of, several, told, whole
from gatewright.policy.document import DEFAULT_MAX_OUTPUT_BYTES, Agent, Defaults
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.names import Names
from gatewright.policyfile.readcapability import capability_shape, read_capabilities
from gatewright.policyfile.readrule import RULES, read_rules

VERDICTS = {str(verdict): verdict for verdict in Verdict}
UNLISTED = {"allow": Verdict.ALLOW, "deny": Verdict.DENY}
NEW_TOOLS = {"hold": "hold", "allow": "allow"}
_APPROVALS = told(
    by_name(one_of(VERDICTS)),
    'Who has to agree, by tier (`read_only`, `side_effecting`, `privileged`), `tool` or `"tool.operation"`',
)
AGENT_KEYS: dict[str, Shape] = {
    "description": told(TEXT, "What it is for"),
    "tools": told(several(NAME), "The complete list of its tools; absent: as `unlisted_tools` says"),
    "sources": told(several(NAME), "The complete list of its sources; absent: all"),
    "capabilities": told(several(capability_shape()), "What kinds of things it may touch, and how far", []),
    "approvals": _APPROVALS,
    "user_id": told(NAME, "Whose notes the memory tools keep"),
    "tool_rules": told(RULES, "Its rules for single tools", []),
}
DEFAULTS_KEYS: dict[str, Shape] = {
    "unlisted_tools": told(one_of(UNLISTED), "What an agent without `tools` gets", str(Defaults().unlisted_tools)),
    "new_tools": told(one_of(NEW_TOOLS), "What such an agent gets of tools that come later", Defaults().new_tools),
    "max_output_bytes": told(whole(1), "Where results are cut", DEFAULT_MAX_OUTPUT_BYTES),
    "timeout": told(DURATION, "How long a call may take; absent: as each tool says"),
    "approvals": _APPROVALS,
    "check_formats": told(FLAG, "Arguments must be what `format` in a tool's schema says", default=False),
}


def read_defaults(row: Row, names: Names) -> Defaults:
    """``[defaults]``."""
    row.only(DEFAULTS_KEYS, "`[defaults]`")
    return Defaults(
        unlisted_tools=row.choice("unlisted_tools", UNLISTED) or Verdict.ALLOW,
        new_tools=row.choice("new_tools", NEW_TOOLS) or "hold",
        max_output_bytes=row.integer("max_output_bytes", 1) or DEFAULT_MAX_OUTPUT_BYTES,
        timeout_s=read_timeout(row),
        approvals=read_approvals(row, names),
        check_formats=row.flag("check_formats", otherwise=False),
    )


def read_agents(table: Row, names: Names, source_ids: Collection[str]) -> dict[str, Agent]:
    """Every agent by id, in the order of the file."""
    seen: dict[str, str] = {}
    found: dict[str, Agent] = {}
    for agent_id in table.raw:
        if why := name_error(agent_id):
            table.report.error(table.at(agent_id), "bad-value", f"an agent id {why}", at_value=False)
        if (held := seen.setdefault(agent_id.casefold(), agent_id)) != agent_id:
            message = f"the agents {shown(held)} and {shown(agent_id)} differ only in case"
            table.report.error(table.at(agent_id), "duplicate", message, at_value=False)
        row = table.table(agent_id)
        if row is not None:
            row.only(AGENT_KEYS, "an agent")
            found[agent_id] = read_agent(row, agent_id, names, source_ids)
    return found


def read_agent(row: Row, agent_id: str, names: Names, source_ids: Collection[str]) -> Agent:
    """One agent of our dialect."""
    tools = read_tools(row, names)
    return Agent(
        agent_id,
        description=row.text("description") or "",
        tools=tools,
        sources=_sources(row, source_ids),
        approvals=read_approvals(row, names),
        user_id=row.text("user_id", filled=True),
        tool_rules=read_rules(row.rows("tool_rules"), names, tools),
        capabilities=read_capabilities(row),
    )


def read_tools(row: Row, names: Names) -> tuple[str, ...] | None:
    """The list of tools, None when absent."""
    if "tools" not in row.raw:
        return None
    seen: dict[str, str] = {}
    found = row.texts("tools")
    for index, written in found:
        path = row.at("tools", index)
        bare = split_name(written)[0]
        if bare == ANY_TOOL:
            row.report.error(path, "bad-value", "`*` is no tool: to allow every tool leave `tools` out")
        elif bare in seen:
            row.report.error(path, "duplicate", f"{shown(written)} is listed already, as {shown(seen[bare])}")
        else:
            seen[bare] = written
            names.tool(written, path)
    return tuple(written for _, written in found)


def read_approvals(row: Row, names: Names) -> dict[str, Verdict]:
    """``approvals``: verdicts by tier, tool or ``tool.operation``."""
    table = row.table("approvals")
    found: dict[str, Verdict] = {}
    if table is None:
        return found
    for key in table.raw:
        if isinstance(table.raw[key], dict):
            table.fault(
                key, "wrong-type", f'{shown(key)} must be a verdict: quote a key with a dot, `"tool.operation"`'
            )
            continue
        names.approval_key(key, table.at(key))
        verdict = table.choice(key, VERDICTS)
        if verdict is not None:
            found[key] = verdict
    return found


def read_timeout(row: Row) -> float | None:
    """``timeout`` in seconds, None when absent."""
    seconds = row.duration("timeout")
    if seconds == 0:
        row.fault("timeout", "bad-value", "`timeout` must be longer than nothing")
    return seconds


def _sources(row: Row, source_ids: Collection[str]) -> tuple[str, ...] | None:
    if "sources" not in row.raw:
        return None
    seen: set[str] = set()
    found = row.texts("sources")
    for index, name in found:
        if name not in source_ids:
            near = row.report.near(name, source_ids)
            row.report.error(row.at("sources", index), "unknown-source", f"no source is named {shown(name)}", near=near)
        elif name in seen:
            row.report.error(row.at("sources", index), "duplicate", f"{shown(name)} is listed already")
        seen.add(name)
    return tuple(name for _, name in found)
