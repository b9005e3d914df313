"""What could not be loaded again is refused before it becomes the policy."""

from pathlib import Path

import pytest

from gatewright.base.errors import EditRefused
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.agentedit import grant
from gatewright.policy.capability import NetRead
from gatewright.policy.document import Agent
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    Cooldown,
    ExclusiveGroups,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiresConsent,
    RequiresPrecedingTools,
    RuleKind,
    ToolRule,
)
from gatewright.policy.ruleedit import set_constraint, set_limit
from gatewright.policyfile.reader import agent_fault, rule_fault
from gatewright.workspace import Workspace, create_workspace
from tests.engine.policyfile.catalog import load


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"patern": "x"}, "`path.patern`: JSON Schema has no keyword `patern`"),
        ({"pattern": "("}, "`path.pattern`: `(` cannot be checked: it is no regular expression"),
        ({"pattern": "(?=x)"}, "cannot run in linear time"),
        ({"enum": ["a", None]}, "`path.enum.1`: a policy file cannot hold null"),
        ({"maxLength": -1}, "`path.maxLength`"),
        ("text", "must be a JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_said_with_its_place(schema: JsonValue, said: str) -> None:
    assert said in (rule_fault(ToolRule("file", ArgumentConstraints({"path": schema}))) or "")


def test_a_good_rule_has_no_fault() -> None:
    assert rule_fault(ToolRule("file", ArgumentConstraints({"path": {"pattern": "^notes/"}}))) is None
    assert rule_fault(ToolRule("file", MaxCalls(3), ("operation:read",))) is None


PRECEDING = RequiresPrecedingTools()


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (ToolRule(" x", MaxCalls(1)), "`tool_name` may not begin or end with a space"),
        (ToolRule("x", MaxCalls(1), rule_id=""), "`id` may not be blank"),
        (ToolRule("x", MaxCalls(1), priority=-1), "`priority` must be 0 to 255"),
        (ToolRule("x", MaxCalls(1), priority=255), None),
        (ToolRule("x", MaxCalls(1), priority=256), "`priority` must be 0 to 255"),
        (ToolRule("x", MaxCalls(1), ("operation:",)), "`operation:` is no condition here: the name may not be blank"),
        (ToolRule("x", MaxCalls(1), ("operation:a",) * 2), "`operation:a` stands here twice"),
        (
            ToolRule("*", MaxCalls(1), ("operation:a",)),
            "`operation:a` names an operation of one tool: it cannot stand with `*`",
        ),
        (
            ToolRule("x", MaxCalls(1), ("a",)),
            "`a` is no condition here: `MaxCalls` takes only `operation:NAME`",
        ),
        (
            ToolRule("x", PRECEDING, ("*",)),
            "`*` is no condition: name the tools that `RequiresPrecedingTools` speaks of",
        ),
        (
            ToolRule("x", PRECEDING, ("operation:a",)),
            "`RequiresPrecedingTools` means nothing without a tool in `conditions`, such as `tool` or `tool.operation`",
        ),
    ],
)
def test_a_rule_says_what_of_it_could_not_stand_in_a_file(rule: ToolRule, fault: str | None) -> None:
    assert rule_fault(rule) == fault


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (MaxCalls(-1), "{ MaxCalls = -1 }"),
        (Cooldown(-1.0), "{ Cooldown = -1 }"),
        (Periodic(0.0), "{ Periodic = 0 }"),
        (RateLimit(0, 60.0), "{ RateLimit = { calls = 0, per = 60 } }"),
        (RateLimit(1, 0.0), "{ RateLimit = { calls = 1, per = 0 } }"),
        (RequiresConsent(" x"), "{ RequiresConsent = { scope = ' x' } }"),
        (AllowedOperations(frozenset({""})), "{ AllowedOperations = [''] }"),
        (ExclusiveGroups(((),)), "{ ExclusiveGroups = [[]] }"),
        (ExclusiveGroups((("file", "*"),)), "{ ExclusiveGroups = [['file', '*']] }"),
        (ExclusiveGroups((("file", "file@1"),)), "{ ExclusiveGroups = [['file', 'file@1']] }"),
        (ArgumentConstraints({"path": "x"}), "{ ArgumentConstraints = { path = 'x' } }"),
        (ArgumentConstraints({}, ("path", "path")), "{ ArgumentConstraints = { required = ['path', 'path'] } }"),
        (RequiresPrecedingTools(), "'RequiresPrecedingTools'"),
    ],
)
def test_an_edit_is_refused_in_the_words_that_a_file_is_refused_in(kind: RuleKind, written: str) -> None:
    text = f"gatewright = 1\n[agents.a]\n[[agents.a.tool_rules]]\ntool_name = 'file'\nrule_type = {written}\n"

    refused = rule_fault(ToolRule("file", kind)) or ""
    assert any(refused.endswith(problem.message) for problem in load(text).problems if problem.is_error)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (ToolRule("file ", MaxCalls(1)), "`tool_name` may not begin or end with a space"),
        (ToolRule("file", MaxCalls(1), priority=256), "`priority` must be 0 to 255"),
        (ToolRule("file", MaxCalls(1), rule_id=""), "`id` may not be blank"),
        (ToolRule("file", MaxCalls(1), ("calc",)), "takes only `operation:NAME`"),
        (ToolRule("file", MaxCalls(1), ("operation:a", "operation:a")), "stands here twice"),
        (ToolRule("*", MaxCalls(1), ("operation:a",)), "cannot stand with `*`"),
    ],
)
def test_a_rule_that_no_file_could_hold_is_refused(rule: ToolRule, said: str) -> None:
    assert said in (rule_fault(rule) or "")


def test_only_what_is_new_at_an_agent_is_looked_at() -> None:
    bad = ToolRule("file", RateLimit(0, 1.0))
    before = Agent("a", tool_rules=(bad,))

    assert agent_fault(before, Agent("a", tool_rules=(bad, ToolRule("file", MaxCalls(1))))) is None
    assert agent_fault(None, before) is not None


def test_the_workspace_refuses_what_it_could_not_load_again_and_changes_nothing(tmp_path: Path) -> None:
    workspace = Workspace.open(create_workspace(tmp_path / "demo", "demo"))
    try:
        policy, catalog = workspace.policy, workspace.catalog
        for edit in (
            set_constraint(policy, catalog, "operator", "file", "path", {"patern": "x"}),
            set_limit(policy, catalog, "operator", "file", RateLimit(1, 0.0)),
            grant(policy, "newcomer", NetRead(("http://x",))),
        ):
            with pytest.raises(EditRefused):
                workspace.apply(edit)
        assert not workspace.is_dirty
        workspace.apply(set_constraint(policy, catalog, "operator", "file", "path", {"pattern": "^notes/"}))
        workspace.save()
        after = workspace.policy
        assert not workspace.reload()
        assert workspace.policy == after
    finally:
        workspace.close()
