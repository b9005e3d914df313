"""Verbs on what a tool takes and answers: its operations, its paths, who writes its results."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gatewright.workspace.api import (
    AllowedOperations,
    Edit,
    PathUse,
    Policy,
    ToolFacts,
    ToolRule,
    ToolSettings,
    ToolSettingsChange,
    Trust,
    frozen,
    names_tool,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.document import Document
from gatewright_gui.session.readings import BUILT_IN


@frozen
class Declaration:
    """`field` and `operations` as `[tools.NAME]` holds them; both None: as the schema says; field "": none at all."""

    field: str | None = None
    operations: tuple[str, ...] | None = None


AS_THE_SCHEMA_SAYS = Declaration()
NO_OPERATIONS = Declaration("")


def declaration_of(policy: Policy, tool: str, major: int) -> Declaration:
    """The declaration in the policy now."""
    settings = policy.tools.get(settings_key(policy, tool, major))
    return Declaration(settings.operation_field, settings.operations) if settings else AS_THE_SCHEMA_SAYS


def declare_edit(policy: Policy, tool: str, major: int, wanted: Declaration) -> Edit:
    """The edit that makes the policy declare that and nothing else of the tool's settings; empty when it does."""
    key = settings_key(policy, tool, major)
    before = policy.tools.get(key)
    after = replace(before or ToolSettings(), operation_field=wanted.field, operations=wanted.operations)
    settings = None if after == ToolSettings() and (before is None or before.declares) else after
    return Edit(_name(tool, wanted), (ToolSettingsChange(key, before, settings),))


def declare(document: Document, tool: str, major: int, wanted: Declaration) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: declare_edit(policy, tool, major, wanted))


def declare_refusal(document: Document, tool: str, major: int, wanted: Declaration) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: declare_edit(policy, tool, major, wanted))


