"""What no tool may touch whatever the globs say: the policy, the program's own state, and sources that were moved.

A protected path covers itself and everything below it, by its resolved path (so that what does not exist yet is
covered too) and by file identity (so that another way to the same file or folder gains nothing). The folder of a source
that is met elsewhere than where it was opened is closed: no rule of another source was written for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from gatewright.base.frozen import frozen
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.descriptor import Identity
from gatewright.sources.ground import Ground

_stat = os.stat


@frozen
class ProtectedSet:
    """The protected places as they stand now. ``bases``: the folders of sources, and where they were opened.

    ``ground``: where their names stand on disk.
    """

    prefixes: tuple[str, ...] = ()
    identities: frozenset[Identity] = frozenset()
    bases: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict[tuple[int, int], tuple[str, ...]])
    ground: Ground = Ground()

    def covers(self, absolute: str, identities: Iterable[Identity] = ()) -> bool:
        """Whether a place is protected: ``identities`` are those of it and of the folders passed on the way."""
        return any(is_below(absolute, prefix) for prefix in self.prefixes) or self.holds(absolute, identities)

    def is_in(self, folder: str) -> bool:
        """Whether something protected by its name is below a folder."""
        top = folder.rstrip("/") + "/"
        return any(prefix.startswith(top) for prefix in self.prefixes)

    def holds(self, absolute: str, identities: Iterable[Identity], steps: Sequence[str] = ()) -> bool:
        """Whether it is protected by what stands there, or on the way, alone.

        ``steps``: the paths at which the identities were found just now, one for each, where that is known.
        """
        for index, one in enumerate(identities):
            if one in self.identities:
                return True
            at_its_own_path = index < len(steps) and steps[index] in self.bases.get(one, ())
            if one in self.bases and not at_its_own_path and self._was_moved(one, absolute):
                return True
        return False

    def _was_moved(self, base: Identity, absolute: str) -> bool:
        """Whether the folder of a source that stands on the way to a path is not the one at the source's own path."""
        own = [status_at(self.ground.place(path)) for path in self.bases[base] if is_below(absolute, path)]
        return base not in {(status.st_dev, status.st_ino) for status in own if status is not None}


def is_below(absolute: str, prefix: str) -> bool:
    """Whether a path is ``prefix`` or leads below it."""
    return absolute.startswith(prefix) and (absolute + "/").startswith(prefix.rstrip("/") + "/")


def status_at(path: str) -> os.stat_result | None:
    """The metadata of what stands at a path, a link's own; None where that cannot be looked at."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


class Protection:
    """The files and folders that have level none. Files may come, go and be replaced: identities are looked up anew."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]] = (), ground: Ground | None = None) -> None:
        self.ground = ground or Ground()
        self._folders: tuple[BaseFolder, ...] = ()
        self.protect(paths)

    def protect(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Have these protected, and no others."""
        self._paths = tuple(os.path.abspath(os.fspath(path)) for path in paths)  # noqa: PTH100 - must not resolve
        self._prefixes = tuple(sorted({*self._paths, *map(self.ground.real, self._paths)}))
        self.by_name = ProtectedSet(self._prefixes, ground=self.ground)

    def hold(self, folders: Iterable[BaseFolder]) -> None:
        """Close these folders wherever they are met but at their own paths; those of before not any more."""
        self._folders = tuple(folders)

    def now(self) -> ProtectedSet:
        """The protected places as they stand now; ``by_name`` knows no identities and asks no disk."""
        identities: list[Identity] = []
        for path in self._paths:
            try:
                status = _stat(self.ground.place(self.ground.real(path)) if self.ground.origin else path)
            except OSError:
                continue
            identities.append((status.st_dev, status.st_ino))
        bases: dict[Identity, tuple[str, ...]] = {}
        for folder in self._folders:
            if (found := folder.known_identity) is not None:
                bases[found] = (*bases.get(found, ()), folder.path)
        return ProtectedSet(self._prefixes, frozenset(identities), bases, self.ground)
