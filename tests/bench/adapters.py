"""Row "adapters": calls of HTTP, subprocess and WASM tools beside what runs them, asked without a gate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import httpx
from wasmtime import Engine, Func, Linker, Module, Store, WasiConfig, wat2wasm

from gatewright.adapters.confine import Confiner
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Outcome
from gatewright.tools import tool
from gatewright.workspace import Workspace
from tests.bench.measure import Effort, quiet, run
from tests.bench.row import Figure, Measured, Missing, Row, at_most, times_at_most

GATE = "a function, through the gate"
BARE = {"http": "httpx.post", "subprocess": "subprocess.run", "work": "wasmtime, some work"}
OURS = {"http": "HTTP tool", "subprocess": "subprocess tool, not confined", "work": "WASM tool, some work"}
EMPTY_BARE, EMPTY = "wasmtime, no work", "WASM tool, no work"
CONFINED, MORE = "subprocess tool, confined", "confined, more at the most"
FIRST_BARE, FIRST = "wasmtime compiles and calls", "WASM tool, first call of a process"
ARGUMENTS: Mapping[str, JsonValue] = {"text": "hello"}
_TOOL = {
    "name": "echo",
    "description": "Gives back what it gets.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": False, "destructiveHint": False},
}
_RUNS: Mapping[str, object] = {
    "http": {"method": "POST", "path": "/echo", "body": {"json": ["text"]}},
    "subprocess": {},
    "wasm": {},
    "work": {},
}
_POLICY = """gatewright = 1

[agents.a]
tools = ["http.echo", "free.echo", "confined.echo", "wasm.echo", "work.echo", "echo"]
approvals = {{ privileged = "allow", side_effecting = "allow" }}
capabilities = [{{ NetWrite = {{ allowlist = ["127.0.0.1"] }} }}, {{ WasmExec = {{}} }}, {{ Exec = {{}} }}]

[workspace]
web = {{ allow_private = true }}

[[catalogs]]
id = "http"
type = "http"
url = "{url}"
manifest = "http.json"
prefix = "http"

[[catalogs]]
id = "free"
type = "subprocess"
command = {program}
args = ["tool.py"]
manifest = "subprocess.json"
prefix = "free"
confine = "none"

[[catalogs]]
id = "confined"
type = "subprocess"
command = {program}
args = ["tool.py"]
manifest = "subprocess.json"
prefix = "confined"
places = {{ "./tool.py" = "read" }}

[[catalogs]]
id = "wasm"
type = "wasm"
module = "wasm.wasm"
manifest = "wasm.json"
prefix = "wasm"

[[catalogs]]
id = "work"
type = "wasm"
module = "work.wasm"
manifest = "work.json"
prefix = "work"
"""
_PROGRAM = "import json, sys\nprint(json.dumps(json.load(sys.stdin)['arguments']))\n"
_SERVER = """
import http.server, json
class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        said = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
print(server.server_port, flush=True)
server.serve_forever()
"""
_ECHO = """(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 3)
    (func (export "_start") (local $n i32)
        (loop $work
            (i32.store (i32.const 16) (i32.mul (i32.load (i32.const 16)) (local.get $n)))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $work (i32.lt_u (local.get $n) (i32.const TURNS))))
        (i32.store (i32.const 0) (i32.const 65536)) (i32.store (i32.const 4) (i32.const 65536))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""

_TURNS = {"wasm": 1, "work": 20_000_000}
"""How often the loop of each module turns."""

Call = Callable[[], Awaitable[object]]


def adapters(effort: Effort) -> Row:
    """One call at a time by the clock, in turns, the best of many; those of tools are checked, recorded, counted."""
    share = effort.scaled(0.005)
    figures = run(lambda: _measured(3 if effort.quick else share.calls))
    gate = figures[GATE]
    bars = [
        times_at_most(f"{OURS[kind]}, less the gate", _less(figures[OURS[kind]], gate), figures[BARE[kind]], 1.5)
        for kind in BARE
    ]
    bars.append(times_at_most(f"{FIRST}, less the gate", _less(figures[FIRST], gate), figures[FIRST_BARE], 1.5))
    bars.append(at_most(MORE, figures[MORE], 30, "ms"))
    return Row(
        "adapters",
        "a text is given back: by a server on loopback, a Python program, a module",
        (GATE, *OURS.values(), CONFINED, EMPTY, FIRST),
        figures,
        tuple(bars),
        None,
        ("by the clock: what else runs counts against it",),
    )


def _less(found: Measured, gate: Measured) -> Measured:
    if isinstance(found, Missing) or isinstance(gate, Missing):
        return found
    return replace(found, median=max(found.median - gate.median, 1e-9), p99=None)


