"""A disposable copy of a workspace, to run calls in. It does not know the app's console.

The copy has the policy as edited, the folders of its sources, a state and a key folder of its own; links are copied as
links, special files are left out, and a copy larger than the limit is refused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.gate import STATE_FOLDER

if TYPE_CHECKING:
    from gatewright.workspace.workspace import Workspace

MAX_COPY_BYTES = 256 * 1024 * 1024
MAX_COPY_FILES = 50_000
MAX_COPY_DEPTH = 128


class CopyCancelled(WorkspaceError):
    """Whoever asked for the copy does not want it any more; nothing of it is left."""


@dataclass(frozen=True, slots=True)
class CopyWatch:
    """``cancelled`` is asked before every entry, ``progress`` told the files and bytes so far after every file."""

    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda files, size: None  # noqa: ARG005 - nobody watches

    def stop_if_cancelled(self) -> None:
        """Raises CopyCancelled."""
        if self.cancelled():
            raise CopyCancelled("the copy was cancelled")


class Sandbox:
    """A copy in a temporary folder until ``close``.

    ``left_out``: folders that are never copied (state and keys). ``watch``: told of the progress, may stop the copy.
    """

    def __init__(
        self,
        policy_path: Path,
        text: str,
        bases: Sequence[Path],
        open_copy: Callable[[Path, Path, Path], Workspace],
        *,
        left_out: Sequence[Path] = (),
        watch: CopyWatch | None = None,
    ) -> None:
        self._holder = Path(tempfile.mkdtemp(prefix="gatewright-sandbox-"))
        try:
            self.folder = self._holder / "workspace"
            self.folder.mkdir()
            _Copy(left_out, watch or CopyWatch()).bases(policy_path.parent, self.folder, bases)
            copy = self.folder / policy_path.name
            copy.unlink(missing_ok=True)  # copied with a base, perhaps as a link to the real file
            copy.write_bytes(text.encode("utf-8"))
            self.workspace = open_copy(copy, self._holder / "state", self._holder / "keys")
        except OSError as error:
            self._remove()
            raise WorkspaceError(f"cannot copy the workspace: {error.strerror or error}") from None
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        """Throw the copy away."""
        self.workspace.close()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._holder, ignore_errors=True)


class _Copy:
    """One run of copying, and what it may still take."""

    def __init__(self, left_out: Sequence[Path], watch: CopyWatch) -> None:
        self._left_out = frozenset(os.path.realpath(path) for path in left_out)
        self._watch = watch
        self._bytes = self._files = 0

    def bases(self, origin: Path, target: Path, bases: Sequence[Path]) -> None:
        root = Path(os.path.realpath(origin))
        for base in bases:
            if not base.is_relative_to(root):
                raise WorkspaceError(f"the folder `{base}` is outside the workspace; a copy would not hold it")
        for base in bases:
            inside_another = any(base != other and base.is_relative_to(other) for other in bases)
            if base.is_dir() and not inside_another:
                self._folder(base, target / base.relative_to(root), MAX_COPY_DEPTH)

    def _folder(self, origin: Path, target: Path, depth: int) -> None:
        if depth == 0:
            raise WorkspaceError(f"folders are nested too deeply for a disposable copy (more than {MAX_COPY_DEPTH})")
        target.mkdir(parents=True, exist_ok=True)
        with os.scandir(origin) as entries:
            for entry in entries:
                self._watch.stop_if_cancelled()
                self._entry(entry, target / entry.name, depth)

    def _entry(self, entry: os.DirEntry[str], goal: Path, depth: int) -> None:
        if entry.is_symlink():
            if not goal.is_symlink():
                goal.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir(follow_symlinks=False):
            if entry.name != STATE_FOLDER and entry.path not in self._left_out:
                self._folder(Path(entry.path), goal, depth - 1)
        elif entry.is_file(follow_symlinks=False):
            self._spend(entry.stat(follow_symlinks=False).st_size)
            shutil.copy2(entry.path, goal, follow_symlinks=False)
            self._watch.progress(self._files, self._bytes)

    def _spend(self, size: int) -> None:
        self._bytes += size
        self._files += 1
        if self._bytes > MAX_COPY_BYTES or self._files > MAX_COPY_FILES:
            limit = f"{MAX_COPY_BYTES // 1024 // 1024} MiB or {MAX_COPY_FILES:,} files"
            raise WorkspaceError(f"the workspace is too large for a disposable copy (more than {limit})")
