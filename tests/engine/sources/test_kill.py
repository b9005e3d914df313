import os
import signal
import subprocess
import sys
from pathlib import Path

SAVER = """
import sys
from pathlib import Path
from gatewright.memory import BlockStore
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.permission import Action, Permission
from gatewright.sources import FileSource, Protection
base, store = Path(sys.argv[1]), BlockStore(Path(sys.argv[2]))
source = FileSource(Source("docs", "."), base, PermissionRules((), Permission.ADMIN), store, Protection())
source.load("a.md")
old, new = "a" * 50_000, "b" * 50_000
while True:
    source.replace("a.md", old, new)
    source.save("a.md", Action.OVERWRITE)
    print("saved", flush=True)
    old, new = new, old
"""


def test_a_kill_while_saving_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    path = base / "a.md"
    whole = {"a" * 50_000, "b" * 50_000}
    for turn in range(4):
        path.write_text("a" * 50_000)
        command = [sys.executable, "-c", SAVER, str(base), str(tmp_path / f"{turn}.sqlite")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout is not None
            for _ in range(3 + turn):
                assert saver.stdout.readline() == "saved\n"
            os.kill(saver.pid, signal.SIGKILL)
        assert path.read_text() in whole