async def _measured(rounds: int) -> Mapping[str, Measured]:
    with ExitStack() as held:
        folder = Path(held.enter_context(TemporaryDirectory())).resolve()
        url = f"http://127.0.0.1:{held.enter_context(_server())}"
        workspace = held.enter_context(_workspace(folder / "policy", url))
        modules = {kind: (folder / "policy" / f"{kind}.wasm").read_bytes() for kind in _TURNS}
        calls = {**_bare(folder / "policy", url, modules), **_ours(workspace)}
        first = await _first_calls(workspace, modules["wasm"])
        for call in calls.values():
            await call()  # what a first call makes stays
        took: dict[str, list[int]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                took[name].append(await _once(call))
        figures: dict[str, Measured] = {name: Figure(min(found) / 1e3) for name, found in took.items()}
        if Confiner.why_not():
            figures |= dict.fromkeys((CONFINED, MORE), Missing(Confiner.why_not()))
        else:
            more = min(took[CONFINED]) - min(took[OURS["subprocess"]])
            figures[MORE] = Figure(more / 1e6, None, "ms")
        return {**figures, **first}


async def _first_calls(workspace: Workspace, module: bytes) -> Mapping[str, Measured]:
    ours = _ours(workspace)
    await ours[GATE]()
    given = json.dumps({"tool": "echo", "arguments": ARGUMENTS}).encode()

    async def bare() -> object:
        engine = Engine()
        return _wasm_call(engine, _linker(engine), Module(engine, module), given)

    return {FIRST_BARE: Figure(await _once(bare) / 1e3), FIRST: Figure(await _once(ours[EMPTY]) / 1e3)}


async def _once(call: Call) -> int:
    with quiet():
        began = time.perf_counter_ns()
        await call()
        return time.perf_counter_ns() - began


def _ours(workspace: Workspace) -> Mapping[str, Call]:
    def call(name: str) -> Call:
        async def made() -> object:
            return _checked(await workspace.call("a", name, ARGUMENTS))

        return made

    named = {GATE: "echo", OURS["http"]: "http.echo", OURS["subprocess"]: "free.echo"}
    named |= {OURS["work"]: "work.echo", EMPTY: "wasm.echo"}
    if not Confiner.why_not():
        named[CONFINED] = "confined.echo"
    return {what: call(name) for what, name in named.items()}


def _checked(outcome: Outcome) -> object:
    assert "hello" in outcome.output, (outcome.output, outcome.detail)
    return outcome


def _bare(folder: Path, url: str, modules: Mapping[str, bytes]) -> Mapping[str, Call]:
    given = json.dumps({"tool": "echo", "arguments": ARGUMENTS}).encode()
    engine = Engine()
    compiled, linker = {kind: Module(engine, module) for kind, module in modules.items()}, _linker(engine)

    async def http() -> object:
        return httpx.post(f"{url}/echo", json=ARGUMENTS).raise_for_status().json()

    async def process() -> object:
        command = [os.path.realpath(sys.executable), str(folder / "tool.py")]
        return json.loads(subprocess.run(command, input=given, capture_output=True, check=True).stdout)

    async def empty() -> object:
        return _wasm_call(engine, linker, compiled["wasm"], given)

    async def work() -> object:
        return _wasm_call(engine, linker, compiled["work"], given)

    return {BARE["http"]: http, BARE["subprocess"]: process, BARE["work"]: work, EMPTY_BARE: empty}


def _linker(engine: Engine) -> Linker:
    linker = Linker(engine)
    linker.define_wasi()
    return linker


def _wasm_call(engine: Engine, linker: Linker, module: Module, given: bytes) -> object:
    with TemporaryFile() as stdin, TemporaryFile() as stdout:
        stdin.write(given)
        stdin.seek(0)
        store, wasi = Store(engine), WasiConfig()
        wasi.stdin_file, wasi.stdout_file = f"/dev/fd/{stdin.fileno()}", f"/dev/fd/{stdout.fileno()}"
        store.set_wasi(wasi)
        start = linker.instantiate(store, module).exports(store)["_start"]
        assert isinstance(start, Func)
        start(store)
        store.close()
        stdout.seek(0)
        return json.loads(stdout.read())


@contextmanager
def _server() -> Generator[int]:
    """The port of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _workspace(folder: Path, url: str) -> Workspace:
    folder.mkdir()
    program = os.path.realpath(sys.executable)
    (folder / "policy.toml").write_text(_POLICY.format(url=url, program=json.dumps(program)), "utf-8")
    (folder / "tool.py").write_text(_PROGRAM, "utf-8")
    for kind, turns in _TURNS.items():
        (folder / f"{kind}.wasm").write_bytes(wat2wasm(_ECHO.replace("TURNS", str(turns))))
    for kind, how in _RUNS.items():
        listing = {"name": kind, "version": "1", "tools": [{**_TOOL, "run": how}]}
        (folder / f"{kind}.json").write_text(json.dumps(listing), "utf-8")

    @tool
    async def echo(text: str) -> dict[str, str]:
        """Give back what it gets."""
        return {"text": text}

    workspace = Workspace.open(folder, tools=[echo], keys=folder.parent / "keys", trust=True)
    for catalog in ("http", "free", "confined", *_TURNS):
        workspace.accept_tools(catalog, None, needs_capabilities=False)
    return workspace
