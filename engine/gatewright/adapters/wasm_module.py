"""WASM modules that are WASI commands: compiled once for each content, and run in the thread of whoever asks.

A run reads its standard input, hands what it writes to us, and reaches the folders that it is given, and nothing else:
no network, no variables, no descriptor of ours. Fuel and memory are bounded by its store, its time by `WasmRun.stop`.
"""

from __future__ import annotations

import errno
import os
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache

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

from gatewright.adapters.wasm_bounds import COUNT, COUNTED, FRONT, WASI
from gatewright.base.errors import WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.policy.document import PlaceUse
from gatewright.record.process import fork_safe_lock

_MAGIC, _COMPONENT = b"\0asm\1\0\0\0", b"\0asm\x0d\0\1\0"
_KEPT = 16
"""The most modules that are kept compiled."""
_MOST_TABLE = 1_000_000
_MOST_WORDS = 300
_SUBSCRIPTION, _EVENT = 48, struct.Struct("<QHB5xQH6x")
_MOST_SUBSCRIPTIONS = 1_024
_LONGEST_S = 1e6
_INVALID, _FAULT, _INTERRUPTED = 28, 21, 27
"""The errors of WASI: `inval`, `fault`, `intr`."""


@frozen
class Folder:
    """A folder that a run is given to be read or written, under ``name``."""

    path: str
    name: str
    use: PlaceUse


@cache
def _process() -> int:
    """The process whose threads the runtime has."""
    return os.getpid()


class WasmModules:
    """The compiled modules by the digest of what they were compiled of; the last ones are kept.

    ``fuel``: what is compiled counts it, which makes it slower.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: dict[tuple[str, bool], CompiledModule] = {}

    def kept(self, digest: str, *, fuel: bool) -> CompiledModule | None:
        """The module with this digest, where it is compiled."""
        with self._lock:
            return self._kept.get((digest, fuel)) if _process() == os.getpid() else None

    def compiled(self, digest: str, content: bytes, *, fuel: bool) -> CompiledModule:
        """The module of a content whose digest this is. Raises WorkspaceError for one that is no WASI command."""
        if _process() != os.getpid():
            raise WorkspaceError("a module cannot be run in a fork of a process that ran one")
        with self._lock:
            module = self._kept.pop((digest, fuel), None) or CompiledModule(content, fuel=fuel)
            self._kept[digest, fuel] = module
            while len(self._kept) > _KEPT:
                self._kept.pop(next(iter(self._kept))).retire()
        return module

    def close(self) -> None:
        """Forget all of them."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for module in kept.values():
            module.retire()


