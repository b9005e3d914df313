"""The place of the policy that a call or a problem is about, as the window shows it."""

from typing import Literal, TypeAlias

from gatewright.workspace.api import ANY_TOOL, Address, AllowedOperations, Policy, Subject, frozen, split_name
from gatewright_gui.qt.language import tr


@frozen
class ToolPlace:
    """A row of an agent's tools; `part`: what is to be shown of it, `rule`: which rule of that part is meant."""

    agent_id: str
    tool: str
    operation: str | None
    part: Literal["why", "limits"]
    rule: Address | None = None


@frozen
class AgentPlace:
    """The place of what an agent is granted and what asks first; `rule`: the capability or the key that is meant."""

    agent_id: str
    rule: Address | None = None


@frozen
class LevelPlace:
    """A row of a source's levels; `index` None: its default."""

    source_id: str
    index: int | None


@frozen
class PolicyPlace:
    """A policy rule, by its index from 0."""

    index: int


@frozen
class ServerPlace:
    """The row of a catalog in Servers."""

    catalog_id: str


@frozen
class LinePlace:
    """A line of the policy file, from 1."""

    line: int


RulePlace: TypeAlias = ToolPlace | AgentPlace | LevelPlace | PolicyPlace | ServerPlace | LinePlace


def place_of(
    policy: Policy, address: Address, line: int | None, called: tuple[str, str | None] | None = None
) -> RulePlace | None:
    """The place to edit a rule; `line` where it stands, `called`: tool and operation of the call that it decided.

    None when it is no longer in the policy.
    """
    match address:
        case ("agents", str(agent_id), "tool_rules", int(index)):
            return _tool_place(policy, agent_id, index, line, called)
        case ("sources", str(source_id), "permission_rules", int(index)):
            source = next((one for one in policy.sources if one.source_id == source_id), None)
            there = source is not None and index < len(source.permission_rules)
            return LevelPlace(source_id, index) if there else None
        case ("sources", str(source_id), "default_permission"):
            return LevelPlace(source_id, None)
        case ("policy", "rules", int(index)):
            return PolicyPlace(index) if index < len(policy.rules) else None
        case _:
            return _line_place(line)


def place_of_subject(policy: Policy, subject: Subject) -> RulePlace | None:
    """The place where one sees what a problem is about, with the first agent where it is about nobody alone.

    None where the window shows no more than the file does.
    """
    match subject.address:
        case ("agents", str(owner), *rest) if owner in policy.agents:
            return _agent_place(policy, owner, rest, subject)
        case ("sources", _, "permission_rules", int(), *_):
            return place_of(policy, subject.address[:4], None)
        case ("policy", "rules", int(), *_):
            return place_of(policy, subject.address[:3], None)
        case ("sources", _, "required_tools", *_):
            return None
        case ("sources", str(source_id), *_) if policy.source(source_id) is not None:
            return LevelPlace(source_id, None)
        case ("catalogs", str(catalog_id), *_) if policy.catalog(catalog_id) is not None:
            return ServerPlace(catalog_id)
        case ("tools", *_) if policy.agents:
            return _row(next(iter(policy.agents)), subject)
        case _:
            return None


def _agent_place(policy: Policy, owner: str, rest: list[str | int], subject: Subject) -> RulePlace | None:
    match rest:
        case ["tool_rules", int(), *_]:
            rule = subject.address[:4]
            place = place_of(policy, rule, None)
            limits = isinstance(place, ToolPlace) and place.part == "limits"
            return place if limits else _row(owner, subject, rule)
        case ["capabilities" | "approvals", _, *_]:
            return AgentPlace(owner, subject.address[:4])
        case _:
            return _row(owner, subject) or AgentPlace(owner)


def _row(agent_id: str, subject: Subject, rule: Address | None = None) -> ToolPlace | None:
    """Why the first of the tools is as it is."""
    return next((ToolPlace(agent_id, tool, name, "why", rule) for tool, name in subject.tools), None)


def _line_place(line: int | None) -> LinePlace | None:
    return None if line is None else LinePlace(line)


def _tool_place(
    policy: Policy, agent_id: str, index: int, line: int | None, called: tuple[str, str | None] | None
) -> RulePlace | None:
    agent = policy.agents.get(agent_id)
    if agent is None or index >= len(agent.tool_rules):
        return None  # taken away since
    rule = agent.tool_rules[index]
    part: Literal["why", "limits"] = "why" if isinstance(rule.rule_type, AllowedOperations) else "limits"
    address: Address = ("agents", agent_id, "tool_rules", index)
    if called is not None:
        return ToolPlace(agent_id, called[0], called[1], part, address)
    if rule.tool_name == ANY_TOOL:
        return _line_place(line)
    named = sorted(rule.operations or ())
    return ToolPlace(agent_id, split_name(rule.tool_name)[0], named[0] if len(named) == 1 else None, part, address)


def place_words(place: RulePlace | None) -> str:
    """Spell a place in the window as a trail; empty for a line of the file."""
    match place:
        case ToolPlace(agent_id, tool, operation):
            return " > ".join(filter(None, (agent_id, tool, operation)))
        case AgentPlace(agent_id):
            return agent_id
        case LevelPlace(source_id, index):
            level = None if index is None else tr("rule {number}", number=index + 1)
            return f"{source_id} > {level}" if level is not None else source_id
        case PolicyPlace(index):
            return tr("policy rule {name}", name=index + 1)
        case ServerPlace(catalog_id):
            return catalog_id
        case LinePlace() | None:
            return ""
