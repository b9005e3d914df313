"""Two programs edit one block at the same time: nothing of either is lost, and both undo only their own."""

import subprocess
import sys
from pathlib import Path

from gatewright.blocks.block import TextBlock
from gatewright.blocks.schema import Undo
from gatewright.memory import BlockService
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Action, Permission

WRITER = """
import sys
from pathlib import Path
from gatewright.blocks.schema import Append, Undo
from gatewright.memory.block_store import BlockStore
from gatewright.memory.blocks import BlockService
from gatewright.policy.verdict import Action, Permission
path, name, label = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
service = BlockService(BlockStore(path), levels=lambda _: Permission.ADMIN)
sys.stdin.readline()
for number in range(40):
    service.edit(label, Append(f"{name}{number}\\n"), author=name, granted=Action.OVERWRITE)
    if number % 10 == 9:
        service.edit(label, Undo(), author=name, granted=Action.OVERWRITE)
"""
PUTTER = """
import sys
from pathlib import Path
from gatewright.blocks.block import TextBlock
from gatewright.memory.block_store import BlockStore
path, name, label = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
store = BlockStore(path)
sys.stdin.readline()
for number in range(40):
    if number % 10 != 9:
        with store.exclusive():
            found = store.get(label)
            block = TextBlock.from_snapshot(found.snapshot)
            block.set_text(block.text + f"{name}{number}\\n")
            store.put(label, source_id=found.source_id, snapshot=block.snapshot(), disk_digest=found.disk_digest)
"""


def run(programs: list[tuple[str, str]], path: Path, label: str) -> None:
    """Start the programs, let them begin at once, and wait for both."""
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name, label], stdin=subprocess.PIPE)
        for program, name in programs
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
    assert [process.wait() for process in running] == [0] * len(running)


def wanted(name: str) -> set[str]:
    return {f"{name}{number}" for number in range(40) if number % 10 != 9}


def test_two_programs_that_edit_one_block_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    with BlockStore(path) as store:
        service = BlockService(store)
        service.create("notes", author="operator")
        run([(WRITER, "left"), (WRITER, "right")], path, "notes")
        text = service.value("notes")
        assert isinstance(text, str)
        assert sorted(text.split()) == sorted(wanted("left") | wanted("right"))
        numbers = [step.number for step in service.history("notes", limit=1000)]
        assert numbers == list(range(1, 90))
        for _ in range(36):
            service.edit("notes", Undo(), author="left", granted=Action.OVERWRITE)
        text = service.value("notes")
        assert isinstance(text, str)
        assert sorted(text.split()) == sorted(wanted("right"))


def test_a_source_and_a_service_that_edit_one_block_lose_nothing(tmp_path: Path) -> None:
    path, label = tmp_path / "memory.sqlite", "file:12345678:a.md"
    with BlockStore(path) as store:
        store.put(label, source_id="docs", snapshot=TextBlock.from_text("").snapshot(), disk_digest="d")
        run([(WRITER, "tool"), (PUTTER, "file")], path, label)
        text = BlockService(store, levels=lambda _: Permission.ADMIN).value(label)
        assert isinstance(text, str)
        assert wanted("file") <= set(text.split())
        assert wanted("tool") <= set(text.split())
