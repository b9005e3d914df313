"""The policy stage: which rule decides, what the operator and the model are told, and what fails closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.errors import SchemaError
from gatewright.compile.rule_test import CompiledPolicyRule
from gatewright.gate import Decision
from gatewright.gate.stages.approval import POLICY
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict
from gatewright.schema.check import SchemaChecker
from tests.engine.gate.marked import marked_tools
from tests.engine.gate.world import World

HEAD = """gatewright = 1

[agents.archivist]
capabilities = [{ NetRead = { allowlist = ["*"] } }, { FsRead = { prefixes = ["."] } }]

[agents.other]
capabilities = [{ NetRead = { allowlist = ["*"] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

"""
DEFAULT_LINE = HEAD.count("\n") + 2


@pytest.fixture
def ruled(make_world: Any) -> Any:
    def make(*rules: str, default: str = "allow") -> World:
        rows = "\n".join(f"[[policy.rules]]\n{rule.strip()}\n" for rule in rules)
        return make_world(f'{HEAD}[policy]\ndefault = "{default}"\n\n{rows}', *marked_tools())

    return make


def rule(name: str, effect: str, **more: str) -> str:
    return "\n".join([f'name = "{name}"', f'effect = "{effect}"', *(f"{key} = {value}" for key, value in more.items())])


def told(decision: Decision) -> tuple[Verdict, str, str, str | None]:
    name = decision.rule.rule_id if decision.rule is not None else None
    return decision.verdict, decision.stage, decision.code, name


ADMIN = '{ properties = { url = { pattern = "/admin" } } }'


def test_matching_rule_denies_with_its_name_line_and_message(ruled: Any) -> None:
    world = ruled(rule("no admin", "deny", tools='["fetch"]', when=ADMIN, message='"admin pages are closed"'))
    decision = world.decide("fetch", {"url": "https://example.org/admin"})
    assert told(decision) == (Verdict.DENY, "policy", "policy-deny", "no admin")
    assert decision.rule is not None
    assert decision.rule.line == DEFAULT_LINE + 2
    assert decision.model_message == "Tool execution failed: admin pages are closed"
    assert "admin pages are closed" in decision.reason
    assert world.decide("fetch", {"url": "https://example.org/"}).verdict is Verdict.ALLOW


def test_condition_sees_the_canonical_url(ruled: Any) -> None:
    world = ruled(rule("no admin", "deny", when='{ properties = { url = { pattern = "^https://a.example/admin" } } }'))
    for url in ("https://a.example/x/../admin", "HTTPS://A.example:443/%61dmin", "https://a.example/%2e/admin"):
        assert told(world.decide("fetch", {"url": url}))[:3] == (Verdict.DENY, "policy", "policy-deny"), url


def test_condition_sees_the_path_relative_to_its_base(ruled: Any) -> None:
    world = ruled(
        rule(
            "no deletes outside scratch",
            "deny",
            tools='["file"]',
            operations='["delete"]',
            when='{ properties = { path = { not = { pattern = "^scratch/" } } } }',
            message='"that is limited to scratch/"',
        )
    )
    (world.docs / "scratch").mkdir()
    for path in ("scratch/a", "./scratch/a", str(world.docs / "scratch/a"), "scratch/../scratch/a"):
        assert world.decide("file", {"op": "delete", "path": path}).stage != "policy", path
    for path in ("a", "scratch/../a", str(world.docs / "a")):
        assert told(world.decide("file", {"op": "delete", "path": path}))[1] == "policy", path


def test_without_a_message_the_model_gets_general_words(ruled: Any) -> None:
    decision = ruled(rule("secret name", "deny", when=ADMIN)).decide("fetch", {"url": "https://example.org/admin"})
    assert "secret name" not in (decision.model_message or "")
    assert "not allowed" in (decision.model_message or "")


def test_deny_before_ask_before_allow_whatever_the_order(ruled: Any) -> None:
    some = '{ properties = { url = { pattern = "example" } } }'
    rows = [rule("yes", "allow", when=some), rule("ask", "ask", when=some), rule("no", "deny", when=ADMIN)]
    for world in (ruled(*rows), ruled(*reversed(rows))):
        assert told(world.decide("fetch", {"url": "https://example.org/admin"}))[3] == "no"
        asked = world.decide("fetch", {"url": "https://example.org/"})
        assert told(asked) == (Verdict.ASK, "policy", "policy-ask", "ask")


def test_of_several_denials_the_first_in_the_file_decides(ruled: Any) -> None:
    world = ruled(rule("first", "deny", when=ADMIN), rule("second", "deny", when=ADMIN))
    assert told(world.decide("fetch", {"url": "https://example.org/admin"}))[3] == "first"


def test_every_ask_that_matches_is_asked(ruled: Any) -> None:
    world = ruled(rule("one", "ask", when=ADMIN), rule("two", "ask", when=ADMIN), rule("three", "ask", when="false"))
    state = staged(world, "fetch", {"url": "https://example.org/admin"})
    assert [finding.rule_id for finding in POLICY.run(state).findings] == ["one", "two"]


def test_allow_lifts_the_default_and_nobody_elses_ask(ruled: Any) -> None:
    some = '{ properties = { url = { pattern = "example" } } }'
    world = ruled(rule("yes", "allow", tools='["fetch"]', when=some), default="deny")
    assert world.decide("fetch", {"url": "https://example.org/"}).verdict is Verdict.ALLOW
    denied = world.decide("fetch", {"url": "https://other.net/"})
    assert (denied.verdict, denied.stage, denied.code) == (Verdict.DENY, "policy", "policy-default")
    assert denied.rule is not None
    assert denied.rule.line == DEFAULT_LINE
    assert denied.model_message == "Tool execution failed: this call is not allowed; go on without it"
    vault = ruled(rule("yes", "allow")).decide("vault", {})
    assert vault.verdict is Verdict.ASK


def test_default_ask_asks_for_what_no_rule_matches(ruled: Any) -> None:
    world = ruled(rule("yes", "allow", tools='["echo"]'), default="ask")
    decision = world.decide("fetch", {"url": "https://example.org/"})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.ASK, "policy", "policy-default")
    assert decision.model_message is None
    assert world.decide("echo", {"text": "x"}).verdict is Verdict.ALLOW


def test_rule_binds_the_agents_tools_and_operations_that_it_names(ruled: Any) -> None:
    world = ruled(
        rule("no admin", "deny", agents='["other"]', when=ADMIN),
        rule("no up", "deny", tools='["counter"]', operations='["up"]', when="{ required = ['by'] }"),
    )
    url = {"url": "https://example.org/admin"}
    assert world.decide("fetch", url).verdict is Verdict.ALLOW
    assert world.decide("fetch", url, agent="other").verdict is Verdict.DENY
    assert told(world.decide("counter", {"op": "up", "by": 2}))[3] == "no up"
    assert world.decide("counter", {"op": "up"}).verdict is Verdict.ALLOW
    assert world.decide("counter", {"op": "down", "by": 2}).verdict is Verdict.ALLOW


def test_condition_that_cannot_be_evaluated_denies(ruled: Any) -> None:
    class Broken(SchemaChecker):
        def holds(self, value: object) -> bool:
            raise SchemaError("out of order")

    world = ruled()
    state = staged(world, "fetch", {"url": "https://example.org/"})
    broken = CompiledPolicyRule(PolicyRule("x", Verdict.ALLOW, when={}), ("policy", "rules", 0), Broken({}))
    state.operation = state.chosen = replace(state.chosen, policy_rules=(broken,))
    (finding,) = POLICY.run(state).findings
    assert (finding.verdict, finding.code, finding.rule_id) == (Verdict.DENY, "condition-failed", "x")
    assert "out of order" not in (finding.model or "")


def test_message_loses_what_names_a_hidden_operation(ruled: Any, make_world: Any) -> None:
    text = (
        HEAD
        + """[[agents.archivist.tool_rules]]
tool_name = "counter"
rule_type = { AllowedOperations = ["up"] }

[[policy.rules]]
name = "small steps"
effect = "deny"
when = { properties = { by = { minimum = 10 } }, required = ["by"] }
message = "steps are small, go down instead"
"""
    )
    decision = make_world(text).decide("counter", {"op": "up", "by": 20})
    assert decision.stage == "policy"
    assert "down" not in (decision.model_message or "")
    assert "steps are small" in (decision.model_message or "")


def staged(world: World, tool: str, arguments: dict[str, Any]) -> Any:
    """The state of a call as the policy stage finds it."""
    state = world.gate.state("archivist", tool, arguments)
    plan = state.agent.plan(tool) if state.agent else None
    assert plan is not None
    state.tool = state.plan = plan
    state.operation = state.chosen = plan.operations[""]
    state.arguments = state.policy_arguments = arguments
    return state


def test_denial_without_message_tells_the_model_which_argument_and_what_it_must_be(ruled: Any) -> None:
    inside = '{ properties = { url = { not = { pattern = "^https://example.org/" } } } }'
    both = '{ required = ["nothing"], properties = { url = { pattern = "secret" } } }'
    world = ruled(
        rule("example only", "deny", tools='["fetch"]', when=inside),
        rule("other", "deny", tools='["fetch"]', when=both),
    )
    decision = world.decide("fetch", {"url": "https://example.com/secret"})

    assert decision.model_message == (
        "Tool execution failed: this call is not allowed with these values of `url`; change them or go on without it:\n"
        "/url: must match the pattern `^https://example.org/`"
    )


def test_denial_without_message_names_no_hidden_operation(ruled: Any) -> None:
    when = '{ required = ["op"], properties = { path = { not = { enum = ["read", "delete.md"] } } } }'
    world = ruled(
        rule("no deletes", "deny", tools='["file"]', operations='["delete"]'),
        rule("some paths", "deny", tools='["file"]', when=when),
    )
    decision = world.decide("file", {"op": "read", "path": "x.md"})

    assert decision.model_message == (
        "Tool execution failed: this call is not allowed with these values of `op`, `path`; "
        "change them or go on without it"
    )


def test_model_is_told_to_change_the_call_where_a_rule_is_about_what_it_left_out(ruled: Any) -> None:
    world = ruled(rule("always with it", "deny", tools='["fetch"]', when='{ not = { required = ["nothing"] } }'))
    decision = world.decide("fetch", {"url": "https://example.org/"})

    assert told(decision) == (Verdict.DENY, "policy", "policy-deny", "always with it")
    said = "this call is not allowed with these arguments; change them or go on without it"
    assert decision.model_message == f"Tool execution failed: {said}"
