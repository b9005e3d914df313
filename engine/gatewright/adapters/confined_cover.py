"""A short program that hides new files in a running room: it enters the room's mounts from outside, as the same user.

``python -I -S -E`` runs it with the number of the open namespace. It answers ``+`` once it is inside, then one
character for each order on its input, which ends with NUL: ``+`` done, ``0`` nothing at that path, ``-`` impossible.
``h`` and a path: hide the path. ``r`` and the path of an overlay: mount it again in its place, so that the kernel
forgets old targets of its names. ``o`` and a path: make it read-only. The program ends with its input. It opens paths
without following links and mounts on the open file: the program in the room may rename anything meanwhile.
"""

from __future__ import annotations

import _ctypes
import errno
import fcntl
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_OWNER_OF_NAMESPACE = 0xB701
_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x00020000
_SETNS = {"x86_64": 308, "aarch64": 268}
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _FSPICK, _OPENAT2 = 428, 429, 430, 431, 432, 433, 437
_MOUNT_SETATTR = 442
_HERE, _EMPTY_PATH, _DEEP, _CLONE = -100, 0x1000, 0x8000, 1
_FROM_AND_TO_BY_FILE = 0x04 | 0x40
_NO_LINKS = 0x02 | 0x04
_READ_ONLY_AND_NO_MORE = 1 | 2 | 4 | 8
_SET_FLAG, _SET_TEXT, _CREATE, _RECONFIGURE, _PICK_BY_FILE = 0, 1, 6, 7, 8
_NULL = os.makedev(1, 3)


def main() -> None:
    """Carry out one order after the other."""
    namespace, call = int(sys.argv[1]), _system_call()
    owner = fcntl.ioctl(namespace, _OWNER_OF_NAMESPACE)
    setns = _SETNS[os.uname().machine]
    if call(setns, owner, _NEW_USERS) < 0 or call(setns, namespace, _NEW_MOUNTS) < 0:
        os.write(1, b"-")
        return
    os.write(1, b"+")
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *orders, rest = (rest + chunk).split(b"\0")
        for order in orders:
            os.write(1, _do(order[:1], order[1:], call))


def _do(order: bytes, path: bytes, call: Callable[..., int]) -> bytes:
    how = b"".join(one.to_bytes(8, sys.byteorder) for one in (os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _NO_LINKS))
    place = call(_OPENAT2, _HERE, path, how, len(how))
    if place < 0:
        return b"0" if _ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR) else b"-"
    cover = -1
    try:
        if order == b"r":
            return b"+" if _renews(place, call) else b"-"
        if order == b"o":
            cover = _alike(call, place)
            return b"+" if _cover(call, cover, place) else b"-"
        found = os.fstat(place)
        if stat.S_ISLNK(found.st_mode) or found.st_rdev == _NULL:
            return b"+"  # a link leads to a path with its own level
        cover = _empty_folder(call) if stat.S_ISDIR(found.st_mode) else _nothing(call)
        return b"+" if _cover(call, cover, place) else b"-"
    finally:
        os.close(place)
        if cover >= 0:
            os.close(cover)


def _renews(place: int, call: Callable[..., int]) -> bool:
    picked = call(_FSPICK, place, b"", _PICK_BY_FILE)
    if picked < 0:
        return False
    steps = ((_SET_FLAG, b"ro"), (_RECONFIGURE, None))
    done = all(call(_FSCONFIG, picked, step, name, None, 0) == 0 for step, name in steps)
    os.close(picked)
    return done


def _cover(call: Callable[..., int], cover: int, place: int) -> bool:
    return cover >= 0 and call(_MOVE_MOUNT, cover, b"", place, b"", _FROM_AND_TO_BY_FILE) == 0


def _nothing(call: Callable[..., int]) -> int:
    """Make an unreadable file as a cover."""
    cover = call(_OPEN_TREE, _HERE, b"/dev/null", _CLONE | os.O_CLOEXEC)
    return _limit(call, cover, _READ_ONLY_AND_NO_MORE)


def _alike(call: Callable[..., int], place: int) -> int:
    """Make a read-only copy of the file or folder with all its mounts."""
    return _limit(call, call(_OPEN_TREE, place, b"", _CLONE | os.O_CLOEXEC | _EMPTY_PATH | _DEEP), 1)


def _limit(call: Callable[..., int], cover: int, attributes: int) -> int:
    wanted = b"".join(one.to_bytes(8, sys.byteorder) for one in (attributes, 0, 0, 0))
    if cover >= 0 and call(_MOUNT_SETATTR, cover, b"", _EMPTY_PATH | _DEEP, wanted, len(wanted)) < 0:
        os.close(cover)
        return -1
    return cover


def _empty_folder(call: Callable[..., int]) -> int:
    made = call(_FSOPEN, b"tmpfs", 1)
    if made < 0 or call(_FSCONFIG, made, _SET_TEXT, b"mode", b"0444", 0) < 0:
        return -1
    if call(_FSCONFIG, made, _CREATE, None, None, 0) < 0:
        return -1
    return call(_FSMOUNT, made, 1, _READ_ONLY_AND_NO_MORE)


def _system_call() -> Callable[..., int]:
    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO

    return Call(_ctypes.dlsym(_ctypes.dlopen("", 0), "syscall"))


if __name__ == "__main__":
    main()
