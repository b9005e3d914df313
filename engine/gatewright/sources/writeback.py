"""What a process changed in its private copies, written back once it is done, as far as the levels let it.

Every changed file is judged as any other writing: what is allowed is written in one step, what asks is asked where
somebody is there, and what somebody else changed meanwhile is left as it is. What is not written back stays in a
folder of ours. Only names and contents of files count: links, modes and empty folders do not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gatewright.base import aio
from gatewright.base.errors import NobodyAnswered, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.printable import printable
from gatewright.policy.confinement import Confinement
from gatewright.policy.document import PlaceUse
from gatewright.policy.glob import PermissionRules
from gatewright.policy.permission import Action, verdict_for
from gatewright.policy.verdict import STRICTNESS, Verdict
from gatewright.sources import descriptor
from gatewright.sources.basefolder import BaseFolder
from gatewright.sources.filetext import decode_text
from gatewright.sources.protection import is_below
from gatewright.sources.roomcopy import CopyChange, Difference, mark_of, remove_tree
from gatewright.sources.roommount import RoomPlan

MAX_FILE_BYTES = 16 * 1024 * 1024
"""The largest file that is written back."""
MAX_CHANGES = 2_000
MAX_KEPT = 20
"""So many folders with what was not written back are there at most; the oldest goes for a new one."""
_TOLD = 50
_THEIRS = "somebody else changed it meanwhile"
_TWICE = frozenset({"conflict", "exists", "not-found"})


@frozen
class Change:
    """A file that a process made, changed or removed; ``diff``: of what is text, for whoever is asked."""

    path: str
    action: Action
    diff: str | None = None


@frozen
class KeptBack:
    """A change that was not written back, and why."""

    change: Change
    why: str


@frozen
class GivenBack:
    """What became of the changes of the processes of a room. ``folder``: where the files lie that were kept back.

    ``unread``: why the changes could not be looked at, where that is so: then they lie there, all of them.
    """

    written: tuple[Change, ...] = ()
    kept: tuple[KeptBack, ...] = ()
    folder: str = ""
    unread: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The first of each, and how many there are."""
        told: dict[str, JsonValue] = {
            "written": [{"path": printable(one.path), "action": str(one.action)} for one in self.written[:_TOLD]],
            "written_count": len(self.written),
            "kept_back": [
                {"path": printable(one.change.path), "action": str(one.change.action), "why": one.why}
                for one in self.kept[:_TOLD]
            ],
            "kept_back_count": len(self.kept),
        }
        told |= {"folder": printable(self.folder)} if self.folder else {}
        return told | ({"unread": self.unread} if self.unread else {})


Ask = Callable[[Change], Awaitable[bool]]
"""Whether somebody agrees to a change. Raises NobodyAnswered."""


