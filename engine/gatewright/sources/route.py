"""Finds the source or root, and the place in it, to which a path, a label or a text in arguments leads.

It has more than 450 lines because a path takes the same steps whoever asks.

Roots are the bases of the running sources, the workspace's folder and the prefixes granted to the agent. A resolved
path contains no link at the time of asking; the tool detects later changes on the descriptor that it opens. A refusal
has the same words for the model whatever is there, so that it reveals nothing that the model may not see.

``..`` is resolved in the text: since no symlink is followed, text and disk agree. ``arguments`` finds the readings;
this module resolves links and looks at the disk. A foreign tool may do to all files in a folder what it does to the
folder, so a folder gets the strictest level of its content.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gatewright.arguments.path import (
    ModelPath,
    PathRefused,
    compose_letters,
    parent_of_glob,
    parse_model_path,
    readings,
)
from gatewright.arguments.shell_program import Listing
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.policy.target import FileTarget, LevelDecision, Located, NamedPlace, Refusal
from gatewright.policy.verdict import Action, Permission, Verdict, reads_freely, verdict_for
from gatewright.sources.basefolder import READ_AGAIN, REPLACED, as_on_disk, differs_by_process
from gatewright.sources.descriptor import identity_of, look_along, look_from_top, unusable, without_dots
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.ground import Ground, ProtectedSet, is_below, status_at
from gatewright.sources.known import KnownPlaces, strictest_level

HINT = "that path is not available to you; choose another one"


@frozen
class DiskPaths:
    """The roots of one call. ``folder`` None: the call has none. ``prefixes`` are absolute, with links resolved."""

    sources: Iterable[FileSource]
    protected: ProtectedSet
    folder: str | None
    prefixes: Sequence[str] = ()

    def find(self, text: str, *, parameter: str, writes: bool) -> FileTarget | Refusal:
        """Find the file or folder that ``text`` names, existing or not. Never raises."""
        parsed = parse_model_path(text)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        if not parsed.absolute and self.folder is None:
            return Refusal(
                "no-folder", f"`{parsed}` is relative, and there is no folder that it could start from", HINT
            )
        ground = self.protected.ground
        written = "/".join(("" if parsed.absolute else self.folder or "", *parsed.parts)) or "/"
        try:
            absolute = ground.real(written)
            absolute.encode()
        except (OSError, ValueError) as error:
            return Refusal("unresolvable", f"`{parsed}` cannot be resolved: {type(error).__name__}", HINT)
        refused = self._unusable(absolute)
        if refused is not None:
            return refused
        root = self._root(absolute)
        if root is None:
            return Refusal("outside-roots", f"`{parsed}` is `{absolute}`, outside of everything granted", HINT)
        source_id, base = root
        relative = absolute[len(base.rstrip("/")) + 1 :] or "."
        place = ground.reach(written) if ground.origin else None
        return FileTarget(parameter, relative, absolute, writes, source_id, stands=place)

    def _unusable(self, absolute: str) -> Refusal | None:
        try:
            standing = look_from_top(self.protected.ground.place(absolute))
        except ToolFailure as failure:
            if self.protected.covers(absolute):
                return refusal_of_protected(absolute)
            return Refusal(failure.code, f"`{absolute}`: {failure}", HINT)
        if self.protected.covers(absolute, standing.identities):
            return refusal_of_protected(absolute)
        if standing.status is None:
            return None
        if standing.is_folder:
            return refusal_of_protected(absolute, "holds what is") if self.protected.is_in(absolute) else None
        failure = unusable(standing.status)
        return None if failure is None else Refusal(failure.code, f"`{absolute}`: {failure}", HINT)

    def _root(self, absolute: str) -> tuple[str | None, str] | None:
        """Return the root that holds a path: the innermost source, else the folder, else the innermost prefix."""
        held = [(source.source_id, source.base) for source in self.sources if is_below(absolute, source.base)]
        if held:
            return max(held, key=lambda root: len(root[1]))
        folder = self.protected.ground.real(self.folder) if self.folder is not None else None
        if folder is not None and is_below(absolute, folder):
            return None, folder
        prefix = max((prefix for prefix in self.prefixes if is_below(absolute, prefix)), key=len, default=None)
        return None if prefix is None else (None, prefix)


def refusal_of_protected(absolute: str, how: str = "is") -> Refusal:
    """Return the refusal of a path that no tool may reach."""
    return Refusal(
        "protected",
        f"`{absolute}` {how} protected, or in the folder of a moved source: no tool reaches it",
        HINT,
    )


_SHOWN = 200
_LABEL = re.compile(r"file:[0-9a-f]{8}:(.+)", re.DOTALL)
_OUTSIDE_HINT = "give a path inside the source, relative to its top folder"
_NO_SOURCE_HINT = "there is no such source"
_NO_LABEL_HINT = "there is no such block label"


@frozen
class Route:
    """The running sources and the answers for their places."""

    places: KnownPlaces

    def of_path(self, path: str, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        """Find the place of a model's path."""
        parsed = parse_model_path(path)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        sources = self._sources(source_id, allowed)
        if isinstance(sources, Refusal):
            return sources
        relative = _relative(parsed)
        if parsed.absolute:
            absolute = "/" if relative == BASE else f"/{relative}"
            found = [(one, inside) for one in sources if (inside := one.relative_of(absolute)) is not None]
            if relative is None or not found:
                return Refusal("outside-base", f"`{parsed}` lies outside the agent's sources", _OUTSIDE_HINT)
            source, relative = max(found, key=lambda one: len(one[0].base))
        elif relative is None:
            return Refusal("outside-base", f"`{parsed}` leads above the base", _OUTSIDE_HINT)
        else:
            source = sources[0]
            for one in sources if len(sources) > 1 else ():
                if self._counts(one, relative):
                    source = one
                    break
        return self._usable(source, relative, folder=parsed.folder)

    def of_label(self, label: str, allowed: Sequence[str]) -> Located | Refusal:
        """Find the place of a block's label."""
        sources = self._sources(None, allowed)
        if isinstance(sources, Refusal):
            return sources
        relative = relative_in(label)
        source = next((s for s in sources if relative is not None and s.label(relative) == label), None)
        if source is not None and relative is not None:
            return self._usable(source, relative, folder=False)
        return Refusal(
            "unknown-label", f"no file of the agent's sources has the label `{label[:_SHOWN]}`", _NO_LABEL_HINT
        )

    def _sources(self, source_id: str | None, allowed: Sequence[str]) -> list[FileSource] | Refusal:
        running = self.places.running
        sources = [running[name] for name in allowed if name in running and source_id in {None, name}]
        if sources:
            return sources
        if source_id is None:
            return Refusal("no-source", "no source of the agent is attached", "no source is attached")
        why = "is not one of the agent's sources" if source_id not in allowed else "is not attached"
        return Refusal("unknown-source", f"source `{source_id}` {why}", _NO_SOURCE_HINT)

    def _counts(self, source: FileSource, relative: str) -> bool:
        """Tell whether something exists there; a closed place never counts, since that would reveal its content."""
        if self.places.find(source, relative).is_closed:
            return False
        try:
            return source.look(relative).exists
        except ToolFailure as failure:
            # an entry that nobody may look at may exist: the call stays with this source, which refuses it
            return failure.code not in {"source-missing", "not-a-folder"}

    def _usable(self, source: FileSource, relative: str, *, folder: bool) -> Located | Refusal:
        """Return the place with its level, or its refusal, which hides everything behind level none."""
        known = self.places.find(source, relative)
        if known.is_closed:
            return Located(source.source_id, relative, known.file.absolute)
        try:
            standing = look_along(known.steps, source.folder)
            status = standing.status
            if folder:
                failure = None if standing.is_folder else _no_folder(status)
            else:
                failure = None if status is None or standing.is_folder else unusable(status)
        except ToolFailure as met:
            failure = met
        else:
            if failure is None:
                return known.place(standing, self.places.protection.now())
        more = f"; {READ_AGAIN}" if failure.code == REPLACED else ""
        return Refusal(failure.code, f"`{relative}` in source `{source.source_id}`: {failure}{more}", str(failure))


