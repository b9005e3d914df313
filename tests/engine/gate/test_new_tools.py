"""Tools that come in while a policy is in force are held from agents that list none, until somebody takes them in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Policy
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.reader import parse_policy
from gatewright.tools import Tool, ToolRegistry, operation
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.workspace import Workspace
from tests.engine.gate.world import CounterTool, echo

POLICY = """gatewright = 1

[defaults]
{defaults}

[agents.open]

[agents.lists]
tools = ["echo", "counter"]

[agents.older]
tools = ["echo@1"]
"""


class LaterEcho(Tool):
    """Echo, made anew."""

    name = "echo"
    version = "2.0.0"
    description = "Gives texts back."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    @operation
    async def once(self, text: str) -> str:
        """Give it back once."""
        return text

    @operation
    async def twice(self, text: str) -> str:
        """Give it back twice."""
        return text * 2


def opened(defaults: str = "") -> tuple[Gate, ToolRegistry, Policy]:
    registry = ToolRegistry()
    registry.register(echo)
    facts = (*registry.facts(), CounterTool().facts())
    policy = parse_policy(POLICY.format(defaults=defaults), file="policy.toml", known=KnownTools(facts)).policy
    assert policy is not None
    return Gate(policy, registry, absent={"counter": "it comes later"}), registry, policy


def shown(gate: Gate, agent: str) -> list[object]:
    return [tool["name"] for tool in gate.view(agent).tools("mcp")]


def code(gate: Gate, agent: str, tool: str = "counter", operation: str = "up") -> tuple[Verdict, str]:
    decision = gate.decide(agent, tool, {"op": operation})
    return decision.verdict, decision.code


@pytest.mark.parametrize("defaults", ["", 'new_tools = "hold"'])
def test_a_tool_that_comes_in_is_held_from_an_agent_that_lists_none(defaults: str) -> None:
    gate, registry, _ = opened(defaults)
    registry.register(CounterTool())
    assert shown(gate, "open") == ["echo"]
    decision = gate.decide("open", "counter", {"op": "up"})
    assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", "new-tool-held")
    assert "`new_tools`" in decision.reason
    unknown = gate.decide("open", "nothing", {}).model_message
    assert decision.model_message == unknown
    assert asyncio.run(gate.call("open", "counter", {"op": "up"})).code == "new-tool-held"
    assert gate.check("open", "counter", "up").verdict is Verdict.DENY
    assert {reason.code for reason in gate.view("open").rights["counter"].reasons} == {"new-tool-held"}
    assert not selfcheck(gate).differences


def test_an_agent_with_a_list_gets_what_the_list_names_at_once() -> None:
    gate, registry, _ = opened()
    registry.register(CounterTool())
    assert shown(gate, "lists") == ["counter", "echo"]
    assert code(gate, "lists") == (Verdict.ALLOW, "allowed")
    assert code(gate, "older") == (Verdict.DENY, "tool-not-listed")


def test_with_allow_it_is_there_at_once() -> None:
    gate, registry, _ = opened('new_tools = "allow"')
    registry.register(CounterTool())
    assert shown(gate, "open") == ["counter", "echo"]
    assert code(gate, "open")[0] is Verdict.ALLOW


@pytest.mark.parametrize("looked", [True, False], ids=["compiled before", "not compiled before"])
@pytest.mark.parametrize("how", ["edited", "accepted"])
def test_an_edited_policy_takes_it_in_and_so_does_whoever_accepts_it(how: str, looked: bool) -> None:
    gate, registry, policy = opened()
    withdraw = registry.register(CounterTool())
    if looked:
        assert shown(gate, "open") == ["echo"]
    if how == "edited":
        gate.reload(replace(policy, name="edited"))
    else:
        assert gate.accept_new_tools() == ("counter",)
    assert gate.accept_new_tools() == ()
    assert shown(gate, "open") == ["counter", "echo"]
    assert code(gate, "open")[0] is Verdict.ALLOW
    assert not selfcheck(gate).differences
    withdraw()
    assert shown(gate, "open") == ["echo"]
    registry.register(CounterTool())
    assert shown(gate, "open") == ["counter", "echo"], "a tool that was there when the policy came is not new"


def test_the_same_policy_read_again_leaves_it_held() -> None:
    gate, registry, policy = opened()
    registry.register(CounterTool())
    gate.reload(replace(policy))
    assert code(gate, "open") == (Verdict.DENY, "new-tool-held")

    def bring() -> None:
        registry.register(LaterEcho())

    gate.reload(replace(policy), tools=bring)
    assert code(gate, "open") == (Verdict.DENY, "new-tool-held")
    assert gate.view("open").rights["echo"].facts.major == 2, "what the policy brings along is not new"


def test_it_is_held_while_others_come_and_go() -> None:
    gate, registry, _ = opened()
    registry.register(CounterTool())
    assert code(gate, "open") == (Verdict.DENY, "new-tool-held")
    registry.register(LaterEcho())()
    assert code(gate, "open") == (Verdict.DENY, "new-tool-held")


def test_switching_to_allow_and_back_holds_only_what_comes_after() -> None:
    gate, registry, policy = opened()
    registry.register(CounterTool())
    gate.reload(replace(policy, defaults=replace(policy.defaults, new_tools="allow")))
    assert code(gate, "open")[0] is Verdict.ALLOW
    gate.reload(policy)
    assert code(gate, "open")[0] is Verdict.ALLOW


def test_a_new_major_does_not_take_the_place_of_the_one_that_is_there() -> None:
    gate, registry, _ = opened()
    registry.register(LaterEcho())
    assert gate.decide("open", "echo", {"text": "x"}).verdict is Verdict.ALLOW
    assert gate.view("open").rights["echo"].facts.major == 1
    assert gate.view("lists").rights["echo"].facts.major == 2
    assert gate.view("older").rights["echo"].facts.major == 1
    assert gate.accept_new_tools() == ("echo@2",)
    assert gate.view("open").rights["echo"].facts.major == 2
    assert gate.decide("open", "echo", {"op": "twice", "text": "x"}).verdict is Verdict.ALLOW


def test_a_file_that_nobody_changed_takes_nothing_in_when_it_is_read_again(tmp_path: Path) -> None:
    definition = '{"tools": [{"name": "%s", "description": "Says it.", "inputSchema": {"type": "object"}}]}'
    written, manifest = tmp_path / "policy.toml", tmp_path / "tools.json"
    written.write_text(
        'gatewright = 1\n[agents.open]\n[[catalogs]]\nid = "c"\ntype = "host"\nmanifest = "tools.json"\n'
    )
    manifest.write_text(definition % "one")
    with Workspace.open(written, state=tmp_path / "state", keys=tmp_path / "keys") as workspace:
        workspace.gate.snapshot().registry.register(echo)
        written.write_text(written.read_text() + "# a remark\n")
        manifest.write_text(definition % "two")
        workspace.reload()
        assert workspace.decide("open", "echo", {"text": "x"}).code == "new-tool-held"
        assert workspace.decide("open", "two", {}).code != "new-tool-held"
        written.write_text(written.read_text().replace("[agents.open]", '[agents.open]\ndescription = "edited"'))
        workspace.reload()
        assert workspace.decide("open", "echo", {"text": "x"}).verdict is Verdict.ALLOW


def test_what_a_workspace_brings_along_is_not_new(tmp_path: Path) -> None:
    written = tmp_path / "policy.toml"
    written.write_text("gatewright = 1\n[agents.open]\n")
    with Workspace.open(written, tools=[echo], state=tmp_path / "state", keys=tmp_path / "keys") as workspace:
        assert workspace.decide("open", "echo", {"text": "x"}).verdict is Verdict.ALLOW
        assert workspace.decide("open", "file", {"op": "list"}).code == "not-available"
        (tmp_path / "docs").mkdir()
        written.write_text(written.read_text() + '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\n')
        assert not workspace.reload()
        assert workspace.decide("open", "file", {"op": "list", "path": "."}).code != "new-tool-held"
        assert not workspace.rights("open")["file"].is_hidden
