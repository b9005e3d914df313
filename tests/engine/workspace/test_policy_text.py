"""The text of a policy, its problems and its places stay together through edits, their undoing and saves."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import Address, GatewrightError
from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policyfile import LoadedPolicy, patch_text
from gatewright.workspace import Workspace
from gatewright.workspace.policytext import PolicyText
from tests.engine.policyfile.catalog import KNOWN, edits, load, policies
from tests.engine.policyfile.styled import styled

FILE = "policy.toml"
PROPERTY = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TWO = """gatewright = 1

[agents.one]
tools = ["file", "block"]

[[agents.one.tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["load"] }

# of the second
[agents.two]
tools = ["block"]

[[agents.two.tool_rules]]
tool_name = "block_edit"
rule_type = { Cooldown = 0 }

[[sources]]
id = "docs"
type = "file"
base_path = "."

[[sources.permission_rules]]
pattern = "**"
permission = "read_only"

[[sources.permission_rules]]
pattern = "a/**"
permission = "read_write"
"""


def _text(loaded: LoadedPolicy) -> PolicyText:
    assert loaded.policy is not None
    return PolicyText(Path(FILE), loaded, loaded.policy, KNOWN)


def _addresses(policy: Policy) -> list[Address]:
    found: list[Address] = [(), ("agents",), ("agents", "nobody"), ("defaults",), ("policy", "rules", 0), ("tools",)]
    for agent in policy.agents.values():
        own: Address = ("agents", agent.agent_id)
        found += [own, (*own, "tools"), (*own, "approvals"), (*own, "capabilities", 0)]
        found += [(*own, "tool_rules", index, "rule_type") for index in range(len(agent.tool_rules) + 1)]
    for source in policy.sources:
        found += [("sources", source.source_id), ("sources", source.source_id, "permission_rules", 1)]
    return found


def _agree(text: PolicyText, policy: Policy) -> None:
    """Expect what the text itself tells."""
    found = text.read(policy)
    whole = load(text.of(policy), FILE)
    assert found.problems == whole.problems
    assert found.policy == whole.policy
    assert whole.policy is None or whole.policy == policy
    for address in _addresses(policy):
        assert text.places(policy)(address) == whole.places.place(address), address


@st.composite
def _agents_edited(draw: st.DrawFn, policy: Policy) -> Policy:
    """Some agents changed, none come or gone, and the rest as it was."""
    other = draw(edits(policy))
    agents = {agent_id: other.agents.get(agent_id, agent) for agent_id, agent in policy.agents.items()}
    return replace(policy, agents=agents)


@PROPERTY
@given(st.data(), st.booleans())
def test_problems_and_places_after_edits_are_those_of_the_text_read_anew(data: st.DataObject, crlf: bool) -> None:
    policy = data.draw(policies())
    loaded = load(data.draw(styled(policy)).replace("\n", "\r\n" if crlf else "\n"), FILE)
    if loaded.policy is None:
        return
    text, history = _text(loaded), [loaded.policy]
    for _ in range(data.draw(st.integers(1, 4))):
        now = history[-1]
        after = data.draw(st.one_of(_agents_edited(now), edits(now), st.sampled_from(history)))
        try:
            text.of(after)
        except GatewrightError:
            continue  # what the file cannot say
        history.append(after)
        _agree(text, after)


@PROPERTY
@given(st.data())
def test_the_text_of_edited_agents_is_the_least_change_of_the_whole(data: st.DataObject) -> None:
    before = data.draw(policies())
    loaded = load(data.draw(styled(before)), FILE)
    if loaded.policy is None:
        return
    text, now = _text(loaded), loaded.policy
    for _ in range(data.draw(st.integers(1, 4))):
        now = data.draw(_agents_edited(now))
        assert text.of(now) == patch_text(loaded.text, loaded.policy, now)
    assert text.of(loaded.policy) == loaded.text


def _workspace(folder: Path) -> Workspace:
    (folder / FILE).write_text(TWO, "utf-8")
    return Workspace.open(folder / FILE)


def _edit(workspace: Workspace, agent_id: str, **fields: object) -> Edit:
    agent = workspace.policy.agents[agent_id]
    return Edit("an edit", (AgentChange(agent, replace(agent, **fields)),))  # pyright: ignore[reportArgumentType]


def _undone(edit: Edit) -> Edit:
    changes = [change for change in edit.changes if isinstance(change, AgentChange)]
    return Edit("back", tuple(AgentChange(change.after, change.before) for change in changes))


def test_edits_and_their_undoing_keep_the_problems_of_a_workspace_current(tmp_path: Path) -> None:
    workspace = _workspace(tmp_path)
    at_first = workspace.current_problems()
    made: list[Edit] = []
    for agent_id, fields in (
        ("one", {"tools": ("file", "block", "block_edit")}),
        ("two", {"tool_rules": ()}),
        ("one", {"tool_rules": ()}),
        ("two", {"description": "works", "tools": ("block", "block_edit")}),
    ):
        made.append(edit := _edit(workspace, agent_id, **fields))
        workspace.apply(edit)
        _same_as_opened_anew(workspace, tmp_path)
    for edit in reversed(made):
        workspace.apply(_undone(edit))
        _same_as_opened_anew(workspace, tmp_path)
    assert workspace.text() == TWO
    assert workspace.current_problems() == at_first
    assert {problem.code for problem in at_first} >= {"rule-without-effect", "rule-shadowed"}


def _same_as_opened_anew(workspace: Workspace, folder: Path) -> None:
    copy = folder / "anew"
    copy.mkdir(exist_ok=True)
    (copy / FILE).write_text(workspace.text(), "utf-8")
    there = Workspace.open(copy / FILE, state=folder / "state-of-copy", keys=folder / "keys-of-copy").problems
    here = workspace.current_problems()
    assert [(p.code, p.message, p.place and p.place.line) for p in here] == [
        (p.code, p.message, p.place and p.place.line) for p in there
    ]


def test_problems_and_places_are_those_of_the_text_that_was_saved(tmp_path: Path) -> None:
    workspace = _workspace(tmp_path)
    for description in ("first", "second\nline", ""):
        workspace.apply(_edit(workspace, "one", description=description))
        workspace.save()
        assert (tmp_path / FILE).read_text("utf-8") == workspace.text()
        _same_as_opened_anew(workspace, tmp_path)
        whole = load(workspace.text(), str(tmp_path / FILE))
        for address in _addresses(workspace.policy):
            assert workspace.place(address) == whole.places.place(address), address


@pytest.mark.parametrize(
    "text",
    [
        'gatewright = 1\nagents.one.tools = ["block"]\n[agents.two]\ntools = ["block"]\n',
        'gatewright = 1\nagents = { one = { tools = ["block"] }, two = { tools = ["block"] } }\n',
        'gatewright = 1\n[agents]\none.tools = ["block"]\ntwo = { tools = ["block"] }\n',
        'gatewright = 1\n[agents.one.approvals]\n[agents.two]\ntools = ["block"]\n[agents.one]\ntools = ["block"]\n',
        'gatewright = 1\n[agents.one]\ndescription = """\n[agents.two]\n"""\ntools = ["block"]\n[agents.two]\n',
        (
            'gatewright = 1\n[agents."one"]\ntools = [\n"block",\n]\n[agents.two]\n[[agents.two.tool_rules]]\n'
            'tool_name = "block"\nrule_type = { ExclusiveGroups = [\n["block"],\n["file"]\n] }\n'
        ),
    ],
    ids=["dotted", "inline", "table", "torn", "text over lines", "lists over lines"],
)
def test_agents_in_every_shape_keep_text_and_problems_together(text: str) -> None:
    loaded = load(text, FILE)
    assert loaded.policy is not None, loaded.problems
    policy_text, policy = _text(loaded), loaded.policy
    for agent in (Agent("one", tools=("file",)), Agent("two", tools=("block_edit", "block"), description="second")):
        policy = policy.with_agent(agent)
        _agree(policy_text, policy)
    assert policy_text.of(loaded.policy) == text
