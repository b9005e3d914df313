"""Sources without a disk: a SourcePort whose files are a dictionary and whose blocks are another.

It behaves as the port says (levels, unsaved text, outside changes), so that tools can be tried without any file.
"""

import difflib
import hashlib
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.target import (
    Approved,
    Assessment,
    FileTarget,
    FileText,
    LevelDecision,
    Located,
    NamedPlace,
    Refusal,
)
from gatewright.policy.verdict import Verdict
from gatewright.sources.filetext import with_patch


@dataclass
class Block:
    text: str
    seen_on_disk: str


@dataclass
class MemorySources:
    """``disk`` and ``levels`` are keyed by source id and path relative to its base."""

    disk: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    levels: dict[tuple[str, str], Permission] = field(default_factory=dict[tuple[str, str], Permission])
    source_ids: tuple[str, ...] = ("docs",)
    blocks: dict[tuple[str, str], Block] = field(default_factory=dict[tuple[str, str], Block])

    def locate(self, path: str, *, source_id: str | None, allowed: Sequence[str]) -> Located | Refusal:
        usable = [name for name in self.source_ids if name in allowed and source_id in (None, name)]
        if not usable:
            return Refusal("unknown-source", f"no source `{source_id}`", "no such source")
        relative = posixpath.normpath(path)
        if relative.startswith(("/", "..")) or "\0" in path:
            return Refusal("outside", f"`{path}` leaves the base", "the path has to stay below the base")
        held = [name for name in usable if (name, relative) in self.disk]
        return self._at((held or usable)[0], relative)

    def locate_label(self, label: str, *, allowed: Sequence[str]) -> Located | Refusal:
        for source_id, relative in (*self.disk, *self.blocks):
            at = self._at(source_id, relative)
            if source_id in allowed and self.label_of(at) == label:
                return at
        return Refusal("unknown-label", f"no block `{label}`", "no such label")

    def find_file(
        self, path: str, *, folder: str | None, prefixes: Sequence[str] = (), parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        return Refusal("no-disk", f"`{path}` is on no disk", "there is no disk")

    def named_by(
        self, text: str, action: Action, *, folders: Sequence[str] | None, bases: bool = True, contents: bool
    ) -> tuple[NamedPlace, ...]:
        return ()

    def label_of(self, at: Located) -> str:
        return f"file:{hashlib.sha256(at.absolute.encode()).hexdigest()[:8]}:{at.relative}"

    def level(self, at: Located) -> LevelDecision:
        return LevelDecision(self.levels.get((at.source_id, at.relative), Permission.READ_WRITE))

    def assess_save(self, at: Located) -> Assessment:
        old, new = self.disk.get(_key(at), ""), self._loaded(at).text
        action = Action.APPEND if new.startswith(old) else Action.OVERWRITE
        return Assessment(action, diff=_diff(old, new))

    def assess_load(self, at: Located) -> Assessment:
        return Assessment(Action.READ, "unsaved edits would be lost" if self._is_unsaved(at) else None)

    def text_of(self, at: Located) -> str | None:
        block = self.blocks.get(_key(at))
        return block.text if block else self._on_disk(at)

    def assess_text(self, at: Located, new_text: str) -> Assessment:
        block = self.blocks.get(_key(at))
        return Assessment(diff=_diff(block.text if block else self.disk.get(_key(at), ""), new_text))

    def assess_create(self, at: Located, content: str) -> Assessment:
        return Assessment(Action.APPEND, diff=_diff("", content))

    async def read(self, at: Located) -> FileText:
        block = self.blocks.get(_key(at))
        if block:
            return FileText(block.text, "block", self._is_unsaved(at))
        return FileText(self._on_disk(at), "disk")

    def assess_reload(self, at: Located) -> Assessment:
        return self.assess_load(at)

    def assess_delete(self, at: Located, *, recursive: bool = False) -> Assessment:
        return Assessment(Action.DELETE, diff=f"-{at.relative}" if recursive else None)

    async def list_folder(self, at: Located, limit: int = 5_000) -> list[JsonValue]:
        prefix = "" if at.relative == "." else at.relative + "/"
        names = sorted(relative for held, relative in self.disk if held == at.source_id and relative.startswith(prefix))
        shown = [self._at(at.source_id, name) for name in names]
        rows: list[JsonValue] = [
            {"name": place.relative.removeprefix(prefix), "permission": str(level)}
            for place in shown
            if (level := self.level(place).permission) is not Permission.NONE
        ]
        return rows[:limit]

    async def list_tree(
        self, at: Located, pattern: str | None = None, limit: int = 5_000, *, recursive: bool = True
    ) -> list[JsonValue]:
        names = sorted(relative for held, relative in self.disk if held == at.source_id)
        return [{"path": name} for name in names if fnmatch(name, pattern or "*") and (recursive or "/" not in name)]

    async def status(self, at: Located) -> JsonValue:
        unsaved = self._is_unsaved(at)
        return {"path": at.relative, "state": "block_modified" if unsaved else "synced", "unsaved": unsaved}

    async def diff(self, at: Located) -> JsonValue:
        return {"path": at.relative, "diff": _diff(self.disk.get(_key(at), ""), self._loaded(at).text)}

    async def load(self, at: Located, *, asked: Approved = False) -> JsonValue:
        if self._is_unsaved(at) and not asked:
            raise ToolFailure("edits would be lost", code="not-granted")
        text = self._on_disk(at)
        self.blocks[_key(at)] = Block(text, text)
        return {"label": self.label_of(at), "size": len(text.encode()), "lines": text.count("\n")}

    async def save(
        self, at: Located, granted: Action, *, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        self._permit(at, granted, approved)
        block = self._loaded(at)
        if self.disk.get(_key(at)) != block.seen_on_disk:
            raise ToolFailure("file modified externally", code="modified")
        if granted is Action.APPEND and not block.text.startswith(block.seen_on_disk):
            raise ToolFailure("more than an addition", code="not-granted")
        self.disk[_key(at)] = block.seen_on_disk = block.text
        return {"label": self.label_of(at)}

    async def append(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        self._permit(at, Action.APPEND, approved)
        block = await self._block(at)
        block.text += content
        return {"label": self.label_of(at)}

    async def replace(self, at: Located, old: str, new: str, *, approved: Approved = False) -> JsonValue:
        self._permit(at, Action.OVERWRITE, approved)
        block = await self._block(at)
        if block.text.count(old) != 1:
            raise ToolFailure(f"the old text occurs {block.text.count(old)} times", code="not-once")
        block.text = block.text.replace(old, new)
        return {"label": self.label_of(at)}

    async def insert(self, at: Located, line: int, content: str, *, approved: Approved = False) -> JsonValue:
        self._permit(at, Action.OVERWRITE, approved)
        block = await self._block(at)
        lines = block.text.splitlines(keepends=True)
        block.text = "".join([*lines[: line - 1], content, *lines[line - 1 :]])
        return {"label": self.label_of(at)}

    async def patch(self, at: Located, patch: str, *, approved: Approved = False) -> JsonValue:
        self._permit(at, Action.OVERWRITE, approved)
        block = await self._block(at)
        block.text = with_patch(block.text, patch)
        return {"label": self.label_of(at)}

    async def reload(self, at: Located, *, asked: Approved = False) -> JsonValue:
        self._loaded(at)
        return await self.load(at, asked=asked)

    async def create(self, at: Located, content: str, *, approved: Approved = False) -> JsonValue:
        self._permit(at, Action.APPEND, approved)
        if _key(at) in self.disk:
            raise ToolFailure("there is such a file", code="exists")
        self.disk[_key(at)] = content
        return await self.load(at)

    async def delete(
        self, at: Located, *, recursive: bool = False, asked: Approved = False, approved: Approved = False
    ) -> JsonValue:
        self._permit(at, Action.DELETE, approved or asked)
        self._on_disk(at)
        del self.disk[_key(at)]
        self.blocks.pop(_key(at), None)
        return {"path": at.relative}

    async def block_info(self, at: Located) -> JsonValue:
        return {"label": self.label_of(at), "size": len(self._loaded(at).text.encode()), "pinned": False}

    def _at(self, source_id: str, relative: str) -> Located:
        return Located(source_id, relative, f"/{source_id}/{relative}")

    def _permit(self, at: Located, action: Action, approved: Approved) -> None:
        verdict = verdict_for(self.level(at).permission, action)
        if verdict is Verdict.DENY or (verdict is Verdict.ASK and not approved):
            raise ToolFailure("the level does not let that be done", code="not-granted")

    def _on_disk(self, at: Located) -> str:
        text = self.disk.get(_key(at))
        if text is None:
            raise ToolFailure(f"no file `{at.relative}`", code="no-file")
        return text

    def _is_unsaved(self, at: Located) -> bool:
        block = self.blocks.get(_key(at))
        return block is not None and block.text != block.seen_on_disk

    def _loaded(self, at: Located) -> Block:
        block = self.blocks.get(_key(at))
        if block is None:
            raise ToolFailure("there is no block of that file", code="no-block")
        return block

    async def _block(self, at: Located) -> Block:
        if _key(at) not in self.blocks:
            await self.load(at)
        return self._loaded(at)


def _key(at: Located) -> tuple[str, str]:
    return at.source_id, at.relative


def _diff(old: str, new: str) -> str:
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
