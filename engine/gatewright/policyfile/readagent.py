"""Reads agents and the sources that they work on, in our own shape and in Pattern's: tables to values.

``[agents.ID]``, ``capabilities`` (``"ClockRead"`` or ``{ NetRead = { allowlist = [...] } }``), ``approvals``,
``[defaults]``, ``[[sources]]``; Pattern's file of one agent with its ``[data_sources.KEY]``, in which three keys of
ours may stand too (``description``, ``approvals``, ``defaults``): Pattern reads past them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from gatewright.base.problem import RawPath, shown
from gatewright.base.row import Raw, Row, kind_of, name_error
from gatewright.base.shape import DURATION, FLAG, NAME, TEXT, Shape, by_name, one_of, several, table, told, whole
from gatewright.policy.document import (
    DEFAULT_MAX_FILE_BYTES,
    DEFAULT_MAX_OUTPUT_BYTES,
    Agent,
    Defaults,
    Dialect,
    PermissionRule,
    Policy,
    Source,
    SourceType,
)
from gatewright.policy.glob import check_pattern
from gatewright.policy.kinds.capability import CAPABILITIES, Capability, check_capabilities
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.scope import Endpoints
from gatewright.policy.verdict import Permission, Verdict, split_name
from gatewright.policyfile.names import Names
from gatewright.policyfile.place import ids_of_paths
from gatewright.policyfile.readrule import RULES, read_required_tools, read_rules

_KINDS = {str(kind): value for kind, value in CAPABILITIES.items()}


def capability_shape() -> Shape:
    """What an entry of ``capabilities`` looks like: a name, or one name with its table."""
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
    """The capabilities of one agent; one that cannot be built is left out (an error)."""
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


LEVELS = {str(level): level for level in Permission}
SOURCE_TYPES = {str(kind): kind for kind in SourceType}
_LEVEL = one_of(LEVELS)
PERMISSION_KEYS: dict[str, Shape] = {
    "pattern": told(TEXT, "A glob as in `.gitignore`; the first rule that matches decides"),
    "permission": told(_LEVEL, "What may be done with the files that it matches"),
    "comment": told(TEXT, "Why"),
}
SOURCE_KEYS: dict[str, Shape] = {
    "id": told(NAME, "The name by which agents have it"),
    "type": told(
        one_of(SOURCE_TYPES),
        "`file`: files to work with; `folder_changes`: a stream of what changes there; `host`: what the program adds",
    ),
    "base_path": told(
        NAME, "Its folder, relative to this file; outside of this file's folder it must be trusted first"
    ),
    "default_permission": told(_LEVEL, "What may be done where no rule matches", str(Permission.READ_ONLY)),
    "permission_rules": told(
        several(table(PERMISSION_KEYS, "pattern", "permission")), "Levels by path; the first that matches decides", []
    ),
    "required_tools": told(RULES, "Tool rules that bind only the calls that go to this source", []),
    "watch": told(FLAG, "Take changes from outside into open blocks as they happen", default=False),
    "max_file_bytes": told(whole(1), "The largest file that is read or written", DEFAULT_MAX_FILE_BYTES),
    "follow_symlinks": told({"const": False}, "Not supported yet", default=False),
}
LACKS = {
    SourceType.FILE: (),
    SourceType.FOLDER_CHANGES: ("required_tools", "watch", "max_file_bytes", "follow_symlinks"),
    SourceType.HOST: ("base_path", "watch", "follow_symlinks"),
}
"""The keys that a source of each type does not have."""


def source_shape() -> Shape:
    """What an entry of ``[[sources]]`` looks like."""
    return {
        **table(SOURCE_KEYS, "id", "type"),
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


FILE_DATA_KEYS = ("type", "paths", "permission_rules", "default_permission", "max_file_bytes")
FOREIGN_DATA_KEYS = ("name", "recursive", "include_patterns", "exclude_patterns")
DATA_TYPES = ("file", "bluesky", "discord", "shell", "custom")


def read_sources(rows: list[Row], names: Names) -> list[Source]:
    """The sources of ``[[sources]]``; one that cannot be built is left out (an error)."""
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
    """The file sources of ``[data_sources.KEY]``, one per path; entries of other types are warnings."""
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
            level, size, rules = _common(row, Permission.READ_WRITE)
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
    row.only(SOURCE_KEYS, "a source")
    source_id = row.text("id", filled=True) if row.require("id", "a source") else None
    kind = row.choice("type", SOURCE_TYPES) if row.require("type", "a source") else None
    base_path = "" if kind is SourceType.HOST else None
    if base_path is None:
        base_path = row.text("base_path") if row.require("base_path", "a source") else None
    if base_path is not None and kind is not SourceType.HOST and (why := path_error(base_path)):
        row.fault("base_path", "bad-value", f"`base_path` {why}")
    for key in LACKS[kind or SourceType.FILE]:
        if key in row.raw:
            row.fault(key, "bad-value", f"a source of type `{kind}` has no `{key}`")
    if row.flag("follow_symlinks", otherwise=False):
        row.fault("follow_symlinks", "not-supported", "`follow_symlinks = true` is not supported yet")
    level, size, rules = _common(row, None)
    required = read_required_tools(row.rows("required_tools"), names)
    if source_id is None or base_path is None:
        return None
    watch = row.flag("watch", otherwise=False)
    return Source(source_id, base_path, level, rules, size, required, watch, kind or SourceType.FILE)


def _common(row: Row, level_of_rules: Permission | None) -> tuple[Permission, int, tuple[PermissionRule, ...]]:
    """Level, size and rules; ``level_of_rules``: of a rule that says none, where it may do without."""
    level = row.choice("default_permission", LEVELS) or Permission.READ_ONLY
    size = row.integer("max_file_bytes", 1) or DEFAULT_MAX_FILE_BYTES
    rules: list[PermissionRule] = []
    for entry in row.rows("permission_rules"):
        entry.only(PERMISSION_KEYS, "a permission rule")
        pattern = entry.text("pattern") if entry.require("pattern", "a permission rule") else None
        if pattern is not None and (why := check_pattern(pattern)):
            entry.fault("pattern", "bad-glob", why)
        permission = level_of_rules
        if "permission" in entry.raw or level_of_rules is None:
            permission = (
                entry.choice("permission", LEVELS) if entry.require("permission", "a permission rule") else None
            )
        comment = entry.text("comment")
        if pattern is not None and permission is not None:
            rules.append(PermissionRule(pattern, permission, comment))
    return level, size, tuple(rules)


def path_error(path: str) -> str | None:
    """Why ``path`` cannot be the base of a source, or None."""
    if not path.strip():
        return "may not be blank"
    return "may not hold control characters" if any(char < " " or char == "\x7f" for char in path) else None


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
