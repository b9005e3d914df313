"""The archive of an agent: entries that are kept for good, and what is found again by whom, through `recall`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.memory import BlockType
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.archive import Archive
from gatewright.memory.block_store import BlockStore
from gatewright.memory.entrytable import HITS_PER_WORD, Entry, EntryKind, insert_entry
from gatewright.policy.verdict import Action, Permission
from gatewright.workspace import Workspace
from tests.engine.gate.blockbench import BlockBench, opened

POLICY = """gatewright = 1

[agents.ann]
tools = ["recall", "block"]

[agents.bob]
tools = ["recall@2"]

[agents.reader]
tools = ["recall"]

[[agents.reader.tool_rules]]
tool_name = "recall"
rule_type = { AllowedOperations = ["search"] }

[agents.asked]
tools = ["recall"]
approvals = { "recall.insert" = "ask" }
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BlockBench]:
    made = opened(tmp_path, POLICY)
    yield made
    made.workspace.close()


async def hits(bench: BlockBench, query: str, agent: str = "ann", **given: Any) -> list[dict[str, Any]]:
    return (await bench.done("recall", "search", agent=agent, query=query, **given))["hits"]


def stored(bench: BlockBench) -> BlockStore:
    return BlockStore(bench.workspace.state_folder / "memory.sqlite", keys=bench.workspace.key_folder)


async def test_entry_is_found_again_with_its_metadata_time_and_score(bench: BlockBench) -> None:
    made = await bench.done("recall", "insert", content="The harbour opens at six.", metadata={"from": "Dana"})

    (found,) = await hits(bench, "harbour")

    assert found["id"] == made["id"]
    assert (found["kind"], found["content"]) == ("entry", "The harbour opens at six.")
    assert (found["metadata"], found["created_at"]) == ({"from": "Dana"}, made["created_at"])
    assert found["score"] > 0
    assert await hits(bench, "lighthouse") == []


async def test_agents_find_their_own_entries_and_what_the_operator_shares(bench: BlockBench) -> None:
    await bench.done("recall", "insert", content="ann knows the tide")
    await bench.done("recall", "insert", agent="bob", content="bob knows the tide")
    bench.workspace.archive().insert("everybody knows the tide")
    bench.workspace.archive("ann").insert("ann is told of the tide")

    assert {row["content"] for row in await hits(bench, "tide")} == {
        "ann knows the tide",
        "everybody knows the tide",
        "ann is told of the tide",
    }
    assert {row["content"] for row in await hits(bench, "tide", "bob")} == {
        "bob knows the tide",
        "everybody knows the tide",
    }
    assert [entry.content for entry in bench.workspace.archive().list()] == ["everybody knows the tide"]


async def test_scores_do_not_tell_what_others_have_kept(bench: BlockBench) -> None:
    await bench.done("recall", "insert", content="the tide turns")
    await bench.done("recall", "insert", content="plain words")
    before = await hits(bench, "tide plain")

    for _ in range(20):
        bench.workspace.archive("bob").insert("tide tide tide")
    bench.workspace.blocks().create(
        "hidden", author="operator", content="the tide", type=BlockType.ARCHIVAL, permission=Permission.NONE
    )

    assert await hits(bench, "tide plain") == before


async def test_archived_blocks_are_found_too_and_marked(bench: BlockBench) -> None:
    blocks = bench.own()
    blocks.create("trip", author="operator", content="We sailed to Riga.")
    blocks.create("open", author="operator", content="Riga is not put away.")
    bench.workspace.blocks().create(
        "secret", author="operator", content="Riga, in secret", type=BlockType.ARCHIVAL, permission=Permission.NONE
    )
    bench.own("bob").create("his", author="operator", content="Riga, by bob", type=BlockType.ARCHIVAL)
    assert await hits(bench, "riga") == []

    await bench.done("block", "archive", label="trip")

    (found,) = await hits(bench, "riga")
    assert (found["kind"], found["label"], found["content"]) == ("archived block", "trip", "We sailed to Riga.")
    bench.own().delete("trip", granted=Action.DELETE)
    assert await hits(bench, "riga") == []


