"""Tools that a WASM module runs, a WASI command that is started anew for each call.

It gets the call on its standard input and answers on its standard output as a process does (`subprocess_tool`), in a
thread of its own. It reaches the places of its catalog and nothing else, and a place is opened only where WASI can hold
what the policy says of it: all that lies there is to be read, or all of it to be changed. What runs is what was trusted
by its digest: the bytes that are compiled are those that were looked at.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gatewright.adapters.tool_output import FAILED, SAID_CHARS, Take, answer, given_text, own_failure, own_words
from gatewright.base.errors import RegistrationError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.once import once
from gatewright.base.printable import printable
from gatewright.base.thread import in_own_thread
from gatewright.policy.confinement import Confinement, View
from gatewright.policy.document import Catalog, PlaceUse
from gatewright.policy.granted import wasm_fuel
from gatewright.record.fork import fork_safe_lock, renew_after_fork
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from gatewright.adapters.wasm_module import CompiledModule, Folder, WasmModules, WasmRun

MAX_MODULE_BYTES = 64 * 1024 * 1024
USUAL_MEMORY = 256 * 1024 * 1024
"""The memory of a module that nothing else bounds."""
_MOST_MEMORY = 4 * 1024**3
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_CHUNK = 64 * 1024
_DRAIN_S = 1.0
_END_S = 5.0
_WHO, _FUEL = "module", "fuel"
_CHANGED = "its module is not the one that was trusted"


class WasmTools:
    """Those of one workspace, whose policy lies in ``folder``.

    ``trusts`` tells whether a catalog is trusted with a module of this digest. ``confinement``: the places that a
    module gets when it serves an agent, with what the policy says of them, and ``views`` the view that all in each has.
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
        self._running: set[WasmRun] = set()
        atexit.register(self.close)  # nothing of it may run while the interpreter ends
        renew_after_fork(self)

    def renew(self) -> None:
        """A child of a fork has no threads, so nothing runs in it."""
        self._running = set()

    def check(self, definition: ToolDefinition, /) -> None:
        """``run`` may hold ``args``, words that the module gets, and ``fuel``, the most that a call may use up."""
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
        """Execute one call, as `ToolAdapter` says."""
        module = await in_own_thread(self._compiled, catalog)
        folders = await in_own_thread(self._folders, catalog, context.agent_id) if catalog.places else ()
        call = _Call(catalog, definition, arguments, context, module, folders)
        return await answer(definition.conduct.result_type, partial(self._exchange, call))

    def close(self) -> None:
        """End every run; it waits for a few seconds at most."""
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
        from gatewright.adapters.wasm_module import WasmModules

        return WasmModules()

    def _compiled(self, catalog: Catalog) -> CompiledModule:
        """The module of a catalog, which was trusted as it is. Raises WorkspaceError."""
        path = self._folder / catalog.module
        try:
            content = _content(path)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise WorkspaceError(f"its module `{catalog.module}` cannot be read: {why}") from None
        digest = hashlib.sha256(content).hexdigest()
        if not self._trusts(catalog, digest):
            raise WorkspaceError(_CHANGED)
        try:
            return self._modules.compiled(digest, content)
        except WorkspaceError as error:
            raise WorkspaceError(f"its module `{catalog.module}` cannot be run: {error}") from None

    def _folders(self, catalog: Catalog, agent_id: str) -> tuple[Folder, ...]:
        """The places of a catalog as a module gets them. Raises WorkspaceError for one that WASI could not hold."""
        from gatewright.adapters.wasm_module import Folder

        confinement, top = self._confinement(agent_id, catalog), os.path.realpath(self._folder)
        for place in confinement.places:
            if place.use is PlaceUse.SNAPSHOT:
                raise _no_place(place.path, "as a private copy: give it to be read, or to be changed")
            if not Path(place.path).is_dir():
                raise _no_place(place.path, "as it is no folder")
        try:
            views = self._views(confinement)
        except ToolFailure as error:
            raise WorkspaceError(f"a module cannot be given its places: {error}") from None
        found: list[Folder] = []
        for place in confinement.places:
            use = PlaceUse.WRITE if views[place.path] is View.WRITE else PlaceUse.READ
            names = [place.path]
            if (relative := os.path.relpath(place.path, top)) != "." and not relative.startswith(".."):
                names.append(relative)
            found += [Folder(place.path, name, use) for name in names]
        return tuple(found)

    async def _exchange(self, call: _Call, take: Take, said: Callable[[], bytes]) -> None:
        """Run the module, and take what it writes; ``said``: all that it wrote, where that is kept."""
        errors = bytearray()

        async def keep(chunk: bytes) -> None:
            errors.extend(chunk)
            del errors[:-SAID_CHARS]

        with self._started(call) as (run, output, stderr):
            running = in_own_thread(run.run)
            reading = [asyncio.create_task(_read(output, take)), asyncio.create_task(_read(stderr, keep))]
            try:
                with call.timer(run):
                    await asyncio.wait({running, reading[0]}, return_when=asyncio.FIRST_COMPLETED)
                    if reading[0].done():
                        await reading[0]  # its failure ends the run
                    await asyncio.wait({running})
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.gather(*reading), _DRAIN_S)
            finally:
                run.stop()
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
                await asyncio.wait({running})
        try:
            failure = running.result()
        except OSError as error:
            raise WorkspaceError(f"its module cannot be started: {error}") from None
        if failure:
            text = printable(errors.decode("utf-8", "replace").strip())
            raise ToolFailure(own_failure(said()) or FAILED, detail="; ".join(filter(None, (failure, text))))

    @contextmanager
    def _started(self, call: _Call) -> Generator[tuple[WasmRun, IO[bytes], IO[bytes]]]:
        """The run of a call, with what is read of its output and its errors. Raises WorkspaceError."""
        with ExitStack() as held:
            try:
                run, output, errors = call.opened(held)
            except OSError as error:
                raise WorkspaceError(f"its module cannot be started: {error.strerror}") from None
            with self._lock:
                self._running.add(run)
            try:
                yield run, output, errors
            finally:
                with self._lock:
                    self._running.discard(run)


