"""The rules' answer for a place, worked out once: its level as a file and as a folder, and the way to it.

The book holds only what follows from the sources in force, and goes with them: sources that start, stop or get other
rules begin a new one. Every call looks at the disk anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gatewright.base.frozen import frozen
from gatewright.policy.target import LevelDecision, Located
from gatewright.policy.verdict import Action, Permission, strictest, verdict_for
from gatewright.sources.descriptor import Identity, Standing
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.protection import ProtectedSet, Protection

_KEPT = 1_024
_KEPT_CHARS, _KEPT_STEPS = 512, 16
_PROTECTED = LevelDecision(Permission.NONE, protected=True)


@frozen
class Known:
    """A place by name alone. ``steps``: the paths from the base down to it; ``is_covered``: it is protected.

    ``is_closed``: its level is none whatever stands there. ``file``, ``folder`` and ``protected`` are the place with
    its level, for each kind of entry.
    """

    steps: tuple[str, ...]
    is_covered: bool
    is_closed: bool
    file: Located
    folder: Located
    protected: Located

    def place(self, standing: Standing, protected: ProtectedSet) -> Located:
        """Return the place with its level, by the entry on disk and the current protection."""
        if self.is_covered or protected.holds(self.file.absolute, standing.identities, self.steps):
            return self.protected
        return self.folder if standing.is_folder else self.file

    def level(self, standing: Standing, protected: ProtectedSet) -> LevelDecision:
        """Return the level of that place."""
        level = self.place(standing, protected).level
        assert level is not None
        return level


class KnownPlaces:
    """The sources in force and the rules' answers for their places. Bounded; callable from any thread."""

    def __init__(self, running: Mapping[str, FileSource], protection: Protection) -> None:
        self.running = running
        self.protection = protection
        self._held: dict[tuple[str, str], Known] = {}

    def __len__(self) -> int:
        """Count the places in the book."""
        return len(self._held)

    def find(self, source: FileSource, relative: str) -> Known:
        """Return the answer for a place of a running source. Raises ToolFailure for a path that is not canonical."""
        key = (source.source.source_id, relative)
        found = self._held.get(key)
        if found is None:
            found = self._work_out(source, relative)
            if len(relative) <= _KEPT_CHARS and len(found.steps) <= _KEPT_STEPS:
                if len(self._held) >= _KEPT:
                    self._held = {}
                self._held[key] = found
        return found

    def by_rules(self, source: FileSource, relative: str, *, folder: bool) -> LevelDecision:
        """Return the level by the rules of every source that holds the place, without protection."""
        decisions = [_by_rules(source, relative, folder=folder)]
        absolute = source.absolute(relative) if len(self.running) > 1 else ""
        for other in self.running.values():
            inside = None if other is source else other.relative_of(absolute)
            if inside is not None:
                decisions.append(replace(_by_rules(other, inside, folder=folder), source_id=other.source_id))
        return strictest_level(decisions)

    def decide(
        self,
        source: FileSource,
        relative: str,
        identities: Sequence[Identity],
        protected: ProtectedSet,
        *,
        folder: bool,
    ) -> LevelDecision:
        """Return the level of an examined place: none under protection, else the level by the rules."""
        if protected.covers(source.absolute(relative), identities):
            return _PROTECTED
        return self.by_rules(source, relative, folder=folder)

    def _work_out(self, source: FileSource, relative: str) -> Known:
        steps, absolute = source.steps(relative), source.absolute(relative)
        covered = self.protection.by_name.covers(absolute)
        file, folder = (self.by_rules(source, relative, folder=kind) for kind in (False, True))
        places = (Located(source.source_id, relative, absolute, level) for level in (file, folder, _PROTECTED))
        return Known(steps, covered, covered or Permission.NONE in {file.permission, folder.permission}, *places)


def _by_rules(source: FileSource, relative: str, *, folder: bool) -> LevelDecision:
    path = "" if relative == BASE else relative + ("/" if folder else "")
    why = source.rules.explain(path)
    return LevelDecision(why.permission, why.index, why.pattern)


def strictest_level(decisions: Sequence[LevelDecision]) -> LevelDecision:
    """Return the strictest decision; read_only where two differ in both directions (append, partner)."""
    if len(decisions) == 1:
        return decisions[0]
    for one in decisions:
        mine = {action: verdict_for(one.permission, action) for action in Action}
        theirs = ((action, verdict_for(other.permission, action)) for other in decisions for action in Action)
        if all(strictest(mine[action], verdict) is mine[action] for action, verdict in theirs):
            return one
    return LevelDecision(Permission.READ_ONLY)
