"""The plan of a room: from a `Confinement` to its mounts on Linux, or to a profile of macOS's Seatbelt.

Nothing is written into anybody's folders: whiteouts and the index lie in a folder of ours. A process removes its files
there at its end; after a killed process the next one does.

On macOS the program still denies whatever needs confinement. In a profile later lines win over earlier ones: first the
grants of the places, from the outer to the inner, then the denials by levels, closed and fixed paths, which nothing
lifts. Levels become patterns, so a new name is closed from its first moment; if Seatbelt cannot express a pattern, the
profile denies more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from gatewright.policy.document import PlaceUse
from gatewright.policy.glob import Token, Wild, as_bytes, parse_git_pattern
from gatewright.policy.target import Confinement, Tree, View, view_of
from gatewright.record.process import fork_safe_lock, renew_after_fork
from gatewright.sources.ground import is_below, status_at
from gatewright.sources.roomcopy import Difference, PrivateCopy, WhiteoutFolders, homes
from gatewright.sources.roomlayout import OWN_FOLDERS, MountPoints, RoomLayout
from gatewright.sources.roomview import FolderIndex, IndexFile, Mount, MountKind, RoomPlan, RoomViews, Row, refuse
from gatewright.sources.roomwatch import RoomListener, RoomWatch

MAX_MOUNTS = 1_000
MAX_HIDDEN = 50_000
"""The most mounts that a room may need, and the most names that all its overlays may hide."""
_MAX_OPTIONS = 3_800
"""The longest that both folders of an overlay may be together, in bytes, since the kernel reads one page of options."""
_PSEUDO = frozenset(
    [
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs"),
        "tracefs",
    ]
)
"""File systems that are windows into the kernel."""
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse.", "virtiofs", "ceph", "afs", "gfs", "ocfs", "lustre", "vboxsf", "vmhgfs")
"""Prefixes of file systems in which others change files while the kernel stays silent."""
_PLAIN = frozenset({MountKind.READ, MountKind.WRITE, MountKind.OVERLAY})
"""Mounts that show the files as they are, except for the names that an overlay hides."""
_INDEXES_KEPT = 16


class RoomPlanner:
    """Plans rooms. ``cache``: a folder of ours, made on first use. Any thread may call.

    A plan fits the disk at the moment of planning; `watch` keeps it true.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = fork_safe_lock()
        self._whiteouts: dict[str, WhiteoutFolders] = {}
        self._rows: dict[Path, dict[str, Row]] = {}
        self._copies: dict[RoomPlan, list[PrivateCopy]] = {}
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in a child of a fork, with its own whiteouts."""
        self._whiteouts = {}
        self._copies = {}

    def plan(self, confinement: Confinement) -> RoomPlan:
        """Plan the mounts. Raises ToolFailure if the kernel cannot hold the confinement."""
        with self._lock:
            return self._plan(confinement)

    def watch(self, confinement: Confinement, plan: RoomPlan, listener: RoomListener) -> RoomWatch:
        """Keep a plan true from now on; call this once for each plan. Raises ToolFailure."""

        def lay(notice: Callable[[str], None]) -> RoomLayout:
            with self._lock:
                return self.layout(confinement, notice)

        with self._lock:
            whiteouts = self._folders(self._home(confinement))
        return RoomWatch(plan, confinement, listener, whiteouts, lay=lay, release=lambda: self._release(plan))

    def whole(self, confinement: Confinement) -> dict[str, View]:
        """Return how each place looks as a whole, now and for later files, for programs that no kernel confines.

        Raises ToolFailure if a process would see parts of a place differently.
        """
        with self._lock:
            layout = self.layout(confinement)
        return {place.path: _whole(layout, place.path) for place in confinement.places}

    def differences(self, plan: RoomPlan) -> list[Difference]:
        """Return the changes of processes in the private copies of a plan, until its watch is closed."""
        with self._lock:
            copies = self._copies.get(plan, ())
        return [one for copy in copies for one in copy.differences()]

    def layout(self, confinement: Confinement, notice: Callable[[str], None] = lambda _: None) -> RoomLayout:
        """Lay out the mounts for the disk as it is now, and the hidden names still to make."""
        points = _mount_points(confinement)
        home = self._home(confinement)
        views = RoomViews(confinement, (str(self._private()), *homes()), points.all)
        kept = IndexFile(self._private(), confinement, points.all)
        known = self._rows.pop(kept.path, None)
        if known is None:
            known = kept.load()
        is_all = "/" in views.uses  # walking a whole disk would take too long
        is_deep = not is_all and any(place.use is not PlaceUse.READ for place in confinement.places)
        index = FolderIndex(views, known)
        layout = RoomLayout(views, index, points, home, is_deep=is_deep, notice=notice)
        layout.lay()
        if not is_deep and not is_all and layout.has_linked():
            index = FolderIndex(views, {**known, **index.rows})
            layout = RoomLayout(views, index, points, home, is_deep=True, notice=notice)
            layout.lay()
        if index.listed or len(index.rows) != len(known):
            kept.save(index.rows)
        self._rows[kept.path] = index.rows.copy()
        while len(self._rows) > _INDEXES_KEPT:
            del self._rows[next(iter(self._rows))]
        return layout

    def _plan(self, confinement: Confinement) -> RoomPlan:
        layout = self.layout(confinement)
        folders = self._folders(layout.home)
        if len(layout.mounts) > MAX_MOUNTS:
            raise refuse(
                f"{len(layout.mounts):,} files and folders would have to be mounted one by one, and at most"
                f" {MAX_MOUNTS:,} can be: fewer exceptions in what may be written, or smaller places"
            )
        hidden = sum(len(names) for names in layout.nodes.values())
        if hidden > MAX_HIDDEN:
            raise refuse(f"{hidden:,} names would have to be hidden one by one, and at most {MAX_HIDDEN:,} can be")
        uses = layout.views.uses
        copies: list[PrivateCopy] = []
        try:
            for place in uses:
                is_new = not any(is_below(place, one.place) for one in copies)
                if uses[place] is PlaceUse.SNAPSHOT and is_new and os.path.lexists(place):
                    copies.append(PrivateCopy(place, layout.views, self._folders(str(self._private())).path))
            made = (_complete_mount(mount, layout, copies, folders) for mount in layout.mounts)
            mounts = tuple(mount for mount in made if mount is not None)
        except BaseException as error:
            for copy in copies:
                copy.remove()
            if isinstance(error, OSError):
                raise refuse(f"names cannot be hidden: {error.strerror}") from None
            raise
        windows = (path for path in layout.windows if layout.views.use(path) is not PlaceUse.SNAPSHOT)
        plan = RoomPlan(mounts, tuple(sorted(windows)))
        if copies:
            self._copies[plan] = copies
        return plan

    def _release(self, plan: RoomPlan) -> None:
        with self._lock:
            for copy in self._copies.pop(plan, ()):
                copy.remove()
            for mount in plan.mounts:
                if mount.whiteouts:
                    self._folders(str(Path(mount.whiteouts).parents[1])).let_go(mount.whiteouts)

    def _home(self, confinement: Confinement) -> str:
        """Return our folder for the whiteouts of a confinement, if possible outside every place."""
        places = {place.path for place in confinement.places}
        outside = (one for one in homes() if not any(is_below(one, path) for path in places - {"/"}))
        if "/" in places:
            outside = (one for one in outside if one.split("/")[1] in OWN_FOLDERS)
        return next(outside, str(self._private()))

    def _folders(self, home: str) -> WhiteoutFolders:
        if home not in self._whiteouts:
            try:
                self._whiteouts[home] = WhiteoutFolders(Path(home))
            except OSError as error:
                raise refuse(f"the folder for hidden names cannot be used: {error.strerror}") from None
        return self._whiteouts[home]

    def _private(self) -> Path:
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise refuse(f"the folder for hidden names cannot be made: {error.strerror}") from None
        return Path(os.path.realpath(self._cache))


def _complete_mount(
    mount: Mount, layout: RoomLayout, copies: list[PrivateCopy], folders: WhiteoutFolders
) -> Mount | None:
    """Complete a mount with the folders of ours that it needs; None if a private copy does not contain it."""
    if copies and layout.views.use(mount.path) is PlaceUse.SNAPSHOT:
        return next(one for one in copies if is_below(mount.path, one.place)).mount(mount)
    if mount.kind is not MountKind.OVERLAY:
        return mount
    whiteouts = folders.take(mount.path, layout.nodes[mount.path])
    if sum(len(os.fsencode(path)) + 16 for path in (mount.path, whiteouts)) > _MAX_OPTIONS:
        raise refuse("the path of a place is too long for its names to be hidden")
    return Mount(mount.kind, mount.path, whiteouts)


def _whole(layout: RoomLayout, place: str) -> View:
    """Return how the process sees everything in a place. Raises ToolFailure if parts differ."""
    folder, mounts = layout.views.folder(place), [one for one in layout.mounts if is_below(one.path, place)]
    is_one = folder.is_settled and folder.own is folder.generic and folder.own is not View.ABSENT
    if not is_one or [(one.path, one.kind in _PLAIN) for one in mounts] != [(place, True)] or layout.nodes.get(place):
        raise refuse(f"not all that lies in `{place}`, or may come to lie there, is to be seen alike")
    return folder.own


def _mount_points(confinement: Confinement) -> MountPoints:
    """Find the current mounts at and below the places."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        raise refuse("this system does not tell what is mounted") from None
    found: dict[str, str] = {}
    under: dict[str, tuple[str, str]] = {}
    for line in lines:
        words = line.split(b" ")
        path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
        kind = words[words.index(b"-") + 1].decode("ascii", "replace")
        if any(is_below(path, place.path) for place in confinement.places):
            found[path] = kind
        for place in confinement.places:
            if is_below(place.path, path) and len(path) >= len(under.get(place.path, ("", ""))[0]):
                under[place.path] = path, kind
    closed = [status_at(path) for path in confinement.closed]
    identities = {(one.st_dev, one.st_ino) for one in closed if one is not None}
    points = {path: status_at(path) for path in found}
    return MountPoints(
        tuple(sorted(found)),
        frozenset(path for path, kind in found.items() if kind in _PSEUDO),
        frozenset(p for p, one in points.items() if one is not None and (one.st_dev, one.st_ino) in identities),
        frozenset(p for p, kind in (*found.items(), *under.values()) if kind.startswith(_REMOTE)),
    )


