"""Hundreds of attacks by a shell that may run every program: asked of the disk, of listeners and of what it printed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner
from gatewright.gate import Status
from gatewright.workspace import Workspace
from tests.engine.confinement.attacks import HIDDEN, SECRET, Attack, Field, attacks, lay_out
from tests.support.unixsocket import bind_at

POLICY = """\
gatewright = 1  # SECRET-OF-NOBODY

[workspace]
roots = { shared = "shared", tmp = "tmp" }
shell = { backend = "host", allow = ["*", "bash"] }

[defaults]
approvals = { privileged = "allow" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_only"
permission_rules = [
  { pattern = "secret/", permission = "none" },
  { pattern = "*.key", permission = "none" },
  { pattern = "log.txt", permission = "append" },
  { pattern = "out/", permission = "read_write" },
]

[agents.a]
tools = ["shell_exec"]
sources = []
capabilities = ["Exec", { FsRead = { prefixes = ["shared", "docs"] } }, { FsWrite = { prefixes = ["docs", "tmp"] } }]
"""
AT_A_TIME = 40
"""Scripts that one room is given, one after the other; a room takes longer than most of them."""
EACH_S = 4
DIGEST = hashlib.sha256(f"{SECRET}\n".encode()).hexdigest()


class Listeners:
    """All that a confined process could reach of this one; ``heard`` says what did."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[str] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.places = {"abstract": f"gatewright-{os.getpid()}"}
        tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.places["tcp"] = str(tcp.getsockname()[1])
        self.places["udp"] = str(self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)).getsockname()[1])
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, folder / "host.sock")
        self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, folder / "host-datagram.sock")
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, folder / "out/host.sock")
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.places['abstract']}")

    def _listen(self, family: int, kind: int, address: Path | str | tuple[str, int]) -> socket.socket:
        made = socket.socket(family, kind)
        self._sockets.append(made)
        if isinstance(address, Path | str):
            bind_at(made, address)
        else:
            made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen()
        self._threads.append(threading.Thread(target=self._hear, args=(made, kind, address)))
        self._threads[-1].start()
        return made

    def _hear(self, made: socket.socket, kind: int, address: object) -> None:
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    made.accept()[0].close()
                elif not made.recv(100):
                    return
            except OSError:
                return
            self.heard.append(str(address))

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):  # a datagram socket is not connected; who waits for it is woken all the same
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()


@contextmanager
def listening(folder: Path) -> Generator[Listeners]:
    listeners = Listeners(folder)
    yield listeners
    listeners.close()


def kept(places: dict[str, str]) -> dict[str, str]:
    """The things that no attack may change: every file and folder but what may be written, with its content."""
    found: dict[str, str] = {}
    free = (f"{places['docs']}/out", f"{places['workspace']}/tmp", f"{places['workspace']}/shared", places["state"])
    for top in (places["workspace"], places["outside"], places["home"]):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if f"{folder}/{name}" not in free]
            for name in (*folders, *files):
                path = Path(folder, name)
                held = path.read_bytes().hex() if path.is_file() and not path.is_symlink() else ""
                found[str(path)] = f"{path.lstat().st_mode} {held}"
    for path in (
        places["docs"] + "/out/covered-name.key",
        places["state"] + "/hidden-name.state",
        places["keys"] + "/hidden-name.keys",
    ):
        found[path] = Path(path).read_text()
    return found


