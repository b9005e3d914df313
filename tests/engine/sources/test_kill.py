"""A kill in the middle of random edits: nothing that was acknowledged is lost, the file is an old or a new one.

By itself it does that a few times. 500 times, which takes minutes:
``GATEWRIGHT_KILLS=500 pytest tests/engine/sources/test_kill.py``.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from gatewright.memory.block_store import BlockStore
from gatewright.policy.document import Source
from gatewright.policy.verdict import Permission
from gatewright.sources.basefolder import base_folder
from gatewright.sources.filesource import FileSource
from gatewright.sources.ground import Protection

KILLS = int(os.environ.get("GATEWRIGHT_KILLS", "8"))
EDITOR = """
import json, random, sys
from pathlib import Path
from gatewright.policy.verdict import Action
from gatewright.sources.filetext import with_lines
from tests.engine.sources.test_kill import digest, source_of
source, chance = source_of(Path(sys.argv[1]), Path(sys.argv[2])), random.Random(int(sys.argv[3]))
def say(word, block, disk):
    print(json.dumps([word, digest(block), digest(disk)]), flush=True)
source.load("a.md")
block = disk = source.read("a.md").content
number = 0
while True:
    number += 1
    kind, word = chance.choice(["append", "insert", "replace", "patch", "save", "load"]), f"<{number}> {'x' * 3000}"
    before = block
    if kind == "append":
        block = f"{block}{word}\\n"
        work = lambda: source.append("a.md", word + "\\n")
    elif kind == "insert":
        block = with_lines(block, 1, word)
        work = lambda: source.insert("a.md", 1, word)
    elif kind in ("replace", "patch") and block:
        first = block.split("\\n")[0]
        block = word + block[len(first):]
        hunk = f"@@ -1 +1 @@\\n-{first}\\n+{word}\\n"
        replace, patch = (lambda: source.replace("a.md", first, word)), (lambda: source.patch("a.md", hunk))
        work = replace if kind == "replace" else patch
    elif kind == "load":
        block = disk
        work = lambda: source.load("a.md")
    else:
        disk = block
        work = lambda: source.save("a.md", Action.OVERWRITE)
    say("begin", block, disk)
    work()
    say("done", block, disk)
"""


def source_of(base: Path, store: Path) -> FileSource:
    return FileSource(Source("docs", ".", Permission.ADMIN), base_folder(base), BlockStore(store), Protection())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_kill_in_the_middle_of_edits_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    root = Path(__file__).resolve().parents[3]
    for turn in range(KILLS):
        base, store = tmp_path / f"base{turn}", tmp_path / f"{turn}.sqlite"
        base.mkdir()
        (base / "a.md").write_text("start\n")
        command = [sys.executable, "-c", EDITOR, str(base), str(store), str(turn)]
        said: list[list[str]] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as editor:
            assert editor.stdout is not None
            said += [json.loads(editor.stdout.readline()) for _ in range(chance.randint(3, 40))]
            os.kill(editor.pid, signal.SIGKILL)
            said += [json.loads(line) for line in editor.stdout if line.endswith("\n")]
        allowed = said[-2:] if said[-1][0] == "begin" else said[-1:]
        source = source_of(base, store)
        assert digest(source.read("a.md").content) in {block for _, block, _ in allowed}
        assert digest((base / "a.md").read_text()) in {disk for _, _, disk in allowed}
        assert source.status("a.md")["state"] in {"synced", "block_modified"}
        assert [path.name for path in base.iterdir() if not path.name.endswith(".tmp")] == ["a.md"]
