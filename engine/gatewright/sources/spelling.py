"""The check that a path is spelled as its names stand on disk.

A file system may take two spellings for one name: `A` and `a`, composed and decomposed letters. Levels go by the text,
so a spelling that reaches an entry under another name is refused. A look for the same entry under another spelling
shows whether a folder folds names; the answer holds until the folder changes.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator

from gatewright.base.errors import ToolFailure
from gatewright.base.late import late_regex

_KEPT = 8_192
_MOST_LINKS = 40
_OF_A_PROCESS = late_regex(r"/proc/(?:thread-)?self(?:/.*)?/(?:cwd|root|exe|(?:fd|map_files)/[^/]+)")
_SELF = frozenset({"/proc/self", "/proc/thread-self"})
_STREAMS = frozenset({"/dev/stdin", "/dev/stdout", "/dev/stderr"})
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_SWAPPED = str.maketrans(_UPPER + _LOWER, _LOWER + _UPPER)

plain: dict[tuple[int, int], int] = {}
"""Folders known to tell spellings apart, by device and inode, with the time of their last change. Bounded."""


def refuse_other_spelling(path: str, status: os.stat_result, above: os.stat_result) -> None:
    """Raise ToolFailure if the entry at ``path``, in the folder ``above``, has another name on disk."""
    folder, _, name = path.rpartition("/")
    key = (above.st_dev, above.st_ino)
    if name.isascii() and (name.isdigit() or plain.get(key) == above.st_ctime_ns):
        return
    if not any(_is_same(f"{folder}/{other}", status) for other in _others(name)):
        if name.translate(_SWAPPED) != name:
            _remember(key, above.st_ctime_ns)
    elif name not in _names(folder):
        raise ToolFailure("on disk this name is spelled in another way", code="other-spelling")


def as_on_disk(path: str) -> str:
    """Spell an absolute path without links as its names stand on disk, as far as anybody can look."""
    spelled = ""
    for name in path.split("/")[1:]:
        spelled = f"{spelled}/{_spelling_on_disk(spelled or '/', name)}"
    return spelled


def _spelling_on_disk(folder: str, name: str) -> str:
    try:
        status = os.lstat(f"{folder}/{name}")
        if not any(_is_same(f"{folder}/{other}", status) for other in _others(name)):
            return name
        names = _names(folder)
    except (OSError, ToolFailure):
        return name
    if name in names:
        return name
    return next((other for other in names if _is_same(f"{folder}/{other}", status)), name)


def _others(name: str) -> Iterator[str]:
    """Yield spellings of a name that some file systems take for the same."""
    others = [name.translate(_SWAPPED), name.rstrip(". ")]
    if not name.isascii():
        others += [name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)]
    return (other for other in dict.fromkeys(others) if other not in {name, ""})


def _is_same(path: str, status: os.stat_result) -> bool:
    try:
        other = os.lstat(path)
    except (OSError, ValueError):
        return False
    return (other.st_dev, other.st_ino, stat.S_IFMT(other.st_mode)) == (
        status.st_dev,
        status.st_ino,
        stat.S_IFMT(status.st_mode),
    )


def _names(folder: str) -> list[str]:
    """List the names in a folder. Raises ToolFailure if nobody can: its spellings cannot be told apart."""
    try:
        return os.listdir(folder or "/")  # noqa: PTH208 - names alone, of a folder that may be large
    except OSError:
        raise ToolFailure("how this name is spelled on disk cannot be looked at", code="other-spelling") from None


def _remember(key: tuple[int, int], changed_ns: int) -> None:
    if len(plain) >= _KEPT:
        plain.clear()
    plain[key] = changed_ns


def differs_by_process(path: str) -> bool:
    """Tell whether an absolute path leads through a link that differs by process, as `/dev/fd` does.

    The standard streams do not count: shell commands name them, and they belong to the program's caller.
    """
    if path in _STREAMS:
        return False
    left, at, links = path.split("/")[::-1], "", 0
    while left:
        part = left.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        above, at = at, f"{at}/{part}"
        if _OF_A_PROCESS.fullmatch(at):
            return True
        if at in _SELF:
            continue
        try:
            target = os.readlink(at)  # noqa: PTH115
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return True
        at = "" if target.startswith("/") else above
        left += target.split("/")[::-1]
    return False
