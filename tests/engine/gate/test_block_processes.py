"""Two programs edit the same block, and the same file's block, through their own gates: nothing of either is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.engine.gate.blockbench import BlockBench, opened
from tests.support.checkout import ROOT

EDITOR = """
import asyncio, json, sys
from pathlib import Path
from gatewright.workspace import Workspace
folder, name, labels = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
workspace = Workspace.open(folder, keys=folder.parent / "keys")
print("ready", flush=True)
sys.stdin.readline()

async def call(label, op, **given):
    outcome = await workspace.call("ann", "block_edit", {"op": op, "label": label, **given})
    assert outcome.status == "allowed", outcome.output

async def main():
    for number in range(25):
        for label in labels:
            await call(label, "append", content=f"{name}{number}\\n")
            if number % 5 == 4:
                await call(label, "replace", old=f"{name}{number}\\n", new=f"{name}{number}!\\n")

asyncio.run(main())
workspace.close()
"""


def run(bench: BlockBench, names: tuple[str, ...], labels: list[str]) -> list[int]:
    """Start a program for each name, let them begin at once, and wait for all."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, str(bench.folder), name, json.dumps(labels)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for name in names
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
    codes = [process.wait() for process in running]
    for process in running:
        assert process.stdout is not None
        process.stdout.close()
    return codes


async def test_edits_of_two_processes_are_merged(tmp_path: Path) -> None:
    bench = opened(tmp_path)
    bench.own().create("notes", author="operator", content="")
    (bench.docs / "a.md").write_text("")
    label = await bench.label("a.md")

    assert run(bench, ("x", "y"), ["notes", label]) == [0, 0]

    wanted = sorted(f"{name}{n}{'!' if n % 5 == 4 else ''}" for name in "xy" for n in range(25))
    for held in ("notes", label):
        assert sorted(str(bench.own().value(held)).split()) == wanted
    await bench.done("file", "save", label=label)
    assert sorted((bench.docs / "a.md").read_text().split()) == wanted
    bench.workspace.close()
