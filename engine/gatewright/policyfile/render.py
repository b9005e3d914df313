"""Writes policies as new TOML text: values in tomlkit's spelling, a whole tidy file, one agent in Pattern's dialect.

Pattern knows a list of tools, tool rules tagged ``{ type, value }`` and file sources; its durations are whole seconds.
Comments at the top of the file name everything that this dialect cannot express.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

import tomlkit
from tomlkit.container import Container
from tomlkit.items import AoT, Array, InlineTable, Item, SingleKey, Table, Trivia, Whitespace

from gatewright.base.errors import NotSupported, RawPath, shown
from gatewright.policy.document import (
    DEFAULT_MAX_FILE_BYTES,
    Agent,
    Defaults,
    MemoryWeights,
    Policy,
    Questions,
    ShellSettings,
    Source,
    ToolSettings,
    Web,
)
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ArgumentConstraints, Cooldown, Periodic, RateLimit, RequiresConsent, ToolRule
from gatewright.policy.verdict import (
    Endpoints,
    Permission,
    Verdict,
    names_tool,
    reads_freely,
    selected_catalog,
    split_name,
)
from gatewright.policyfile.readagent import PATTERN_ENDPOINTS, plain_agent, plain_source
from gatewright.policyfile.readrule import plain_rule
from gatewright.policyfile.readworkspace import WorkspaceTable
from gatewright.policyfile.table import plain


def key_text(key: str) -> str:
    """A key, quoted if necessary."""
    return _key(key).as_string()


def literal(value: object) -> str:
    """A value on one line. Raises NotSupported for a value that TOML cannot express."""
    return _item(value).as_string()


def _item(value: object) -> Item:
    match value:
        case str():
            plain = "\\" in value and "'" not in value and not any(char < " " or char == "\x7f" for char in value)
            return tomlkit.string(_encodable(value), literal=plain)  # single quotes avoid doubled backslashes
        case bool() | int() | float():
            return tomlkit.item(value)
        case dict():
            return _inline(cast("Mapping[str, object]", value))
        case list() | tuple():
            row: list[Item] = []
            for one in cast("Iterable[object]", value):
                row += ([Whitespace(","), Whitespace(" ")] if row else []) + [_item(one)]
            return Array(row, Trivia())
        case _:
            raise NotSupported(f"a policy file cannot hold a value of type `{type(value).__name__}`")


def _inline(table: Mapping[str, object]) -> InlineTable:
    """An inline table with a space inside each brace, as authors write it."""
    made, last = _container(table), None
    for _, last in made.body:
        last.trivia.indent = " "
    if last is not None:
        last.trivia.trail = " "
    return InlineTable(made, Trivia())


def _container(data: Mapping[str, object]) -> Container:
    """Keys and values as the parser holds them; else tomlkit would search all keys for each one it appends."""
    made = Container(parsed=True)
    for key, value in data.items():
        made.append(_key(key), _item(value))
    return made


def _key(key: str) -> SingleKey:
    return SingleKey(_encodable(key))


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotSupported("a policy file cannot hold half of a surrogate pair") from None
    return text


def render_policy(policy: Policy) -> str:
    """The text of a whole policy file. Raises NotSupported for a value that TOML cannot hold."""
    return "\n".join(_policy_blocks(policy))


def block(path: RawPath, data: Mapping[str, object]) -> str:
    """A table with its header: ``[path]``, or ``[[path]]`` if the path ends in a position.

    Headers leave out all other positions in lists.
    """
    names, is_row = [part for part in path if isinstance(part, str)], isinstance(path[-1], int)
    table = Table(_container(data), Trivia(), is_aot_element=is_row)
    item: Item = AoT([table]) if is_row else table
    for name in reversed(names[1:]):
        above = tomlkit.table(is_super_table=True)
        above.append(_key(name), item)
        item = above
    return tomlkit.document().append(_key(names[0]), item).as_string()


def statements(data: Mapping[str, object]) -> str:
    """One ``key = value`` line per entry."""
    return _container(data).as_string()


def agent_blocks(agent: Agent, *, adjacent: bool = False) -> Iterator[str]:
    """``[agents.ID]`` and its rules, with ``rule_type`` in Pattern's form if ``adjacent``."""
    path: RawPath = ("agents", agent.agent_id)
    yield block(path, plain_agent(agent))
    for rule in agent.tool_rules:
        yield block((*path, "tool_rules", 0), plain_rule(rule, adjacent=adjacent))


