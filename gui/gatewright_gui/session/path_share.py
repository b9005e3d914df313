"""How many of the real files each operation of an agent may touch, by the verdict. For the worker process.

The files are those that the page Files counts; of each folder that is read the names are kept until somebody asks for
them afresh.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast
from weakref import WeakKeyDictionary

from gatewright.workspace.api import (
    BaseFolder,
    PathCondition,
    Permission,
    PermissionRules,
    PlaceRight,
    SchemaChecker,
    Source,
    Verdict,
    Workspace,
    WorkspaceError,
    frozen,
    place_rights,
)
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.session.file_index import Decided, FileIndex, decide, level_of, walk
from gatewright_gui.session.verdict import verdict_words

MOST_COUNTED = 20_000
"""Entries of a source that are looked at: enough for the share, and done in a moment."""
_KEPT: WeakKeyDictionary[Workspace, dict[str, tuple[BaseFolder, FileIndex]]] = WeakKeyDictionary()


@frozen
class Share:
    """How many files an operation denies, asks for and allows. `is_partial`: there are more files than were counted."""

    deny: int
    ask: int
    allow: int
    is_partial: bool = False

    @property
    def files(self) -> int:
        """How many files were counted."""
        return self.deny + self.ask + self.allow

    @property
    def words(self) -> str:
        """In words: `of 12 files allow 9, ask first 1, deny 2`."""
        counts = {Verdict.ALLOW: self.allow, Verdict.ASK: self.ask, Verdict.DENY: self.deny}
        said = ", ".join(f"{verdict_words(verdict)} {count:,}" for verdict, count in counts.items() if count)
        if not said:
            return tr("there is no file yet")
        text = tr("of the first {files} {counts}") if self.is_partial else tr("of {files} {counts}")
        return text.format(files=counted(self.files, "file", "files"), counts=said)


Shares = Mapping[tuple[str, str], Share]
"""By tool and operation; only of those that go by the path."""


def path_shares(
    workspace: Workspace, agent_id: str, tools: frozenset[str] | None = None, *, afresh: bool = False
) -> Shares:
    """The shares of an agent, at these tools or at all. `afresh`: look at the disk again."""
    if afresh:
        _KEPT.pop(workspace, None)
    policy = workspace.policy
    agent = policy.agents[agent_id]
    counted: dict[str, _Files | None] = {}
    found: dict[tuple[str, str], Share] = {}
    for name, tool in workspace.rights(agent_id).items():
        if tools is not None and name not in tools:
            continue
        if not tool.facts.needs_source and not any(op.paths for op in tool.facts.operations):
            continue
        sources = policy.sources_of(agent) if tool.facts.needs_source else policy.file_sources
        for operation, place in place_rights(policy, agent_id, tool).items():
            for source in sources:
                if source.source_id not in counted:
                    counted[source.source_id] = _files_of(workspace, source)
            known = [files for source in sources if (files := counted[source.source_id]) is not None]
            if known:
                found[name, operation] = FileUse(place).share(known)
    return found


class FileUse:
    """What one operation of an agent comes to at any file."""

    def __init__(self, place: PlaceRight) -> None:
        self._place = place
        self._checks = [_check(condition) for condition in place.conditions]

    def verdict(self, source: Source, path: str, level: Permission) -> Verdict:
        """At a path, from the base, that has this level."""
        return self._place.verdict(source, level, [check(path) for check in self._checks])

    def share(self, files: "Iterable[_Files]") -> Share:
        """At all of these files."""
        found: Counter[Verdict] = Counter()
        partial = False
        for one in files:
            partial = partial or one.decided.index.truncated
            levels = ((self.verdict(one.source, path, one.levels[code]), 1) for path, code in one.paths())
            if not self._checks:
                counts = one.decided.counts.items()
                levels = ((self.verdict(one.source, "", one.levels[code]), count) for code, count in counts)
            for verdict, count in levels:
                found[verdict] += count
        return Share(found[Verdict.DENY], found[Verdict.ASK], found[Verdict.ALLOW], partial)


def _check(condition: PathCondition) -> Callable[[str], bool]:
    names = tuple(cast("Mapping[str, object]", condition["properties"]))
    checker = SchemaChecker(dict(condition))
    return lambda path: checker.is_valid(dict.fromkeys(names, path))


class _Files:
    """The files of one source: `levels` by the codes of `decided`."""

    def __init__(self, source: Source, decided: Decided) -> None:
        self.source, self.decided = source, decided
        rules, default = source.permission_rules, source.default_permission
        self.levels = {code: level_of(code, rules, default) for code in decided.counts}

    def paths(self) -> Iterator[tuple[str, int]]:
        """Every path with its code."""
        for folder, codes in zip(self.decided.index.folders, self.decided.codes, strict=True):
            yield from ((folder.prefix + name, code) for name, code in zip(folder.names, codes, strict=True))


def _files_of(workspace: Workspace, source: Source) -> _Files | None:
    """Of a source as far as its folder can be read; None where it cannot."""
    kept = _KEPT.setdefault(workspace, {})
    try:
        overlay, running = workspace.sources.overlay(source.source_id), workspace.sources.get(source.source_id)
        if running is None:
            return None
        before = kept.get(source.source_id)
        index = before[1] if before is not None and before[0] is running.folder else None
        if index is None:
            index = walk(running, _never, lambda _seen: None, limit=MOST_COUNTED)
            kept[source.source_id] = (running.folder, index)
    except WorkspaceError:
        return None
    rules = PermissionRules(source.permission_rules, source.default_permission)
    return _Files(source, decide(index, overlay, rules, _never))


def _never() -> bool:
    return False
