"""What the Files page asks of a source: the folder behind it, how many files each rule decides, the level of any path.

Reading a folder and counting run in threads and hand back values; who asked drops an answer that comes too late.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, overload

from gatewright.workspace.api import (
    Action,
    BaseFolder,
    FileSource,
    FolderNews,
    FolderWatch,
    Listing,
    Overlay,
    Permission,
    PermissionRules,
    Shadow,
    Source,
    SourceManager,
    Verdict,
    WorkspaceError,
    frozen,
    verdict_for,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.courtesy import Stop, beside
from gatewright_gui.session.document import Document
from gatewright_gui.session.file_state import Reconciled, Standings, outcome_of, standings_of
from gatewright_gui.session.verdict import permission_words

__all__ = [
    "Entries",
    "FolderEntry",
    "FolderListing",
    "FolderNews",
    "FolderWatch",
    "Hits",
    "PathLevel",
    "Row",
    "SourceFolder",
    "inside",
    "pattern_of",
]

T = TypeVar("T")
MAX_ENTRIES = 20_000
"""Entries of one folder that are shown; the rest is counted, and found by filtering, but not listed."""
MAX_KEPT = 500
"""Folders whose entries are kept to be compared with the next reading."""


@frozen
class PathLevel:
    """The level of a path and why. `index`: the deciding rule, from 0; None where no rule of the source decides.

    `overlapped`: the level is that of another source. `unusable`: why no operation can use what lies there.
    """

    path: str
    permission: Permission
    index: int | None = None
    pattern: str | None = None
    outside: bool = False
    protected: bool = False
    overlapped: bool = False
    unusable: str | None = None

    @property
    def is_default(self) -> bool:
        """Tell whether the default decides."""
        return self.index is None and not (self.outside or self.protected or self.overlapped)

    @property
    def is_closed(self) -> bool:
        """Tell whether nothing gets there, whatever the levels say."""
        return self.outside or self.protected or self.unusable is not None

    @property
    def rule_word(self) -> str:
        """A word or two for what decided, for a narrow column."""
        if self.protected:
            return tr("protected")
        if self.outside:
            return tr("outside")
        if self.overlapped:
            return tr("other source")
        return tr("default") if self.index is None else tr("rule {number}", number=self.index + 1)

    @property
    def sentence(self) -> str:
        """A sentence on what decided."""
        if self.protected:
            return tr(
                "protected: it belongs to the policy, its state or its keys, or to a source whose folder was moved"
            )
        if self.outside:
            why = tr("outside the source: `..` leads above the source's folder")
            if self.path.startswith("/"):
                why = tr(
                    "outside the source: a path here is written from the source's folder on, without `/` at its start"
                )
            return tr("{reason}: a call that names it is denied, whatever the rules say", reason=why)
        if self.unusable is not None:
            return tr("no operation can use it, whatever the rules say: {reason}", reason=self.unusable)
        if self.overlapped:
            text = tr("{level}, since another source holds this folder too and is stricter")
        elif self.index is None:
            text = tr("{level}, since no rule matches")
        else:
            text = tr("{level}, by rule {number} `{pattern}`")
        number = 0 if self.index is None else self.index + 1
        return text.format(level=permission_words(self.permission), number=number, pattern=self.pattern)

    def verdict(self, action: Action) -> Verdict:
        """The verdict of the level on an action."""
        return Verdict.DENY if self.is_closed else verdict_for(self.permission, action)


@frozen
class FolderEntry:
    """One name in a folder. `relative`: from the base, with `/`."""

    name: str
    relative: str
    is_folder: bool
    protected: bool = False
    unusable: str | None = None


Row = tuple[str, str, bool, bool, str | None]


class Entries(Sequence[FolderEntry]):
    """The entries of a large folder, each made when it is asked for.

    Plain tuples of texts, which the garbage collector leaves alone: a hundred thousand objects would make it hold up
    the window.
    """

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> FolderEntry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[FolderEntry, ...]: ...

    def __getitem__(self, index: int | slice) -> FolderEntry | tuple[FolderEntry, ...]:
        if isinstance(index, slice):
            return tuple(FolderEntry(*row) for row in self._rows[index])
        return FolderEntry(*self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, Entries) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._rows)


@frozen
class FolderListing:
    """A folder's entries, folders first. `truncated`: there are more than are listed; `is_partial`: those come soon."""

    entries: Sequence[FolderEntry]
    truncated: bool = False
    is_partial: bool = False


@frozen
class Hits:
    """The number of files that each rule decides, and the default. `truncated`: counting stopped at its limit.

    `shadows`: rules that can never decide, whatever files there are, since rules above them match all that they match.
    """

    rules: tuple[int, ...]
    default: int
    files: int
    truncated: bool = False
    unreadable_folders: int = 0
    shadows: tuple[Shadow, ...] = ()
    protected: int = 0
    elsewhere: int = 0

    def shadow_of(self, row: int) -> Shadow | None:
        """Return what hides a rule, if something does."""
        return next((shadow for shadow in self.shadows if shadow.index == row), None)


