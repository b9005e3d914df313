"""WASM modules that are WASI commands: compiled, and run within limits in the caller's thread.

A run reads its standard input, hands its output to us, and reaches its given folders only: no network, no variables, no
descriptor of ours. Its store bounds fuel and memory, `WasmRun.stop` its time. Modules of our own in front of WASI count
open files and written bytes: a module with places gets `FRONT` in place of the functions that use them. `FRONT` calls
those that `COUNT` put into its table; `COUNT` looks at the memory of the module, so it can only come later.
"""

from __future__ import annotations

import errno
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from wasmtime import (
    Caller,
    Config,
    Engine,
    ExitTrap,
    Func,
    FuncType,
    Instance,
    Linker,
    Memory,
    Module,
    Store,
    Trap,
    TrapCode,
    ValType,
    WasiConfig,
    WasmtimeError,
    wat2wasm,
)

from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.policy.document import PlaceUse
from gatewright.record.process import fork_safe_lock

WASI = "wasi_snapshot_preview1"
MOST_FILES = 256
"""The most files and folders that a run may have open."""
MOST_WRITTEN = 256 * 1024 * 1024
"""The most bytes that a run may write, and the largest size of a file."""
MOST_MADE = 10_000
"""The most files, folders and links that a run may make."""
COUNTED: Mapping[str, str] = {
    "path_open": "i32 i32 i32 i32 i32 i64 i64 i32 i32",
    "fd_close": "i32",
    "fd_write": "i32 i32 i32 i32",
    "fd_pwrite": "i32 i32 i32 i64 i32",
    "fd_filestat_set_size": "i32 i64",
    "fd_allocate": "i32 i64 i64",
    "path_create_directory": "i32 i32 i32",
    "path_symlink": "i32 i32 i32 i32 i32",
    "path_link": "i32 i32 i32 i32 i32 i32 i32",
}
"""The functions of WASI that use resources, with their parameters."""
_ACCESS, _LARGE, _TOO_MANY, _NO_SPACE, _NO_SUPPORT = 2, 22, 33, 51, 58
"""The errors of WASI: `acces`, `fbig`, `mfile`, `nospc`, `notsup`."""
_FOLDER, _FILE, _LINK = 3, 4, 7
_LOOK = "path_filestat_get"


def _types(parameters: str) -> str:
    return f"(param {parameters}) (result i32)"


def _same(parameters: str) -> str:
    """Pass on every parameter."""
    return " ".join(f"(local.get {number})" for number in range(len(parameters.split())))


def _call_wasi(name: str) -> str:
    """Call WASI's own function with the same parameters."""
    return f"(call ${name} {_same(COUNTED[name])})"


def _make(name: str) -> str:
    """Return the function that makes a folder or link, up to the limit."""
    return f"""(func $own_{name} {_types(COUNTED[name])} (local $error i32)
    (if (i32.ge_u (global.get $made) (i32.const {MOST_MADE})) (then (return (i32.const {_NO_SPACE}))))
    (local.set $error {_call_wasi(name)})
    (if (i32.eqz (local.get $error)) (then (global.set $made (i32.add (global.get $made) (i32.const 1)))))
    (local.get $error))"""


def _write(name: str, stored_at: int) -> str:
    """Return a function that writes a list of texts, up to the limit; ``stored_at``: the parameter with the address for
    the number of written bytes.
    """
    return f"""(func $own_{name} {_types(COUNTED[name])} (local $error i32)
    (if (i64.gt_u (i64.add (global.get $written) (call $size (local.get 1) (local.get 2))) (i64.const {MOST_WRITTEN}))
      (then (return (i32.const {_NO_SPACE}))))
    (local.set $error {_call_wasi(name)})
    (if (i32.eqz (local.get $error)) (then (global.set $written
      (i64.add (global.get $written) (i64.load32_u (local.get {stored_at}))))))
    (local.get $error))"""


