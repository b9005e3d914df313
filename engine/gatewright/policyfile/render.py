"""Plain values as TOML text, as tomlkit spells them, and a policy as a new, tidy file; nobody's formatting is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import tomlkit
from tomlkit.container import Container
from tomlkit.items import AoT, Array, InlineTable, Item, SingleKey, Table, Trivia, Whitespace

from gatewright.base.errors import NotSupported
from gatewright.base.report import RawPath
from gatewright.policy.document import Agent, Defaults, Policy, Source
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.plain import (
    plain_agent,
    plain_catalog,
    plain_composition,
    plain_defaults,
    plain_permission_rule,
    plain_policy_rule,
    plain_rule,
    plain_source,
    plain_tool_settings,
    plain_workspace,
)


def key_text(key: str) -> str:
    """A key, quoted where it must be."""
    return _key(key).as_string()


def literal(value: object) -> str:
    """A value on one line. Raises NotSupported for what TOML cannot say."""
    return _item(value).as_string()


def _item(value: object) -> Item:
    match value:
        case str():
            plain = "\\" in value and "'" not in value and not any(char < " " or char == "\x7f" for char in value)
            return tomlkit.string(
                _encodable(value), literal=plain
            )  # single quotes where that avoids doubled backslashes
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
    """Keys and values as the parser leaves them: else each one that is appended looks through all of them."""
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
    return "\n".join(_blocks(policy))


def block(path: RawPath, data: Mapping[str, object]) -> str:
    """A table with its header: ``[path]``, or ``[[path]]`` when the path ends in a position.

    Other positions in lists are left out, as headers do.
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
    """``[agents.ID]`` and its rules, with ``rule_type`` as Pattern reads it when ``adjacent``."""
    path: RawPath = ("agents", agent.agent_id)
    yield block(path, plain_agent(agent))
    for rule in agent.tool_rules:
        yield block((*path, "tool_rules", 0), plain_rule(rule, adjacent=adjacent))


def source_blocks(source: Source, *, adjacent: bool = False) -> Iterator[str]:
    """``[[sources]]``, its levels and its required tools (as Pattern reads them when ``adjacent``)."""
    yield block(("sources", 0), plain_source(source))
    for rule in source.permission_rules:
        yield block(("sources", 0, "permission_rules", 0), plain_permission_rule(rule))
    for required in source.required_tools:
        yield block(("sources", 0, "required_tools", 0), plain_rule(required, adjacent=adjacent))


def _blocks(policy: Policy) -> Iterator[str]:
    named = {"name": policy.name, "description": policy.description}
    yield statements({"gatewright": 1, **{key: value for key, value in named.items() if value is not None}})
    if policy.defaults != Defaults():
        yield block(("defaults",), plain_defaults(policy.defaults))
    for agent in policy.agents.values():
        yield from agent_blocks(agent)
    for source in policy.sources:
        yield from source_blocks(source)
    for catalog in policy.catalogs:
        yield block(("catalogs", 0), plain_catalog(catalog))
    for composition in policy.compositions:
        yield block(("compositions", 0), plain_composition(composition))
    for name, settings in policy.tools.items():
        yield block(("tools", name), plain_tool_settings(settings))
    if workspace := plain_workspace(policy):
        yield block(("workspace",), workspace)
    if policy.default is not Verdict.ALLOW:
        yield block(("policy",), {"default": str(policy.default)})
    for rule in policy.rules:
        yield block(("policy", "rules", 0), plain_policy_rule(rule))
