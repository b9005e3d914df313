import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.memory.block_store import BlockStore
from gatewright.sources.roomplan import RoomPlanner
from tests.engine.sources.bench import Bench, make_bench, source_of


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """One source ``docs`` (read_write) on ``base``; ``base/policy.toml`` and ``base/.gatewright`` are protected."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "policy.toml").write_text("secret")
    (base / ".gatewright").mkdir()
    (base / ".gatewright" / "audit").write_text("secret")
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        made = make_bench(base, blocks, (base / "policy.toml", base / ".gatewright"))
        made.start(source_of(), base)
        yield made


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The folder that a room is made of, under its real name."""
    folder = Path(os.path.realpath(tmp_path), "work")
    folder.mkdir()
    return folder


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RoomPlanner:
    """A planner that keeps what it makes in the folder of the test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return RoomPlanner(tmp_path / "cache")
