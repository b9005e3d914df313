"""The real client in its own process, against a socket that is the gate's, a stranger's, or nobody's."""

from __future__ import annotations

import asyncio
import marshal
import os
import py_compile
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.adapters import hook_exchange
from gatewright.adapters.hook_socket import (
    CLIENT_FILE,
    KEY_FILE,
    MOST_UNPROVED,
    HookPlace,
    HookRequest,
    HookServer,
    listen,
)
from gatewright.base.errors import WorkspaceError
from tests.support.patience import until

SAID = '{"y":1}'
YES = b"R\x00\x00\x00\x00\x07" + SAID.encode() + b"err"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HookPlace]:
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "policy.toml").touch()
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:  # the tests' own connections need a short path
        monkeypatch.setenv("XDG_RUNTIME_DIR", run)
        yield HookPlace.of(tmp_path / "policy.toml", tmp_path / "keys")


async def yes(request: HookRequest) -> None:
    await request.answer(YES)


async def ask(
    place: HookPlace, message: bytes = b"{}", host: str = "claude-code", **options: str
) -> tuple[int, str, str]:
    """Run the client; its exit code, output and errors."""
    words = {"policy": str(place.keys.parent / "policy.toml"), "agent": "coder", "key": str(place.key), "timeout": "60"}
    words |= options
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(CLIENT_FILE), host),
        *(word for name, value in words.items() for word in (f"--{name}", value)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd="/",
    )
    out, said = await process.communicate(message)
    return process.returncode or 0, out.decode(), said.decode()


@asynccontextmanager
async def serving(
    place: HookPlace, handle: Callable[[HookRequest], object] = yes, key: bytes = b""
) -> AsyncGenerator[HookServer]:
    async with listen(place) as (listening, own):
        server = HookServer(listening, key or own, place, handle)  # pyright: ignore[reportArgumentType]
        task = asyncio.create_task(server.serve())
        try:
            yield server
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_the_client_passes_a_message_on_and_prints_what_the_gate_answers(place: HookPlace) -> None:
    taken: list[tuple[bytes, ...]] = []

    async def handle(request: HookRequest) -> None:
        taken.append((request.kind.encode(), *request.parts))
        await request.answer(YES)

    async with serving(place, handle):
        assert await ask(place, b'{"a": "\0 b"}') == (0, SAID, "err")
    ((kind, host, agent, left, message),) = taken
    assert (kind, host, agent, message) == (b"event", b"claude-code", b"coder", b'{"a": "\0 b"}')
    assert 0 < int(left) <= 30_000


async def test_fifty_clients_at_once_are_all_answered(place: HookPlace) -> None:
    async with serving(place):
        answers = await asyncio.gather(*(ask(place) for _ in range(50)))
    assert set(answers) == {(0, SAID, "err")}


async def _nothing(request: HookRequest) -> None:
    assert request.kind


async def _empty(request: HookRequest) -> None:
    await request.answer(b"")


async def _wrong_form(request: HookRequest) -> None:
    await request.answer(b"Z" * 50)


async def _refusal(request: HookRequest) -> None:
    await request.answer(b"Fthe policy is broken")


async def _slow(_: HookRequest) -> None:
    await asyncio.get_running_loop().create_future()


async def _crash(_: HookRequest) -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize("host", ["claude-code", "codex", "cursor", "copilot", "a host of tomorrow"])
@pytest.mark.parametrize("handle", [_nothing, _empty, _wrong_form, _refusal, _slow, _crash])
async def test_a_gate_that_gives_no_answer_is_a_denial_in_the_hosts_form(
    place: HookPlace, handle: Callable[[HookRequest], object], host: str
) -> None:
    async with serving(place, handle):
        code, out, said = await ask(place, host=host, timeout="1" if handle is _slow else "60")
    assert said.startswith("gatewright: not allowed")
    assert (code, "deny" in out) == ((0, True) if host in {"cursor", "copilot"} else (2, False))


