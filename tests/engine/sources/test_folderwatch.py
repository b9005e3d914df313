"""A folder that somebody looks at: what comes, changes and goes is told, the folder itself too."""

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchfiles import Change

from gatewright.sources.basefolder import base_folder
from gatewright.sources.watch import MAX_PATHS_TOLD, FolderNews, FolderWatch

WAIT_S = 3_600.0


class Told:
    """Keeps what was told; `until` waits for news that fit."""

    def __init__(self) -> None:
        self.news: queue.Queue[FolderNews] = queue.Queue()

    def until(self, fits: Callable[[FolderNews], bool]) -> FolderNews:
        while True:
            found = self.news.get()
            if fits(found):
                return found


@pytest.fixture
def told() -> Told:
    return Told()


def watch(base: Path, told: Told) -> FolderWatch:
    return FolderWatch(base_folder(base), told.news.put, debounce_ms=60, tick_ms=60)


def test_new_empty_folder_and_gone_file_are_told(tmp_path: Path, told: Told) -> None:
    (tmp_path / "old.md").touch()
    with watch(tmp_path, told) as one:
        assert one.wait(WAIT_S)
        (tmp_path / "empty").mkdir()
        assert told.until(lambda news: "empty" in news.came).is_there
        (tmp_path / "old.md").unlink()
        told.until(lambda news: "old.md" in news.went)


def test_folder_that_vanishes_and_comes_back_is_told_and_watched_again(tmp_path: Path, told: Told) -> None:
    base = tmp_path / "base"
    base.mkdir()
    with watch(base, told) as one:
        assert one.wait(WAIT_S)
        away = base.rename(tmp_path / "away")
        told.until(lambda news: not news.is_there)
        away.rename(base)
        told.until(lambda news: news.more)
        (base / "again.md").touch()
        told.until(lambda news: "again.md" in news.paths)


def test_another_folder_in_the_place_of_one_is_none_that_came_back(tmp_path: Path, told: Told) -> None:
    base, other = tmp_path / "base", tmp_path / "other"
    base.mkdir()
    other.mkdir()
    (other / "secret.md").touch()
    with watch(base, told) as one:
        assert one.wait(WAIT_S)
        other.rename(base)  # in one step, since the base is empty: there is no moment without a folder
        assert "another folder" in str(told.until(lambda news: news.problem is not None))
        assert told.news.empty()


def test_nothing_is_told_after_the_end(tmp_path: Path, told: Told) -> None:
    one = watch(tmp_path, told)
    assert one.wait(WAIT_S)
    one.close()
    (tmp_path / "late.md").touch()
    assert told.news.empty()


@pytest.mark.parametrize("polls", [True, False])
def test_where_the_system_cannot_watch_the_folder_is_looked_at_or_its_fault_told(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch, polls: bool
) -> None:
    seen: list[tuple[bool, object]] = []

    def watched(
        base: str, *, force_polling: bool, poll_delay_ms: int, **_: object
    ) -> Iterator[set[tuple[Change, str]]]:
        seen.append((force_polling, poll_delay_ms))
        if not force_polling or not polls:
            raise OSError("no more watches")
        yield {(Change.added, f"{base}/{number}") for number in range(MAX_PATHS_TOLD)}
        yield {(Change.added, f"{base}/{number}") for number in range(MAX_PATHS_TOLD + 1)}

    monkeypatch.setattr("watchfiles.watch", watched)
    with watch(tmp_path, told):
        news = told.until(lambda _: True)
        if polls:
            assert (len(news.came), news.more) == (MAX_PATHS_TOLD, False)
            assert told.until(lambda _: True) == FolderNews(more=True)
        else:
            assert news == FolderNews(problem="no more watches")
    assert seen[:2] == [(False, 1_500), (True, 1_500)]
    assert MAX_PATHS_TOLD == 2_000


def test_what_happened_to_a_path_in_the_end_is_told_once_and_of_other_places_nothing(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, object] = {}

    def watched(base: str, **given: object) -> Iterator[set[tuple[Change, str]]]:
        options.update(given)
        yield set()
        yield {(Change.added, base), (Change.modified, f"{base}x/a"), (Change.added, f"{base}/.a.0123456789ab.tmp")}
        yield {
            (Change.added, f"{base}/sub/new"),
            (Change.modified, f"{base}/sub/new"),
            (Change.modified, f"{base}/old"),
            (Change.deleted, f"{base}/gone"),
            (Change.modified, f"{base}/gone"),
            (Change.added, f"{base}/swapped"),
            (Change.deleted, f"{base}/swapped"),
        }
        yield {(Change.modified, f"{base}/last")}
        yield {(Change.deleted, base)}
        raise AssertionError("the base is gone")

    monkeypatch.setattr("watchfiles.watch", watched)
    with FolderWatch(base_folder(tmp_path), told.news.put, tells_gap=True) as one:
        assert one.wait(WAIT_S)
        news = [told.until(lambda _: True) for _ in range(4)]
    once = FolderNews(frozenset({"sub/new"}), frozenset({"old", "swapped"}), frozenset({"gone"}))
    assert news[:3] == [FolderNews(more=True), once, FolderNews(changed=frozenset({"last"}))]
    assert news[3] == FolderNews(more=True), "it is watched again"
    assert once.paths == {"sub/new", "old", "swapped", "gone"}
    assert (options["debounce"], options["rust_timeout"], options["yield_on_timeout"]) == (300, 400, True)
    assert options["ignore_permission_denied"] is True


def test_what_a_killed_save_left_is_not_told(tmp_path: Path, told: Told) -> None:
    with watch(tmp_path, told) as one:
        assert one.wait(WAIT_S)
        (tmp_path / ".a.md.0123456789ab.tmp").touch()
        (tmp_path / "seen.md").touch()
        assert ".a.md.0123456789ab.tmp" not in told.until(lambda news: "seen.md" in news.paths).paths
