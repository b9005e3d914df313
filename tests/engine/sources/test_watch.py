"""Changes from outside, with the real notifications of the operating system."""

import os
import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from watchfiles import Change

from gatewright.base.errors import WorkspaceError
from gatewright.policy.verdict import Permission
from gatewright.sources.held import FileState, OutsideChange, StoredBlock
from gatewright.sources.watch import MAX_TOLD, Noticed, SourceWatching
from tests.engine.sources.bench import Bench, source_of

WAIT_S = 3_600.0


@contextmanager
def watching(bench: Bench, *ids: str, stands: bool = True) -> Generator["queue.Queue[Noticed]"]:
    told: queue.Queue[Noticed] = queue.Queue()
    made = SourceWatching(bench.manager, lambda: ids or ("docs",), told.put, debounce_ms=60, tick_ms=60)
    with closing(made) as watcher:
        watcher.follow()
        if stands:
            assert watcher.wait(WAIT_S)
        yield told
    assert watcher.ids == ()


def until(told: "queue.Queue[Noticed]", path: str) -> tuple[FileState, bool]:
    """The first word about a path."""
    while True:
        for change in told.get().changes:
            if change.relative == path:
                return change.state, change.merged


async def test_a_block_without_edits_follows_the_file(bench: Bench) -> None:
    path = bench.write("sub/a.md", "one\n")
    at = bench.at("sub/a.md")
    await bench.manager.load(at)
    with watching(bench) as told:
        path.write_text("two\n")
        assert until(told, "sub/a.md") == (FileState.DISK_MODIFIED, True)
    found = await bench.manager.read(at)
    assert (found.content, found.origin, found.unsaved) == ("two\n", "block", False)


