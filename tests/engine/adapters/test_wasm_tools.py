"""Tools that a WASM module runs, asked through the gate: what they are given, may reach, use up and leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from wasmtime import wat2wasm

from gatewright.adapters.wasm_module import COUNT, MOST_MADE, MOST_WRITTEN
from gatewright.gate import Outcome
from gatewright.workspace import Workspace
from tests.engine.adapters.toolcatalog import opened, write_manifest, write_policy
from tests.support.patience import pause_until

IMPORTS: Mapping[str, str] = {
    "fd_read": "i32 i32 i32 i32",
    "fd_write": "i32 i32 i32 i32",
    "fd_pwrite": "i32 i32 i32 i64 i32",
    "fd_filestat_set_size": "i32 i64",
    "fd_allocate": "i32 i64 i64",
    "path_open": "i32 i32 i32 i32 i32 i64 i64 i32 i32",
    "path_symlink": "i32 i32 i32 i32 i32",
    "path_create_directory": "i32 i32 i32",
    "path_link": "i32 i32 i32 i32 i32 i32 i32",
    "fd_prestat_get": "i32 i32",
    "fd_close": "i32",
    "poll_oneoff": "i32 i32 i32 i32",
    "environ_sizes_get": "i32 i32",
    "args_sizes_get": "i32 i32",
    "sock_accept": "i32 i32 i32",
    "sock_send": "i32 i32 i32 i32 i32",
}
TEXT_AT = 8_192
INPUT_AT = 65_536


def quoted(text: str) -> str:
    """A text as WAT has it."""
    return "".join(f"\\{byte:02x}" for byte in text.encode())


def module(body: str, *texts: str, pages: int = 3, more: str = "", start: str = "_start") -> bytes:
    """A WASI command; ``texts`` lie at `TEXT_AT`, each a kilobyte after the last one.

    ``$say`` writes so many bytes from a place, ``$number`` a number below 100, ``$hear`` reads the input to `INPUT_AT`.
    """
    imported = "".join(
        f'(import "wasi_snapshot_preview1" "{name}" (func ${name} (param {given}) (result i32)))'
        for name, given in IMPORTS.items()
    )
    data = "".join(f'(data (i32.const {TEXT_AT + 1024 * at}) "{quoted(text)}")' for at, text in enumerate(texts))
    return bytes(
        wat2wasm(
            f"""(module {imported}
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") {pages}) {data} {more}
            (func $put (param $fd i32) (param $at i32) (param $size i32) (result i32)
                (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $size))
                (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
            (func $say (param $at i32) (param $size i32)
                (drop (call $put (i32.const 1) (local.get $at) (local.get $size))))
            (func $number (param $value i32)
                (i32.store8 (i32.const 16) (i32.add (i32.const 49) (i32.div_u (local.get $value) (i32.const 10))))
                (i32.store8 (i32.const 17) (i32.add (i32.const 48) (i32.rem_u (local.get $value) (i32.const 10))))
                (call $say (i32.const 16) (i32.const 2)))
            (func $hear (param $fd i32) (result i32)
                (i32.store (i32.const 0) (i32.const {INPUT_AT})) (i32.store (i32.const 4) (i32.const 65536))
                (drop (call $fd_read (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
                (i32.load (i32.const 8)))
            (func $open (param $fd i32) (param $at i32) (param $size i32) (param $how i32) (param $rights i64)
                (result i32)
                (call $path_open (local.get $fd) (i32.const 1) (local.get $at) (local.get $size) (local.get $how)
                    (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 32)))
            (func (export "{start}") {body}))"""
        )
    )


def saying(*texts: str) -> bytes:
    """A module that writes some texts."""
    body = "".join(
        f"(call $say (i32.const {TEXT_AT + 1024 * at}) (i32.const {len(text.encode())}))"
        for at, text in enumerate(texts)
    )
    return module(body, *texts)


def number(code: str) -> str:
    """Say the number that some code comes to; it is written with a digit of ten more, so that it is JSON."""
    return f"(call $number {code})"


def opening(path: str, *, how: int = 0, rights: int = 2) -> tuple[str, str]:
    """Code that opens a path, and the text that it needs."""
    size = len(path.encode())
    return (
        f"(call $open (i32.const 3) (i32.const {TEXT_AT}) (i32.const {size}) (i32.const {how}) (i64.const {rights}))",
        path,
    )


ECHO = module(f"(call $say (i32.const {INPUT_AT}) (call $hear (i32.const 0)))")
FOR_EVER = module("(loop $again (br $again))")
WAIT = """(i32.store8 (i32.const 264) (i32.const 0)) (i32.store (i32.const 272) (i32.const 1))
    (i64.store (i32.const 280) (i64.const {wait}))
    (drop (call $poll_oneoff (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 24)))"""
"""Code that waits for nanoseconds."""
BOUNDS: Mapping[str, Mapping[str, Any]] = {
    "work": {},
    "short": {"bounds": {"timeout_s": 1.0}},
    "small": {"bounds": {"memory_bytes": 2_000_000, "cpu_s": 0.5}},
    "flow": {"result_type": "stream"},
    "raw": {"result_type": "binary"},
}


def definition(name: str, conduct: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Does some work.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
        "run": {},
        "_meta": {"gatewright": dict(conduct)},
        **more,
    }


class Desk:
    """A workspace whose agent may call the tools of `BOUNDS`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: list[Workspace] = []
        write_manifest(folder, [definition(name, conduct) for name, conduct in BOUNDS.items()])

    def open(self, content: bytes, *, keys: str = "", more: str = "", tools: Sequence[str] = (*BOUNDS,)) -> Workspace:
        (self.folder / "tool.wasm").write_bytes(content)
        write_policy(self.folder, "wasm", tools, keys=f"module = 'tool.wasm'\n{keys}", more=more)
        self._held.append(opened(self.folder))
        self._held[-1].accept_tools("calc", None)
        return self._held[-1]

    def close(self) -> None:
        for one in self._held:
            one.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "ws"
    folder.mkdir()
    made = Desk(folder)
    before = descriptors()
    yield made
    made.close()
    pause_until(lambda: not working(), "the work to end")
    assert descriptors() <= before + 8  # what loops and the runtime keep for themselves


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def working() -> list[str]:
    """The threads in which something is still worked at."""
    return [one.name for one in threading.enumerate() if one.name == "gatewright-work"]


async def run(workspace: Workspace, tool: str = "work", **more: Any) -> Outcome:
    return await workspace.call("a", tool, {"text": "päper"}, **more)


def told(outcome: Outcome) -> str:
    """What the trace says of the execution."""
    return next((one.reason for one in outcome.decision.trace if one.stage == "execute"), outcome.code)


async def test_module_gets_the_call_and_its_answer_is_the_result(desk: Desk) -> None:
    outcome = await run(desk.open(ECHO))
    assert outcome.status == "allowed", told(outcome)
    assert json.loads(outcome.output) == {"tool": "work", "arguments": {"text": "päper"}}
    assert "WASM module" in told(outcome)
    assert "no network" in told(outcome)
    assert "268,435,456 bytes of memory" in told(outcome)


async def test_calls_at_once_and_one_after_the_other_have_nothing_in_common(desk: Desk) -> None:
    workspace = desk.open(ECHO)
    found = await asyncio.gather(*(workspace.call("a", "work", {"text": str(n)}) for n in range(8)))
    found += [await workspace.call("a", "work", {"text": str(n)}) for n in range(8, 12)]
    assert [json.loads(one.output)["arguments"]["text"] for one in found] == [str(n) for n in range(12)]


async def test_module_that_ends_with_zero_has_answered_and_with_another_code_has_failed(desk: Desk) -> None:
    body = "(call $say (i32.const {0}) (i32.const 4)) (call $exit (i32.const {1}))"
    outcome = await run(desk.open(module(body.format(TEXT_AT, 0), "true")))
    assert (outcome.status, outcome.output) == ("allowed", "true")
    outcome = await run(desk.open(module(body.format(TEXT_AT, 3), "true")))
    assert outcome.status == "failed"
    assert "exit code 3" in told(outcome)


async def test_reason_for_the_model_reaches_it_and_standard_error_does_not(desk: Desk) -> None:
    said = '{"error": "there is no such row"}'
    body = f"""(call $say (i32.const {TEXT_AT}) (i32.const {len(said)}))
        (drop (call $put (i32.const 2) (i32.const {TEXT_AT + 1024}) (i32.const 14))) (call $exit (i32.const 1))"""
    outcome = await run(desk.open(module(body, said, "where it hurts")))
    assert outcome.status == "failed"
    assert "there is no such row" in outcome.output
    assert "hurts" not in outcome.output
    assert "where it hurts" in told(outcome)


async def test_agent_without_the_grant_sees_and_calls_nothing(desk: Desk) -> None:
    workspace = desk.open(ECHO, more="capabilities = []\n")
    assert workspace.view("a").tools("mcp") == []
    outcome = await run(workspace)
    assert outcome.status == "denied"


async def test_nothing_of_the_computer_is_given(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "a value")
    counted = "(drop (call $environ_sizes_get (i32.const 48) (i32.const 52)))"
    outcome = await run(desk.open(module(counted + number("(i32.load (i32.const 48))"))))
    assert outcome.output == "10", told(outcome)
    for fd in (3, 4, 5, 9, 40):
        found = await run(desk.open(module(number(f"(call $fd_prestat_get (i32.const {fd}) (i32.const 64))"))))
        assert found.output == "18", fd  # badf


async def test_socket_is_none_and_cannot_be_used(desk: Desk) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        for fd in (0, 1, 3, server.fileno()):
            taking = f"(call $sock_accept (i32.const {fd}) (i32.const 0) (i32.const 64))"
            outcome = await run(desk.open(module(number(taking))))
            assert outcome.status == "failed" or outcome.output != "10", told(outcome)
        taking = '(import "wasi_snapshot_preview1" "sock_open" (func $s (param i32 i32) (result i32)))'
        outcome = await run(desk.open(bytes(wat2wasm(f'(module {taking} (func (export "_start")))'))))
        assert outcome.code == "not-run", told(outcome)


NO_COMMANDS: Mapping[str, bytes] = {
    "nothing": b"",
    "text": b'(module (func (export "_start")))',
    "other bytes": os.urandom(4_000),
    "header": b"\0asm\1\0\0\0",
    "broken": ECHO[:-7],
    "component": b"\0asm\x0d\0\1\0",
    "another start": module("", start="main"),
    "start with a result": bytes(wat2wasm('(module (func (export "_start") (result i32) i32.const 1))')),
    "other imports": bytes(wat2wasm('(module (import "env" "exec" (func)) (func (export "_start")))')),
    "threads": bytes(wat2wasm('(module (memory (export "memory") 1 9 shared) (func (export "_start")))')),
    "collected heap": bytes(
        wat2wasm('(module (type $a (array i32)) (func (export "_start") (drop (array.new_default $a (i32.const 9)))))')
    ),
    "two memories": bytes(wat2wasm('(module (memory 1) (memory 1) (func (export "_start")))')),
    "memory for ever": bytes(wat2wasm('(module (memory (export "memory") 65536) (func (export "_start")))')),
}


@pytest.mark.parametrize("content", NO_COMMANDS.values(), ids=NO_COMMANDS)
async def test_what_is_no_command_ends_in_a_clear_failure(desk: Desk, content: bytes) -> None:
    outcome = await run(desk.open(content))
    assert (outcome.status, outcome.code in {"not-run", "tool-failed"}) == ("failed", True), told(outcome)
    assert "module" in told(outcome) or "memory" in told(outcome)


TRAPS: Mapping[str, bytes] = {
    "unreachable": module("unreachable"),
    "stack": module("(call $deep)", more="(func $deep (call $deep))"),
    "outside of its memory": module("(drop (i32.load (i32.const 99999999)))"),
    "division": module("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
    "at its start": module("", more="(func $first unreachable) (start $first)"),
    "list outside of its memory": module(
        "(if (call $poll_oneoff (i32.const -8) (i32.const -8) (i32.const 9) (i32.const -1)) (then unreachable))"
    ),
    "list without an end": module(
        "(if (call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 0)) (then unreachable))"
    ),
}


@pytest.mark.parametrize("content", TRAPS.values(), ids=TRAPS)
async def test_trap_is_a_failure_of_the_tool(desk: Desk, content: bytes) -> None:
    outcome = await run(desk.open(content))
    assert (outcome.status, outcome.code) == ("failed", "tool-failed"), told(outcome)


HOSTILE: Mapping[str, bytes] = {
    "nothing": module(""),
    "no JSON": saying("hello"),
    "two values": saying("1 ", "2"),
    "no number": saying("NaN"),
    "half a pair": saying(r'"\ud800"'),
    "deep": module(f"(loop $again (call $say (i32.const {TEXT_AT}) (i32.const 1000)) (br $again))", "[" * 1000),
    "for ever": module(f"(loop $again (call $say (i32.const {INPUT_AT}) (i32.const 65536)) (br $again))"),
    "lines for ever": module(
        f"(loop $again (call $say (i32.const {TEXT_AT}) (i32.const 1000)) (br $again))", "1\n" * 500
    ),
    "until it is refused": module(
        f"""(loop $again (br_if $again (i32.eqz
        (call $put (i32.const 1) (i32.const {INPUT_AT}) (i32.const 65536)))))"""
    ),
}


@pytest.mark.parametrize("tool", ["work", "flow"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
async def test_answer_that_is_none_ends_in_a_clear_failure(desk: Desk, content: bytes, tool: str) -> None:
    outcome = await run(desk.open(content), tool)
    is_stream = tool == "flow" and content == HOSTILE["nothing"]
    assert outcome.status == ("allowed" if is_stream else "failed"), told(outcome)
    assert outcome.code in {"bad-result", "result-too-large"} or is_stream, outcome.code


async def test_errors_without_an_end_are_read_and_cut(desk: Desk) -> None:
    body = f"""(local $n i32) (loop $again (drop (call $put (i32.const 2) (i32.const {INPUT_AT}) (i32.const 65536)))
        (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $again (i32.lt_u (local.get $n) (i32.const 1000))))
        unreachable"""
    outcome = await run(desk.open(module(body)))
    assert outcome.code == "tool-failed"
    assert len(told(outcome)) < 20_000


async def test_lines_of_a_stream_are_seen_as_they_come_and_bytes_stay_bytes(desk: Desk) -> None:
    pieces: list[str] = []
    outcome = await run(desk.open(saying("1\n", "2\n", '"x"')), "flow", on_piece=pieces.append)
    assert [one.strip() for one in pieces] == ["1", "2", "x"]
    assert json.loads(outcome.output) == [1, 2, "x"]
    body = f"(i32.store (i32.const {INPUT_AT}) (i32.const 0x00fffe80)) (call $say (i32.const {INPUT_AT}) (i32.const 4))"
    outcome = await run(desk.open(module(body)), "raw")
    assert outcome.data == b"\x80\xfe\xff\0"


async def test_fuel_of_the_grant_and_of_the_definition_ends_a_loop(desk: Desk) -> None:
    outcome = await run(desk.open(FOR_EVER, more="capabilities = [{ WasmExec = { fuel = 1000000 } }]\n"))
    assert outcome.code == "tool-failed"
    assert "1,000,000 units of fuel" in told(outcome)
    assert "used up" in told(outcome)
    for own, granted, holds in ((5_000, 7_000, "5,000"), (9_000, 7_000, "7,000")):
        write_manifest(desk.folder, [definition("work", {}, run={"fuel": own})])
        workspace = desk.open(
            FOR_EVER, tools=["work"], more=f"capabilities = [{{ WasmExec = {{ fuel = {granted} }} }}]\n"
        )
        outcome = await run(workspace)
        assert f"used up its {holds} units" in told(outcome)


@pytest.mark.parametrize("wait", [None, 10**9 * 3_600, 2**63], ids=["loops", "waits", "waits for ages"])
async def test_time_ends_what_has_fuel(desk: Desk, wait: int | None) -> None:
    content = FOR_EVER if wait is None else module(WAIT.format(wait=wait))
    outcome = await run(desk.open(content), "short")
    assert outcome.code == "timed-out", told(outcome)
    pause_until(lambda: not working(), "the work to end")
    outcome = await run(desk.open(content), "small")
    assert outcome.code == "tool-failed", told(outcome)
    assert "0.5 s of a processor" in told(outcome)


async def test_wait_that_is_short_ends_by_itself(desk: Desk) -> None:
    outcome = await run(desk.open(module(WAIT.format(wait=20_000_000) + number("(i32.load (i32.const 24))"))))
    assert outcome.output == "11", told(outcome)


async def test_cancelled_call_returns_once_its_module_has_ended_and_the_next_one_runs(desk: Desk) -> None:
    body = f"""(local $n i64) (call $say (i32.const {TEXT_AT}) (i32.const 2)) (loop $again (br $again))"""
    workspace = desk.open(module(body, "1\n"))
    for _ in range(3):
        began = asyncio.Event()

        def see(_: str, began: asyncio.Event = began) -> None:
            began.set()

        call = asyncio.ensure_future(run(workspace, "flow", on_piece=see))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        pause_until(lambda: not working(), "the work to end")


async def test_one_call_that_ends_ends_no_other(desk: Desk) -> None:
    workspace = desk.open(
        module(WAIT.format(wait=1_500_000_000) + f"(call $say (i32.const {TEXT_AT}) (i32.const 4))", "true")
    )
    long = asyncio.ensure_future(run(workspace))
    short = await run(workspace, "short")
    assert short.code == "timed-out"
    assert (await long).output == "true"


@pytest.mark.parametrize("tool", ["work", "small"])
async def test_memory_ends_at_the_bound(desk: Desk, tool: str) -> None:
    body = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))"
    pages = "(i32.div_u (memory.size) (i32.const 100))"
    outcome = await run(desk.open(module(body + number(pages))), tool)
    assert outcome.output == ("50" if tool == "work" else "10"), told(outcome)  # 4,096 and 30 pages
    more = 'capabilities = [{ WasmExec = { memory = "320 KiB" } }]\n'
    outcome = await run(desk.open(module(body + number("(memory.size)")), more=more), tool)
    assert outcome.output == "15", told(outcome)
    assert "327,680 bytes of memory" in told(outcome)


async def test_bound_beyond_all_memory_is_one_that_can_be_held(desk: Desk) -> None:
    write_manifest(desk.folder, [definition("work", {"bounds": {"memory_bytes": 10**30}})])
    outcome = await run(desk.open(saying("true"), tools=["work"]))
    assert outcome.output == "true"
    assert "4,294,967,296 bytes of memory" in told(outcome)


def places(desk: Desk, **uses: str) -> str:
    """The keys of places, made with a file in each."""
    for name in uses:
        (desk.folder / name).mkdir(exist_ok=True)
        (desk.folder / name / "seen.json").write_text('"inside"', "utf-8")
    return "places = {" + ", ".join(f"'./{name}' = '{use}'" for name, use in uses.items()) + "}\n"


def reading(path: str) -> bytes:
    """A module that opens a path in its first folder, and says what stands there, or 10 more than the error."""
    code, text = opening(path)
    return module(
        f"""(local $error i32) (local.set $error {code})
        (if (local.get $error) (then (call $number (local.get $error)))
        (else (call $say (i32.const {INPUT_AT}) (call $hear (i32.load (i32.const 32))))))""",
        text,
    )


async def test_place_is_read_and_what_lies_outside_is_not(desk: Desk, tmp_path: Path) -> None:
    keys = places(desk, data="read")
    (tmp_path / "secret.json").write_text('"outside"', "utf-8")
    (desk.folder / "data" / "link.json").symlink_to(tmp_path / "secret.json")
    (desk.folder / "data" / "up").symlink_to("..")
    outcome = await run(desk.open(reading("seen.json"), keys=keys))
    assert outcome.output == "inside", told(outcome)
    assert f"{desk.folder / 'data'} (read)" in told(outcome)
    outside = str(tmp_path / "secret.json")
    for path in ("../policy.toml", "../data/../../secret.json", outside, "link.json", "up/policy.toml", "/etc/passwd"):
        outcome = await run(desk.open(reading(path), keys=keys))
        assert outcome.status == "allowed", told(outcome)
        assert outcome.output.isdecimal(), path


@pytest.mark.parametrize("use", ["read", "write"])
async def test_place_is_changed_only_where_it_is_given_to_be(desk: Desk, use: str) -> None:
    keys = places(desk, data=use)
    code, text = opening("new.txt", how=1, rights=64)
    outcome = await run(desk.open(module(number(code), text), keys=keys))
    assert ((desk.folder / "data" / "new.txt").exists(), outcome.output == "10") == ((use == "write",) * 2), told(
        outcome
    )
    making = f"(call $path_create_directory (i32.const 3) (i32.const {TEXT_AT}) (i32.const 3))"
    await run(desk.open(module(number(making), "sub"), keys=keys))
    assert (desk.folder / "data" / "sub").exists() == (use == "write")
    code, text = opening("seen.json", how=8, rights=64)  # from its beginning
    await run(desk.open(module(number(code), text), keys=keys))
    assert (desk.folder / "data" / "seen.json").read_text("utf-8") == ("" if use == "write" else '"inside"')


def writing(body: str) -> bytes:
    """A module that makes a file, writes to it as some code says, and says the error that this came to."""
    code, text = opening("new.txt", how=1, rights=64 + 2**22)
    return module(f"(local $error i32) (drop {code}) {body} (call $number (local.get $error))", text)


PUT = f"(call $put (i32.load (i32.const 32)) (i32.const {INPUT_AT}) (i32.const 65536))"
AT_ONCE = f"""(local $n i32) (loop $next
    (i32.store (i32.add (i32.const {INPUT_AT}) (i32.mul (local.get $n) (i32.const 8))) (i32.const {INPUT_AT}))
    (i32.store (i32.add (i32.const {INPUT_AT + 4}) (i32.mul (local.get $n) (i32.const 8))) (i32.const 65536))
    (local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $next (i32.lt_u (local.get $n) (i32.const 4097))))"""
"""A list of 4,097 times 64 KiB, which is more than may be written."""
NO_SPACE, LARGE, NO_SUPPORT = "61", "32", "68"
GROWS: Mapping[str, tuple[str, str]] = {
    "by writing": (f"(loop $again (local.set $error {PUT}) (br_if $again (i32.eqz (local.get $error))))", NO_SPACE),
    "at a place": (
        f"""(loop $again (i32.store (i32.const 0) (i32.const {INPUT_AT})) (i32.store (i32.const 4) (i32.const 65536))
        (local.set $error (call $fd_pwrite
            (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i64.const 0) (i32.const 8)))
        (br_if $again (i32.eqz (local.get $error))))""",
        NO_SPACE,
    ),
    "by a size": (
        f"(local.set $error (call $fd_filestat_set_size (i32.load (i32.const 32)) (i64.const {MOST_WRITTEN + 1})))",
        LARGE,
    ),
    "by room for later": (
        "(local.set $error (call $fd_allocate (i32.load (i32.const 32)) (i64.const 0) (i64.const 4096)))",
        NO_SUPPORT,
    ),
}


@pytest.mark.parametrize(("body", "wanted"), GROWS.values(), ids=GROWS)
async def test_what_a_module_writes_ends_at_its_bound(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, body: str, wanted: str
) -> None:
    less = 1_000_000 if "again" in body else MOST_WRITTEN
    monkeypatch.setattr("gatewright.adapters.wasm_module.COUNT", COUNT.replace(str(MOST_WRITTEN), str(less)))
    outcome = await run(desk.open(writing(body), keys=places(desk, data="write")))
    assert outcome.output == wanted, told(outcome)
    assert f"{MOST_WRITTEN:,} bytes to be written" in told(outcome)
    assert (desk.folder / "data/new.txt").stat().st_size <= less


async def test_more_than_may_be_written_is_written_in_no_part(desk: Desk) -> None:
    code, text = opening("new.txt", how=1, rights=64)
    body = f"""{AT_ONCE} (drop {code}) (call $number (call $fd_write
        (i32.load (i32.const 32)) (i32.const {INPUT_AT}) (i32.const 4097) (i32.const 8)))"""
    outcome = await run(desk.open(module(body, text), keys=places(desk, data="write")))
    assert outcome.output == NO_SPACE, told(outcome)
    assert (desk.folder / "data/new.txt").stat().st_size == 0


MAKES: Mapping[str, str] = {
    "folders": "(call $path_create_directory (i32.const 3) (i32.const {at}) (i32.const 5))",
    "links": "(call $path_link (i32.const 3) (i32.const 0) (i32.const {old}) (i32.const 9)"
    " (i32.const 3) (i32.const {at}) (i32.const 5))",
    "files": "(call $open (i32.const 3) (i32.const {at}) (i32.const 5) (i32.const 1) (i64.const 64))",
}


@pytest.mark.parametrize("making", MAKES.values(), ids=MAKES)
async def test_what_a_module_makes_ends_at_its_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch, making: str) -> None:
    monkeypatch.setattr("gatewright.adapters.wasm_module.COUNT", COUNT.replace(f" {MOST_MADE})", " 20)"))
    step = making.format(at=TEXT_AT, old=TEXT_AT + 1024)
    body = f"""(local $n i32) (local $error i32) (loop $again
        (i32.store8 (i32.const {TEXT_AT + 4}) (i32.add (i32.const 65) (local.get $n)))
        (local.set $error {step}) (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.eqz (local.get $error)))) (call $number (local.get $error))"""
    outcome = await run(desk.open(module(body, "made_", "seen.json"), keys=places(desk, data="write")))
    assert outcome.output == NO_SPACE, told(outcome)
    assert len([*(desk.folder / "data").iterdir()]) == 21


async def test_files_that_are_open_end_at_their_bound(desk: Desk) -> None:
    code, text = opening("seen.json")
    first = f"(local.set $n (i32.add (local.get $n) (i32.const 1))) (br_if $again (i32.eqz {code}))"
    body = f"(local $n i32) (loop $again {first}) " + number("(i32.div_u (local.get $n) (i32.const 10))")
    outcome = await run(desk.open(module(body, text), keys=places(desk, data="read")))
    assert outcome.output == "35", told(outcome)  # 257 and ten tens more
    closing = f"(drop {code}) (drop (call $fd_close (i32.load (i32.const 32))))"
    body = f"""(local $n i32) (loop $again {closing} (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 1000)))) {number(code)}"""
    outcome = await run(desk.open(module(body, text), keys=places(desk, data="read")))
    assert outcome.output == "10", told(outcome)


async def test_pipe_in_a_place_is_not_waited_for(desk: Desk) -> None:
    keys = places(desk, data="read")
    os.mkfifo(desk.folder / "data" / "pipe")
    (desk.folder / "data" / "link").symlink_to("pipe")
    for path in ("pipe", "link", "./pipe"):
        outcome = await run(desk.open(reading(path), keys=keys), "short")
        assert outcome.output == "12", told(outcome)  # acces


async def test_memory_is_as_it_was_after_a_file_was_opened(desk: Desk) -> None:
    keys = places(desk, data="read")
    code, text = opening("seen.json")
    filled = "".join(f"(i32.store8 (i32.const {at}) (i32.const {48 + at % 10}))" for at in range(64))
    body = f"{filled} (drop {code}) (call $fd_write_of_beginning)"
    saying_it = """(func $fd_write_of_beginning
        (i32.store (i32.const 1000) (i32.const 0)) (i32.store (i32.const 1004) (i32.const 64))
        (drop (call $fd_write (i32.const 1) (i32.const 1000) (i32.const 1) (i32.const 1008))))"""
    outcome = await run(desk.open(module(body, text, more=saying_it), keys=keys), "raw")
    expected = bytes(48 + at % 10 for at in range(64))
    assert outcome.data is not None
    assert outcome.data[:32] + outcome.data[36:] == expected[:32] + expected[36:]  # the number of the file lies there


async def test_module_with_places_but_without_a_memory_runs(desk: Desk) -> None:
    content = bytes(wat2wasm('(module (func (export "_start") unreachable))'))
    outcome = await run(desk.open(content, keys=places(desk, data="read")))
    assert outcome.code == "tool-failed", told(outcome)


CLOSED = {
    "closed pattern": ('permission_rules = [{ pattern = "*.key", permission = "none" }]', "read"),
    "closed file": ('permission_rules = [{ pattern = "a.key", permission = "none" }]', "read"),
    "closed once it is there": ('permission_rules = [{ pattern = "**/new-*", permission = "none" }]', "read"),
    "closed": ('default_permission = "none"', "read"),
    "asks": ('default_permission = "human"', "write"),
    "asks for some": ('permission_rules = [{ pattern = "a/**", permission = "human" }]', "write"),
}


@pytest.mark.parametrize(("levels", "use"), CLOSED.values(), ids=CLOSED)
async def test_place_with_levels_that_cannot_be_held_is_not_given(desk: Desk, levels: str, use: str) -> None:
    keys = places(desk, data=use)
    (desk.folder / "data" / "a.key").write_text('"hidden"', "utf-8")
    if "default" not in levels:
        levels = f'default_permission = "read_write"\n{levels}'
    source = f"\n[[sources]]\nid = 's'\ntype = 'file'\nbase_path = 'data'\n{levels}\n"
    outcome = await run(desk.open(reading("a.key"), keys=keys + source))
    if levels == CLOSED["asks"][0]:
        code, text = opening("new.txt", how=1, rights=64)
        outcome = await run(desk.open(module(number(code), text), keys=keys + source))
        assert not (desk.folder / "data" / "new.txt").exists()
        return
    assert outcome.code == "not-run", told(outcome)
    assert "cannot be given" in told(outcome)
    assert "data" not in outcome.output


@pytest.mark.parametrize("use", ["read", "write", "snapshot"])
async def test_place_that_is_no_plain_folder_is_not_given(desk: Desk, use: str) -> None:
    keys = places(desk, data=use)
    if use == "snapshot":
        outcome = await run(desk.open(reading("seen.json"), keys=keys))
        assert outcome.code == "not-run"
        assert "private copy" in told(outcome)
        return
    for place in ("./data/seen.json", ".", "./missing"):
        outcome = await run(desk.open(reading("seen.json"), keys=f"places = {{ '{place}' = '{use}' }}\n"))
        assert outcome.code == "not-run" or outcome.output.isdecimal(), (place, told(outcome))


@pytest.mark.parametrize("use", ["read", "write"])
async def test_place_in_a_place_is_not_given(desk: Desk, use: str) -> None:
    keys = places(desk, data=use)
    (desk.folder / "data" / "inner").mkdir()
    inner = keys.replace("}", ", './data/inner' = 'read' }")
    outcome = await run(desk.open(reading("seen.json"), keys=inner))
    assert outcome.code == "not-run", told(outcome)


async def test_module_that_changes_after_it_was_trusted_does_not_run(desk: Desk) -> None:
    workspace = desk.open(ECHO)
    assert (await run(workspace)).status == "allowed"
    (desk.folder / "tool.wasm").write_bytes(saying("true"))
    outcome = await run(workspace)
    assert (outcome.status, outcome.code) == ("failed", "not-run"), told(outcome)
    assert "trusted" in told(outcome)
    (desk.folder / "tool.wasm").write_bytes(ECHO)
    assert (await run(workspace)).status == "allowed"


async def test_module_that_is_swapped_while_calls_run_never_runs(desk: Desk) -> None:
    workspace, done = desk.open(saying("1")), threading.Event()
    first, other, path = saying("1"), saying("2"), desk.folder / "tool.wasm"

    def swap() -> None:
        while not done.is_set():
            for content in (other, first):
                (desk.folder / "next.wasm").write_bytes(content)
                (desk.folder / "next.wasm").replace(path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = [await run(workspace) for _ in range(40)]
    finally:
        done.set()
        thread.join()
    assert {one.output for one in found if one.status == "allowed"} <= {"1"}
    assert {one.code for one in found if one.status != "allowed"} <= {"not-run"}


async def test_module_that_is_no_file_is_not_waited_for(desk: Desk) -> None:
    workspace = desk.open(ECHO)
    (desk.folder / "tool.wasm").unlink()
    assert (await run(workspace)).code == "not-run"
    os.mkfifo(desk.folder / "tool.wasm")
    assert (await run(workspace)).code == "not-run"


@pytest.mark.parametrize(
    "own",
    [{"fuel": 0}, {"fuel": True}, {"fuel": "1"}, {"fuel": 1.5}, {"fuel": 2**64}, {"memory": 1}, {"args": [1]}],
    ids=str,
)
def test_definition_that_nobody_could_execute_is_set_aside(desk: Desk, own: dict[str, Any]) -> None:
    write_manifest(desk.folder, [definition("odd", {}, run=own), definition("work", {})])
    workspace = desk.open(ECHO, tools=["work"])
    assert [tool["name"] for tool in workspace.view("a").tools("mcp")] == ["work"]


def test_interpreter_that_ends_while_a_module_runs_ends_at_once(desk: Desk) -> None:
    desk.open(module(WAIT.format(wait=10**12))).close()
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom gatewright.workspace import Workspace\n"
        "async def main():\n"
        f"    workspace = Workspace.open(Path({str(desk.folder)!r}), keys=Path({str(desk.folder.parent / 'keys')!r}))\n"
        "    call = asyncio.ensure_future(workspace.call('a', 'work', {}))\n"
        "    await asyncio.sleep(1)\n    print(call.done())\n    sys.stdout.flush()\n"
        "    import threading\n    threading.main_thread()\n    raise SystemExit(7)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "False\n"), done.stderr
    assert "panicked" not in done.stderr