_HEAD = """\
; Gatewright: what a process may reach. Untested: no Mac has read this profile yet.
(version 1)
(deny default)
(allow process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-read* file-test-existence (literal "/"))
(allow file-read* file-map-executable process-exec*
  (subpath "/bin") (subpath "/sbin") (subpath "/usr") (subpath "/System") (subpath "/Library/Apple")
  (subpath "/private/var/db/dyld"))
(allow file-read* (subpath "/private/etc/ssl") (subpath "/private/var/db/timezone") (literal "/private/etc/localtime"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))"""
_READ = "file-read* file-map-executable process-exec*"
_GONE = "file-read* file-write* file-map-executable process-exec* file-link file-clone"
_IN_BRACKET = frozenset(b"]^-\\[")
_IN_REGEX = frozenset(b".[]{}()*+?^$|\\")
_HIDDEN = {MountKind.HIDE_FILE: "literal", MountKind.HIDE_FOLDER: "subpath"}


def seatbelt_profile(confinement: Confinement, plan: RoomPlan, *, proxy_port: int | None = None, own: str = "") -> str:
    """Write the profile of a process.

    ``proxy_port``: the port of its `HostProxy`, which is all it may connect to. ``own``: its private temporary folder.
    The plan matters only for what it hides besides the levels.
    """
    lines = [_HEAD]
    programs = [_filter("subpath", path) for path in confinement.programs]
    if programs:
        lines.append(f"(allow {_READ} {' '.join(programs)})")
    if confinement.hosts and proxy_port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{proxy_port}"))')
    origins = {mount.path: mount.origin for mount in plan.mounts if mount.origin}
    places = [(origins.get(place.path, place.path), place.use) for place in confinement.places]
    above = sorted({str(folder) for path, _ in places for folder in PurePosixPath(path).parents} - {"/"})
    if above:
        lines.append(f"(allow file-read-metadata {' '.join(_filter('literal', path) for path in above)})")
    for path, use in sorted(places):
        lines.append(f"(allow {_READ} {_filter('subpath', path)})")
        lines.append(f"({'deny' if use is PlaceUse.READ else 'allow'} file-write* {_filter('subpath', path)})")
    for tree in confinement.trees:
        lines += _lines_of(tree)
    lines += [f"(deny file-write* {_filter('subpath', path)})" for path in confinement.fixed]
    lines += [f"(deny {_GONE} {_filter('subpath', path)})" for path in confinement.closed]
    hidden = [(_HIDDEN[mount.kind], mount.path) for mount in plan.mounts if mount.kind in _HIDDEN]
    lines += [f"(deny {_GONE} {_filter(kind, path)})" for kind, path in hidden]
    if own:
        lines.append(f"(allow {_READ} file-write* {_filter('subpath', own)})")
    return "\n".join(lines) + "\n"