def _said(text: bytes, code: int = 0, more: int = 0) -> bytes:
    return b"R" + bytes((code,)) + (len(text) + more).to_bytes(4, "big") + text


@pytest.mark.parametrize(
    "answer",
    [
        _said(b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "perm'),
        _said(b'{"a": 1}{"a": 1}'),
        _said(b"[]"),
        _said(b"{" * 100_000),
        _said(b"\xff"),
        _said(b"x" * 1_000_000),
        _said(b'{"a": 1}', more=1),
        _said(b"", code=1),
        b"R",
    ],
    ids=range(9),
)
async def test_an_answer_of_the_gate_that_no_host_reads_is_a_denial(place: HookPlace, answer: bytes) -> None:
    async def handle(request: HookRequest) -> None:
        await request.answer(answer)

    async with serving(place, handle):
        code, out, said = await ask(place)
    assert (code, out) == (2, "")
    assert said.startswith("gatewright: not allowed")


async def test_a_client_in_another_environment_finds_the_gate(
    place: HookPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(place):
        (tmp_path / "other").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))
        assert await ask(place) == (0, SAID, "err")


async def test_who_serves_without_the_key_is_not_believed(place: HookPlace) -> None:
    async with serving(place, key=b"x" * 32):
        code, _, said = await ask(place)
    assert code == 2
    assert "does not have its key" in said


def _open_to_all(key: Path) -> object:
    return key.chmod(0o644)


def _damage(key: Path) -> object:
    return key.write_bytes(b"short")


@pytest.mark.parametrize("change", [_open_to_all, _damage])
async def test_a_key_that_others_may_read_or_that_is_damaged_is_a_denial(
    place: HookPlace, change: Callable[[Path], object]
) -> None:
    async with serving(place):
        change(place.key)
        code, out, said = await ask(place, timeout="0.4")
    assert (code, out) == (2, "")
    assert said


async def test_a_key_that_is_a_link_is_a_denial(place: HookPlace, tmp_path: Path) -> None:
    async with serving(place):
        place.key.rename(tmp_path / "elsewhere")
        place.key.symlink_to(tmp_path / "elsewhere")
        assert (await ask(place))[0] == 2


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), proper=st.booleans())
def test_nothing_that_a_stranger_sends_ends_the_gate_or_reaches_it(place: HookPlace, data: bytes, proper: bool) -> None:
    async def handle(_: HookRequest) -> None:
        raise AssertionError("a stranger was heard")

    async def talk() -> None:
        async with serving(place, handle):
            reader, writer = await asyncio.open_unix_connection(place.socket)
            writer.write(hook_exchange.HELLO + bytes(32) + data if proper else data)
            with suppress(OSError):
                writer.write_eof()
                await reader.read()
            writer.close()

    asyncio.run(talk())


async def test_strangers_who_say_nothing_keep_no_place_from_who_has_the_key(place: HookPlace) -> None:
    async with serving(place) as server:
        idle = [await asyncio.open_unix_connection(place.socket) for _ in range(MOST_UNPROVED // 2)]
        assert await ask(place) == (0, SAID, "err")
        for _, writer in idle:
            writer.close()
        await until(lambda: server.is_idle)


async def test_only_one_gate_serves_a_policy_and_a_dead_ones_socket_is_replaced(place: HookPlace) -> None:
    async with serving(place):
        with pytest.raises(WorkspaceError, match="another gate"):
            async with listen(place):
                raise AssertionError
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place.socket))
    async with serving(place):
        assert await ask(place) == (0, SAID, "err")
    assert not place.socket.exists()


def _a_file(path: Path) -> object:
    return path.touch()


def _a_folder(path: Path) -> object:
    return path.mkdir()


def _a_link(path: Path) -> object:
    return path.symlink_to(path.parent / "other")


