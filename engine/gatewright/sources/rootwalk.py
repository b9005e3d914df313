"""Walks the tree below one folder of a root to list, search, count or remove it; bounded, and never through a link.

Each folder opens anew, starting at the root. Protected paths and level none seem missing; links, pipes, devices and
files with a second name are skipped, but removing a folder removes them too.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import Action, Permission, Verdict, reads_freely, verdict_for
from gatewright.sources import descriptor
from gatewright.sources.basefolder import RootPlace
from gatewright.sources.descriptor import Identity, identity_of, unusable
from gatewright.sources.filetext import decode_text, is_leftover
from gatewright.sources.ground import ProtectedSet
from gatewright.sources.tree import is_nameable

MAX_LISTED = 5_000
MAX_LOOKED_AT = 100_000
MAX_SEARCHED_BYTES = 64 * 1024 * 1024
MAX_REMOVED = 10_000
MAX_DEPTH = 64
_SHOWN_LINE = 300
_BEFORE_HIT = 100
_TOLD = 200
_EVERY_CHARS = 8_192

LevelOf = Callable[["RootPlace", Sequence[Identity]], "LevelDecision | None"]


@frozen
class _Entry:
    """An entry of a folder after examination; ``folder``: the entry is one."""

    place: RootPlace
    status: os.stat_result

    @property
    def folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


class Walk:
    """One walk at and below ``top``, with the current protection; ``limit``: bytes of a text."""

    def __init__(
        self,
        top: RootPlace,
        level_of: LevelOf,
        protected: ProtectedSet,
        stopped: Callable[[], bool] | None,
        limit: int,
    ) -> None:
        self._top = top
        self._level_of = level_of
        self._protected = protected
        self._stopped = stopped or (lambda: False)
        self._limit = limit
        self._looked_at = 0
        self._why = ""

    # listing

    def list_names(self) -> JsonValue:
        """List the names in the folder, sorted, those of folders with ``/``."""
        standing = descriptor.look(self._top.base, self._top.parts)
        if standing.exists and not standing.is_folder:
            raise ToolFailure("this is a file, not a folder", code="not-a-folder")
        names = sorted(self._names())
        data: dict[str, JsonValue] = {"path": self._top.shown, "entries": list(names[:MAX_LISTED])}
        if len(names) > MAX_LISTED:
            data["left_out"] = len(names) - MAX_LISTED
        return data | ({"stopped": self._why} if self._why else {})

    def _names(self) -> Iterator[str]:
        for entry in self._entries(self._top):
            if self._is_open(entry) and (entry.folder or unusable(entry.status) is None):
                yield entry.place.parts[-1] + ("/" if entry.folder else "")

    # searching

    def search(self, find: Callable[[str], int | None], most: int) -> JsonValue:
        """Return the lines where ``find`` returns a position, as ``path:line:text``, and the skipped files."""
        hits: list[JsonValue] = []
        passed_over = {"binary": 0, "large": 0, "unreadable": 0, "asks_first": 0}
        files = size = 0
        for place in self._texts():
            text = self._text(place, passed_over)
            if text is None:
                continue
            files, size = files + 1, size + len(text)
            for hit in self._hits(place, text, find):
                if len(hits) == most:
                    self._why = f"there are more than {most:,} hits"
                    break
                hits.append(hit)
            if size > MAX_SEARCHED_BYTES:
                self._why = self._why or "enough text was searched; search a smaller folder"
            if self._why:
                break
        skipped: dict[str, JsonValue] = {why: count for why, count in passed_over.items() if count}
        data: dict[str, JsonValue] = {"path": self._top.shown, "hits": hits, "files": files}
        if skipped:
            data["skipped"] = skipped
        return data | ({"stopped": self._why} if self._why else {})

    def _texts(self) -> Iterator[RootPlace]:
        """Yield the files to search, folder by folder, each folder's own files first, by name."""
        standing = descriptor.look(self._top.base, self._top.parts)
        if not standing.exists:
            raise ToolFailure("there is no such file or folder", code="not-found")
        if not standing.is_folder:
            yield self._top
            return
        waiting = [self._top]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted((e for e in self._entries(folder) if self._is_open(e)), key=lambda e: e.place.parts)
            except ToolFailure:
                if folder == self._top:
                    raise
                continue
            yield from (entry.place for entry in entries if not entry.folder and unusable(entry.status) is None)
            deep = len(folder.parts) - len(self._top.parts) >= MAX_DEPTH
            waiting += [] if deep else [entry.place for entry in reversed(entries) if entry.folder]

    def _text(self, place: RootPlace, passed_over: dict[str, int]) -> str | None:
        passed: list[Identity] = []
        try:
            with descriptor.open_folder(place.base, place.parts[:-1], passed=passed) as folder:
                content, status = descriptor.read_bytes(folder, place.parts[-1], self._limit)
            level = self._level_of(place, (*passed, identity_of(status)))
            if level is not None and level.permission is Permission.NONE:
                return None
            if level is not None and place != self._top and not reads_freely(level.permission):
                passed_over["asks_first"] += 1
                return None
            return decode_text(content)
        except ToolFailure as failure:
            why = {"not-text": "binary", "too-large": "large"}.get(failure.code, "unreadable")
            passed_over[why] += 1
            return None

    def _hits(self, place: RootPlace, text: str, find: Callable[[str], int | None]) -> Iterator[str]:
        looked = _EVERY_CHARS
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
            looked += len(line) + 1
            if looked >= _EVERY_CHARS:
                looked = 0
                if self._is_over():
                    return
            plain = line.removesuffix("\r")
            at = find(plain)
            if at is None:
                continue
            start = max(0, at - _BEFORE_HIT) if len(plain) > _SHOWN_LINE else 0
            end = start + _SHOWN_LINE
            shown = ("…" if start else "") + plain[start:end] + ("…" if end < len(plain) else "")
            yield f"{place.shown}:{number}:{shown}"

    # removing

    @once
    def _all(self) -> tuple[_Entry, ...]:
        """Yield everything below the folder, the deepest first. Raises ToolFailure if it is too much."""
        found: list[_Entry] = []
        waiting = [self._top]
        while waiting:
            folder = waiting.pop()
            if len(folder.parts) - len(self._top.parts) >= MAX_DEPTH:
                raise ToolFailure(f"folders are nested more than {MAX_DEPTH} deep here", code="too-many")
            entries = sorted(self._entries(folder), key=lambda entry: entry.place.parts)
            found += entries
            if len(found) > MAX_REMOVED:
                raise ToolFailure(f"more than {MAX_REMOVED:,} files and folders are in it", code="too-many")
            waiting += [entry.place for entry in entries if entry.folder]
        return tuple(sorted(found, key=lambda entry: (-len(entry.place.parts), entry.place.parts)))

    @property
    def count(self) -> int:
        """The number of files and folders below."""
        return len(self._all)

    def refuse_kept(self) -> None:
        """Raise ToolFailure if something at or below the folder must stay.

        Entries of a source need a level that permits their removal without a question, since nobody was asked about
        each of them.
        """
        if self._protected.is_in(self._top.absolute):
            raise ToolFailure("this folder is not available", code="not-available")
        for entry in self._all:
            level = self._level_of(entry.place, (identity_of(entry.status),))
            if level is not None and verdict_for(level.permission, Action.DELETE) is not Verdict.ALLOW:
                raise ToolFailure("something in this folder may not go with it", code="not-granted")

    def describe(self) -> str:
        """Describe the folder's content for the person who approves; a digest identifies all of it."""
        rows = [_row(entry) for entry in self._all]
        digest = hashlib.sha256("\n".join(rows).encode("utf-8", "replace")).hexdigest()
        more = [f"and {len(rows) - _TOLD:,} more"] if len(rows) > _TOLD else []
        return "\n".join([f"folder with {len(rows):,} files and folders, sha256:{digest}", *rows[:_TOLD], *more])

    def remove(self) -> None:
        """Remove the entries of the walk, then the folder; a folder with newer entries stays."""
        for place, seen in [*((entry.place, entry.status) for entry in self._all), (self._top, None)]:
            self._remove(place, seen)

    def _remove(self, place: RootPlace, seen: os.stat_result | None) -> None:
        passed: list[Identity] = []
        with descriptor.open_folder(place.base, place.parts[:-1], passed=passed) as folder:
            now = descriptor.status_of(folder, place.parts[-1])
            changed = now is None or (seen is not None and identity_of(now) != identity_of(seen))
            if now is None or changed or self._is_closed(place, (*passed, identity_of(now))):
                raise ToolFailure("something in this folder was changed meanwhile; look again", code="conflict")
            try:
                if stat.S_ISDIR(now.st_mode):
                    descriptor.remove_folder(folder, place.parts[-1])
                else:
                    os.unlink(place.parts[-1], dir_fd=folder)
            except OSError as error:
                raise ToolFailure(f"not all could be removed ({os.strerror(error.errno or 0)})", code="io") from None

    # helpers

    def _entries(self, at: RootPlace) -> Iterator[_Entry]:
        """Yield the entries of a folder, without names that no call can write. Raises ToolFailure."""
        passed: list[Identity] = []
        with descriptor.entries_of(at.base, at.parts, passed=passed) as entries:
            if self._is_closed(at, passed):
                raise ToolFailure("this path is not available", code="not-available")
            for entry in entries:
                self._looked_at += 1
                if self._is_over():
                    return
                if self._looked_at > MAX_LOOKED_AT:
                    self._why = "there are too many files and folders; choose a smaller folder"
                    return
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                yield _Entry(at.below(entry.name), status)

    def _is_over(self) -> bool:
        if not self._why and self._stopped():
            self._why = "the time was over; choose a smaller folder"
        return bool(self._why)

    def _is_open(self, entry: _Entry) -> bool:
        name = entry.place.parts[-1]
        return (
            is_nameable(name)
            and not is_leftover(name)
            and not self._is_closed(entry.place, (identity_of(entry.status),))
        )

    def _is_closed(self, place: RootPlace, identities: Sequence[Identity]) -> bool:
        level = self._level_of(place, identities)
        return level is not None and level.permission is Permission.NONE


def _row(entry: _Entry) -> str:
    what = "folder" if entry.folder else f"{entry.status.st_size:,} bytes, changed {entry.status.st_mtime_ns}"
    return f"- {entry.place.shown} ({what})"
