"""How many of the real files each operation of an agent may touch, by the verdict. For the worker process.

The files are those that the page Files counts; of each folder that is read the names are kept until somebody asks for
them afresh.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast
from weakref import WeakKeyDictionary

from gatewright.workspace.api import (
    BaseFolder,
    GatewrightError,
    PathCondition,
    Permission,
    PermissionRules,
    PlaceRight,
    SchemaChecker,
    Source,
    Verdict,
    Workspace,
    WorkspaceError,
    close_constraint,
    frozen,
    place_rights,
    sources_reached,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.look import VerdictName
from gatewright_gui.session.file_index import PROTECTED, Decided, FileIndex, decide, level_of, walk

MOST_COUNTED = 20_000
"""Entries of a source that are looked at: enough for the share, and done in a moment."""
_KEPT: WeakKeyDictionary[Workspace, dict[str, tuple[BaseFolder, FileIndex]]] = WeakKeyDictionary()


@frozen
class Share:
    """The number of files that an operation denies, asks for and allows.

    `is_partial`: there are more files than were counted. `blocks`: how many of them are blocks of memory.
    `elsewhere`: the tool may reach files in no source too, which no level denies and nobody counts.
    """

    deny: int
    ask: int
    allow: int
    is_partial: bool = False
    blocks: int = 0
    elsewhere: bool = False

    @property
    def files(self) -> int:
        """The number of files and blocks that were counted."""
        return self.deny + self.ask + self.allow

    @property
    def tells(self) -> bool:
        """True if a bar says what calls come to: not where all that is counted is denied, and the rest not known."""
        return self.files > 0 and not (self.elsewhere and self.deny == self.files)

    @property
    def parts(self) -> Mapping[VerdictName, tuple[int, str]]:
        """The counts, each with its words: `1 asks first`."""
        return {
            "allow": (self.allow, tr("{count:,} without asking", count=self.allow)),
            "ask": (self.ask, counted(self.ask, "asks first", "ask first")),
            "deny": (self.deny, tr("{count:,} never", count=self.deny)),
        }

    @property
    def words(self) -> str:
        """In words: `of 12 files 9 without asking, 1 asks first, 2 never`."""
        said = ", ".join(words for count, words in self.parts.values() if count)
        unknown = tr("files in no source are not counted, and no level denies them") if self.elsewhere else ""
        if not said:
            return unknown or tr("there is no file yet")
        parts = (
            (self.files - self.blocks, counted(self.files - self.blocks, "file", "files")),
            (self.blocks, counted(self.blocks, "block", "blocks")),
        )
        of = tr(" and ").join(words for count, words in parts if count)
        text = tr("of the first {files} {counts}") if self.is_partial else tr("of {files} {counts}")
        return "; ".join(filter(None, (text.format(files=of, counts=said), unknown)))


Shares = Mapping[tuple[str, str], Share]
"""By tool and operation; only of those that go by the path or the block."""


def path_shares(
    workspace: Workspace, agent_id: str, tools: frozenset[str] | None = None, *, afresh: bool = False
) -> Shares:
    """Return the shares of an agent, at these tools or at all. `afresh`: look at the disk again.

    What makes new files has none: a file that is there is none that it may touch.
    """
    if afresh:
        forget_files(workspace)
    policy = workspace.policy
    agent = policy.agents[agent_id]
    seen: dict[str, SourceFiles | None] = {}
    blocks: list[Permission] | None = None
    found: dict[tuple[str, str], Share] = {}
    for name, tool in workspace.rights(agent_id).items():
        if tools is not None and name not in tools:
            continue
        folders = server_folders(workspace, tool.facts.origin)
        facts = {op.name: op for op in tool.facts.operations}
        for operation, place in place_rights(policy, agent_id, tool).items():
            op = facts[operation]
            if op.makes:
                continue
            for source in (sources := sources_reached(policy, agent, tool.facts, op)):
                if source.source_id not in seen:
                    seen[source.source_id] = source_files(workspace, source)
            known = [files for source in sources if (files := seen[source.source_id]) is not None]
            in_memory = bool(op.labels) and not tool.facts.needs_source
            if in_memory and blocks is None:
                blocks = block_levels(workspace, agent_id)
            if known or in_memory:
                share = FileUse(place).share(known, folders, (blocks or []) if in_memory else [])
                found[name, operation] = replace(share, elsewhere=bool(op.path_actions or op.disk_actions))
    return found


def server_folders(workspace: Workspace, origin: str) -> tuple[str, ...]:
    """The folders that the server of a catalog is started with; none where nothing tells what it reaches."""
    catalog = next((one for one in workspace.policy.catalogs if one.catalog_id == origin), None)
    if catalog is None or catalog.command is None:
        return ()
    start = Path(workspace.folder, catalog.cwd or ".")
    given = (arg.rpartition("=")[2] for arg in catalog.args)
    return tuple(f"{folder.resolve()}/" for arg in given if arg and (folder := start / arg).is_dir())


def block_levels(workspace: Workspace, agent_id: str) -> list[Permission]:
    """The levels of the blocks of memory that the agent may name; those of files are counted as files."""
    try:
        return [record.permission for record in workspace.blocks(agent_id).list() if not record.source_id]
    except GatewrightError:
        return []


class FileUse:
    """The verdict that one operation of an agent comes to at any file."""

    def __init__(self, place: PlaceRight) -> None:
        self._place = place
        self._checks = [_check(condition) for condition in place.conditions]

    @property
    def has_conditions(self) -> bool:
        """True if the path itself counts, besides its level."""
        return bool(self._checks)

    def block_verdict(self, level: Permission) -> Verdict:
        """At a block of memory that has this level."""
        return self._place.block_verdict(level)

    def verdict(self, source: Source, path: str, level: Permission) -> Verdict:
        """At a path, from the base, that has this level."""
        return self._place.verdict(source, level, [check(path) for check in self._checks])

    def share(
        self, files: "Iterable[SourceFiles]", within: Sequence[str] = (), blocks: Sequence[Permission] = ()
    ) -> Share:
        """At all of these files that lie in one of the folders, if any are given, and at blocks with these levels."""
        found: Counter[Verdict] = Counter(self._place.block_verdict(level) for level in blocks)
        partial = False
        for one in files:
            partial = partial or one.decided.index.truncated
            levels = ((self.verdict(one.source, path, one.levels[code]), 1) for path, code in one.paths(within))
            if not self._checks and not within:
                counts = one.decided.counts.items()
                levels = (
                    (self.verdict(one.source, "", one.levels[code]), count)
                    for code, count in counts
                    if code != PROTECTED
                )
            for verdict, count in levels:
                found[verdict] += count
        return Share(found[Verdict.DENY], found[Verdict.ASK], found[Verdict.ALLOW], partial, len(blocks))


def _check(condition: PathCondition) -> Callable[[str], bool]:
    fields = cast("Mapping[str, Mapping[str, object] | bool]", condition["properties"])
    if any(not isinstance(held, bool) and not {"$defs", "definitions"}.isdisjoint(held) for held in fields.values()):
        checkers = [
            SchemaChecker(close_constraint(held)) for held in fields.values()
        ]  # each with references of its own
        return lambda path: all(one.is_valid(path) for one in checkers)
    names = tuple(fields)
    checker = SchemaChecker(dict(condition))
    return lambda path: checker.is_valid(dict.fromkeys(names, path))


class SourceFiles:
    """The files of one source: `levels` by the codes of `decided`. What is our own and protected is none of them."""

    def __init__(self, source: Source, base: str, decided: Decided) -> None:
        self.source, self.decided = source, decided
        self.base = base
        rules, default = source.permission_rules, source.default_permission
        self.levels = {code: level_of(code, rules, default) for code in decided.counts}

    def paths(self, within: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
        """Every path with its code; those in one of the folders, if any are given."""
        for folder, codes in zip(self.decided.index.folders, self.decided.codes, strict=True):
            if within and not f"{self.base}/{folder.prefix}".startswith(tuple(within)):
                continue
            found = zip(folder.names, codes, strict=True)
            yield from ((folder.prefix + name, code) for name, code in found if code != PROTECTED)


def source_files(workspace: Workspace, source: Source, like: SourceFiles | None = None) -> SourceFiles | None:
    """Return the files of a source as far as its folder can be read; None where it cannot.

    ``like``: those of the same source under another policy; if they lie in the same folder it is not read again.
    """
    kept = _KEPT.setdefault(workspace, {})
    try:
        overlay, running = workspace.sources.overlay(source.source_id), workspace.sources.get(source.source_id)
        if running is None:
            return None
        base = running.base.rstrip("/")
        before = kept.get(source.source_id)
        index = before[1] if before is not None and before[0] is running.folder else None
        if like is not None and like.base == base:
            index = like.decided.index
        if index is None:
            index = walk(running, _never, lambda _seen: None, limit=MOST_COUNTED)
            kept[source.source_id] = (running.folder, index)
    except WorkspaceError:
        return None
    rules = PermissionRules(source.permission_rules, source.default_permission)
    return SourceFiles(source, base, decide(index, overlay, rules, _never))


def forget_files(workspace: Workspace) -> None:
    """Have the disk looked at again with the next question."""
    _KEPT.pop(workspace, None)


def _never() -> bool:
    return False
