import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.blocks import CompositeSchema, Field, FieldType, ListSchema, MapSchema, Section, TextSchema, Viewport
from gatewright.blocks.block import TextBlock
from gatewright.blocks.plan import Hand
from gatewright.blocks.schema import Append, Overwrite, Redo, Replace, SetField, Undo
from gatewright.memory import BlockRecord, BlockService, BlockType
from gatewright.memory.block_store import BlockStore, Shelf
from gatewright.policy.verdict import Action, Permission
from tests.support.clock import ManualClock
from tests.support.patience import in_time

ANN = "agent:ann"
ALL = Action.DELETE


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BlockStore]:
    with BlockStore(tmp_path / "state" / "memory.sqlite", clock=ManualClock(50.0)) as store:
        yield store


@pytest.fixture
def service(store: BlockStore) -> BlockService:
    return BlockService(store, owner=ANN)


def refused(code: str) -> "pytest.RaisesExc[ToolFailure]":
    return pytest.raises(ToolFailure, check=lambda failure: failure.code == code)


def test_a_block_is_the_same_for_another_program_that_opens_the_file(tmp_path: Path, store: BlockStore) -> None:
    schema = CompositeSchema(
        (
            Section("t", TextSchema(Viewport(2, 5)), "what"),
            Section(
                "m",
                MapSchema((Field("n", FieldType.COUNTER), Field("r", FieldType.TEXT, required=True))),
                read_only=True,
            ),
            Section("l", ListSchema(FieldType.NUMBER, max_items=4)),
        )
    )
    made = BlockService(store, owner=ANN).create(
        "notes", schema, author=ANN, content={"m": {"r": "x"}, "l": [1]}, pinned=True, description="d", char_limit=99
    )
    BlockService(store, owner=ANN).edit("notes", Append("a\nb\n", "t"), author=ANN, granted=Action.APPEND)
    with BlockStore(tmp_path / "state" / "memory.sqlite") as again:
        service = BlockService(again, owner=ANN)
        assert service.get("notes") == made
        assert made.schema == schema
        assert service.value("notes") == {"t": "a\nb\n", "m": {"n": 0, "r": "x"}, "l": [1]}
        assert service.render("notes").startswith("## t\n[lines 2 to 2 of 2]\nb\n")
        assert [(step.number, step.author, step.kind, step.at_s) for step in service.history("notes")] == [
            (1, ANN, "create", 50.0),
            (2, ANN, "append", 50.0),
        ]
        service.edit("notes", Undo(), author=ANN, granted=ALL)
        assert service.value_at("notes", 2) == {"t": "a\nb\n", "m": {"n": 0, "r": "x"}, "l": [1]}
        assert service.value("notes") == {"t": "", "m": {"n": 0, "r": "x"}, "l": [1]}


def test_agents_do_not_see_each_others_blocks_and_all_see_the_shared_ones(store: BlockStore) -> None:
    ann, bob = BlockService(store, owner=ANN), BlockService(store, owner="agent:bob")
    shared = BlockService(store)
    ann.create("persona", author=ANN, content="ann")
    bob.create("persona", author="agent:bob", content="bob")
    shared.create("house", author="operator", content="rules")
    shared.create("persona", author="operator", content="anybody")
    assert (ann.value("persona"), bob.value("persona"), shared.value("persona")) == ("ann", "bob", "anybody")
    assert [record.label for record in ann.list()] == ["house", "persona"]
    assert ann.value("house") == "rules"
    with refused("exists"):
        ann.create("persona", author=ANN)
    ann.create("house", author=ANN, content="mine")
    assert (ann.value("house"), bob.value("house")) == ("mine", "rules")


@pytest.mark.parametrize("label", ["", " x", "a\nb", "file:12345678:a", "FILE:x", "x" * 513])
def test_a_label_that_could_mislead_is_refused(service: BlockService, label: str) -> None:
    with refused("bad-label"):
        service.create(label, author=ANN)


