"""The meaning of a `Confinement` for the files that are there: what is mounted where, and which names are hidden."""

from __future__ import annotations

from gatewright.base.frozen import frozen
from gatewright.base.word import Word


class MountKind(Word):
    """The way in which a path gets into a room; later mounts lie over earlier ones.

    overlay: the live folder to be read, without the names at whose place ``whiteouts`` holds a device 0/0. read, write:
    the file or folder itself. hide_file, hide_folder: something empty over what stands there, whose name is seen.
    """

    OVERLAY = "overlay"
    READ = "read"
    WRITE = "write"
    HIDE_FILE = "hide_file"
    HIDE_FOLDER = "hide_folder"


@frozen
class Mount:
    """One mount, at the same path inside as outside; ``whiteouts``: the folder with the hidden names of an overlay.

    ``origin``: what is mounted there, where it is not what stands at the path (the private copy of a snapshot).
    """

    kind: MountKind
    path: str
    whiteouts: str = ""
    origin: str = ""


@frozen
class RoomPlan:
    """The mounts of a room in their order. ``windows``: writable folders in which names are hidden as they appear."""

    mounts: tuple[Mount, ...] = ()
    windows: tuple[str, ...] = ()
