"""A `Confinement` as a profile of macOS's Seatbelt, the text for ``sandbox-exec -p``; nobody has tried it on a Mac yet.

On macOS the program still denies what it would have to confine. Later lines win over earlier ones: first the grants of
the places, from the outer to the inner, then the denials by levels, closed and fixed paths, which nothing lifts. Levels
are patterns here, so a new name is closed from its first moment; where Seatbelt cannot express a pattern, it denies
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from gatewright.policy.document import PlaceUse
from gatewright.policy.glob import Token, Wild, as_bytes, parse_git_pattern
from gatewright.policy.target import Confinement, Tree, View, view_of
from gatewright.sources.roomview import MountKind, RoomPlan

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
    """Write the profile of a process. ``proxy_port``: the port of its `HostProxy`, its only connection.

    ``own``: its private temporary folder. The plan matters only for what it hides beside the levels.
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
    """Filter the paths that a pattern covers in a source; if none fits, more (``widely``) or less, perhaps nothing.

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
    """Return a token as Seatbelt's regular expressions on bytes; empty if it cannot cover less."""
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
