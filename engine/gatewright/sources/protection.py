"""The places that no tool may touch whatever the globs say: the policy, the program's own state, and moved sources.

A protected path covers itself and everything below it, by its resolved path (so that it covers missing files too) and
by file identity (so that another way to the same file or folder gains nothing). A source's folder that appears
elsewhere than where the source opened it is closed: no rule of another source was written for it.
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
    """The currently protected places. ``bases``: the folders of sources, with the paths that opened them.

    ``ground``: the places on disk of their names.
    """

    prefixes: tuple[str, ...] = ()
    identities: frozenset[Identity] = frozenset()
    bases: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict[tuple[int, int], tuple[str, ...]])
    ground: Ground = Ground()

    def covers(self, absolute: str, identities: Iterable[Identity] = ()) -> bool:
        """Tell whether a place is protected: ``identities`` are its own and those of the folders on the way."""
        return any(is_below(absolute, prefix) for prefix in self.prefixes) or self.holds(absolute, identities)

    def is_in(self, folder: str) -> bool:
        """Tell whether something protected by its name lies below a folder."""
        top = folder.rstrip("/") + "/"
        return any(prefix.startswith(top) for prefix in self.prefixes)

    def holds(self, absolute: str, identities: Iterable[Identity], steps: Sequence[str] = ()) -> bool:
        """Tell whether an entry there or on the way is protected by its identity alone.

        ``steps``: the paths of these identities just now, one for each, where they are known.
        """
        for index, one in enumerate(identities):
            if one in self.identities:
                return True
            at_its_own_path = index < len(steps) and steps[index] in self.bases.get(one, ())
            if one in self.bases and not at_its_own_path and self._was_moved(one, absolute):
                return True
        return False

    def _was_moved(self, base: Identity, absolute: str) -> bool:
        """Tell whether the folder of a source, met on the way to a path, differs from the one at the source's own
        path.
        """
        own = [status_at(self.ground.place(path)) for path in self.bases[base] if is_below(absolute, path)]
        return base not in {(status.st_dev, status.st_ino) for status in own if status is not None}


def is_below(absolute: str, prefix: str) -> bool:
    """Tell whether a path is ``prefix`` or leads below it."""
    return absolute.startswith(prefix) and (absolute + "/").startswith(prefix.rstrip("/") + "/")


def status_at(path: str) -> os.stat_result | None:
    """Return the metadata at a path, a link's own; None if nobody can look there."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


class Protection:
    """The files and folders with level none. Files may come, go and be replaced: ``now`` looks up identities anew."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]] = (), ground: Ground | None = None) -> None:
        self.ground = ground or Ground()
        self._folders: tuple[BaseFolder, ...] = ()
        self.protect(paths)

    def protect(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Protect exactly these paths."""
        self._paths = tuple(os.path.abspath(os.fspath(path)) for path in paths)  # noqa: PTH100 - must not resolve
        self._prefixes = tuple(sorted({*self._paths, *map(self.ground.real, self._paths)}))
        self.by_name = ProtectedSet(self._prefixes, ground=self.ground)

    def hold(self, folders: Iterable[BaseFolder]) -> None:
        """Close exactly these folders wherever they appear except at their own paths."""
        self._folders = tuple(folders)

    def now(self) -> ProtectedSet:
        """Return the currently protected places; ``by_name`` holds the same without identities, and needs no disk."""
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
