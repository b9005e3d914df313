"""What a program records of conversations, and `search` over them and the archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.memory import BlockType
from gatewright.policy.verdict import Action
from gatewright.tools.context import ToolExecutionContext
from gatewright.workspace import Workspace
from tests.engine.gate.blockbench import BlockBench, opened
from tests.support.clock import ManualClock

DAY_S = 86_400.0
MARCH_S = 1_772_323_200.0  # 2026-03-01T00:00:00Z
POLICY = """gatewright = 1

[agents.ann]
tools = ["search", "recall@2"]

[agents.bob]
tools = ["search"]

[agents.narrow]
tools = ["search"]

[[agents.narrow.tool_rules]]
tool_name = "search"
rule_type = { ArgumentConstraints = { domain = { const = "conversations" } } }
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MARCH_S)


@pytest.fixture
def bench(tmp_path: Path, clock: ManualClock) -> Iterator[BlockBench]:
    made = opened(tmp_path, POLICY)
    made.workspace.close()
    made.workspace = Workspace.open(made.folder, keys=tmp_path / "keys", clock=clock)
    yield made
    made.workspace.close()


async def contents(bench: BlockBench, query: str, domain: str = "all", agent: str = "ann", **more: Any) -> list[str]:
    found = await bench.done("search", agent=agent, domain=domain, query=query, **more)
    return [row["content"] for row in found["hits"]]


async def test_each_domain_has_its_own_texts_and_all_has_both(bench: BlockBench) -> None:
    bench.workspace.conversations("ann").append("user", "When is the tide?", session_id="s1", metadata={"n": 1})
    await bench.done("recall", "insert", content="The tide table is on the door.")
    bench.own().create("log", author="operator", content="tide: high", type=BlockType.ARCHIVAL)

    assert await contents(bench, "tide", "conversations") == ["When is the tide?"]
    assert set(await contents(bench, "tide", "archival_memory")) == {"The tide table is on the door.", "tide: high"}
    assert len(await contents(bench, "tide")) == 3
    assert len(await contents(bench, "tide", limit=2)) == 2
    (row,) = (await bench.done("search", domain="conversations", query="when"))["hits"]
    assert (row["kind"], row["role"], row["session"], row["metadata"]) == ("message", "user", "s1", {"n": 1})


async def test_conversations_of_other_agents_and_users_are_not_found(bench: BlockBench) -> None:
    talk = bench.workspace.conversations
    talk("bob").append("user", "bob hears of the tide")
    talk("ann", user_id="dana").append("user", "dana asks of the tide")
    talk("ann").append("user", "nobody asks of the tide")

    assert await contents(bench, "tide", "conversations") == ["nobody asks of the tide"]
    dana = ToolExecutionContext("ann", "", user_id="dana")
    call = {"domain": "conversations", "query": "tide"}
    outcome = await bench.workspace.call("ann", "search", call, context=dana)
    assert [row["content"] for row in json.loads(outcome.output)["data"]["hits"]] == ["dana asks of the tide"]


