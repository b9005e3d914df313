"""The file system's errors as failures for the caller, in words that name no path."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from gatewright.base.errors import ToolFailure


@contextmanager
def failures(*passed: type[OSError]) -> Generator[None]:
    """Turn an OSError into a ToolFailure, except those of the kinds ``passed``."""
    try:
        yield
    except passed:
        raise
    except OSError as error:
        raise failure_of(error) from None


def failure_of(error: OSError) -> ToolFailure:
    """Return the failure for an error, with a code of ours."""
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolFailure(f"the file system refuses it ({words_of(error)})", code="no-access")
        case errno.EEXIST:
            return ToolFailure("there is something at that path", code="exists")
        case errno.ENOENT:
            return ToolFailure("there is no such file or folder", code="not-found")
        case errno.ELOOP:
            return ToolFailure("the path leads through a symbolic link, which is not followed", code="symlink")
        case errno.ENOTDIR:
            return ToolFailure("a part of the path is not a folder", code="not-a-folder")
        case errno.EISDIR:
            return ToolFailure("this is a folder, not a file", code="is-a-folder")
        case errno.ENOTEMPTY:
            return ToolFailure("the folder is not empty", code="not-empty")
        case errno.ENXIO | errno.EAGAIN:
            return ToolFailure("this is neither a file nor a folder but a device, pipe or socket", code="special-file")
        case errno.ENAMETOOLONG:
            return ToolFailure("the path is too long for this file system", code="path-too-long")
        case _:
            return ToolFailure(f"the file system failed ({words_of(error)})", code="io")


def words_of(error: OSError) -> str:
    """Return the system's own words, without the path."""
    if error.errno == errno.EROFS:
        return "write-protected"
    return os.strerror(error.errno).lower() if error.errno else "unknown error"
