"""The files in the places of a process as it would see them: read and counted in threads, with nothing of the window.

Whoever asks drops an answer that comes too late; cancelling tells the thread to stop.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from itertools import count
from typing import NamedTuple, TypeVar

from gatewright.workspace.api import RoomViews, View, frozen
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.courtesy import Stop
from gatewright_gui.session.file_index import StoppedError

T = TypeVar("T")
MAX_ENTRIES = 5_000
"""Entries of one folder that are listed; the rest is only counted."""
MAX_COUNTED = 1_000_000
_LOOK_EVERY = 256


class RoomEntry(NamedTuple):
    """One name in a folder; a link is neither followed nor a folder."""

    name: str
    path: str
    is_folder: bool


@frozen
class RoomListing:
    """A folder's entries, folders first, and how many more it has."""

    entries: Sequence[RoomEntry]
    more: int = 0


@frozen
class ViewCount:
    """The numbers of files that are hidden, to be read, to be changed."""

    hidden: int = 0
    read: int = 0
    write: int = 0

    @property
    def files(self) -> int:
        """All of them."""
        return self.hidden + self.read + self.write

    @property
    def views(self) -> frozenset[View]:
        """The views that any of them has."""
        pairs = ((View.ABSENT, self.hidden), (View.READ, self.read), (View.WRITE, self.write))
        return frozenset(view for view, number in pairs if number)

    @property
    def words(self) -> str:
        """In a narrow column."""
        files = counted(self.files, "file", "files")
        is_partial = 0 < self.hidden < self.files
        return tr("{files}, {count} hidden", files=files, count=f"{self.hidden:,}") if is_partial else files


@frozen
class PlaceCount:
    """The counts of a place by folder, the place itself too. `truncated`: counting stopped at its limit.

    `fault`: why nothing of it can be counted, in a word or two.
    """

    folders: Mapping[str, ViewCount]
    truncated: bool = False
    fault: str = ""


def list_folder(path: str, stop: Stop) -> RoomListing:
    """The entries of a folder. Raises OSError, StoppedError."""
    seen = count()
    with os.scandir(path) as entries:
        named = (entry for entry in entries if next(seen) % _LOOK_EVERY or not _is_over(stop))
        wanted = nsmallest(MAX_ENTRIES, ((not _is_folder(one), one.name.casefold(), one.name) for one in named))
    top = path.rstrip("/")
    listed = tuple(RoomEntry(name, f"{top}/{name}", not is_file) for is_file, _, name in wanted)
    return RoomListing(listed, next(seen) - len(listed))


def count_files(views: RoomViews, place: str, stop: Stop, progress: Callable[[int], None]) -> PlaceCount:
    """Count the files of a place by what the process sees of each. Raises OSError for the place, StoppedError."""
    if not stat.S_ISDIR(os.lstat(place).st_mode):
        return PlaceCount({place: _count([views.view(place, folder=False)])})
    found: dict[str, ViewCount] = {}
    waiting, seen = [place], 0
    while waiting and seen < MAX_COUNTED:
        folder = waiting.pop()
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen % _LOOK_EVERY == 0:
                        _is_over(stop)
                        progress(seen)
                    if _is_folder(entry):
                        waiting.append(entry.path)
                    else:
                        names.append(entry.name)
        except OSError:
            if folder == place:
                raise
            continue
        about = views.folder(folder)
        found[folder] = _count([about.generic] * len(names) if about.is_settled else views.names(folder, names))
    for folder, own in reversed(found.items()):  # a folder was walked before those in it
        above = folder[: max(folder.rfind("/"), 1)]
        if folder != place and above in found:
            found[above] = _sum(found[above], own)
    return PlaceCount(found, bool(waiting))


def _count(views: Sequence[View]) -> ViewCount:
    by_view = Counter(views)
    return ViewCount(by_view[View.ABSENT], by_view[View.READ], by_view[View.WRITE])


def _sum(one: ViewCount, other: ViewCount) -> ViewCount:
    return ViewCount(one.hidden + other.hidden, one.read + other.read, one.write + other.write)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_over(stop: Stop) -> bool:
    if stop():
        raise StoppedError
    return False
