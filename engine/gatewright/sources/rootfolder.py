"""The roots of a workspace (shared, tmp, vault): finds the places of paths, and works on files by descriptors.

A path begins with the name of a root (``shared/a.txt``, also ``/shared/a.txt``), or is an absolute path inside a root;
a path without a root begins in ``shared``. ``..`` is resolved in the text and never leaves the root in which the path
began; links are not followed, so text and disk agree. At a closed place the words for the model are the same, whatever
is there.

Every use opens the folders on the way anew, none through a link, and checks protection and levels with the identities
of the opened entries, so a decision by name applies to the object in use. Disk work runs in threads; a change runs
alone, among processes too. The gate has already decided what each root allows.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from gatewright.arguments.path import ModelPath, PathRefused, parse_model_path
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.policy.document import ROOT_NAMES
from gatewright.policy.target import Approved, FileTarget, LevelDecision, Located, Refusal, levels_pass
from gatewright.policy.verdict import Action, Permission
from gatewright.sources import descriptor
from gatewright.sources.basefolder import READ_AGAIN, REPLACED, UNTRUSTED, BaseFolder, RootPlace
from gatewright.sources.descriptor import Identity, identity_of, look, unusable, without_dots
from gatewright.sources.filetext import (
    BYTE_ORDER_MARK,
    decode_text,
    digest_of,
    encode_text,
    line_count,
    with_change,
)
from gatewright.sources.ground import Protection
from gatewright.sources.known import permit, refuse_stale
from gatewright.sources.manager import SourceManager
from gatewright.sources.route import HINT, refusal_of_protected

if TYPE_CHECKING:
    from gatewright.sources.rootwalk import Walk


_ABOVE = "the path leads above its folder; leave out `..`"


class RootPaths:
    """The folders of the roots, with their protection, and the levels of sources over the same files."""

    def __init__(
        self, folders: Mapping[str, BaseFolder], workspace: str, sources: SourceManager, protection: Protection
    ) -> None:
        self._bases = dict(folders)
        self._workspace = tuple(f"{path.rstrip('/')}/" for path in (workspace, protection.ground.real(workspace)))
        self.sources = sources
        self.protection = protection

    def find(self, path: str, roots: Sequence[str], *, parameter: str, writes: bool) -> FileTarget | Refusal:
        """Find the file or folder that a model names, existing or not."""
        parsed = parse_model_path(path)
        if isinstance(parsed, PathRefused):
            return Refusal(parsed.code, parsed.reason, parsed.hint)
        place = self._place(parsed, roots)
        if isinstance(place, Refusal):
            return place
        refused = self._unusable(place, folder=parsed.folder)
        if refused is not None:
            return refused
        source_id, inside = self.source_of(place.absolute) or (None, None)
        return FileTarget(parameter, place.shown, place.absolute, writes, source_id, place.root, inside)

    def at(self, absolute: str) -> RootPlace:
        """Return the place of a path that ``find`` returned. Raises ToolFailure for any other."""
        found = self._inside(absolute)
        if found is None or any(part in {"", ".", ".."} or "\0" in part for part in found.parts):
            raise ToolFailure("this path is not available", code="not-available")
        return found

    def source_of(self, absolute: str) -> tuple[str, str] | None:
        """Return the innermost source that holds a path, and the path below its base."""
        found: tuple[str, str] | None = None
        for source_id in self.sources.ids:
            source = self.sources.get(source_id)
            inside = source.relative_of(absolute) if source is not None else None
            if inside is not None and (found is None or len(inside) < len(found[1])):
                found = source_id, inside
        return found

    def _place(self, path: ModelPath, roots: Sequence[str]) -> RootPlace | Refusal:
        real = without_dots(path.parts) if path.absolute else None
        found = None if real is None else self._inside("/" + "/".join(real))
        if found is None:
            named = path.parts[0] if path.parts and path.parts[0] in ROOT_NAMES else None
            if path.absolute and ("/" + "/".join(path.parts)).startswith(self._workspace):
                named = None  # a real path, whatever the name of its first folder
            if named is None and path.absolute:
                return Refusal("outside-roots", f"`{path}` lies in none of the roots", self._begin(roots))
            root = named or ROOT_NAMES[0]
            if root not in self._bases:
                return Refusal("no-root", f"`{path}`: the policy names no folder for root `{root}`", self._begin(roots))
            parts = without_dots(path.parts[1:] if named else path.parts)
            if parts is None:
                return Refusal("outside-base", f"`{path}` leads above root `{root}`", _ABOVE)
            found = RootPlace(root, self._bases[root], parts)
        if found.root not in roots:
            listed = " and ".join(f"`{root}`" for root in roots)
            reason = f"`{path}` is in root `{found.root}`, and this takes paths in {listed} only"
            return Refusal("outside-roots", reason, self._begin(roots))
        return found

    def _inside(self, absolute: str) -> RootPlace | None:
        for root, base in self._bases.items():
            top = base.path.rstrip("/")
            if absolute == base.path or absolute.startswith(f"{top}/"):
                rest = absolute[len(top) + 1 :]
                return RootPlace(root, base, tuple(rest.split("/")) if rest else ())
        return None

    def _begin(self, roots: Sequence[str]) -> str:
        """Advise the model how a path has to begin."""
        there = [f"`{root}/`" for root in roots if root in self._bases]
        return f"begin the path with {' or '.join(there)}" if there else HINT

    def _unusable(self, place: RootPlace, *, folder: bool) -> Refusal | None:
        absolute, protected = place.absolute, self.protection.now()
        try:
            standing = look(place.base, place.parts)
        except ToolFailure as failure:
            if protected.covers(absolute):
                return refusal_of_protected(absolute)
            if (told := root_failure(place.root, failure)) is not failure:
                more = f"; {READ_AGAIN}" if failure.code == REPLACED else ""
                return Refusal(told.code, f"{told}: `{place.base.path}`{more}", str(told))
            return Refusal(failure.code, f"`{absolute}`: {failure}", HINT)
        if protected.covers(absolute, standing.identities):
            return refusal_of_protected(absolute)
        if standing.is_folder:
            return None
        if folder:
            return Refusal("not-a-folder", f"`{absolute}` is no folder, and the path ends as one", HINT)
        failure = None if standing.status is None else unusable(standing.status)
        return None if failure is None else Refusal(failure.code, f"`{absolute}`: {failure}", HINT)


def root_failure(root: str, failure: ToolFailure) -> ToolFailure:
    """Turn a failure of the folder of a root into words about the root."""
    told = {
        "source-missing": ("root-missing", f"the folder of root `{root}` is not there"),
        REPLACED: ("root-replaced", f"another folder stands in the place of root `{root}`"),
        UNTRUSTED: (UNTRUSTED, f"root `{root}` leads out of the workspace and is not trusted"),
    }
    code, text = told.get(failure.code, ("", ""))
    return ToolFailure(text, code=code) if code else failure


MAX_TEXT_BYTES = 1024 * 1024
"""The largest text in bytes to read, search or write."""
MAX_COPY_BYTES = 16 * 1024 * 1024
"""The largest file in bytes to copy."""
_GONE = "this path is not available"
_CHANGED = "somebody else changed this meanwhile; make the call again"


class RootFolders:
    """The roots of ``[workspace]`` (shared, tmp, vault), as tools see them; ``workspace``: its own folder.

    Paths are absolute and come from ``find``. A tool's parameter names the permitted roots (``FileParameter.roots``),
    and the gate enforces that. Disk work goes through descriptors from the root's folder on, follows no link, refuses
    protected paths and level none, and raises ToolFailure. ``exclusive`` keeps every other process from changing files
    meanwhile.
    """

    def __init__(
        self,
        folders: Mapping[str, BaseFolder],
        workspace: str,
        sources: SourceManager,
        protection: Protection,
        exclusive: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._paths = RootPaths(folders, workspace, sources, protection)
        self._exclusive = exclusive

    # places

    def find(
        self, path: str, *, roots: Sequence[str], parameter: str = "", writes: bool = False
    ) -> FileTarget | Refusal:
        """Find the place of a model's path in one of ``roots``; touches metadata only and never raises."""
        return self._paths.find(path, roots, parameter=parameter, writes=writes)

    def display_path(self, absolute: str) -> str:
        """Return the path with the name of its root in front, ``shared/a.txt``."""
        return self._paths.at(absolute).shown

    # assessments

    def stands(self, absolute: str) -> bool:
        """Tell whether something exists there; an unreadable entry counts."""
        at = self._paths.at(absolute)
        try:
            return descriptor.look(at.base, at.parts).exists
        except ToolFailure:
            return True

    def text_of(self, absolute: str) -> str:
        """Read the current text. Raises ToolFailure if it is missing."""
        return decode_text(self._bytes(self._paths.at(absolute), MAX_TEXT_BYTES)[0])

    def note_of(self, absolute: str) -> str | None:
        """Describe the file (size and SHA-256) or folder (its entries) for the person who approves; None if it is
        missing.
        """
        at = self._paths.at(absolute)
        try:
            if descriptor.look(at.base, at.parts).is_folder:
                return self._walk(at).describe()
            content = self._bytes(at, MAX_COPY_BYTES)[0]
        except ToolFailure as failure:
            return None if failure.code == "not-found" else str(failure)
        return f"{len(content):,} bytes, sha256:{digest_of(content)}"

    # operations

    async def read(self, absolute: str) -> JsonValue:
        """Return ``content`` and size of a text file; a byte order mark is a field of its own."""
        return await aio.to_thread(self._read, self._paths.at(absolute))

    async def list_folder(self, absolute: str, *, stopped: Callable[[], bool]) -> JsonValue:
        """Return ``entries``: names, sorted, folders with ``/``; ``left_out`` if the list is cut."""
        return await aio.to_thread(self._look, self._paths.at(absolute), stopped, lambda walk: walk.list_names())

    async def search(
        self, absolute: str, find: Callable[[str], int | None], *, hits: int, stopped: Callable[[], bool]
    ) -> JsonValue:
        """Return ``hits`` (``path:line:text``) for the lines where ``find`` returns a position, and the skipped
        files.
        """
        at = self._paths.at(absolute)
        return await aio.to_thread(self._look, at, stopped, lambda walk: walk.search(find, hits))

    async def write(
        self, absolute: str, content: str, granted: Action | None, *, approved: Approved = False
    ) -> JsonValue:
        """Create a file and the folders above it, or replace it in one step if overwriting is granted."""
        written = encode_text(content, MAX_TEXT_BYTES)
        return await aio.to_thread(self._write, self._paths.at(absolute), written, granted, approved)

    async def edit(
        self, absolute: str, old: str, new: str, granted: Action | None, *, approved: Approved = False
    ) -> JsonValue:
        """Replace ``old``, which must occur exactly once, by ``new``, if overwriting is granted."""
        return await aio.to_thread(self._edit, self._paths.at(absolute), old, new, granted, approved)

    async def delete(
        self, absolute: str, *, recursive: bool, granted: Action | None, approved: Approved = False
    ) -> JsonValue:
        """Remove a file or folder if deleting is granted; ``recursive`` first removes its content."""
        return await aio.to_thread(self._delete, self._paths.at(absolute), recursive, granted, approved)

    async def copy(
        self, source: str, destination: str, granted: Action | None, *, approved: Approved = False
    ) -> JsonValue:
        """Copy the bytes of a file, as ``write`` does."""
        return await aio.to_thread(self._copy, self._paths.at(source), self._paths.at(destination), granted, approved)

    # in a thread

    def _read(self, at: RootPlace) -> JsonValue:
        content = self._bytes(at, MAX_TEXT_BYTES)[0]
        text = decode_text(content)
        return {
            "path": at.shown,
            "content": text.removeprefix(BYTE_ORDER_MARK),
            "bytes": len(content),
            "lines": line_count(text),
            **({"byte_order_mark": True} if text.startswith(BYTE_ORDER_MARK) else {}),
        }

    def _look(self, at: RootPlace, stopped: Callable[[], bool], find: Callable[[Walk], JsonValue]) -> JsonValue:
        with _words(at):
            return find(self._walk(at, stopped))

    def _write(self, at: RootPlace, content: bytes, granted: Action | None, approved: Approved) -> dict[str, JsonValue]:
        if granted not in {Action.APPEND, Action.OVERWRITE}:
            raise ToolFailure("writing was not granted", code="not-granted")
        with self._exclusive(), self._folder_of(at, make=True) as (folder, name, passed):
            there = descriptor.status_of(folder, name)
            identities = (*passed, *(() if there is None else (identity_of(there),)))
            self._refuse_closed(at, identities)
            if there is not None and stat.S_ISREG(there.st_mode) and granted is not Action.OVERWRITE:
                raise ToolFailure(_CHANGED, code="conflict")
            self._permit(at, identities, Action.APPEND if there is None else Action.OVERWRITE, approved)
            if there is None:
                descriptor.write_new(folder, name, content)
            else:
                descriptor.replace_bytes(folder, name, content, there)
        return {"path": at.shown, "bytes": len(content), "created": there is None}

    def _edit(self, at: RootPlace, old: str, new: str, granted: Action | None, approved: Approved) -> JsonValue:
        if granted is not Action.OVERWRITE:
            raise ToolFailure("changing the file was not granted", code="not-granted")
        with self._exclusive(), self._folder_of(at) as (folder, name, passed):
            content, seen = descriptor.read_bytes(folder, name, MAX_TEXT_BYTES)
            self._permit(at, (*passed, identity_of(seen)), Action.OVERWRITE, approved)
            text = decode_text(content)
            changed = with_change(text, old, new)
            written = encode_text(changed, MAX_TEXT_BYTES)
            if written != content:
                descriptor.replace_bytes(folder, name, written, seen)
        return {"path": at.shown, "bytes": len(written), "lines": line_count(changed)}

    def _delete(self, at: RootPlace, recursive: bool, granted: Action | None, approved: Approved) -> JsonValue:
        if granted is not Action.DELETE:
            raise ToolFailure("removing was not granted", code="not-granted")
        if not at.parts:
            raise ToolFailure("this is the top folder of a root, which is never removed", code="root")
        with self._exclusive(), _words(at):
            standing = descriptor.look(at.base, at.parts)
            if standing.is_folder:
                self._permit(at, standing.identities, Action.DELETE, approved)
                walk = self._walk(at)
                walk.refuse_kept()
                if walk.count and not recursive:
                    text = f"the folder `{at.shown}` is not empty: with `recursive` it goes with everything in it"
                    raise ToolFailure(text, code="not-empty")
                walk.remove()
                return {"path": at.shown, "kind": "folder", "removed": walk.count + 1}
            with self._folder_of(at) as (folder, name, passed):
                there = descriptor.status_of(folder, name)
                self._permit(at, (*passed, *(() if there is None else (identity_of(there),))), Action.DELETE, approved)
                if not descriptor.remove(folder, name):
                    raise ToolFailure("there is no such file or folder", code="not-found")
        return {"path": at.shown, "kind": "file"}

    def _copy(self, source: RootPlace, destination: RootPlace, granted: Action | None, approved: Approved) -> JsonValue:
        content = self._bytes(source, MAX_COPY_BYTES)[0]
        written = self._write(destination, content, granted, approved)
        told: dict[str, JsonValue] = {"source_path": source.shown, "destination_path": written.pop("path")}
        return told | {"sha256": digest_of(content)} | written

    # helpers

    def _walk(self, at: RootPlace, stopped: Callable[[], bool] | None = None) -> Walk:
        from gatewright.sources.rootwalk import Walk

        return Walk(at, self._level, self._paths.protection.now(), stopped, MAX_TEXT_BYTES)

    def _bytes(self, at: RootPlace, limit: int) -> tuple[bytes, os.stat_result]:
        with self._folder_of(at) as (folder, name, passed):
            content, status = descriptor.read_bytes(folder, name, limit)
            self._refuse_closed(at, (*passed, identity_of(status)))
        return content, status

    @contextmanager
    def _folder_of(self, at: RootPlace, *, make: bool = False) -> Generator[tuple[int, str, list[Identity]]]:
        """Open the folder of a file, and return it with the file's name and the identities on the way."""
        if not at.parts:
            raise ToolFailure("this is a folder, not a file", code="is-a-folder")
        passed: list[Identity] = []
        with _words(at), descriptor.open_folder(at.base, at.parts[:-1], make=make, passed=passed) as folder:
            yield folder, at.parts[-1], passed

    def _refuse_closed(self, at: RootPlace, identities: Sequence[Identity]) -> LevelDecision | None:
        """Return the level; raise ToolFailure for level none."""
        level = self._level(at, identities)
        closed = level is not None and level.permission is Permission.NONE
        if level is not None and closed and (level.protected or not levels_pass.get()):
            raise ToolFailure(_GONE, code="not-available")
        return level

    def _permit(self, at: RootPlace, identities: Sequence[Identity], action: Action, approved: Approved) -> None:
        """Refuse an action that the level does not allow now, or whose approval no longer holds."""
        level = self._refuse_closed(at, identities)
        if level is not None:
            permit(level.permission, action, approved)
        refuse_stale(approved)

    def _level(self, at: RootPlace, identities: Sequence[Identity]) -> LevelDecision | None:
        absolute = at.absolute
        if self._paths.protection.now().covers(absolute, identities):
            return LevelDecision(Permission.NONE, protected=True)
        held = self._paths.source_of(absolute)
        return None if held is None else self._paths.sources.level(Located(held[0], held[1], absolute))


@contextmanager
def _words(at: RootPlace) -> Generator[None]:
    """Turn failures of descriptors into words about roots."""
    told = {"hard-link": "the file has a second name (hard link), perhaps outside the root", "conflict": _CHANGED}
    try:
        yield
    except ToolFailure as failure:
        text = told.get(failure.code)
        raise (root_failure(at.root, failure) if text is None else ToolFailure(text, code=failure.code)) from None
