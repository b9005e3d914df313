"""What no tool may touch whatever the globs say: the policy and the program's own state. It knows no source.

A protected path covers itself and everything below it, by its resolved path (so that what does not exist yet is
covered too) and by file identity (so that another way to the same file or folder gains nothing).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewright.sources.descriptor import Identity

_stat = os.stat


@dataclass(frozen=True, slots=True)
class ProtectedSet:
    """The protected places as they stand now."""

    prefixes: tuple[str, ...] = ()
    identities: frozenset[Identity] = frozenset()

    def covers(self, absolute: str, identities: Iterable[Identity] = ()) -> bool:
        """Whether a place is protected: ``identities`` are those of it and of the folders passed on the way."""
        for prefix in self.prefixes:
            if absolute.startswith(prefix) and (absolute + "/").startswith(prefix.rstrip("/") + "/"):
                return True
        return not self.identities.isdisjoint(identities)


class Protection:
    """The files and folders that have level none. Files may come, go and be replaced: identities are looked up anew."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]] = ()) -> None:
        self._paths = tuple(os.path.abspath(os.fspath(path)) for path in paths)  # noqa: PTH100 - must not resolve
        self._prefixes = tuple(sorted({*self._paths, *map(os.path.realpath, self._paths)}))
        self.by_name = ProtectedSet(self._prefixes)

    def now(self) -> ProtectedSet:
        """The protected places as they stand now; ``by_name`` knows no identities and asks no disk."""
        identities: list[Identity] = []
        for path in self._paths:
            try:
                status = _stat(path)
            except OSError:
                continue
            identities.append((status.st_dev, status.st_ino))
        return ProtectedSet(self._prefixes, frozenset(identities))