FRONT = f"""(module (table (export "functions") {len(COUNTED)} {len(COUNTED)} funcref)
  {
    " ".join(
        f'(func (export "{name}") {_types(given)} {_same(given)} (call_indirect {_types(given)} (i32.const {at})))'
        for at, (name, given) in enumerate(COUNTED.items())
    )
})"""
"""Imports of a module in place of functions of WASI, which exist before the module has its memory."""
_WORDS = range(0, 64, 8)
_KEPT_LOCALS = " ".join(f"(local $at{at} i64)" for at in _WORDS)
_KEEP = " ".join(f"(local.set $at{at} (i64.load (i32.const {at})))" for at in _WORDS)
_RESTORE = " ".join(f"(i64.store (i32.const {at}) (local.get $at{at}))" for at in _WORDS)
COUNT = f"""(module
  {" ".join(f'(import "{WASI}" "{name}" (func ${name} {_types(given)}))' for name, given in COUNTED.items())}
  (import "{WASI}" "{_LOOK}" (func $look {_types("i32 i32 i32 i32 i32")}))
  (import "run" "functions" (table {len(COUNTED)} {len(COUNTED)} funcref))
  (import "run" "memory" (memory 0))
  (export "memory" (memory 0))
  (global $held (mut i32) (i32.const 0))
  (global $made (mut i32) (i32.const 0))
  (global $written (mut i64) (i64.const 0))
  (func $own_path_open {_types(COUNTED["path_open"])} (local $error i32) (local $missing i32) (local $kind i32)
    {_KEPT_LOCALS}
    (if (i32.ge_u (global.get $held) (i32.const {MOST_FILES})) (then (return (i32.const {_TOO_MANY}))))
    {_KEEP}
    (local.set $missing
      (call $look (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 0)))
    (local.set $kind (i32.load8_u (i32.const 16)))
    {_RESTORE}
    (if (local.get $missing)
      (then (if (i32.ge_u (global.get $made) (i32.const {MOST_MADE})) (then (return (i32.const {_NO_SPACE})))))
      (else (if (i32.eqz (i32.or (i32.or (i32.eq (local.get $kind) (i32.const {_FOLDER}))
          (i32.eq (local.get $kind) (i32.const {_FILE}))) (i32.eq (local.get $kind) (i32.const {_LINK}))))
        (then (return (i32.const {_ACCESS}))))))
    (local.set $error {_call_wasi("path_open")})
    (if (i32.eqz (local.get $error)) (then
      (global.set $held (i32.add (global.get $held) (i32.const 1)))
      (global.set $made (i32.add (global.get $made) (i32.ne (local.get $missing) (i32.const 0))))))
    (local.get $error))
  (func $own_fd_close {_types(COUNTED["fd_close"])} (local $error i32)
    (local.set $error {_call_wasi("fd_close")})
    (if (i32.and (i32.eqz (local.get $error)) (i32.ne (global.get $held) (i32.const 0)))
      (then (global.set $held (i32.sub (global.get $held) (i32.const 1)))))
    (local.get $error))
  (func $size (param $list i32) (param $count i32) (result i64) (local $sum i64)
    (block $all (loop $next
      (br_if $all (i32.eqz (local.get $count)))
      (local.set $sum (i64.add (local.get $sum) (i64.load32_u offset=4 (local.get $list))))
      (local.set $list (i32.add (local.get $list) (i32.const 8)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next)))
    (local.get $sum))
  {_write("fd_write", 3)}
  {_write("fd_pwrite", 4)}
  (func $own_fd_filestat_set_size {_types(COUNTED["fd_filestat_set_size"])}
    (if (result i32) (i64.gt_u (local.get 1) (i64.const {MOST_WRITTEN}))
      (then (i32.const {_LARGE})) (else {_call_wasi("fd_filestat_set_size")})))
  (func $own_fd_allocate {_types(COUNTED["fd_allocate"])} (i32.const {_NO_SUPPORT}))
  {" ".join(map(_make, ("path_create_directory", "path_symlink", "path_link")))}
  (elem (i32.const 0) func {" ".join(f"$own_{name}" for name in COUNTED)}))"""
"""The functions behind `FRONT`: they call WASI in the name of the run, and count open files, made files and written
bytes. They open only files, folders and links, since opening a pipe would wait for ever. They write the kind of a file
to the beginning of the memory, and restore that afterwards.
"""


_MAGIC, _COMPONENT = b"\0asm\1\0\0\0", b"\0asm\x0d\0\1\0"
_MOST_TABLE = 1_000_000
_MOST_WORDS = 300
_SUBSCRIPTION, _EVENT = 48, struct.Struct("<QHB5xQH6x")
_MOST_SUBSCRIPTIONS = 1_024
_LONGEST_S = 1e6
_INVALID, _FAULT, _INTERRUPTED = 28, 21, 27
"""The errors of WASI: `inval`, `fault`, `intr`."""


@frozen
class Folder:
    """A folder for a run to read or write, under ``name``."""

    path: str
    name: str
    use: PlaceUse