@pytest.mark.parametrize("put", [_a_file, _a_folder, _a_link])
async def test_anything_else_in_the_way_of_the_socket_is_refused_and_stays(
    place: HookPlace, put: Callable[[Path], object]
) -> None:
    place.folder.mkdir(mode=0o700)
    put(place.socket)
    with pytest.raises(WorkspaceError, match="not a socket of yours"):
        async with listen(place):
            raise AssertionError
    assert os.path.lexists(place.socket)


async def test_a_socket_that_another_program_serves_is_refused(place: HookPlace) -> None:
    place.folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place.socket))
        other.listen()
        with pytest.raises(WorkspaceError, match="another program"):
            async with listen(place):
                raise AssertionError


async def test_a_folder_of_sockets_that_others_may_change_or_that_is_a_link_is_refused(
    place: HookPlace, tmp_path: Path
) -> None:
    place.folder.mkdir()
    place.folder.chmod(0o777)
    with pytest.raises(WorkspaceError, match="yours alone"):
        async with listen(place):
            raise AssertionError
    place.folder.rmdir()
    place.folder.symlink_to(tmp_path)
    with pytest.raises(WorkspaceError, match="a link"):
        async with listen(place):
            raise AssertionError


@given(key=st.binary(min_size=32, max_size=32), parts=st.lists(st.binary(max_size=70), max_size=4))
def test_the_clients_proof_is_the_hmac_of_the_standard_library(key: bytes, parts: list[bytes]) -> None:
    import hmac

    text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    assert hook_exchange.mac(key, *parts) == hmac.digest(key, text, "sha256")


async def test_the_client_loads_nothing_but_modules_in_c(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-X", "importtime", str(CLIENT_FILE), "claude-code"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    _, said = await process.communicate()
    loaded = {line.rpartition("|")[2].strip() for line in said.decode().splitlines() if line.startswith("import time")}
    assert not loaded & {"os", "json", "hashlib", "socket", "signal", "subprocess", "site", "typing", "re", "enum"}
    assert not loaded & {"__future__", "importlib", "runpy"}
    assert "_socket" in loaded
    assert KEY_FILE not in loaded


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The client with its compiled form, in a folder of its own."""
    for name in (CLIENT_FILE.name, "hook_exchange.py"):
        (tmp_path / name).write_bytes(CLIENT_FILE.with_name(name).read_bytes())
    py_compile.compile(str(tmp_path / "hook_exchange.py"), doraise=True)
    return tmp_path / CLIENT_FILE.name


def run(client: Path) -> tuple[int, str]:
    words = (sys.executable, "-I", "-S", str(client), "claude-code")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def put_in_place_of(compiled: Path, source: str) -> None:
    """Put other code into a compiled file, which is as old as before."""
    head = compiled.read_bytes()[:16]
    compiled.write_bytes(head + marshal.dumps(compile(source, "other", "exec")))


def test_the_client_runs_in_the_compiled_form_beside_it_until_its_text_is_newer(client: Path) -> None:
    text = client.with_name("hook_exchange.py")
    compiled = Path(cache_from_source(text))
    put_in_place_of(compiled, "main = lambda words: 7")
    assert run(client) == (7, "")
    os.utime(text, ns=(0, 0))
    code, said = run(client)
    assert (code, "the gate gave no answer" in said) == (2, True)
    put_in_place_of(compiled, "main = lambda words: 7")
    assert run(client) == (7, "")


@pytest.mark.parametrize("broken", ["text", "text without a compiled form", "compiled form", "both", "main"])
def test_a_client_that_cannot_be_loaded_denies(client: Path, broken: str) -> None:
    text = client.with_name("hook_exchange.py")
    compiled = Path(cache_from_source(text))
    match broken:
        case "text":
            text.write_text("def main(words) return 0")
        case "text without a compiled form":
            compiled.unlink()
            text.unlink()
        case "compiled form":
            compiled.write_bytes(compiled.read_bytes()[:2000])
        case "both":
            text.unlink()
            text.mkdir()
        case _:
            put_in_place_of(compiled, "main = None")
    code, said = run(client)
    assert code == 2
    assert said.startswith("gatewright: not allowed, because its client cannot be loaded: ")
