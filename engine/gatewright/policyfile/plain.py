"""Policy values as plain data in the shape of the file, defaults left out.

``adjacent`` writes a kind as Pattern reads it, ``{ type, value }``.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatewright.base.amount import parse_duration, plain_duration, plain_number
from gatewright.policy.composition import NO_INPUT, Composition, CompositionStep
from gatewright.policy.document import (
    Agent,
    Catalog,
    Confine,
    Defaults,
    PermissionRule,
    Policy,
    Source,
    ToolSettings,
)
from gatewright.policy.rule import PolicyRule, ToolRule
from gatewright.policyfile.readrule import plain_kind
from gatewright.policyfile.readworkspace import WorkspaceTable
from gatewright.policyfile.table import plain

Plain = dict[str, object]


def plain_rule(rule: ToolRule, *, adjacent: bool = False) -> Plain:
    """``tool_name``, ``rule_type`` and what differs from the defaults."""
    return plain(rule) | ({"rule_type": plain_kind(rule.rule_type, adjacent=True)} if adjacent else {})


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
    return plain(settings)


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
    return plain(rule)


def plain_source(source: Source, *, whole: bool = False) -> Plain:
    """A source without its rules (levels and required tools)."""
    return plain(source, without=("permission_rules", "required_tools", "follow_symlinks"), whole=whole)


def plain_agent(agent: Agent) -> Plain:
    """An agent without its rules."""
    return plain(agent, without=("tool_rules",))


def plain_defaults(defaults: Defaults) -> Plain:
    """What differs from the built-in defaults."""
    return plain(defaults)


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()}


def _present(data: Plain) -> Plain:
    return {key: value for key, value in data.items() if value is not None}


def _words(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)