class _Call:
    """One call: what is given to its module, and what it may use up."""

    def __init__(
        self,
        catalog: Catalog,
        definition: ToolDefinition,
        arguments: Mapping[str, JsonValue],
        context: ToolExecutionContext,
        module: CompiledModule,
        folders: tuple[Folder, ...],
    ) -> None:
        self._context, self._module, self._folders = context, module, folders
        self._words = (Path(catalog.module).name, *own_words(definition, _WHO, _FUEL))
        self._given = given_text(definition, arguments)
        limits = [one for one in (wasm_fuel(context.capabilities), _own_fuel(definition)) if one is not None]
        self._fuel = min(limits, default=None)
        self._memory = min(context.bounds.memory_bytes or USUAL_MEMORY, _MOST_MEMORY)

    def opened(self, held: ExitStack) -> tuple[WasmRun, IO[bytes], IO[bytes]]:
        """Its run, and what is read of its output and its errors, which are closed with ``held``. Raises OSError."""
        from gatewright.adapters.wasm_module import UNLIMITED_FUEL, WasmRun

        given = held.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        given.write(self._given)
        given.seek(0)
        (output, written), (errors, complained) = _pipe(held), _pipe(held)
        if self._context.note is not None:
            self._context.note(self._words_of_bounds())
        fuel, streams = self._fuel or UNLIMITED_FUEL, (given, written, complained)
        run = WasmRun(self._module, self._words, self._folders, streams, fuel=fuel, memory=self._memory)
        return run, output, errors

    @contextmanager
    def timer(self, run: WasmRun) -> Generator[None]:
        """End the run when its time of a processor is over: it is one thread, and can have used no more than passed."""
        cpu_s = self._context.bounds.cpu_s
        if cpu_s is None:
            yield
            return
        handle = asyncio.get_running_loop().call_later(cpu_s, run.stop, f"it used up its {cpu_s:g} s of a processor")
        try:
            yield
        finally:
            handle.cancel()

    def _words_of_bounds(self) -> str:
        places = ", ".join(dict.fromkeys(f"{one.path} ({one.use})" for one in self._folders))
        words = ["run as a WASM module", f"places: {places or 'none'}", "no network", "no variables"]
        words += [f"{self._fuel:,} units of fuel"] if self._fuel is not None else []
        words += [f"{cpu_s:g} s of a processor"] if (cpu_s := self._context.bounds.cpu_s) is not None else []
        return "; ".join((*words, f"{self._memory:,} bytes of memory"))


def _own_fuel(definition: ToolDefinition) -> int | None:
    """The units of fuel that a definition allows for a call. Raises RegistrationError."""
    fuel = (definition.run or {}).get(_FUEL)
    if fuel is None:
        return None
    if not isinstance(fuel, int) or isinstance(fuel, bool) or not 0 < fuel < 2**63:
        raise RegistrationError(f"tool `{definition.name}`: `fuel` of `run` is a whole number, at least 1")
    return fuel


def _content(path: Path) -> bytes:
    """A module whole, waiting for nobody. Raises OSError, ValueError where it is no file or too large."""
    with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no file")
        content = file.read(MAX_MODULE_BYTES + 1)
    if len(content) > MAX_MODULE_BYTES:
        raise ValueError(f"it is larger than {MAX_MODULE_BYTES // 1024 // 1024} MiB")
    return content


def _no_place(path: str, why: str) -> WorkspaceError:
    return WorkspaceError(f"a module cannot be given its place `{path}` {why}")


def _pipe(held: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """Both ends of a pipe: what is read of it, and what is written to it."""
    read, write = os.pipe()
    return held.enter_context(os.fdopen(read, "rb", 0)), held.enter_context(os.fdopen(write, "wb", 0))


async def _read(file: IO[bytes], take: Take) -> None:
    """Take what is written to a pipe until its end, or until nobody wants more: then it can be written to no more."""
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    try:
        while chunk := await reader.read(_CHUNK):
            await take(chunk)
    finally:
        transport.close()