def source_blocks(source: Source, *, adjacent: bool = False) -> Iterator[str]:
    """``[[sources]]``, its levels and its required tools (in Pattern's form if ``adjacent``)."""
    yield block(("sources", 0), plain_source(source))
    for rule in source.permission_rules:
        yield block(("sources", 0, "permission_rules", 0), plain(rule))
    for required in source.required_tools:
        yield block(("sources", 0, "required_tools", 0), plain_rule(required, adjacent=adjacent))


def _policy_blocks(policy: Policy) -> Iterator[str]:
    named = {"name": policy.name, "description": policy.description}
    yield statements({"gatewright": 1, **{key: value for key, value in named.items() if value is not None}})
    if policy.defaults != Defaults():
        yield block(("defaults",), plain(policy.defaults))
    for agent in policy.agents.values():
        yield from agent_blocks(agent)
    for source in policy.sources:
        yield from source_blocks(source)
    for catalog in policy.catalogs:
        yield block(("catalogs", 0), plain(catalog))
    for composition in policy.compositions:
        yield block(("compositions", 0), plain(composition))
    for name, settings in policy.tools.items():
        yield block(("tools", name), plain(settings))
    if workspace := plain(policy, WorkspaceTable):
        yield block(("workspace",), workspace)
    if policy.default is not Verdict.ALLOW:
        yield block(("policy",), {"default": str(policy.default)})
    for rule in policy.rules:
        yield block(("policy", "rules", 0), plain(rule))


_HEAD = """\
# Written by Gatewright for Pattern's runtime, agent by agent.
# That runtime does NOT enforce operations: it shows and runs every operation of each tool below, whatever the
# AllowedOperations rules say. It also matches the patterns of files by its own rules, which are not gitignore's.
# Deploy the policy with Gatewright where the rights have to hold.
"""


_UNKNOWN_THERE = (RateLimit, ArgumentConstraints)
"""Kinds that would make Pattern's reader refuse the whole file."""


def render_pattern(policy: Policy, agent_id: str, catalog: Iterable[ToolFacts] = ()) -> str:
    """The agent's file in Pattern's dialect; comments at the top name everything that is lost.

    ``catalog``: every tool, to write out ``catalog:ID``. Raises NotSupported for an agent without tools: there an empty
    list means every tool.
    """
    agent = policy.agents.get(agent_id)
    if agent is None:
        raise NotSupported(f"no agent `{agent_id}` to export")
    if not carries(policy, agent):
        raise NotSupported(f"agent `{agent_id}` has no tools, and Pattern reads an empty list as all of them")
    sources = policy.sources_of(agent)
    lost = [*_lost(policy, agent), *(fault for source in sources for fault in _lost_source(source))]
    lost += [f"the stream {stream.source_id}" for stream in policy.streams_of(agent)]
    tools = None if agent.tools is None else tuple(_listed(agent.tools, tuple(catalog)))
    said = "".join(f"# Lost here: {fault}.\n" for fault in lost)
    return "\n".join(_pattern_blocks(replace(agent, tools=tools), sources, said))


def _listed(tools: tuple[str, ...], catalog: tuple[ToolFacts, ...]) -> Iterator[str]:
    """The tools by name; a catalog without any stays as written, since an empty list there means every tool."""
    others = {name for name in tools if selected_catalog(name) is None}
    for written in tools:
        if selected_catalog(written) is None:
            yield written
        else:
            names = sorted(facts.name for facts in catalog if names_tool(written, facts) and not facts.held)
            yield from dict.fromkeys(name for name in names if name not in others) if names else (written,)


def carries(policy: Policy, agent: Agent) -> bool:
    """Tell whether Pattern's dialect can express the agent's tools."""
    return bool(agent.tools) or (agent.tools is None and policy.defaults.unlisted_tools is Verdict.ALLOW)


def _pattern_blocks(agent: Agent, sources: tuple[Source, ...], lost: str) -> Iterator[str]:
    tools = {} if agent.tools is None else {"tools": list(agent.tools)}
    yield _HEAD + lost + statements({"name": agent.agent_id, **tools})
    for rule in agent.tool_rules:
        if not isinstance(rule.rule_type, _UNKNOWN_THERE):
            yield block(("tool_rules", 0), _rule(rule))
    for source in sources:
        path = ("data_sources", source.source_id)
        yield block(path, {"type": "file", "name": source.source_id, "paths": [source.base_path]})
        for row in source.permission_rules:
            yield block((*path, "permission_rules", 0), {"pattern": row.pattern, "permission": _level(row.permission)})
        yield block((*path, "permission_rules", 0), {"pattern": "**", "permission": _level(source.default_permission)})


