"""The ground of a workspace: where its policy and files are on disk, and which of them no tool may touch.

A disposable copy has the names of its original, since labels, levels, grants and reasons contain them: decisions,
screens and records use names, and every question to the disk first asks for the place of a name.

A protected path covers itself and everything below it, by its resolved path (so that it covers missing files too) and
by file identity (so that another way to the same file or folder gains nothing). A source's folder that also appears
elsewhere is closed there, since rules of other sources were not written for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.frozen import frozen
from gatewright.policy.document import Policy
from gatewright.sources.basefolder import BaseFolder, as_on_disk
from gatewright.sources.descriptor import Identity

SCHEMA_NAME = "policy.schema.json"

_MOST_LINKS = 40


@frozen
class Ground:
    """The folder ``origin`` (absolute, without links) lies at ``copy``; if both are empty, every name is its own place.

    ``outside``: the empty place to which links of the copy lead if they would leave ``origin``.
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
        """Return the place that a program reaches by a name; a link that leaves the original leads nowhere."""
        real, leads_out = self._walk(name) if self.origin else (os.path.realpath(name), False)
        return f"{self.outside}{real}" if leads_out else self.place(real)

    def stands(self, name: str) -> bool:
        """Tell whether something, even a link, exists at an absolute name."""
        if not self.origin:
            return os.path.lexists(name)
        folder, _, last = name.rstrip("/").rpartition("/")
        if last in {"", ".", ".."}:
            return os.path.lexists(self.place(self.real(name)))
        return os.path.lexists(self.place(f"{self.real(folder or '/').rstrip('/')}/{last}"))

    def _walk(self, name: str) -> tuple[str, bool]:
        """Resolve links as `os.path.realpath` does, and return True if one of them left the original."""
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
    """Move a path below ``folder`` to the same place below ``to``; any other path stays as it is."""
    return f"{to.rstrip('/')}{path[len(folder) :]}" or "/" if _is_in(path, folder) else path


_stat = os.stat


@frozen
class ProtectedSet:
    """The protected places at one moment. ``bases``: the folders of sources, with the paths by which they were opened.

    ``ground``: the places on disk of names.
    """

    prefixes: tuple[str, ...] = ()
    identities: frozenset[Identity] = frozenset()
    bases: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict[tuple[int, int], tuple[str, ...]])
    ground: Ground = Ground()

    def covers(self, absolute: str, identities: Iterable[Identity] = ()) -> bool:
        """Tell whether a place is protected; ``identities`` are its own and those of the folders on the way."""
        return any(is_below(absolute, prefix) for prefix in self.prefixes) or self.holds(absolute, identities)

    def is_in(self, folder: str) -> bool:
        """Tell whether something protected by its name lies below a folder."""
        top = folder.rstrip("/") + "/"
        return any(prefix.startswith(top) for prefix in self.prefixes)

    def holds(self, absolute: str, identities: Iterable[Identity], steps: Sequence[str] = ()) -> bool:
        """Tell whether an entry there or on the way is protected by its identity alone.

        ``steps``: the present paths of these identities, one for each, if known.
        """
        for index, one in enumerate(identities):
            if one in self.identities:
                return True
            at_its_own_path = index < len(steps) and steps[index] in self.bases.get(one, ())
            if one in self.bases and not at_its_own_path and self._was_moved(one, absolute):
                return True
        return False

    def _was_moved(self, base: Identity, absolute: str) -> bool:
        """Tell whether a source's folder, met on the way to a path, is not at the source's own path."""
        own = [status_at(self.ground.place(path)) for path in self.bases[base] if is_below(absolute, path)]
        return base not in {(status.st_dev, status.st_ino) for status in own if status is not None}


def is_below(absolute: str, prefix: str) -> bool:
    """Tell whether a path is ``prefix`` or lies below it."""
    return absolute.startswith(prefix) and (absolute + "/").startswith(prefix.rstrip("/") + "/")


def status_at(path: str) -> os.stat_result | None:
    """Return the metadata at a path (of a link itself); None if it cannot be read."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def entries_at(path: str) -> list[os.DirEntry[str]]:
    """List a folder; one that went meanwhile has nothing in it. Raises OSError for one that cannot be read."""
    try:
        with os.scandir(path) as entries:
            return [*entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


class Protection:
    """The files and folders with level none, which may come, go and be replaced; ``now`` looks up their identities."""

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
        """Return the places that are protected now; ``by_name`` has the same without identities, and needs no disk."""
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


POLICY_NAME = "policy.toml"


def policy_path_of(path: Path) -> Path:
    """Return the policy file that a path means, a file or a folder. Raises WorkspaceError if it is missing."""
    try:
        if path.is_dir():
            found = path / POLICY_NAME
            if not found.exists():
                raise WorkspaceError(f"no `{POLICY_NAME}` in `{path}`")
            return found.absolute()
        if not path.exists():
            raise WorkspaceError(f"`{path}` does not exist")
    except OSError as error:
        raise WorkspaceError(f"cannot look at `{path}`: {error.strerror or error}") from None
    return path.absolute()


def resolve_base(base_path: str, folder: Path) -> Path:
    """Return the real folder of a ``base_path``, relative to the policy's folder. Raises WorkspaceError."""
    try:
        return Path(as_on_disk(os.path.realpath(folder / base_path)))
    except OSError as error:  # a folder above was replaced
        raise WorkspaceError(f"cannot look at the folder `{base_path}`: {error.strerror or error}") from None


def list_folders(policy: Policy) -> list[str]:
    """List the folders of a policy's sources and roots, as written."""
    return [*(source.base_path for source in policy.folder_sources), *policy.roots.folders.values()]


def closed_places(policy: Policy, folder: Path) -> tuple[Path, ...]:
    """List the files and folders that a policy closes, existing or not; ``folder``: the policy's.

    Raises WorkspaceError for a `~` without a known home folder.
    """
    places = [os.path.expanduser(place) for place in policy.closed]  # noqa: PTH111 - it raises nothing
    if any(place.startswith("~") for place in places):
        raise WorkspaceError("`closed` of `[workspace]` names `~`, but the home folder is unknown: set `HOME`")
    return tuple(folder / place for place in places)


def is_inside(path: Path, folder: Path) -> bool:
    """Tell whether the real ``path`` is the real ``folder`` or below it."""
    return Path(as_on_disk(str(path))).is_relative_to(as_on_disk(os.path.realpath(folder)))


def place_file(folder: Path, name: str, content: bytes) -> Path:
    """Write a file at the relative path ``name`` of ``folder``, never outside. Raises OSError, WorkspaceError."""
    target = Path(os.path.normpath(folder / name))
    if not is_inside(Path(os.path.realpath(target.parent)), folder):
        raise WorkspaceError(f"`{name}` would be written outside `{folder}`")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    write_atomically(target, content)
    return target
