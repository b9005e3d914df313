"""A disposable copy of a workspace for trying calls.

The copy has the edited policy, the folders of its sources and roots, the manifests of its catalogs, the present blocks
and notes, and its own state and key folder: standing approvals, counts and the log stay behind. Its files have the
names of the original (`Ground`), so paths, labels and decisions are the same. Its maker holds a lock on its folder;
without a lock the maker has died, and any process may remove it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from gatewright.base.errors import WorkspaceError
from gatewright.base.file import lock
from gatewright.gate import STATE_FOLDER
from gatewright.memory.block_store import FILE_NAME as BLOCKS
from gatewright.memory.notes import NoteBook
from gatewright.memory.storecopy import copy_store
from gatewright.record.folder import HomeSeal
from gatewright.sources.basefolder import FOLDER, BaseFolder
from gatewright.sources.ground import Ground
from gatewright.sources.manager import SourceManager
from gatewright.workspace.foldercopy import NOWHERE, Copied, CopyCancelled, CopyWatch, FolderCopy, clone
from gatewright.workspace.location import place_file

__all__ = ["CopyCancelled", "CopyWatch", "Sandbox", "remove_dead_copies"]

_PREFIX = "gatewright-sandbox-"
_TRIES = 5


class Original(Protocol):
    """The parts of a workspace that a copy needs."""

    policy_path: Path
    folder: Path

    @property
    def state_folder(self) -> Path:
        """The folder of its blocks."""
        ...

    @property
    def key_folder(self) -> Path:
        """The folder of their keys."""
        ...

    @property
    def notes(self) -> NoteBook:
        """The notes of all users."""
        ...

    @property
    def sources(self) -> SourceManager:
        """The sources behind its blocks."""
        ...

    def close(self) -> None:
        """Close it."""


Opened = TypeVar("Opened", bound=Original)


class Sandbox(Generic[Opened]):
    """A copy in a temporary folder until ``close``; ``copied`` is the result of copying, ``workspace`` the copy.

    ``files``: other files that the policy names, by relative path, as of the reading. ``left_out``: folders that are
    never copied (state and keys). ``watch``: follows the progress, and may stop the copy.
    """

    def __init__(
        self,
        origin: Original,
        text: str,
        bases: Sequence[BaseFolder],
        open_copy: Callable[[Ground, Path, Path], Opened],
        *,
        files: Mapping[str, bytes] = MappingProxyType({}),
        left_out: Sequence[Path] = (),
        watch: CopyWatch | None = None,
    ) -> None:
        watch = watch or CopyWatch()
        remove_dead_copies(origin.state_folder)
        self._holder, self._lock = _holder(origin.state_folder, origin.folder)
        try:
            self.folder = self._holder / "workspace"
            self.folder.mkdir()
            real = [os.path.realpath(path) for path in left_out]
            original = os.path.realpath(origin.folder)
            run = FolderCopy(Path(original), self.folder, real, {STATE_FOLDER}, watch)
            self.copied: Copied = run.copy(bases)
            copy = self.folder / origin.policy_path.name
            copy.unlink(missing_ok=True)  # a base may have brought it, perhaps as a link
            copy.write_bytes(text.encode("utf-8"))
            for name, content in files.items():
                place_file(self.folder, name, content)
            ground = Ground(original, str(self.folder), str(self._holder / NOWHERE))
            self.workspace = open_copy(ground, self._holder / "state", self._holder / "keys")
            self._run = run
            _copy_memory(origin, self.workspace, run)
        except OSError as error:
            self._remove()
            where = f" at `{error.filename}`" if isinstance(error.filename, str) else ""
            raise WorkspaceError(f"cannot copy the workspace{where}: {error.strerror or error}") from None
        except BaseException:
            self._remove()
            raise

    def hand_memory_to(self, other: Original) -> None:
        """Give its blocks and notes to a workspace opened on its folder. Raises WorkspaceError."""
        _copy_memory(self.workspace, other, self._run)

    def close(self) -> None:
        """Delete the copy."""
        self.workspace.close()
        self._remove()

    def _remove(self) -> None:
        _remove_all(self._holder)
        os.close(self._lock)


def remove_dead_copies(state: Path) -> None:
    """Remove the copies of dead processes, among temporary files and beside a workspace's state."""
    for place in (Path(tempfile.gettempdir()), state):
        for folder in sorted(place.glob(f"{_PREFIX}*")):
            held = _lock(folder)
            if held is not None:
                _remove_all(folder)
                os.close(held)


def _copy_memory(origin: Original, copy: Original, run: FolderCopy) -> None:
    """Copy the present blocks and notes; blocks of files get their labels in the copy."""
    store = origin.state_folder / BLOCKS
    run.spend(_size(store) + _size(store.with_name(f"{BLOCKS}-wal")))

    def relabel(_source_id: str, label: str) -> str:
        at = label.find("file:")
        relative = label[at:].split(":", 2)[-1] if at >= 0 else ""
        for source_id in origin.sources.ids if relative else ():
            source, moved = origin.sources.get(source_id), copy.sources.get(source_id)
            if source is not None and moved is not None and source.label(relative) == label[at:]:
                return label[:at] + moved.label(relative)
        return label

    kept, copied = (HomeSeal(one.state_folder, one.key_folder, BLOCKS) for one in (origin, copy))
    copy_store(kept, copied, relabel, run.watch.stop_if_cancelled)
    origin.notes.copy_to(copy.state_folder, copy.key_folder, run.spend, run.watch.stop_if_cancelled)


def _size(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _holder(state: Path, folder: Path) -> tuple[Path, int]:
    """Make a folder for a copy, with its lock: beside the state if only there files can be cloned, else temporary."""
    temporary = Path(tempfile.gettempdir())
    with suppress(OSError):
        if state.is_dir() and not _clones_into(folder, temporary) and _clones_into(folder, state):
            return _new_holder(state)
    return _new_holder(temporary)


def _new_holder(place: Path) -> tuple[Path, int]:
    for _ in range(_TRIES):  # before the lock, another process may mistake the folder for a dead one's
        made = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=place)))
        held = _lock(made)
        if held is not None:
            return made, held
    raise WorkspaceError(f"cannot lock a folder for the copy of the workspace in `{place}`")


def _lock(folder: Path) -> int | None:
    """Lock a copy's folder and return the descriptor; None if another holds it, or it is not ours."""
    try:
        descriptor = os.open(folder, FOLDER)
    except OSError:
        return None
    try:
        lock(descriptor, 0)
        is_ours = os.fstat(descriptor).st_uid == os.geteuid() and os.path.samestat(os.fstat(descriptor), folder.stat())
    except OSError:
        is_ours = False
    if is_ours:
        return descriptor
    os.close(descriptor)
    return None


def _clones_into(folder: Path, target: Path) -> bool:
    """Tell whether a file of ``folder`` can be cloned into ``target``; try it only on one file system."""
    if folder.stat().st_dev != target.stat().st_dev:
        return False
    with tempfile.TemporaryFile(dir=target) as one, tempfile.TemporaryFile(dir=target) as other:
        one.write(b"x")
        one.flush()
        return clone(one.fileno(), other.fileno())


def _remove_all(folder: Path) -> None:
    """Remove a folder with copies of any mode."""
    for here, names, _ in os.walk(folder):
        for name in names:
            path = Path(here) / name
            if not path.is_symlink() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
