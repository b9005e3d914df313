"""The tools `context` and `recall@1`, for agents that list them, and the sets of tools of new and old agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.builtins import DEFAULT_SETS
from gatewright.gate import Outcome
from gatewright.memory import BlockType
from gatewright.policy.verdict import Action, Permission
from tests.engine.gate.blockbench import BlockBench, opened

POLICY = f"""gatewright = 1

[agents.old]
tools = {list(DEFAULT_SETS["legacy"])}
approvals = {{ "recall.insert" = "ask" }}

[agents.limited]
tools = ["context", "recall@1"]

[[agents.limited.tool_rules]]
tool_name = "context"
rule_type = {{ AllowedOperations = ["append"] }}

[[agents.limited.tool_rules]]
tool_name = "recall@1"
rule_type = {{ AllowedOperations = ["read"] }}

[agents.new]
tools = {list(DEFAULT_SETS["v2"])}

[agents.unlisted]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
""".replace("'", '"')


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BlockBench]:
    made = opened(tmp_path, POLICY)
    made.fields = {"context": "operation", "recall": "operation"}
    yield made
    made.workspace.close()


async def old(bench: BlockBench, tool: str, operation: str, **given: Any) -> Any:
    return await bench.done(tool, operation, agent="old", **given)


def shape(bench: BlockBench, label: str) -> tuple[str, str]:
    blocks = bench.own("old")
    return str(blocks.get(label).type), str(blocks.value(label))


async def test_blocks_in_context_are_changed_and_swapped(bench: BlockBench) -> None:
    blocks = bench.own("old")
    blocks.create("human", author="operator", content="likes tea", pinned=True)
    blocks.create("trip", author="operator", content="Riga", type=BlockType.ARCHIVAL)

    await old(bench, "context", "append", label="human", value=" and jam")
    await old(bench, "context", "replace", label="human", old="tea", new="coffee")
    assert shape(bench, "human") == ("working", "likes coffee and jam")

    assert await old(bench, "context", "swap", archive="human", load="trip") == {"archived": "human", "loaded": "trip"}
    assert (shape(bench, "human")[0], shape(bench, "trip")[0]) == ("archival", "working")
    await old(bench, "context", "archive", label="trip")
    assert bench.workspace.context("old").blocks == ()
    assert (await old(bench, "context", "load_from_archival", label="trip"))["type"] == "working"


@pytest.mark.parametrize(
    ("archive", "load"), [("human", "human"), ("human", "core"), ("core", "trip"), ("trip", "trip")]
)
async def test_swap_changes_nothing_where_one_half_cannot_be(bench: BlockBench, archive: str, load: str) -> None:
    blocks = bench.own("old")
    blocks.create("human", author="operator")
    blocks.create("core", author="operator", type=BlockType.CORE)
    blocks.create("trip", author="operator", type=BlockType.ARCHIVAL)

    outcome = await bench.call("context", "swap", agent="old", archive=archive, load=load)

    assert (outcome.status, outcome.code in {"wrong-type", "core-block"}) == ("failed", True)
    assert [shape(bench, label)[0] for label in ("human", "core", "trip")] == ["working", "core", "archival"]


async def test_recall_of_old_keeps_adds_reads_and_deletes_by_label(bench: BlockBench) -> None:
    await old(bench, "recall", "insert", label="trip", value="We sailed")
    assert [request.tool for request in bench.asked] == ["recall"]
    await old(bench, "recall", "append", label="trip", value=" to Riga")
    assert (await old(bench, "recall", "read", label="trip"))["content"] == "We sailed to Riga"
    assert shape(bench, "trip") == ("archival", "We sailed to Riga")
    assert len((await old(bench, "search", "", domain="archival_memory", query="sailed riga"))["hits"]) == 1

    again = await bench.call("recall", "insert", agent="old", label="trip", value="again")
    assert (again.status, again.code) == ("failed", "exists")

    bench.asked.clear()
    await old(bench, "recall", "delete", label="trip")
    assert len(bench.asked) == 1  # what may be written over may be deleted when somebody agrees
    assert (await old(bench, "search", "", domain="archival_memory", query="sailed"))["hits"] == []


async def test_recall_of_old_leaves_blocks_alone_that_are_not_archived(bench: BlockBench) -> None:
    bench.own("old").create("human", author="operator", content="x", permission=Permission.ADMIN)

    for operation, given in (("append", {"value": "y"}), ("delete", {})):
        outcome = await bench.call("recall", operation, agent="old", label="human", **given)
        assert (outcome.status, outcome.code) == ("failed", "wrong-type")
    assert shape(bench, "human") == ("working", "x")


async def test_level_of_an_archived_block_binds_the_tools_of_old(bench: BlockBench) -> None:
    for label, level in (("seen", Permission.READ_ONLY), ("hidden", Permission.NONE)):
        bench.own("old").create(label, author="operator", content="x", type=BlockType.ARCHIVAL, permission=level)

    async def said(operation: str, label: str, **given: Any) -> Outcome:
        return await bench.call("recall", operation, agent="old", label=label, **given)

    assert (await said("read", "seen")).status == "allowed"
    assert (await said("append", "seen", value="y")).code == "level-denies"
    assert (await said("delete", "seen")).code == "level-denies"
    assert (await said("read", "hidden")).code == "level-none"
    assert (await said("read", "hidden")).output == (await said("read", "nothing")).output


async def test_limited_agent_is_denied_the_other_operations(bench: BlockBench) -> None:
    bench.own("limited").create("n", author="operator", content="x")
    assert (await bench.call("context", "append", agent="limited", label="n", value="y")).status == "allowed"
    for tool, operation, given in (
        ("context", "replace", {"label": "n", "old": "x", "new": "y"}),
        ("context", "archive", {"label": "n"}),
        ("context", "load_from_archival", {"label": "n"}),
        ("context", "swap", {"archive": "n", "load": "n"}),
        ("recall", "insert", {"label": "m", "value": "y"}),
        ("recall", "append", {"label": "n", "value": "y"}),
        ("recall", "delete", {"label": "n"}),
    ):
        outcome = await bench.call(tool, operation, agent="limited", **given)
        assert (outcome.status, outcome.decision.stage) == ("denied", "operation"), (tool, operation)
    assert bench.own("limited").value("n") == "xy"
    assert bench.own("limited").find("m") is None


async def test_sets_give_new_agents_the_present_tools_and_old_ones_those_before(bench: BlockBench) -> None:
    names = {agent: {tool["name"] for tool in bench.workspace.view(agent).tools("mcp")} for agent in ("old", "new")}
    assert names["old"] == {"context", "recall", "search"}
    assert names["new"] == {"block", "block_edit", "recall", "search", "source", "file"}
    recalls = {agent: bench.workspace.rights(agent)["recall"].facts.major for agent in ("old", "new", "unlisted")}
    assert recalls == {"old": 1, "new": 2, "unlisted": 2}


async def test_agent_without_a_list_has_no_outmoded_tool(bench: BlockBench) -> None:
    names = {tool["name"] for tool in bench.workspace.view("unlisted").tools("mcp")}
    assert {"block", "recall", "search"} <= names
    assert "context" not in names

    outcome = await bench.call("context", "archive", agent="unlisted", label="n")

    assert (outcome.status, outcome.code, outcome.decision.stage) == ("denied", "outmoded-tool", "lookup")
    assert "only an agent that lists it" in outcome.decision.reason


def test_self_check_finds_no_difference(bench: BlockBench) -> None:
    checked = bench.workspace.selfcheck()

    assert (checked.differences, checked.no_witness) == ((), ())
    assert bench.own("old").list() == ()


def test_operator_takes_a_step_of_an_archived_block_back(bench: BlockBench) -> None:
    blocks = bench.own("old")
    blocks.create("trip", author="operator", content="x", type=BlockType.ARCHIVAL)
    blocks.note("trip", "unarchive", author="operator", granted=Action.DELETE)
    assert [step.kind for step in blocks.history("trip")] == ["create", "unarchive"]
