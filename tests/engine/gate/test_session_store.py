"""Sessions on disk: saved whole, read strictly, never outside their folder."""

from __future__ import annotations

import asyncio
import errno
import re
import shutil
from pathlib import Path

import pytest

from gatewright.base.errors import SessionConflict, WorkspaceError
from gatewright.gate import Session, sessionstore
from gatewright.gate.sessionstore import MAX_BYTES, SessionFiles, SessionStore
from gatewright.record.folder import PrivateFolder
from tests.support.clock import ManualClock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "sessions"


@pytest.fixture
def store(folder: Path) -> SessionStore:
    return SessionStore(folder, folder.parent / "keys", ManualClock())


def used(session_id: str) -> Session:
    session = Session(session_id)
    session.reserve("t", "", 0.0)
    return session


def only(said: str) -> str:
    """A pattern of this text and nothing more."""
    return f"^{re.escape(said)}$"


def test_saved_session_goes_on_counting(store: SessionStore) -> None:
    store.save(used("one"))
    again = store.load("one")
    again.reserve("t", "", 1.0)
    store.save(again)

    assert store.load("one").calls("t") == 2


def test_list_names_what_is_kept(store: SessionStore, folder: Path) -> None:
    assert store.list() == ()
    for session_id in ("b", "A.b-C_1", "a"):
        store.save(used(session_id))
    (folder / "notes.txt").write_text("no session")

    assert store.list() == ("A.b-C_1", "a", "b")


def test_ids_that_differ_in_case_have_two_files(store: SessionStore, folder: Path) -> None:
    store.save(used("Ab"))
    store.save(Session("ab"))

    assert len({path.name.lower() for path in folder.iterdir()}) == 2
    assert store.load("Ab").calls("t") == 1


def test_deleted_session_is_gone(store: SessionStore) -> None:
    store.save(used("one"))

    assert store.delete("one")
    assert not store.delete("one")
    with pytest.raises(WorkspaceError, match=only("no session `one` is saved")):
        store.load("one")


@pytest.mark.parametrize("session_id", ["../up", "a/b", ".hidden", "a\0b", "ü", "x" * 101, "a b", "\ud800", "a\n"])
def test_id_that_is_no_plain_name_is_refused(store: SessionStore, session_id: str) -> None:
    no_id = only(f"`{session_id[:100]!r}` is not a valid id of a saved session: letters, digits, `.`, `_` and `-`")
    with pytest.raises(WorkspaceError, match=no_id):
        store.load(session_id)
    with pytest.raises(WorkspaceError, match=no_id):
        store.delete(session_id)
    if session_id.isprintable():
        with pytest.raises(WorkspaceError, match=no_id):
            store.save(used(session_id))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'{"format":"x"}', b"[" * 100_000])
def test_file_that_holds_no_session_is_refused(store: SessionStore, folder: Path, content: bytes) -> None:
    store.save(used("two"))
    (folder / "s-one.session").write_bytes(content)

    changed = only(f"`{folder / 's-one.session'}`: somebody changed it: Gatewright did not write this")
    with pytest.raises(WorkspaceError, match=changed):
        store.load("one")


def test_file_that_is_too_large_is_refused(store: SessionStore, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "s-one.session").write_bytes(b" " * (MAX_BYTES + 100))

    large = f"`{folder / 's-one.session'}` contains no saved session: it is larger than 4,194,304 bytes"
    with pytest.raises(WorkspaceError, match=only(large)):
        store.load("one")


def test_file_of_another_session_is_refused(store: SessionStore, folder: Path) -> None:
    store.save(used("one"))
    store.save(Session("one", "ann"))
    of_ann = next(folder.glob("s-one@*.session"))
    of_ann.rename(folder / "s-three.session")
    (folder / "s-one.session").rename(folder / "s-two.session")
    for name, whose in (("two", "`one`"), ("three", "`one` of the agent `ann`")):
        path = folder / f"s-{name}.session"
        with pytest.raises(WorkspaceError, match=only(f"`{path}` contains another session, {whose}")):
            store.load(name)


