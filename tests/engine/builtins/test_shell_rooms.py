"""``shell_exec`` with every program allowed, in a room: asked of the disk and of listeners of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.gate import Outcome, Status
from gatewright.workspace import Workspace
from tests.support.patience import until
from tests.support.unixsocket import bind_at

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-")
SECRET = "s3cret-of-the-host"
POLICY = """\
gatewright = 1

[workspace]
roots = { shared = "shared", tmp = "tmp", vault = "vault" }

[workspace.shell]
backend = "BACKEND"
allow = ["*", "bash", "python3", "git", "node", "sh"]

[defaults]
approvals = { privileged = "allow" }

[agents.a]
tools = ["shell_exec"]
capabilities = ["Exec", { FsWrite = { prefixes = ["tmp", "docs"] } }, { FsRead = { prefixes = ["shared", "docs"] } }]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [
  { pattern = "*.key", permission = "none" },
  { pattern = "closed/**", permission = "none" },
  { pattern = "*.ro", permission = "read_only" },
]
"""
FILES = {
    "docs/a.txt": "open",
    "docs/a.key": SECRET,
    "docs/deep/b.key": SECRET,
    "docs/closed/file": SECRET,
    "docs/a.ro": "kept",
    "shared/s.txt": "open",
    "vault/v": SECRET,
    "other/o": SECRET,
    "tmp/t": "open",
}
KEPT = ("docs/a.key", "docs/deep/b.key", "docs/closed/file", "docs/a.ro", "shared/s.txt", "vault/v", "other/o")


class Bench:
    """A workspace with what must stay closed, and listeners that must hear nothing."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder / "ws"
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        (self.folder / "policy.toml").write_text(POLICY.replace("BACKEND", backend))
        self.keys = folder / "keys"
        self.workspace = Workspace.open(self.folder, keys=self.keys)
        self.before = self.kept()
        self.listeners = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        self.listeners[1].bind(("127.0.0.1", 0))
        for kind, place in ((socket.SOCK_STREAM, "stream"), (socket.SOCK_DGRAM, "datagram")):
            for name in (f"\0gatewright-{os.getpid()}-{place}", self.folder / "tmp" / place):
                one = socket.socket(socket.AF_UNIX, kind)
                bind_at(one, name)
                if kind is socket.SOCK_STREAM:
                    one.listen()
                self.listeners.append(one)
        for one in self.listeners:
            one.setblocking(False)

    def kept(self) -> dict[str, str]:
        """The files that nobody may change."""
        names = ("policy.toml", *KEPT)
        return {name: (self.folder / name).read_text() if (self.folder / name).exists() else "gone" for name in names}

    def heard(self) -> list[str]:
        """The listeners that somebody spoke to."""
        found: list[str] = []
        for one in self.listeners:
            with contextlib.suppress(BlockingIOError):
                one.accept() if one.type == socket.SOCK_STREAM else one.recv(9)
                found.append(str(one.getsockname()))
        return found

    async def run(self, script: str) -> Outcome:
        """A script of bash, handed over so that no reading of words stands in its way."""
        (self.folder / "tmp/script").write_text(script)
        return await self.workspace.call("a", "shell_exec", {"command": f"bash {self.folder}/tmp/script"})

    async def said(self, script: str) -> dict[str, Any]:
        outcome = await self.run(script)
        assert outcome.status is Status.ALLOWED, outcome.output
        return json.loads(outcome.data or b"")["data"]

    def close(self) -> None:
        self.workspace.close()
        for one in self.listeners:
            one.close()


