"""Notes of users, kept, found, changed and deleted by calls through the whole gate of a workspace."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.builtins import note_tools
from gatewright.gate import Outcome, Status
from gatewright.memory import entrytable, notes
from gatewright.memory.agentblocks import owner_of
from gatewright.memory.archive import Conversations
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ToolExecutionContext
from gatewright.workspace import Workspace
from tests.support.bench import OpenBench
from tests.support.patience import in_time

TOOLS = ("memory_search", "memory_save", "memory_update", "memory_delete")
POLICY = f"gatewright = 1\n\n[agents.a]\ntools = {json.dumps(TOOLS)}\n"
NOBODY = "00000000-0000-4000-8000-000000000000"
USERS = ("ada", "Ada", "bob", "../bob", "a" * 200)


class Bench(OpenBench):
    """An open workspace with notes."""

    async def call(self, user: str | None, tool: str, **arguments: Any) -> Outcome:
        context = ToolExecutionContext("a", "", user_id=user)
        return await self.workspace.call("a", tool, arguments, context=context, approver=self.answer)

    async def done(self, user: str, tool: str, **arguments: Any) -> Any:
        """The result of a call that has to succeed."""
        outcome = await self.call(user, tool, **arguments)
        assert outcome.status is Status.ALLOWED, outcome.output
        result = json.loads(outcome.data or b"")
        assert result["success"] is True
        return result

    async def save(self, user: str, content: str) -> str:
        return (await self.done(user, "memory_save", content=content))["data"]["note_id"]

    async def found(self, user: str, query: str, **more: Any) -> list[str]:
        """The texts that a search gives, in order."""
        return [hit["text"] for hit in (await self.done(user, "memory_search", query=query, **more))["data"]]

    def stored(self) -> bytes:
        """All that lies in the folder of the notes."""
        folder = self.workspace.state_folder / "notes"
        return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".sqlite-shm")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench.at(tmp_path, POLICY)
    yield made
    made.workspace.close()


@pytest.fixture
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed: the import fails."""
    monkeypatch.delitem(sys.modules, "gatewright.memory.embedding", raising=False)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)


async def test_note_is_kept_found_changed_under_its_id_and_deleted(bench: Bench) -> None:
    note_id = await bench.save("ada", "Ada likes her tea with lemon")
    assert note_id.startswith("note-")
    hits = (await bench.done("ada", "memory_search", query="tea"))["data"]
    assert hits == [{"text": "Ada likes her tea with lemon", "source": "note", "score": 1.0, "note_id": note_id}]

    changed = await bench.done("ada", "memory_update", note_id=note_id, content="Ada likes coffee")
    assert changed["data"] == {"note_id": note_id}
    assert await bench.found("ada", "coffee") == ["Ada likes coffee"]
    assert await bench.found("ada", "lemon zest") == []

    await bench.done("ada", "memory_delete", note_id=note_id)
    assert await bench.found("ada", "coffee") == []


async def test_notes_outlast_the_program(tmp_path: Path, bench: Bench) -> None:
    await bench.save("ada", "the key is under the mat")
    bench.workspace.close()
    with Workspace.open(tmp_path / "ws", keys=tmp_path / "keys") as again:
        outcome = await again.call(
            "a", "memory_search", {"query": "key"}, context=ToolExecutionContext("a", "", user_id="ada")
        )
        assert json.loads(outcome.data or b"")["data"][0]["text"] == "the key is under the mat"


async def test_note_is_found_by_what_it_means(bench: Bench) -> None:
    await bench.save("ada", "Reset my password on the portal every month")
    await bench.save("ada", "Banana bread: three ripe bananas, flour, butter")
    await bench.save("ada", "The car is at the garage until Thursday")

    assert (await bench.found("ada", "recover account credentials"))[0].startswith("Reset my password")
    assert (await bench.found("ada", "automobile repair shop"))[0].startswith("The car")
    result = await bench.done("ada", "memory_search", query="automobile repair shop")
    assert "only words" not in result["message"]