def relative_in(label: str) -> str | None:
    """Return the canonical relative path at the end of a label, or None."""
    found = _LABEL.fullmatch(label)
    parsed = parse_model_path(found[1]) if found is not None else None
    if found is None or not isinstance(parsed, ModelPath):
        return None
    relative = _relative(parsed)
    return relative if relative == found[1] and relative != BASE else None


def _relative(path: ModelPath) -> str | None:
    parts = without_dots(path.parts) if ".." in path.parts else path.parts
    return None if parts is None else "/".join(parts) or BASE


def _no_folder(status: os.stat_result | None) -> ToolFailure:
    if status is None:
        return ToolFailure("there is no such folder", code="not-found")
    return ToolFailure("this is a file, not a folder", code="not-a-folder")


MAX_ENTRIES = 20_000
"""The most entries to examine below a folder; after that the strictest possible level is assumed."""
_NONE = LevelDecision(Permission.NONE)
_PROTECTED = LevelDecision(Permission.NONE, protected=True)


@frozen
class Look:
    """The question about a text. ``contents``: count the entries of a folder, with ``lists`` only the names that it
    shows.

    ``patterns``: signs of a pattern act as such. ``files``: what is not there is meant as a file. ``endings``: of the
    files in a folder, only names with one of these (in small letters) count; None: all. ``confined``: whoever uses
    the path runs by the levels itself, so that of things in a folder only those count whose level asks first.
    """

    action: Action
    contents: bool
    patterns: bool = True
    lists: Listing | None = None
    files: bool = False
    endings: tuple[str, ...] | None = None
    confined: bool = False


