"""What the Files page asks of a source: the folder behind it, how many files each rule decides, the level of any path.

It does not know trees or tables. Reading a folder and counting block: they run in threads and hand back values; a late
answer is the asker's to drop.
"""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gatewright.base.errors import WorkspaceError
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.verdict import Verdict
from gatewright.sources.manager import SourceManager
from gatewright.sources.overlay import Overlay
from gatewright_gui.session.document import Document

T = TypeVar("T")
MAX_ENTRIES = 2_000
"""Entries of one folder that are shown; the rest is counted but not listed."""
MAX_COUNTED = 500_000
"""Files that are counted before counting gives up."""


@dataclass(frozen=True, slots=True)
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
        """Whether the default decides."""
        return self.index is None and not (self.outside or self.protected or self.overlapped)

    @property
    def is_closed(self) -> bool:
        """Whether nothing gets there, whatever the levels say."""
        return self.outside or self.protected or self.unusable is not None

    @property
    def rule_word(self) -> str:
        """What decided, in a word or two, for a narrow column."""
        if self.protected:
            return "protected"
        if self.outside:
            return "outside"
        if self.overlapped:
            return "other source"
        return "default" if self.index is None else f"rule {self.index + 1}"

    @property
    def sentence(self) -> str:
        """What decided, as a sentence."""
        if self.protected:
            return "protected: it belongs to the policy, its state or its keys, and no rule opens it"
        if self.outside:
            return "outside the source: no agent gets there, whatever the rules say"
        if self.unusable is not None:
            return f"no operation can use it, whatever the rules say: {self.unusable}"
        if self.overlapped:
            return f"another source holds this folder too, and its level is stricter: {self.permission}"
        if self.index is None:
            return f"no rule matches: the default gives {self.permission}"
        return f"rule {self.index + 1} `{self.pattern}` gives {self.permission}"

    def verdict(self, action: Action) -> Verdict:
        """What the level says to an action."""
        return Verdict.DENY if self.is_closed else verdict_for(self.permission, action)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder. `relative`: from the base, with `/`."""

    name: str
    relative: str
    is_folder: bool
    protected: bool = False
    unusable: str | None = None


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder's entries, folders first. `truncated`: there are more than are listed."""

    entries: tuple[FolderEntry, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """How many files each rule decides, and the default. `truncated`: counting stopped at its limit."""

    rules: tuple[int, ...]
    default: int
    files: int
    truncated: bool = False
    unreadable_folders: int = 0
    shadows: tuple[tuple[int, ...], ...] = ()
    """For each rule that decides nothing: the rules that decide what it would match, in order; empty for no match."""


class SourceFolder:
    """The folder of the sources of a document. One for a page; each answer belongs to the document as it was asked."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-folder")
        self._counter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-count")
        self._rules: tuple[Source, PermissionRules] | None = None
        self._seen: tuple[Source, Overlay] | None = None

    def source(self, source_id: str | None) -> Source | None:
        """The source as edited now."""
        return self._document.policy.source(source_id) if source_id is not None else None

    def base(self, source: Source) -> Path:
        """The real folder of a source."""
        path = self._document.path
        folder = path.parent if path else Path()
        return Path(os.path.realpath(folder / source.base_path))

    def rules(self, source: Source) -> PermissionRules:
        """The source's rules, compiled; kept until they change."""
        if self._rules is None or self._rules[0] is not source:
            self._rules = (source, PermissionRules(source.permission_rules, source.default_permission))
        return self._rules[1]

    def level(self, source: Source, path: str) -> PathLevel:
        """The level of a path that need not exist; `/` at its end says folder. The disk is not looked at."""
        found = self.rules(source).explain(path or "./")
        if found.outside:
            return PathLevel(path, Permission.NONE, outside=True)
        standing = self._overlay(source).level_of(_canonical(path), path.endswith("/"), ())
        if standing.protected:
            return PathLevel(path, Permission.NONE, protected=True)
        if standing.permission != found.permission:
            return PathLevel(path, standing.permission, overlapped=True)
        return PathLevel(path, found.permission, found.index, found.pattern)

    async def read(self, source_id: str, relative: str) -> FolderListing:
        """The entries of a folder, `""` for the base. Raises WorkspaceError with a message for the page."""
        overlay = self._sources().overlay(source_id)

        def scan(stop: Callable[[], bool]) -> FolderListing:
            listing = overlay.scan(relative or ".", limit=MAX_ENTRIES, cancelled=stop)
            entries = [FolderEntry(e.name, e.relative, e.is_folder, e.protected, e.unusable) for e in listing.entries]
            entries.sort(key=lambda entry: (not entry.is_folder, entry.name.casefold(), entry.relative))
            return FolderListing(tuple(entries), listing.truncated)

        return await self._beside(self._reader, scan)

    async def count(self, source_id: str) -> Hits:
        """How many files each rule decides, by the rules as they are when it begins. Raises WorkspaceError."""
        overlay, source = self._sources().overlay(source_id), self.source(source_id)
        base = self.base(source) if source is not None else None

        def work(stop: Callable[[], bool]) -> Hits:
            found = overlay.hit_counts(limit=MAX_COUNTED, cancelled=stop)
            shadows: tuple[tuple[int, ...], ...] = ()
            if base is not None and source is not None and not found.truncated:
                shadows = _shadows(base, source, found.rules, stop)
            return Hits(found.rules, found.default, found.files, found.truncated, found.unreadable, shadows)

        return await self._beside(self._counter, work)

    async def _beside(self, worker: ThreadPoolExecutor, work: Callable[[Callable[[], bool]], T]) -> T:
        """Run `work` in a thread; cancelling tells it to stop."""
        stop = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(worker, work, stop.is_set)
        except OSError as error:
            raise WorkspaceError(f"cannot read the folder: {error.strerror or error}") from None
        finally:
            stop.set()

    def _overlay(self, source: Source) -> Overlay:
        """What the running source says of paths, made anew when the source changes."""
        if self._seen is None or self._seen[0] is not source:
            self._seen = (source, self._sources().overlay(source.source_id))
        return self._seen[1]

    def _sources(self) -> SourceManager:
        return self._document.workspace.sources


def _shadows(
    base: Path, source: Source, counts: tuple[int, ...], stop: Callable[[], bool]
) -> tuple[tuple[int, ...], ...]:
    """For each rule without files: which rules decide what its pattern matches. Walks only if there are such rules."""
    dead = [at for at, count in enumerate(counts) if count == 0 and at < len(source.permission_rules)]
    if not dead:
        return ()
    rules = PermissionRules(source.permission_rules, source.default_permission)
    alone = {at: PermissionRules((source.permission_rules[at],), source.default_permission) for at in dead}
    found: dict[int, set[int]] = {at: set() for at in dead}
    for path in _files_below(base, stop):
        for at, rule in alone.items():
            if rule.explain(path).index is not None:
                decided = rules.explain(path).index
                if decided is not None and decided != at:
                    found[at].add(decided)
    return tuple(tuple(sorted(found.get(at, ()))) for at in range(len(counts)))


def _files_below(base: Path, stop: Callable[[], bool]) -> Iterator[str]:
    for folder, _, names in os.walk(base):
        if stop():
            return
        inside = os.path.relpath(folder, base).replace(os.sep, "/")
        yield from (name if inside == "." else f"{inside}/{name}" for name in names)


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
