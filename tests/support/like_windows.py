"""Runs command lines in one process that has of the system only what Python offers on Windows.

No `fcntl`, no descriptors of folders, nothing relative to one, no user ids, no fork, no removal of open files; locks by
`msvcrt`, which keep others from reading what they cover.

    python -m tests.support.like_windows '[["check", "policy.toml"], ...]'  ->  [[status, output, errors], ...]
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import getpass
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from types import ModuleType
from typing import Any

import jsonschema
import platformdirs
import pydantic
import typer

LOADED = (
    asyncio,
    getpass,
    multiprocessing,
    subprocess,
    tempfile,
    jsonschema.Draft202012Validator,
    pydantic.BaseModel,
    platformdirs,
    typer,
)
"""These modules look at the system when they are loaded, so they are loaded before it seems to be Windows."""
MISSING = (
    "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "getuid", "geteuid", "getegid",
    "getgid", "pread", "pwrite", "fchmod", "fwalk", "killpg", "waitid", "register_at_fork", "fork", "setsid", "mkfifo",
)  # fmt: skip
BEYOND = 1 << 30
TEXT_OFF = (1 << 29, 1 << 28)
really_open, really_unlink, really_flock = os.open, os.unlink, fcntl.flock
LOCK_EX, LOCK_NB, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_NB, fcntl.LOCK_UN


def open_file(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(13, "Permission denied", str(path))
    return really_open(path, flags & ~sum(TEXT_OFF), mode)


def unlink(path: Any, *, dir_fd: int | None = None) -> None:
    assert dir_fd is None
    for one in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            is_open = os.path.samestat(os.fstat(int(one)), os.lstat(path))
        except OSError:
            continue
        if is_open:
            raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
    really_unlink(path)


def locking(descriptor: int, how: int, count: int) -> None:
    assert (os.lseek(descriptor, 0, os.SEEK_CUR) >= BEYOND, count) == (True, 1), "what is locked cannot be read"
    try:
        really_flock(descriptor, LOCK_UN if how == 0 else LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


def locks_of_windows() -> ModuleType:
    """Return a replacement for `msvcrt`."""
    windows = ModuleType("msvcrt")
    windows.__dict__.update(LK_UNLCK=0, LK_NBLCK=2, locking=locking)
    return windows


def become_windows() -> None:
    """Make this process behave as on Windows from now on."""
    for name in MISSING:
        if hasattr(os, name):
            delattr(os, name)
    del signal.SIGKILL, signal.SIGPIPE
    os.O_BINARY, os.O_NOINHERIT = TEXT_OFF  # pyright: ignore[reportAttributeAccessIssue]
    os.open, os.unlink, os.remove = open_file, unlink, unlink
    os.supports_dir_fd.clear()
    os.supports_fd.clear()
    sys.modules |= {"msvcrt": locks_of_windows(), "fcntl": None}  # pyright: ignore[reportArgumentType]
    sys.platform = "win32"


def run(words: list[str]) -> tuple[int, str, str]:
    from gatewright.cli.main import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(words)
    return status, out.getvalue(), errors.getvalue()


if __name__ == "__main__":
    become_windows()
    print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