def test_an_archived_block_refuses_edits_and_pins_and_can_still_be_read(service: BlockService) -> None:
    service.create("n", author=ANN, content="one")
    service.note("n", "archive", author=ANN, granted=ALL)
    for change in (
        lambda: service.edit("n", Append("x"), author=ANN, granted=ALL),
        lambda: service.edit("n", Undo(), author=ANN, granted=ALL),
        lambda: service.note("n", "pin", author=ANN, granted=ALL),
    ):
        with pytest.raises(ToolFailure, match="is archived"):
            change()
    assert service.render("n") == "one"
    assert not service.get("n").pinned


def test_no_block_is_made_archived_and_pinned(service: BlockService) -> None:
    with refused("archived"):
        service.create("n", author=ANN, type=BlockType.ARCHIVAL, pinned=True)
    assert not service.create("n", author=ANN, type=BlockType.ARCHIVAL).pinned


def test_pin_unpin_and_archive_change_the_record_and_stand_in_the_history(service: BlockService) -> None:
    service.create("n", author=ANN, content="x")
    assert service.note("n", "pin", author=ANN, granted=ALL).record.pinned
    assert service.note("n", "pin", author=ANN, granted=ALL).step is None
    assert not service.note("n", "unpin", author=ANN, granted=ALL).record.pinned
    service.edit("n", Append("y"), author=ANN, granted=ALL)
    service.note("n", "pin", author=ANN, granted=ALL)
    archived = service.note("n", "archive", author=ANN, granted=ALL).record
    assert (archived.type, archived.archived_at, archived.pinned) == (BlockType.ARCHIVAL, 50.0, False)
    assert service.get("n") == archived
    assert [step.kind for step in service.history("n")] == ["create", "pin", "unpin", "append", "pin", "archive"]
    with refused("wrong-type"):
        service.note("n", "archive", author=ANN, granted=ALL)
    with refused("archived"):
        service.edit("n", Undo(), author=ANN, granted=ALL)
    assert service.value("n") == "xy"


@pytest.mark.parametrize(("type_", "code"), [(BlockType.CORE, "core-block"), (BlockType.LOG, "wrong-type")])
def test_only_working_blocks_are_archived(service: BlockService, type_: BlockType, code: str) -> None:
    service.create("n", author=ANN, type=type_)
    with refused(code):
        service.note("n", "archive", author=ANN, granted=ALL)
    assert service.get("n").type is type_


def test_info_says_size_level_and_what_can_be_undone(service: BlockService) -> None:
    service.create("n", author=ANN, content="abc")
    service.edit("n", Append("d"), author=ANN, granted=ALL)
    info = service.info("n", ANN)
    assert (info.size.chars, info.steps, info.can_undo, info.can_redo) == (4, 2, True, False)
    assert info.permission is Permission.READ_WRITE
    assert info.size.history_bytes > 0
    assert not service.info("n", "agent:bob").can_undo
    service.edit("n", Undo(), author=ANN, granted=ALL)
    assert service.info("n", ANN).can_redo


def test_a_preview_shows_the_change_without_doing_it(service: BlockService) -> None:
    service.create("n", author=ANN, content="one\n")
    assert (service.preview("n", Append("two\n"), ANN) or "").endswith(" one\n+two\n")
    with refused("nothing-to-undo"):
        service.preview("n", Undo(), ANN)
    assert service.value("n") == "one\n"
    assert len(service.history("n")) == 1


def test_a_refused_edit_writes_nothing(service: BlockService, store: BlockStore) -> None:
    service.create("n", author=ANN, content="one", char_limit=5)
    with refused("too-large"):
        service.edit("n", Append("two"), author=ANN, granted=ALL)
    with refused("no-match"):
        service.edit("n", Replace("x", "y"), author=ANN, granted=ALL)
    assert service.edit("n", Append(""), author=ANN, granted=ALL).step is None
    assert [step.number for step in BlockService(store, owner=ANN).history("n")] == [1]
    assert service.get("n").updated_at == 50.0


