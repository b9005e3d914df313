"""Writing, changing and removing files of the roots of a workspace."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.gate import Approval, ApprovalRequest, Status
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for
from gatewright.sources import rootwalk
from gatewright.sources.rootfolder import RootFolders
from tests.engine.builtins.rootbench import EVERYTHING, RootBench, names, opened, policy_text

ASKING = 'approvals = { side_effecting = "ask" }\n'


async def test_file_is_made_with_its_folders_and_then_replaced_keeping_its_mode(bench: RootBench) -> None:
    made = await bench.data("file_write", path="tmp/deep/er/a.sh", content="eins\n")
    assert made == {"path": "tmp/deep/er/a.sh", "bytes": 5, "created": True}
    (bench.folder / "tmp/deep/er/a.sh").chmod(0o750)
    again = await bench.data("file_write", path="tmp/deep/er/a.sh", content="zwei\r\n")
    assert (again["created"], bench.text("tmp/deep/er/a.sh")) == (False, "zwei\r\n")
    assert (bench.folder / "tmp/deep/er/a.sh").stat().st_mode & 0o777 == 0o750
    assert names(bench.folder / "tmp/deep/er") == ["a.sh"]


async def test_what_cannot_be_written_leaves_everything_as_it_was(bench: RootBench) -> None:
    bench.write("shared/a", "x")
    bench.write("shared/dir/b", "x")
    assert await bench.code("file_write", path="a", content="x" * (1024 * 1024 + 1)) == "too-large"
    assert await bench.code("file_write", path="a", content="nul\0") == "not-text"
    assert await bench.code("file_write", path="dir", content="x") == "is-a-folder"
    assert await bench.code("file_write", path="a/b", content="x") == "not-a-folder"
    assert await bench.code("file_write", path="new/", content="x") == "not-a-folder"
    assert await bench.code("file_write", path="shared", content="x") == "is-a-folder"
    assert bench.text("shared/a") == "x"


async def test_edit_needs_exactly_one_place_and_tells_how_many_there_are(bench: RootBench) -> None:
    bench.write("shared/a", "eins zwei eins")
    none = await bench.call("file_edit", path="a", old_text="drei", new_text="x")
    assert (none.code, "0 places" in (none.output or "")) == ("no-match", True)
    many = await bench.call("file_edit", path="a", old_text="eins", new_text="x")
    assert (many.code, "2 places" in (many.output or "")) == ("many-matches", True)
    assert bench.decide("file_edit", path="a", old_text="", new_text="x").stage == "schema"
    await bench.data("file_edit", path="a", old_text=" zwei ", new_text="-")
    assert bench.text("shared/a") == "eins-eins"
    assert await bench.code("file_edit", path="gone", old_text="x", new_text="y") == "not-found"


async def test_overlapping_places_are_more_than_one(bench: RootBench) -> None:
    bench.write("shared/a", "aaa")
    assert await bench.code("file_edit", path="a", old_text="aa", new_text="b") == "many-matches"


async def test_edit_keeps_line_endings_and_byte_order_mark(bench: RootBench) -> None:
    bench.write("shared/a", b"\xef\xbb\xbfone\r\ntwo\r\n")
    await bench.data("file_edit", path="a", old_text="one\ntwo", new_text="1\n2")
    assert (bench.folder / "shared/a").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"


async def test_file_and_empty_folder_go_and_a_full_one_only_when_asked(bench: RootBench) -> None:
    bench.write("shared/dir/sub/a", "x")
    bench.write("shared/dir/b", "x")
    outside = bench.write("vault/keep", "x")
    (bench.folder / "shared/dir/link").symlink_to(outside.parent)
    assert await bench.code("file_delete", path="dir") == "not-empty"
    assert (await bench.data("file_delete", path="dir/b"))["kind"] == "file"
    data = await bench.data("file_delete", path="dir", recursive=True)
    assert data == {"path": "shared/dir", "kind": "folder", "removed": 4}
    assert not (bench.folder / "shared/dir").exists()
    assert outside.read_text() == "x"
    (bench.folder / "shared/empty").mkdir()
    await bench.data("file_delete", path="shared/empty")
    assert await bench.code("file_delete", path="shared/empty") == "not-found"


@pytest.mark.parametrize("path", ["shared", "tmp", ".", "shared/x/..", "/shared/"])
async def test_root_itself_is_never_removed(bench: RootBench, path: str) -> None:
    bench.write("shared/a", "x")
    assert await bench.code("file_delete", path=path, recursive=True) == "root"
    assert bench.text("shared/a") == "x"


async def test_too_much_is_not_removed_at_once(bench: RootBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootwalk, "MAX_REMOVED", 3)
    for number in range(4):
        bench.write(f"shared/dir/{number}", "")
    assert await bench.code("file_delete", path="dir", recursive=True) == "too-many"
    assert len(names(bench.folder / "shared/dir")) == 4


async def test_every_refusal_of_the_port_has_its_code_and_words_and_changes_nothing(bench: RootBench) -> None:
    path, top = str(bench.write("shared/a", "one")), str(bench.folder / "shared")
    os.link(bench.write("shared/h", "one"), bench.folder / "tmp/h")
    bench.write("shared/dir/b", "x")
    port = cast("RootFolders", bench.workspace.gate.in_force().services.ports.roots)
    changed = "somebody else changed this meanwhile; make the call again"
    linked = "the file has a second name (hard link), perhaps outside the root"
    full = "the folder `shared/dir` is not empty: with `recursive` it goes with everything in it"
    for change, code, words in (
        (port.write(path, "two", None), "not-granted", "writing was not granted"),
        (port.write(path, "two", Action.DELETE), "not-granted", "writing was not granted"),
        (port.copy(path, f"{top}/b", None), "not-granted", "writing was not granted"),
        (port.edit(path, "one", "two", Action.APPEND), "not-granted", "changing the file was not granted"),
        (port.delete(path, recursive=True, granted=Action.OVERWRITE), "not-granted", "removing was not granted"),
        (port.write(path, "two", Action.APPEND), "conflict", changed),
        (port.write(f"{top}/h", "two", Action.OVERWRITE), "hard-link", linked),
        (port.read(f"{top}/h"), "hard-link", linked),
        (port.read(top), "is-a-folder", "this is a folder, not a file"),
        (port.write(top, "x", Action.OVERWRITE), "is-a-folder", "this is a folder, not a file"),
        (port.write(f"{top}/dir", "x", Action.APPEND), "is-a-folder", "this is a folder, not a file"),
        (port.list_folder(path, stopped=lambda: False), "not-a-folder", "this is a file, not a folder"),
        (port.delete(f"{top}/dir", recursive=False, granted=Action.DELETE), "not-empty", full),
        (
            port.delete(f"{top}/no", recursive=True, granted=Action.DELETE),
            "not-found",
            "there is no such file or folder",
        ),
        (
            port.delete(f"{top}/a/b", recursive=True, granted=Action.DELETE),
            "not-a-folder",
            "a part of the path is not a folder",
        ),
        (port.search(f"{top}/no", len, hits=1, stopped=lambda: False), "not-found", "there is no such file or folder"),
        (port.read(f"{top}/a\0"), "not-available", "this path is not available"),
        (port.read(f"{top}//a"), "not-available", "this path is not available"),
        (port.read(f"{top}/./a"), "not-available", "this path is not available"),
    ):
        with pytest.raises(ToolFailure) as told:
            await change
        assert (told.value.code, str(told.value)) == (code, words)
    top_stays = "this is the top folder of a root, which is never removed"
    with pytest.raises(ToolFailure, match=top_stays):
        await port.delete(top, recursive=True, granted=Action.DELETE)
    assert names(bench.folder / "shared") == ["a", "dir", "h"]
    assert bench.text("shared/a") == "one"


async def test_what_stands_at_a_place_is_told_for_whoever_is_asked(
    bench: RootBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("shared/dir/a", "one")
    (bench.folder / "shared/dir/sub").mkdir()
    port = cast("RootFolders", bench.workspace.gate.in_force().services.ports.roots)
    sha, when = hashlib.sha256(b"one").hexdigest(), path.stat().st_mtime_ns
    assert port.note_of(str(path)) == f"3 bytes, sha256:{sha}"
    assert port.note_of(f"{path}x") is None
    assert port.note_of(f"{path}/x") == "a part of the path is not a folder"
    rows = [f"- shared/dir/a (3 bytes, changed {when})", "- shared/dir/sub (folder)"]
    head = f"folder with 2 files and folders, sha256:{hashlib.sha256(chr(10).join(rows).encode()).hexdigest()}"
    assert port.note_of(str(path.parent)) == "\n".join([head, *rows])
    odd = path.with_name(os.fsdecode(b"caf\xe9"))
    odd.touch()
    rows.insert(1, f"- shared/dir/{odd.name} (0 bytes, changed {odd.stat().st_mtime_ns})")
    told = hashlib.sha256("\n".join(rows).encode("utf-8", "replace")).hexdigest()
    head = f"folder with 3 files and folders, sha256:{told}"
    assert port.note_of(str(path.parent)) == "\n".join([head, *rows])
    monkeypatch.setattr(rootwalk, "_TOLD", 2)
    assert port.note_of(str(path.parent)) == "\n".join([head, *rows[:2], "and 1 more"])
    assert [port.stands(str(path) + more) for more in ("", "x", "/x")] == [True, False, True]
    done = await port.copy(str(path), f"{path}2", Action.APPEND)
    assert done == {
        "source_path": "shared/dir/a",
        "destination_path": "shared/dir/a2",
        "sha256": sha,
        "bytes": 3,
        "created": True,
    }
    assert await port.write(str(path), "zwei\n", Action.OVERWRITE) == {
        "path": "shared/dir/a",
        "bytes": 5,
        "created": False,
    }
    edited = await port.edit(str(path), "zwei", "drei\nvier", Action.OVERWRITE)
    assert edited == {"path": "shared/dir/a", "bytes": 10, "lines": 2}


async def test_folders_that_are_nested_too_deep_are_not_removed(bench: RootBench) -> None:
    for depth, code in ((rootwalk.MAX_DEPTH, "allowed"), (rootwalk.MAX_DEPTH + 1, "too-many")):
        bench.write("shared/dir/" + "d/" * (depth - 1) + "a", "")
        assert (await bench.call("file_delete", path="dir", recursive=True)).code == code


async def test_what_the_disk_refuses_to_remove_is_said(bench: RootBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("shared/dir/a", "")
    unlink = os.unlink

    def refuse(name: str, **more: Any) -> None:
        if name == "a":
            raise OSError(errno.EROFS, "x")
        unlink(name, **more)

    monkeypatch.setattr(os, "unlink", refuse)
    outcome = await bench.call("file_delete", path="dir", recursive=True)
    assert (outcome.code, "not all could be removed (Read-only file system)" in (outcome.output or "")) == ("io", True)


def gone(folder: Path) -> None:
    (folder / "shared/dir/a").unlink()


def another(folder: Path) -> None:
    (folder / "shared/other").rename(folder / "shared/dir/a")


def into_a_source(folder: Path) -> None:
    (folder / "shared/dir/a").rename(folder / "docs/a")
    (folder / "shared/dir").rename(folder / "shared/old")
    (folder / "docs").rename(folder / "shared/dir")


@pytest.mark.parametrize("changed", [gone, another, into_a_source])
async def test_what_changed_since_it_was_looked_at_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: Callable[[Path], None]
) -> None:
    (tmp_path / "ws/docs").mkdir(parents=True)
    source = '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\ndefault_permission = "admin"\n'
    bench = opened(tmp_path, policy_text(more=source))
    bench.write("shared/dir/a", "")
    bench.write("shared/other", "")
    refuse_kept = rootwalk.Walk.refuse_kept

    def changed_meanwhile(walk: rootwalk.Walk) -> None:
        refuse_kept(walk)
        changed(bench.folder)

    monkeypatch.setattr(rootwalk.Walk, "refuse_kept", changed_meanwhile)
    port = cast("RootFolders", bench.workspace.gate.in_force().services.ports.roots)
    with pytest.raises(ToolFailure) as told:
        await port.delete(str(bench.folder / "shared/dir"), recursive=True, granted=Action.DELETE)
    words = "somebody else changed this meanwhile; make the call again"
    assert (told.value.code, str(told.value)) == ("conflict", words)
    assert names(bench.folder / "shared/dir") == ([] if changed is gone else ["a"])
    bench.workspace.close()


async def test_concurrent_edits_of_one_file_all_arrive(bench: RootBench) -> None:
    bench.write("shared/a", "".join(f"<{number}>" for number in range(20)))
    calls = [bench.call("file_edit", path="a", old_text=f"<{n}>", new_text=f"[{n}]") for n in range(20)]
    assert {outcome.status for outcome in await asyncio.gather(*calls)} == {Status.ALLOWED}
    assert bench.text("shared/a") == "".join(f"[{number}]" for number in range(20))


async def test_approval_shows_what_will_be_written_and_is_bound_to_it(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(agent=ASKING))
    bench.write("shared/a", "eins\nzwei\n")
    await bench.data("file_edit", path="a", old_text="zwei", new_text="drei")
    assert "-zwei\n+drei" in (bench.asked[-1].diff or "")
    await bench.data("file_write", path="b", content="neu\n")
    assert "new file" in (bench.asked[-1].diff or "")
    assert "+neu" in (bench.asked[-1].diff or "")
    await bench.data("file_delete", path="a")
    assert "removes shared/a: 10 bytes, sha256:" in (bench.asked[-1].diff or "")
    bench.write("shared/dir/c", "x")
    await bench.data("file_delete", path="dir", recursive=True)
    assert "- shared/dir/c (1 bytes" in (bench.asked[-1].diff or "")
    bench.workspace.close()


async def test_nobody_is_asked_about_what_cannot_be_done(tmp_path: Path) -> None:
    bench = opened(tmp_path, policy_text(agent=ASKING))
    bench.write("shared/a", "eins\n")
    none = await bench.call("file_edit", path="none", old_text="x", new_text="y")
    other = await bench.call("file_edit", path="a", old_text="zwei", new_text="drei")
    gone = await bench.call("file_delete", path="none")
    assert [outcome.code for outcome in (none, other, gone)] == ["not-found", "no-match", "not-found"]
    assert bench.asked == []
    bench.workspace.close()


CHANGES = (
    ("file_write", {"path": "a", "content": "neu"}),
    ("file_edit", {"path": "a", "old_text": "eins", "new_text": "zwei"}),
    ("file_delete", {"path": "a"}),
    ("file_delete", {"path": "dir", "recursive": True}),
)


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_change_of_the_file_between_question_and_answer_makes_the_answer_stale(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    bench = opened(tmp_path, policy_text(agent=ASKING))
    bench.write("shared/a", "eins\n")
    bench.write("shared/dir/b", "eins\n")

    async def approve(request: ApprovalRequest) -> Approval:
        assert request.diff
        bench.write("shared/a", "eins, anders\n")
        bench.write("shared/dir/b", "eins, anders\n")
        return Approval(True, "somebody slow")

    outcome = await bench.workspace.call("a", tool, arguments, approver=approve)
    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-stale")
    assert bench.text("shared/a") == "eins, anders\n"
    bench.workspace.close()


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_change_of_the_file_after_the_answer_was_taken_makes_it_stale_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    exclusive, late = BlockStore.exclusive, list[RootBench]()

    def changed_meanwhile(store: BlockStore) -> AbstractContextManager[None]:
        for bench in late:
            bench.write("shared/a", "eins, anders\n")
            bench.write("shared/dir/b", "eins, anders\n")
        return exclusive(store)

    monkeypatch.setattr(BlockStore, "exclusive", changed_meanwhile)
    bench = opened(tmp_path, policy_text(agent=ASKING))
    bench.write("shared/a", "eins\n")
    bench.write("shared/dir/b", "eins\n")
    late.append(bench)
    outcome = await bench.call(tool, **arguments)
    assert (outcome.status, outcome.code) == (Status.FAILED, "approval-stale")
    assert len(bench.asked) == 1
    assert bench.text("shared/a") == bench.text("shared/dir/b") == "eins, anders\n"

    late.clear()
    await bench.data(tool, **({**arguments, "old_text": "anders"} if tool == "file_edit" else arguments))
    bench.workspace.close()


SOURCE = """
[[sources]]
id = "docs"
type = "file"
base_path = "shared/docs"
default_permission = "read_write"
permission_rules = [
  { pattern = "grow/**", permission = "append" },
  { pattern = "frozen/**", permission = "read_only" },
  { pattern = "secret/", permission = "none" },
  { pattern = "open/**", permission = "admin" },
  { pattern = "mine/keep.md", permission = "read_only" },
  { pattern = "mine/**", permission = "admin" },
]
"""


@pytest.fixture
def levelled(tmp_path: Path) -> RootBench:
    """A source over a part of ``shared``."""
    (tmp_path / "ws/shared/docs").mkdir(parents=True)
    bench = opened(tmp_path, policy_text(more=SOURCE))
    for name in ("a", "grow/a", "frozen/a", "secret/a", "open/a", "open/b", "mine/a", "mine/keep.md"):
        bench.write(f"shared/docs/{name}", "needle")
    return bench


async def test_level_of_a_source_over_the_same_files_holds_for_these_tools_too(levelled: RootBench) -> None:
    for tool, arguments, name, verdict in (
        ("file_write", {"content": "x"}, "a", Verdict.ALLOW),
        ("file_write", {"content": "x"}, "grow/new", Verdict.ALLOW),
        ("file_write", {"content": "x"}, "grow/a", Verdict.DENY),
        ("file_edit", {"old_text": "x", "new_text": "y"}, "grow/a", Verdict.DENY),
        ("file_write", {"content": "x"}, "frozen/new", Verdict.DENY),
        ("file_read", {}, "frozen/a", Verdict.ALLOW),
        ("file_read", {}, "secret/a", Verdict.DENY),
        ("file_search", {"query": "x"}, "secret", Verdict.DENY),
        ("file_delete", {}, "a", Verdict.ASK),
        ("file_delete", {}, "open/a", Verdict.ALLOW),
        ("file_delete", {}, "grow/a", Verdict.DENY),
    ):
        decision = levelled.decide(tool, path=f"shared/docs/{name}", **arguments)
        assert decision.verdict is verdict, (tool, name, decision.reason)
    levelled.workspace.close()


async def test_place_without_a_level_is_neither_listed_nor_searched(levelled: RootBench) -> None:
    entries = (await levelled.data("file_list", path="docs"))["entries"]
    assert entries == ["a", "frozen/", "grow/", "mine/", "open/"]
    hits = (await levelled.data("file_search", query="needle"))["hits"]
    assert len(hits) == 7
    assert not [hit for hit in hits if "secret" in hit]
    levelled.workspace.close()


async def test_folder_goes_only_if_everything_in_it_may(levelled: RootBench) -> None:
    assert await levelled.code("file_delete", path="docs/mine", recursive=True) == "not-granted"
    assert names(levelled.folder / "shared/docs/mine") == ["a", "keep.md"]
    assert (await levelled.data("file_delete", path="docs/open", recursive=True))["removed"] == 3
    levelled.workspace.close()


async def test_file_that_came_meanwhile_is_not_overwritten_by_a_call_that_may_only_append(levelled: RootBench) -> None:
    roots = levelled.workspace.gate.in_force().services.ports.roots
    assert roots is not None
    path = str(levelled.folder / "shared/docs/grow/a")
    with pytest.raises(ToolFailure) as caught:
        await roots.write(path, "x", Action.APPEND)
    assert caught.value.code == "conflict"
    with pytest.raises(ToolFailure):
        await roots.write(path, "x", None)
    assert levelled.text("shared/docs/grow/a") == "needle"
    levelled.workspace.close()


async def test_level_is_asked_again_at_the_moment_of_acting(levelled: RootBench) -> None:
    roots = levelled.workspace.gate.in_force().services.ports.roots
    assert roots is not None
    docs = str(levelled.folder / "shared/docs")
    for refused in (
        roots.write(f"{docs}/grow/a", "x", Action.OVERWRITE, approved=True),
        roots.write(f"{docs}/frozen/new", "x", Action.OVERWRITE, approved=True),
        roots.edit(f"{docs}/frozen/a", "needle", "x", Action.OVERWRITE, approved=True),
        roots.delete(f"{docs}/frozen/a", recursive=False, granted=Action.DELETE, approved=True),
        roots.delete(f"{docs}/frozen", recursive=True, granted=Action.DELETE, approved=True),
        roots.delete(f"{docs}/a", recursive=False, granted=Action.DELETE),
    ):
        with pytest.raises(ToolFailure) as caught:
            await refused
        assert caught.value.code in {"not-permitted", "not-granted"}
    for name in ("a", "grow/a", "frozen/a"):
        assert levelled.text(f"shared/docs/{name}") == "needle"
    assert not (levelled.folder / "shared/docs/frozen/new").exists()
    await roots.delete(f"{docs}/a", recursive=False, granted=Action.DELETE, approved=True)
    levelled.workspace.close()


async def test_capability_is_needed_and_its_prefixes_hold(tmp_path: Path) -> None:
    limited = 'capabilities = [{ FsRead = { prefixes = ["shared"] } }, { FsWrite = { prefixes = ["shared/out"] } }]\n'
    bench = opened(tmp_path, policy_text(capabilities=limited))
    bench.write("shared/a", "x")
    assert bench.decide("file_read", path="a").verdict is Verdict.ALLOW
    assert bench.decide("file_write", path="out/a", content="x").verdict is Verdict.ALLOW
    for tool, arguments in (
        ("file_read", {"path": "tmp/a"}),
        ("file_write", {"path": "a", "content": "x"}),
        ("file_edit", {"path": "tmp/a", "old_text": "x", "new_text": "y"}),
        ("file_delete", {"path": "a"}),
        ("vault_copyto", {"source_path": "vault/a", "destination_path": "shared/out/a"}),
    ):
        decision = bench.decide(tool, **arguments)
        assert (decision.stage, decision.code) == ("capability", "path-not-granted"), tool
    bench.workspace.close()


def test_without_the_kind_the_tools_are_hidden(tmp_path: Path) -> None:
    readers = 'capabilities = [{ FsRead = { prefixes = ["."] } }]\n'
    bench = opened(tmp_path, policy_text(capabilities=readers))
    shown = {tool["name"] for tool in bench.workspace.view("a").tools("mcp")}
    assert shown == {"file_read", "file_search", "file_list", "read_file"}
    assert bench.workspace.selfcheck().differences == ()
    bench.workspace.close()


def test_conditions_see_the_path_with_its_root_in_front(tmp_path: Path) -> None:
    rule = """
