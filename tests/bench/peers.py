"""Libraries that decide too, each in the arrangement in which it is fastest. Every one of them is optional.

A maker raises ImportError when its library is not installed. Libraries without types are reached by name.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.matrix import Matrix
from tests.bench.measure import Ask

REGORUS = "regorus (opa-eval)"
CEDAR = "cedarpy"
CASBIN = "casbin FastEnforcer"
EVALUATOR = "AGT PolicyEvaluator"
CHECK_VIOLATION = "AGT check_violation"

_REGO = """package gate
import rego.v1
default allow := false
allow if data.allowed[input.agent][input.tool][input.operation]
"""
_CEDAR = "permit(principal, action, resource) when { principal.allowed.contains(context.what) };"
_CASBIN = """[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act
"""


def agt(name: str) -> Any:
    """A module of the Agent Governance Toolkit; what it prints when it is loaded is dropped."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return import_module(name)


def regorus(truth: Matrix) -> Ask:
    """Rego over the allow table as a data document."""
    opa = import_module("opa_eval")
    table = {
        a: {t: dict.fromkeys(sorted(some), True) for t, some in tools.items()} for a, tools in truth.allowed.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gate.rego")
        path.write_text(_REGO, "utf-8")
        engine: Any = opa.OpaEval(str(path), json.dumps({"allowed": table}), "data.gate.allow")

    def ask(agent: str, tool: str, operation: str) -> object:
        return engine.evaluate_parsed(json.dumps({"agent": agent, "tool": tool, "operation": operation}))

    return ask


def cedar(truth: Matrix) -> Ask:
    """One policy; what an agent may do is an attribute of its entity, and all entities are parsed once."""
    cedarpy: Any = import_module("cedarpy")
    rows: list[dict[str, object]] = [
        {"uid": {"type": "Agent", "id": agent}, "attrs": {"allowed": list(_flat(tools))}, "parents": []}
        for agent, tools in truth.allowed.items()
    ]
    entities, policies = cedarpy.Entities.from_json_str(json.dumps(rows)), cedarpy.PolicySet.from_str(_CEDAR)
    authorized: Callable[..., Any] = cedarpy.is_authorized

    def ask(agent: str, tool: str, operation: str) -> object:
        request = {
            "principal": {"type": "Agent", "id": agent},
            "action": 'Action::"call"',
            "resource": 'Tool::"any"',
            "context": {"what": f"{tool}.{operation}"},
        }
        return authorized(request, policies, entities).allowed

    return ask


def casbin(truth: Matrix) -> Ask:
    """The enforcer that looks its policy up by subject and object."""
    module, models = import_module("casbin"), import_module("casbin.model")
    model: Any = models.FastModel([0, 1])
    model.load_model_from_text(_CASBIN)
    enforcer: Any = module.FastEnforcer(model, cache_key_order=[0, 1])
    enforcer.add_policies(
        [[a, t, o] for a, tools in truth.allowed.items() for t, some in tools.items() for o in sorted(some)]
    )
    return enforcer.enforce


def evaluator(truth: Matrix) -> Ask:
    """One evaluator for each agent, with one rule: the call is in the list of those allowed."""
    schema, module = agt("agent_os.policies.schema"), agt("agent_os.policies.evaluator")

    def of(tools: Mapping[str, frozenset[str]]) -> Any:
        condition = schema.PolicyCondition(field="tool_name", operator="in", value=list(_flat(tools)))
        rule = schema.PolicyRule(name="allowed", condition=condition, action="allow")
        document = schema.PolicyDocument(
            version="1.0", name="matrix", description="", rules=[rule], defaults=schema.PolicyDefaults(action="deny")
        )
        return module.PolicyEvaluator([document])

    one: dict[str, Any] = {agent: of(tools) for agent, tools in truth.allowed.items()}

    def ask(agent: str, tool: str, operation: str) -> object:
        return one[agent].evaluate({"tool_name": f"{tool}.{operation}"}).allowed

    return ask


def check_violation(truth: Matrix) -> Ask:
    """The role table of the control plane, operations folded into the names of tools."""
    engine: Any = agt("agent_control_plane.policy_engine").PolicyEngine()
    for agent, tools in truth.allowed.items():
        engine.add_constraint(agent, list(_flat(tools)))
    violation: Callable[..., Any] = engine.check_violation
    nothing: dict[str, object] = {}

    def ask(agent: str, tool: str, operation: str) -> object:
        return violation(agent, f"{tool}.{operation}", nothing) is None

    return ask


DECIDERS: Mapping[str, Callable[[Matrix], Ask]] = {
    REGORUS: regorus,
    CEDAR: cedar,
    CASBIN: casbin,
    EVALUATOR: evaluator,
    CHECK_VIOLATION: check_violation,
}


def _flat(tools: Mapping[str, frozenset[str]]) -> Iterator[str]:
    return (f"{tool}.{operation}" for tool, some in tools.items() for operation in sorted(some))