def test_an_edit_whose_writing_fails_is_not_seen_by_anybody(store: BlockStore) -> None:
    shelf = Shelf(store)
    service = BlockService(store, owner=ANN, shelf=shelf)
    service.create("n", author=ANN, content="one")
    service.value("n")

    def fail_after_editing() -> None:
        with shelf.changing((ANN,), "n") as (_, opened):
            assert opened is not None
            opened.block.edit(Append("lost"), Hand(ANN))
            raise OSError("no space left")

    with pytest.raises(WorkspaceError, match="no space left"):
        fail_after_editing()
    assert service.value("n") == "one"
    service.edit("n", Append("!"), author=ANN, granted=ALL)
    assert (service.value("n"), service.history("n")[-1].number) == ("one!", 2)
    assert BlockService(store, owner=ANN).value("n") == "one!"


def test_a_delete_forgets_the_block_and_its_history(service: BlockService) -> None:
    service.create("n", author=ANN, content="one")
    service.delete("n", granted=ALL, approved=True)
    with refused("unknown-block"):
        service.value("n")
    service.create("n", author=ANN, content="two")
    assert [step.kind for step in service.history("n")] == ["create"]


def test_many_edits_are_folded_into_a_snapshot_and_undo_still_works(tmp_path: Path, store: BlockStore) -> None:
    service, other = BlockService(store, owner=ANN), BlockService(store, owner=ANN)
    service.create("n", author=ANN)
    for number in range(90):
        (service if number % 3 else other).edit("n", Append(f"{number},"), author=ANN, granted=ALL)
    connection = sqlite3.connect(tmp_path / "state" / "memory.sqlite")
    kept, folded = connection.execute(
        "SELECT COUNT(*), (SELECT snapshot_step FROM block) FROM block_step WHERE changes NOT NULL"
    ).fetchone()
    connection.close()
    assert folded >= 60
    assert kept == 91 - folded
    fresh = BlockService(store, owner=ANN)
    for number in reversed(range(90)):
        fresh.edit("n", Undo(), author=ANN, granted=ALL)
        assert fresh.value("n") == "".join(f"{earlier}," for earlier in range(number))
    service.edit("n", Redo(), author=ANN, granted=ALL)
    assert other.value("n") == "0,"
    assert len(other.history("n", limit=1000)) == 182