def _lines_of(tree: Tree) -> Iterator[str]:
    """Yield the denials by a source's levels: the first matching rule counts."""
    views = [view_of(rule.permission) for rule in tree.rules]
    for view, operations in ((View.ABSENT, _GONE), (View.READ, "file-write*")):
        found: list[str] = []
        for at, rule in enumerate(tree.rules):
            if views[at] is view:
                taken = _regex(tree.base, rule.pattern, widely=True)
                found.append(_but(taken, _laxer(tree, views[:at], view)))
        if view_of(tree.default) is view:
            found.append(_but(_filter("subpath", tree.base), _laxer(tree, views, view)))
        yield from (f"(deny {operations} {one})" for one in found)


def _laxer(tree: Tree, views: Sequence[View], view: View) -> list[str]:
    """List the paths of earlier rules that close less than ``view``."""
    rules = zip(tree.rules, views, strict=False)
    found = (_regex(tree.base, rule.pattern, widely=False) for rule, own in rules if own not in {View.ABSENT, view})
    return [one for one in found if one]


def _but(taken: str, exceptions: Iterable[str]) -> str:
    kept = list(exceptions)
    return f"(require-all {taken} (require-not (require-any {' '.join(kept)})))" if kept else taken


def _filter(kind: str, path: str) -> str:
    return f"({kind} {_quote(path)})"