class SourceFolder:
    """The folder of the sources of a document. One for a page; each answer belongs to the document as it was asked."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-folder")
        self._counter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-count")
        self._asker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-ask")
        self._rules: tuple[Source, PermissionRules] | None = None
        self._seen: tuple[Source, Overlay] | None = None
        self._read: dict[tuple[str, str], FolderListing] = {}

    def source(self, source_id: str | None) -> Source | None:
        """The source as edited now."""
        return self._document.policy.source(source_id) if source_id is not None else None

    def base(self, source: Source) -> Path:
        """The real folder of a source."""
        path = self._document.path
        folder = path.parent if path else Path()
        return Path(os.path.realpath(folder / source.base_path))

    def base_folder(self, source: Source) -> BaseFolder | None:
        """The folder that it was opened on; another one after a reload that found another one there."""
        running = self._sources().get(source.source_id)
        return None if running is None else running.folder

    def rules(self, source: Source) -> PermissionRules:
        """The source's rules, compiled: those of the running source, as long as it is the one that is asked about."""
        if self._rules is None or self._rules[0] is not source:
            running = self._sources().get(source.source_id)
            same = running is not None and running.source == source
            made = (
                running.rules
                if running is not None and same
                else PermissionRules(source.permission_rules, source.default_permission)
            )
            self._rules = (source, made)
        return self._rules[1]

    def level(self, source: Source, path: str) -> PathLevel:
        """The level of a path that need not exist; `/` at its end says folder. The disk is not looked at."""
        found = self.rules(source).explain(path or "./")
        if found.outside:
            return PathLevel(path, Permission.NONE, outside=True)
        if self._seen is None or self._seen[0] is not source:  # a source that was edited is another one
            self._seen = (source, self._sources().overlay(source.source_id))
        standing = self._seen[1].level_of(_canonical(path), path.endswith("/"), ())
        if standing.protected:
            return PathLevel(path, Permission.NONE, protected=True)
        if standing.permission != found.permission:
            return PathLevel(path, standing.permission, overlapped=True)
        return PathLevel(path, found.permission, found.index, found.pattern)

    async def read(
        self, source_id: str, relative: str, first: Callable[[FolderListing], None] | None = None
    ) -> FolderListing:
        """The entries of a folder, `""` for the base. Raises WorkspaceError with a message for the page.

        `first` is given the beginning of a large folder before the rest of it is looked at.
        """
        overlay = self._sources().overlay(source_id)
        before = self._read.get((source_id, relative))
        loop = asyncio.get_running_loop()

        def begin(listing: Listing) -> None:
            if first is not None:
                with contextlib.suppress(RuntimeError):  # the window is gone
                    loop.call_soon_threadsafe(first, _folder_listing(listing, is_partial=True))

        def scan(stop: Stop) -> FolderListing:
            found = _folder_listing(overlay.scan(relative or ".", limit=MAX_ENTRIES, cancelled=stop, first=begin))
            return before if before is not None and before == found else found

        found = await beside(scan, self._reader)
        self._read = {**self._read, (source_id, relative): found} if len(self._read) < MAX_KEPT else {}
        return found

    async def standings(self, source_id: str) -> Standings:
        """The standing of the files with a block to it. Raises WorkspaceError."""
        source = self._running_source(source_id)
        return await beside(lambda stop: standings_of(source, stop), self._reader)

    async def reconcile(self, source_id: str, path: str, strategy: str, mark: str | None) -> Reconciled:
        """Bring a file and its block into step, by the operator's word. Raises WorkspaceError.

        ``mark``: of the standing that was decided by; what is another by now stays as it is.
        """
        return outcome_of(path, await self._document.workspace.reconcile(source_id, path, strategy, mark=mark))

    async def counting(self, work: Callable[[Stop], T]) -> T:
        """Walk and count in a thread of its own; cancelling tells it to stop. Raises WorkspaceError."""
        return await beside(work, self._counter)

    async def asking(self, work: Callable[[Stop], T]) -> T:
        """Ask what was counted, in another thread: a count does not hold it up. Raises WorkspaceError."""
        return await beside(work, self._asker)

    def running(self, source_id: str) -> tuple[FileSource, Overlay]:
        """The running source and what it says of paths. Raises WorkspaceError for an unknown one."""
        source = self._running_source(source_id)
        return source, self._sources().overlay(source_id)

    def _running_source(self, source_id: str) -> FileSource:
        """The running source alone: what is said of its paths is looked up on the disk. Raises WorkspaceError."""
        source = self._sources().get(source_id)
        if source is None:
            raise WorkspaceError(tr("source `{source}` is not attached", source=source_id))
        return source

    def _sources(self) -> SourceManager:
        return self._document.workspace.sources


def _folder_listing(listing: Listing, *, is_partial: bool = False) -> FolderListing:
    rows = tuple((e.name, e.relative, e.is_folder, e.protected, e.unusable) for e in listing.entries)
    return FolderListing(Entries(rows), listing.truncated, is_partial)


def _canonical(path: str) -> str:
    """A path inside the base as the running source knows it."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or "."


def pattern_of(path: str) -> str:
    """The pattern that names this path from the base; for a folder, which ends with `/`, with all that is in it."""
    return "/" + re.sub(r"([\\*?\[])", r"\\\1", path).replace(" ", "\\ ")


def inside(path: str) -> str:
    """A file's own path; for a folder, which ends with `/`, that of some new file in it."""
    return path + "new" if path.endswith("/") else path
