"""Reads agents and the sources that they work on, in our own dialect and in Pattern's.

``[agents.ID]``, ``capabilities`` (``"ClockRead"`` or ``{ NetRead = { allowlist = [...] } }``), ``approvals``,
``[defaults]``, ``[[sources]]``; and Pattern's file of one agent with its ``[data_sources.KEY]``. That file may also
hold three keys of ours (``description``, ``approvals``, ``defaults``), which Pattern ignores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from gatewright.base.errors import RawPath, shown
from gatewright.base.row import Raw, Row, Shape, kind_of, name_error, one_of, table
from gatewright.policy.capability import CAPABILITIES, Capability, check_capabilities, plain_capability
from gatewright.policy.document import (
    DEFAULT_MAX_FILE_BYTES,
    DEFAULT_MAX_OUTPUT_BYTES,
    Agent,
    Defaults,
    Delegate,
    Dialect,
    PermissionRule,
    Policy,
    Source,
    SourceType,
)
from gatewright.policy.glob import check_pattern
from gatewright.policy.rule import ANY_TOOL, ToolRule
from gatewright.policy.verdict import Endpoints, Mode, Permission, Verdict, split_name
from gatewright.policyfile.names import Names, ids_of_paths
from gatewright.policyfile.readrule import read_required_tools, read_rules
from gatewright.policyfile.table import Form, Id, Moment, Name, Plain, Seconds, Table, check_mode, plain, read_keys

_KINDS = {str(kind): value for kind, value in CAPABILITIES.items()}


VERDICTS = {str(verdict): verdict for verdict in Verdict}
_APPROVALS = (
    "Who has to agree, by tier (`read_only`, `side_effecting`, `privileged`), or for `tool`, "
    '`"tool.operation"` or `"catalog:ID"`'
)


def capability_shape() -> Shape:
    """The JSON Schema of an entry of ``capabilities``: a name, or one name with its table."""
    alone = [name for name, kind in _KINDS.items() if not kind.example]
    return {
        "anyOf": [
            one_of(alone),
            *(
                table({name: table(kind.keys, *(kind.keys if kind.example else ()))}, name)
                for name, kind in _KINDS.items()
            ),
        ]
    }


def read_capabilities(row: Row) -> tuple[Capability, ...]:
    """The capabilities of one agent; a faulty one is reported and left out."""
    found: list[tuple[Capability, RawPath]] = []
    report = row.report
    for index, value in enumerate(row.items("capabilities")):
        path = row.at("capabilities", index)
        is_name = isinstance(value, str)
        if not is_name and not isinstance(value, dict):
            report.error(path, "wrong-type", f"a capability must be text or a table, not {kind_of(value)}")
            continue
        tagged: Raw = {value: {}} if is_name else cast("Raw", value)
        if len(tagged) != 1:
            example = "`{ NetRead = { allowlist = [...] } }`"
            report.error(path, "bad-value", f"a capability is one table with exactly one kind, such as {example}")
            continue
        name = next(iter(tagged))
        kind = _KINDS.get(name)
        if kind is None:
            place, near = path if is_name else (*path, name), report.near(name, _KINDS)
            message = f"no kind of capability is named {shown(name)}"
            report.error(place, "unknown-variant", message, near=near, at_value=False)
        elif is_name and kind.example:
            report.error(path, "bad-value", f"`{name}` needs a value, such as `{kind.example}`")
        elif (table_of := Row(tagged, path, report).table(name)) is not None:
            table_of.only(kind.keys, f"`{name}`")
            if (capability := kind.read(table_of)) is not None:
                found.append((capability, path))
    check_capabilities(found, report)
    return tuple(capability for capability, _ in found)


class AgentTable(Table, of=Agent):
    """``[agents.ID]``."""

    description: str = Field("", description="Its purpose")
    tools: tuple[Name, ...] | None = Field(
        None,
        description="The complete list of its tools, each as `name`, `name@major` or, for all tools of a catalog, "
        "`catalog:ID`; absent: as `unlisted_tools` says",
    )
    sources: tuple[Name, ...] | None = Field(None, description="The complete list of its sources; absent: all")
    approvals: Mapping[str, Verdict] = Field({}, description=_APPROVALS)
    user_id: Id | None = Field(None, description="The user whose notes the memory tools keep")
    capabilities: tuple[Annotated[Capability, Form(capability_shape, None, plain_capability)], ...] = Field(
        (), description="The kinds of things that it may touch, with their limits"
    )
    mode: Mode = Field(Mode.ENFORCE, description="`observe`: what denies or asks is noted in the log and not enforced")
    observe_until_s: Moment | None = Field(
        None, alias="observe_until", description="The time when enforcing begins again, at most 30 days ahead"
    )
    sub_agents: tuple[Name, ...] = Field(
        (), description="The agents that may have more rights than it when it starts them as sub-agents"
    )
    delegate: Delegate = Field(
        Delegate.OWN,
        description="What those have: their own rights (`own`), or of these only what it has (`intersect`)",
    )
    tool_rules: tuple[ToolRule, ...] = Field((), description="Its rules for single tools")


def plain_agent(agent: Agent) -> Plain:
    """The agent's table without its rules."""
    return plain(agent, without=("tool_rules",))


