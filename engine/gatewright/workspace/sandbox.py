"""A disposable copy of a workspace, to run calls in. It does not know the app's console.

The copy has the policy as edited, the folders of its sources and roots, the manifests of its catalogs, the blocks as
they were, and a state and a key folder of its own: standing approvals, counts and the log are not taken along.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from gatewright.base.errors import WorkspaceError
from gatewright.gate import STATE_FOLDER
from gatewright.memory.storecopy import copy_store
from gatewright.workspace.foldercopy import CopyCancelled, CopyWatch, FolderCopy, clone
from gatewright.workspace.location import place_file

if TYPE_CHECKING:
    from gatewright.sources.basefolder import BaseFolder
    from gatewright.workspace.foldercopy import Copied
    from gatewright.workspace.workspace import Workspace

__all__ = ["BLOCKS", "CopyCancelled", "CopyWatch", "Sandbox"]

BLOCKS = "memory.sqlite"
_PREFIX = "gatewright-sandbox-"


class Sandbox:
    """A copy in a temporary folder until ``close``; ``copied`` says what became of it.

    ``files``: what else the policy names, by relative path, as it was when the policy was read. ``left_out``: folders
    that are never copied (state and keys). ``watch``: told of the progress, may stop the copy.
    """

    def __init__(
        self,
        origin: Workspace,
        text: str,
        bases: Sequence[BaseFolder],
        open_copy: Callable[[Path, Path, Path], Workspace],
        *,
        files: Mapping[str, bytes] = MappingProxyType({}),
        left_out: Sequence[Path] = (),
        watch: CopyWatch | None = None,
    ) -> None:
        watch = watch or CopyWatch()
        self._holder = _holder(origin.state_folder, origin.folder)
        try:
            self.folder = self._holder / "workspace"
            self.folder.mkdir()
            real = [os.path.realpath(path) for path in left_out]
            run = FolderCopy(Path(os.path.realpath(origin.folder)), self.folder, real, {STATE_FOLDER}, watch)
            self.copied: Copied = run.copy(bases)
            copy = self.folder / origin.policy_path.name
            copy.unlink(missing_ok=True)  # copied with a base, perhaps as a link
            copy.write_bytes(text.encode("utf-8"))
            for name, content in files.items():
                place_file(self.folder, name, content)
            self.workspace = open_copy(copy, self._holder / "state", self._holder / "keys")
            _copy_blocks(origin, self.workspace, run)
        except OSError as error:
            self._remove()
            where = f" at `{error.filename}`" if isinstance(error.filename, str) else ""
            raise WorkspaceError(f"cannot copy the workspace{where}: {error.strerror or error}") from None
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        """Throw the copy away."""
        self.workspace.close()
        self._remove()

    def _remove(self) -> None:
        _remove_all(self._holder)


def _copy_blocks(origin: Workspace, copy: Workspace, run: FolderCopy) -> None:
    """The blocks as they are now; those of files under the labels that these have in the copy."""
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

    copy_store(store, copy.state_folder / BLOCKS, relabel, run.watch.stop_if_cancelled)


def _size(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _holder(state: Path, folder: Path) -> Path:
    """A new folder for a copy: among temporary files, or beside the state where only there files can be cloned."""
    made = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
    try:
        if _clones_into(folder, made) or not (state.is_dir() and _clones_into(folder, state)):
            return made
        shutil.rmtree(made, ignore_errors=True)
        return Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX, dir=state)))
    except OSError:
        return made


def _clones_into(folder: Path, target: Path) -> bool:
    """Whether a file of ``folder`` can be cloned into ``target``: tried only where both are on one file system."""
    if folder.stat().st_dev != target.stat().st_dev:
        return False
    with tempfile.TemporaryFile(dir=target) as one, tempfile.TemporaryFile(dir=target) as other:
        one.write(b"x")
        one.flush()
        return clone(one.fileno(), other.fileno())


def _remove_all(folder: Path) -> None:
    """Remove a folder whatever modes the copies in it have."""
    for here, names, _ in os.walk(folder):
        for name in names:
            path = Path(here) / name
            if not path.is_symlink() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
