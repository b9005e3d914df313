"""Runs tests against one changed module after another without starting anew: a pytest plugin, and what asks it.

pytest collects once. For each change a child is forked, the functions that are loaded get their changed code there, and
the wanted tests run until one fails. The module on disk is changed as well, for processes that tests start.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import cast

import pytest

DOOR = "GATEWRIGHT_MUTANTS_DOOR"
ENOUGH_SECONDS = 90.0
"""No further test begins after so much time of the processor: what else runs on the machine spoils no verdict."""
_Cache = type(functools.cache(lambda: None))
MOST_SECONDS = 150.0
"""A test that takes longer hangs."""


@dataclass(frozen=True, slots=True)
class Job:
    """Tests to run by their node ids, and the module that changes: its path, its source as it was and as it is."""

    tests: Sequence[str]
    path: Path | None = None
    source: str = ""
    changed: str = ""


class CannotBeSwapped(Exception):
    """The change is in code that ran when the module was loaded."""


class Server:
    """pytest in a copy of the checkout, waiting for jobs. EOFError where it cannot collect its tests."""

    def __init__(self, command: Sequence[str], top: Path, environment: dict[str, str]) -> None:
        self._door, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [*command, "-p", "tests.mutants.server"],
                cwd=top,
                env=environment | {DOOR: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._door.recv()  # until the modules are loaded, no change may stand on the disk

    def failing(self, job: Job) -> str | None:
        """The first test that fails or hangs, if one does. Raises CannotBeSwapped."""
        self._door.send(job)
        answer = cast("str | CannotBeSwapped | None", self._door.recv())
        if isinstance(answer, CannotBeSwapped):
            raise answer
        return answer

    def close(self) -> None:
        """End it."""
        self._door.close()
        self._process.wait()


class _Loaded:
    """The functions and the caches of the engine that are loaded, looked up before `gc` leaves them alone."""

    def __init__(self) -> None:
        gc.collect()
        every = gc.get_objects()
        self._functions: dict[str, list[FunctionType]] = {}
        for one in every:
            if type(one) is FunctionType:
                self._functions.setdefault(one.__code__.co_filename, []).append(one)
        self._caches = [one for one in every if type(one) is _Cache and one.__module__.startswith("gatewright")]
        gc.freeze()

    def swapped(self, path: Path, source: str, changed: str) -> Callable[[], None]:
        """What puts the changed code into the functions of a module. Raises CannotBeSwapped."""
        known = self._functions.get(str(path), [])
        if not known:
            return lambda: None  # not loaded yet: read from the disk when it is wanted
        codes = [compile(text, str(path), "exec", dont_inherit=True) for text in (source, changed)]
        wanted = [
            (function, after)
            for before, after in _differing(*codes)
            for function in known
            if function.__code__ == before
        ]
        if any(function.__code__.co_freevars != after.co_freevars for function, after in wanted):
            raise CannotBeSwapped

        def swap() -> None:
            for function, code in wanted:
                function.__code__ = code
            for cache in self._caches:
                cache.cache_clear()

        return swap


def _differing(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions that are not the same, outer ones first. Raises CannotBeSwapped for code that runs only once."""
    one, other = _inner(before), _inner(after)
    if before.co_flags & inspect.CO_OPTIMIZED:
        yield before, after
    elif len(one) != len(other) or _own(before) != _own(after):
        raise CannotBeSwapped
    if len(one) == len(other):
        for pair in zip(one, other, strict=True):
            if pair[0] != pair[1]:
                yield from _differing(*pair)


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> object:
    return code.co_code, code.co_names, [repr(one) for one in code.co_consts if not isinstance(one, CodeType)]


def pytest_runtestloop(session: pytest.Session) -> object:
    """Instead of the tests that were collected, run those of each job."""
    if session.config.option.collectonly:
        return None
    items = {item.nodeid: item for item in session.items}
    loaded = _Loaded()
    with Connection(int(os.environ[DOOR])) as door:
        door.send("ready")
        while True:
            try:
                job = cast("Job", door.recv())
            except EOFError:
                return True
            try:
                swap = loaded.swapped(job.path, job.source, job.changed) if job.path else None
                door.send(_run_in_child(session, [items[name] for name in job.tests if name in items], swap))
            except CannotBeSwapped as error:
                door.send(error)


def _run_in_child(session: pytest.Session, items: list[pytest.Item], swap: Callable[[], None] | None) -> str | None:
    scratch = session.config.rootpath.parent / f"{session.config.rootpath.name}-tests"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    at = scratch / "at"
    at.touch()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setsid()
            if swap is not None:
                swap()
            status = _run(session, items, at, scratch / "tmp")
        finally:
            os._exit(status)
    status = None
    while status is None and time.time() < at.stat().st_mtime + MOST_SECONDS:
        ended, code = os.waitpid(child, os.WNOHANG)
        status = code if ended else None
        if status is None:
            time.sleep(0.005)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if status == 0:
        return None
    if not (name := at.read_text("utf-8")):
        raise CannotBeSwapped
    return name


def _run(session: pytest.Session, items: list[pytest.Item], at: Path, temporary: Path) -> int:
    """0 when all pass. `at` holds the test that runs, the failed one in the end."""
    session.config.option.basetemp = str(temporary)
    factory = session.config._tmp_path_factory  # pyright: ignore  # made from the option when pytest starts
    factory._given_basetemp, factory._basetemp = temporary, None
    for item, following in zip(items, [*items[1:], None], strict=True):
        at.write_text(item.nodeid, "utf-8")
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
        if sum(os.times()[:4]) > ENOUGH_SECONDS:
            break
    return 0
