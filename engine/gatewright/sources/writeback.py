"""Writes back what a process changed in its private copies, after its end, as far as the levels allow; takes back what
it made against them in places that it may write.

Each changed file counts like any other write: an allowed one is written in one step, and a file that somebody else
changed meanwhile stays. Other changes go to a folder of ours; if a person can be asked, a change that asks is written
from there once the person agrees, and nobody waits for that. Only names and contents of files count, not links, modes
and empty folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from gatewright import blocks
from gatewright.base.errors import NobodyAnswered, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.base.printable import printable
from gatewright.policy.document import PlaceUse
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import Confinement, Tree
from gatewright.policy.verdict import STRICTNESS, Action, Verdict, verdict_for
from gatewright.sources import descriptor
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.filetext import decode_text
from gatewright.sources.ground import is_below
from gatewright.sources.roomcopy import CopyChange, Difference, mark_of, remove_tree
from gatewright.sources.roomview import RoomPlan
from gatewright.sources.roomwatch import take_away

MAX_FILE_BYTES = 16 * 1024 * 1024
"""The largest file to write back."""
MAX_CHANGES = 2_000
MAX_KEPT = 20
"""The most folders with unwritten changes; a new one replaces the oldest."""
_TOLD = 50
_DONE = {Action.APPEND: "written", Action.OVERWRITE: "written over", Action.DELETE: "deleted"}
_THEIRS = "somebody else changed it meanwhile"
_DENIED = "its level does not let it be done"
_ALONE = "its level asks, and nobody is there"
_ASKED = "its level asks, and somebody is asked"
_SILENT = "its level asks, and nobody answered"
_MADE = "its level lets no process make it, so it was taken back"
_NOT_TAKEN = "its level lets no process make it, and it could not be taken back"
_TWICE = frozenset({"conflict", "exists", "not-found"})


@frozen
class Change:
    """A file that a process made, changed or removed; ``diff``: the change of a text, for the person who decides.

    ``approved_by``: the person who agreed, if it asked.
    """

    path: str
    action: Action
    diff: str | None = None
    approved_by: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return path and action, and the person who agreed, if any."""
        agreed: dict[str, JsonValue] = {"approved_by": printable(self.approved_by)} if self.approved_by else {}
        return {"path": printable(self.path), "action": str(self.action)} | agreed


@frozen
class KeptBack:
    """A change that stayed unwritten, and the reason."""

    change: Change
    why: str


