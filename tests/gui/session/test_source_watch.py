"""Sources that say `watch = true` are followed by the app: what another program writes shows on the Files page."""

import threading
from pathlib import Path

from gatewright.policy.target import Located
from gatewright.sources.held import FileState, OutsideChange
from gatewright.sources.watch import Noticed
from gatewright_gui.pages.access.files import FilesPage
from gatewright_gui.session.document import Document
from gatewright_gui.session.file_state import FileStanding, OutsideChanges
from gatewright_gui.session.watch import SourceWatch
from tests.gui.session.opened import Said, demo, opened_document, opened_window, settled, until

WATCHED = 'base_path = "workspace"\nwatch = true\n'
REPORT = "drafts/report.md"
TOP = "from another program\n"
MINE = "from the block\n"


def watched_demo(folder: Path) -> Path:
    """A demo whose source is watched."""
    policy = demo(folder)
    text = policy.read_text("utf-8")
    assert text.count('base_path = "workspace"\n') == 1
    policy.write_text(text.replace('base_path = "workspace"\n', WATCHED), "utf-8")
    return policy


async def change_both(document: Document, before: str = "", after: str = "") -> str:
    """A line is added to the block of a file, then another program writes the file; the text that it had."""
    await document.workspace.sources.append(Located("archive", REPORT, ""), MINE)
    file = document.workspace.folder / "workspace" / REPORT
    text = file.read_text("utf-8")
    file.with_name("new").write_text(before + text + after, "utf-8")
    file.with_name("new").replace(file)
    return text


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watch archive"]


def kept(document: Document) -> list[OutsideChanges]:
    """Collects what is noticed from now on."""
    noticed: list[OutsideChanges] = []
    document.source_changed.connect(noticed.append)
    return noticed


def state_of(page: FilesPage) -> FileState | None:
    standing = page.tree_model.standing_of(REPORT)
    return standing.state if isinstance(standing, FileStanding) else None


async def test_an_outside_change_shows_on_the_files_page_without_asking(tmp_path: Path) -> None:
    policy = watched_demo(tmp_path)
    drafts = policy.parent / "workspace" / "drafts"
    async with opened_window(policy, tmp_path) as window:
        window.show_page("files")
        page = window.shelf.page("files")
        assert isinstance(page, FilesPage)
        await settled(window)
        page.tree_model.fetchMore(page.tree_model.index_of("drafts"))
        await until(lambda: page.tree_model.index_of(REPORT).isValid())
        assert state_of(page) is None

        await change_both(window.document, after=TOP)
        await until(lambda: state_of(page) is FileState.CONFLICT)

        (drafts / "fresh.md").write_text("new\n", "utf-8")
        await until(lambda: page.tree_model.index_of("drafts/fresh.md").isValid())


async def test_what_another_program_adds_elsewhere_is_shown_merged_with_the_edits_of_the_block(tmp_path: Path) -> None:
    policy = watched_demo(tmp_path)
    async with opened_window(policy, tmp_path) as window:
        window.show_page("files")
        page = window.shelf.page("files")
        assert isinstance(page, FilesPage)
        await settled(window)
        page.tree_model.fetchMore(page.tree_model.index_of("drafts"))

        before = await change_both(window.document, before=TOP)
        await until(lambda: state_of(page) is FileState.BLOCK_MODIFIED)

        found = await window.document.workspace.sources.read(Located("archive", REPORT, ""))
        assert found.content == TOP + before + MINE


async def test_a_conflict_is_said_once_until_it_is_settled(tmp_path: Path) -> None:
    policy = watched_demo(tmp_path)
    async with opened_document(policy) as document:
        watch = SourceWatch(document)
        await document.open(policy)
        said, noticed = Said(document), kept(document)
        file = document.workspace.folder / "workspace" / REPORT

        await change_both(document, after=TOP)
        await until(lambda: bool(said.messages))
        seen = len(noticed)
        file.write_text(file.read_text("utf-8") + "more\n", "utf-8")
        await until(lambda: len(noticed) > seen)

        text = f"`{REPORT}` of source `archive` changed on disk where its block holds edits"
        told = [(one.tone, one.text) for one in said.messages]
        assert told == [("warning", f"{text}: the Files page reconciles them")]
        watch.close()


async def test_a_source_that_is_not_watched_starts_nothing(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    async with opened_document(policy) as document:
        watch = SourceWatch(document)
        await document.open(policy)

        assert watch.ids == ()
        assert not watchers()


async def test_closing_and_switching_end_the_watch(tmp_path: Path) -> None:
    policy = watched_demo(tmp_path)
    other = demo(tmp_path / "other")
    async with opened_document(policy) as document:
        watch = SourceWatch(document)
        await document.open(policy)
        noticed = kept(document)
        assert watch.ids == ("archive",)
        await change_both(document, before=TOP)
        await until(lambda: any(REPORT in one.paths for one in noticed))
        first = watchers()
        assert first

        await document.open(other)
        assert watch.ids == ()
        assert not any(thread.is_alive() for thread in first)

        await document.open(policy)
        second = watchers()
        assert second
        document.close()
        assert not any(thread.is_alive() for thread in second)


async def test_a_late_notice_is_dropped_and_a_problem_is_said_once(tmp_path: Path) -> None:
    policy = watched_demo(tmp_path)
    async with opened_document(policy) as document:
        watch = SourceWatch(document)
        await document.open(policy)
        before = document.workspace
        await document.open(policy)
        noticed, said = kept(document), Said(document)
        changes = (OutsideChange("a.md", FileState.NOT_LOADED, merged=False),)
        late, bad = Noticed("archive", changes, problem="late"), Noticed("archive", problem="no more watches")
        mine = Noticed("archive", changes)

        watch._take(before, late)  # pyright: ignore[reportPrivateUsage] as the loop does, a turn late
        assert (noticed, said.messages) == ([], [])
        for one in (bad, mine, bad):
            watch._take(document.workspace, one)  # pyright: ignore[reportPrivateUsage]

        assert noticed == [OutsideChanges("archive", ("a.md",))]
        assert [message.text for message in said.messages] == [
            "source `archive` cannot be watched: no more watches",
        ]
        assert said.messages[0].tone == "warning"
