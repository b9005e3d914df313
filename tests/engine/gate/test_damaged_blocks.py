"""A stored block that cannot be opened any more: no call on its file crashes, and loading the file mends it."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import pytest

from gatewright.blocks.block import TextBlock
from gatewright.gate import Status
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, Operator

EVERY = POLICY.replace(
    'rule_type = { AllowedOperations = ["read", "append", "load", "save"] }', 'rule_type = "ContinueLoop"'
)
WHOLE = TextBlock.from_text("one\n").snapshot()
DAMAGED = [b"", b"junk", b"\0" * 100, WHOLE[:-1], WHOLE[: len(WHOLE) // 2], WHOLE[::-1], b"loro" + WHOLE]
CALLS: list[dict[str, Any]] = [
    {"op": "read"},
    {"op": "save"},
    {"op": "append", "content": "x"},
    {"op": "insert", "line": 1, "content": "x"},
    {"op": "replace", "old": "one", "new": "two"},
    {"op": "status"},
    {"op": "diff"},
    {"op": "create", "content": "x"},
]


@pytest.mark.parametrize("damaged", DAMAGED)
async def test_no_call_on_a_file_with_a_damaged_block_crashes_and_loading_mends_it(
    make_world: MakeWorld, damaged: bytes
) -> None:
    world = make_world(EVERY)
    world.docs.joinpath("a.md").write_text("one\n", "utf-8")
    whole = os.fsencode(world.docs.resolve() / "a.md")
    label = f"file:{hashlib.sha256(whole).hexdigest()[:8]}:a.md"

    def damage() -> None:
        world.blocks.put(label, source_id="docs", snapshot=damaged, disk_digest="x")

    for call in CALLS:
        damage()
        outcome = await world.call("file", {**call, "path": "a.md"}, approver=Operator())
        assert outcome.code not in {"tool-crashed", "internal-error"}, call
    damage()
    read = await world.call("file", {"op": "read", "path": "a.md"})
    assert (read.status, read.code) == (Status.FAILED, "block-damaged")
    assert "load" in read.output
    loaded = await world.call("file", {"op": "load", "path": "a.md"}, approver=Operator())
    assert loaded.status is Status.ALLOWED
    assert "one" in (await world.call("file", {"op": "read", "path": "a.md"})).output
