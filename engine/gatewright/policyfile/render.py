"""Plain values as TOML text, as tomlkit spells them, and a policy as a new, tidy file; nobody's formatting is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import tomlkit
from tomlkit.items import SingleKey

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
    return SingleKey(_encodable(key)).as_string()


def dotted(path: RawPath) -> str:
    """The dotted key of a path; positions in lists are left out, as headers do."""
    return ".".join(key_text(part) for part in path if isinstance(part, str))


def header(path: RawPath) -> str:
    """``[path]``, or ``[[path]]`` when the path ends in a position."""
    return f"[[{dotted(path)}]]" if path and isinstance(path[-1], int) else f"[{dotted(path)}]"


def literal(value: object) -> str:
    """A value on one line. Raises NotSupported for what TOML cannot say."""
    match value:
        case str():
            return text_literal(value)
        case bool() | int() | float():
            return tomlkit.item(value).as_string()
        case dict():
            table = cast("Mapping[str, object]", value)
            return (
                "{ " + ", ".join(f"{key_text(key)} = {literal(one)}" for key, one in table.items()) + " }"
                if table
                else "{}"
            )
        case list() | tuple():
            return f"[{', '.join(map(literal, cast('Iterable[object]', value)))}]"
        case _:
            raise NotSupported(f"a policy file cannot hold a value of type `{type(value).__name__}`")


def text_literal(text: str) -> str:
    """Text in quotes; single ones where that avoids doubled backslashes."""
    plain = "\\" in text and "'" not in text and not any(char < " " or char == "\x7f" for char in text)
    return tomlkit.string(_encodable(text), literal=plain).as_string()


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
    """A header and its statements."""
    return f"{header(path)}\n{statements(data)}"


def statements(data: Mapping[str, object]) -> str:
    """One ``key = value`` line per entry."""
    return "".join(f"{key_text(key)} = {literal(value)}\n" for key, value in data.items())


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