class DefaultsTable(Table, of=Defaults):
    """``[defaults]``."""

    unlisted_tools: Literal[Verdict.ALLOW, Verdict.DENY] = Field(
        Verdict.ALLOW, description="The verdict on all tools of an agent without `tools`"
    )
    new_tools: Literal["hold", "allow"] = Field("hold", description="The treatment of later tools for such an agent")
    max_output_bytes: int = Field(DEFAULT_MAX_OUTPUT_BYTES, ge=1, description="The size at which results are cut")
    timeout_s: Seconds | None = Field(
        None, alias="timeout", description="The time limit of a call; absent: each tool's own"
    )
    check_formats: bool = Field(False, description="Arguments must be what `format` in a tool's schema says")
    approvals: Mapping[str, Verdict] = Field({}, description=_APPROVALS)


def read_defaults(row: Row, names: Names) -> Defaults:
    """Read ``[defaults]``."""
    found = read_keys(row, DefaultsTable, "`[defaults]`")
    check_timeout(row, found)
    return Defaults(**found, approvals=read_approvals(row, names))


def check_timeout(row: Row, found: Mapping[str, Any]) -> None:
    """Report a ``timeout`` of zero."""
    if found.get("timeout_s") == 0:
        row.fault("timeout", "bad-value", "`timeout` must be longer than nothing")


def read_agents(table: Row, names: Names, source_ids: Collection[str]) -> dict[str, Agent]:
    """Read every agent by id, in the order of the file."""
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
            keys = read_keys(row, AgentTable, "an agent")
            check_mode(row, keys)
            found[agent_id] = Agent(
                agent_id,
                **keys,
                tools=(tools := _tools(row, names)),
                sources=_sources(row, source_ids),
                sub_agents=_sub_agents(row, agent_id, table.raw),
                approvals=read_approvals(row, names),
                tool_rules=read_rules(row.rows("tool_rules"), names, tools),
                capabilities=read_capabilities(row),
            )
    return found


def _tools(row: Row, names: Names) -> tuple[str, ...] | None:
    """Read the list of tools; None if absent."""
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
            names.selected(written, path)
    return tuple(written for _, written in found)


def read_approvals(row: Row, names: Names) -> dict[str, Verdict]:
    """Read ``approvals``: verdicts by tier, catalog, tool or ``tool.operation``."""
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
        if (verdict := table.choice(key, VERDICTS)) is not None:
            found[key] = verdict
    return found


