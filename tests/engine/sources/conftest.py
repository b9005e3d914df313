from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.memory.block_store import BlockStore
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