@pytest.fixture(params=["host", "session"])
def bench(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("GATEWRIGHT_TEST_TOKEN", SECRET)
    made = Bench(tmp_path, request.param)
    yield made
    made.close()


async def test_what_is_granted_works(bench: Bench) -> None:
    found = await bench.said(
        f"""pwd; cat s.txt; cd {bench.folder}/docs; cat a.txt a.ro; echo new > n.txt; mkdir d; mv n.txt d; rm -r d
        echo more >> a.txt; git init -q g && git -C g status -s && rm -rf g
        python3 -c 'import json, socket; a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9))'
        node -e 'console.log(require("child_process").execSync("echo node").toString())'
        echo x > /tmp/own; cat /tmp/own; cd ~ && pwd; ls /usr/bin/env; true | cat; date > /dev/null"""
    )
    said = found["output"]
    assert found["exit_code"] == 0, said
    assert said.startswith(f"{bench.folder}/shared\nopenopenkept")
    assert "b'pair'" in said
    assert "node" in said
    assert (bench.folder / "docs/a.txt").read_text() == "openmore\n"
    assert bench.kept() == bench.before
    assert not Path("/tmp/own").exists()


READS = {
    "closed names": "cat docs/*.key docs/deep/*.key docs/closed/* docs/closed/.* ",
    "outside": f"cat other/o vault/v; cat {'/'.join(['..'] * 9)}/etc/shadow; ls other vault",
    "a tree": "tar cf - . 2>/dev/null | cat; grep -r . docs; find . -type f -exec cat {} +",
    "by processes": "for p in /proc/[0-9]*; do cat $p/environ $p/root/OTHER $p/cwd/../other/o $p/maps; done; ls /proc",
    "by descriptors": "for n in {0..255}; do cat <&$n & done; wait; cat /proc/*/fd/* & sleep 0.3; kill $!",
    "by links": "ln -s OTHER docs/l; cat docs/l; ln OTHER docs/h; ln docs/a.key docs/k; cat docs/h docs/k",
    "by renames": "mv docs/closed docs/c2; cat docs/c2/file; mv docs/a.key docs/x; cat docs/x; mv docs/deep docs/d2; "
    "cat docs/d2/b.key; mv docs d3; cat d3/a.key",
    "by copies": "cp -r docs /tmp/c; cat /tmp/c/*.key /tmp/c/closed/file; dd if=docs/a.key",
    "by mounts": "mount -t tmpfs x docs/closed; umount docs/a.key docs/closed; mount --bind / /tmp; cat docs/a.key; "
    "unshare -Urm sh -c 'umount docs/a.key; cat docs/a.key'; umount -l docs/closed; cat docs/closed/file",
    "by python": "python3 -c 'print(open(\"docs/a.key\").read())'; python3 -c 'import os; os.listdir(\"other\")'",
    "by the state": "cat KEYS/* STATE/*/*; ls KEYS STATE",
    "the environment": "env; cat /proc/self/environ; cat /proc/1/environ; ps auxe",
    "of the system": "cat /etc/shadow /root/.ssh/* /home/*/.ssh/* /etc/ssl/private/*; ls /sys /boot /var/log /run/user",
    "by handles": "python3 - <<'X'\nimport ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
    "for n in (303, 304, 101, 310, 438, 425, 321, 298, 272, 308, 165, 428):\n"
    "    print(n, c.syscall(n, 0, 0, 0, 0, 0, 0))\nX\n"
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'",
}


@pytest.mark.parametrize("name", READS)
async def test_nothing_closed_is_read_or_changed(bench: Bench, name: str) -> None:
    places = {"OTHER": f"{bench.folder}/other/o", "KEYS": str(bench.keys), "STATE": f"{bench.folder}/.gatewright"}
    script = READS[name]
    for word, place in places.items():
        script = script.replace(word, place)
    outcome = await bench.run(f"cd {bench.folder}; {script}")
    said = (outcome.data or b"").decode() + outcome.output
    assert SECRET not in said, said
    assert "root:" not in said
    assert bench.kept() == bench.before


WRITES = (
    "echo x > {0}", "rm -f {0}", "mv {0} {0}.x", "cp /etc/hostname {0}", "truncate -s 0 {0}", "sed -i s/./x/ {0}",
    "python3 -c 'open(\"{0}\", \"w\").write(\"x\")'", "ln -f docs/a.txt {0}", "chmod 000 {0}", "touch -d 1999 {0}",
)  # fmt: skip


async def test_what_may_only_be_read_is_not_changed(bench: Bench) -> None:
    for name in ("policy.toml", *KEPT):
        await bench.run("\n".join([f"cd {bench.folder}", *(write.format(name) for write in WRITES)]))
        assert bench.kept() == bench.before, name
    assert not [one for one in bench.folder.rglob("*.x") if one.name != "script"]


async def test_no_listener_of_the_host_hears_anything(bench: Bench) -> None:
    stream, datagram = (one.getsockname()[1] for one in bench.listeners[:2])
    script = f"""cd {bench.folder}
    echo x > /dev/tcp/127.0.0.1/{stream}; echo x > /dev/udp/127.0.0.1/{datagram}
    python3 - <<'X'
import os, socket
def tried(act):
    try:
        act()
        print("SENT")
    except OSError as error:
        print(error)
os.chdir({str(bench.folder / "tmp")!r})
names = ["stream", "datagram"]
names += ["\\0gatewright-{os.getpid()}-" + name for name in ("stream", "datagram")]
for name in names:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        tried(lambda: socket.socket(socket.AF_UNIX, kind).connect(name))
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        tried(lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", name))
        tried(lambda: socket.socketpair(socket.AF_UNIX, kind)[0].connect(name))
for family in (17, 40, 31, 38):
    tried(lambda: socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM).send(b"x"))
X
    curl -sm 2 http://127.0.0.1:{stream}/; getent hosts localhost; nc -w 1 127.0.0.1 {stream} < /dev/null"""
    found = await bench.said(script)
    assert bench.heard() == [], found["output"]
    assert found["output"].count("SENT") == 0, found["output"]


async def test_a_key_that_appears_while_a_command_runs_is_closed(bench: Bench) -> None:
    """The host writes it anew again and again; what was seen before it was closed is the window that is told of."""
    waits = f"cd {bench.folder}/docs; touch ../tmp/ready; while [ ! -e ../tmp/go ]; do :; done; cat late.key deep/*.key"
    task = asyncio.create_task(bench.said(waits))
    await until((bench.folder / "tmp/ready").exists, "the command runs")
    for _ in range(20):
        (bench.folder / "docs/new").write_text(SECRET)
        (bench.folder / "docs/new").rename(bench.folder / "docs/late.key")
    room = bench.workspace.shells._rooms.rooms[0]  # pyright: ignore[reportPrivateUsage]
    await room.check()
    (bench.folder / "tmp/go").touch()
    assert SECRET not in str(await task)
    assert (bench.folder / "docs/late.key").read_text() == SECRET


async def test_an_edit_that_narrows_counts_for_the_next_command(bench: Bench) -> None:
    assert "open" in (await bench.said(f"cat {bench.folder}/docs/a.txt"))["output"]
    path = bench.folder / "policy.toml"
    path.write_text(path.read_text().replace('"*.key"', '"*.txt"'))
    bench.workspace.reload()
    output = (await bench.said(f"cd {bench.folder}/docs; head a.txt; wc -c *"))["output"]
    assert "Permission denied" in output
    assert "4 a.txt" not in output


async def test_nothing_of_a_room_outlives_the_program_however_that_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "session")
    bench.close()
    mark = f"gatewright-outlives-{os.getpid()}"
    script = bench.folder / "tmp/script"
    script.write_text(f"bash -c 'exec -a {mark} sleep 1000' & setsid bash -c 'exec -a {mark} sleep 1000' & touch up")
    program = f"""
        import asyncio, os
        from pathlib import Path
        from gatewright.workspace import Workspace

        async def main():
            workspace = Workspace.open({str(bench.folder)!r}, keys=Path({str(bench.keys)!r}))
            command = {{"command": "cd {bench.folder}/tmp; bash script; sleep 1"}}
            task = asyncio.create_task(workspace.call("a", "shell_exec", command))
            while not Path({str(bench.folder / "tmp/up")!r}).exists():
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), 9)

        asyncio.run(main())
    """
    mounts = Path("/proc/self/mountinfo").read_text()
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr

    def running() -> list[str]:
        found: list[str] = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if mark.encode() in one.read_bytes():
                    found.append(one.parent.name)
        return found

    await until(lambda: not running(), "everything ends")
    assert Path("/proc/self/mountinfo").read_text() == mounts
