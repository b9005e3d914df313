"""The count of a source's files, kept: asked again for other rules, for a filter, for a pattern that is being typed.

It draws nothing. Everything that takes long runs in threads of the folder and hands back values; a late answer is the
asker's to drop.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.shadow import Shadow, shadowed
from gatewright.sources.basefolder import BaseFolder
from gatewright_gui.session import fileindex
from gatewright_gui.session.filefilter import Fitting, TreeFilter, fitting
from gatewright_gui.session.fileindex import DEFAULT, ELSEWHERE, PROTECTED, Decided, FileIndex, PatternCount
from gatewright_gui.session.files import Hits, SourceFolder, Stop

MAX_COUNTED = 1_000_000
"""Files that are counted before counting gives up."""
TELL_S = 0.1
"""How often it is told how far the counting is."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a count found. `took_s`: how long walking took; 0 where the names were known."""

    hits: Hits
    decided: Decided
    took_s: float


class Census:
    """Of one source at a time."""

    def __init__(self, folder: SourceFolder) -> None:
        self._folder = folder
        self._index: tuple[str, BaseFolder, FileIndex] | None = None
        self._decided: Decided | None = None

    @property
    def decided(self) -> Decided | None:
        """What the last count found."""
        return self._decided

    def start_over(self) -> None:
        """Another source: nothing of the old one stays."""
        self._index, self._decided = None, None

    async def count(self, source_id: str, tell: Callable[[int], None], *, afresh: bool) -> Counted:
        """How many files each rule decides. `afresh`: the disk is walked again. Raises WorkspaceError."""
        source, overlay = self._folder.running(source_id)
        known = self._index
        kept = known[2] if known and known[:2] == (source_id, source.folder) and not afresh else None
        loop = asyncio.get_running_loop()

        def work(stop: Stop) -> tuple[Decided, Hits, float]:
            began = time.monotonic()
            told = began

            def progress(seen: int) -> None:
                nonlocal told
                if time.monotonic() - told >= TELL_S:
                    told = time.monotonic()
                    with contextlib.suppress(RuntimeError):  # the window is gone
                        loop.call_soon_threadsafe(tell, seen)

            shadows = shadowed(source.rules)
            index = kept or fileindex.walk(source, stop, progress, limit=MAX_COUNTED)
            took = 0.0 if kept else time.monotonic() - began
            rules = PermissionRules(source.rules.rules, source.rules.default)
            decided = fileindex.decide(index, overlay, rules, stop)
            return decided, _hits(decided, len(source.rules.rules), shadows), took

        decided, hits, took = await self._folder.counting(work)
        self._index, self._decided = (source_id, source.folder, decided.index), decided
        return Counted(hits, decided, took)

    async def fit(self, source: Source, wanted: TreeFilter) -> Fitting | None:
        """What a filter leaves, by the levels that the source gives now; None before there is a count."""
        decided = self._decided
        if decided is None:
            return None
        rules, default = source.permission_rules, source.default_permission
        return await self._folder.asking(lambda stop: fitting(decided, wanted, rules, default, stop))

    async def try_rule(self, rules: tuple[PermissionRule, ...], at: int) -> PatternCount | None:
        """What the rule at `at` of these would decide; None before there is a count."""
        decided = self._decided
        if decided is None:
            return None
        return await self._folder.asking(lambda stop: fileindex.try_pattern(decided, rules, at, stop))


def _hits(decided: Decided, rules: int, shadows: tuple[Shadow, ...]) -> Hits:
    counts, index = decided.counts, decided.index
    elsewhere = sum(count for code, count in counts.items() if code <= ELSEWHERE)
    return Hits(
        tuple(counts.get(at, 0) for at in range(rules)),
        counts.get(DEFAULT, 0),
        index.files,
        index.truncated,
        index.unreadable,
        shadows,
        counts.get(PROTECTED, 0),
        elsewhere,
    )
