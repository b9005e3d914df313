"""What the disk refuses: every error has one code and words that name no path, and half of nothing stays."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.verdict import Action
from gatewright.sources import descriptor
from gatewright.sources.basefolder import base_folder, failure_of
from tests.engine.sources.bench import Bench, open_now


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
        await bench.manager.read(at)
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
    with descriptor.alone_in(folder):  # it cannot even be opened again
        pass


async def test_a_folder_on_the_way_that_cannot_be_opened_is_told_in_the_same_words(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("sub/a.md", "x")
    at, real = bench.at("sub/a.md"), os.open

    def refuse(path: str, *rest: int, **more: int | None) -> int:
        if path == "sub":
            raise OSError(errno.EACCES, "somewhere", "/secret/sub")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolFailure) as told:
        await bench.manager.read(at)
    words = "the file system refuses it (permission denied)"
    assert (told.value.code, str(told.value)) == ("no-access", words)


@pytest.mark.parametrize(
    ("name", "number", "code", "words"),
    [
        ("a.md", errno.EACCES, "no-access", "the file system refuses it (permission denied)"),
        ("base", errno.EACCES, "no-access", "the folder of this source cannot be opened (no permission)"),
        ("base", errno.EIO, "io", "the folder of this source cannot be opened (input/output error)"),
        ("base", errno.ENOENT, "source-missing", "the folder of this source is missing"),
        ("base", errno.ENOTDIR, "source-replaced", "another folder stands in the place of this source's"),
    ],
)
def test_what_cannot_even_be_looked_at_is_told_in_words_without_a_path(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, number: int, code: str, words: str
) -> None:
    bench.write("sub/a.md", "x")
    real = os.lstat

    def refuse(path: str) -> os.stat_result:
        if path.endswith(f"/{name}"):
            raise OSError(number, "somewhere", path)
        return real(path)

    monkeypatch.setattr(os, "lstat", refuse)
    refused = bench.refused("sub/a.md")
    assert (refused.code, refused.hint) == (code, words)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
async def test_a_saved_file_keeps_its_owner_and_without_that_its_owner_s_rights_go(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, at = bench.write("a.md", "one\n"), bench.at("a.md")
    for owner, group in ((1234, 4321), (1234, os.getegid()), (os.geteuid(), 4321)):
        os.chown(path, owner, group)
        path.chmod(0o6755)
        await bench.manager.append(at, "two\n")
        await bench.manager.save(at, Action.APPEND)
        now = path.stat()
        assert (now.st_uid, now.st_gid, now.st_mode & 0o7777) == (owner, group, 0o6755)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    await bench.manager.append(at, "three\n")
    await bench.manager.save(at, Action.APPEND)
    assert path.stat().st_mode & 0o7777 == 0o755


def test_what_is_written_or_removed_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, done = base_folder(tmp_path).open(), list[str]()
    fsync, rename, unlink = os.fsync, os.rename, os.unlink

    def synced(descriptor: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        fsync(descriptor)

    def renamed(*names: str, **folders: int) -> None:
        done.append("rename")
        rename(*names, **folders)

    def removed(name: str, *, dir_fd: int) -> None:
        done.append("remove")
        unlink(name, dir_fd=dir_fd)

    for name, call in (("fsync", synced), ("rename", renamed), ("unlink", removed)):
        monkeypatch.setattr(os, name, call)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, renamed, removed})
    descriptor.write_new(folder, "a.md", b"one\n")
    descriptor.remove(folder, "a.md")
    (tmp_path / "sub").mkdir()
    descriptor.remove_folder(folder, "sub")
    os.close(folder)
    assert done == ["sync file", "rename", "sync folder", "remove", "sync folder", "sync folder"]
    assert list(tmp_path.iterdir()) == []


def test_where_no_folder_can_be_held_open_no_file_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (os.open, os.stat, os.mkdir, os.unlink, os.rename):
        with monkeypatch.context() as patch:
            patch.setattr(os, "supports_dir_fd", os.supports_dir_fd - {call})
            fault = base_folder(tmp_path).fault()
        assert fault is not None
        words = "files cannot be used on this system, which cannot hold a folder open"
        assert (fault.code, str(fault)) == ("not-supported", words)
    for name in ("O_NOFOLLOW", "O_DIRECTORY"):
        with monkeypatch.context() as patch:
            patch.delattr(os, name)
            assert base_folder(tmp_path).fault() is not None
    assert base_folder(tmp_path).fault() is None


async def test_files_are_opened_without_following_waiting_or_taking_a_terminal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("sub/a.md", "one\n")
    at, real, flags = bench.at("sub/a.md"), os.open, dict[str, int]()

    def noted(path: str, how: int, *rest: int, **more: int | None) -> int:
        flags["new" if str(path).endswith(".tmp") else str(path)] = how
        return real(path, how, *rest, **more)

    monkeypatch.setattr(os, "open", noted)
    await bench.manager.append(at, "two\n")
    await bench.manager.save(at, Action.APPEND)
    await bench.manager.create(bench.at("sub/new.md"), "x")
    careful = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | careful
    passed = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_PATH
    wanted = {"a.md": careful, "new": made, "new.md": made, "sub": passed, str(bench.folder): passed}
    assert {name: flags[name] & ~os.O_CLOEXEC for name in wanted} == wanted


def nothing(path: Path) -> None:
    path.unlink()


def a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("b.md")


def a_second_name(path: Path) -> None:
    path.unlink()
    path.hardlink_to(path.with_name("b.md"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def another(path: Path) -> None:
    path.with_name("b.md").replace(path)
    os.utime(path, ns=(1, 1))


def longer(path: Path) -> None:
    path.write_text("one\ntwo\n")
    os.utime(path, ns=(1, 1))


def later(path: Path) -> None:
    os.utime(path, ns=(1, 2))


def linked(path: Path) -> None:
    path.with_name("c.md").hardlink_to(path)


@pytest.mark.parametrize(
    ("change", "code"),
    [(nothing, "not-found"), (a_link, "symlink"), (a_second_name, "hard-link"), (a_pipe, "special-file"),
     (a_folder, "is-a-folder")],
)  # fmt: skip
def test_what_becomes_something_else_just_before_it_is_opened_is_refused_and_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], code: str
) -> None:
    path, folder, real = tmp_path / "a.md", base_folder(tmp_path).open(), os.open
    path.write_text("one\n")
    (tmp_path / "b.md").write_text("one\n")

    def changed(name: str, *rest: int, **more: int | None) -> int:
        change(path)
        return real(name, *rest, **more)

    before = open_now()
    monkeypatch.setattr(os, "open", changed)
    with pytest.raises(ToolFailure) as told:
        descriptor.read_bytes(folder, "a.md", 9)
    assert told.value.code == code
    assert not open_now() - before
    os.close(folder)


@pytest.mark.parametrize("change", [nothing, another, longer, later, linked])
def test_what_was_changed_while_the_new_text_was_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    path, folder = tmp_path / "a.md", base_folder(tmp_path).open()
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("one\n")
        os.utime(tmp_path / name, ns=(1, 1))

    def changed(_: int) -> None:
        change(path)

    monkeypatch.setattr(os, "fsync", changed)
    seen = descriptor.status_of(folder, "a.md")
    assert seen is not None
    with pytest.raises(ToolFailure) as told:
        descriptor.replace_bytes(folder, "a.md", b"mine", seen)
    words = "file modified externally, use file load to refresh"
    assert (told.value.code, str(told.value)) == ("conflict", words)
    assert "mine" not in [one.read_text() for one in tmp_path.iterdir()]
    os.close(folder)


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
    monkeypatch.setattr(descriptor, "status_of", vanished)
    with pytest.raises(ToolFailure) as told:
        descriptor.write_new(folder, "a", b"x")
    os.close(folder)
    assert told.value.code == "not-found"
    assert list(tmp_path.iterdir()) == []
