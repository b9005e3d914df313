"""Tools run by a WASM module: a WASI command, compiled once for each content, that starts anew for each call.

It gets the call on standard input and answers on standard output like a process (`subprocess_tool`), all in one thread.
It reaches the places of its catalog only, and gets a place only if WASI can enforce the policy for it: everything there
is readable, or everything is writable. Trust depends on the digest of the module:
the compiled bytes are the checked ones.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

from gatewright.adapters.subprocess_tool import FAILED, SAID_CHARS, Take, answer, call_text, own_failure, own_words
from gatewright.adapters.wasm_module import MOST_WRITTEN, CompiledModule, Folder, WasmRun
from gatewright.base.errors import RegistrationError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread, once, unbroken
from gatewright.base.printable import printable
from gatewright.policy.document import Catalog, PlaceUse
from gatewright.policy.reach import wasm_fuel
from gatewright.policy.target import Confinement, View
from gatewright.record.process import fork_safe_lock, renew_after_fork
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResultType
from gatewright.tools.definition import ToolDefinition

_KEPT = 16
"""The most compiled modules in memory."""

MAX_MODULE_BYTES = 64 * 1024 * 1024
USUAL_MEMORY = 256 * 1024 * 1024
"""The default limit of a module's memory."""
_MOST_MEMORY = 4 * 1024**3
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_KEPT_BYTES = 64 * 1024
_END_S = 5.0
_WHO, _FUEL = "module", "fuel"
_FileState = tuple[int, int, int, int, int]
_CHANGED = "its module is not the one that was trusted"