def test_a_history_much_longer_than_the_block_is_cut_off(store: BlockStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.memory.block_store._HISTORY_BYTES", 20_000)
    service, other = BlockService(store, owner=ANN), BlockService(store, owner=ANN)
    service.create("n", author=ANN)
    assert other.value("n") == ""
    for number in range(200):
        service.edit("n", Overwrite(os.urandom(300).hex()), author=ANN, granted=ALL)
        if number % 50 == 0:
            assert other.value("n") == service.value("n")
    assert other.value("n") == service.value("n")
    assert service.info("n").size.history_bytes < 100_000
    other.edit("n", Append("x"), author=ANN, granted=ALL)
    other.edit("n", Undo(), author=ANN, granted=ALL)
    assert other.value("n") == BlockService(store, owner=ANN).value("n")
    with refused("no-step"):
        other.value_at("n", 3)


def test_a_block_of_a_file_is_one_for_the_source_and_for_the_service(store: BlockStore) -> None:
    label = "file:12345678:a.md"
    store.put(label, source_id="docs", snapshot=TextBlock.from_text("one\n").snapshot(), disk_digest="d")
    levels: dict[str, Permission] = {"docs": Permission.READ_WRITE}
    service = BlockService(store, owner=ANN, levels=lambda record: levels[record.source_id])
    service.edit(label, Append("two\n"), author=ANN, granted=ALL)
    found = store.get(label)
    assert found is not None
    assert TextBlock.from_snapshot(found.snapshot).text == "one\ntwo\n"
    assert found.disk_digest == "d"
    block = TextBlock.from_snapshot(found.snapshot)
    block.set_text(block.text + "three\n")
    store.put(label, source_id="docs", snapshot=block.snapshot(), disk_digest="e")
    assert service.value(label) == "one\ntwo\nthree\n"
    service.edit(label, Undo(), author=ANN, granted=ALL)
    assert service.value(label) == "one\nthree\n"
    service.edit(label, Redo(), author=ANN, granted=ALL)
    service.edit(label, Replace("one", "1"), author=ANN, granted=ALL)
    service.edit(label, Undo(), author=ANN, granted=ALL)
    assert service.value(label) == "one\ntwo\nthree\n"
    kinds = ["stored", "append", "stored", "undo", "redo", "replace", "undo"]
    assert [step.kind for step in service.history(label)] == kinds
    for number in range(70):
        service.edit(label, Append(f"{number}"), author=ANN, granted=ALL)
    for _ in range(70):
        service.edit(label, Undo(), author=ANN, granted=ALL)
    assert BlockService(store, owner=ANN, levels=lambda _: Permission.ADMIN).value(label) == "one\ntwo\nthree\n"
    with refused("of-a-source"):
        service.note(label, "archive", author=ANN, granted=ALL)
    levels["docs"] = Permission.NONE
    with refused("unknown-block"):
        service.value(label)
    assert store.labels("docs") == (label,)
    assert store.delete(label)
    assert store.get(label) is None


def test_a_file_of_the_first_version_opens_with_its_blocks(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    snapshot = TextBlock.from_text("kept\n").snapshot()
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE block (label TEXT PRIMARY KEY, source_id TEXT NOT NULL, snapshot BLOB NOT NULL, "
        "disk_digest TEXT NOT NULL, updated_at REAL NOT NULL) WITHOUT ROWID"
    )
    connection.execute("INSERT INTO block VALUES ('file:1:a', 'docs', ?, 'digest', 7.0)", (snapshot,))
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        if not os.access(path, os.W_OK):
            with BlockStore(path) as store:
                assert store.labels() == ("file:1:a",)
            assert path.read_bytes() == before
    finally:
        tmp_path.chmod(0o755)
        path.chmod(0o644)
    with BlockStore(path) as store:
        found = store.get("file:1:a")
        assert found is not None
        assert (found.snapshot, found.disk_digest, found.updated_at) == (snapshot, "digest", 7.0)
        assert store.labels("docs") == ("file:1:a",)
        service = BlockService(store, levels=lambda _: Permission.READ_WRITE)
        service.edit("file:1:a", Append("more\n"), author=ANN, granted=ALL)
        service.edit("file:1:a", Undo(), author=ANN, granted=ALL)
        assert service.value("file:1:a") == "kept\n"


def test_a_damaged_block_is_told_and_others_stay_usable(tmp_path: Path, store: BlockStore) -> None:
    service = BlockService(store, owner=ANN)
    service.create("good", author=ANN, content="x")
    service.create("bad", author=ANN, content="x")
    connection = sqlite3.connect(tmp_path / "state" / "memory.sqlite")
    connection.execute("UPDATE block SET snapshot = x'00ff' WHERE label = 'bad'")
    connection.commit()
    connection.close()
    fresh = BlockService(store, owner=ANN)
    with pytest.raises(WorkspaceError, match="damaged"):
        fresh.value("bad")
    with pytest.raises(WorkspaceError, match="damaged"):
        fresh.edit("bad", Append("y"), author=ANN, granted=ALL)
    assert fresh.value("good") == "x"


def test_a_fork_opens_the_store_anew_and_both_edit_on(store: BlockStore) -> None:
    service = BlockService(store, owner=ANN)
    service.create("n", author=ANN)
    service.edit("n", Append("a"), author=ANN, granted=ALL)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for _ in range(5):
                service.edit("n", Append("c"), author="child", granted=ALL)
            status = 0
        finally:
            os._exit(status)
    for _ in range(5):
        service.edit("n", Append("p"), author=ANN, granted=ALL)
    assert os.waitpid(child, 0)[1] == 0
    text = service.value("n")
    assert isinstance(text, str)
    assert sorted(text) == sorted("a" + "c" * 5 + "p" * 5)
    service.edit("n", Undo(), author="child", granted=ALL)
    text = service.value("n")
    assert isinstance(text, str)
    assert text.count("c") == 4


def test_an_edit_of_a_large_text_is_quick(store: BlockStore) -> None:
    service = BlockService(store, owner=ANN)
    service.create("n", author=ANN, content="line of text\n" * 80_000)
    service.value("n")
    started = time.process_time()
    for _ in range(20):
        service.edit("n", Append("x"), author=ANN, granted=ALL)
    assert in_time(time.process_time() - started, 5.0)


def test_the_record_of_a_block_is_only_changed_by_the_operator(store: BlockStore, service: BlockService) -> None:
    service.create("n", author=ANN, content="abc")
    with refused("not-permitted"):
        service.settings("n", author=ANN, permission=Permission.ADMIN)
    operator = BlockService(store, owner=ANN, operator=True)
    changed = operator.settings("n", author="operator", permission=Permission.READ_ONLY, description="d", char_limit=2)
    assert changed.record == service.get("n")
    assert (changed.record.permission, changed.record.description, changed.record.char_limit) == ("read_only", "d", 2)
    with refused("not-permitted"):
        service.edit("n", Append("x"), author=ANN, granted=ALL)
    operator.edit("n", Overwrite("x"), author="operator", granted=ALL)
    assert service.value("n") == "x"


@pytest.mark.parametrize("limit", [-1, 4 * 1024 * 1024 + 1])
def test_a_limit_that_cannot_be_is_refused(store: BlockStore, limit: int) -> None:
    operator = BlockService(store, owner=ANN, operator=True)
    with refused("bad-limit"):
        operator.create("n", author="operator", char_limit=limit)
    operator.create("n", author="operator", char_limit=3)
    with refused("bad-limit"):
        operator.settings("n", author="operator", char_limit=limit)
    assert operator.get("n").char_limit == 3


def test_a_limit_of_nothing_is_none_of_its_own(store: BlockStore) -> None:
    operator = BlockService(store, owner=ANN, operator=True)
    assert operator.create("n", author="operator", content="abc", char_limit=0).char_limit is None
    operator.settings("n", author="operator", char_limit=3)
    with refused("too-large"):
        operator.edit("n", Append("x"), author="operator", granted=ALL)
    operator.settings("n", author="operator", description="d")
    assert operator.get("n").char_limit == 3
    operator.settings("n", author="operator", char_limit=0)
    operator.edit("n", Append("x"), author="operator", granted=ALL)
    assert operator.value("n") == "abcx"


@pytest.mark.parametrize("text", ["x" * 4097, "\ud800"])
def test_a_description_that_cannot_be_is_refused(store: BlockStore, text: str) -> None:
    operator = BlockService(store, owner=ANN, operator=True)
    with refused("bad-description"):
        operator.create("n", author="operator", description=text)
    operator.create("n", author="operator", description="d")
    with refused("bad-description"):
        operator.settings("n", author="operator", description=text)
    assert operator.get("n").description == "d"


def test_the_level_and_limit_of_a_files_block_are_not_set_at_the_block(store: BlockStore) -> None:
    store.put("file:0:a", source_id="docs", snapshot=TextBlock.from_text("a").snapshot(), disk_digest="d")
    operator = BlockService(store, owner=ANN, operator=True, levels=lambda _: Permission.READ_ONLY)
    for given in ({"permission": Permission.ADMIN}, {"char_limit": 3}):
        with refused("of-a-source"):
            operator.settings("file:0:a", author="operator", **given)  # pyright: ignore[reportArgumentType]
    assert operator.settings("file:0:a", author="operator", description="d").record.description == "d"
    assert operator.info("file:0:a").permission is Permission.READ_ONLY


def test_fields_that_are_read_only_are_the_operators(store: BlockStore, service: BlockService) -> None:
    service.create("n", MapSchema((Field("k", FieldType.TEXT, read_only=True),)), author=ANN)
    with refused("read-only"):
        service.edit("n", SetField("k", "x"), author=ANN, granted=ALL)
    BlockService(store, owner=ANN, operator=True).edit("n", SetField("k", "x"), author="operator", granted=ALL)
    assert service.value("n") == {"k": "x"}


def test_a_record_says_what_a_block_is(service: BlockService) -> None:
    made = service.create("n", author=ANN, type=BlockType.CORE, permission=Permission.PARTNER, approved=True)
    assert isinstance(made, BlockRecord)
    assert made.block_id.startswith("mem-")
    assert (made.owner, made.type, made.permission) == (ANN, "core", "partner")