class WriteBack:
    """The places of a confinement that its processes get as copies, as they stand when this is made.

    ``kept``: the folder of ours for what is not written back. ``ask`` None: nobody is there. ``told`` hears, in a
    thread, what became of changes.
    """

    def __init__(
        self,
        confinement: Confinement,
        kept: Path,
        ask: Ask | None = None,
        *,
        told: Callable[[GivenBack], None] = lambda _: None,
    ) -> None:
        self._kept, self._ask, self._told = kept, ask, told
        self._fixed = (*confinement.closed, *confinement.fixed)
        self._trees = [(tree.base, PermissionRules(tree.rules, tree.default)) for tree in confinement.trees]
        copied = [place.path for place in confinement.places if place.use is PlaceUse.SNAPSHOT]
        self._bases = {place: BaseFolder(place if os.path.isdir(place) else os.path.dirname(place)) for place in copied}  # noqa: PTH112, PTH120 - names of any bytes

    async def give_back(self, plan: RoomPlan, look: Callable[[], Sequence[Difference]]) -> GivenBack:
        """Write back what ``look`` finds in the copies of a plan, once no process works in them."""
        found = await self._given_back(plan, look)
        if found != GivenBack():
            await aio.to_thread(self._told, found)
        return found

    async def _given_back(self, plan: RoomPlan, look: Callable[[], Sequence[Difference]]) -> GivenBack:
        try:
            found = await aio.to_thread(self._files, look)
        except (OSError, ToolFailure) as error:
            wholes = [mount for mount in plan.mounts if mount.origin and mount.path in self._bases]
            folder = await aio.to_thread(self._keep, [(one.path, one.origin) for one in wholes])
            return GivenBack(folder=folder, unread=str(error))
        written, refused, left = list[Change](), list[KeptBack](), list[tuple[str, str]]()
        for one in found:
            change = Change(one.path, _action(one))
            why_not = await self._refusal(change, one)
            if why_not is None:
                continue
            if not why_not:
                written.append(change)
                continue
            refused.append(KeptBack(change, why_not))
            if change.action is not Action.DELETE:
                left.append((one.path, one.copy))
        return GivenBack(tuple(written), tuple(refused), await aio.to_thread(self._keep, left))

    def _files(self, look: Callable[[], Sequence[Difference]]) -> list[Difference]:
        """The files among the differences. Raises ToolFailure for more than anybody could look at, and OSError."""
        found = [one for one in look() if not one.is_folder]
        if len(found) > MAX_CHANGES:
            raise ToolFailure(f"more than {MAX_CHANGES:,} files were changed", code="too-many")
        return sorted(found, key=lambda one: one.path)

    async def _refusal(self, change: Change, one: Difference) -> str | None:
        """Write a change, or the reason why not; None where it changes nothing.

        The level speaks first: of what a process may not see nothing else is told.
        """
        action = await aio.to_thread(self._mildest, change, one)
        if action is None:
            return None
        verdict = self._verdict(change.path, action)
        if verdict is Verdict.DENY:
            return "its level does not let it be done"
        if verdict is Verdict.ASK:
            if self._ask is None:
                return "its level asks, and nobody is there"
            try:
                agreed = await self._ask(await aio.to_thread(self._with_diff, change, one))
            except NobodyAnswered:
                return "its level asks, and nobody answered"
            if not agreed:
                return "its level asks, and it was refused"
        try:
            await aio.to_thread(self._write, one, action)
        except ToolFailure as failure:
            return _THEIRS if failure.code in _TWICE else str(failure)
        return ""

    def _verdict(self, path: str, action: Action) -> Verdict:
        """What the levels say of an action: the strictest of all sources over a path."""
        if any(is_below(path, one) for one in self._fixed):
            return Verdict.DENY
        found = [
            verdict_for(rules.level(path[len(base) :].lstrip("/")), action)
            for base, rules in self._trees
            if is_below(path, base)
        ]
        return max(found, key=STRICTNESS.__getitem__, default=Verdict.ALLOW)

    def _mildest(self, change: Change, one: Difference) -> Action | None:
        """What a change comes to by what the files hold: an append where only more stands there; None: nothing."""
        if one.change is not CopyChange.CHANGED:
            return change.action
        try:
            old, new = self._old(one)[0], _new(one)
        except ToolFailure:
            return change.action
        if old == new:
            return None
        return Action.APPEND if new.startswith(old) else Action.OVERWRITE

    def _with_diff(self, change: Change, one: Difference) -> Change:
        from gatewright.blocks.difftext import diff_text

        try:
            new = "" if one.change is CopyChange.REMOVED else decode_text(_new(one))
            old = "" if one.change is CopyChange.ADDED else decode_text(self._old(one)[0])
        except ToolFailure:
            return change
        return replace(change, diff=diff_text(change.path, old, new))

    def _write(self, one: Difference, granted: Action) -> None:
        """Do it where the file is as it was copied. Raises ToolFailure."""
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
        """The folder to begin at, the folders from there, and the name of a file."""
        place = max((one for one in self._bases if is_below(path, one)), key=len)
        base = self._bases[place]
        *above, name = path[len(base.path) :].lstrip("/").split("/")
        return base, tuple(above), name

    def _keep(self, left: Sequence[tuple[str, str]]) -> str:
        """Move files out of their copies into a folder of their own among the kept ones, of which the oldest go."""
        if not left:
            return ""
        self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="kept-", dir=self._kept))
        for path, copy in left:
            goal = own / path.lstrip("/")
            with suppress(OSError, shutil.Error):
                goal.parent.mkdir(parents=True, exist_ok=True)
                os.rename(copy, goal)  # noqa: PTH104 - names of any bytes
        by_age = sorted((one for one in self._kept.iterdir() if one != own), key=lambda one: one.lstat().st_mtime_ns)
        for one in by_age[: max(len(by_age) + 1 - MAX_KEPT, 0)]:
            remove_tree(str(one))
        return str(own)


def _action(one: Difference) -> Action:
    changes = {CopyChange.ADDED: Action.APPEND, CopyChange.CHANGED: Action.OVERWRITE, CopyChange.REMOVED: Action.DELETE}
    return changes[one.change]


def _new(one: Difference) -> bytes:
    """What stands in the copy. Raises ToolFailure for what is no plain file, or too large."""
    above, name = os.path.split(one.copy)
    with descriptor.open_folder(BaseFolder(above), ()) as folder:
        return descriptor.read_bytes(folder, name, MAX_FILE_BYTES)[0]
