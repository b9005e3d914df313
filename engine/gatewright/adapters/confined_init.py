"""The first program in a room: it closes what only the process itself can close, then becomes the real program.

It runs inside, by ``python -I -S -E`` with modules of the standard library that load quickly, and reads its orders as
pairs of words from its one socket. It makes a Landlock ruleset from the visible places, as a second barrier below the
mounts. It hands out the room's mounts, so that more can be hidden later, and the listening socket of the proxy's port,
and waits for the start signal. It sets the limits last.
"""

from __future__ import annotations

import _socket
import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_KIND, _FOLDER = 0o170000, 0o040000
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Rights to files in each version of Landlock."""
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_BACKLOG = 128
"""The most processes in a room that wait for the proxy at once."""
_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "files": resource.RLIMIT_NOFILE,
    "file": resource.RLIMIT_FSIZE,
}


def main() -> None:
    """Run the first program."""
    number, program = int(sys.argv[1]), sys.argv[2:]
    channel = _socket.socket(fileno=number)
    words = channel.recv(1 << 20).decode("utf-8", "surrogateescape").split("\0")
    orders = [(words[at], words[at + 1]) for at in range(0, len(words) - 1, 2)]
    said = _landlock([(word, path) for word, path in orders if word in ("list", "read", "write")])
    passed = [os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)]
    for word, value in orders:
        if word == "listen":
            passed.append(_listening(int(value)))
        elif word == "unset":
            os.environ.pop(value, None)
        elif word == "set":
            name, _, text = value.partition("=")
            os.environ[name] = text
    numbers = b"".join(one.to_bytes(4, sys.byteorder) for one in passed)
    channel.sendmsg([said.encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    if channel.recv(1) != b"g":
        os._exit(126)
    channel.close()
    for one in passed:
        os.close(one)
    for signal in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(signal, _signal.SIG_DFL)
    for word, value in orders:
        if word in _LIMITS:
            _limit(_LIMITS[word], int(value))
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"{program[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, value))


def _listening(port: int) -> int:
    made = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    made.bind(("127.0.0.1", port))
    made.listen(_BACKLOG)
    return made.detach()


def _landlock(places: list[tuple[str, str]]) -> str:
    """Restrict this process to ``places``; return the version of Landlock or, in a word, why it failed."""
    try:
        call = _system_call()
    except Exception as error:  # noqa: BLE001 a Python without it may lack anything
        return f"-{type(error).__name__}"
    version = call(_CREATE, None, 0, 1)
    if version < 1:
        return "-absent"
    rights = _RIGHTS[max(one for one in _RIGHTS if one <= version)]
    reads = _EXECUTE | _READ_FILE | _READ_DIR
    # since version 6 it also blocks signals to processes outside, and their abstract sockets
    handled = [rights, 0, *([3] if version >= 6 else [])]
    made = b"".join(one.to_bytes(8, sys.byteorder) for one in handled)
    ruleset = call(_CREATE, made, len(made), 0)
    if ruleset < 0:
        return "-refused"
    for word, path in places:
        granted = {"list": _READ_DIR, "read": reads, "write": rights}[word]
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if os.fstat(place).st_mode & _KIND != _FOLDER:
            granted &= _OF_FILES & rights
        rule = granted.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        answer = call(_ADD, ruleset, 1, rule, 0) if granted else 0
        os.close(place)
        if answer < 0:
            return "-refused"
    if call(_RESTRICT, ruleset, 0) < 0:
        return "-refused"
    os.close(ruleset)
    return str(version)


def _system_call() -> Callable[..., int]:
    """Return ``syscall`` of the C library; `ctypes` takes longer to load than everything else here."""
    import _ctypes

    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL

    return Call(_ctypes.dlsym(_ctypes.dlopen("", 0), "syscall"))


if __name__ == "__main__":
    main()
