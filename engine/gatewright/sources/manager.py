"""The running sources as one thing: routing, levels over overlapping bases, locks, threads.

The first source registers the ``file`` tool, with the last one it is withdrawn. Where bases overlap, a file
has the strictest level that any of them gives it. Disk work runs in threads, one call per file at a time, and what the
level says of it is asked there once more: ``approved`` is for what a level only does when somebody agreed. Over
450 lines, because it is the whole port that tools and gate ask, one short method for each question.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from gatewright.arguments.shell_program import Listing
from gatewright.base import aio
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import Source
from gatewright.policy.target import (
    Approved,
    Assessment,
    FileTarget,
    FileText,
    Later,
    LevelDecision,
    Located,
    NamedPlace,
    Refusal,
)
from gatewright.policy.verdict import Action, Permission
from gatewright.record.process import fork_safe_lock
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.descriptor import Identity, identity_of, look_along
from gatewright.sources.diskpath import DiskPaths
from gatewright.sources.filesource import BASE, MAX_LISTED, FileSource
from gatewright.sources.held import BlockStorePort, OutsideChange, Strategy
from gatewright.sources.known import KnownPlaces
from gatewright.sources.ownsource import OwnSource
from gatewright.sources.permit import permit, permit_loss, refuse_stale
from gatewright.sources.protection import Protection

if TYPE_CHECKING:
    from gatewright.sources.overlay import Overlay

Answer = TypeVar("Answer")
_STRIPES = 64


class SourceManager:
    """All sources of a workspace. ``register_file_tool`` answers how to withdraw the tool.

    ``allowed`` are the source ids of the calling agent. A place (`Located`) has passed ``locate``: it is canonical and
    inside its base; what touches the disk checks that again on the descriptor it opens. What changes a block or the
    disk asks the table of levels again when it acts: what is denied by then raises ToolFailure, and so does what asks
    unless ``approved`` or ``asked``: that somebody agreed to the call, and what they agreed to where it does not hold
    any more.
    """

    PROTECTED_LEVEL: ClassVar[Permission] = Permission.NONE
    """The level of what ``protects`` covers, whatever the rules say."""

    def __init__(
        self, register_file_tool: Callable[[], Callable[[], None]], blocks: BlockStorePort, protection: Protection
    ) -> None:
        self._register_file_tool = register_file_tool
        self._withdraw: Callable[[], None] | None = None
        self._blocks = blocks
        self._protection = protection
        self.watched: frozenset[str] = frozenset()
        """The ids of the sources whose changes are taken in now."""
        self._places = KnownPlaces({}, protection)
        self._own: Mapping[str, OwnSource] = {}
        self._locks = tuple(fork_safe_lock() for _ in range(_STRIPES))

    # sources

    @property
    def _running(self) -> Mapping[str, FileSource]:
        return self._places.running

    def _run(self, running: Mapping[str, FileSource]) -> None:
        """Have these sources from now on, and forget what was known under the rules of before."""
        self._protection.hold(source.folder for source in running.values())
        self._places = KnownPlaces(running, self._protection)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the running sources, in the order of their start."""
        return tuple(self._running)

    def get(self, source_id: str) -> FileSource | None:
        """A running source, or None."""
        return self._running.get(source_id)

    def follow(self, wanted: Sequence[tuple[Source, BaseFolder]]) -> Callable[[], None]:
        """Run exactly these sources, on these folders, from now on, in one step. Raises ValueError for a bad pattern.

        The answer withdraws the ``file`` tool where none is left: call it when no policy in force needs it any more.
        """
        running = {source.source_id: self._followed(source, folder) for source, folder in wanted}
        if running and self._withdraw is None:
            self._withdraw = self._register_file_tool()
        self._run(running)
        return self._withdraw_if_idle

    def follow_own(self, running: Iterable[OwnSource]) -> None:
        """Run exactly these sources of the program from now on."""
        self._own = {one.source.source_id: one for one in running}

    def own(self, source_id: str) -> OwnSource | None:
        """A running source of the program, or None."""
        return self._own.get(source_id)

    def readable(self, source_id: str, keys: Iterable[str]) -> list[str]:
        """Those of the keys of a program's source that an agent who has it may be told. Raises ToolFailure."""
        own = self._own.get(source_id)
        if own is None:
            raise ToolFailure("this source is not attached", code="no-source")
        return own.readable(keys)

    def pinned(self) -> SourceManager:
        """The sources as they are now, for a policy in force: no later change of them reaches it. Locks are shared."""
        return copy.copy(self)

    def _followed(self, source: Source, folder: BaseFolder) -> FileSource:
        running = self._running.get(source.source_id)
        if running is not None and running.folder is folder and running.source == source:
            return running
        return FileSource(source, folder, self._blocks, self._protection)

    def _withdraw_if_idle(self) -> None:
        if not self._running and self._withdraw is not None:
            withdraw, self._withdraw = self._withdraw, None
            withdraw()

    def overlay(self, source_id: str) -> Overlay:
        """What people see of a source: its tree with levels, and counts. Raises WorkspaceError for an unknown id."""
        from gatewright.sources.overlay import Overlay

        source = self._running.get(source_id)
        if source is None:
            raise WorkspaceError(f"source `{source_id}` is not attached")
        places, protected = self._places, self._protection.now()

        def decide(relative: str, folder: bool, identities: Sequence[Identity]) -> LevelDecision:
            return places.decide(source, relative, identities, protected, folder=folder)

        inodes = {inode for _, inode in (*protected.identities, *protected.bases)}
        alone = all(
            other is source or (other.relative_of(source.base) is None and source.relative_of(other.base) is None)
            for other in places.running.values()
        )

        def plain(prefix: str, of_files: Sequence[int]) -> bool:
            below = f"{source.base.rstrip('/')}/{prefix}"
            return not protected.covers(below) and not protected.is_in(below) and inodes.isdisjoint(of_files)

        return Overlay(source, decide, plain if alone else None)

    def protects_by_name(self, absolute: str) -> bool:
        """Whether a canonical path is protected by its name alone; no disk is asked."""
        return self._protection.by_name.covers(absolute)

    def protects(self, path: Path) -> bool:
        """Whether a file or folder on disk is protected, by its path (with or without links) or by identity."""

        absolute = os.path.abspath(path)  # noqa: PTH100 - links are looked at below
        protected, ground = self._protection.now(), self._protection.ground
        try:
            real = ground.real(absolute)
            identities = (identity_of(os.lstat(ground.place(real) if ground.origin else absolute)),)
        except (OSError, ValueError):
            return protected.covers(absolute)
        return protected.covers(absolute) or protected.covers(real, identities)

    # the port: places and levels

    def locate(self, path: str, *, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        """Where a model's path leads; touches metadata only."""
        from gatewright.sources.route import Route

        own = self._own.get(source_id) if source_id is not None and source_id in allowed else None
        return Route(self._places).of_path(path, source_id, allowed) if own is None else own.locate(path)

    def real(self, path: str) -> str:
        """An absolute path without links and ``..``. Raises OSError and ValueError."""
        return self._protection.ground.real(path)

    def place(self, path: str) -> str:
        """Where an absolute path without links and ``..`` stands on disk: elsewhere in a disposable copy."""
        return self._protection.ground.place(path)

    def locate_label(self, label: str, *, allowed: Sequence[str]) -> Located | Refusal:
        """Where a block's label leads."""
        from gatewright.sources.route import Route

        return Route(self._places).of_label(label, allowed)

    def find_file(
        self, path: str, *, folder: str | None, prefixes: Sequence[str] = (), parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        """Where a path that any tool is given leads on disk; touches metadata only."""
        roots = DiskPaths(self._running.values(), self._protection.now(), folder, prefixes)
        return roots.find(path, parameter=parameter, writes=writes)

    def named_by(
        self,
        text: str,
        action: Action,
        *,
        folders: Sequence[str] | None,
        bases: bool = True,
        contents: bool,
        patterns: bool = True,
        lists: Listing | None = None,
    ) -> tuple[NamedPlace, ...] | None:
        """Every place on disk that some program may take ``text`` for, each with its level.

        None where there are too many to tell. Touches metadata only.
        """
        from gatewright.sources.route import Look, NamedPlaces

        named = NamedPlaces(self._places, self._protection.now())
        look = Look(action, contents=contents, patterns=patterns, lists=lists)
        return named.of(text, look, folders=folders, bases=bases)

    def label_of(self, at: Located) -> str:
        """The block label of a place; of a program's source the key."""
        return at.relative if at.source_id in self._own else self._source(at).label(at.relative)

    def level_of_label(self, label: str) -> LevelDecision:
        """The level of a block that stands for a file, whichever tool asks; none for one that no running source has."""
        from gatewright.sources.route import relative_in

        relative = relative_in(label)
        for source in self._running.values():
            if relative is not None and source.label(relative) == label:
                return self.level(Located(source.source_id, relative, source.absolute(relative)))
        return LevelDecision(Permission.NONE)

    def level(self, at: Located) -> LevelDecision:
        """The effective level of a place; none where the way there cannot be looked at, and for protected files."""
        own = self._own.get(at.source_id)
        if own is not None:
            return own.place(at.relative).level or LevelDecision(Permission.NONE)
        return self._level(self._places, at)

    def _level(self, places: KnownPlaces, at: Located) -> LevelDecision:

        source = _source(places, at)
        protected = self._protection.now()
        try:
            known = places.known(source, at.relative)
            standing = look_along(known.steps, source.folder)
        except ToolFailure as failure:
            if failure.code != "source-missing":
                return LevelDecision(Permission.NONE)
            return places.decide(source, at.relative, (), protected, folder=False)
        return known.level(standing, protected)

    # the port: what a call would do

    def assess_save(self, at: Located) -> Assessment:
        """Whether writing the block only extends the file (append) or not (overwrite), with the diff.

        Asks when the file was deleted since, and would be written again.
        """
        return self._source(at).assess_save(at.relative)

    def assess_load(self, at: Located) -> Assessment:
        """Read; asks when it would throw away edits."""
        if at.source_id in self._own:
            return Assessment(Action.READ)
        return self._source(at).assess_load(at.relative)

    def assess_reload(self, at: Located) -> Assessment:
        """As ``assess_load``, of a block that is there."""
        return self._source(at).assess_reload(at.relative)

    def assess_create(self, at: Located, content: str) -> Assessment:
        """Append, with the text of the new file."""
        return self._source(at).assess_create(at.relative, content)

    def assess_delete(self, at: Located, *, recursive: bool = False) -> Assessment:
        """Delete, with the text or the files that go; of a folder asking where one of them asks. Raises ToolFailure.

        Raises where a file in the folder may not be deleted, too: refuse the call then.
        """
        from gatewright.sources.tree import doomed

        source = self._source(at)
        if not (recursive and source.look(at.relative).is_folder):
            return Assessment(Action.DELETE, later=Later(partial(source.text_gone, at.relative)))
        going = doomed(source, at.relative, self.overlay(at.source_id).level_of)
        ask = f"{going.asks:,} of {len(going.files):,} files go only when somebody agrees" if going.asks else None
        return Assessment(Action.DELETE, ask, going.shown())

    def text_of(self, at: Located) -> str | None:
        """The text of that place now (block, else disk); None for too much to compare. Raises ToolFailure."""
        return self._source(at).text_of(at.relative)

    def assess_text(self, at: Located, new_text: str) -> Assessment:
        """The diff from the text of that place to ``new_text``, without an action.

        Raises ToolFailure for a text that the file could not hold.
        """
        return self._source(at).assess_text(at.relative, new_text)

    # the port: operations

    async def read(self, at: Located) -> FileText:
        """The block's text if there is a block, else the disk's."""
        return await self._in_thread(at, lambda source: source.read(at.relative))

    async def list_folder(self, at: Located, limit: int = MAX_LISTED) -> list[JsonValue]:
        """Entries of a folder that are not none, folders first: name, kind, size, permission, loaded."""

        from gatewright.sources.tree import list_entries

        def work(source: FileSource) -> list[JsonValue]:
            return list_entries(source, at.relative, self.overlay(source.source_id).level_of, limit)

        return await self._in_thread(at, work)

    async def load(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """Read the disk into the block; edits that were not written go only when somebody was ``asked``.

        Of a program's source there is no block: what it gives is the answer.
        """
        own = self._own.get(at.source_id)
        if own is not None:
            return {"source_id": at.source_id, "label": at.relative, "content": await own.load(at.relative)}
        return await self._take(at, asked, FileSource.load)

    async def save(
        self, at: Located, granted: Action, *, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Write the block to disk, in one step; a file that was deleted since only when somebody was ``asked``."""

        def work(source: FileSource) -> JsonValue:
            return source.save(at.relative, granted, asked=bool(asked))

        return await self._change(at, granted, asked or approved, work)

    async def append(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        """Add text at the end of the block."""
        return await self._change(at, Action.APPEND, approved, lambda source: source.append(at.relative, content))

    async def replace(self, at: Located, old: str, new: str, *, approved: Approved = False) -> JsonValue:
        """Replace the one occurrence of ``old`` in the block."""
        return await self._change(at, Action.OVERWRITE, approved, lambda source: source.replace(at.relative, old, new))

    async def insert(self, at: Located, line: int, content: str, *, approved: Approved = False) -> JsonValue:
        """Put whole lines before a line of the block (from 1; one past the last: behind it)."""
        return await self._change(
            at, Action.OVERWRITE, approved, lambda source: source.insert(at.relative, line, content)
        )

    async def patch(self, at: Located, patch: str, *, approved: Approved = False) -> JsonValue:
        """Apply a unified diff to the block, all of it or nothing."""
        return await self._change(at, Action.OVERWRITE, approved, lambda source: source.patch(at.relative, patch))

    async def reload(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """As ``load``, with a block that is there."""
        return await self._take(at, asked, FileSource.reload)

    async def _take(self, at: Located, asked: Approved, take: Callable[[FileSource, str], JsonValue]) -> JsonValue:
        def work(source: FileSource) -> JsonValue:
            permit_loss(source.assess_load(at.relative), asked)
            return take(source, at.relative)

        return await self._in_thread(at, work, changes=True)

    async def status(self, at: Located) -> JsonValue:
        """How block and disk stand to each other: of a file, or of all files with a block below a folder."""
        return await self._in_thread(at, lambda source: self._status(source, at))

    async def diff(self, at: Located) -> JsonValue:
        """What writing the block would change on disk, as a unified diff of bounded size."""
        return await self._in_thread(at, lambda source: source.diff(at.relative))

    async def reconcile(self, at: Located, strategy: str, mark: str | None = None) -> JsonValue:
        """Bring block and disk into step by ``ours``, ``theirs``, ``merge``; ``ask`` only tells the conflict.

        ``mark``: of the standing that somebody decided by; with another one nothing is done.
        """
        try:
            chosen = Strategy(strategy)
        except ValueError:
            said = f"`{strategy[:40]}` is none of the strategies {', '.join(Strategy)}"
            raise ToolFailure(said, code="bad-argument") from None
        return await self._in_thread(at, lambda source: source.reconcile(at.relative, chosen, mark), changes=True)

    async def list_tree(
        self, at: Located, pattern: str | None = None, limit: int = MAX_LISTED, *, recursive: bool = True
    ) -> list[JsonValue]:
        """What may be read below a folder, in order: path, kind, size, permission, loaded.

        With a gitignore ``pattern`` (on the path below the folder) only files; not ``recursive``: only what is in the
        folder itself. The last row says what was left out.
        """

        from gatewright.sources.tree import list_tree

        def work(source: FileSource) -> list[JsonValue]:
            level_of = self.overlay(source.source_id).level_of
            return list_tree(source, at.relative, level_of, pattern=pattern, limit=limit, recursive=recursive)

        return await self._in_thread(at, work)

    async def create(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        """Make a new file and its block; never overwrites."""
        return await self._change(at, Action.APPEND, approved, lambda source: source.create(at.relative, content))

    async def delete(
        self, at: Located, *, recursive: bool = False, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Remove a file from disk and its block; a folder only with ``recursive``, the top one never.

        Of a folder every file has to be one that may be deleted by its own level; ``asked``: somebody agreed to those
        that ask, and so to the call.
        """

        from gatewright.sources.tree import doomed, remove_tree

        def work(source: FileSource) -> JsonValue:
            if not (recursive and source.look(at.relative).is_folder):
                return source.delete(at.relative)
            level_of = self.overlay(source.source_id).level_of
            going = doomed(source, at.relative, level_of)
            if going.asks and not asked:
                raise ToolFailure(f"{going.asks:,} of the files go only when somebody agrees", code="not-granted")
            return remove_tree(source, going, level_of)

        return await self._change(at, Action.DELETE, asked or approved, work)

    async def block_info(self, at: Located) -> JsonValue:
        """Metadata of the block at that place."""
        return await self._in_thread(at, lambda source: source.block_info(at.relative))

    # inside

    def take_in(self, source_id: str, relative: str) -> OutsideChange | None:
        """After a change from outside: put the file's new text into its block; what became of it, None without block.

        A block without edits follows the disk, one with edits is merged with it; what conflicts is left alone.

        Raises ToolFailure, WorkspaceError. It blocks: call it in a thread.
        """
        at = Located(source_id, relative, "")
        return self._alone(at, lambda source: source.take_in(relative), changes=True)

    def _status(self, source: FileSource, at: Located) -> JsonValue:
        from gatewright.sources.tree import status_below

        try:
            folder = at.relative == BASE or source.look(at.relative).is_folder
        except ToolFailure:
            folder = False
        if not folder:
            return source.status(at.relative)
        return list(status_below(source, at.relative, self.overlay(source.source_id).level_of))

    async def _in_thread(self, at: Located, work: Callable[[FileSource], Answer], *, changes: bool = False) -> Answer:
        return await aio.to_thread(self._alone, at, work, changes)

    async def _change(
        self, at: Located, action: Action, approved: Approved, work: Callable[[FileSource], Answer]
    ) -> Answer:
        return await aio.to_thread(self._alone, at, work, True, action, approved)

    def _alone(
        self,
        at: Located,
        work: Callable[[FileSource], Answer],
        changes: bool,
        action: Action = Action.READ,
        approved: Approved = False,
    ) -> Answer:
        """One call per file at a time, among processes too where it changes a block; the level is asked once more."""
        path = self._source(at).absolute(at.relative)
        alone = self._blocks.exclusive() if changes else nullcontext()
        with self._locks[hash(path) % _STRIPES], alone:
            places = self._places  # level and work by the same rules, those of now
            source = _source(places, at)
            if source.absolute(at.relative) != path:
                raise _detached()
            level = self._level(places, at).permission
            if level is Permission.NONE:
                source.look(at.relative)  # tells why, where the way there is the reason
                raise ToolFailure("this path is not available", code="not-available")
            permit(level, action, approved)
            refuse_stale(approved)
            return work(source)

    def _source(self, at: Located) -> FileSource:
        return _source(self._places, at)


def _source(places: KnownPlaces, at: Located) -> FileSource:
    source = places.running.get(at.source_id)
    if source is None:
        raise _detached()
    return source


def _detached() -> ToolFailure:
    return ToolFailure("the source of this path is not attached any more", code="no-source")
