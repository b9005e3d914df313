"""The gate at a socket that it did not make: a service manager listens there, and starts it for the first hook."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gatewright.adapters.hook_socket import HookPlace, remove_units, unit_files, write_units
from gatewright.base.errors import WorkspaceError
from tests.engine.hooks.world import HookWorld
from tests.support.patience import until

READ = {"file_path": "a.txt"}
MANAGER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Listens as systemd does, and becomes the gate."""


@asynccontextmanager
async def started(world: HookWorld, words: Sequence[str]) -> AsyncGenerator[asyncio.subprocess.Process]:
    (world.run / "gatewright").mkdir(mode=0o700, exist_ok=True)
    environment = {**world.environment, "GATEWRIGHT_KEYS": str(world.keys)}
    process = await asyncio.create_subprocess_exec(*words, env=environment, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


def socket_of(world: HookWorld) -> Path:
    return world.run / "gatewright" / f"{world.place.name}.sock"


def serving(world: HookWorld) -> list[str]:
    return [sys.executable, "-I", "-m", "gatewright", "serve", str(world.policy), "--hooks"]


async def test_a_gate_serves_at_the_socket_that_it_is_passed_and_leaves_it_there(world: HookWorld) -> None:
    manager = [sys.executable, "-c", MANAGER, str(socket_of(world)), *serving(world)]
    async with started(world, manager) as process:
        await until(socket_of(world).exists)
        assert (await world.ask("Read", READ, "t1"))["permissionDecision"] == "allow"
        assert process.returncode is None
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert socket_of(world).is_socket()
    assert len(world.rows("ToolInvoked")) == 1


async def test_a_passed_socket_that_no_hook_looks_for_is_refused(world: HookWorld) -> None:
    other = socket_of(world).with_name("other.sock")
    async with started(world, [sys.executable, "-c", MANAGER, str(other), *serving(world)]) as process:
        _, said = await process.communicate()
    assert b"passed another socket than" in said
    assert process.returncode == 2


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="needs systemd-socket-activate")
async def test_the_first_hook_has_systemd_start_the_gate_and_gets_its_answer(world: HookWorld) -> None:
    given = [f"--setenv={name}={value}" for name, value in world.environment.items()]
    given.append(f"--setenv=GATEWRIGHT_KEYS={world.keys}")
    words = ["systemd-socket-activate", "-l", str(socket_of(world)), *given, *serving(world)]
    async with started(world, words) as process:
        await until(socket_of(world).exists)
        answers = await asyncio.gather(*(world.ask("Read", READ, f"t{number}") for number in range(5)))
        assert {answer["permissionDecision"] for answer in answers} == {"allow"}
        assert process.returncode is None
    assert len(world.rows("ToolInvoked")) == 5


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the program, which writes down its words; the returned file has them."""
    told, program = tmp_path / "told", tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(told))}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return told


def test_units_are_as_systemd_wants_them_and_leave_nothing(
    world: HookWorld, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(world.run))
    folder = world.folder / 'a "strange" $HOME 100% folder'
    folder.mkdir()
    policy, units = folder / "policy.toml", world.folder / "config" / "systemd" / "user"
    policy.write_text("gatewright = 1\n")
    place = HookPlace.of(policy, world.keys)
    write_units(place, policy, units, {"GATEWRIGHT_KEYS": str(world.keys)})
    socket, service = unit_files(place, units)
    first = socket.read_bytes(), service.read_bytes()
    write_units(place, policy, units, {"GATEWRIGHT_KEYS": str(world.keys)})
    assert (socket.read_bytes(), service.read_bytes()) == first
    run = next(line for line in service.read_text().splitlines() if line.startswith("ExecStart="))
    said = shlex.split(run.removeprefix("ExecStart=").replace("%%", "%").replace("$$", "$"))
    assert said == [sys.executable, "-I", "-m", "gatewright", "serve", str(policy), "--hooks"]
    if verify := shutil.which("systemd-analyze"):
        words = [verify, "verify", "--user", str(socket), str(service)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=world.environment)
        assert (done.returncode, done.stderr) == (0, "")
    assert remove_units(place, units)
    assert not (world.folder / "config").exists()
    assert not remove_units(place, units)
    asked = [line.removeprefix("--user ") for line in systemctl.read_text().splitlines()]
    assert asked[:2] == ["daemon-reload", f"enable --now {socket.name}"]
    assert asked[-2:] == [f"disable --now {socket.name} {service.name}", "daemon-reload"]


def test_units_that_systemd_does_not_take_are_removed_again(world: HookWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.folder))
    with pytest.raises(WorkspaceError, match="does not take"):
        write_units(world.place, world.policy, world.folder / "units", {})
    assert not (world.folder / "units").exists()
    with pytest.raises(WorkspaceError, match="line break"):
        write_units(world.place, Path("/a\n[Service]\nExecStart=x"), world.folder / "units", {})
