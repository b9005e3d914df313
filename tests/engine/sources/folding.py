"""A file system that folds case and composed letters below one folder, made by asking the real one by its own names.

This machine's file systems tell spellings apart, so the calls that reach the disk by name are answered as such a file
system answers them: by whatever entry has an equal name when case and composition are left out.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ONE_PATH = ("lstat", "stat", "open", "mkdir", "unlink", "rmdir", "listdir", "scandir", "access")


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def fold_below(top: Path, patch: pytest.MonkeyPatch) -> None:
    """From now on names below ``top`` are taken for the same in every spelling."""
    listdir, readlink = os.listdir, os.readlink

    def real(path: Any, folder: int | None) -> Any:
        if not isinstance(path, str):
            return path
        above = "/" if folder is None else readlink(f"/proc/self/fd/{folder}")
        whole = os.path.normpath(os.path.join(above, path))  # noqa: PTH118 - plain texts
        if whole == str(top) or not whole.startswith(f"{top}/") or path == ".":
            return path
        found = str(top)
        for name in whole[len(str(top)) + 1 :].split("/"):
            try:
                names = listdir(found)
            except OSError:
                names = []
            found += "/" + next((one for one in names if folded(one) == folded(name)), name)
        return found

    def answered(call: Callable[..., Any]) -> Callable[..., Any]:
        def asked(path: Any = ".", *rest: Any, dir_fd: int | None = None, **more: Any) -> Any:
            resolved = real(path, dir_fd)
            if dir_fd is not None and resolved is path:
                more["dir_fd"] = dir_fd
            return call(resolved, *rest, **more)

        return asked

    supported = set(os.supports_dir_fd)
    for name in ONE_PATH:
        call = getattr(os, name)
        patch.setattr(os, name, answered(call))
        if call in supported:
            supported.add(getattr(os, name))
    patch.setattr(os, "supports_dir_fd", supported)
    patch.setattr("gatewright.sources.basefolder.plain", {})
    patch.setattr("gatewright.sources.descriptor.plain", {})