def _sub_agents(row: Row, own_id: str, known: Collection[str]) -> tuple[str, ...]:
    seen: set[str] = set()
    found = row.texts("sub_agents") if "sub_agents" in row.raw else []
    for index, name in found:
        path = row.at("sub_agents", index)
        if name not in known:
            near = row.report.near(name, known)
            row.report.error(path, "unknown-agent", f"no agent is named {shown(name)}", near=near)
        elif name == own_id:
            row.report.error(path, "bad-value", "an agent is no sub-agent of its own: as that it has its own rights")
        elif name in seen:
            row.report.error(path, "duplicate", f"{shown(name)} is listed already")
        seen.add(name)
    return tuple(name for _, name in found)


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


class PermissionTable(Table, of=PermissionRule):
    """A row of ``permission_rules``."""

    pattern: str = Field(description="A glob as in `.gitignore`; the first rule that matches decides")
    permission: Permission = Field(description="The level of the files that it matches")
    comment: str | None = Field(None, description="Why")


class SourceTable(Table, of=Source):
    """A row of ``[[sources]]``."""

    source_id: Id = Field(alias="id", description="The name by which agents have it")
    kind: SourceType = Field(
        alias="type",
        description="`file`: files to work with; `folder_changes`: a stream of the changes there; `host`: what the "
        "program adds",
    )
    base_path: Name = Field(
        "", description="Its folder, relative to this file; outside of this file's folder it must be trusted first"
    )
    default_permission: Permission = Field(Permission.READ_ONLY, description="The level of files that no rule matches")
    max_file_bytes: int = Field(DEFAULT_MAX_FILE_BYTES, ge=1, description="The largest file that is read or written")
    watch: bool = Field(False, description="Take changes from outside into open blocks as they happen")
    follow_symlinks: Annotated[bool, Form(lambda: {"const": False}, Row.flag)] = Field(
        False, description="Not supported yet"
    )
    permission_rules: tuple[PermissionRule, ...] = Field(
        (), description="Levels by path; the first that matches decides"
    )
    required_tools: tuple[ToolRule, ...] = Field(
        (), description="Tool rules that bind only the calls that go to this source"
    )

    @classmethod
    def shape(cls) -> Shape:
        """Its JSON Schema, in which each type of source lacks the keys that it does not have."""
        return {
            **super().shape(),
            "allOf": [
                {
                    "if": {"properties": {"type": one_of([kind])}},
                    "then": {
                        "properties": dict.fromkeys(lacks, False),
                        "required": [key for key in ("base_path",) if key not in lacks],
                    },
                }
                for kind, lacks in LACKS.items()
            ],
        }


def plain_source(source: Source, *, whole: bool = False) -> Plain:
    """The source's table without its rules (levels and required tools)."""
    return plain(source, without=("permission_rules", "required_tools", "follow_symlinks"), whole=whole)


LACKS = {
    SourceType.FILE: (),
    SourceType.FOLDER_CHANGES: ("required_tools", "watch", "max_file_bytes", "follow_symlinks"),
    SourceType.HOST: ("base_path", "watch", "follow_symlinks"),
}
"""The keys that a source of each type does not have."""


FILE_DATA_KEYS = ("type", "paths", "permission_rules", "default_permission", "max_file_bytes")
FOREIGN_DATA_KEYS = ("name", "recursive", "include_patterns", "exclude_patterns")
_LEVELS = {str(level): level for level in Permission}
DATA_TYPES = ("file", "bluesky", "discord", "shell", "custom")


def read_sources(rows: list[Row], names: Names) -> list[Source]:
    """Read the sources of ``[[sources]]``; a faulty one is reported and left out."""
    seen: dict[str, str] = {}
    found: list[Source] = []
    for row in rows:
        source = _source(row, names)
        if source is None:
            continue
        folded = source.source_id.casefold()
        if folded in seen:
            row.fault("id", "duplicate", f"a source is named {shown(seen[folded])} already")
        seen.setdefault(folded, source.source_id)
        found.append(source)
    return found