NOTES = (
    "Invoices are due on Friday",
    "The dog sleeps in the kitchen",
    "She plays the violin on Sundays",
    "Banana bread: three ripe bananas, flour, butter",
    "The car is at the garage until Thursday",
)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("bill", "Invoices"),
        ("payment deadline", "Invoices"),
        ("puppy", "The dog"),
        ("musical instrument", "She plays"),
    ],
)
async def test_hybrid_retrieval_finds_what_means_the_same_in_other_words(bench: Bench, query: str, text: str) -> None:
    for note in NOTES:
        await bench.save("ada", note)

    found = await bench.found("ada", query)
    assert any(hit.startswith(text) for hit in found), found
    assert len(found) <= 3


async def test_what_is_only_nearest_is_said_to_be_no_more_and_never_stands_beside_what_fits(bench: Bench) -> None:
    for note in NOTES:
        await bench.save("ada", note)
    nearest = await bench.done("ada", "memory_search", query="bill")
    await bench.save("ada", "The bill for the boat")
    fits = await bench.done("ada", "memory_search", query="bill")

    assert "none for certain" in nearest["message"]
    assert "none for certain" not in fits["message"]
    assert [hit["text"] for hit in fits["data"]] == ["The bill for the boat"]


@pytest.mark.parametrize(
    ("written", "vector"), [("", 0.7), ("vector = 0.4", 0.4), ("text = 0.1", 0.9), ("text = 1", 0.0)]
)
async def test_hybrid_retrieval_has_configurable_weights(tmp_path: Path, written: str, vector: float) -> None:
    bench = Bench.at(tmp_path, f"{POLICY}\n[workspace]\nmemory = {{ {written} }}\n")
    for note in NOTES:
        await bench.save("ada", note)
    by_meaning = (await bench.done("ada", "memory_search", query="puppy"))["data"]
    by_both = (await bench.done("ada", "memory_search", query="dog"))["data"]
    path = tmp_path / "ws" / "policy.toml"
    path.write_text(f"{POLICY}\n[workspace]\nmemory = {{ vector = 1 }}\n", "utf-8")
    bench.workspace.reload()
    after = (await bench.done("ada", "memory_search", query="puppy"))["data"]
    bench.workspace.close()

    assert [hit["score"] for hit in by_meaning] == ([vector] if vector else [])
    assert by_both[0]["score"] == 1.0
    assert [hit["score"] for hit in after] == [1.0]


@pytest.mark.usefixtures("by_words")
async def test_without_the_extra_words_alone_are_compared_and_the_result_says_so(bench: Bench) -> None:
    await bench.save("ada", "Reset my password on the portal every month")

    result = await bench.done("ada", "memory_search", query="recover account credentials")
    assert result["data"] == []
    assert "only words were compared" in result["message"]
    assert len(await bench.found("ada", "passwords")) == 1


async def test_notes_of_the_time_before_the_extra_are_found_by_meaning_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as missing:
        missing.delitem(sys.modules, "gatewright.memory.embedding", raising=False)
        missing.setitem(sys.modules, "safetensors.numpy", None)
        await bench.save("ada", "Reset my password on the portal every month")
        assert await bench.found("ada", "recover account credentials") == []

    assert len(await bench.found("ada", "recover account credentials")) == 1