@frozen
class GivenBack:
    """The outcome for the changes of a room's processes.

    ``folder``: the place of the unwritten files. ``unread``: the reason if the changes were unreadable, so that all of
    them lie there. ``taken``: what was made against the levels.
    """

    written: tuple[Change, ...] = ()
    kept: tuple[KeptBack, ...] = ()
    folder: str = ""
    unread: str = ""
    taken: tuple[KeptBack, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Return the first of each kind, and their numbers."""
        told: dict[str, JsonValue] = {
            "written": [one.to_json() for one in self.written[:_TOLD]],
            "written_count": len(self.written),
            "kept_back": [one.change.to_json() | {"why": printable(one.why)} for one in self.kept[:_TOLD]],
            "kept_back_count": len(self.kept),
        }
        if self.taken:
            names = [one.change.to_json() | {"why": printable(one.why)} for one in self.taken[:_TOLD]]
            told |= {"taken_back": cast("JsonValue", names), "taken_back_count": len(self.taken)}
        told |= {"folder": printable(self.folder)} if self.folder else {}
        return told | ({"unread": self.unread} if self.unread else {})

    def words(self) -> list[str]:
        """Return the same as lines of text for the caller."""
        lines = [f"{_DONE[one.action]} {printable(one.path)}" for one in self.written[:_TOLD]]
        lines += [
            f"kept back what was {_DONE[one.change.action]}: {printable(one.change.path)}: {printable(one.why)}"
            for one in self.kept[:_TOLD]
        ]
        lines += [f"{printable(one.change.path)}: {printable(one.why)}" for one in self.taken[:_TOLD]]
        more = sum(max(len(one) - _TOLD, 0) for one in (self.written, self.kept, self.taken))
        lines += [f"and {more:,} more"] if more else []
        lines += [f"nothing was written back: {printable(self.unread)}"] if self.unread else []
        return lines + ([f"what was kept back lies in {printable(self.folder)}"] if self.folder else [])


class Asker(Protocol):
    """Asks a person who may agree to a change."""

    async def is_attended(self) -> bool:
        """Tell whether anybody can answer."""
        ...

    async def __call__(self, change: Change, /) -> str:
        """Return the person who agrees. Raises NobodyAnswered, and ToolFailure for a refusal or an impossible
        question.
        """
        ...

    def begin(self, work: Coroutine[None, None, None], /) -> None:
        """Run a question while its caller goes on."""
        ...


@frozen
class _Question:
    """A change that asks; ``one`` is its copy among the stored ones, ``action`` its effect."""

    change: Change
    one: Difference
    action: Action


class WriteBack:
    """The places that the processes of a confinement get as copies.

    ``kept``: our folder for unwritten changes. ``ask`` None: nobody can answer. ``told`` receives the outcomes, in a
    thread. ``now`` returns the confinements in force at the time of a write, besides the one at the start; if it
    returns none, nothing may be written. ``takes_back``: what its processes make against the levels goes.
    """

    def __init__(
        self,
        confinement: Confinement,
        kept: Path,
        ask: Asker | None = None,
        *,
        told: Callable[[GivenBack], None] = lambda _: None,
        now: Callable[[], Sequence[Confinement]] | None = None,
        takes_back: bool = False,
    ) -> None:
        self.takes_back = takes_back
        self._confinement, self._now = confinement, now or (lambda: (confinement,))
        self._kept, self._ask, self._told = kept, ask, told
        copied = [place.path for place in confinement.places if place.use is PlaceUse.SNAPSHOT]
        self._bases = {place: BaseFolder(place if os.path.isdir(place) else os.path.dirname(place)) for place in copied}  # noqa: PTH112, PTH120 - names of any bytes

    async def give_back(self, plan: RoomPlan, look: Callable[[], Sequence[Difference]]) -> GivenBack:
        """Write back what ``look`` finds in the copies of a plan, once no process works in them.

        Changes that ask are stored, and a thread asks about them; ``told`` receives those outcomes later.
        """
        found, questions = await self._sort_changes(plan, look)
        if found != GivenBack():
            await aio.to_thread(self._told, found)
        if questions and self._ask is not None:
            self._ask.begin(self._ask_about(questions, found.folder, self._ask))
        return found

    async def take_back(self, made: Sequence[str]) -> None:
        """Move what was made against the levels out of the places, and tell it."""
        await aio.to_thread(self._take_back, made)

    def _take_back(self, made: Sequence[str]) -> None:
        own, taken = self._new_folder(), list[KeptBack]()
        for path in made:
            try:
                if not take_away(path, own / path.lstrip("/")):
                    continue
                why = _MADE
            except (OSError, ToolFailure) as error:
                why = f"{_NOT_TAKEN}: {error}"
            taken.append(KeptBack(Change(path, Action.APPEND), why))
        if taken:
            self._told(GivenBack(taken=tuple(taken), folder=str(own)))
        else:
            own.rmdir()

    async def _sort_changes(
        self, plan: RoomPlan, look: Callable[[], Sequence[Difference]]
    ) -> tuple[GivenBack, list[_Question]]:
        try:
            found = await aio.to_thread(self._files, look)
        except (OSError, ToolFailure) as error:
            wholes = [mount for mount in plan.mounts if mount.origin and mount.path in self._bases]
            folder, _ = await aio.to_thread(self._keep, [(one.path, one.origin) for one in wholes])
            return GivenBack(folder=folder, unread=str(error)), []
        written, refused, left, asking = list[Change](), list[KeptBack](), list[tuple[str, str]](), list[_Question]()
        is_attended: bool | None = None
        for one in found:
            change = Change(one.path, _action(one))
            action = await aio.to_thread(self._mildest, change, one)
            if action is None:
                continue
            verdict = await aio.to_thread(self._verdict, one.path, action)
            why_not = _DENIED if verdict is Verdict.DENY else _ALONE
            if verdict is Verdict.ALLOW:
                why_not = await aio.to_thread(self._write, one, action)
                if not why_not:
                    written.append(change)
                    continue
            if verdict is Verdict.ASK:
                if is_attended is None:
                    is_attended = self._ask is not None and await self._ask.is_attended()
                if is_attended:
                    why_not = _ASKED
                    asking.append(_Question(change, one, action))
            refused.append(KeptBack(change, why_not))
            if change.action is not Action.DELETE:
                left.append((one.path, one.copy))
        folder, kept = await aio.to_thread(self._keep, left)
        moved = [replace(one, one=replace(one.one, copy=kept.get(one.one.path, one.one.copy))) for one in asking]
        return GivenBack(tuple(written), tuple(refused), folder), moved

    async def _ask_about(self, questions: Sequence[_Question], folder: str, ask: Asker) -> None:
        """Ask about one change after the other until nobody answers, and write the agreed ones."""
        written, kept = list[Change](), list[KeptBack]()
        is_silent = False
        for question in questions:
            change, why_not = replace(question.change, action=question.action), _SILENT
            if not is_silent:
                try:
                    who = await self._write_if_agreed(question, ask)
                    change, why_not = replace(change, approved_by=who), ""
                except NobodyAnswered:
                    is_silent = True
                except ToolFailure as failure:
                    why_not = _why(failure)
            if why_not:
                kept.append(KeptBack(change, why_not))
            else:
                written.append(change)
        is_left = await aio.to_thread(self._is_left, folder)
        await aio.to_thread(self._told, GivenBack(tuple(written), tuple(kept), folder if is_left else ""))

    async def _write_if_agreed(self, question: _Question, ask: Asker) -> str:
        """Write a change after a person agreed, and return the person. Raises NobodyAnswered, and ToolFailure.

        Nobody is asked about an impossible change, and an answer counts only under the levels that asked.
        """
        one, action = question.one, question.action
        who = await ask(await aio.to_thread(self._with_diff, question))
        if await aio.to_thread(self._verdict, one.path, action) is Verdict.DENY:
            raise ToolFailure(_DENIED)
        if why_not := await aio.to_thread(self._write, one, action):
            raise ToolFailure(why_not)
        if one.change is not CopyChange.REMOVED:
            await aio.to_thread(self._drop, one.copy)
        return who

    def _files(self, look: Callable[[], Sequence[Difference]]) -> list[Difference]:
        """Return the changed files. Raises ToolFailure for more than anybody could review, and OSError."""
        found = [one for one in look() if not one.is_folder]
        if len(found) > MAX_CHANGES:
            raise ToolFailure(f"more than {MAX_CHANGES:,} files were changed", code="too-many")
        return sorted(found, key=lambda one: one.path)

    def _verdict(self, path: str, action: Action) -> Verdict:
        """Return the verdict of the levels on an action: the strictest of all sources over a path, then and now."""
        now = self._now()
        given = ([one.path for one in held.places if one.use is not PlaceUse.READ] for held in now)
        if not now or not all(any(is_below(path, one) for one in places) for places in given):
            return Verdict.DENY
        found = [Verdict.ALLOW]
        for held in (self._confinement, *now):
            if any(is_below(path, one) for one in (*held.closed, *held.fixed)):
                return Verdict.DENY
            for tree in held.trees:
                if is_below(path, tree.base):
                    level = _rules(tree).level(path[len(tree.base) :].lstrip("/"))
                    found.append(verdict_for(level, action))
        return max(found, key=STRICTNESS.__getitem__)

    def _mildest(self, change: Change, one: Difference) -> Action | None:
        """Return the action of a change by the files' content: an append if only text was added; None without a
        change.
        """
        if one.change is not CopyChange.CHANGED:
            return change.action
        try:
            old, new = self._old(one)[0], _new(one)
        except ToolFailure:
            return change.action
        if old == new:
            return None
        return Action.APPEND if new.startswith(old) else Action.OVERWRITE

    def _with_diff(self, question: _Question) -> Change:
        """Add the difference of texts to the change. Raises ToolFailure for a change that cannot be written."""
        one, change = question.one, replace(question.change, action=question.action)
        if self._verdict(one.path, question.action) is Verdict.DENY:
            raise ToolFailure(_DENIED)
        new = b"" if one.change is CopyChange.REMOVED else _new(one)
        old, seen = (b"", None) if one.change is CopyChange.ADDED else self._old(one)
        if (mark_of(seen) != one.original) if seen is not None else os.path.lexists(one.path):
            raise ToolFailure(_THEIRS)
        try:
            return replace(change, diff=blocks.diff_text(change.path, decode_text(old), decode_text(new)))
        except ToolFailure:
            return change

    def _write(self, one: Difference, granted: Action) -> str:
        """Write a file whose original has not changed since the copy; return the reason if not, empty if done."""
        try:
            self._do(one, granted)
        except ToolFailure as failure:
            return _why(failure)
        return ""

    def _do(self, one: Difference, granted: Action) -> None:
        base, above, name = self._place_of(one.path)
        is_new = one.change is CopyChange.ADDED
        new = b"" if one.change is CopyChange.REMOVED else _new(one)
        with descriptor.open_folder(base, above, make=is_new) as folder, descriptor.alone_in(folder):
            if is_new:
                descriptor.write_new(folder, name, new)
                return
            old, seen = descriptor.read_bytes(folder, name, MAX_FILE_BYTES)
            if mark_of(seen) != one.original or (granted is Action.APPEND and not new.startswith(old)):
                raise ToolFailure(_THEIRS, code="conflict")
            if one.change is CopyChange.REMOVED:
                descriptor.remove(folder, name)
            else:
                descriptor.replace_bytes(folder, name, new, seen)

    def _old(self, one: Difference) -> tuple[bytes, os.stat_result]:
        base, above, name = self._place_of(one.path)
        with descriptor.open_folder(base, above) as folder:
            return descriptor.read_bytes(folder, name, MAX_FILE_BYTES)

    def _place_of(self, path: str) -> tuple[BaseFolder, tuple[str, ...], str]:
        """Return the folder to begin at, the folders from there, and the name of a file."""
        place = max((one for one in self._bases if is_below(path, one)), key=len)
        base = self._bases[place]
        *above, name = path[len(base.path) :].lstrip("/").split("/")
        return base, tuple(above), name

    def _keep(self, left: Sequence[tuple[str, str]]) -> tuple[str, dict[str, str]]:
        """Move files out of their copies into a new folder among the stored ones, and drop the oldest of these.

        Return that folder, and the new place of each path.
        """
        if not left:
            return "", {}
        own = self._new_folder()
        goals = {path: str(own / path.lstrip("/")) for path, _ in left}
        for path, copy in left:
            with suppress(OSError, shutil.Error):
                Path(goals[path]).parent.mkdir(parents=True, exist_ok=True)
                os.rename(copy, goals[path])  # noqa: PTH104 - names of any bytes
        return str(own), goals

    def _new_folder(self) -> Path:
        """Make a folder among the stored ones, in place of the oldest."""
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="kept-", dir=self._kept))
        by_age = sorted((one for one in self._kept.iterdir() if one != own), key=lambda one: one.lstat().st_mtime_ns)
        for one in by_age[: max(len(by_age) + 1 - MAX_KEPT, 0)]:
            remove_tree(str(one))
        return own

    def _drop(self, copy: str) -> None:
        """Remove a written file from the stored ones, with its empty folders."""
        with suppress(OSError):
            Path(copy).unlink()
            for folder in Path(copy).parents:
                if folder == self._kept:
                    return
                folder.rmdir()

    @staticmethod
    def _is_left(folder: str) -> bool:
        return bool(folder) and os.path.lexists(folder)


@lru_cache(maxsize=64)
def _rules(tree: Tree) -> PermissionRules:
    return PermissionRules(tree.rules, tree.default)


def _why(failure: ToolFailure) -> str:
    return _THEIRS if failure.code in _TWICE else str(failure)


def _action(one: Difference) -> Action:
    changes = {CopyChange.ADDED: Action.APPEND, CopyChange.CHANGED: Action.OVERWRITE, CopyChange.REMOVED: Action.DELETE}
    return changes[one.change]


def _new(one: Difference) -> bytes:
    """Read the bytes of a copy. Raises ToolFailure unless it is a plain file of allowed size."""
    above, name = os.path.split(one.copy)
    with descriptor.open_folder(BaseFolder(above), ()) as folder:
        return descriptor.read_bytes(folder, name, MAX_FILE_BYTES)[0]