class Range:
    """A workspace with what the attacks are about; ``faults`` says what came of scripts."""

    def __init__(self, workspace: Workspace, places: dict[str, str], listeners: Listeners) -> None:
        self.workspace, self.places, self.listeners = workspace, places, listeners
        self.before = kept(places)

    async def faults(self, scripts: Sequence[str]) -> list[str]:
        """The things that these scripts got at, run one after the other in one room."""
        shared, out = self.workspace.folder / "shared", Path(self.places["docs"], "out")
        filled = [Field(self.places).fill(script) for script in scripts]
        name = f"out/run-{hashlib.sha256(repr(filled).encode()).hexdigest()[:16]}.sh"
        lines = [f"OUT={shlex.quote(str(out))}/run; export OUT"]
        anew = f"cd /; rm -rf $OUT; mkdir -p $OUT; cd $OUT; timeout -k 1 {EACH_S} bash -c"
        lines += [f"{anew} {shlex.quote(script)}" for script in filled]
        (shared / name).write_text("\n".join(lines))
        outcome = await self.workspace.call("a", "shell_exec", {"command": f"bash {name}"})
        assert outcome.status is Status.ALLOWED, (outcome.output, outcome.decision.reason, outcome.detail)
        (shared / name).unlink()
        return self._faults(json.loads(outcome.data or b"{}")["data"]["output"], filled)

    def _faults(self, output: str, scripts: Sequence[str]) -> list[str]:
        found = [f"printed {word}" for word in (SECRET, DIGEST, "URING 3") if word in output]
        if HIDDEN in output and not any(HIDDEN in script for script in scripts):
            found.append("listed a closed name")
        after = kept(self.places)
        found += [
            f"changed {path}" for path in self.before.keys() | after.keys() if self.before.get(path) != after.get(path)
        ]
        found += [f"reached {one}" for one in self.listeners.heard]
        found += [f"made {path}" for path in ("/usr/attack", "/etc/attack", "/attack") if os.path.lexists(path)]
        return found


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Range]:
    if why := Confiner.why_not():
        pytest.skip(why)
    places = lay_out(tmp_path)
    folder = Path(places["workspace"])
    for name in ("shared/out", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY)
    victim = subprocess.Popen(["/bin/sleep", "600"])
    workspace = Workspace.open(folder, keys=Path(places["keys"]))
    with listening(folder / "docs") as listeners:
        yield Range(workspace, {**places, **listeners.places, "host_pid": str(victim.pid)}, listeners)
    workspace.close()
    assert victim.poll() is None
    victim.kill()
    victim.wait()


async def test_no_attack_reads_lists_changes_or_reaches_what_the_policy_does_not_give(attacked: Range) -> None:
    # without confinement the others would harm this machine: it is asked first, mildly
    assert not await attacked.faults(["cat {outside}/hidden-name.txt; cat {docs}/secret/hidden-name.txt"])
    every = list(attacks())
    assert len(every) >= 500
    groups = [every[at : at + AT_A_TIME] for at in range(0, len(every), AT_A_TIME)]
    faults: dict[str, list[str]] = {}
    for group in groups:
        # one whose script names a closed file would excuse another that lists it
        for chosen in (
            [one for one in group if HIDDEN in one.script],
            [one for one in group if HIDDEN not in one.script],
        ):
            if chosen and await attacked.faults([one.script for one in chosen]):
                faults |= await _singly(attacked, chosen)
        assert not faults, json.dumps(faults, indent=1)


async def _singly(attacked: Range, group: Sequence[Attack]) -> dict[str, list[str]]:
    found = {f"{one.kind}: {one.script}": await attacked.faults([one.script]) for one in group}
    return {name: faults for name, faults in found.items() if faults} or {"together": [one.script for one in group]}


async def test_what_the_policy_gives_works_in_the_same_room(attacked: Range) -> None:
    script = "cat {docs}/plain.txt {docs}/sub/open.txt; echo new > {docs}/out/made; ls {docs}; rm {docs}/out/plain.txt"
    assert not await attacked.faults([script])
    docs = Path(attacked.places["docs"])
    assert (docs / "out/made").read_text() == "new\n"
    assert not (docs / "out/plain.txt").exists()


LOOKING = (
    "for i in $(seq 60); do cat {docs}/secret/* {docs}/sub/deep/* {docs}/*.key {docs}/plain.txt; sleep 0.05; done;"
    " ls {docs} {docs}/sub/deep"
)


async def test_what_the_host_saves_meanwhile_stays_closed(attacked: Range) -> None:
    docs = Path(attacked.places["docs"])
    running = asyncio.ensure_future(attacked.faults([LOOKING]))
    for _ in range(20):
        await asyncio.sleep(0.05)
        for path in (docs / "secret/hidden-name.txt", docs / "sub/deep/hidden-name.key"):
            fresh = docs / "secret/fresh"
            fresh.write_text(f"{SECRET}\n")
            fresh.replace(path)
    assert not [fault for fault in await running if not fault.startswith("changed")]
