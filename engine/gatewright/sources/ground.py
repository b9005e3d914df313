"""Where a workspace's files stand on disk: where their names say, but for a disposable copy.

A copy has the names of its original, since labels, levels, grants and reasons are made of them: what is decided, shown
or recorded is a name, and whatever asks the disk asks for the place of that name first.
"""

from __future__ import annotations

import os

from gatewright.base.frozen import frozen

_MOST_LINKS = 40


@frozen
class Ground:
    """The folder ``origin`` (absolute, without links) stands at ``copy``; both empty: every name is its own place.

    ``outside``: where the links of the copy lead that lead out of ``origin``; nothing is there.
    """

    origin: str = ""
    copy: str = ""
    outside: str = ""

    def place(self, name: str) -> str:
        """Where an absolute name without links and ``..`` stands on disk."""
        return _moved(name, self.origin, self.copy) if self.origin else name

    def name(self, place: str) -> str:
        """What stands at a place on disk is called."""
        if not self.origin:
            return place
        return _moved(_moved(place, self.copy, self.origin), self.outside, "/")

    def real(self, name: str) -> str:
        """The name without links and ``..``. Raises OSError and ValueError as `os.path.realpath` does."""
        return self._walk(name)[0] if self.origin else os.path.realpath(name)

    def reach(self, name: str) -> str:
        """The place that a program is given for a name: a link that led out of the original leads nowhere."""
        real, leads_out = self._walk(name) if self.origin else (os.path.realpath(name), False)
        return f"{self.outside}{real}" if leads_out else self.place(real)

    def stands(self, name: str) -> bool:
        """Whether something stands at an absolute name, a link included."""
        if not self.origin:
            return os.path.lexists(name)
        folder, _, last = name.rstrip("/").rpartition("/")
        if last in {"", ".", ".."}:
            return os.path.lexists(self.place(self.real(name)))
        return os.path.lexists(self.place(f"{self.real(folder or '/').rstrip('/')}/{last}"))

    def _walk(self, name: str) -> tuple[str, bool]:
        """The name without links, resolved as `os.path.realpath` does; whether a link led out of the original."""
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


def _moved(path: str, folder: str, to: str) -> str:
    """The path below ``to`` where it is below ``folder``, else as it is."""
    return f"{to.rstrip('/')}{path[len(folder) :]}" or "/" if _is_in(path, folder) else path
