import asyncio
import errno
import os
import random
import string
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.builtins import file_tool
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.basefolder import BaseFolder, failures
from gatewright.sources.filetext import decode_text, encode_text, line_count, with_change, with_lines
from gatewright.tools.context import Ports, ToolExecutionContext
from tests.engine.sources.bench import OPEN, Bench, make_bench, open_now, source_of

CONFLICT = "file modified externally, use file load to refresh"


async def test_read_gives_the_disk_until_there_is_a_block(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    found = await bench.manager.read(at)
    assert (found.content, found.origin, found.unsaved) == ("one\n", "disk", False)
    await bench.manager.append(at, "two\n")
    found = await bench.manager.read(at)
    assert (found.content, found.origin, found.unsaved) == ("one\ntwo\n", "block", True)
    assert (bench.folder / "a.md").read_text() == "one\n"


async def test_save_writes_the_block_and_keeps_the_mode(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    path.chmod(0o640)
    at = bench.at("a.md")
    await bench.manager.append(at, "two\n")
    told = await bench.manager.save(at, Action.APPEND)
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert told == {"label": bench.manager.label_of(at), "size": 8, "lines": 2, "unsaved": False}
    assert [entry.name for entry in bench.folder.iterdir() if entry.name.endswith(".tmp")] == []


async def test_save_refuses_when_the_disk_changed_since_the_load(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "two\n")
    path.write_text("other\n")
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.save(at, Action.OVERWRITE)
    assert str(caught.value) == CONFLICT
    assert caught.value.code == "conflict"
    assert path.read_text() == "other\n"
    assert (await bench.manager.read(at)).content == "one\ntwo\n", "the edits are not lost"


async def test_save_writes_a_file_that_was_deleted_since_only_when_somebody_was_asked(bench: Bench) -> None:
    path = bench.write("sub/a.md", "one\n")
    at = bench.at("sub/a.md")
    await bench.manager.append(at, "two\n")
    path.unlink()
    path.parent.rmdir()
    assessed = bench.manager.assess_save(at)
    assert (assessed.action, "deleted" in (assessed.ask or ""), "+two" in (assessed.change() or "")) == (
        Action.APPEND,
        True,
        True,
    )
    with pytest.raises(ToolFailure, match="nobody was asked") as refused:
        await bench.manager.save(at, Action.APPEND)
    assert (refused.value.code, path.exists()) == ("not-granted", False)
    await bench.manager.save(at, Action.APPEND, asked=True)
    assert path.read_text() == "one\ntwo\n"
    assert not (await bench.manager.read(at)).unsaved


@pytest.mark.parametrize("edited", [True, False])
async def test_load_of_a_file_that_was_deleted_since_says_what_is_left_and_asks_nothing(
    bench: Bench, edited: bool
) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    if edited:
        await bench.manager.append(at, "two\n")
    path.unlink()
    for op, assess in (
        (bench.manager.load, bench.manager.assess_load),
        (bench.manager.reload, bench.manager.assess_reload),
    ):
        with pytest.raises(ToolFailure, match="only its block is left"):
            assess(at).change()
        with pytest.raises(ToolFailure, match="only its block is left"):
            await op(at, asked=True)
    assert (await bench.manager.read(at)).content == ("one\ntwo\n" if edited else "one\n")


async def test_save_goes_on_when_the_disk_has_the_block_s_text_already(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "two\n")
    path.write_text("one\ntwo\n")
    await bench.manager.save(at, Action.APPEND)
    assert not (await bench.manager.read(at)).unsaved


async def test_save_that_changes_the_file_needs_more_than_append(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.replace(at, "one", "1")
    assert bench.manager.assess_save(at).action is Action.OVERWRITE
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.save(at, Action.APPEND)
    assert caught.value.code == "not-granted"
    with pytest.raises(ToolFailure):
        await bench.manager.save(at, Action.READ)
    assert path.read_text() == "one\n"


async def test_assess_save_tells_the_action_and_the_diff(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    assert bench.manager.assess_save(at).action is Action.OVERWRITE
    with pytest.raises(ToolFailure, match="no block"):
        bench.manager.assess_save(at).change()
    await bench.manager.append(at, "two")
    assessed = bench.manager.assess_save(at)
    assert assessed.action is Action.APPEND
    assert assessed.diff is not None
    assert assessed.diff.startswith("--- a.md\n+++ a.md sha256:")
    assert assessed.diff.endswith("@@ -1,1 +1,2 @@\n one\n+two\n\\ No newline at end of file\n")


async def test_load_asks_only_when_edits_would_be_lost(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    assert bench.manager.assess_load(at).ask is None
    await bench.manager.load(at)
    assert bench.manager.assess_load(at).ask is None
    await bench.manager.append(at, "x")
    assessed = bench.manager.assess_load(at)
    assert assessed.action is Action.READ
    assert assessed.ask is not None
    with pytest.raises(ToolFailure, match="would be lost"):
        await bench.manager.load(at)
    assert (await bench.manager.read(at)).content == "one\nx"
    await bench.manager.load(at, asked=True)
    assert (await bench.manager.read(at)).content == "one\n"


@pytest.mark.parametrize("op", ["load", "reload"])
async def test_edits_that_come_between_the_decision_and_the_act_are_not_thrown_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    bench.write("a.md", "one\n")
    at, source = bench.at("a.md"), bench.manager.get("docs")
    assert source is not None
    await bench.manager.load(at)
    take = getattr(bench.manager, op)
    exclusive = bench.blocks.exclusive

    def edited_meanwhile() -> AbstractContextManager[None]:
        monkeypatch.setattr(bench.blocks, "exclusive", exclusive)
        source.append("a.md", "mine\n")
        return exclusive()

    assert bench.manager.assess_load(at).ask is None
    monkeypatch.setattr(bench.blocks, "exclusive", edited_meanwhile)
    with pytest.raises(ToolFailure, match="would be lost"):
        await take(at)
    shown = bench.manager.assess_load(at).change()
    monkeypatch.setattr(bench.blocks, "exclusive", edited_meanwhile)
    with pytest.raises(ToolFailure, match="since somebody agreed") as stale:
        await take(at, asked=lambda: bench.manager.assess_load(at).change() == shown)
    assert stale.value.code == "approval-stale"
    assert (await bench.manager.read(at)).content == "one\nmine\nmine\n"


async def test_replace_wants_exactly_one_place_and_says_how_many_there_are(bench: Bench) -> None:
    bench.write("a.md", "x y x\n")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match=r"0 places") as none:
        await bench.manager.replace(at, "z", "q")
    with pytest.raises(ToolFailure, match=r"2 places") as many:
        await bench.manager.replace(at, "x", "q")
    assert (none.value.code, many.value.code) == ("no-match", "many-matches")
    await bench.manager.replace(at, "y", "q")
    assert (await bench.manager.read(at)).content == "x q x\n"


async def test_crlf_files_stay_crlf_files(bench: Bench) -> None:
    path = bench.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    at = bench.at("a.txt")
    await bench.manager.append(at, "three\n")
    await bench.manager.replace(at, "one\ntwo\n", "1\n2\n")
    await bench.manager.replace(at, "\n2\n", "\n2\n")
    await bench.manager.save(at, Action.OVERWRITE)
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"


async def test_mixed_line_endings_are_left_as_they_are(bench: Bench) -> None:
    path = bench.write("a.txt", b"one\r\ntwo\n")
    at = bench.at("a.txt")
    await bench.manager.append(at, "three\n")
    await bench.manager.save(at, Action.APPEND)
    assert path.read_bytes() == b"one\r\ntwo\nthree\n"


async def test_create_makes_the_file_its_folders_and_its_block(bench: Bench) -> None:
    at = bench.at("new/deep/a.md")
    told = await bench.manager.create(at, "hello\n")
    assert (bench.folder / "new/deep/a.md").read_text() == "hello\n"
    assert isinstance(told, dict)
    assert told["unsaved"] is False
    assert (await bench.manager.read(at)).origin == "block"


async def test_block_with_edits_whose_file_is_gone_is_not_overwritten_and_can_still_be_deleted(bench: Bench) -> None:
    path, at = bench.write("a.md", "one\n"), bench.at("a.md")
    source = bench.manager.get("docs")
    assert source is not None
    await bench.manager.load(at)
    path.unlink()
    await bench.manager.create(at, "one\n")
    await bench.manager.append(at, "two\n")
    path.unlink()

    with pytest.raises(ToolFailure, match="edits that were not written") as refused:
        await bench.manager.create(at, "new")
    assert refused.value.code == "exists"
    assert "-two" in (source.text_gone("a.md") or "")
    assert source.delete("a.md") == {"label": bench.manager.label_of(at), "file": False, "block": True}
    with pytest.raises(ToolFailure, match="no such file") as gone:
        source.text_gone("a.md")
    assert gone.value.code == "not-found"
    with pytest.raises(ToolFailure, match="no such file"):
        source.delete("a.md")


@pytest.mark.skipif(not OPEN.is_dir(), reason="this system does not list what is open")
async def test_no_operation_leaves_anything_open(bench: Bench) -> None:
    async def work(name: str) -> None:
        at, source = bench.at(f"deep/er/{name}"), bench.manager.get("docs")
        assert source is not None
        await bench.manager.create(at, "one\n")
        await bench.manager.append(at, "two\n")
        await bench.manager.save(at, Action.APPEND)
        await bench.manager.read(at)
        await bench.manager.load(at)
        with pytest.raises(ToolFailure):
            await bench.manager.create(at, "again")
        bench.refused(f"deep/er/{name}/below")
        source.delete(f"deep/er/{name}")
        with pytest.raises(ToolFailure):
            source.delete(f"deep/no/{name}")

    await work("first")
    before = open_now()
    for number in range(3):
        await work(f"f{number}")
    assert not open_now() - before


async def test_create_never_overwrites(bench: Bench) -> None:
    path = bench.write("a.md", "old")
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.create(bench.at("a.md"), "new")
    assert caught.value.code == "exists"
    with pytest.raises(ToolFailure):
        await bench.manager.create(bench.at("."), "new")
    bench.write("folder/x", "")
    with pytest.raises(ToolFailure):
        await bench.manager.create(bench.at("folder"), "new")
    assert path.read_text() == "old"


async def test_delete_removes_file_and_block_but_no_folder(bench: Bench) -> None:
    path = bench.write("sub/a.md", "x")
    at = bench.at("sub/a.md")
    await bench.manager.load(at)
    await bench.manager.delete(at, approved=True)
    assert not path.exists()
    assert bench.blocks.labels() == ()
    with pytest.raises(ToolFailure, match="no such file"):
        await bench.manager.delete(at, approved=True)
    for folder in ("sub", "."):
        with pytest.raises(ToolFailure) as caught:
            await bench.manager.delete(bench.at(folder), approved=True)
        assert caught.value.code == "is-a-folder"
    assert path.parent.is_dir()


@pytest.mark.parametrize("content", [b"a\0b", b"\xff\xfe\x00a", b"caf\xe9"])
async def test_what_is_not_utf8_text_is_refused(bench: Bench, content: bytes) -> None:
    path = bench.write("x.bin", content)
    for call in (bench.manager.read, bench.manager.load):
        with pytest.raises(ToolFailure, match="not a text file"):
            await call(bench.at("x.bin"))
    with pytest.raises(ToolFailure, match="not a text file"):
        await bench.manager.append(bench.at("x.bin"), "x")
    assert path.read_bytes() == content


async def test_the_size_limit_holds_for_reading_and_writing(tmp_path: Path, bench: Bench) -> None:
    bench.update(source_of(max_file_bytes=10))
    bench.write("big", "x" * 11)
    bench.write("small", "x" * 8)
    bench.write("tail", "some, end")
    bench.write("full", "x" * 10)
    assert (await bench.manager.read(bench.at("full"))).content == "x" * 10
    with pytest.raises(ToolFailure, match="limit of 10 bytes"):
        await bench.manager.read(bench.at("big"))
    with pytest.raises(ToolFailure, match="11 bytes"):
        await bench.manager.append(bench.at("small"), "yyy")
    with pytest.raises(ToolFailure):
        await bench.manager.replace(bench.at("small"), "xxxxxxxx", "y" * 11)
    with pytest.raises(ToolFailure, match="12 bytes"):
        await bench.manager.replace(bench.at("tail"), "end", "longer")
    assert (await bench.manager.read(bench.at("tail"))).content == "some, end"
    with pytest.raises(ToolFailure):
        await bench.manager.create(bench.at("new"), "é" * 6)
    assert not (bench.folder / "new").exists()


@pytest.mark.parametrize("content", ["a\0b", "a\ud800"])
async def test_a_text_that_would_be_no_text_file_is_not_taken(bench: Bench, content: str) -> None:
    bench.write("a.md", "x")
    with pytest.raises(ToolFailure):
        await bench.manager.append(bench.at("a.md"), content)
    with pytest.raises(ToolFailure):
        await bench.manager.create(bench.at("b.md"), content)
    assert not (bench.folder / "b.md").exists()


async def test_a_folder_lists_what_may_be_read_with_levels(bench: Bench) -> None:
    rules = (("*.key", Permission.NONE), ("sub/", Permission.READ_ONLY))
    bench.update(source_of(rules=rules))
    bench.write("b.md", "four")
    bench.write("a.key", "x")
    bench.write("sub/c.md", "x")
    (bench.folder / "link").symlink_to("b.md")
    os.mkfifo(bench.folder / "pipe")
    (bench.folder / os.fsdecode(b"bad\xff")).write_text("x")
    await bench.manager.load(bench.at("b.md"))
    assert await bench.manager.list_folder(bench.at(".")) == [
        {"name": "sub", "kind": "folder", "permission": "read_only", "loaded": False},
        {"name": "b.md", "kind": "file", "size": 4, "permission": "read_write", "loaded": True},
    ]
    assert await bench.manager.list_folder(bench.at("."), 1) == [
        {"name": "sub", "kind": "folder", "permission": "read_only", "loaded": False},
        {"kind": "more", "left_out": 1},
    ]
    assert len(await bench.manager.list_folder(bench.at("."), 2)) == 2
    assert await bench.manager.list_folder(bench.at("sub")) == [
        {"name": "c.md", "kind": "file", "size": 1, "permission": "read_only", "loaded": False}
    ]
    with pytest.raises(ToolFailure, match="not a folder"):
        await bench.manager.list_folder(bench.at("b.md"))


async def test_block_info_needs_a_block(bench: Bench) -> None:
    bench.write("a.md", "one\ntwo")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.block_info(at)
    assert caught.value.code == "no-block"
    await bench.manager.load(at)
    assert await bench.manager.block_info(at) == {
        "label": bench.manager.label_of(at),
        "size": 7,
        "lines": 2,
        "unsaved": False,
    }


async def test_blocks_outlive_the_program(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    await bench.manager.append(bench.at("a.md"), "two\n")
    bench.blocks.close()
    again = make_bench(bench.folder, bench.blocks)
    again.start(source_of(), bench.folder)
    found = await again.manager.read(again.at("a.md"))
    assert (found.content, found.unsaved) == ("one\ntwo\n", True)


async def test_a_damaged_block_is_mended_by_loading(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    bench.blocks.put(bench.manager.label_of(at), source_id="docs", snapshot=b"junk", disk_digest="x")
    assert bench.manager.assess_load(at).ask is not None
    await bench.manager.load(at, asked=True)
    assert (await bench.manager.read(at)).content == "one\n"


async def test_a_write_protected_file_is_not_replaced(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("a.md", "one\n")
    path.chmod(0o444)
    at = bench.at("a.md")
    await bench.manager.append(at, "two\n")

    def refuse(path: str, mode: int, *, dir_fd: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)  # root may write everything
    with pytest.raises(ToolFailure, match="write-protected"):
        await bench.manager.save(at, Action.APPEND)
    assert path.read_text() == "one\n"


async def test_edits_of_one_file_at_once_are_all_kept(bench: Bench) -> None:
    bench.write("a.md", "")
    at = bench.at("a.md")
    await asyncio.gather(*(bench.manager.append(at, f"{number}\n") for number in range(40)))
    content = (await bench.manager.read(at)).content
    assert sorted(map(int, content.split())) == list(range(40))


async def test_the_diff_of_long_texts_stays_short(bench: Bench) -> None:
    bench.write("a.md", "".join(f"{n}\n" for n in range(15_000)))
    assessed = bench.manager.assess_text(bench.at("a.md"), "".join(f"{n * 7}\n" for n in range(15_000)))
    assert assessed.action is None
    assert assessed.diff is not None
    assert "diff cut" in assessed.diff
    assert len(assessed.diff) < 70_000


async def test_the_history_of_a_block_does_not_grow_without_bound(bench: Bench) -> None:
    chance = random.Random(3)
    bench.update(source_of(max_file_bytes=20_000))
    bench.write("a.md", "0")
    at, before = bench.at("a.md"), "0"
    for _ in range(60):
        after = "".join(chance.choices(string.ascii_letters, k=15_000))
        await bench.manager.replace(at, before, after)
        before = after
    stored = bench.blocks.get(bench.manager.label_of(at))
    assert stored is not None
    assert len(stored.snapshot) < 400_000
    assert (await bench.manager.read(at)).content == before


async def test_a_change_is_shown_where_it_stands_in_the_whole_text_and_in_its_line_ending(bench: Bench) -> None:
    bench.write("a.md", "one\r\ntwo\r\nthree\r\n")
    at, tool = bench.at("a.md"), file_tool()
    context = ToolExecutionContext("a", "s", source_ids=("docs",), ports=Ports(bench.manager))

    shown = tool.assess("replace", {"path": "a.md", "old": "two", "new": "2\n2b"}, context).change()
    added = tool.assess("append", {"path": "a.md", "content": "four\n"}, context).change()
    with pytest.raises(ToolFailure, match="0 places"):
        tool.assess("replace", {"path": "a.md", "old": "nine", "new": "9"}, context).change()

    assert (shown or "").endswith("@@ -1,3 +1,4 @@\n one\r\n-two\r\n+2\r\n+2b\r\n three\r\n")
    assert (added or "").endswith(" three\r\n+four\r\n")
    await bench.manager.replace(at, "two", "2\n2b")
    await bench.manager.append(at, "four\n")
    written = (await bench.manager.read(at)).content
    assert written == "one\r\n2\r\n2b\r\nthree\r\nfour\r\n"


async def test_the_text_of_what_is_no_text_cannot_be_had(bench: Bench) -> None:
    bench.write("bin.dat", b"\0\1")
    for name in ("bin.dat", "missing.md"):
        with pytest.raises(ToolFailure):
            bench.manager.text_of(bench.at(name))
    bench.write("a.md", "one\n")
    await bench.manager.append(bench.at("a.md"), "two\n")
    assert bench.manager.text_of(bench.at("a.md")) == "one\ntwo\n"
    bench.blocks.put(bench.manager.label_of(bench.at("a.md")), source_id="docs", snapshot=b"junk", disk_digest="x")
    assert bench.manager.text_of(bench.at("a.md")) is None


def test_a_text_of_more_than_four_million_characters_is_not_compared(bench: Bench) -> None:
    bench.update(source_of(max_file_bytes=5 * 1024 * 1024))
    for more, is_compared in ((0, True), (1, False)):
        bench.write("a.md", "x" * (4 * 1024 * 1024 + more))
        assert (bench.manager.text_of(bench.at("a.md")) is not None) is is_compared


@pytest.mark.parametrize(
    ("text", "line", "content", "wanted"),
    [
        ("", 1, "a", "a"),
        ("", 1, "", ""),
        ("1\n2\n", 1, "a", "a\n1\n2\n"),
        ("1\n2\n", 2, "a\n", "1\na\n2\n"),
        ("1\n2\n", 3, "a", "1\n2\na"),
        ("1\n2", 2, "a", "1\na\n2"),
        ("1\n2", 3, "a", "1\n2\na"),
        ("1\r\n2\r\n", 2, "a\nb", "1\r\na\r\nb\r\n2\r\n"),
        ("1\r\n2\n", 2, "a\nb", "1\r\na\nb\n2\n"),
        ("\ufeff1\n", 1, "a", "\ufeffa\n1\n"),
        ("1\n", 1, "", "1\n"),
    ],
)
def test_lines_are_put_before_a_line_with_the_ends_of_the_text(text: str, line: int, content: str, wanted: str) -> None:
    assert with_lines(text, line, content) == wanted


@pytest.mark.parametrize(("text", "line", "last"), [("1\n2\n", 0, 2), ("1\n2\n", 4, 2), ("1\n2", 4, 2), ("", 2, 0)])
def test_lines_beyond_the_end_are_refused_with_the_last_one(text: str, line: int, last: int) -> None:
    assert line_count(text) == last
    with pytest.raises(ToolFailure, match=f"no line {line}: .* the last is {last}") as refused:
        with_lines(text, line, "a")
    assert refused.value.code == "no-line"


def test_change_of_a_text_needs_exactly_one_place() -> None:
    assert with_change("one two one", "two", "2") == "one 2 one"
    assert with_change("a\r\nb\r\nc\r\n", "a\nb", "x\ny") == "x\r\ny\r\nc\r\n"
    assert with_change("a\r\nb\r\n", "\nb", "") == "a\r\n"
    assert with_change("a\r\nb\n", "b\n", "x\ny\n") == "a\r\nx\ny\n"
    for old, code, words in (
        ("", "empty-match", "empty"),
        ("x", "no-match", "0 places"),
        ("aa", "many-matches", "2 places"),
    ):
        with pytest.raises(ToolFailure, match=words) as refused:
            with_change("aaa", old, "b")
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\0b", "byte 2 is NUL, so it is binary data"),
        (b"\0", "byte 1 is NUL"),
        (b"ab\xe9", r"byte 3 \(0xe9\) is not UTF-8, perhaps Latin-1"),
        (b"\x89PNG\0", "it begins like a PNG picture"),
        (b"\xff\xd8\xff", "it begins like a JPEG picture"),
    ],
)
def test_what_is_no_text_is_refused_with_what_it_looks_like(content: bytes, words: str) -> None:
    with pytest.raises(ToolFailure, match=words) as refused:
        decode_text(content)
    assert refused.value.code == "not-text"


def test_text_is_written_up_to_the_limit_in_bytes() -> None:
    assert encode_text("é", 2) == b"\xc3\xa9"
    for text, limit, code in (("é", 1, "too-large"), ("a\0", 9, "not-text"), ("\ud800", 9, "not-text")):
        with pytest.raises(ToolFailure) as refused:
            encode_text(text, limit)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (errno.EACCES, "no-access", "refuses it (permission denied)"),
        (errno.EPERM, "no-access", "refuses it (operation not permitted)"),
        (errno.EROFS, "no-access", "refuses it (write-protected)"),
        (errno.EEXIST, "exists", "there is something"),
        (errno.ENOENT, "not-found", "no such file or folder"),
        (errno.ELOOP, "symlink", "symbolic link"),
        (errno.ENOTDIR, "not-a-folder", "is not a folder"),
        (errno.EISDIR, "is-a-folder", "this is a folder"),
        (errno.ENOTEMPTY, "not-empty", "the folder is not empty"),
        (errno.ENXIO, "special-file", "device, pipe or socket"),
        (errno.EAGAIN, "special-file", "device, pipe or socket"),
        (errno.ENAMETOOLONG, "path-too-long", "too long"),
        (errno.ENOSPC, "io", "failed (no space left on device)"),
        (None, "io", "failed (unknown error)"),
    ],
)
def test_each_error_of_the_file_system_has_a_code_and_words_without_the_path(
    number: int | None, code: str, said: str
) -> None:
    with pytest.raises(ToolFailure) as told, failures():
        raise OSError(number, "told", "/secret/path") if number is not None else OSError("/secret/path")
    assert told.value.code == code
    assert said in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (errno.ENOENT, "source-missing", "is missing"),
        (errno.ENOTDIR, "source-replaced", "another folder stands in the place"),
        (errno.EACCES, "no-access", "(no permission)"),
        (errno.EIO, "io", "(input/output error)"),
    ],
)
def test_a_base_folder_that_cannot_be_opened_says_why(tmp_path: Path, number: int, code: str, said: str) -> None:
    folder = BaseFolder(str(tmp_path))

    def refused(path: str, *_: object, **__: object) -> int:
        raise OSError(number, "told", path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refused)
        fault = folder.fault()
    assert fault is not None
    assert (fault.code, said in str(fault), str(tmp_path) in str(fault)) == (code, True, False)
