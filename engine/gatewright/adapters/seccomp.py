"""The filter of system calls of a confined process, as the kernel takes it: a program in the classic BPF.

It is a list of what is refused, for x86_64 and aarch64; calls of another architecture kill the process. What is newer
than this list, and what is asked for by more than the numbers in its registers (``clone3``, ``io_uring``), answers that
it does not exist, so that programs do without. Sockets are for addresses of the network alone: a Unix socket could be
reached by its path through every mount. A pair of them can be had, but not of datagrams, which may be sent to a path.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator

from gatewright.base.frozen import frozen

_REFUSED = {
    # the memory and the files of other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # keys, programs in the kernel, its events
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # the system as a whole
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "uselib": (134, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
_ABSENT = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_CLONE, _IOCTL, _SOCKET, _SOCKETPAIR = (56, 220), (16, 29), (41, 198), (53, 199)
_LAST = 469
"""The newest call that was looked at (``file_setattr``)."""
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080
"""The flags of ``clone`` for a new one: time, mount, cgroup, uts, ipc, user, pid, net."""
_TYPING = (0x5412, 0x541C)
"""``TIOCSTI`` and ``TIOCLINUX``: put characters into the terminal as if somebody typed them."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _SOCKET_TYPES = 1, 5, 0xF

_LOAD, _EQUAL, _ABOVE, _HAS, _MASK, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
Step = tuple[int, int, int, int]


@frozen
class _Machine:
    """A kind of processor: its place in the tables, its number for the kernel."""

    column: int
    audit: int


_MACHINES = {"x86_64": _Machine(0, 0xC000003E), "aarch64": _Machine(1, 0xC00000B7)}


def is_known(machine: str = "") -> bool:
    """Say if there is a filter for a kind of processor, by default this one."""
    return (machine or platform.machine()) in _MACHINES


def seccomp_filter(machine: str = "") -> bytes:
    """The filter, an array of ``struct sock_filter``. Raises KeyError for a processor that is not known."""
    steps = _steps(_MACHINES[machine or platform.machine()])
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _steps(machine: _Machine) -> Iterator[Step]:
    column = machine.column
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield from _unless(_EQUAL, machine.audit, _KILL)
    yield _LOAD, 0, 0, _NUMBER
    # those of x32 are above it, too
    yield from _when(_ABOVE, _LAST, _error(errno.ENOSYS))
    for table, number in ((_ABSENT, errno.ENOSYS), (_REFUSED, errno.EPERM)):
        for columns in table.values():
            if (call := columns[column]) is not None:
                yield from _when(_EQUAL, call, _error(number))
    for columns, steps in (
        (_CLONE, [_argument(0), *_when(_HAS, _NEW_NAMESPACES, _error(errno.EPERM))]),
        (_IOCTL, [_argument(1), *(step for one in _TYPING for step in _when(_EQUAL, one, _error(errno.EPERM)))]),
        (_SOCKET, list(_socket())),
        (_SOCKETPAIR, list(_pair())),
    ):
        yield _EQUAL, 0, len(steps) + 1, columns[column]
        yield from steps
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ALLOW


def _socket() -> Iterator[Step]:
    """A socket of the network, or one that asks the kernel for its interfaces and routes."""
    refused = _error(errno.EAFNOSUPPORT)
    yield _argument(0)
    for family in (_INET, _INET6):
        yield from _when(_EQUAL, family, _ALLOW)
    yield from _unless(_EQUAL, _NETLINK, refused)
    yield _argument(2)
    yield from _unless(_EQUAL, 0, refused)


def _pair() -> Iterator[Step]:
    """A pair that is connected for good."""
    refused = _error(errno.EAFNOSUPPORT)
    yield _argument(0)
    yield from _unless(_EQUAL, _UNIX, refused)
    yield _argument(1)
    yield _MASK, 0, 0, _SOCKET_TYPES
    yield from _when(_EQUAL, _STREAM, _ALLOW)
    yield from _unless(_EQUAL, _SEQPACKET, refused)


def _argument(number: int) -> Step:
    """Load the lower half of an argument, of which the kernel takes no more in what is looked at here."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * number


def _when(test: int, value: int, result: int) -> Iterator[Step]:
    yield test, 0, 1, value
    yield _RETURN, 0, 0, result


def _unless(test: int, value: int, result: int) -> Iterator[Step]:
    yield test, 1, 0, value
    yield _RETURN, 0, 0, result


def _error(number: int) -> int:
    return 0x00050000 | number