def read_data_sources(table: Row, taken: set[str]) -> list[Source]:
    """Read the file sources of ``[data_sources.KEY]``, one for each path, and warn about entries of other types."""
    found: list[Source] = []
    for key in table.raw:
        row = table.table(key)
        if row is None or not row.require("type", f"data source {shown(key)}"):
            continue
        kind = row.text("type")
        if kind == "file":
            for foreign in FOREIGN_DATA_KEYS:
                if foreign in row.raw and foreign != "name":
                    row.report.warning(row.at(foreign), "pattern-key", f"`{foreign}` of a data source is not read")
            row.only((*FILE_DATA_KEYS, *FOREIGN_DATA_KEYS), "a data source")
            level = row.choice("default_permission", _LEVELS) or Permission.READ_ONLY
            size = row.integer("max_file_bytes", 1) or DEFAULT_MAX_FILE_BYTES
            rules = _levels(row, permission=str(Permission.READ_WRITE))
            paths = row.texts("paths") if row.require("paths", f"data source {shown(key)}") else []
            for index, path in paths:
                if why := path_error(path):
                    row.report.error(row.at("paths", index), "bad-value", f"a path {why}")
            ids = ids_of_paths(key, len(paths), taken)
            found += [Source(name, path, level, rules, size) for name, (_, path) in zip(ids, paths, strict=True)]
        elif kind in DATA_TYPES:
            text = f"data sources of type `{kind}` are not read: nothing of {shown(key)} is enforced here"
            row.report.warning(row.path, "pattern-key", text)
        elif kind is not None:
            near = row.report.near(kind, DATA_TYPES)
            row.fault("type", "unknown-variant", f"no data source is of type {shown(kind)}", near)
    return found


def _source(row: Row, names: Names) -> Source | None:
    found = read_keys(row, SourceTable, "a source")
    kind: SourceType = found.get("kind", SourceType.FILE)
    if kind is SourceType.HOST:
        found["base_path"] = ""
    elif row.require("base_path", "a source") and (why := path_error(found.get("base_path", "."))):
        row.fault("base_path", "bad-value", f"`base_path` {why}")
    for key in LACKS[kind]:
        if key in row.raw:
            row.fault(key, "bad-value", f"a source of type `{kind}` has no `{key}`")
    if found.pop("follow_symlinks", False):
        row.fault("follow_symlinks", "not-supported", "`follow_symlinks = true` is not supported yet")
    rules = _levels(row)
    required = read_required_tools(row.rows("required_tools"), names)
    if not {"source_id", "base_path"} <= found.keys():
        return None
    return Source(**found, permission_rules=rules, required_tools=required)


def _levels(row: Row, **usual: object) -> tuple[PermissionRule, ...]:
    """Read the rules that can be built; ``usual``: values of keys that a rule may lack."""
    rules: list[PermissionRule] = []
    for entry in row.rows("permission_rules"):
        found = read_keys(Row(usual | entry.raw, entry.path, entry.report), PermissionTable, "a permission rule")
        if "pattern" in found and (why := check_pattern(found["pattern"])):
            entry.fault("pattern", "bad-glob", why)
        if {"pattern", "permission"} <= found.keys():
            rules.append(PermissionRule(**found))
    return tuple(rules)


def path_error(path: str) -> str | None:
    """The reason why ``path`` cannot be the base of a source, or None."""
    if not path.strip():
        return "may not be blank"
    return "may not hold control characters" if any(char < " " or char == "\x7f" for char in path) else None


OWN_KEYS = ("name", "description", "tools", "tool_rules", "sources", "data_sources", "approvals", "defaults")
PATTERN_ENDPOINTS = Endpoints(user=True)
"""The endpoints of such an agent: it sends to its user, and its file cannot say anything else."""
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
    """Read the policy of one agent, whose id is the ``name`` in the file, else ``fallback_id`` (the file's stem)."""
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
    tools = _tools(row, names) or None
    return Agent(
        agent_id,
        description=row.text("description") or "",
        tools=tools,
        approvals=read_approvals(row, names),
        tool_rules=read_rules(row.rows("tool_rules"), names, tools),
    )
