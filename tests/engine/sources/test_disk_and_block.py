"""Block and file between two changes: states, differences, and ways back into step."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.blocks.block import TextBlock
from gatewright.blocks.difftext import diff_text
from gatewright.memory.block_store import BlockStore
from gatewright.policy.target import Located
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.filetext import with_lines
from gatewright.sources.held import Decision, FileState, HeldBlocks, Outcome, Sides, Strategy, decide
from gatewright.sources.manager import SourceManager
from tests.engine.sources.bench import Bench, make_bench, source_of

BASE = "1\n2\n3\n4\n5\n"


async def state(bench: Bench, at: Located) -> JsonValue:
    row = await bench.manager.status(at)
    assert isinstance(row, dict)
    return row["state"]


async def text(bench: Bench, at: Located) -> str:
    return (await bench.manager.read(at)).content


async def in_conflict(bench: Bench, mine: str = "five", other: str = "one\n2\n3\n4\n5\n") -> Located:
    """A block whose last line was changed, and a file whose first one was."""
    path = bench.write("a.md", BASE)
    at = bench.at("a.md")
    await bench.manager.replace(at, "5", mine)
    path.write_text(other)
    return at


# inserting and patching


async def test_lines_are_put_before_a_line(bench: Bench) -> None:
    path = bench.write("a.md", "1\n2\n")
    at = bench.at("a.md")
    await bench.manager.insert(at, 1, "0")
    await bench.manager.insert(at, 3, "1.5\n1.6\n")
    await bench.manager.insert(at, 6, "3")
    assert await text(bench, at) == "0\n1\n1.5\n1.6\n2\n3"
    assert path.read_text() == "1\n2\n", "the disk waits for the writing"


async def test_lines_get_the_ending_of_the_file(bench: Bench) -> None:
    bench.write("a.md", b"1\r\n2")
    at = bench.at("a.md")
    await bench.manager.insert(at, 2, "x\ny")
    await bench.manager.insert(at, 5, "z")
    assert await text(bench, at) == "1\r\nx\r\ny\r\n2\r\nz"


@pytest.mark.parametrize("line", [0, -1, 4, 10**9])
async def test_a_line_that_is_not_there_is_named_and_nothing_is_touched(bench: Bench, line: int) -> None:
    bench.write("a.md", "1\n2\n")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match=r"no line -?[\d,]+: lines count from 1, and the last is 2") as caught:
        await bench.manager.insert(at, line, "x")
    assert caught.value.code == "no-line"
    assert await state(bench, at) == "not_loaded"


@given(st.text("ab\n\r", max_size=12), st.text("cd\n", min_size=1, max_size=6), st.integers(1, 20))
def test_inserting_keeps_every_line_whole(before: str, content: str, line: int) -> None:
    if line > before.count("\n") + (not before.endswith("\n") and bool(before)) + 1:
        return
    after = with_lines(before, line, content)
    got, had = after.replace("\r", "").split("\n"), before.replace("\r", "").split("\n")
    put = content.removesuffix("\n").split("\n")
    assert got[: line - 1] == had[: line - 1]
    assert got[line - 1 : line - 1 + len(put)] == put


async def test_a_patch_changes_what_it_says(bench: Bench) -> None:
    bench.write("a.md", BASE)
    at = bench.at("a.md")
    await bench.manager.patch(at, "@@ -2,3 +2,4 @@\n 2\n-3\n+three\n+and\n 4\n")
    assert await text(bench, at) == "1\n2\nthree\nand\n4\n5\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("@@ -2,2 +2,2 @@\n 2\n-x\n+y\n", "line 3 of the text"),
        ("@@ -2,2 +2,2 @@\n x\n-3\n+y\n", "line 2 of the text"),
        ("@@ -1 +1 @@\n-1\n+one\n@@ -5 +5 @@\n-6\n+six\n", "line 5 of the text"),
        ("nonsense", "line 1"),
        ("@@ -1,3 +1 @@\n-1\n", "line 1 of the patch"),
    ],
)
async def test_a_patch_that_does_not_fit_names_the_line_and_changes_nothing(
    bench: Bench, patch: str, words: str
) -> None:
    bench.write("a.md", BASE)
    at = bench.at("a.md")
    await bench.manager.append(at, "6 more\n")
    with pytest.raises(ToolFailure, match=words):
        await bench.manager.patch(at, patch)
    assert await text(bench, at) == BASE + "6 more\n"


async def test_the_size_limit_holds_for_inserting_and_patching(bench: Bench) -> None:
    bench.update(source_of(max_file_bytes=12))
    bench.write("a.md", "12345678\n")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match="limit of 12"):
        await bench.manager.insert(at, 1, "xxxx")
    with pytest.raises(ToolFailure, match="limit of 12"):
        await bench.manager.patch(at, "@@ -1 +1,2 @@\n 12345678\n+xxxx\n")
    assert await state(bench, at) == "not_loaded"


# states


async def test_the_state_follows_the_content_whatever_the_times_say(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    assert await bench.manager.status(at) == {"path": "a.md", "state": "not_loaded", "unsaved": False}
    await bench.manager.load(at)
    assert await bench.manager.status(at) == {"path": "a.md", "state": "synced", "unsaved": False}
    await bench.manager.append(at, "two\n")
    assert await state(bench, at) == "block_modified"
    path.write_text("other\n")
    assert await state(bench, at) == "conflict"
    path.write_text("one\ntwo\n")
    row = {"path": "a.md", "state": "synced", "unsaved": False}
    assert await bench.manager.status(at) == row, "the disk has the block's text"
    path.write_text("one\n")
    assert await state(bench, at) == "block_modified"
    path.unlink()
    assert await state(bench, at) == "disk_deleted"


async def test_a_file_changed_only_on_disk_is_disk_modified(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    path.write_text("two\n")
    assert await state(bench, at) == "disk_modified"
    path.write_bytes(b"\x89PNG\0")
    row = await bench.manager.status(at)
    assert isinstance(row, dict)
    assert row["state"] == "disk_modified"
    assert "PNG picture" in str(row["problem"])


async def test_the_states_of_a_folder_leave_out_what_has_no_level(bench: Bench) -> None:
    for name in ("b.md", "sub/a.md", "sub/c.key"):
        bench.write(name, "x\n")
        await bench.manager.load(bench.at(name))
    await bench.manager.append(bench.at("sub/a.md"), "y\n")
    bench.update(source_of(rules=(("*.key", Permission.NONE),)))
    rows = [
        {"path": "b.md", "state": "synced", "unsaved": False},
        {"path": "sub/a.md", "state": "block_modified", "unsaved": True},
    ]
    assert await bench.manager.status(bench.at(".")) == rows
    assert await bench.manager.status(bench.at("sub")) == rows[1:]


async def test_there_is_no_state_of_what_is_not_there(bench: Bench) -> None:
    with pytest.raises(ToolFailure, match="no such file"):
        await bench.manager.status(bench.at("none.md"))


async def test_the_difference_is_what_writing_the_block_would_change(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match="no block"):
        await bench.manager.diff(at)
    await bench.manager.append(at, "two\n")
    found = await bench.manager.diff(at)
    assert isinstance(found, dict)
    assert str(found["diff"]).endswith("@@ -1,1 +1,2 @@\n one\n+two\n")
    path.write_text("one\ntwo\n")
    assert await bench.manager.diff(at) == {"path": "a.md", "state": "synced", "diff": ""}
    path.write_text("".join(f"{n}\n" for n in range(15_000)))
    found = await bench.manager.diff(at)
    assert isinstance(found, dict)
    assert len(str(found["diff"])) < 70_000


async def test_reloading_throws_edits_away_and_asks_before(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match="no block"):
        await bench.manager.reload(at)
    with pytest.raises(ToolFailure, match="no block"):
        bench.manager.assess_reload(at).change()
    await bench.manager.append(at, "two\n")
    assessed = bench.manager.assess_reload(at)
    assert (assessed.action, assessed.ask is not None) == (Action.READ, True)
    assert "-two" in (assessed.change() or "").splitlines()
    with pytest.raises(ToolFailure, match="would be lost") as refused:
        await bench.manager.reload(at)
    assert refused.value.code == "not-granted"
    assert await text(bench, at) == "one\ntwo\n"
    await bench.manager.reload(at, asked=True)
    assert await text(bench, at) == "one\n"
    assert bench.manager.assess_reload(at).ask is None


# into step again


async def test_merging_keeps_the_changes_of_both_and_they_can_be_written(bench: Bench) -> None:
    at = await in_conflict(bench)
    with pytest.raises(ToolFailure, match="file modified externally, use file load to refresh"):
        await bench.manager.save(at, Action.OVERWRITE)
    told = {"path": "a.md", "state": "conflict", "strategy": "merge", "outcome": "merged"}
    assert await bench.manager.reconcile(at, "merge") == told
    assert await text(bench, at) == "one\n2\n3\n4\nfive\n"
    assert await state(bench, at) == "block_modified"
    await bench.manager.save(at, Action.OVERWRITE)
    assert (bench.folder / "a.md").read_text() == "one\n2\n3\n4\nfive\n"
    assert await state(bench, at) == "synced"


async def test_what_cannot_be_merged_is_told_with_its_place_and_nothing_is_lost(bench: Bench) -> None:
    at = await in_conflict(bench, other="1\n2\n3\n4\nother\n")
    assert await bench.manager.reconcile(at, "merge") == {
        "path": "a.md",
        "state": "conflict",
        "strategy": "merge",
        "outcome": "conflict",
        "why": "both changed the same places",
        "conflicts": [
            {"base_line": 5, "block_line": 5, "disk_line": 5, "base": "5\n", "block": "five\n", "disk": "other\n"}
        ],
        "conflict_count": 1,
        "block_diff": diff_text("a.md", BASE, "1\n2\n3\n4\nfive\n"),
        "disk_diff": diff_text("a.md", BASE, "1\n2\n3\n4\nother\n"),
    }
    assert await text(bench, at) == "1\n2\n3\n4\nfive\n"
    assert (bench.folder / "a.md").read_text() == "1\n2\n3\n4\nother\n"
    assert await state(bench, at) == "conflict"


async def test_asking_tells_both_differences_and_does_nothing(bench: Bench) -> None:
    at = await in_conflict(bench)
    assert await bench.manager.reconcile(at, "ask") == {
        "path": "a.md",
        "state": "conflict",
        "strategy": "ask",
        "outcome": "conflict",
        "why": "nothing was done: whoever decides names a strategy",
        "conflicts": [],
        "conflict_count": 0,
        "block_diff": diff_text("a.md", BASE, "1\n2\n3\n4\nfive\n"),
        "disk_diff": diff_text("a.md", BASE, "one\n2\n3\n4\n5\n"),
    }
    assert await state(bench, at) == "conflict"


async def test_ours_keeps_the_block_so_that_it_may_be_written_over_the_file(bench: Bench) -> None:
    at = await in_conflict(bench)
    told = {"path": "a.md", "state": "conflict", "strategy": "ours", "outcome": "kept_block"}
    assert await bench.manager.reconcile(at, "ours") == told
    assert await state(bench, at) == "block_modified"
    assert bench.manager.assess_save(at).action is Action.OVERWRITE
    await bench.manager.save(at, Action.OVERWRITE)
    assert (bench.folder / "a.md").read_text() == "1\n2\n3\n4\nfive\n"


async def test_theirs_takes_the_file(bench: Bench) -> None:
    at = await in_conflict(bench)
    told = {"path": "a.md", "state": "conflict", "strategy": "theirs", "outcome": "took_disk"}
    assert await bench.manager.reconcile(at, "theirs") == told
    assert await text(bench, at) == "one\n2\n3\n4\n5\n"
    assert await state(bench, at) == "synced"


async def test_a_file_in_step_needs_nothing(bench: Bench) -> None:
    bench.write("a.md", BASE)
    at = bench.at("a.md")
    with pytest.raises(ToolFailure, match="no block"):
        await bench.manager.reconcile(at, "merge")
    await bench.manager.append(at, "6\n")
    for strategy in ("ours", "theirs", "merge", "ask"):
        told = {"path": "a.md", "state": "block_modified", "strategy": strategy, "outcome": "nothing"}
        assert await bench.manager.reconcile(at, strategy) == told
    assert await text(bench, at) == BASE + "6\n"
    with pytest.raises(ToolFailure) as refused:
        await bench.manager.reconcile(at, "b" * 41)
    words = f"`{'b' * 40}` is none of the strategies ours, theirs, merge, ask"
    assert (refused.value.code, str(refused.value)) == ("bad-argument", words)


async def test_a_removed_file_is_made_again_by_ours_and_its_block_goes_by_theirs(bench: Bench) -> None:
    at = await in_conflict(bench)
    (bench.folder / "a.md").unlink()
    assert await bench.manager.reconcile(at, "merge") == {
        "path": "a.md",
        "state": "disk_deleted",
        "strategy": "merge",
        "outcome": "conflict",
        "why": "the file is gone and its block holds edits",
        "conflicts": [],
        "conflict_count": 0,
        "block_diff": diff_text("a.md", BASE, "1\n2\n3\n4\nfive\n"),
        "disk_diff": diff_text("a.md", BASE, ""),
    }
    await bench.manager.reconcile(at, "ours")
    assert await state(bench, at) == "block_modified"
    assert bench.manager.assess_save(at).action is Action.APPEND
    with pytest.raises(ToolFailure):
        await bench.manager.save(at, Action.READ)
    await bench.manager.save(at, Action.APPEND)
    assert (bench.folder / "a.md").read_text() == "1\n2\n3\n4\nfive\n"
    (bench.folder / "a.md").unlink()
    told = {"path": "a.md", "state": "disk_deleted", "strategy": "merge", "outcome": "forgotten"}
    assert await bench.manager.reconcile(at, "merge") == told, "nothing is lost with a block without edits"
    assert bench.blocks.labels() == ()
    at = await in_conflict(bench)
    (bench.folder / "a.md").unlink()
    assert await bench.manager.reconcile(at, "theirs") == told | {"strategy": "theirs"}
    assert bench.blocks.labels() == ()


async def test_a_new_file_where_one_was_gone_is_not_written_over(bench: Bench) -> None:
    at = await in_conflict(bench)
    path = bench.folder / "a.md"
    path.unlink()
    await bench.manager.reconcile(at, "ours")
    path.write_text("somebody's\n")
    with pytest.raises(ToolFailure, match="modified externally"):
        await bench.manager.save(at, Action.OVERWRITE)
    assert path.read_text() == "somebody's\n"
    told = await bench.manager.reconcile(at, "merge")
    assert isinstance(told, dict)
    assert (told["outcome"], told["state"]) == ("conflict", "conflict")
    assert told["disk_diff"] == diff_text("a.md", "", "somebody's\n"), "what both began with is nothing"
    assert len(bench.blocks.labels()) == 1


@pytest.mark.parametrize(
    ("state", "strategy", "texts", "wanted"),
    [
        ("synced", "theirs", ("a\n", "a\n", "a\n"), Decision(Outcome.NOTHING)),
        ("block_modified", "theirs", ("a\n", "b\n", "a\n"), Decision(Outcome.NOTHING)),
        ("disk_modified", "ours", ("a\n", "a\n", "b\n"), Decision(Outcome.KEPT_BLOCK)),
        ("disk_modified", "merge", ("a\n", "a\n", "b\n"), Decision(Outcome.TOOK_DISK, "b\n")),
        ("conflict", "theirs", ("a\n", "b\n", "c\n"), Decision(Outcome.TOOK_DISK, "c\n")),
        ("conflict", "merge", ("a\n", "b\na\n", "a\n\nc\n"), Decision(Outcome.MERGED, "b\na\n\nc\n")),
        ("disk_deleted", "theirs", ("a\n", "b\n", None), Decision(Outcome.FORGOTTEN)),
        ("disk_deleted", "merge", ("a\n", "a\n", None), Decision(Outcome.FORGOTTEN)),
        (
            "conflict",
            "merge",
            (None, "b\n", "c\n"),
            Decision(Outcome.CONFLICT, why="the text that both began with is not known"),
        ),
        (
            "conflict",
            "merge",
            ("a\nb\nc\n", "A\nb\nc\n", "a\nb\n" + "c" * (8 * 1024 * 1024 - 17) + "\n"),
            Decision(Outcome.MERGED, "A\nb\n" + "c" * (8 * 1024 * 1024 - 17) + "\n"),
        ),
        (
            "conflict",
            "merge",
            ("a\nb\nc\n", "A\nb\nc\n", "a\nb\n" + "c" * (8 * 1024 * 1024 - 16) + "\n"),
            Decision(Outcome.CONFLICT, why="the texts are too long to be put together"),
        ),
    ],
    ids=range(11),
)
def test_what_a_strategy_makes_of_a_state(
    state: str, strategy: str, texts: tuple[str | None, str, str | None], wanted: Decision
) -> None:
    assert decide(FileState(state), Strategy(strategy), Sides(*texts)) == wanted


async def test_of_many_conflicts_twenty_are_told_and_of_a_long_one_its_beginning(bench: Bench) -> None:
    base, at = "".join(f"{number}\n=\n" for number in range(21)), bench.at("a.md")
    path = bench.write("a.md", base)
    await bench.manager.replace(at, "0\n=\n1\n", "m" * 1_999 + "\n=\n" + "m" * 2_000 + "\n")
    for number in range(2, 21):
        await bench.manager.replace(at, f"=\n{number}\n", f"=\nmine {number}\n")
    path.write_text(base.replace("\n=", " theirs\n="))
    told = await bench.manager.reconcile(at, "merge")
    assert isinstance(told, dict)
    assert told["conflict_count"] == 21
    assert told["conflicts"] == [
        {
            "base_line": 2 * number + 1,
            "block_line": 2 * number + 1,
            "disk_line": 2 * number + 1,
            "base": f"{number}\n",
            "block": ("m" * 1_999 + "\n", "m" * 2_000 + "[cut, 2,001 characters]")[number]
            if number < 2
            else f"mine {number}\n",
            "disk": f"{number} theirs\n",
        }
        for number in range(20)
    ]


async def test_the_common_text_is_known_after_a_restart_and_in_edits_of_other_tools(bench: Bench) -> None:
    at = await in_conflict(bench)
    bench.blocks.close()
    again = make_bench(bench.folder, bench.blocks)
    again.start(source_of(), bench.folder)
    told = await again.manager.reconcile(at, "merge")
    assert isinstance(told, dict)
    assert told["outcome"] == "merged"


@pytest.mark.parametrize("instead", [None, b"junk", TextBlock.from_text("other").snapshot()], ids=("", "junk", "other"))
async def test_a_block_without_a_known_common_text_is_a_conflict(bench: Bench, instead: bytes | None) -> None:
    at = await in_conflict(bench)
    (label,) = (label for label in bench.blocks.labels() if label.startswith("disk:"))
    bench.blocks.delete(label)
    if instead is not None:
        bench.blocks.put(label, source_id="docs#disk", snapshot=instead, disk_digest="x")
    assert await bench.manager.reconcile(at, "merge") == {
        "path": "a.md",
        "state": "conflict",
        "strategy": "merge",
        "outcome": "conflict",
        "why": "the text that both began with is not known",
        "conflicts": [],
        "conflict_count": 0,
        "block_diff": None,
        "disk_diff": None,
    }


async def test_the_state_of_a_file_is_told_though_its_block_is_damaged_or_its_base_is_gone(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    bench.folder.rename(bench.folder.with_name("away"))
    missing = "the folder of this source is missing"
    row = {"path": "a.md", "state": "disk_modified", "unsaved": False, "problem": missing}
    assert await bench.manager.status(at) == row
    assert await bench.manager.status(bench.place(".")) == [row]
    bench.blocks.put(bench.manager.label_of(at), source_id="docs", snapshot=b"junk", disk_digest="x")
    damaged = "the stored block is damaged and cannot be opened; load the file to make it anew from disk"
    row = {"path": "a.md", "state": "conflict", "unsaved": True, "problem": damaged}
    assert await bench.manager.status(at) == row


@pytest.mark.parametrize(("less", "is_kept"), [(0, True), (1, False)])
def test_the_history_of_a_block_is_kept_up_to_four_times_the_limit_and_a_quarter_of_a_mebibyte(
    bench: Bench, less: int, is_kept: bool
) -> None:
    block, chance = TextBlock.from_text(""), Random(3)
    while (size := len(block.snapshot())) < 262_144 or size % 4:
        block.set_text("")
        block.set_text(chance.randbytes(40_000 if size < 262_144 else 1).hex())
    blocks = HeldBlocks(bench.blocks, "docs", "file:00000000:{}".format)
    kept = blocks.keep("a.md", block, "x", limit=(size - 262_144) // 4 - less)
    stored = bench.blocks.get("file:00000000:a.md")
    assert stored is not None
    assert (len(stored.snapshot) == size) is is_kept
    assert (kept.text.text, kept.text is block) == (block.text, is_kept)


async def test_texts_kept_for_comparing_go_when_they_are_no_longer_needed(bench: Bench) -> None:
    at = await in_conflict(bench)
    for number in range(5):
        (bench.folder / "a.md").write_text(f"{number}\n")
        await bench.manager.load(at, asked=True)
    assert len(bench.blocks.labels()) == 2
    await bench.manager.delete(at, approved=True)
    assert bench.blocks.labels() == ()


# levels of labels


async def test_the_level_of_a_file_is_the_level_of_its_block_whichever_tool_asks(bench: Bench) -> None:
    bench.update(source_of(rules=(("*.md", Permission.APPEND), ("*.key", Permission.NONE))))
    bench.write("a.md", "x")
    await bench.manager.load(bench.at("a.md"))
    labels = {label.split(":")[0]: label for label in bench.blocks.labels()}
    assert bench.manager.level_of_label(labels["file"]).permission is Permission.APPEND
    assert bench.manager.level_of_label(labels["disk"]).permission is Permission.NONE
    assert bench.manager.level_of_label(bench.manager.label_of(bench.place("b.key"))).permission is Permission.NONE
    assert bench.manager.level_of_label("file:00000000:a.md").permission is Permission.NONE
    bench.stop("docs")
    assert bench.manager.level_of_label(labels["file"]).permission is Permission.NONE


async def test_over_one_file_of_two_sources_the_stricter_level_is_the_block_s(bench: Bench) -> None:
    bench.start(source_of("inner", default=Permission.READ_ONLY), bench.folder / "sub")
    bench.write("sub/a.md", "x")
    labels = {bench.manager.label_of(bench.place("sub/a.md")), bench.manager.label_of(bench.place("a.md", "inner"))}
    assert {bench.manager.level_of_label(label).permission for label in labels} == {Permission.READ_ONLY}


# exactness


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(st.sampled_from("ab\n\r\ufeffé\U0001f600"), max_size=20), mode=st.sampled_from([0o600, 0o755]))
def test_a_file_loaded_and_written_is_the_same_byte_for_byte(tmp_path: Path, content: str, mode: int) -> None:
    base = tmp_path / "base"
    base.mkdir(exist_ok=True)
    (base / "a.md").write_bytes(content.encode())
    (base / "a.md").chmod(mode)
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        made = make_bench(base, blocks)
        made.start(source_of(), base)
        source = made.manager.get("docs")
        assert source is not None
        source.load("a.md")
        source.append("a.md", "end")
        source.save("a.md", Action.APPEND)
    assert (base / "a.md").read_bytes() == content.encode() + b"end"
    assert (base / "a.md").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfea\0b\0", "UTF-16 text (little endian)"),
        (b"\xfe\xff\0a", "UTF-16 text (big endian)"),
        (b"caf\xe9", "byte 4 (0xe9) is not UTF-8, perhaps Latin-1"),
        (b"\x89PNG\r\n\x1a\n\0", "PNG picture"),
        (b"ab\0c", "byte 3 is NUL"),
    ],
)
async def test_what_is_no_utf8_text_is_refused_by_what_it_is(bench: Bench, content: bytes, words: str) -> None:
    bench.write("x", content)
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.load(bench.at("x"))
    assert words in str(caught.value)


async def test_an_empty_file_is_a_file_like_others(bench: Bench) -> None:
    path = bench.write("a.md", "")
    at = bench.at("a.md")
    await bench.manager.load(at)
    assert await state(bench, at) == "synced"
    await bench.manager.insert(at, 1, "x")
    await bench.manager.save(at, Action.APPEND)
    assert path.read_text() == "x"
    await bench.manager.replace(at, "x", "")
    await bench.manager.save(at, Action.OVERWRITE)
    assert path.read_text() == ""


BOM = b"\xef\xbb\xbf"


Edit = Callable[[SourceManager, Located], Awaitable[JsonValue]]
EDITS: list[tuple[Edit, bytes]] = [
    (lambda port, at: port.insert(at, 1, "zero\n"), b"zero\r\none\r\ntwo\r\n"),
    (lambda port, at: port.insert(at, 3, "three\n"), b"one\r\ntwo\r\nthree\r\n"),
    (lambda port, at: port.patch(at, "@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"), b"ONE\r\ntwo\r\n"),
    (lambda port, at: port.patch(at, "@@ -1,2 +1,2 @@\n-\ufeffone\n+\ufeffONE\n two\n"), b"ONE\r\ntwo\r\n"),
    (lambda port, at: port.replace(at, "one\n", "1\n"), b"1\r\ntwo\r\n"),
    (lambda port, at: port.append(at, "three\n"), b"one\r\ntwo\r\nthree\r\n"),
]


@pytest.mark.parametrize(("work", "expected"), EDITS)
async def test_a_byte_order_mark_stays_where_it_is(bench: Bench, work: Edit, expected: bytes) -> None:
    path = bench.write("a.md", BOM + b"one\r\ntwo\r\n")
    at = bench.at("a.md")
    await work(bench.manager, at)
    await bench.manager.save(at, Action.OVERWRITE)
    assert path.read_bytes() == BOM + expected


def test_lines_before_the_first_of_a_text_that_is_a_mark_alone() -> None:
    assert with_lines("\ufeff", 1, "one") == "\ufeffone"
    with pytest.raises(ToolFailure, match="no line 2"):
        with_lines("\ufeff", 2, "one")