async def test_what_was_said_in_this_session_is_found_if_asked_for(bench: Bench) -> None:
    await bench.save("ada", "tea with lemon")
    sessions = {user: bench.workspace.session("a", user_id=user).session_id for user in ("ada", "bob")}
    with BlockStore(bench.workspace.state_folder / "memory.sqlite", keys=bench.workspace.key_folder) as store:
        for user, session_id in sessions.items():
            Conversations(store, owner=owner_of("a"), user_id=user).append(
                "user", f"{user} wants tea", session_id=session_id
            )
        Conversations(store, owner=owner_of("a"), user_id="ada").append(
            "user", "tea with lemon", session_id=sessions["ada"]
        )

    assert await bench.found("ada", "tea") == ["tea with lemon"]
    result = await bench.done("ada", "memory_search", query="tea", include_conversation=True)
    assert [(hit["text"], hit["source"]) for hit in result["data"]] == [
        ("tea with lemon", "note"),
        ("ada wants tea", "conversation"),
    ]
    assert result["data"][1]["note_id"] == ""
    assert 0 < result["data"][1]["score"] < result["data"][0]["score"]
    assert await bench.found("bob", "tea", include_conversation=True) == ["bob wants tea"]
    assert await bench.found("ada", "tea", include_conversation=True, top_k=1) == ["tea with lemon"]


async def test_conversation_that_cannot_be_read_is_left_out_and_told(bench: Bench) -> None:
    await bench.save("ada", "tea")
    (bench.workspace.state_folder / "memory.sqlite").write_text("no database at all, but long enough to be read as one")

    result = await bench.done("ada", "memory_search", query="tea", include_conversation=True)
    assert [hit["text"] for hit in result["data"]] == ["tea"]
    assert "the conversation could not be searched" in result["message"]


async def test_call_for_nobody_is_denied_with_words_that_help(bench: Bench) -> None:
    for tool, arguments in (
        ("memory_search", {"query": "x"}),
        ("memory_save", {"content": "x"}),
        ("memory_update", {"note_id": "x", "content": "x"}),
        ("memory_delete", {"note_id": "x"}),
    ):
        outcome = await bench.call(None, tool, **arguments)
        assert (outcome.status, outcome.code) == (Status.DENIED, "no-user")
        assert "this session belongs to none" in (outcome.output or "")


async def test_user_of_the_agent_is_whose_notes_they_are(tmp_path: Path) -> None:
    bench = Bench.at(tmp_path, POLICY + 'user_id = "ada"\n')
    outcome = await bench.workspace.call("a", "memory_save", {"content": "a walk at noon"})
    assert outcome.status is Status.ALLOWED
    assert await bench.found("ada", "walk") == ["a walk at noon"]
    assert await bench.found("bob", "walk") == []
    bench.workspace.close()


async def test_note_of_another_user_is_as_one_that_does_not_exist(bench: Bench) -> None:
    theirs = await bench.save("ada", "the safe opens with 1234")
    for note_id in (theirs, f"note-{NOBODY}", "' OR 1=1 --", "note\x00"):
        for tool, more in (("memory_update", {"content": "mine"}), ("memory_delete", {})):
            outcome = await bench.call("bob", tool, note_id=note_id, **more)
            assert (outcome.status, outcome.code) == (Status.FAILED, "not-found")
            assert outcome.output == "Tool execution failed: no note has that id"
    assert await bench.found("ada", "safe") == ["the safe opens with 1234"]