async def test_operator_sees_with_whom_an_agent_talked_and_when_something_changed(bench: BlockBench) -> None:
    talk = bench.workspace.conversations
    assert talk("ann").users() == ()
    marks = [bench.workspace.memory_mark()]
    for agent, user in (("ann", "dana"), ("ann", None), ("ann", "bo"), ("annabel", "eve"), ("bob", "ann")):
        talk(agent, user_id=user).append("user", "the tide")
        marks.append(bench.workspace.memory_mark())
    assert talk("ann").users() == ("bo", "dana")
    with Workspace.open(bench.folder, keys=bench.workspace.key_folder) as other:
        other.blocks("ann").create("log", author="somebody else", content="x")
    marks.append(bench.workspace.memory_mark())
    assert len(set(marks)) == len(marks)
    assert bench.workspace.memory_mark() == marks[-1]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, {"old tide", "tide of today", "tide told"}),
        ({"since": "2026-03-02"}, {"tide of today", "tide told"}),
        ({"until": "2026-03-01"}, {"old tide"}),
        ({"since": "2026-03-03T00:00:00Z", "until": "2026-03-03T00:00:00+00:00"}, {"tide of today", "tide told"}),
        ({"since": "2026-03-03T01:00:00+01:00"}, {"tide of today", "tide told"}),
        ({"since": "2026-03-04"}, set[str]()),
        ({"role": "assistant"}, {"tide told"}),
        ({"session": "two"}, {"tide of today"}),
        ({"role": "user", "session": "three"}, set[str]()),
    ],
)
async def test_filters_say_which_texts_count(
    bench: BlockBench, clock: ManualClock, filters: dict[str, str], wanted: set[str]
) -> None:
    talk = bench.workspace.conversations("ann")
    talk.append("user", "old tide", session_id="one")
    clock.advance(2 * DAY_S)
    talk.append("user", "tide of today", session_id="two")
    talk.append("assistant", "tide told", session_id="three")

    assert set(await contents(bench, "tide", "conversations", filters=filters)) == wanted


async def test_filter_that_is_no_time_is_said_to_the_model(bench: BlockBench) -> None:
    wrong = await bench.call("search", domain="all", query="tide", filters={"since": "yesterday"})
    unknown = await bench.call("search", domain="all", query="tide", filters={"role": "owner"})
    other = await bench.call("search", domain="notes", query="tide")

    assert (wrong.status, wrong.code) == ("failed", "bad-value")
    assert "2026-03-01" in wrong.output
    assert [(one.status, one.decision.stage) for one in (unknown, other)] == [("denied", "schema")] * 2


async def test_agent_may_be_limited_to_one_domain(bench: BlockBench) -> None:
    assert (await bench.call("search", agent="narrow", domain="conversations", query="tide")).status == "allowed"
    assert (await bench.call("search", agent="narrow", domain="all", query="tide")).status == "denied"
    assert "archival_memory" not in json.dumps(bench.workspace.view("narrow").tools("mcp"))


def test_newest_messages_are_kept_and_one_can_be_forgotten(bench: BlockBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.memory.archive.KEPT_MESSAGES", 3)
    talk = bench.workspace.conversations("ann")
    for number in range(5):
        talk.append("user", f"message {number}")
    assert [entry.content for entry in talk.list()] == ["message 4", "message 3", "message 2"]
    assert bench.workspace.archive("ann").list() == ()

    newest = talk.list()[0].entry_id
    assert not bench.workspace.conversations("bob").forget(newest)
    assert talk.forget(newest)
    assert [entry.content for entry in talk.list()] == ["message 3", "message 2"]
    with pytest.raises(ToolFailure, match="role of a message is one of user, assistant"):
        talk.append("owner", "x")
    with pytest.raises(ToolFailure, match="at most"):
        talk.append("user", "x" * 65_537)


async def test_self_check_counts_the_tools_on_memory(bench: BlockBench) -> None:
    checked = bench.workspace.selfcheck()

    assert checked.differences == ()
    assert checked.no_witness == ()
    assert checked.checked > 0


async def test_recall_search_gives_label_content_timestamps_and_score(bench: BlockBench, clock: ManualClock) -> None:
    made = await bench.done("recall", "insert", content="The tide table is on the door.")
    bench.own().create("log", author="operator", content="tide: high")
    clock.advance(60.0)
    bench.own().note("log", "archive", author="operator", granted=Action.OVERWRITE)

    found = await bench.done("recall", "search", query="tide")
    (block, entry) = sorted(found["hits"], key=lambda hit: hit["kind"])

    assert (entry["label"], entry["content"]) == (made["id"], "The tide table is on the door.")
    assert entry["created_at"] == made["created_at"] == "2026-03-01T00:00:00.000Z"
    assert (block["label"], block["content"]) == ("log", "tide: high")
    assert (block["created_at"], block["archived_at"]) == ("2026-03-01T00:00:00.000Z", "2026-03-01T00:01:00.000Z")
    assert entry["score"] > 0 < block["score"]