async def test_far_apart_edits_of_block_and_disk_are_joined_again_and_again(bench: Bench) -> None:
    bench.write("a.md", "one\ntwo\nthree\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "mine\n")
    with watching(bench) as told:
        bench.swap("a.md", "other\none\ntwo\nthree\n")
        assert until(told, "a.md") == (FileState.CONFLICT, True)
        bench.swap("a.md", "other\nONE\ntwo\nthree\n")
        assert until(told, "a.md") == (FileState.CONFLICT, True)
    assert (await bench.manager.read(at)).content == "other\nONE\ntwo\nthree\nmine\n"
    assert await bench.manager.status(at) == {"path": "a.md", "state": "block_modified", "unsaved": True}


@pytest.mark.parametrize("content", [b"\0\xff binary", b"x" * 2_000_000], ids=["binary", "too large"])
@pytest.mark.parametrize("edits", ["", "mine\n"])
async def test_what_no_block_can_hold_is_told_and_not_taken(bench: Bench, content: bytes, edits: str) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    if edits:
        await bench.manager.append(at, edits)
    with watching(bench) as told:
        bench.swap("a.md", content)
        assert until(told, "a.md") == (FileState.CONFLICT if edits else FileState.DISK_MODIFIED, False)
    assert (await bench.manager.read(at)).content == "one\n" + edits


async def test_edits_that_together_are_longer_than_a_file_may_be_stay_a_conflict(bench: Bench) -> None:
    bench.update(replace(source_of(), max_file_bytes=40))
    bench.write("a.md", "one\ntwo\nthree\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "m" * 20 + "\n")
    with watching(bench) as told:
        bench.swap("a.md", "o" * 20 + "\none\ntwo\nthree\n")
        assert until(told, "a.md") == (FileState.CONFLICT, False)
    assert (await bench.manager.read(at)).content == "one\ntwo\nthree\n" + "m" * 20 + "\n"


async def test_edits_of_a_file_that_is_removed_stay_in_the_block(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "mine\n")
    with watching(bench) as told:
        path.unlink()
        assert until(told, "a.md") == (FileState.DISK_DELETED, False)
    assert (await bench.manager.read(at)).content == "one\nmine\n"


async def test_edits_of_the_same_lines_are_left_alone_and_the_conflict_is_told(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.append(at, "mine\n")
    with watching(bench) as told:
        path.write_text("other\n")
        assert until(told, "a.md") == (FileState.CONFLICT, False)
    assert (await bench.manager.read(at)).content == "one\nmine\n"
    assert await bench.manager.status(at) == {"path": "a.md", "state": "conflict", "unsaved": True}


async def test_what_changed_before_the_watch_stood_is_found(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    await bench.manager.load(bench.at("a.md"))
    path.write_text("two\n")
    with watching(bench, stands=False) as told:
        assert until(told, "a.md") == (FileState.DISK_MODIFIED, True)


async def test_a_removed_file_is_told_and_its_block_stays(bench: Bench) -> None:
    path = bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    with watching(bench) as told:
        path.unlink()
        assert until(told, "a.md") == (FileState.DISK_DELETED, False)
    assert (await bench.manager.read(at)).content == "one\n"


async def test_a_base_that_goes_and_comes_back_is_watched_again(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    await bench.manager.load(bench.at("a.md"))
    with watching(bench) as told:
        away = bench.folder.rename(bench.folder.with_name("away"))
        (away / "a.md").write_text("two\n")
        away.rename(bench.folder)
        while until(told, "a.md") != (FileState.DISK_MODIFIED, True):
            pass
        bench.write("new.md", "three\n").replace(bench.folder / "a.md")
        assert until(told, "a.md") == (FileState.DISK_MODIFIED, True)
    assert (await bench.manager.read(bench.at("a.md"))).content == "three\n"


async def test_another_folder_in_the_place_of_a_base_is_told_and_not_watched(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    await bench.manager.load(bench.at("a.md"))
    with watching(bench) as told:
        bench.folder.rename(bench.folder.with_name("away"))
        bench.folder.mkdir()
        bench.write("a.md", "SECRET")
        while (news := told.get()).problem is None:
            assert {change.state for change in news.changes} <= {FileState.DISK_DELETED}
        assert "another folder stands" in news.problem


async def test_what_has_no_level_and_what_a_link_leads_to_is_not_named(bench: Bench, tmp_path: Path) -> None:
    bench.update(source_of(rules=(("*.key", Permission.NONE),)))
    outside = tmp_path / "outside"
    outside.mkdir()
    (bench.folder / "way").symlink_to(outside)
    seen: set[str] = set()
    with watching(bench) as told:
        bench.write("start", "x")
        until(told, "start")
        bench.write("secret.key", "x")
        bench.write(".gatewright/audit", "y")
        (outside / "hidden").write_text("x")
        (bench.folder / "folder").mkdir()
        (bench.folder / "odd").symlink_to("start")
        bench.write("last", "x")
        while "last" not in seen:
            seen |= {change.relative for change in told.get().changes}
    assert seen <= {"start", "last"}


async def test_what_comes_and_goes_without_a_block_ends_no_watch(bench: Bench) -> None:
    bench.write("gone.md", "x")
    seen: set[str] = set()
    with watching(bench) as told:
        (bench.folder / "gone.md").unlink()
        while "last" not in seen:
            bench.write("last", "x")
            noticed = told.get()
            assert noticed.problem is None
            seen |= {change.relative for change in noticed.changes}
    assert seen == {"gone.md", "last"}


async def test_a_flood_is_told_in_bounded_pieces(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    await bench.manager.load(bench.at("a.md"))
    with watching(bench) as told:
        for number in range(3 * MAX_TOLD):
            (bench.folder / f"f{number}").touch()
        bench.write("a.md", "two\n")
        merged = False
        while not merged:
            noticed = told.get()
            assert len(noticed.changes) <= MAX_TOLD
            merged = any(change.relative == "a.md" and change.merged for change in noticed.changes)


@pytest.mark.parametrize(
    ("shown", "hidden", "told", "more"),
    [(2, 6, 2, False), (2, 7, 1, True), (3, 0, 2, True), (2, 0, 2, False), (0, 8, 0, False)],
)
def test_of_many_changes_those_are_told_that_may_be_and_that_there_are_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, shown: int, hidden: int, told: int, more: bool
) -> None:
    """At most two are told and eight looked at."""
    bench.update(source_of(rules=(("*.key", Permission.NONE),)))
    paths = [f"{number}.{'key' if number < hidden else 'md'}" for number in range(shown + hidden)]
    found = {(Change.added, f"{bench.folder}/{path}") for path in [*paths, ".a.md.0123456789ab.tmp"]}

    def watched(*_: object, **__: object) -> Iterator[set[tuple[Change, str]]]:
        yield set()
        yield found
        yield {(Change.added, f"{bench.folder}/last")}

    monkeypatch.setattr("watchfiles.watch", watched)
    monkeypatch.setattr("gatewright.sources.watch.MAX_TOLD", 2)
    with watching(bench) as heard:
        news = [heard.get()]
        while news[-1].changes[0].relative != "last":
            news.append(heard.get())
    assert [(len(one.changes), one.more) for one in news[:-1]] == ([(told, more)] if told else [])
    if told:
        assert news[0].changes[0].state is FileState.NOT_LOADED
        assert {one.relative for one in news[0].changes} <= set(paths[hidden:])


async def test_what_a_store_that_fails_for_a_moment_could_not_take_in_is_taken_in_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, source, held = bench.write("a.md", "one\n"), bench.manager.get("docs"), list[str]()
    assert source is not None
    await bench.manager.load(bench.at("a.md"))
    get, labels, failing = bench.blocks.get, bench.blocks.labels, ["labels", "get"]

    def fails(what: str) -> None:
        if failing and failing[0] == what:
            raise WorkspaceError(failing.pop(0))

    def failing_get(label: str) -> StoredBlock | None:
        fails("get")
        return get(label)

    def failing_labels(source_id: str | None = None) -> tuple[str, ...]:
        fails("labels")
        return labels(source_id)

    def watched(base: str, **_: object) -> Iterator[set[tuple[Change, str]]]:
        yield set()
        path.write_text("two\n")
        yield {(Change.modified, f"{base}/a.md")}
        held.append(source.read("a.md").content)
        yield set()
        held.append(source.read("a.md").content)

    monkeypatch.setattr(bench.blocks, "get", failing_get)
    monkeypatch.setattr(bench.blocks, "labels", failing_labels)
    monkeypatch.setattr("watchfiles.watch", watched)
    with watching(bench) as told:
        assert until(told, "a.md") == (FileState.DISK_MODIFIED, True)
    assert (failing, held[:2]) == ([], ["one\n", "two\n"])


async def test_names_behind_links_and_those_that_no_call_could_hold_are_not_told(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("x")
    (bench.folder / "way").symlink_to(tmp_path / "outside")
    (bench.folder / "odd").symlink_to("nowhere")
    bad = os.fsdecode(b"caf\xe9")
    bench.write(bad, "x")
    bench.write("sub/fine", "x")

    def watched(base: str, **_: object) -> Iterator[set[tuple[Change, str]]]:
        yield set()
        paths = ("way/a", "way", "odd", bad, "sub", "sub/fine", "gone", "policy.toml", f"{base}x/a")
        yield {(Change.added, f"{base}/{path}" if "/x" not in path[1:] else path) for path in paths}

    monkeypatch.setattr("watchfiles.watch", watched)
    with watching(bench) as heard:
        news = heard.get()
    told = tuple(OutsideChange(path, FileState.NOT_LOADED, merged=False) for path in ("gone", "sub/fine"))
    assert news == Noticed("docs", told)


async def test_our_own_writing_is_no_change_from_outside(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    seen: set[str] = set()
    with watching(bench) as told:
        bench.write("start", "x")
        until(told, "start")
        await bench.manager.append(at, "two\n")
        await bench.manager.create(bench.at("new.md"), "x")
        bench.write("last", "x")
        while "last" not in seen:
            seen |= {change.relative for change in told.get().changes}
    assert seen <= {"start", "last"}


async def test_where_the_system_cannot_watch_files_with_a_block_are_looked_at(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no space left on device (os error 28)")

    monkeypatch.setattr("watchfiles.watch", refuse)
    path = bench.write("a.md", "one\n")
    await bench.manager.load(bench.at("a.md"))
    with watching(bench, stands=False) as told:
        assert "every few seconds" in (told.get().problem or "")
        path.write_text("two\n")
        assert until(told, "a.md") == (FileState.DISK_MODIFIED, True)


def test_an_unknown_source_is_not_watched_and_a_listener_that_fails_does_no_harm(bench: Bench) -> None:
    told: queue.Queue[Noticed] = queue.Queue()

    def failing(noticed: Noticed) -> None:
        told.put(noticed)
        raise RuntimeError("listener")

    made = SourceWatching(bench.manager, lambda: ("docs", "nowhere"), failing, debounce_ms=60, tick_ms=60)
    with closing(made) as watcher:
        watcher.follow()
        assert watcher.ids == ("docs",)
        assert watcher.wait(WAIT_S)
        bench.write("one", "x")
        until(told, "one")
        bench.write("two", "x")
        until(told, "two")


def test_a_listener_may_follow_while_somebody_else_ends_its_watch(bench: Bench) -> None:
    heard, follows, has_followed = threading.Event(), threading.Event(), threading.Event()

    def wanted() -> tuple[str, ...]:
        if heard.is_set():
            follows.set()
            return ()
        return ("docs",)

    def listen(_: Noticed) -> None:
        heard.set()
        assert follows.wait(WAIT_S)
        watcher.follow()
        has_followed.set()

    watcher = SourceWatching(bench.manager, wanted, listen, debounce_ms=60, tick_ms=60)
    with closing(watcher):
        watcher.follow()
        assert watcher.wait(WAIT_S)
        bench.write("a.md", "x")
        assert heard.wait(WAIT_S)
        other = threading.Thread(target=watcher.follow, daemon=True)
        other.start()
        assert has_followed.wait(WAIT_S)
        other.join(WAIT_S)
        assert not other.is_alive()
    assert watcher.ids == ()


def test_closing_waits_for_a_listener_that_is_told_of_a_source_not_watched_any_more(bench: Bench) -> None:
    heard, goes_on, was_heard = threading.Event(), threading.Event(), threading.Event()

    def listen(_: Noticed) -> None:
        heard.set()
        assert goes_on.wait(WAIT_S)
        was_heard.set()

    watcher = SourceWatching(
        bench.manager, lambda: () if heard.is_set() else ("docs",), listen, debounce_ms=60, tick_ms=60
    )
    with closing(watcher):
        watcher.follow()
        assert watcher.wait(WAIT_S)
        bench.write("a.md", "x")
        assert heard.wait(WAIT_S)
        watcher.follow()
        assert watcher.ids == ()
        goes_on.set()
    assert was_heard.is_set()


def test_a_listener_may_close_what_it_listens_to(bench: Bench) -> None:
    closed = threading.Event()

    def listen(_: Noticed) -> None:
        watcher.close()
        closed.set()

    watcher = SourceWatching(bench.manager, lambda: ("docs",), listen, debounce_ms=60, tick_ms=60)
    with closing(watcher):
        watcher.follow()
        assert watcher.wait(WAIT_S)
        bench.write("a.md", "x")
        assert closed.wait(WAIT_S)
    assert watcher.ids == ()