Step = tuple[str, str, str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["save", "update", "delete", "search"]),
        st.sampled_from(USERS),
        st.text(st.sampled_from("abc de"), min_size=1, max_size=12),
        st.integers(0, 30),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_no_user_reaches_the_notes_of_another(steps: list[Step]) -> None:
    async def play(bench: Bench) -> None:
        kept: dict[str, dict[str, str]] = {user: {} for user in USERS}
        ids: list[str] = []
        for what, user, text, pick in steps:
            marked = f"{text} word{USERS.index(user)}"
            note_id = ids[pick % len(ids)] if ids else f"note-{NOBODY}"
            mine = note_id in kept[user]
            if what == "save":
                ids.append(await bench.save(user, marked))
                kept[user][ids[-1]] = marked
            elif what == "update":
                outcome = await bench.call(user, "memory_update", note_id=note_id, content=marked)
                assert (outcome.status is Status.ALLOWED) is mine
                if mine:
                    kept[user][note_id] = marked
            elif what == "delete":
                outcome = await bench.call(user, "memory_delete", note_id=note_id)
                assert (outcome.status is Status.ALLOWED) is mine
                kept[user].pop(note_id, None)
            else:
                hits = (await bench.done(user, "memory_search", query=f"{text} word", top_k=20))["data"]
                assert {hit["note_id"]: hit["text"] for hit in hits}.items() <= kept[user].items()
        for user in USERS:
            query = f"word{USERS.index(user)}"
            hits = (await bench.done(user, "memory_search", query=query, top_k=20))["data"]
            assert {hit["note_id"]: hit["text"] for hit in hits}.items() <= kept[user].items()
            assert len(hits) == min(20, len(kept[user]))

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.at(Path(folder), POLICY)
        try:
            asyncio.run(play(bench))
        finally:
            bench.workspace.close()


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "tea OR (",
        "words: tea",
        "NEAR(tea lemon, 2)",
        "tea* -lemon ^tea",
        "'; DROP TABLE note; --",
        "tea\x00lemon",
        "{words} : tea AND NOT lemon",
        '""" tea """',
        "*",
        "tea " * 250,
        "茶 🍵 ﷽",
    ],
)
async def test_query_is_never_syntax(bench: Bench, query: str) -> None:
    await bench.save("ada", "tea with lemon")
    found = await bench.found("ada", query[:1_000])
    assert found == (["tea with lemon"] if "tea" in query else found)


async def test_pasted_megabyte_is_looked_for_by_its_beginning_and_at_once(bench: Bench) -> None:
    await bench.save("ada", "tea with lemon")
    for rest in ("茶" * 1_000_000, '" ' * 500_000, "tea " * 250_000):
        began = time.process_time()
        hits = bench.workspace.notes.of("ada").search(f"lemon {rest}", top_k=5)
        assert [hit.content for hit in hits] == ["tea with lemon"]
        assert in_time(time.process_time() - began, 0.5)


@pytest.mark.parametrize("text", ["", "x" * 10_000_000, "x" * 4_001, "a\ud800b", 7, None, ["x"]])
async def test_text_that_is_none_or_too_long_is_denied(bench: Bench, text: Any) -> None:
    for tool, arguments in (
        ("memory_save", {"content": text}),
        ("memory_search", {"query": text}),
        ("memory_update", {"note_id": f"note-{NOBODY}", "content": text}),
        ("memory_delete", {"note_id": text}),
    ):
        assert (await bench.call("ada", tool, **arguments)).status is Status.DENIED
    assert not (bench.workspace.state_folder / "notes").exists()


@pytest.mark.parametrize("text", ["a\x00b", "\u202e🍵", "你好世界", "e\u0301" * 1_999, "DROP TABLE note"])
async def test_any_text_comes_back_as_it_was(bench: Bench, text: str) -> None:
    note_id = await bench.save("ada", text)
    change = await bench.done("ada", "memory_update", note_id=note_id, content=text + "!")
    assert change["success"]
    assert bench.workspace.selfcheck().differences == ()
    assert bench.workspace.notes.content(note_id, user_id="ada") == text + "!"


@pytest.mark.parametrize("top_k", [0, 21, -1, 1.5, "5"])
async def test_number_of_notes_is_bounded(bench: Bench, top_k: Any) -> None:
    assert (await bench.call("ada", "memory_search", query="x", top_k=top_k)).status is Status.DENIED


async def test_five_notes_are_given_unless_more_are_asked_for(bench: Bench) -> None:
    for number in range(25):
        await bench.save("ada", f"tea number {number}")
    assert len(await bench.found("ada", "tea")) == 5
    assert len(await bench.found("ada", "tea", top_k=20)) == 20
    assert (await bench.found("ada", "tea number 7"))[0] == "tea number 7"