def test_session_of_another_workspace_or_of_an_older_version_is_refused(
    store: SessionStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(used("one"))
    copied = tmp_path / "elsewhere" / "state" / "sessions"
    shutil.copytree(folder, copied)
    belongs = f"it belongs to `{folder.parent}`, and does not follow a copied or moved workspace"
    said = f"`{copied / 's-one.session'}`: {belongs}; remove it to begin a new one"
    with pytest.raises(WorkspaceError, match=only(said)):
        SessionStore(copied, folder.parent / "keys", ManualClock()).load("one")
    keyless = "its key is missing, so it may be forged"
    with pytest.raises(WorkspaceError, match=only(f"`{copied / 's-one.session'}`: {keyless}")):
        SessionStore(copied, tmp_path / "none", ManualClock()).load("one")

    def unsealed(_files: SessionFiles, _content: bytes) -> bytes:
        return b"{}"

    monkeypatch.setattr(SessionFiles, "_unseal", unsealed)
    older = "an older version saved it without its workspace: remove it"
    with pytest.raises(WorkspaceError, match=only(f"`{folder / 's-one.session'}`: {older}")):
        store.load("one")


def test_link_in_place_of_a_file_is_not_followed(store: SessionStore, folder: Path, tmp_path: Path) -> None:
    store.save(used("one"))
    (folder / "s-one.session").rename(tmp_path / "elsewhere.json")
    (folder / "s-one.session").symlink_to(tmp_path / "elsewhere.json")

    with pytest.raises(WorkspaceError, match="cannot be read"):
        store.load("one")


def test_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(WorkspaceError, match="cannot be saved"):
        SessionStore(tmp_path / "file" / "sessions", tmp_path / "keys").save(used("one"))


def test_key_that_cannot_be_had_is_said(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(WorkspaceError, match="the key of the sessions"):
        SessionStore(folder, tmp_path / "file" / "keys").save(used("one"))


def test_file_of_the_largest_size_is_read_and_one_byte_more_is_not(store: SessionStore, folder: Path) -> None:
    folder.mkdir(parents=True)
    for extra, said in ((65, "is missing"), (66, "larger than")):
        (folder / "s-one.session").write_bytes(b" " * (MAX_BYTES + extra))
        with pytest.raises(WorkspaceError, match=said):
            store.load("one")


def test_session_that_is_too_large_is_not_kept(store: SessionStore, folder: Path) -> None:
    session = Session("one")
    session.reserve("t" * MAX_BYTES, "", 0.0)
    with pytest.raises(WorkspaceError, match=only(f"the session in `{folder / 's-one.session'}` is too large to save")):
        store.save(session)
    assert store.list() == ()


def test_what_the_disk_refuses_is_said(store: SessionStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(used("one"))
    again = store.load("one")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(PrivateFolder, "replace", refuse)
    monkeypatch.setattr(PrivateFolder, "delete", refuse)
    with pytest.raises(WorkspaceError, match=r"s-one.session` cannot be saved: .*no room"):
        store.save(again)
    with pytest.raises(WorkspaceError, match=r"s-one.session` cannot be deleted: .*no room"):
        store.delete("one")
    monkeypatch.undo()
    assert store.load("one").calls("t") == 1
    (folder / "s-one.session").unlink()
    (folder / "s-one.session").mkdir()
    with pytest.raises(WorkspaceError, match=r"cannot be read: .*not a plain file"):
        store.delete("one")


async def test_who_waits_for_a_held_session_is_told_when_patience_ends(
    store: SessionStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessionstore, "_LOCK_PATIENCE_S", 0.0)
    store.save(used("one"))
    async with store.hold("one") as session:
        session.reserve("t", "", 0.0)

        async def again() -> None:
            async with store.hold("one", patience_s=0.0):
                pass

        with pytest.raises(SessionConflict, match=only("this task holds the session `one` already")):
            await again()
        with pytest.raises(SessionConflict, match=only("the session `one` is held by somebody else")):
            await asyncio.create_task(again())
        held = only(f"the session in `{folder / 's-one.session'}` is held by somebody else")
        with pytest.raises(SessionConflict, match=held):
            store.delete("one")
        with pytest.raises(SessionConflict, match=held):
            store.save(Session("one"))
    assert store.delete("one")


@pytest.mark.parametrize("body", [b"[1]", b"{", b'{"home": ["", 1]}', b"\xff"])
def test_sealed_file_without_a_session_in_it_is_refused(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    def unsealed(_files: SessionFiles, _content: bytes) -> bytes:
        return body

    store.save(used("one"))
    monkeypatch.setattr(SessionFiles, "_unseal", unsealed)
    with pytest.raises(WorkspaceError, match=r"s-one\.session`"):
        store.load("one")


def test_session_that_somebody_saved_or_deleted_since_is_not_overwritten(store: SessionStore) -> None:
    store.save(used("one"))
    first, second = store.load("one"), store.load("one")
    store.save(first)

    with pytest.raises(SessionConflict, match=only("the session `one` was saved by somebody else since it was loaded")):
        store.save(second)
    store.save(first)
    assert store.delete("one")
    with pytest.raises(SessionConflict, match=only("the session `one` was deleted since it was loaded")):
        store.save(first)
    store.save(used("x" * 100))
    assert store.list() == ("x" * 100,)


def test_session_is_readable_by_its_owner_only(store: SessionStore, folder: Path) -> None:
    store.save(used("one"))

    assert (folder / "s-one.session").stat().st_mode & 0o077 == 0
    assert [path.name for path in folder.iterdir()] == ["s-one.session"]
