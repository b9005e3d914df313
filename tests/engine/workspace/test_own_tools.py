"""A workspace of a program that brings its own tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, cast

import pytest

from gatewright import ToolCall
from gatewright.base.errors import AlreadyRegistered, PolicyInvalid, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session
from gatewright.policy.agentedit import describe_agent
from gatewright.policy.rights import tick_operations
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import DefinedTool, ResultType, Tool, ToolExecutionContext, ToolRegistry, tool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.schemashape import Runner
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
    with pytest.raises(
        PolicyInvalid, match=r"no tool is named `tide`: .* `gatewright catalog import`, .* manifest .*`write_manifest`"
    ):
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


async def test_closed_workspace_refuses_calls_and_decisions(folder: Path) -> None:
    with opened(folder, tide) as workspace:
        assert workspace.decide("a", "tide", {"station": "Husum"}).verdict == "allow"
    with pytest.raises(WorkspaceError, match="the workspace is closed"):
        await workspace.call("a", "tide", {"station": "Husum"})
    with pytest.raises(WorkspaceError, match="the workspace is closed"):
        workspace.decide("a", "tide", {"station": "Husum"})
    with pytest.raises(WorkspaceError, match="the workspace is closed"):
        await workspace.gate.call_many("a", [ToolCall("tide", {"station": "Husum"})])


async def test_call_is_made_for_the_user_of_its_context(folder: Path) -> None:
    @tool(name="tide", safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
    async def whose(context: ToolExecutionContext) -> str:
        """Tell for whom."""
        return context.require_user()

    with opened(folder, whose) as workspace:
        context = ToolExecutionContext("someone", "elsewhere", user_id="ann")
        outcome = await workspace.call("a", "tide", {}, context=context)
        assert (outcome.output, workspace.decide("a", "tide", {}, context=context).code) == ("ann", "max-calls")


async def test_tool_that_raises_leaves_its_traceback_in_the_log(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    @tool(name="tide", safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
    async def broken() -> str:
        """Break."""
        raise LookupError("no gauge")

    with opened(folder, broken) as workspace:
        outcome = await workspace.call("a", "tide", {})
    (row,) = [row for row in caplog.records if row.name.startswith("gatewright.")]

    assert (outcome.code, row.levelname, row.getMessage()) == ("tool-crashed", "ERROR", "the tool `tide` raised")
    assert row.exc_info is not None
    assert isinstance(row.exc_info[1], LookupError)


@pytest.mark.parametrize("result", ["charged", ["a", 1], 7, True, None, {"id": 7}])
async def test_any_json_is_a_result_of_a_tool_known_by_its_definition(folder: Path, result: JsonValue) -> None:
    async def run(_arguments: Mapping[str, JsonValue], _context: ToolExecutionContext) -> JsonValue:
        return result

    definition = ToolDefinition("tide", "Charges.", {"type": "object"})
    approvals = 'tools = ["tide"]\napprovals = { tide = "allow" }'
    text = POLICY.replace('tools = ["tide"]', approvals)
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    with opened(folder, DefinedTool(definition, origin="bank", runner=run)) as workspace:
        outcome = await workspace.call("a", "tide", {})

    assert outcome.code == "allowed", outcome.detail
    assert json.loads(outcome.data or b"") == result


async def test_result_that_cannot_be_taken_invites_no_second_call(folder: Path) -> None:
    async def run(_arguments: Mapping[str, JsonValue], _context: ToolExecutionContext) -> object:
        return {1, 2}

    definition = ToolDefinition("tide", "Charges.", {"type": "object"})
    text = POLICY.replace('tools = ["tide"]', 'tools = ["tide"]\napprovals = { tide = "allow" }')
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    runner = cast("Runner", run)
    with opened(folder, DefinedTool(definition, origin="bank", runner=runner)) as workspace:
        outcome = await workspace.call("a", "tide", {})

    assert outcome.code == "bad-result"
    assert outcome.output == (
        "Tool execution failed: the tool ran, but returned `set`, which is no JSON value; do not make this call again"
    )


@tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING)
async def send_invoice(to: str, op: Literal["draft", "send"]) -> str:
    """Draft an invoice, or send it.

    Args:
        to: Who gets it.
        op: What to do.
    """
    return f"{op} for {to}"


HOST = 'gatewright = 1\n[agents.a]\ntools = ["send_invoice"]\n'
CATALOG = '[[catalogs]]\nid = "own"\ntype = "host"\nmanifest = "tools.json"\ntrusted = true\n'
UNTICKED = """[[agents.a.tool_rules]]
tool_name = "send_invoice"
rule_type = { AllowedOperations = ["draft"] }
"""


def test_a_plain_tool_has_no_operations_for_the_program_and_for_whoever_reads_its_manifest(folder: Path) -> None:
    policy, registry = folder / "policy.toml", ToolRegistry()
    registry.register(send_invoice)
    registry.write_manifest(folder / "tools.json")
    policy.write_text(HOST + CATALOG)
    with closing(opened(folder)) as manifest, closing(opened(folder, send_invoice)) as program:
        (read,) = (facts for facts in manifest.catalog if facts.name == "send_invoice")
        (own,) = (facts for facts in program.catalog if facts.name == "send_invoice")
        assert read.operation_names == own.operation_names == ()
        assert read.operations == own.operations
        assert manifest.view("a").tools("mcp") == program.view("a").tools("mcp")
        for workspace in (manifest, program):
            assert [row.operation for row in workspace.rights("a")["send_invoice"].operations] == [""]
            unticked = tick_operations(workspace.policy, workspace.catalog, "a", "send_invoice", ["send"], on=False)
            assert workspace.check(unticked) == workspace.policy, "there is no `send` to be turned off"

    policy.write_text(HOST + CATALOG + UNTICKED)
    for tools in ((), (send_invoice,)):
        with pytest.raises(PolicyInvalid) as refused:
            opened(folder, *tools)
        assert [problem.code for problem in refused.value.problems] == ["operations-on-plain-tool"]