async def test_long_notes_that_do_not_fit_are_cut_to_where_the_word_stands(bench: Bench) -> None:
    for number in range(6):
        await bench.save("ada", f"{'filler ' * 500}zugzwang {number}")
    outcome = await bench.call("ada", "memory_search", query="zugzwang", top_k=6)

    texts = [hit["text"] for hit in json.loads(outcome.data or b"")["data"]]
    assert not outcome.truncated
    assert [len(text) > 3_000 for text in texts] == [True] * 3 + [False] * 3
    assert all("zugzwang" in text for text in texts)


async def test_many_users_at_once_are_kept_apart(bench: Bench) -> None:
    users = [f"user {number}" for number in range(50)]
    await asyncio.gather(*(bench.save(user, f"tea of {user}") for user in users))
    found = await asyncio.gather(*(bench.found(user, "tea") for user in users))

    assert found == [[f"tea of {user}"] for user in users]


async def test_user_who_has_too_many_notes_is_told_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MAX_NOTES", 2)
    ids = [await bench.save("ada", "tea"), await bench.save("ada", "cake")]
    outcome = await bench.call("ada", "memory_save", content="more")
    assert (outcome.status, outcome.code) == (Status.FAILED, "too-many-items")
    assert "delete some first" in (outcome.output or "")

    await bench.done("ada", "memory_delete", note_id=ids[0])
    assert await bench.save("ada", "more")


async def test_what_was_deleted_or_replaced_lies_in_no_file(bench: Bench) -> None:
    kept = await bench.save("ada", "perennial")
    for number in range(30):
        await bench.save("ada", f"filler {number}")
    gone = await bench.save("ada", "xylophonist zugzwang")
    assert b"zugzwang" in bench.stored()

    await bench.done("ada", "memory_delete", note_id=gone)
    await bench.done("ada", "memory_update", note_id=kept, content="ephemeral")
    assert b"zugzwang" not in bench.stored()
    assert b"xylophon" not in bench.stored()
    assert b"perenni" not in bench.stored()
    assert b"ephemeral" in bench.stored()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIRTUAL TABLE other USING fts5(x)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE note_words; CREATE VIRTUAL TABLE note_words USING fts5(words)",
        "CREATE TRIGGER t AFTER DELETE ON note BEGIN DELETE FROM note; END",
    ],
)
async def test_file_that_holds_more_than_ours_is_not_used(bench: Bench, statement: str) -> None:
    await bench.save("ada", "tea")
    bench.workspace.notes.close()
    (path,) = (bench.workspace.state_folder / "notes").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as changed:
        changed.executescript(statement)

    outcome = await bench.call("ada", "memory_search", query="tea")
    assert outcome.status is Status.FAILED
    assert "more than plain tables" in outcome.detail
    assert str(path) not in (outcome.output or "")


async def test_many_calls_at_once_lose_nothing(bench: Bench) -> None:
    ids = await asyncio.gather(*(bench.save("ada", f"gathering {number}") for number in range(30)))
    assert len(set(ids)) == 30
    await asyncio.gather(
        *(bench.done("ada", "memory_update", note_id=one, content=f"other {at}") for at, one in enumerate(ids[:10])),
        *(bench.done("ada", "memory_delete", note_id=one) for one in ids[20:]),
    )
    assert len(await bench.found("ada", "gathering", top_k=20)) == 10
    assert len(await bench.found("ada", "other", top_k=20)) == 10