def _regex(base: str, pattern: str, *, widely: bool) -> str:
    """Return a filter for the paths that a pattern covers in a source; if that is impossible, a filter for more paths
    (``widely``) or for fewer.

    A pattern for folders also covers a file of that name, or not the folder itself: Seatbelt cannot tell them apart.
    """
    parts = parse_git_pattern(pattern)
    if parts.tokens is None:
        return _filter("subpath", base) if widely else ""
    words = ["(.*/)?"] if parts.basename else []
    for token in parts.tokens:
        word = _word(token, widely=widely)
        if not word:
            return ""
        words.append(word)
    end = "/.*" if parts.folders_only and not widely else "(/.*)?"
    above = "".join(_plain(code) for code in as_bytes(base.rstrip("/")))
    text = f"^{above}/{''.join(words)}{end}$".encode("latin-1").decode("utf-8", "surrogateescape")
    return f"(regex {_quote(text)})"


def _word(token: Token, *, widely: bool) -> str:
    """Return a token in the syntax of Seatbelt's regular expressions on bytes; empty if only a wider one exists."""
    match token:
        case Wild.STAR:
            return "[^/]*"
        case Wild.DEEP_STAR:
            return ".*"
        case Wild.DEEP_FOLDERS:
            return "(.*/)?"
        case frozenset():
            return _set(token, widely=widely)


def _set(members: frozenset[int], *, widely: bool) -> str:
    if len(members) == 1:
        return _plain(next(iter(members)))
    can_be_said = members and max(members) < 128 and not members & _IN_BRACKET
    if can_be_said:
        return f"[{''.join(map(chr, sorted(members)))}]"
    if widely or len(members) == 254:  # all except NUL and the slash
        return "[^/]"
    return ""


def _plain(code: int) -> str:
    return f"\\{chr(code)}" if code in _IN_REGEX else chr(code)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
