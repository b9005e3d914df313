"""Reading ``[agents.ID]``, ``approvals``, ``[defaults]`` and ``[tools.NAME]``: tables to values. It runs no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.policy.document import DEFAULT_MAX_OUTPUT_BYTES, Agent, Defaults, ToolSettings
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.toolname import split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.readrule import read_rules
from gatewright.policyfile.report import shown
from gatewright.policyfile.row import name_error

if TYPE_CHECKING:
    from collections.abc import Collection

    from gatewright.policyfile.names import Names
    from gatewright.policyfile.row import Row

VERDICTS = {str(verdict): verdict for verdict in Verdict}
UNLISTED = {"allow": Verdict.ALLOW, "deny": Verdict.DENY}
NEW_TOOLS = {"hold": "hold", "allow": "allow"}
AGENT_KEYS = ("description", "tools", "sources", "capabilities", "approvals", "user_id", "tool_rules")
DEFAULTS_KEYS = ("unlisted_tools", "new_tools", "max_output_bytes", "timeout", "approvals")
TOOL_KEYS = ("operation_field", "operations", "operation_tiers", "safety_tier", "timeout", "scrub", "description")


def read_defaults(row: Row, names: Names) -> Defaults:
    """``[defaults]``."""
    row.only(DEFAULTS_KEYS, "`[defaults]`")
    return Defaults(
        unlisted_tools=row.choice("unlisted_tools", UNLISTED) or Verdict.ALLOW,
        new_tools=row.choice("new_tools", NEW_TOOLS) or "hold",
        max_output_bytes=row.integer("max_output_bytes", 1) or DEFAULT_MAX_OUTPUT_BYTES,
        timeout_s=_timeout(row),
        approvals=read_approvals(row, names),
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
    if row.items("capabilities"):
        row.fault("capabilities", "not-supported", "`capabilities` are not supported yet")
    tools = read_tools(row, names)
    return Agent(
        agent_id,
        description=row.text("description") or "",
        tools=tools,
        sources=_sources(row, source_ids),
        approvals=read_approvals(row, names),
        user_id=row.text("user_id", filled=True),
        tool_rules=read_rules(row.rows("tool_rules"), names, tools),
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


def read_tool_settings(table: Row, names: Names) -> dict[str, ToolSettings]:
    """``[tools.NAME]`` by name, in the order of the file."""
    found: dict[str, ToolSettings] = {}
    for name in table.raw:
        row = table.table(name)
        if row is None:
            continue
        if split_name(name)[1] is not None:
            row.report.error(row.path, "not-supported", "settings of one major version are not supported yet")
        else:
            names.tool(name, row.path)
        row.only(TOOL_KEYS, "the settings of a tool")
        for key in row.raw:
            if key in TOOL_KEYS and key != "timeout":
                row.report.error(
                    row.at(key), "not-supported", f"`{key}` of a tool is not supported yet", at_value=False
                )
        found[name] = ToolSettings(_timeout(row))
    return found


def _timeout(row: Row) -> float | None:
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
