from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.compile.snapshot import Snapshot
from gatewright.policy import agentedit, policyedit, rights
from gatewright.policy.document import Agent, Policy, Roots
from gatewright.policy.edit import Edit, apply
from gatewright.policy.rightsdiff import AgentDiff, agent_diff
from gatewright.policy.rule import PolicyRule
from gatewright.policy.verdict import Verdict
from gatewright.tools.registry import ToolRegistry, tool
from gatewright.workspace import Workspace, create_workspace
from gatewright.workspace.policytext import SavedViews


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(create_workspace(tmp_path / "demo", "demo"), state=tmp_path / "state", keys=tmp_path / "keys")


def names(workspace: Workspace, agent_id: str, *, saved: bool) -> list[str]:
    view = workspace.saved_view(agent_id) if saved else workspace.view(agent_id)
    assert view is not None
    return [listing.name for listing in view.listings()]


def tick_none(workspace: Workspace, agent_id: str) -> Edit:
    return rights.tick_tool(workspace.policy, workspace.catalog, agent_id, "file", on=False)


def test_saved_view_stays_while_one_edits_and_follows_a_save(workspace: Workspace) -> None:
    before = names(workspace, "operator", saved=False)
    workspace.apply(tick_none(workspace, "operator"))

    assert "file" not in names(workspace, "operator", saved=False)
    assert names(workspace, "operator", saved=True) == before

    workspace.save()
    assert "file" not in names(workspace, "operator", saved=True)
    workspace.close()


def test_saved_view_is_made_once_for_a_saved_policy(workspace: Workspace) -> None:
    workspace.apply(tick_none(workspace, "operator"))
    first = workspace.saved_view("operator")
    workspace.apply(agentedit.describe_agent(workspace.policy, "archivist", "other words"))

    assert workspace.saved_view("operator") is first
    workspace.close()


def test_agent_that_was_not_saved_has_no_saved_view(workspace: Workspace) -> None:
    workspace.apply(agentedit.add_agent(workspace.policy, "fresh"))

    assert workspace.saved_view("fresh") is None
    workspace.close()


def test_saved_policy_with_other_roots_is_seen_over_the_tools_of_now_and_that_is_said(workspace: Workspace) -> None:
    views, before = SavedViews(), names(workspace, "operator", saved=False)
    saved = replace(workspace.policy, roots=Roots(), catalogs=workspace.policy.catalogs)
    assert saved.roots != workspace.policy.roots
    workspace.apply(tick_none(workspace, "operator"))

    view = views.view(workspace.gate, saved, "operator")

    assert view is not None
    assert [listing.name for listing in view.listings()] == before
    assert views.remark(workspace.gate, saved).startswith("roots changed since the last save")
    assert views.remark(workspace.gate, workspace.policy) == ""
    assert workspace.saved_view_remark() == ""
    workspace.close()


def test_unrestricted_usage_rules_tell_every_tool_and_no_limit(workspace: Workspace) -> None:
    whole = workspace.view("newcomer").full_usage_rules

    assert workspace.view("newcomer").usage_rules == ""
    assert "- `file`: " in whole
    assert "At most" not in whole
    workspace.close()


def test_rights_under_an_edit_are_those_that_the_gate_gives_once_it_is_made(workspace: Workspace) -> None:
    edit = tick_none(workspace, "operator")
    after = apply(workspace.policy, edit)
    before, expected = workspace.rights("operator"), workspace.rights_under(after, "operator")
    assert expected["file"].is_hidden
    assert workspace.rights("operator") is before

    workspace.apply(edit)
    assert workspace.rights("operator") == expected
    assert workspace.rights_under(after, "nobody") == {}
    workspace.close()


def test_unsaved_rights_tell_agents_that_came_and_went_and_what_holds_for_all(workspace: Workspace) -> None:
    assert workspace.unsaved_rights().is_empty
    workspace.apply(agentedit.describe_agent(workspace.policy, "archivist", "other words"))
    assert workspace.unsaved_rights().is_empty

    rule = PolicyRule("no deleting", Verdict.DENY, tools=("file",), operations=("delete",))
    workspace.apply(policyedit.add_rule(workspace.policy, rule))
    strict = workspace.unsaved_rights()
    assert not strict.opens
    assert [part.what for part in strict.parts] == ["policy rule no deleting"]
    assert {row.operation for agent in strict.agents for row in agent.rows} == {"delete"}

    workspace.apply(agentedit.duplicate_agent(workspace.policy, "operator", "second"))
    workspace.apply(agentedit.rename_agent(workspace.policy, "newcomer", "late"))
    workspace.apply(agentedit.remove_agent(workspace.policy, "researcher"))
    found = workspace.unsaved_rights()
    by_id = {agent.agent_id: agent for agent in found.agents}
    assert by_id["second"].is_new
    assert any(row.opens for row in by_id["second"].rows)
    assert by_id["researcher"].is_gone
    assert not any(row.opens for row in by_id["researcher"].rows)
    assert "late" not in by_id
    assert found.opens
    workspace.close()


@tool
async def clock() -> str:
    """Tell the time."""
    return "noon"


def test_a_rule_that_closes_a_tool_is_no_change_of_an_edit_elsewhere() -> None:
    unknown = PolicyRule("no such operation", Verdict.ASK, tools=("clock",), operations=("rewind",))
    policy = Policy(agents={"a": Agent("a")}, rules=(unknown,))
    registry = ToolRegistry()
    registry.register(clock)
    snapshot = Snapshot(policy, registry)
    described = apply(policy, agentedit.describe_agent(policy, "a", "other words"))
    was, now = (one.agent("a") for one in (snapshot, snapshot.renew(described, None)))
    assert was is not None
    assert now is not None
    assert was.rights["clock"].is_hidden
    assert agent_diff(policy.agents["a"], described.agents["a"], was.rights, now.rights) == AgentDiff("a")