class CompiledModule:
    """One module, with an engine for each simultaneous run, since ending a run ends everything in its engine."""

    def __init__(self, content: bytes, *, fuel: bool) -> None:
        self._counts_fuel = fuel
        if not content.startswith(_MAGIC):
            is_component = content.startswith(_COMPONENT)
            raise WorkspaceError("it is a component, not a WASI command" if is_component else "it is not a WASM module")
        try:
            engine = _new_engine(fuel=fuel)
            module = Module(engine, content)
            self._code = bytes(module.serialize())
            _require_command(module)
            self._idle = [_Ready(engine, module)]
        except WasmtimeError as error:
            raise WorkspaceError(f"this WASM module cannot run: {_short(str(error))}") from None
        self._lock = fork_safe_lock()
        self._is_over = False

    def take(self) -> _Ready:
        """Take an engine with the module, for one run."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        engine = _new_engine(fuel=self._counts_fuel)
        return _Ready(engine, Module.deserialize(engine, self._code))

    def give(self, ready: _Ready) -> None:
        """Return an engine for the next run."""
        with self._lock:
            if not self._is_over:
                self._idle.append(ready)
                return
        ready.close()

    def retire(self) -> None:
        """Close the idle engines now, and every other one when it is returned."""
        with self._lock:
            idle, self._idle, self._is_over = self._idle, [], True
        for ready in idle:
            ready.close()


class WasmRun:
    """One run of a module: `run` executes it in a thread that may wait, and `stop` ends it from any other.

    ``words``: its name and arguments. ``given``: its standard input. ``output`` and ``errors`` take its output in the
    run's thread, and may raise to refuse it. ``fuel``: the most units that it may use, or None.
    """

    def __init__(
        self,
        words: Sequence[str],
        given: bytes,
        output: Callable[[bytes], None],
        errors: Callable[[bytes], None],
        *,
        fuel: int | None,
        memory: int,
    ) -> None:
        self._words, self._given, self._output, self._errors = list(words), given, output, errors
        self._fuel, self._memory = fuel, memory
        self._lock = fork_safe_lock()
        self._ready: _Ready | None = None
        self._stopped = threading.Event()
        self._why = ""

    def stop(self, why: str = "it was ended") -> None:
        """End the run at once, at any point; nothing happens if it has ended."""
        with self._lock:
            self._why = self._why or why
            self._stopped.set()
            if self._ready is not None:
                self._ready.engine.increment_epoch()

    def run(self, module: CompiledModule, folders: Sequence[Folder]) -> str:
        """Run a module to its end; return why it failed, or "". Raises OSError if its input or folders do not open."""
        ready = module.take()
        try:
            return self._outcome(ready, folders)
        finally:
            with self._lock:  # a late stop must not end the next run
                self._ready = None
            module.give(ready)

    def _outcome(self, ready: _Ready, folders: Sequence[Folder]) -> str:
        with tempfile.TemporaryFile(buffering=0) as given:
            given.write(self._given)
            given.seek(0)
            store = Store(ready.engine)
            try:
                if self._fuel is not None:
                    store.set_fuel(self._fuel)
                store.set_limits(self._memory, _MOST_TABLE, instances=3, tables=16, memories=1)
                ready.begin(self._stopped)
                store.set_wasi(self._wasi(given.fileno(), folders))
                with self._lock:
                    store.set_epoch_deadline(1)
                    if self._stopped.is_set():
                        return self._why
                    self._ready = ready
                instance = ready.instance(store, counts=bool(folders))
                start = instance.exports(store)["_start"]
                if isinstance(start, Func):
                    start(store)
                return self._why if self._stopped.is_set() else ""  # the stop may have ended a wait
            except ExitTrap as error:
                return f"exit code {error.code}" if error.code else ""
            except (Trap, WasmtimeError) as error:
                return self._failure_of(error)
            finally:
                store.close()

    def _wasi(self, given: int, folders: Sequence[Folder]) -> WasiConfig:
        config = WasiConfig()
        try:
            config.argv = self._words
            config.stdin_file = f"/dev/fd/{given}"
            config.stdout_custom, config.stderr_custom = self._taking(self._output), self._taking(self._errors)
            for folder in folders:
                config.preopen_dir(folder.path, folder.name, folder.use is PlaceUse.WRITE)
        except WasmtimeError as error:
            raise OSError(f"its input or places cannot be opened: {_short(str(error))}") from None
        return config

    def _taking(self, take: Callable[[bytes], None]) -> Callable[[bytes], int]:
        """Give output to ``take``; if that raises, refuse the output and end the run."""

        def write(data: bytes) -> int:
            try:
                take(data)
            except BaseException:  # noqa: BLE001 the runtime would print it; the taker knows its own error
                self.stop("nobody takes its output")
                return -errno.EPIPE
            return len(data)

        return write

    def _failure_of(self, error: Trap | WasmtimeError) -> str:
        code = error.trap_code if isinstance(error, Trap) else None
        if code is TrapCode.OUT_OF_FUEL:
            return f"it used up its {self._fuel:,} units of fuel"
        if code is TrapCode.INTERRUPT:
            return self._why
        return _short(str(error))


class _Ready:
    """An engine with the compiled module and all its imports."""

    def __init__(self, engine: Engine, module: Module) -> None:
        self.engine, self.module = engine, module
        self._stopped, self._began_ns = threading.Event(), 0
        self._linker = self._new_linker()
        self._linker.instantiate_pre(module)  # raises for a missing import
        self._counting: tuple[Linker, Module, Linker, Module] | None = None

    def instance(self, store: Store, *, counts: bool) -> Instance:
        """Make the module for a run; ``counts``: count what it opens, makes and writes, if it can."""
        if not counts:
            return self._linker.instantiate(store, self.module)
        if self._counting is None:
            parts = (Module(self.engine, bytes(wat2wasm(text))) for text in (FRONT, COUNT))
            self._counting = self._new_linker(), next(parts), self._new_linker(), next(parts)
        linker, front, inner, count = self._counting
        own = linker.instantiate(store, front).exports(store)
        for name in COUNTED:
            linker.define(store, WASI, name, own[name])
        instance = linker.instantiate(store, self.module)
        memory = instance.exports(store).get("memory")
        if isinstance(memory, Memory):  # without a memory it opens nothing
            inner.define(store, "run", "functions", own["functions"])
            inner.define(store, "run", "memory", memory)
            inner.instantiate(store, count)
        return instance

    def _new_linker(self) -> Linker:
        i32 = ValType.i32()
        waits = FuncType([i32, i32, i32, i32], [i32])  # the library's own function cannot be interrupted
        linker = Linker(self.engine)
        linker.allow_shadowing = True
        linker.define_wasi()
        linker.define_func(WASI, "poll_oneoff", waits, self._poll, access_caller=True)
        return linker

    def begin(self, stopped: threading.Event) -> None:
        """Serve a run that ``stopped`` ends; its monotonic clock begins now."""
        self._stopped, self._began_ns = stopped, time.monotonic_ns()

    def close(self) -> None:
        """Release the module and its imports."""
        linker, front, inner, count = self._counting or (None, None, None, None)
        for one in (self._linker, linker, inner, front, count):
            if one is not None:
                one.close()
        self.module.close()
        self.engine.close()

    def _poll(self, caller: Caller, rows_at: int, events_at: int, count: int, stored_at: int) -> int:
        """Serve `poll_oneoff` of WASI until `WasmRun.stop`: files are always ready, clocks make it wait.

        It never raises: the library would raise the error in another thread.
        """
        try:
            memory, count = caller.get("memory"), count & 0xFFFFFFFF
            if not isinstance(memory, Memory) or not 0 < count <= _MOST_SUBSCRIPTIONS:
                return _INVALID
            start = rows_at & 0xFFFFFFFF
            rows = bytes(memory.read(caller, start, start + count * _SUBSCRIPTION))
            files, clocks = list[tuple[int, int]](), list[tuple[int, int]]()
            for at in range(0, count * _SUBSCRIPTION, _SUBSCRIPTION):
                user, kind = struct.unpack_from("<QB", rows, at)
                if kind:
                    files.append((user, kind))
                else:
                    clocks.append((self._wait_ns(*struct.unpack_from("<IxxxxQQH", rows, at + 16)), user))
            found = files
            if not files:
                least = min(clocks)[0]
                if self._stopped.wait(min(least / 1e9, _LONGEST_S)):
                    return _INTERRUPTED
                found = [(user, 0) for wait, user in clocks if wait <= least]
            events = b"".join(_EVENT.pack(user, 0, kind, 1 if kind else 0, 0) for user, kind in found)
            memory.write(caller, events, events_at & 0xFFFFFFFF)
            memory.write(caller, struct.pack("<I", len(found)), stored_at & 0xFFFFFFFF)
        except Exception:  # noqa: BLE001 bad addresses
            return _FAULT
        return 0

    def _wait_ns(self, clock: int, timeout: int, _precision: int, flags: int) -> int:
        """Return the nanoseconds until a clock (0: of the day, any other: of this run) shows that time, or until so
        many have passed.
        """
        now = time.time_ns() if clock == 0 else time.monotonic_ns() - self._began_ns
        return max(0, timeout - now) if flags & 1 else timeout


def _new_engine(*, fuel: bool) -> Engine:
    config = Config()
    config.consume_fuel = fuel
    config.epoch_interruption = True
    config.wasm_threads = False  # no store bounds shared memory
    config.wasm_multi_memory = False
    config.wasm_gc = False
    return Engine(config)


def _require_command(module: Module) -> None:
    """Raise WorkspaceError for a module that is no WASI command."""
    exports = {one.name: one.type for one in module.exports}
    start = exports.get("_start")
    if not isinstance(start, FuncType) or start.params or start.results:
        raise WorkspaceError("it is no WASI command: it exports no function `_start`")
    if others := sorted({str(one.module) for one in module.imports} - {WASI}):
        raise WorkspaceError(f"it is no WASI command: it imports of `{others[0][:80]}`")


def _short(text: str) -> str:
    """Return the last part of an error's text, the cause."""
    return " ".join(text.rpartition("Caused by:")[2].split())[:_MOST_WORDS]