def _level(permission: Permission) -> str:
    """The level in Pattern's words, which has its strictest level in place of none."""
    return str(permission if reads_freely(permission) else Permission.READ_ONLY)


def _rule(rule: ToolRule) -> dict[str, object]:
    data = plain_rule(rule, adjacent=True)
    kind = rule.rule_type
    if isinstance(kind, Cooldown | Periodic):
        data["rule_type"] = {"type": rule.kind, "value": int(kind.seconds)}
    elif isinstance(kind, RequiresConsent):
        data["rule_type"] = {"type": rule.kind, "value": {} if kind.scope is None else {"scope": kind.scope}}
    return data


def _lost(policy: Policy, agent: Agent) -> Iterator[str]:
    defaults, own_limits = policy.defaults, (policy.defaults.max_output_bytes, policy.defaults.timeout_s)
    lost = {
        "the approvals": agent.approvals or defaults.approvals,
        "the limits of [defaults]": own_limits != (Defaults().max_output_bytes, None),
        "the check of formats": defaults.check_formats,
        "the settings of [tools]": any(settings != ToolSettings() for settings in policy.tools.values()),
    }
    yield from (words for words, is_lost in lost.items() if is_lost)
    for name, settings in policy.tools.items():
        if settings.declares:
            yield f"the operations declared for {_on_one_line(name)}"
    for catalog in policy.catalogs:
        yield f"the catalog {_on_one_line(catalog.catalog_id)}: its tools must be known there by other means"
        if catalog.is_confined:
            yield f"the confinement of {_on_one_line(catalog.catalog_id)}: there its server may do what its user may"
    for composition in policy.compositions:
        yield f"the composition {_on_one_line(composition.name)}"
    for name in policy.roots.folders:
        yield f"the root {name}"
    lost = {
        "what shell commands may start": policy.shell != ShellSettings(),
        "where messages may go": policy.endpoints not in (Endpoints(), PATTERN_ENDPOINTS),
        "what web tools may reach, and who is asked to search": policy.web != Web(),
        "the places that no tool touches": policy.closed,
        "how notes are ranked": policy.memory != MemoryWeights(),
        "how long a question waits": policy.questions != Questions(),
        "the capabilities": agent.capabilities,
    }
    yield from (words for words, is_lost in lost.items() if is_lost)
    if policy.default is not Verdict.ALLOW:
        yield f"the policy default {policy.default}: a call that no policy rule matches is allowed there"
    for rule in policy.rules:
        if rule.agents is None or agent.agent_id in rule.agents:
            yield f"the policy rule {_on_one_line(rule.name)} ({rule.effect})"
    if agent.user_id is not None:
        yield "the user_id"
    for name in agent.tools or ():
        if split_name(name)[1] is not None:
            yield f"the major version in {name}"
        if (catalog_id := selected_catalog(name)) is not None:
            yield f"the tools that {_on_one_line(catalog_id)} lists later, which {_on_one_line(name)} gives here"
    for number, rule in enumerate(agent.tool_rules, 1):
        yield from (f"{fault} of rule {number}" for fault in _lost_rule(rule))


def _on_one_line(text: str) -> str:
    return shown(text).strip("`")


def _lost_rule(rule: ToolRule) -> Iterator[str]:
    kind = rule.rule_type
    if isinstance(kind, _UNKNOWN_THERE):
        yield f"the kind {rule.kind} and with it the whole"
        return
    if rule.operations is not None:
        yield "the conditions on operations"
    if kind.names_tools and any("." in condition for condition in rule.conditions):
        yield "the operations of tools in the conditions"
    if isinstance(kind, Cooldown | Periodic) and kind.seconds != int(kind.seconds):
        yield "the fraction of a second"
    if split_name(rule.tool_name)[1] is not None:
        yield "the major version"


def _lost_source(source: Source) -> Iterator[str]:
    if source.required_tools:
        yield f"the required tools of source {source.source_id}"
    levels = {source.default_permission, *(rule.permission for rule in source.permission_rules)}
    for level in sorted(level for level in levels if not reads_freely(level)):
        yield f"the level {level} of source {source.source_id}, written as read_only: its files can be read there"
    if source.max_file_bytes != DEFAULT_MAX_FILE_BYTES:
        yield f"max_file_bytes of source {source.source_id}"
    if source.watch:
        yield f"watch of source {source.source_id}"
