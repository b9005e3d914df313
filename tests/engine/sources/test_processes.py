"""Several processes over one workspace: what was answered with success is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Source
from gatewright.policy.target import Located
from gatewright.policy.verdict import Permission
from gatewright.sources.basefolder import base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.manager import SourceManager
from tests.support.checkout import ROOT

WRITERS, LINES = 3, 20
CODE = """
import asyncio, sys
from pathlib import Path
from tests.engine.sources.test_processes import manager_of, place
folder, name, lines = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
manager = manager_of(folder)
print("ready", flush=True)
sys.stdin.readline()
async def work():
    for number in range(lines):
        await manager.append(place(manager), f"{name} {number}\\n")
asyncio.run(work())
"""


def manager_of(folder: Path, name: str = "memory") -> SourceManager:
    manager = SourceManager(lambda: lambda: None, BlockStore(folder / f"state/{name}.sqlite"), Protection())
    source = Source("docs", "docs", Permission.READ_WRITE)
    manager.follow([(source, base_folder(folder / "docs"))])
    return manager


def place(manager: SourceManager) -> Located:
    found = manager.locate("a.md", source_id=None, allowed=("docs",))
    assert isinstance(found, Located)
    return found


def let_write(code: str, folder: Path) -> None:
    """Start the program several times, and let all of them write at once, to their end."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(folder), f"w{number}", str(LINES)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * WRITERS


async def test_no_append_of_several_processes_to_one_file_is_lost(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("", encoding="utf-8")
    let_write(CODE, tmp_path)
    manager = manager_of(tmp_path)
    lines = (await manager.read(place(manager))).content.splitlines()
    assert sorted(lines) == sorted(f"w{one} {number}" for one in range(WRITERS) for number in range(LINES))


MERGER = """
import asyncio, sys
from pathlib import Path
from gatewright.base.errors import ToolFailure
from gatewright.policy.verdict import Action
from tests.engine.sources.test_processes import manager_of, place
folder, name, lines = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
manager = manager_of(folder, name)
print("ready", flush=True)
sys.stdin.readline()
async def saved(at):
    while True:
        try:
            await manager.save(at, Action.OVERWRITE)
            return
        except ToolFailure as failure:
            assert failure.code == "conflict", failure
            told = await manager.reconcile(at, "merge")
            assert told["outcome"] in ("merged", "nothing", "took_disk"), told
async def work():
    at = place(manager)
    for number in range(lines):
        mark = f"section {name}\\n"
        await manager.replace(at, mark, f"{mark}{name} {number}\\n")
        await saved(at)
asyncio.run(work())
"""


async def test_programs_with_blocks_of_their_own_merge_into_one_file_and_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    sections = "".join(f"section w{number}\n-\n-\n-\n" for number in range(WRITERS))
    (tmp_path / "docs/a.md").write_text(sections, encoding="utf-8")
    let_write(MERGER, tmp_path)
    lines = (tmp_path / "docs/a.md").read_text(encoding="utf-8").splitlines()
    added = [line for line in lines if line.startswith("w")]
    assert sorted(added) == sorted(f"w{one} {number}" for one in range(WRITERS) for number in range(LINES))