class WasmTools:
    """The tools of one workspace, with its policy in ``folder``.

    ``trusts`` tells whether somebody trusted a catalog with a module of this digest. ``confinement`` returns the places
    of a module for an agent, with the policy's levels, and ``views`` how it sees everything in each.
    """

    def __init__(
        self,
        folder: Path,
        trusts: Callable[[Catalog, str], bool],
        confinement: Callable[[str, Catalog], Confinement],
        views: Callable[[Confinement], Mapping[str, View]],
    ) -> None:
        self._folder, self._trusts, self._confinement, self._views = folder, trusts, confinement, views
        self._lock = fork_safe_lock()
        self._running: set[_Running] = set()
        self._known: dict[Path, tuple[_FileState, str]] = {}
        """The digest of each checked module, together with its file's state at that time."""
        atexit.register(self.close)  # no run may last while the interpreter ends
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in the child of a fork, which has no threads and so no runs."""
        self._running = set()

    def check(self, definition: ToolDefinition, /) -> None:
        """Accept in ``run`` the module's words ``args`` and the limit ``fuel`` for a call."""
        own_words(definition, _WHO, _FUEL)
        _own_fuel(definition)
        if definition.conduct.bounds.network_bytes is not None:
            raise RegistrationError(f"tool `{definition.name}`: a module has no network, so no `network_bytes`")

    async def run(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        /,
    ) -> object:
        """Execute one call as `ToolAdapter` does."""
        call = _Call(catalog, definition, arguments, context)
        kind = definition.conduct.result_type
        return await answer(kind, partial(self._exchange, call, kind is ResultType.STREAM), apart=False)

    def close(self) -> None:
        """End every run; wait a few seconds at most."""
        atexit.unregister(self.close)
        with self._lock:
            running = [*self._running]
        for run in running:
            run.stop("the workspace was closed")
        for run in running:
            run.ended.wait(_END_S)
        if "_modules" in self.__dict__:
            self._modules.close()

    @once
    def _modules(self) -> WasmModules:
        return WasmModules()

    def _compile(self, catalog: Catalog, *, fuel: bool) -> CompiledModule:
        """Compile the module of a catalog, trusted with this content. Raises WorkspaceError."""
        path = self._folder / catalog.module
        try:
            state = _state(path)
            before, digest = self._known.get(path, (None, ""))
            module = self._modules.find(digest, fuel=fuel) if before == state else None
            content = b"" if module is not None else _content(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise WorkspaceError(f"its module `{catalog.module}` cannot be read: {why}") from None
        if module is None:
            digest = hashlib.sha256(content).hexdigest()
        if not self._trusts(catalog, digest):
            raise WorkspaceError(_CHANGED)
        try:
            module = module or self._modules.compile(digest, content, fuel=fuel)
        except WorkspaceError as error:
            raise WorkspaceError(f"its module `{catalog.module}` cannot be run: {error}") from None
        self._known[path] = state, digest
        return module

    def _folders(self, catalog: Catalog, agent_id: str) -> tuple[Folder, ...]:
        return module_folders(self._confinement(agent_id, catalog), self._folder, self._views)

    async def _exchange(self, call: _Call, at_once: bool, take: Take, said: Callable[[], bytes]) -> None:
        """Run the module and take its output; ``said``: the whole output, if stored."""
        run = _Running(call, _Output(asyncio.get_running_loop(), take, 0 if at_once else _KEPT_BYTES))
        with self._lock:
            self._running.add(run)
        try:
            working = in_own_thread(self._go_through, call, run)
            try:
                with call.timer(run):
                    await asyncio.wait({working})
            finally:
                run.stop()
                if not working.done():
                    with suppress(Exception):
                        await unbroken(working)
            failure = working.result()
        except OSError as error:
            raise WorkspaceError(f"its module cannot be started: {error}") from None
        finally:
            with self._lock:
                self._running.discard(run)
        await run.output.finish()
        if failure:
            text = printable(run.errors.decode("utf-8", "replace").strip())
            raise ToolFailure(own_failure(said()) or FAILED, detail="; ".join(filter(None, (failure, text))))

    def _go_through(self, call: _Call, run: _Running) -> str:
        """Run the module of a call to its end; return why it failed, or an empty text.

        Raises WorkspaceError, OSError.
        """
        try:
            module = self._compile(call.catalog, fuel=call.fuel is not None)
            folders = self._folders(call.catalog, call.context.agent_id) if call.catalog.places else ()
            call.tell(folders)
            return run.work.run(module, folders)
        finally:
            run.ended.set()


class _Running:
    """A run in progress:

    `stop` ends it from any thread, then ``ended`` is set. ``errors``: the end of its standard error.
    """

    def __init__(self, call: _Call, output: _Output) -> None:
        self.output, self.errors, self.ended = output, bytearray(), threading.Event()
        streams = call.given, output.write, self._complain
        self.work = WasmRun(call.words, *streams, fuel=call.fuel, memory=call.memory)

    def stop(self, why: str = "it was ended") -> None:
        """End it at once, at any point; an ended run stays the same."""
        self.work.stop(why)
        self.output.stop()

    def _complain(self, chunk: bytes) -> None:
        self.errors += chunk
        del self.errors[:-SAID_CHARS]


class _Output:
    """Passes a module's output from its thread to a loop: in pieces of over ``most`` bytes, then the rest.

    The module waits until somebody takes a piece.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Take, most: int) -> None:
        self._loop, self._take, self._most = loop, take, most
        self._kept, self._lock = bytearray(), fork_safe_lock()
        self._waiting: Future[None] | None = None
        self._failure: ToolFailure | None = None
        self._is_over = False

    def write(self, chunk: bytes) -> None:
        """Take a piece, in the module's thread. Raises ToolFailure, CancelledError if nobody takes it."""
        self._kept += chunk
        if len(self._kept) <= self._most:
            return
        piece = bytes(self._kept)
        self._kept.clear()
        with self._lock:
            if self._is_over:
                raise CancelledError
            self._waiting = asyncio.run_coroutine_threadsafe(self._give(piece), self._loop)
        try:
            self._waiting.result()
        except ToolFailure as error:
            self._failure = error
            raise

    def stop(self) -> None:
        """End all waiting."""
        with self._lock:
            self._is_over = True
            if self._waiting is not None:
                self._waiting.cancel()

    async def finish(self) -> None:
        """Pass on the rest, in the loop. Raises the ToolFailure that refused a piece."""
        if self._failure is not None:
            raise self._failure
        if self._kept:
            await self._take(bytes(self._kept))

    async def _give(self, piece: bytes) -> None:
        await self._take(piece)


def module_folders(
    confinement: Confinement, folder: Path, views: Callable[[Confinement], Mapping[str, View]]
) -> tuple[Folder, ...]:
    """Return the places of a module as folders for WASI. Raises WorkspaceError for one that WASI cannot enforce."""
    top = os.path.realpath(folder)
    for place in confinement.places:
        if place.use is PlaceUse.SNAPSHOT:
            raise _no_place(place.path, "as a private copy: give it to be read, or to be changed")
        if not Path(place.path).is_dir():
            raise _no_place(place.path, "as it is not a folder")
    try:
        seen = views(confinement)
    except ToolFailure as error:
        raise WorkspaceError(f"a module cannot be given its places: {error}") from None
    found: list[Folder] = []
    for place in confinement.places:
        use = PlaceUse.WRITE if seen[place.path] is View.WRITE else PlaceUse.READ
        names = [place.path]
        if (relative := os.path.relpath(place.path, top)) != "." and not relative.startswith(".."):
            names.append(relative)
        found += [Folder(place.path, name, use) for name in names]
    return tuple(found)


class _Call:
    """One call: its module's input, and its limits."""

    def __init__(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
    ) -> None:
        self.catalog, self.context = catalog, context
        self.words = (Path(catalog.module).name, *own_words(definition, _WHO, _FUEL))
        self.given = call_text(definition, arguments)
        limits = [one for one in (wasm_fuel(context.capabilities), _own_fuel(definition)) if one is not None]
        self.fuel = min(limits, default=None)
        self.memory = min(context.bounds.memory_bytes or USUAL_MEMORY, _MOST_MEMORY)

    @contextmanager
    def timer(self, run: _Running) -> Generator[None]:
        """End the run when its processor time is over; as one thread, it used no more than the time that passed."""
        cpu_s = self.context.bounds.cpu_s
        if cpu_s is None:
            yield
            return
        handle = asyncio.get_running_loop().call_later(cpu_s, run.stop, f"it used up its {cpu_s:g} s of a processor")
        try:
            yield
        finally:
            handle.cancel()

    def tell(self, folders: Sequence[Folder]) -> None:
        """Note in the trace the limits of its module."""
        if self.context.note is None:
            return
        places = ", ".join(dict.fromkeys(f"{one.path} ({one.use})" for one in folders))
        words = ["run as a WASM module", f"places: {places or 'none'}", "no network", "no variables"]
        if any(one.use is PlaceUse.WRITE for one in folders):
            words.append(f"{MOST_WRITTEN:,} bytes to be written")
        words += [f"{self.fuel:,} units of fuel"] if self.fuel is not None else []
        words += [f"{cpu_s:g} s of a processor"] if (cpu_s := self.context.bounds.cpu_s) is not None else []
        self.context.note("; ".join((*words, f"{self.memory:,} bytes of memory")))


def _own_fuel(definition: ToolDefinition) -> int | None:
    """Return a definition's units of fuel for a call. Raises RegistrationError."""
    fuel = (definition.run or {}).get(_FUEL)
    if fuel is None:
        return None
    if not isinstance(fuel, int) or isinstance(fuel, bool) or not 0 < fuel < 2**63:
        raise RegistrationError(f"tool `{definition.name}`: `fuel` of `run` is a whole number, at least 1")
    return fuel


def _state(path: Path) -> _FileState:
    """Return values that change with any write to the file. Raises OSError."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _content(path: Path) -> bytes:
    """Read a whole module without waiting. Raises OSError, ValueError if it is no file or too large."""
    with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file")
        content = file.read(MAX_MODULE_BYTES + 1)
    if len(content) > MAX_MODULE_BYTES:
        raise ValueError(f"it is larger than {MAX_MODULE_BYTES // 1024 // 1024} MiB")
    return content


def _no_place(path: str, why: str) -> WorkspaceError:
    return WorkspaceError(f"a module cannot be given its place `{path}` {why}")


@cache
def _process() -> int:
    """Return the process that owns the runtime's threads."""
    return os.getpid()


class WasmModules:
    """The compiled modules by the digest of their content; the latest ones stay.

    ``fuel``: the compiled code counts fuel, which makes it slower.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._kept: dict[tuple[str, bool], CompiledModule] = {}

    def find(self, digest: str, *, fuel: bool) -> CompiledModule | None:
        """Return the compiled module with this digest, or None."""
        with self._lock:
            return self._kept.get((digest, fuel)) if _process() == os.getpid() else None

    def compile(self, digest: str, content: bytes, *, fuel: bool) -> CompiledModule:
        """Compile the content with this digest, or return the module. Raises WorkspaceError for no WASI command."""
        if _process() != os.getpid():
            raise WorkspaceError("a module cannot be run in a fork of a process that ran one")
        with self._lock:
            module = self._kept.pop((digest, fuel), None) or CompiledModule(content, fuel=fuel)
            self._kept[digest, fuel] = module
            while len(self._kept) > _KEPT:
                self._kept.pop(next(iter(self._kept))).retire()
        return module

    def close(self) -> None:
        """Drop all modules."""
        with self._lock:
            modules, self._kept = self._kept, {}
        for module in modules.values():
            module.retire()