def consequences(policy: Policy, facts: ToolFacts, names: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences on what it means for rights when the tool has the operations `names` from now on."""
    gone = [name for name in facts.operation_names if name not in names]
    come = [name for name in names if name not in facts.operation_names]
    said = [_count_words(facts, names)]
    if gone and names:
        said.append(tr("no longer operations: {names}", names=", ".join(gone)))
    if come and facts.has_operations:
        said.append(tr("new: {names}", names=", ".join(come)))
    said += [
        tr("{place} names {operations}: change it first", place=where, operations=", ".join(lost))
        for where, named in _places(policy, facts)
        if (lost := sorted(named.difference(names)))
    ]
    return (*said, _holders(policy, facts))


def settings_key(policy: Policy, tool: str, major: int) -> str:
    """The name under which the policy holds, or would hold, the settings of a tool."""
    return next((key for key in (f"{tool}@{major}", tool) if key in policy.tools), tool)


def _name(tool: str, wanted: Declaration) -> str:
    if wanted == AS_THE_SCHEMA_SAYS:
        return tr("read the operations of `{tool}` as its schema says", tool=tool)
    if wanted == NO_OPERATIONS:
        return tr("no operations for `{tool}`", tool=tool)
    return tr("declare operations of `{tool}`", tool=tool)


def _count_words(facts: ToolFacts, names: tuple[str, ...]) -> str:
    had, has = len(facts.operation_names), len(names)
    if not names:
        held = counted(had, "operation", "operations")
        return (
            tr("one box takes the place of {operations}", operations=held) if had else tr("the whole tool is one box")
        )
    now = counted(has, "operation", "operations")
    if facts.operation_names == names:
        return tr("{operations}, as now", operations=now)
    if had:
        return tr("{operations} instead of {count}", operations=now, count=had)
    return tr("{operations} instead of one box", operations=now)


def _holders(policy: Policy, facts: ToolFacts) -> str:
    has = [agent.agent_id for agent in policy.agents.values() if lists_tool(agent.tools, facts)]
    if not has:
        return tr("no agent has the tool yet")
    limited = [name for name in has if any(_limits(rule, facts) for rule in policy.agents[name].tool_rules)]
    free = [name for name in has if name not in limited]
    said = [tr("{agents}: every operation is on", agents=", ".join(free))] if free else []
    said += [tr("{agents}: only what their own rules list", agents=", ".join(limited))] if limited else []
    return "; ".join(said)


def lists_tool(tools: tuple[str, ...] | None, facts: ToolFacts) -> bool:
    """Tell whether an agent with that list of tools may have the tool."""
    return tools is None or any(names_tool(name, facts) for name in tools)


def groups_to_close(document: Document) -> frozenset[str]:
    """The groups of tools to show closed: the built-in ones where there are catalogs and no agent has one of ours."""
    ours = [facts for facts in document.catalog if facts.origin == BUILT_IN]
    used = any(lists_tool(agent.tools, facts) for agent in document.agents for facts in ours)
    return frozenset() if used or not document.policy.catalogs else frozenset({BUILT_IN})


def _limits(rule: ToolRule, facts: ToolFacts) -> bool:
    return isinstance(rule.rule_type, AllowedOperations) and names_tool(rule.tool_name, facts)


def _places(policy: Policy, facts: ToolFacts) -> Iterator[tuple[str, frozenset[str]]]:
    """Every place of the policy that names operations: where one of these goes, it could not be loaded again."""
    for agent in policy.agents.values():
        for number, rule in enumerate(agent.tool_rules, 1):
            yield tr("tool rule {number} of {agent}", number=number, agent=agent.agent_id), _names_in_rule(rule, facts)
        prefix = f"{facts.name}."
        keys = frozenset(key.removeprefix(prefix) for key in agent.approvals if key.startswith(prefix))
        yield tr("the approvals of {agent}", agent=agent.agent_id), keys
    for source in policy.sources:
        for number, rule in enumerate(source.required_tools, 1):
            yield (
                tr("required tool {number} of {source}", number=number, source=source.source_id),
                _names_in_rule(rule, facts),
            )
    settings = policy.tools.get(settings_key(policy, facts.name, facts.major))
    if settings is not None:
        yield f"operation_tiers of [tools.{facts.name}]", frozenset(settings.operation_tiers)
    for rule in policy.rules:
        if rule.tools is not None and lists_tool(rule.tools, facts) and len(rule.tools) == 1:
            yield tr("policy rule {name}", name=rule.name), frozenset(rule.operations or ())


def _names_in_rule(rule: ToolRule, facts: ToolFacts) -> frozenset[str]:
    if not names_tool(rule.tool_name, facts):
        return frozenset()
    allowed = rule.rule_type.operations if isinstance(rule.rule_type, AllowedOperations) else frozenset[str]()
    return allowed | frozenset(rule.operations or ())


Paths = Mapping[str, PathUse]


def paths_declaration(policy: Policy, tool: str, major: int) -> Paths:
    """The policy's declaration of the arguments now."""
    return _settings(policy, tool, major).paths


def paths_edit(policy: Policy, tool: str, major: int, wanted: Paths) -> Edit:
    """The edit that makes the policy say that of the arguments, and nothing else of the tool's settings."""
    after = replace(_settings(policy, tool, major), paths=dict(wanted))
    return _edit(policy, tool, major, after, tr("say which arguments of `{tool}` are paths", tool=tool))


def declare_paths(document: Document, tool: str, major: int, wanted: Paths) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: paths_edit(policy, tool, major, wanted))


def paths_refusal(document: Document, tool: str, major: int, wanted: Paths) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: paths_edit(policy, tool, major, wanted))


def trust_declaration(policy: Policy, tool: str, major: int) -> Trust | None:
    """The author of the tool's results by the policy; None where it does not say."""
    return _settings(policy, tool, major).trust


def trust_edit(policy: Policy, tool: str, major: int, wanted: Trust | None) -> Edit:
    """The edit that makes the policy name the author of the tool's results; None: as found."""
    after = replace(_settings(policy, tool, major), trust=wanted)
    return _edit(policy, tool, major, after, tr("say who writes the results of `{tool}`", tool=tool))


def declare_trust(document: Document, tool: str, major: int, wanted: Trust | None) -> bool:
    """Make it so, as one edit."""
    return document.push(lambda policy, _tools: trust_edit(policy, tool, major, wanted))


def trust_refusal(document: Document, tool: str, major: int, wanted: Trust | None) -> str:
    """Why it cannot be made so; empty when it can."""
    return document.refusal(lambda policy, _tools: trust_edit(policy, tool, major, wanted))


def _settings(policy: Policy, tool: str, major: int) -> ToolSettings:
    return policy.tools.get(settings_key(policy, tool, major), ToolSettings())


def _edit(policy: Policy, tool: str, major: int, after: ToolSettings, name: str) -> Edit:
    """The edit of a tool's settings; a table that says nothing any more goes, unless an author left it empty."""
    key = settings_key(policy, tool, major)
    before = policy.tools.get(key)
    settings = None if after == ToolSettings() and before != after else after
    return Edit(name, (ToolSettingsChange(key, before, settings),))
