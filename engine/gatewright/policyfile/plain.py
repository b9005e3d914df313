"""Policy values as plain data in the shape of the file, defaults left out.

``adjacent`` writes a kind as Pattern reads it, ``{ type, value }``.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.amount import parse_duration, plain_duration, plain_number
from gatewright.policy.composition import NO_INPUT, Composition, CompositionStep
from gatewright.policy.document import (
    DEFAULT_MAX_FILE_BYTES,
    Agent,
    Catalog,
    Confine,
    Defaults,
    PermissionRule,
    Policy,
    Source,
    SourceType,
    ToolSettings,
)
from gatewright.policy.kinds.capability import plain_capability
from gatewright.policy.rule import DEFAULT_PRIORITY, PolicyRule, RuleKind, ToolRule
from gatewright.policy.verdict import Permission
from gatewright.policyfile.readworkspace import WorkspaceTable
from gatewright.policyfile.table import plain

Plain = dict[str, object]


def plain_rule(rule: ToolRule, *, adjacent: bool = False) -> Plain:
    """``tool_name``, ``rule_type`` and what differs from the defaults."""
    data: Plain = {"tool_name": rule.tool_name, "rule_type": plain_kind(rule.rule_type, adjacent=adjacent)}
    if rule.conditions:
        data["conditions"] = list(rule.conditions)
    if rule.priority != DEFAULT_PRIORITY:
        data["priority"] = rule.priority
    if rule.rule_id is not None:
        data["id"] = rule.rule_id
    if rule.metadata is not None:
        data["metadata"] = dict(rule.metadata)
    return data


def plain_kind(kind: RuleKind, *, adjacent: bool = False) -> object:
    """The value of ``rule_type``."""
    name, payload = type(kind).__name__, kind.plain()
    if adjacent:
        return {"type": name} if payload is None else {"type": name, "value": payload}
    return name if payload is None else {name: payload}


def plain_policy_rule(rule: PolicyRule) -> Plain:
    """One row of ``[[policy.rules]]``."""
    return {
        "name": rule.name,
        "effect": str(rule.effect),
        **_present(
            {
                "agents": _words(rule.agents),
                "tools": _words(rule.tools),
                "operations": _words(rule.operations),
                "when": dict(rule.when) if isinstance(rule.when, Mapping) else rule.when,
                "message": rule.message,
            }
        ),
    }


def plain_tool_settings(settings: ToolSettings) -> Plain:
    """``[tools.NAME]``: what the operator overrides."""
    data = _present({"operation_field": settings.operation_field, "operations": _words(settings.operations)})
    if settings.extra_arguments is not None:
        data["extra_arguments"] = str(settings.extra_arguments)
    if settings.timeout_s is not None:
        data["timeout"] = plain_duration(settings.timeout_s)
    if settings.safety_tier is not None:
        data["safety_tier"] = str(settings.safety_tier)
    if settings.operation_tiers:
        data["operation_tiers"] = _texts(settings.operation_tiers)
    if not settings.scrub:
        data["scrub"] = False
    if settings.output is not None:
        data["output"] = str(settings.output)
    if settings.paths:
        data["paths"] = _texts(settings.paths)
    return data | _present({"description": settings.description})


def plain_catalog(catalog: Catalog) -> Plain:
    """One row of ``[[catalogs]]``."""
    data: Plain = {"id": catalog.catalog_id, "type": str(catalog.kind)}
    filled = {
        "manifest": catalog.manifest,
        "module": catalog.module,
        "command": catalog.command,
        "args": list(catalog.args),
        "env": list(catalog.env),
        "cwd": catalog.cwd,
        "url": catalog.url,
        "headers_env": dict(catalog.headers_env),
        "query_env": dict(catalog.query_env),
        "prefix": catalog.prefix,
        "trusted": catalog.trusted,
    }
    data |= {key: value for key, value in filled.items() if value}
    return (
        data
        | plain_confine(catalog.confine)
        | _present({"places": None if catalog.places is None else _texts(catalog.places)})
    )


def plain_composition(composition: Composition) -> Plain:
    """One row of ``[[compositions]]``, without its ``input`` where it takes none."""
    described = {"description": composition.description} if composition.description else {}
    taken = {} if composition.input == NO_INPUT else {"input": dict(composition.input)}
    return {"name": composition.name, **described, **taken, "steps": [plain_step(step) for step in composition.steps]}


def plain_step(step: CompositionStep) -> Plain:
    """One step of a composition."""
    arguments = {"arguments": dict(step.arguments)} if step.arguments else {}
    when = dict(step.when) if isinstance(step.when, Mapping) else step.when
    return {"tool": step.tool, **arguments, **_present({"when": when})}


def plain_confine(confine: Confine) -> Plain:
    """``confine`` where it is not the default."""
    return {} if confine is Confine.POLICY else {"confine": str(confine)}


def plain_workspace(policy: Policy) -> Plain:
    """``[workspace]``, without the keys that say nothing."""
    return plain(policy, WorkspaceTable)


def duration_like(written: object, seconds: float) -> object:
    """A duration spelt as ``written`` is: a number stays one, ``{ secs, nanos }`` stays that."""
    if isinstance(written, int | float):
        return plain_number(seconds)
    if isinstance(written, dict):
        data = {"secs": int(seconds), "nanos": round((seconds - int(seconds)) * 1e9)}
        return data if data["nanos"] < 1_000_000_000 and parse_duration(data) == seconds else plain_duration(seconds)
    return plain_duration(seconds)


def plain_permission_rule(rule: PermissionRule) -> Plain:
    """One row of ``permission_rules``."""
    data: Plain = {"pattern": rule.pattern, "permission": str(rule.permission)}
    if rule.comment is not None:
        data["comment"] = rule.comment
    return data


def plain_source(source: Source) -> Plain:
    """A source without its rules (levels and required tools)."""
    standard = {
        "default_permission": str(Permission.READ_ONLY),
        "max_file_bytes": DEFAULT_MAX_FILE_BYTES,
        "watch": False,
    }
    return {key: value for key, value in whole_source(source).items() if value != standard.get(key)}


def whole_source(source: Source) -> Plain:
    """As `plain_source`, the defaults too."""
    return {
        "id": source.source_id,
        "type": str(source.kind),
        **({} if source.kind is SourceType.HOST else {"base_path": source.base_path}),
        "default_permission": str(source.default_permission),
        "max_file_bytes": source.max_file_bytes,
        "watch": source.watch,
    }


def plain_agent(agent: Agent) -> Plain:
    """An agent without its rules."""
    data: Plain = {}
    if agent.description:
        data["description"] = agent.description
    if agent.tools is not None:
        data["tools"] = list(agent.tools)
    if agent.sources is not None:
        data["sources"] = list(agent.sources)
    if agent.approvals:
        data["approvals"] = _texts(agent.approvals)
    if agent.user_id is not None:
        data["user_id"] = agent.user_id
    if agent.capabilities:
        data["capabilities"] = list(map(plain_capability, agent.capabilities))
    return data


def plain_defaults(defaults: Defaults) -> Plain:
    """What differs from the built-in defaults."""
    standard = whole_defaults(Defaults())
    return {key: value for key, value in whole_defaults(defaults).items() if value != standard.get(key)}


def whole_defaults(defaults: Defaults) -> Plain:
    """As `plain_defaults`, what is as built in too; without ``timeout`` and ``approvals`` where there are none."""
    return {
        "unlisted_tools": str(defaults.unlisted_tools),
        "new_tools": defaults.new_tools,
        "max_output_bytes": defaults.max_output_bytes,
        **({} if defaults.timeout_s is None else {"timeout": plain_duration(defaults.timeout_s)}),
        "check_formats": defaults.check_formats,
        **({"approvals": _texts(defaults.approvals)} if defaults.approvals else {}),
    }


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()}


def _present(data: Plain) -> Plain:
    return {key: value for key, value in data.items() if value is not None}


def _words(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)
