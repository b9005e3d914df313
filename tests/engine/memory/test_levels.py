"""Every writing operation of the service against every level and every grant, as the contract's table says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks import CompositeSchema, Field, FieldType, ListSchema, LogSchema, MapSchema, Section, TextSchema
from gatewright.blocks.schema import Append, Edit, Overwrite, Patch, Redo, Replace, SetField, Undo
from gatewright.memory import BlockService
from gatewright.memory.block_store import BlockStore
from gatewright.memory.blocktable import Note
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for

ANN = "agent:ann"
FIELDS = MapSchema((Field("f", FieldType.TEXT), Field("n", FieldType.COUNTER)))
SCHEMA = CompositeSchema(
    (
        Section("t", TextSchema()),
        Section("m", FIELDS),
        Section("i", ListSchema()),
        Section("log", LogSchema()),
    )
)
CONTENT: dict[str, JsonValue] = {"t": "one\n", "m": {"f": "x"}, "i": ["a"], "log": ["begun"]}
EDITS: dict[str, tuple[Edit, Action]] = {
    "append to text": (Append("x", "t"), Action.APPEND),
    "append to list": (Append("x", "i"), Action.APPEND),
    "append to log": (Append("x", "log"), Action.APPEND),
    "replace": (Replace("one", "two", section="t"), Action.OVERWRITE),
    "replace pattern": (Replace("o", "0", regex=True, section="t"), Action.OVERWRITE),
    "patch": (Patch("@@ -1 +1 @@\n-one\n+two\n", "t"), Action.OVERWRITE),
    "set field": (SetField("f", "y", "m"), Action.OVERWRITE),
    "set section": (SetField("t", "y"), Action.OVERWRITE),
    "overwrite": (Overwrite("x", "t"), Action.OVERWRITE),
    "undo": (Undo(), Action.OVERWRITE),
    "redo": (Redo(), Action.OVERWRITE),
}
OTHERS = ("pin", "unpin", "archive", "delete")


class Bench:
    """One block of each kind under a level that is set after it was filled."""

    def __init__(self, folder: Path, level: Permission, *, of_a_source: bool) -> None:
        self.store = BlockStore(folder / "memory.sqlite")
        made = BlockService(self.store, owner=ANN, operator=True)
        made.create("b", SCHEMA, author=ANN, content=dict(CONTENT))
        made.edit("b", Append("two\n", "t"), author=ANN, granted=Action.DELETE)
        made.edit("b", Append("three\n", "t"), author=ANN, granted=Action.DELETE)
        made.edit("b", Undo(), author=ANN, granted=Action.DELETE)
        if of_a_source:
            with self.store.transaction() as connection:
                connection.execute("UPDATE block SET source_id = 'docs'")
        else:
            made.settings("b", author="operator", permission=level)
        self.service = BlockService(self.store, owner=ANN, levels=lambda _: level)

    def action(self, name: str) -> Action:
        """What the operation is by the contract."""
        return EDITS[name][1] if name in EDITS else Action.DELETE if name == "delete" else Action.OVERWRITE

    def run(self, name: str, granted: Action, *, approved: bool) -> object:
        """Do the operation."""
        service = self.service
        if name in EDITS:
            return service.edit("b", EDITS[name][0], author=ANN, granted=granted, approved=approved)
        if name == "delete":
            return service.delete("b", granted=granted, approved=approved)
        notes: dict[str, Note] = {"pin": "pin", "unpin": "unpin", "archive": "archive"}
        return service.note("b", notes[name], author=ANN, granted=granted, approved=approved)

    def state(self) -> tuple[object, object]:
        operator = BlockService(self.store, owner=ANN, operator=True)
        return operator.get("b"), operator.history("b")


@pytest.fixture(params=[False, True], ids=["own level", "level of a source"])
def of_a_source(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=list(Permission), ids=str)
def level(request: pytest.FixtureRequest) -> Permission:
    return Permission(request.param)


@pytest.fixture
def bench(tmp_path: Path, level: Permission, of_a_source: bool) -> Iterator[Bench]:
    bench = Bench(tmp_path, level, of_a_source=of_a_source)
    yield bench
    bench.store.close()


@pytest.mark.parametrize("name", [*EDITS, *OTHERS])
def test_an_operation_is_done_exactly_when_the_table_lets_it_and_it_was_granted(
    bench: Bench, level: Permission, of_a_source: bool, name: str
) -> None:
    action = bench.action(name)
    verdict = verdict_for(level, action)
    before = bench.state()
    weaker = [granted for granted in Action if list(Action).index(granted) < list(Action).index(action)]
    for granted in weaker:
        with pytest.raises(ToolFailure):
            bench.run(name, granted, approved=True)
        assert bench.state() == before
    if verdict is Verdict.ASK:
        with pytest.raises(ToolFailure) as unasked:
            bench.run(name, action, approved=False)
        assert unasked.value.code == "not-granted"
        assert bench.state() == before
    belongs = of_a_source and name in {"archive", "delete"}
    if verdict is Verdict.DENY or belongs:
        with pytest.raises(ToolFailure) as failure:
            bench.run(name, action, approved=True)
        wanted = "unknown-block" if level is Permission.NONE else "not-permitted"
        assert failure.value.code == ("of-a-source" if verdict is not Verdict.DENY else wanted)
        assert bench.state() == before
    else:
        bench.run(name, action, approved=verdict is Verdict.ASK)
        if name not in {"delete", "unpin"}:
            assert bench.state() != before


def test_reading_is_let_by_every_level_but_none(bench: Bench, level: Permission) -> None:
    service = bench.service
    readings: list[Callable[[], object]] = [
        lambda: service.get("b"),
        lambda: service.value("b"),
        lambda: service.render("b"),
        lambda: service.info("b"),
        lambda: service.history("b"),
        lambda: service.value_at("b", 1),
        lambda: service.preview("b", Append("x", "t"), ANN),
    ]
    for read in readings:
        if level is Permission.NONE:
            with pytest.raises(ToolFailure, match=r"^no block has that label$"):
                read()
        else:
            read()
    assert [record.label for record in service.list()] == ([] if level is Permission.NONE else ["b"])


def test_an_unknown_block_gets_the_words_of_a_hidden_one(tmp_path: Path) -> None:
    with BlockStore(tmp_path / "memory.sqlite") as store:
        service = BlockService(store, owner=ANN)
        for run in (
            lambda: service.value("x"),
            lambda: service.edit("x", Append("y"), author=ANN, granted=Action.DELETE),
            lambda: service.delete("x", granted=Action.DELETE),
        ):
            with pytest.raises(ToolFailure, match=r"^no block has that label$"):
                run()


def test_a_block_of_a_source_is_hidden_from_who_brings_no_levels(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Permission.ADMIN, of_a_source=True)
    with pytest.raises(ToolFailure, match="no block"):
        BlockService(bench.store, owner=ANN).value("b")
    bench.store.close()


@pytest.mark.parametrize("made", list(Permission), ids=str)
def test_a_block_is_made_when_its_own_level_lets_it_be_added_to(tmp_path: Path, made: Permission) -> None:
    with BlockStore(tmp_path / "memory.sqlite") as store:
        service = BlockService(store, owner=ANN)
        with pytest.raises(ToolFailure):
            service.create("n", author=ANN, granted=Action.READ, permission=made)
        verdict = verdict_for(made, Action.APPEND)
        if verdict is not Verdict.ALLOW:
            with pytest.raises(ToolFailure):
                service.create("n", author=ANN, permission=made)
        if verdict is Verdict.DENY:
            with pytest.raises(ToolFailure):
                service.create("n", author=ANN, permission=made, approved=True)
        else:
            record = service.create("n", author=ANN, permission=made, approved=verdict is Verdict.ASK)
            assert record.permission is made


@pytest.mark.parametrize("made", list(Permission), ids=str)
def test_an_operator_makes_sees_and_changes_a_block_of_any_level_and_is_told_the_agents(
    tmp_path: Path, made: Permission
) -> None:
    with BlockStore(tmp_path / "memory.sqlite") as store:
        operator = BlockService(store, owner=ANN, operator=True)
        operator.create("n", author="operator", content="a", permission=made)
        operator.edit("n", Append("b"), author="operator", granted=Action.OVERWRITE)

        assert [record.label for record in operator.list()] == ["n"]
        assert operator.value("n") == "ab"
        assert operator.info("n").permission == made
        operator.delete("n", granted=Action.DELETE)
        assert operator.list() == ()
