"""The places on disk of a workspace's files: their names, or the paths of a disposable copy.

A copy has the names of its original, since labels, levels, grants and reasons consist of them: decisions, screens and
records use names, and every question to the disk first asks for the place of a name.
"""

from __future__ import annotations

import os

from gatewright.base.frozen import frozen

_MOST_LINKS = 40


@frozen
class Ground:
    """The folder ``origin`` (absolute, without links) stands at ``copy``; both empty: every name is its own place.

    ``outside``: the empty place that links of the copy lead to if they lead out of ``origin``.
    """

    origin: str = ""
    copy: str = ""
    outside: str = ""

    def place(self, name: str) -> str:
        """Return the place on disk of an absolute name without links and ``..``."""
        return _move(name, self.origin, self.copy) if self.origin else name

    def name(self, place: str) -> str:
        """Return the name of a place on disk."""
        if not self.origin:
            return place
        return _move(_move(place, self.copy, self.origin), self.outside, "/")

    def real(self, name: str) -> str:
        """Resolve links and ``..`` in a name. Raises OSError and ValueError as `os.path.realpath` does."""
        return self._walk(name)[0] if self.origin else os.path.realpath(name)

    def reach(self, name: str) -> str:
        """Return the place that a program gets for a name: a link that left the original leads nowhere."""
        real, leads_out = self._walk(name) if self.origin else (os.path.realpath(name), False)
        return f"{self.outside}{real}" if leads_out else self.place(real)

    def stands(self, name: str) -> bool:
        """Tell whether something stands at an absolute name, a link included."""
        if not self.origin:
            return os.path.lexists(name)
        folder, _, last = name.rstrip("/").rpartition("/")
        if last in {"", ".", ".."}:
            return os.path.lexists(self.place(self.real(name)))
        return os.path.lexists(self.place(f"{self.real(folder or '/').rstrip('/')}/{last}"))

    def _walk(self, name: str) -> tuple[str, bool]:
        """Resolve links as `os.path.realpath` does, and tell whether one led out of the original."""
        path, links, leads_out = "", 0, False
        rest = name.split("/")[::-1]
        while rest:
            part = rest.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                path = path.rpartition("/")[0]
                continue
            step = f"{path}/{part}"
            try:
                target = os.readlink(self.place(step))  # noqa: PTH115 - plain texts
            except OSError:
                path = step
                continue
            links += 1
            if links > _MOST_LINKS:
                return "/".join([step, *rest[::-1]]), leads_out
            target = self.name(target)
            if target.startswith("/"):
                path = ""
                leads_out = leads_out or (_is_in(step, self.origin) and not _is_in(target, self.origin))
            rest += target.split("/")[::-1]
        return path or "/", leads_out and not _is_in(path, self.origin)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _move(path: str, folder: str, to: str) -> str:
    """Put a path below ``folder`` below ``to``; leave any other as it is."""
    return f"{to.rstrip('/')}{path[len(folder) :]}" or "/" if _is_in(path, folder) else path
