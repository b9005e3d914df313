"""What the disk refuses: every error has one code and words that name no path, and half of nothing stays."""

import errno
import os
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.sources import descriptor
from gatewright.sources.basefolder import base_folder
from gatewright.sources.failure import failure_of
from tests.engine.sources.bench import Bench


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.EACCES, "no-access", "the file system refuses it (permission denied)"),
        (errno.EPERM, "no-access", "the file system refuses it (operation not permitted)"),
        (errno.EROFS, "no-access", "the file system refuses it (write-protected)"),
        (errno.EEXIST, "exists", "there is something at that path"),
        (errno.ENOENT, "not-found", "there is no such file or folder"),
        (errno.ELOOP, "symlink", "the path leads through a symbolic link, which is not followed"),
        (errno.ENOTDIR, "not-a-folder", "a part of the path is not a folder"),
        (errno.EISDIR, "is-a-folder", "this is a folder, not a file"),
        (errno.ENOTEMPTY, "not-empty", "the folder is not empty"),
        (errno.ENXIO, "special-file", "this is neither a file nor a folder but a device, pipe or socket"),
        (errno.EAGAIN, "special-file", "this is neither a file nor a folder but a device, pipe or socket"),
        (errno.ENAMETOOLONG, "path-too-long", "the path is too long for this file system"),
        (errno.EIO, "io", "the file system failed (input/output error)"),
        (0, "io", "the file system failed (unknown error)"),
    ],
)
async def test_each_error_of_the_disk_is_told_in_words_without_a_path(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, code: str, words: str
) -> None:
    bench.write("a.md", "x")
    at = bench.at("a.md")
    real = os.open

    def refuse(path: str, *rest: int, **more: int | None) -> int:
        if path == "a.md":
            raise OSError(number, "somewhere", "/secret/a.md")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolFailure) as told:
        await bench.port.read(at)
    assert (told.value.code, str(told.value)) == (code, words)
    assert str(failure_of(OSError(number, "somewhere", "/secret/a.md"))) == words


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BlockingIOError(errno.EAGAIN, ""), "busy"),
        (OSError(errno.EIO, ""), "busy"),
        (OSError(errno.ENOLCK, ""), ""),
        (OSError(errno.EOPNOTSUPP, ""), ""),
        (OSError(errno.EINVAL, ""), ""),
        (OSError(errno.EBADF, ""), ""),
    ],
)
def test_a_folder_that_is_held_is_busy_and_one_that_cannot_be_locked_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, code: str
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(descriptor, "lock", refuse)
    folder, told = base_folder(tmp_path).open(), None
    try:
        with descriptor.alone_in(folder):
            pass
    except ToolFailure as failure:
        told = failure.code, str(failure)
    os.close(folder)
    assert told == ((code, "another program holds this folder: try again") if code else None)


def test_a_new_file_that_cannot_be_filled_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ToolFailure("no room", code="io")

    def unwritable(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "")

    def vanished(*_: object) -> None:
        return None

    folder = base_folder(tmp_path).open()
    monkeypatch.setattr(descriptor, "replace_bytes", refuse)
    with pytest.raises(ToolFailure, match="no room"):
        descriptor.write_new(folder, "a", b"x")
    assert list(tmp_path.iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", unwritable)
        with pytest.raises(ToolFailure, match="write-protected"):
            descriptor.write_new(folder, "a", b"x")
    monkeypatch.setattr(descriptor, "_status", vanished)
    with pytest.raises(ToolFailure) as told:
        descriptor.write_new(folder, "a", b"x")
    os.close(folder)
    assert told.value.code == "not-found"
    assert list(tmp_path.iterdir()) == []