async def test_limited_agent_is_neither_shown_nor_given_the_insertion(bench: BlockBench) -> None:
    bench.workspace.archive().insert("a shared entry")

    refused = await bench.call("recall", "insert", agent="reader", content="more")

    assert (refused.status, refused.decision.stage, refused.code) == ("denied", "operation", "operation-not-allowed")
    assert "insert" not in json.dumps(bench.workspace.view("reader").tools("mcp"))
    assert len(await hits(bench, "shared", "reader")) == 1
    assert len(bench.workspace.archive("reader").list()) == 1


async def test_operator_who_is_asked_may_refuse_an_entry(bench: BlockBench) -> None:
    bench.approves = False
    refused = await bench.call("recall", "insert", agent="asked", content="more")
    assert (refused.status, len(bench.asked)) == ("denied", 1)
    assert bench.workspace.archive("asked").list() == ()

    bench.approves = True
    await bench.done("recall", "insert", agent="asked", content="more")
    assert [entry.content for entry in bench.workspace.archive("asked").list()] == ["more"]


@pytest.mark.parametrize(
    "query",
    [
        "AND",
        "tide OR",
        "NOT tide",
        "NEAR(tide turns)",
        "words : tide",
        "place : tide -x",
        '"tide',
        "^tide + {turns}",
        "ti\x00de tide",
        "' ; DROP TABLE entry ; --",
        "tide*",
        "*",
        '""',
        "( ) ) (",
    ],
)
async def test_nothing_in_a_query_is_syntax_that_was_not_meant(bench: BlockBench, query: str) -> None:
    await bench.done("recall", "insert", content="the tide turns")

    found = await hits(bench, query)

    assert [row["content"] for row in found] == (["the tide turns"] if "tide" in query else [])
    assert len(bench.workspace.archive("ann").list()) == 1


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ('"high tide"', {"at high tide"}),
        ("high tide", {"at high tide", "the tide is high"}),
        ("tide*", {"at high tide", "the tide is high", "tidewater"}),
        ('"tide is"', {"the tide is high"}),
    ],
)
async def test_quotes_and_a_star_mean_what_they_say(bench: BlockBench, query: str, wanted: set[str]) -> None:
    for content in ("at high tide", "the tide is high", "tidewater"):
        await bench.done("recall", "insert", content=content)

    assert {row["content"] for row in await hits(bench, query)} == wanted


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Käse aus Zürich", "kase ZURICH"),
        ("我喜欢咖啡和茶", "咖啡"),
        ("東京タワーに行った", "タワー"),
        ("ฉันชอบกาแฟมาก", "กาแฟ"),
        ("Привет, МИР", "мир"),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
async def test_words_of_other_scripts_are_found(bench: BlockBench, content: str, query: str) -> None:
    await bench.done("recall", "insert", content=content)
    await bench.done("recall", "insert", content="something else, 其他")

    assert [row["content"] for row in await hits(bench, query)] == [content]


async def test_more_and_rarer_words_come_first(bench: BlockBench) -> None:
    for content in ("the boat", "the boat is red", "the sea", "the sky", "a red boat, the last one"):
        await bench.done("recall", "insert", content=content)

    found = await hits(bench, "the last boat")

    assert found[0]["content"] == "a red boat, the last one"
    assert {row["content"] for row in found[1:3]} == {"the boat", "the boat is red"}
    assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)
    assert len(await hits(bench, "the", limit=2)) == 2


def test_old_entry_with_all_words_is_found_behind_many_newer_ones_with_one(tmp_path: Path) -> None:
    with BlockStore(tmp_path / "memory.sqlite") as store:
        archive = Archive(store, owner=owner_of("ann"))
        oldest = archive.insert("common and seldom")
        with store.transaction() as connection:
            for number in range(HITS_PER_WORD + 200):
                entry = Entry(f"e{number}", EntryKind.ARCHIVE, owner_of("ann"), f"common {number}", {}, 1.0)
                insert_entry(connection, entry)

        assert archive.search("common seldom")[0].entry == oldest
        assert [hit.entry.entry_id for hit in archive.search("common", limit=2)] == ["e1199", "e1198"]


async def test_large_hits_come_as_the_stretch_around_the_word(bench: BlockBench) -> None:
    for number in range(3):
        await bench.done("recall", "insert", content=f"{'filler ' * 700}NEEDLE {number} {'more ' * 200}")

    found = await hits(bench, "needle")

    assert [("content" in row, "snippet" in row) for row in found] == [(True, False), (True, False), (False, True)]
    assert "NEEDLE" in found[2]["snippet"]
    assert len(found[2]["snippet"]) < 200