@frozen
class NamedPlaces:
    """The running sources and the current protection."""

    places: KnownPlaces
    protected: ProtectedSet

    @property
    def _ground(self) -> Ground:
        return self.protected.ground

    def of(self, text: str, look: Look, *, folders: Sequence[str] | None, bases: bool) -> tuple[NamedPlace, ...] | None:
        """Return every place that ``text`` may mean, with its level for the action; None if it may mean too many.

        ``folders`` None: only absolute paths count; else the folders where a relative path may start. With ``bases`` it
        may also start in the sources' bases, and then folders above a base count as well.
        """
        read = readings(text)
        if read is None:
            return None
        absolute, relative = read
        found: dict[tuple[str, str, str | None], NamedPlace] = {}
        for path in absolute:
            for place in self._at(path, look, above=folders is not None):
                found.setdefault((place.absolute, place.inside, place.source_id), place)
        for path in relative if folders is not None else ():
            for start, joined in self._starts(path, folders or (), bases=bases):
                for place in self._at(joined, look, above=start in (folders or ()), start=start):
                    found.setdefault((place.absolute, place.inside, place.source_id), place)
        return tuple(found.values())

    def at(self, paths: Iterable[str], look: Look) -> tuple[NamedPlace, ...]:
        """Return the places of absolute paths, read in no other way."""
        places = (place for path in paths for place in self._at(path, look, above=True))
        return tuple({(one.absolute, one.inside, one.source_id): one for one in places}.values())

    def _starts(self, path: str, folders: Sequence[str], *, bases: bool) -> Iterator[tuple[str, str]]:
        """Yield each folder where a relative path may start, with the rest of the path.

        It may start in a base, or in a folder above a base if the path begins with the name of the next folder on the
        way: only if something could exist there, or if nobody may look.
        """
        for folder in folders:
            yield folder, f"{folder}/{path}"
        parts = [part for part in os.path.normpath(path).split("/") if part not in {"..", "."}]
        for source in self.places.running.values() if bases else ():
            base = source.base.strip("/").split("/")
            for count in range(min(len(base), len(parts)) + 1):
                if count and base[-count:] != parts[:count]:
                    continue
                joined = "/".join([source.base.rstrip("/"), *parts[count:]]) or "/"
                relative = "/".join(parts[count:]) or BASE
                if self._ground.stands(os.path.dirname(joined)) or self.places.find(source, relative).is_closed:  # noqa: PTH120
                    yield "/" + "/".join(base[: len(base) - count]), joined

    def _at(self, path: str, look: Look, *, above: bool, start: str | None = None) -> Iterator[NamedPlace]:
        """Yield what a path may mean, with links resolved: places in sources, protected ones, or one place outside."""
        real = self._real(path)
        if real is None:
            return
        glob = parent_of_glob(path) if look.contents and look.patterns and not self._ground.stands(path) else None
        if glob is not None:
            yield from self._at(glob, look, above=above, start=start)
        status = status_at(self._ground.place(real))
        over_links = glob is not None and (glob == "/dev/" or glob.startswith("/proc/"))  # `/dev/f*` may be `/dev/fd`
        is_elsewhere = over_links or (real != path and differs_by_process(path))
        if is_elsewhere or self._is_protected(real):
            yield NamedPlace(real, None, BASE, _PROTECTED, start)
            return
        held = [
            (source, rel) for source in self.places.running.values() if (rel := source.relative_of(real)) is not None
        ]
        if held:
            source, relative = max(held, key=lambda one: len(one[0].base))
            yield self._judge(source, relative, status, look, start)
        else:
            yield NamedPlace(real, None, BASE, None, start)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            yield from self._other_names(real, status, start)
        if look.contents and above and not held:
            yield from self._below(real, look, start)

    def _real(self, path: str) -> str | None:
        """Resolve links, and spell the path as the disk does if it leads to a source; None if it is no path."""
        try:
            real = self._ground.real(path)
            real.encode()
        except (OSError, ValueError):
            return None
        folded = _fold_case(real)
        for source in self.places.running.values():
            if not real.startswith(source.base) and folded.startswith(_fold_case(source.base)):
                return self._ground.name(as_on_disk(self._ground.place(real)))
        return real

    def _is_protected(self, real: str) -> bool:
        try:
            identities = look_from_top(self._ground.place(real)).identities
        except ToolFailure:
            identities = ()
        return self.protected.covers(real, identities)

    def _judge(
        self,
        source: FileSource,
        relative: str,
        status: os.stat_result | None,
        look: Look,
        start: str | None,
    ) -> NamedPlace:
        absolute = source.absolute(relative)
        inside, level = "", self._level(source, relative, look)
        is_folder = status is not None and stat.S_ISDIR(status.st_mode)
        if look.contents and is_folder and level.permission is not Permission.NONE:
            inside, level = self._strictest_in(source, relative, level, look)
        stands = status is not None
        return NamedPlace(absolute, source.source.source_id, relative, level, start, inside, stands=stands)

    def _level(self, source: FileSource, relative: str, look: Look) -> LevelDecision:
        try:
            known = self.places.find(source, relative)
            standing = source.look(relative)
        except ToolFailure as failure:
            if failure.code not in {"source-missing", "not-a-folder"}:
                return _NONE
        else:
            if standing.exists or look.files or not known.is_closed:
                return known.level(standing, self.protected)
        return strictest_level([self.places.by_rules(source, relative, folder=kind) for kind in (False, True)])

    def _strictest_in(
        self, source: FileSource, relative: str, own: LevelDecision, look: Look
    ) -> tuple[str, LevelDecision]:
        """Return the strictest level in a folder, and its place, which is empty for the folder itself.

        For reading, only none and ask are stricter than another level.
        """
        levels = {level for one in self.places.running.values() for level in one.source.levels}
        reads = look.action is Action.READ
        if look.confined:
            levels = {own.permission, *(one for one in levels if verdict_for(one, look.action) is Verdict.ASK)}
        is_protected_in = self.protected.is_in(source.base) and not look.confined
        if (levels <= {own.permission} or (reads and all(map(reads_freely, levels)))) and not is_protected_in:
            return "", own
        found, where, strictest, endings = 0, "", own, look.endings
        left = MAX_ENTRIES * (10 if endings is not None else 1)  # names are cheaper than levels
        folders = [relative]
        while folders:
            folder = folders.pop()
            prefix = "" if folder == BASE else f"{folder}/"
            try:
                entries = list(os.scandir(self._ground.place(source.absolute(folder))))
            except OSError:
                continue
            for entry in entries:
                if look.lists is Listing.PLAIN and entry.name.startswith("."):
                    continue
                below = f"{prefix}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                left -= 1
                if endings is None or (not is_folder and entry.name.lower().endswith(endings)):
                    found += 1
                elif left >= 0:
                    folders += [below] if is_folder else []
                    continue
                if found > MAX_ENTRIES or left < 0:
                    return "", strictest_level([LevelDecision(level) for level in sorted(levels)])
                try:
                    identities = (identity_of(entry.stat(follow_symlinks=False)),) if is_protected_in else ()
                    level = self.places.decide(source, below, identities, self.protected, folder=is_folder)
                except (OSError, ToolFailure):
                    return below, _NONE
                is_closed = level.permission is Permission.NONE
                if is_closed and not look.confined:
                    return below, level
                if not look.confined or level.permission in levels:
                    stricter = strictest_level((strictest, level))
                    is_stricter = stricter.permission is not strictest.permission
                    if is_stricter and not (reads and reads_freely(stricter.permission)):
                        strictest, where = stricter, below
                if is_folder and not look.lists and not is_closed:
                    folders.append(below)
        return where, strictest

    def _other_names(self, real: str, status: os.stat_result, start: str | None) -> Iterator[NamedPlace]:
        """Yield the sources' other names of a file that has several, each with its level."""
        left = MAX_ENTRIES
        for source in self.places.running.values():
            folders = [BASE]
            while folders:
                folder = folders.pop()
                try:
                    entries = list(os.scandir(self._ground.place(source.absolute(folder))))
                except OSError:
                    continue
                for entry in entries:
                    left -= 1
                    below = entry.name if folder == BASE else f"{folder}/{entry.name}"
                    if left < 0:
                        yield NamedPlace(real, source.source.source_id, below, _NONE, start)
                        return
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(below)
                    elif entry.inode() == status.st_ino and source.absolute(below) != real:
                        level = self.places.by_rules(source, below, folder=False)
                        yield NamedPlace(source.absolute(below), source.source.source_id, below, level, start)

    def _below(self, real: str, look: Look, start: str | None) -> Iterator[NamedPlace]:
        """Yield the sources whose base lies below the folder."""
        prefix = real.rstrip("/") + "/"
        within = replace(look, contents=look.lists is None)
        for source in self.places.running.values():
            if source.base.startswith(prefix):
                yield self._judge(source, BASE, status_at(source.folder.place), within, start)


def _fold_case(path: str) -> str:
    return compose_letters(path).casefold()
