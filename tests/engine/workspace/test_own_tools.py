"""A workspace of a program that brings its own tools."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gatewright.base.errors import AlreadyRegistered, PolicyInvalid
from gatewright.gate import Session
from gatewright.policy.agentedit import describe_agent
from gatewright.policy.tier import SafetyTier
from gatewright.tools import ResultType, Tool, tool
from gatewright.workspace import Workspace

POLICY = """\
gatewright = 1

[agents.a]
tools = ["tide"]

[[agents.a.tool_rules]]
tool_name = "tide"
rule_type = { MaxCalls = 1 }
"""


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def tide(station: str) -> str:
    """Give the next high water.

    Args:
        station: Name of the station.
    """
    return f"{station}: 2.4 m"


@tool(name="block", version="1.3.0", safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def other_block() -> str:
    """Take the name of a built-in tool."""
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "ws"


def opened(folder: Path, *tools: Tool) -> Workspace:
    return Workspace.open(folder, tools=tools, keys=folder.parent / "keys")


def test_policy_that_names_a_tool_nobody_brought_is_refused(folder: Path) -> None:
    with pytest.raises(PolicyInvalid, match="no tool is named `tide`"):
        opened(folder)


async def test_own_tool_is_shown_called_recorded_and_counted_in_a_kept_session(folder: Path) -> None:
    with closing(opened(folder, tide)) as workspace:
        session = Session("s-1")
        assert {shown["name"] for shown in workspace.view("a").tools("mcp")} == {"tide"}
        assert (await workspace.call("a", "tide", {"station": "Husum"}, session=session)).output == "Husum: 2.4 m"
        workspace.sessions.save(session)

    with closing(opened(folder, tide)) as again:
        later = again.sessions.load("s-1")
        assert again.decide("a", "tide", {"station": "Husum"}, session=later).code == "max-calls"
    assert (folder / ".gatewright").is_dir()


def test_own_tool_is_known_when_the_policy_is_edited_read_again_and_copied(folder: Path) -> None:
    with closing(opened(folder, tide)) as workspace:
        workspace.apply(describe_agent(workspace.policy, "a", "reads the tide"))
        assert workspace.current_problems() == ()
        workspace.save()
        assert workspace.reload() == ()
        copy = workspace.sandbox()
        try:
            assert copy.workspace.decide("a", "tide", {"station": "Husum"}).verdict == "allow"
        finally:
            copy.close()


def test_own_tool_with_the_name_and_major_of_a_built_in_one_is_refused(folder: Path) -> None:
    with pytest.raises(AlreadyRegistered, match="`block` with major version 1"):
        opened(folder, tide, other_block)
