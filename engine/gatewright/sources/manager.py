"""All running sources together: routing, levels of overlapping bases, locks, threads.

The first source registers the ``file`` tool, the last one withdraws it. Where bases overlap, a file has the strictest
level that any of them gives it. Disk work runs in threads, one call per file at a time, and checks the level again
there: ``approved`` permits actions that a level allows only after somebody agreed. It has more than 450 lines because
it is the whole port for tools and gate, with a short method for each question.
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
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
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
    levels_pass,
)
from gatewright.policy.verdict import Action, Permission
from gatewright.record.process import fork_safe_lock
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.descriptor import Identity, identity_of, look_along
from gatewright.sources.filesource import BASE, MAX_LISTED, FileSource
from gatewright.sources.ground import Protection
from gatewright.sources.held import BlockStorePort, OutsideChange, Strategy
from gatewright.sources.known import KnownPlaces, OwnSource, permit, permit_loss, refuse_stale
from gatewright.sources.route import DiskPaths

if TYPE_CHECKING:
    from gatewright.sources.tree import Overlay

Answer = TypeVar("Answer")
_STRIPES = 64


class SourceManager:
    """All sources of a workspace. ``register_file_tool`` returns the function that withdraws the tool.

    ``allowed`` are the source ids of the calling agent. A place (`Located`) comes from ``locate``: it is canonical and
    inside its base, and every disk operation checks that again on the descriptor it opens.

    An operation that changes a block or the disk checks the level again when it acts. It raises ToolFailure if the
    level denies by then, or asks and neither ``approved`` nor ``asked`` is given. These two mean that somebody agreed
    to the call; they are functions that tell whether the agreement still holds.
    """

    PROTECTED_LEVEL: ClassVar[Permission] = Permission.NONE
    """The level of every path that ``protects`` covers, whatever the rules say."""

    def __init__(
        self, register_file_tool: Callable[[], Callable[[], None]], blocks: BlockStorePort, protection: Protection
    ) -> None:
        self._register_file_tool = register_file_tool
        self._withdraw: Callable[[], None] | None = None
        self._blocks = blocks
        self._protection = protection
        self.watched: frozenset[str] = frozenset()
        """The ids of the sources whose outside changes go into blocks at once."""
        self._places = KnownPlaces({}, protection)
        self._own: Mapping[str, OwnSource] = {}
        self._locks = tuple(fork_safe_lock() for _ in range(_STRIPES))

    # sources

    @property
    def _running(self) -> Mapping[str, FileSource]:
        return self._places.running

    def _run(self, running: Mapping[str, FileSource]) -> None:
        """Use these sources from now on, with a new table of places."""
        self._protection.hold(source.folder for source in running.values())
        self._places = KnownPlaces(running, self._protection)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the running sources, in the order of their start."""
        return tuple(self._running)

    def get(self, source_id: str) -> FileSource | None:
        """Return a running source, or None."""
        return self._running.get(source_id)

    def follow(self, wanted: Sequence[tuple[Source, BaseFolder]]) -> Callable[[], None]:
        """Run exactly these sources, on these folders, from now on, in one step. Raises ValueError for a bad pattern.

        The returned function withdraws the ``file`` tool if no source is left; call it when no policy in force needs
        the tool any more.
        """
        running = {source.source_id: self._source_for(source, folder) for source, folder in wanted}
        if running and self._withdraw is None:
            self._withdraw = self._register_file_tool()
        self._run(running)
        return self._withdraw_if_idle

    def follow_own(self, running: Iterable[OwnSource]) -> None:
        """Run exactly these sources of the program from now on."""
        self._own = {one.source.source_id: one for one in running}

    def own(self, source_id: str) -> OwnSource | None:
        """Return a running source of the program, or None."""
        return self._own.get(source_id)

    def readable(self, source_id: str, keys: Iterable[str]) -> list[str]:
        """Return those keys of a program's source that its agents may see. Raises ToolFailure."""
        own = self._own.get(source_id)
        if own is None:
            raise ToolFailure("this source is not attached", code="no-source")
        return own.readable(keys)

    def snapshot(self) -> SourceManager:
        """Return the current sources for a policy in force; later changes do not affect it, and locks are shared."""
        return copy.copy(self)

    def _source_for(self, source: Source, folder: BaseFolder) -> FileSource:
        running = self._running.get(source.source_id)
        if running is not None and running.folder is folder and running.source == source:
            return running
        return FileSource(source, folder, self._blocks, self._protection)

    def _withdraw_if_idle(self) -> None:
        if not self._running and self._withdraw is not None:
            withdraw, self._withdraw = self._withdraw, None
            withdraw()

    def overlay(self, source_id: str) -> Overlay:
        """Return a source as people see it: its tree with levels, and counts.

        Raises WorkspaceError for an unknown id.
        """
        from gatewright.sources.tree import Overlay

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
        """Tell whether a canonical path is protected by its name alone, without asking the disk."""
        return self._protection.by_name.covers(absolute)

    def protects(self, path: Path) -> bool:
        """Tell whether a file or folder on disk is protected, by its path (with or without links) or by its
        identity.
        """

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
        """Find the place of a model's path; touches metadata only."""
        from gatewright.sources.route import Route

        own = self._own.get(source_id) if source_id is not None and source_id in allowed else None
        return Route(self._places).of_path(path, source_id, allowed) if own is None else own.locate(path)

    def real(self, path: str) -> str:
        """Resolve links and ``..`` in an absolute path. Raises OSError and ValueError."""
        return self._protection.ground.real(path)

    def place(self, path: str) -> str:
        """Return the place on disk of an absolute path without links and ``..``, which differs in a disposable copy."""
        return self._protection.ground.place(path)

    def locate_label(self, label: str, *, allowed: Sequence[str]) -> Located | Refusal:
        """Find the place of a block's label."""
        from gatewright.sources.route import Route

        return Route(self._places).of_label(label, allowed)

    def find_file(
        self, path: str, *, folder: str | None, prefixes: Sequence[str] = (), parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        """Find the place on disk of a path that any tool receives; touches metadata only."""
        roots = DiskPaths(self._running.values(), self._protection.now(), folder, prefixes)
        return roots.find(path, parameter=parameter, writes=writes)

    def places_named(
        self,
        text: str,
        action: Action,
        *,
        folders: Sequence[str] | None,
        bases: bool = True,
        contents: bool,
        patterns: bool = True,
        lists: Listing | None = None,
        confined: bool = False,
    ) -> tuple[NamedPlace, ...] | None:
        """Find every place on disk for which some program may take ``text``, each with its level.

        None if it may mean too many. Touches metadata only.
        """
        from gatewright.sources.route import Look, NamedPlaces

        named = NamedPlaces(self._places, self._protection.now())
        look = Look(action, contents=contents, patterns=patterns, lists=lists, confined=confined)
        return named.of(text, look, folders=folders, bases=bases)

    def places_at(
        self, paths: Iterable[str], action: Action, *, contents: bool, endings: tuple[str, ...] | None = None
    ) -> tuple[NamedPlace, ...]:
        """Find the places of absolute paths, each with its level; with ``contents`` that of the strictest place in a
        folder, if its name has one of these ``endings``.

        Touches metadata only.
        """
        from gatewright.sources.route import Look, NamedPlaces

        named = NamedPlaces(self._places, self._protection.now())
        return named.at(paths, Look(action, contents=contents, patterns=False, files=True, endings=endings))

    def label_of(self, at: Located) -> str:
        """Return the block label of a place; in a program's source, its key."""
        return at.relative if at.source_id in self._own else self._source(at).label(at.relative)

    def level_of_label(self, label: str) -> LevelDecision:
        """Return the level of a file's block, whatever tool asks; none if no running source contains the file."""
        from gatewright.sources.route import relative_in

        relative = relative_in(label)
        for source in self._running.values():
            if relative is not None and source.label(relative) == label:
                return self.level(Located(source.source_id, relative, source.absolute(relative)))
        return LevelDecision(Permission.NONE)

    def level(self, at: Located) -> LevelDecision:
        """Return the effective level of a place; none for protected files, and if the way is unreadable."""
        own = self._own.get(at.source_id)
        if own is not None:
            return own.place(at.relative).level or LevelDecision(Permission.NONE)
        return self._level(self._places, at)

    def _level(self, places: KnownPlaces, at: Located) -> LevelDecision:

        source = _source(places, at)
        protected = self._protection.now()
        try:
            known = places.find(source, at.relative)
            standing = look_along(known.steps, source.folder)
        except ToolFailure as failure:
            if failure.code != "source-missing":
                return LevelDecision(Permission.NONE)
            return places.decide(source, at.relative, (), protected, folder=False)
        return known.level(standing, protected)

    # the port: assessments

    def assess_save(self, at: Located) -> Assessment:
        """Assess a save: append if the block only extends the file, else overwrite; with the diff.

        It asks if somebody has deleted the file meanwhile, since the save would create it again.
        """
        return self._source(at).assess_save(at.relative)

    def assess_load(self, at: Located) -> Assessment:
        """Assess a load: read, and ask if it would lose edits."""
        if at.source_id in self._own:
            return Assessment(Action.READ)
        return self._source(at).assess_load(at.relative)

    def assess_reload(self, at: Located) -> Assessment:
        """Assess a load into an existing block, and ask if it would lose edits."""
        return self._source(at).assess_reload(at.relative)

    def assess_create(self, at: Located, content: str) -> Assessment:
        """Assess a new file: append, with its text."""
        return self._source(at).assess_create(at.relative, content)

    def assess_delete(self, at: Located, *, recursive: bool = False) -> Assessment:
        """Assess a removal, with the text or the files to remove; a folder asks if one of its files asks. Raises
        ToolFailure.

        It also raises if a file in the folder may not be deleted: then the call must be refused.
        """
        from gatewright.sources.tree import plan_removal

        source = self._source(at)
        if not (recursive and source.look(at.relative).is_folder):
            return Assessment(Action.DELETE, later=Later(partial(source.text_gone, at.relative)))
        going = plan_removal(source, at.relative, self.overlay(at.source_id).level_of)
        ask = f"{going.asks:,} of {len(going.files):,} files go only when somebody agrees" if going.asks else None
        return Assessment(Action.DELETE, ask, going.summary())

    def text_of(self, at: Located) -> str | None:
        """Return the current text of a place (block, else disk); None if too long to compare. Raises ToolFailure."""
        return self._source(at).text_of(at.relative)

    def assess_text(self, at: Located, new_text: str) -> Assessment:
        """Return the diff from the current text of a place to ``new_text``, without an action.

        Raises ToolFailure for a text that the file cannot hold.
        """
        return self._source(at).assess_text(at.relative, new_text)

    # the port: operations

    async def read(self, at: Located) -> FileText:
        """Read the block's text if the file has a block, else the file on disk."""
        return await self._in_thread(at, lambda source: source.read(at.relative))

    async def list_folder(self, at: Located, limit: int = MAX_LISTED) -> list[JsonValue]:
        """List the entries of a folder whose level is not none, folders first: name, kind, size, permission, loaded."""

        from gatewright.sources.tree import list_entries

        def work(source: FileSource) -> list[JsonValue]:
            return list_entries(source, at.relative, self.overlay(source.source_id).level_of, limit)

        return await self._in_thread(at, work)

    async def load(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """Read the disk into the block; unwritten edits may be lost only if somebody was ``asked``.

        A program's source has no blocks, so the answer is its text.
        """
        own = self._own.get(at.source_id)
        if own is not None:
            return {"source_id": at.source_id, "label": at.relative, "content": await own.load(at.relative)}
        return await self._take(at, asked, FileSource.load)

    async def save(
        self, at: Located, granted: Action, *, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Write the block to disk, in one step; a file deleted meanwhile only if somebody was ``asked``."""

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
        """Insert whole lines before a line of the block (from 1; one past the last: at the end)."""
        return await self._change(
            at, Action.OVERWRITE, approved, lambda source: source.insert(at.relative, line, content)
        )

    async def patch(self, at: Located, patch: str, *, approved: Approved = False) -> JsonValue:
        """Apply a unified diff to the block, all of it or nothing."""
        return await self._change(at, Action.OVERWRITE, approved, lambda source: source.patch(at.relative, patch))

    async def reload(self, at: Located, *, asked: Approved = False) -> JsonValue:
        """Read the disk into an existing block, as ``load`` does."""
        return await self._take(at, asked, FileSource.reload)

    async def _take(self, at: Located, asked: Approved, take: Callable[[FileSource, str], JsonValue]) -> JsonValue:
        def work(source: FileSource) -> JsonValue:
            permit_loss(source.assess_load(at.relative), asked)
            return take(source, at.relative)

        return await self._change(at, Action.READ, asked, work)

    async def status(self, at: Located) -> JsonValue:
        """Compare block and disk, for a file or for all files with a block below a folder."""
        return await self._in_thread(at, lambda source: self._status(source, at))

    async def diff(self, at: Located) -> JsonValue:
        """Return what writing the block would change on disk, as a unified diff of bounded size."""
        return await self._in_thread(at, lambda source: source.diff(at.relative))

    async def reconcile(self, at: Located, strategy: str, mark: str | None = None) -> JsonValue:
        """Bring block and disk into step by ``ours``, ``theirs``, ``merge``; ``ask`` only reports the conflict.

        ``mark``: of the standing that somebody decided by; if the standing is another by now, it raises ToolFailure.
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
        """List the readable entries below a folder, in order: path, kind, size, permission, loaded.

        A gitignore ``pattern`` (on the path below the folder) selects files; without ``recursive`` the list stops at
        the folder itself. If the list is cut, the last row says so.
        """

        from gatewright.sources.tree import list_tree

        def work(source: FileSource) -> list[JsonValue]:
            level_of = self.overlay(source.source_id).level_of
            return list_tree(source, at.relative, level_of, pattern=pattern, limit=limit, recursive=recursive)

        return await self._in_thread(at, work)

    async def create(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        """Create a file and its block; never overwrites."""
        return await self._change(at, Action.APPEND, approved, lambda source: source.create(at.relative, content))

    async def delete(
        self, at: Located, *, recursive: bool = False, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        """Remove a file from disk, and its block; a folder only with ``recursive``, the top folder never.

        A folder goes only if the level of every file in it permits that; ``asked``: somebody agreed to those that ask,
        and so to the call.
        """

        from gatewright.sources.tree import plan_removal, remove_tree

        def work(source: FileSource) -> JsonValue:
            if not (recursive and source.look(at.relative).is_folder):
                return source.delete(at.relative)
            level_of = self.overlay(source.source_id).level_of
            going = plan_removal(source, at.relative, level_of)
            if going.asks and not asked:
                raise ToolFailure(f"{going.asks:,} of the files go only when somebody agrees", code="not-granted")
            return remove_tree(source, going, level_of)

        return await self._change(at, Action.DELETE, asked or approved, work)

    async def block_info(self, at: Located) -> JsonValue:
        """Return the metadata of the block at that place."""
        return await self._in_thread(at, lambda source: source.block_info(at.relative))

    # helpers

    def take_in(self, source_id: str, relative: str) -> OutsideChange | None:
        """Put the file's new text after an outside change into its block; return the outcome, None without a block.

        A block without edits takes the disk's text, one with edits is merged with it; a conflict changes nothing.
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
        """Run one call per file at a time, among processes too if it changes a block; check the level once more."""
        path = self._source(at).absolute(at.relative)
        alone = self._blocks.exclusive() if changes else nullcontext()
        with self._locks[hash(path) % _STRIPES], alone:
            places = self._places  # level and work follow the same, current rules
            source = _source(places, at)
            if source.absolute(at.relative) != path:
                raise _no_source_failure()
            decision = self._level(places, at)
            level = decision.permission
            if level is Permission.NONE and (decision.protected or not levels_pass.get()):
                source.look(at.relative)  # raises the reason if the way there is at fault
                raise ToolFailure("this path is not available", code="not-available")
            permit(level, action, approved)
            refuse_stale(approved)
            return work(source)

    def _source(self, at: Located) -> FileSource:
        return _source(self._places, at)


def _source(places: KnownPlaces, at: Located) -> FileSource:
    source = places.running.get(at.source_id)
    if source is None:
        raise _no_source_failure()
    return source


def _no_source_failure() -> ToolFailure:
    return ToolFailure("the source of this path is not attached any more", code="no-source")
