"""The levels of places, which the rules decide once and each access checks again; and sources that a program brings.

Rules, texts and files may change between a decision and its effect; the refusals here name no level and no operation. A
table keeps only answers that follow from the sources in force, and ends with them: sources that start, stop or get
other rules begin a new table. Every call looks at the disk anew.

The code of a program's source may raise, hang, or return anything: it runs in threads of its own, a few for each
source, and its faults become ToolFailures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gatewright.arguments.path import PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import is_text
from gatewright.base.late import in_own_thread
from gatewright.policy.document import Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import (
    NOT_PERMITTED,
    Approved,
    Assessment,
    LevelDecision,
    Located,
    Refusal,
    levels_pass,
    reading_agreed,
)
from gatewright.policy.verdict import Action, Permission, Verdict, reads_freely, strictest, verdict_for
from gatewright.sources.descriptor import Identity, Standing, without_dots
from gatewright.sources.filesource import BASE, FileSource
from gatewright.sources.ground import ProtectedSet, Protection


def permit(level: Permission, action: Action, approved: Approved) -> None:
    """Refuse an action that the table of levels does not allow now, whatever the earlier decision was."""
    verdict = Verdict.ALLOW if levels_pass.get() else verdict_for(level, action)
    if verdict is Verdict.DENY:
        raise ToolFailure("this path may not be changed in this way", code=NOT_PERMITTED)
    if verdict is Verdict.ASK and not (approved or (action is Action.READ and reading_agreed.get())):
        raise ToolFailure("this is done only when somebody agrees, and nobody was asked", code="not-granted")


def refuse_stale(approved: Approved) -> None:
    """Refuse a call if somebody agreed to it, but its effect has changed since."""
    if callable(approved) and not approved():
        raise ToolFailure("this was changed since somebody agreed to it", code="approval-stale")


def permit_loss(now: Assessment, asked: Approved) -> None:
    """Refuse to lose present edits unless somebody agreed to lose exactly these."""
    if now.ask is None:
        return
    if not asked:
        raise ToolFailure("edits came meanwhile that would be lost, and nobody was asked", code="not-granted")
    refuse_stale(asked)


_KEPT = 1_024
_KEPT_CHARS, _KEPT_STEPS = 512, 16
_PROTECTED = LevelDecision(Permission.NONE, protected=True)


@frozen
class Known:
    """A place by its name alone.

    ``steps``: the paths from the base down to it; ``is_covered``: it is protected. ``is_closed``: its level is none
    whatever is there. ``file``, ``folder`` and ``protected`` are the place with its level, for each kind of entry.
    """

    steps: tuple[str, ...]
    is_covered: bool
    is_closed: bool
    file: Located
    folder: Located
    protected: Located

    def place(self, standing: Standing, protected: ProtectedSet) -> Located:
        """Return the place with its level, given the entry on disk and the current protection."""
        if self.is_covered or protected.holds(self.file.absolute, standing.identities, self.steps):
            return self.protected
        return self.folder if standing.is_folder else self.file

    def level(self, standing: Standing, protected: ProtectedSet) -> LevelDecision:
        """Return the level of the place, in the same way."""
        level = self.place(standing, protected).level
        assert level is not None
        return level


class KnownPlaces:
    """The sources in force, and the answers of their rules for places. Bounded; any thread may call."""

    def __init__(self, running: Mapping[str, FileSource], protection: Protection) -> None:
        self.running = running
        self.protection = protection
        self._held: dict[tuple[str, str], Known] = {}

    def __len__(self) -> int:
        """Count the places in the table."""
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
        """Return the level of an examined place: none if protected, else the level by the rules."""
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
    """Return the strictest decision; if two differ in both directions read_only (append, partner), or none (ask)."""
    if len(decisions) == 1:
        return decisions[0]
    for one in decisions:
        mine = {action: verdict_for(one.permission, action) for action in Action}
        theirs = ((action, verdict_for(other.permission, action)) for other in decisions for action in Action)
        if all(strictest(mine[action], verdict) is mine[action] for action, verdict in theirs):
            return one
    is_read = all(reads_freely(one.permission) for one in decisions)
    return LevelDecision(Permission.READ_ONLY if is_read else Permission.NONE)


MOST_AT_WORK = 8
"""The most texts of one source to load at once, including those that hang."""
_OUTSIDE = "give a key of the source, without a `/` at its beginning"


class OwnSource:
    """A running source: its row in the policy, whose rules give keys their levels, and the program's ``load``."""

    def __init__(self, source: Source, load: Callable[[str], object] | None, places: threading.Semaphore) -> None:
        self.source = source
        self.rules = PermissionRules(source.permission_rules, source.default_permission)
        self._load, self._places = load, places

    def locate(self, key: str) -> Located | Refusal:
        """Return the place of a key, with its level, without asking the program."""
        parsed = parse_model_path(key)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        parts = None if parsed.absolute else without_dots(parsed.parts)
        if parts is None:
            return Refusal("outside-base", f"`{parsed}` is no key of source `{self.source.source_id}`", _OUTSIDE)
        return self.place("/".join(parts) or BASE)

    def place(self, key: str) -> Located:
        """Return the place of a canonical key."""
        why = self.rules.explain("" if key == BASE else key)
        level = LevelDecision(why.permission, why.index, why.pattern)
        return Located(self.source.source_id, key, f"{self.source.source_id}:{key}", level)

    def readable(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that agents may see: canonical ones whose level is not none."""
        found = ((key, self.locate(key)) for key in keys)
        return [
            key
            for key, at in found
            if isinstance(at, Located) and at.level is not None and at.level.permission is not Permission.NONE
        ]

    async def load(self, key: str) -> str:
        """Return the text of a key. Raises ToolFailure."""
        load = self._load
        if load is None:
            raise ToolFailure("this source has no texts", code="no-texts")
        if not self._places.acquire(blocking=False):
            raise ToolFailure("the source has not answered yet what it was asked before", code="busy")

        def work() -> object:
            try:
                return load(key)
            finally:
                self._places.release()

        try:
            text = await in_own_thread(work)
        except ToolFailure:
            raise
        except Exception as error:
            said = f"the source failed: {type(error).__name__}"
            raise ToolFailure(said, code="source-failed") from error
        return self._check(text)

    def _check(self, text: object) -> str:
        if type(text) is not str or not is_text(text):
            raise ToolFailure("the source gave something that is no text", code="bad-result")
        limit = self.source.max_file_bytes
        if len(text) > limit or len(text.encode()) > limit:
            raise ToolFailure(f"the text is larger than the limit of {limit:,} bytes", code="too-large")
        return text
