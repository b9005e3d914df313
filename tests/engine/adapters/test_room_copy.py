"""Rooms whose programs work in a private copy: what they see there, and what comes of it when the room is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.base.errors import ToolFailure
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.target import Confinement, Place, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import RoomPlanner
from gatewright.sources.writeback import GivenBack, WriteBack
from tests.engine.adapters.test_confine import run

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-")
RULES = (PermissionRule("*.key", Permission.NONE), PermissionRule("read/**", Permission.READ_ONLY))


@pytest.fixture
def held(tmp_path: Path) -> Confinement:
    place = tmp_path.resolve() / "place"
    for name in ("a.md", "b.md", "c.md", "x.key", "read/r.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f"old {name}\n")
    tree = Tree(str(place), Permission.READ_WRITE, RULES)
    return Confinement((Place(str(place), PlaceUse.SNAPSHOT),), (tree,), folder=str(place), subject="files")


async def test_program_works_in_the_copy_and_levels_say_what_is_written_back(held: Confinement, tmp_path: Path) -> None:
    place, found = Path(held.folder), list[GivenBack]()
    confiner = Confiner(
        RoomPlanner(tmp_path / "cache"),
        write_back=lambda one, _: WriteBack(one, tmp_path / "kept", told=found.append),
    )
    room = await confiner.room(held)
    script = (
        "ls; cat x.key; echo more >> a.md; rm b.md; echo new > n.md; echo mine > y.key; echo z > read/r.md; cat a.md"
    )
    _, said = await run(room, script)
    assert "x.key" not in said.splitlines()
    assert "old x.key" not in said
    assert said.endswith("old a.md\nmore\n")
    assert (place / "a.md").read_text() == "old a.md\n"
    assert not (place / "n.md").exists()
    (place / "c.md").write_text("theirs")
    await run(room, "echo mine > c.md")
    await room.close()

    (what,) = found
    assert [Path(one.path).name for one in what.written] == ["a.md", "n.md"]
    assert {Path(one.change.path).name for one in what.kept} == {"b.md", "c.md", "y.key"}
    assert (place / "a.md").read_text() == "old a.md\nmore\n"
    assert (place / "n.md").read_text() == "new\n"
    assert (place / "b.md").exists()
    assert (place / "c.md").read_text() == "theirs"
    assert (place / "x.key").read_text() == "old x.key\n"
    assert not (place / "y.key").exists()
    assert (Path(what.folder, str(place)[1:], "c.md")).read_text() == "mine\n"


async def test_room_with_a_copy_is_refused_where_nothing_could_be_written_back(
    held: Confinement, tmp_path: Path
) -> None:
    with pytest.raises(ToolFailure) as failure:
        await Confiner(RoomPlanner(tmp_path / "cache")).room(held)
    assert failure.value.code == "not-confined"