async def test_call_that_waits_for_another_process_leaves_the_event_loop_free(bench: Bench) -> None:
    await bench.save("ada", "tea")
    (path,) = (bench.workspace.state_folder / "notes").glob("*.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        call = asyncio.create_task(bench.save("ada", "cake"))
        await asyncio.sleep(0.2)
        assert not call.done()
        other.execute("ROLLBACK")
    await call
    assert await bench.found("ada", "cake") == ["cake"]


async def test_operator_sees_what_would_change(tmp_path: Path) -> None:
    bench = Bench.at(tmp_path, POLICY + "approvals = { side_effecting = 'ask' }\n")
    note_id = await bench.save("ada", "old text")
    await bench.done("ada", "memory_update", note_id=note_id, content="new text")
    await bench.done("ada", "memory_delete", note_id=note_id)

    saved, changed, deleted = (request.diff or "" for request in bench.asked)
    assert saved.splitlines()[0] == "--- new note"
    assert "+old text" in saved.splitlines()
    assert "-old text" in changed
    assert "+new text" in changed
    assert "-new text" in deleted
    bench.workspace.close()


async def test_mark_of_what_was_not_shown_is_not_kept(bench: Bench) -> None:
    note_id = await bench.save("ada", "fine")
    for tool, arguments in (
        ("memory_save", {"content": "the key is [REDACTED]"}),
        ("memory_update", {"note_id": note_id, "content": "the key is [REDACTED]"}),
    ):
        assert (await bench.call("ada", tool, **arguments)).code == "redaction-marker"


def test_tools_say_what_they_do(bench: Bench) -> None:
    facts = {one.name: one for one in bench.workspace.catalog if one.name in TOOLS}
    assert {name: one.tier for name, one in facts.items()} == {
        "memory_search": SafetyTier.READ_ONLY,
        "memory_save": SafetyTier.SIDE_EFFECTING,
        "memory_update": SafetyTier.SIDE_EFFECTING,
        "memory_delete": SafetyTier.SIDE_EFFECTING,
    }
    assert [tool.resource_bounds.timeout_s for tool in note_tools()] == [15.0, 10.0, 10.0, 10.0]
    assert bench.workspace.selfcheck().differences == ()


async def test_without_a_full_text_index_the_tools_are_not_there_and_the_operator_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrytable, "PROBE", "CREATE VIRTUAL TABLE probe USING fts_of_no_sqlite(words)")
    bench = Bench.at(tmp_path, POLICY)
    assert bench.workspace.view("a").tools("mcp") == []
    decision = bench.workspace.decide("a", "memory_search", {"query": "x"})
    assert (decision.stage, decision.code) == ("lookup", "not-available")
    assert "no full-text search" in decision.reason
    bench.workspace.close()


async def test_disposable_copy_has_the_notes_and_changes_none_of_them(bench: Bench) -> None:
    await bench.save("ada", "tea with lemon")
    context = ToolExecutionContext("a", "", user_id="ada")
    copy = bench.workspace.sandbox()
    try:
        outcome = await copy.workspace.call("a", "memory_search", {"query": "tea"}, context=context)
        note_id = json.loads(outcome.data or b"")["data"][0]["note_id"]
        gone = await copy.workspace.call("a", "memory_delete", {"note_id": note_id}, context=context)
        assert gone.status is Status.ALLOWED
    finally:
        copy.close()
    assert await bench.found("ada", "tea") == ["tea with lemon"]


async def test_operator_lists_users_and_their_notes_the_newest_first(bench: Bench) -> None:
    book = bench.workspace.notes
    assert book.users() == ()
    first, _ = await bench.save("ada", "tea"), await bench.save("bob", "beans")
    await bench.save("ada", "biscuits")
    before = book.of("ada").mark()
    book.of("ada").update(first, "green tea")

    assert book.users() == ("ada", "bob")
    found = book.of("ada").list()
    assert [note.content for note in found] == ["green tea", "biscuits"]
    assert found[0].note_id == first
    assert found[0].created_at < found[0].updated_at
    assert [note.content for note in book.of("ada").list(limit=1)] == ["green tea"]
    assert book.of("nobody").list() == ()
    assert book.of("ada").mark() != before

    (note,) = book.of("bob").list()
    book.of("bob").delete(note.note_id)
    (store,) = [path for path in bench.workspace.state_folder.glob("notes/*.sqlite") if _user(path) == "ada"]
    store.with_name("0" * 32 + ".sqlite").write_bytes(b"no database")
    assert book.users() == ("ada",)


def _user(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("SELECT user_id FROM note_state").fetchone()[0])