class CompiledModule:
    """One module, with an engine for each run that there is at once: what ends a run ends all of its engine."""

    def __init__(self, content: bytes, *, fuel: bool) -> None:
        self._counts_fuel = fuel
        if not content.startswith(_MAGIC):
            is_component = content.startswith(_COMPONENT)
            raise WorkspaceError("it is a component, no WASI command" if is_component else "it is no WASM module")
        try:
            engine = _new_engine(fuel=fuel)
            module = Module(engine, content)
            self._code = bytes(module.serialize())
            _require_command(module)
            self._idle = [_Ready(engine, module)]
        except WasmtimeError as error:
            raise WorkspaceError(f"it is no WASM module that can be run: {_short(str(error))}") from None
        self._lock = fork_safe_lock()
        self._is_over = False

    def take(self) -> _Ready:
        """An engine with the module that nobody else runs."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        engine = _new_engine(fuel=self._counts_fuel)
        return _Ready(engine, Module.deserialize(engine, self._code))

    def give(self, ready: _Ready) -> None:
        """Have it for the next run."""
        with self._lock:
            if not self._is_over:
                self._idle.append(ready)
                return
        ready.close()

    def retire(self) -> None:
        """Close what is idle now, and whatever is given back."""
        with self._lock:
            idle, self._idle, self._is_over = self._idle, [], True
        for ready in idle:
            ready.close()


class WasmRun:
    """One run of a module: `run` goes through with it, in a thread that may wait, and `stop` ends it from any other.

    ``words``: its name and arguments. ``given``: its standard input. ``output`` and ``errors`` take what it writes, in
    the thread of the run; one that raises refuses it. ``fuel``: None for no bound; else the module counts it.
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
        """End it at once, wherever it is; one that has ended already stays as it is."""
        with self._lock:
            self._why = self._why or why
            self._stopped.set()
            if self._ready is not None:
                self._ready.engine.increment_epoch()

    def run(self, module: CompiledModule, folders: Sequence[Folder]) -> str:
        """Run a module to its end; why it failed, or nothing. Raises OSError where its input or folders do not open."""
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
                return self._why if self._stopped.is_set() else ""  # what waited may have come to its end for that
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
        """Give what is written to ``take``; where that raises, the module is refused it and the run ends."""

        def write(data: bytes) -> int:
            try:
                take(data)
            except BaseException:  # noqa: BLE001 the runtime would print it; whoever takes it knows what it raised
                self.stop("nobody takes what it writes")
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
    """An engine with the module compiled for it, and all that the module may import."""

    def __init__(self, engine: Engine, module: Module) -> None:
        self.engine, self.module = engine, module
        self._stopped, self._began_ns = threading.Event(), 0
        self._linker = self._new_linker()
        self._linker.instantiate_pre(module)  # raises where it imports what is not there
        self._counting: tuple[Linker, Module, Linker, Module] | None = None

    def instance(self, store: Store, *, counts: bool) -> Instance:
        """The module as it is to run; ``counts``: what it opens, makes and writes is counted, where it can."""
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
        if isinstance(memory, Memory):  # without one it opens nothing
            inner.define(store, "run", "functions", own["functions"])
            inner.define(store, "run", "memory", memory)
            inner.instantiate(store, count)
        return instance

    def _new_linker(self) -> Linker:
        i32 = ValType.i32()
        waits = FuncType([i32, i32, i32, i32], [i32])  # the library's own waits as long as it is asked to
        linker = Linker(self.engine)
        linker.allow_shadowing = True
        linker.define_wasi()
        linker.define_func(WASI, "poll_oneoff", waits, self._poll, access_caller=True)
        return linker

    def begin(self, stopped: threading.Event) -> None:
        """Serve a run that ``stopped`` ends; its monotonic clock begins now."""
        self._stopped, self._began_ns = stopped, time.monotonic_ns()

    def close(self) -> None:
        """Let go of it."""
        linker, front, inner, count = self._counting or (None, None, None, None)
        for one in (self._linker, linker, inner, front, count):
            if one is not None:
                one.close()
        self.module.close()
        self.engine.close()

    def _poll(self, caller: Caller, rows_at: int, events_at: int, count: int, stored_at: int) -> int:
        """`poll_oneoff` of WASI, which `WasmRun.stop` ends: files are always ready, clocks are waited for.

        It raises nothing: the library would raise it in whichever thread looks first.
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
        except Exception:  # noqa: BLE001 addresses outside of its memory
            return _FAULT
        return 0

    def _wait_ns(self, clock: int, timeout: int, _precision: int, flags: int) -> int:
        """The nanoseconds until a clock (0: of the day, any other: of this run) shows a time, or for so long."""
        now = time.time_ns() if clock == 0 else time.monotonic_ns() - self._began_ns
        return max(0, timeout - now) if flags & 1 else timeout


def _new_engine(*, fuel: bool) -> Engine:
    config = Config()
    config.consume_fuel = fuel
    config.epoch_interruption = True
    config.wasm_threads = False  # shared memory is bounded by no store
    config.wasm_multi_memory = False
    config.wasm_gc = False
    return Engine(config)


def _require_command(module: Module) -> None:
    """Raises WorkspaceError for a module that is no WASI command."""
    exports = {one.name: one.type for one in module.exports}
    start = exports.get("_start")
    if not isinstance(start, FuncType) or start.params or start.results:
        raise WorkspaceError("it is no WASI command: it exports no function `_start`")
    if others := sorted({str(one.module) for one in module.imports} - {WASI}):
        raise WorkspaceError(f"it is no WASI command: it imports of `{others[0][:80]}`")


def _short(text: str) -> str:
    """The last of what an error says, which is the cause."""
    return " ".join(text.rpartition("Caused by:")[2].split())[:_MOST_WORDS]