[[policy.rules]]
name = "drafts only"
effect = "deny"
tools = ["file_write"]
when = { properties = { path = { not = { pattern = "^shared/drafts/" } } } }
"""
    bench = opened(tmp_path, policy_text(capabilities=EVERYTHING, more=rule))
    assert bench.decide("file_write", path="/shared/drafts/../drafts/a", content="x").verdict is Verdict.ALLOW
    assert bench.decide("file_write", path="drafts/a", content="x").verdict is Verdict.ALLOW
    real = str(bench.folder / "shared/drafts/a")
    assert bench.decide("file_write", path=real, content="x").verdict is Verdict.ALLOW
    denied = bench.decide("file_write", path="shared/drafts/../a", content="x")
    assert (denied.verdict, denied.stage) == (Verdict.DENY, "policy")
    bench.workspace.close()


MATRIX = (
    ("file_read", {"path": "docs/a"}, Action.READ),
    ("read_file", {"path": "docs/a"}, Action.READ),
    ("file_list", {"path": "docs"}, Action.READ),
    ("file_search", {"path": "docs", "query": "eins"}, Action.READ),
    ("file_write", {"path": "docs/new", "content": "x"}, Action.APPEND),
    ("vault_copyto", {"source_path": "vault/s", "destination_path": "shared/docs/new"}, Action.APPEND),
    ("file_write", {"path": "docs/a", "content": "x"}, Action.OVERWRITE),
    ("file_edit", {"path": "docs/a", "old_text": "eins", "new_text": "x"}, Action.OVERWRITE),
    ("vault_copyto", {"source_path": "vault/s", "destination_path": "shared/docs/a"}, Action.OVERWRITE),
    ("file_delete", {"path": "docs/a"}, Action.DELETE),
)


@pytest.mark.parametrize("level", list(Permission))
async def test_every_operation_does_at_every_level_what_the_table_says(tmp_path: Path, level: Permission) -> None:
    (tmp_path / "ws/shared/docs").mkdir(parents=True)
    source = f'[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "shared/docs"\ndefault_permission = "{level}"\n'
    bench = opened(tmp_path, policy_text(more=source))
    bench.write("vault/s", "x")
    for tool, arguments, action in MATRIX:
        bench.write("shared/docs/a", "eins")
        (bench.folder / "shared/docs/new").unlink(missing_ok=True)
        wanted, asked = verdict_for(level, action), len(bench.asked)
        assert bench.decide(tool, **arguments).verdict is wanted, (tool, action)
        outcome = await bench.call(tool, **arguments)
        assert outcome.status is (Status.DENIED if wanted is Verdict.DENY else Status.ALLOWED), (tool, outcome.output)
        assert len(bench.asked) - asked == (wanted is Verdict.ASK)
        untouched = bench.text("shared/docs/a") == "eins" if (bench.folder / "shared/docs/a").exists() else False
        assert untouched == (wanted is Verdict.DENY or action in {Action.READ, Action.APPEND}), tool
    bench.workspace.close()


async def test_write_beside_a_loaded_block_is_a_conflict_for_the_block_and_not_lost(tmp_path: Path) -> None:
    (tmp_path / "ws/shared/docs").mkdir(parents=True)
    text = policy_text(more=SOURCE).replace('tools = ["', 'tools = ["file", "')
    bench = opened(tmp_path, text)
    bench.write("shared/docs/a", "eins")
    assert (await bench.call("file", op="append", path="a", content=" block")).status is Status.ALLOWED
    await bench.data("file_write", path="docs/a", content="aussen")
    assert await bench.code("file", op="save", path="a") == "conflict"
    assert bench.text("shared/docs/a") == "aussen"
    bench.workspace.close()