async def test_what_is_too_large_or_empty_is_refused(bench: BlockBench) -> None:
    long = await bench.call("recall", "insert", content="x" * 10_001)
    blank = await bench.call("recall", "insert", content=" \n ")
    heavy = await bench.call("recall", "insert", content="x", metadata={"y": "z" * 5_000})

    assert (long.status, long.decision.stage) == ("denied", "schema")
    assert (blank.status, blank.code) == ("failed", "bad-value")
    assert (heavy.status, heavy.code) == ("failed", "too-large")
    assert bench.workspace.archive("ann").list() == ()


def test_full_archive_takes_no_more(bench: BlockBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.memory.archive.MAX_ENTRIES", 2)
    archive = bench.workspace.archive("ann")
    archive.insert("one")
    archive.insert("two")

    with pytest.raises(ToolFailure, match="full"):
        archive.insert("three")
    assert len(archive.list()) == 2


async def test_operator_alone_forgets_an_entry(bench: BlockBench) -> None:
    made = (await bench.done("recall", "insert", content="the tide"))["id"]
    with stored(bench) as store, pytest.raises(ToolFailure, match="does not let you delete"):
        Archive(store, owner=owner_of("ann")).forget(made)
    with pytest.raises(ToolFailure, match="no entry"):
        bench.workspace.archive("bob").forget(made)

    assert bench.workspace.archive("ann").forget(made).content == "the tide"

    assert await hits(bench, "tide") == []
    assert bench.workspace.archive("ann").list() == ()


async def test_archive_outlives_the_process(bench: BlockBench, tmp_path: Path) -> None:
    await bench.done("recall", "insert", content="the tide")
    bench.workspace.close()
    with Workspace.open(bench.folder, keys=tmp_path / "keys") as again:
        outcome = await again.call("ann", "recall", {"op": "search", "query": "tide"})

    assert len(json.loads(outcome.output)["data"]["hits"]) == 1


async def test_disposable_copy_has_the_archive_and_keeps_what_it_adds_to_itself(bench: BlockBench) -> None:
    await bench.done("recall", "insert", content="the tide")
    sandbox = bench.workspace.sandbox()
    try:
        call = {"op": "insert", "content": "the tide, tried out"}
        assert (await sandbox.workspace.call("ann", "recall", call)).status == "allowed"
        assert len(sandbox.workspace.archive("ann").search("tide")) == 2
    finally:
        sandbox.close()
    assert len(bench.workspace.archive("ann").search("tide")) == 1


async def test_store_of_the_version_before_is_read_and_its_archived_blocks_are_found_from_the_next_writing_on(
    bench: BlockBench, tmp_path: Path
) -> None:
    bench.own().create("trip", author="operator", content="Riga", type=BlockType.ARCHIVAL)
    bench.workspace.close()
    with sqlite3.connect(bench.workspace.state_folder / "memory.sqlite") as connection:
        connection.execute("DROP TABLE entry_words")
        connection.execute("DROP TABLE entry")
        connection.execute("PRAGMA user_version = 2")
    connection.close()

    bench.workspace = Workspace.open(bench.folder, keys=tmp_path / "keys")
    assert bench.own().value("trip") == "Riga"
    assert await hits(bench, "riga") == []
    await bench.done("recall", "insert", content="new")
    assert [row["label"] for row in await hits(bench, "riga")] == ["trip"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIRTUAL TABLE more USING fts5(x)",
        "DROP TABLE entry_words; CREATE VIRTUAL TABLE entry_words USING fts5(place, words, content='block')",
    ],
    ids=["another", "one that reads elsewhere"],
)
async def test_index_that_is_none_of_ours_is_refused(bench: BlockBench, statement: str) -> None:
    await bench.done("recall", "insert", content="the tide")
    bench.workspace.close()
    with sqlite3.connect(bench.workspace.state_folder / "memory.sqlite") as connection:
        connection.executescript(statement)
    connection.close()

    with pytest.raises(WorkspaceError, match="it is not ours"):
        bench.workspace.archive("ann").list()
