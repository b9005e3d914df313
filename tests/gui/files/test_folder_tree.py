"""The lazily read tree, by itself."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPersistentModelIndex
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.policy.verdict import Permission
from gatewright.sources.held import FileState
from gatewright_gui.pages.access.files import folder_tree
from gatewright_gui.pages.access.files.folder_tree import FolderTreeModel
from gatewright_gui.session.file_state import FileStanding, FolderStanding, Standings
from gatewright_gui.session.files import FolderEntry, FolderListing, PathLevel

NAMES = ("drafts/", "notes/", "a.md", "b.md")


def listing(*names: str, under: str = "", truncated: bool = False, protected: str = "") -> FolderListing:
    prefix = f"{under}/" if under else ""
    entries = [
        FolderEntry(name.rstrip("/"), prefix + name.rstrip("/"), name.endswith("/"), name == protected)
        for name in names
    ]
    return FolderListing(tuple(entries), truncated)


class Levels:
    """Gives every path one level and remembers which were asked for."""

    def __init__(self) -> None:
        self.level = Permission.READ_ONLY
        self.asked: list[str] = []

    def __call__(self, path: str) -> PathLevel:
        self.asked.append(path)
        return PathLevel(path, self.level, 0, "**")


@pytest.fixture
def levels() -> Levels:
    return Levels()


@pytest.fixture
def wanted() -> list[str]:
    return []


@pytest.fixture
def model(levels: Levels, wanted: list[str], qapp: object) -> FolderTreeModel:
    made = FolderTreeModel(levels)
    made.folder_wanted.connect(wanted.append)
    made.start_over(is_open=True)
    made.tester = QAbstractItemModelTester(  # pyright: ignore[reportAttributeAccessIssue]
        made, QAbstractItemModelTester.FailureReportingMode.Fatal
    )
    made.set_listing("", listing(*NAMES))
    return made


def level_word(model: FolderTreeModel, path: str) -> str:
    return str(model.index_of(path).siblingAtColumn(folder_tree.LEVEL).data())


def test_base_is_asked_for_at_once_and_folders_when_they_are_opened(model: FolderTreeModel, wanted: list[str]) -> None:
    assert wanted[0] == ""
    drafts = model.index_of("drafts")
    assert model.hasChildren(drafts)
    model.fetchMore(drafts)
    model.fetchMore(drafts)
    assert wanted.count("drafts") == 1
    model.set_listing("drafts", listing("x.md", under="drafts"))
    assert model.index_of("drafts/x.md").isValid()


def test_levels_are_asked_for_by_the_path_of_the_row(model: FolderTreeModel, levels: Levels) -> None:
    levels.asked.clear()
    assert level_word(model, "drafts") == "read only"
    assert level_word(model, "a.md") == "read only"
    assert {"drafts/", "drafts/new", "a.md"} >= set(levels.asked)


def test_recolouring_keeps_every_row(model: FolderTreeModel, levels: Levels) -> None:
    watched = QPersistentModelIndex(model.index_of("b.md"))
    assert level_word(model, "b.md") == "read only"
    levels.level = Permission.ADMIN
    model.recolour()
    assert level_word(model, "b.md") == "full access"
    assert watched.isValid()


def test_refresh_adds_and_removes_only_what_changed(model: FolderTreeModel, wanted: list[str]) -> None:
    model.set_listing("drafts", listing("x.md", under="drafts"))
    kept = QPersistentModelIndex(model.index_of("drafts/x.md"))
    gone = QPersistentModelIndex(model.index_of("a.md"))
    wanted.clear()
    model.refresh()
    assert sorted(wanted) == ["", "drafts"]
    model.set_listing("", listing("drafts/", "new/", "b.md", "c.md"))
    assert kept.isValid()
    assert not gone.isValid()
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == ["drafts", "new", "b.md", "c.md"]


def test_protected_entries_say_so_whatever_the_rules_say(model: FolderTreeModel) -> None:
    model.set_listing("", listing(*NAMES, protected="a.md"))
    assert level_word(model, "a.md") == "protected"
    level = model.level_at(model.index_of("a.md"))
    assert level is not None
    assert level.rule_word == "protected"


def test_failure_of_a_folder_is_a_row_in_it(model: FolderTreeModel) -> None:
    model.fetchMore(model.index_of("notes"))
    model.set_failed("notes", "permission denied")
    note = model.index(0, 0, model.index_of("notes"))
    assert note.data() == "permission denied"
    assert model.path_at(note) is None


def test_truncated_folder_says_that_there_is_more(model: FolderTreeModel) -> None:
    model.set_listing("", listing(*NAMES, truncated=True))
    assert "more than 4 entries" in str(model.index(4, 0).data())


def test_beginning_of_a_folder_says_that_the_rest_comes_and_gives_way_to_the_whole(model: FolderTreeModel) -> None:
    model.set_listing("", replace(listing("a.md", "b.md", truncated=True), is_partial=True))
    kept = QPersistentModelIndex(model.index_of("a.md"))
    assert "being looked at" in str(model.index(2, 0).data())
    model.set_listing("", listing("a.md", "b.md", "c.md"))
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == ["a.md", "b.md", "c.md"]
    assert kept.isValid()


def test_answer_for_a_folder_that_is_gone_is_dropped(model: FolderTreeModel) -> None:
    model.set_listing("", listing("b.md"))
    model.set_listing("drafts", listing("x.md", under="drafts"))
    assert model.rowCount() == 1


def many(count: int, *, more: tuple[str, ...] = ()) -> FolderListing:
    names = sorted([f"file{number:05d}.md" for number in range(count)] + list(more))
    return listing(*names)


def shown(model: FolderTreeModel) -> list[str]:
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def test_large_folder_has_one_page_of_rows_and_says_what_there_is_besides(model: FolderTreeModel) -> None:
    model.set_listing("", many(50_000))
    assert model.rowCount() == folder_tree.PAGE + 1
    assert shown(model)[-1] == f"{50_000 - folder_tree.PAGE:,} more entries: click to show"
    first = model.turn_page(model.index(folder_tree.PAGE, 0))
    assert first.data() == f"file{folder_tree.PAGE:05d}.md"
    assert shown(model)[0] == f"{folder_tree.PAGE:,} entries before these: click to show"
    last = model.turn_page(model.index(0, 0))
    assert last.data() == f"file{folder_tree.PAGE - 1:05d}.md"
    assert shown(model)[0] == "file00000.md"
    assert not model.turn_page(model.index(0, 0)).isValid()


def test_path_in_a_large_folder_is_revealed_on_its_page(model: FolderTreeModel) -> None:
    model.set_listing("", many(50_000))
    assert not model.index_of("file31234.md").isValid()
    assert model.reveal("file31234.md").data() == "file31234.md"
    assert not model.reveal("nothing.md").isValid()


def test_refresh_of_a_large_folder_keeps_the_page_and_its_rows(model: FolderTreeModel) -> None:
    model.set_listing("", many(5_000))
    kept = QPersistentModelIndex(model.reveal("file02600.md"))
    model.set_listing("", many(5_000, more=("file02600x.md",)))
    assert kept.isValid()
    assert model.index_of("file02600x.md").isValid()
    model.set_listing("", many(3))
    assert shown(model) == ["file00000.md", "file00001.md", "file00002.md"]


def test_state_of_a_file_is_a_word_and_its_folder_counts_the_worst(model: FolderTreeModel) -> None:
    model.set_listing("drafts", listing("x.md", under="drafts"))
    files = {
        path: FileStanding(path, state)
        for path, state in (
            ("a.md", FileState.BLOCK_MODIFIED),
            ("b.md", FileState.SYNCED),
            ("drafts/x.md", FileState.CONFLICT),
        )
    }
    model.set_standings(Standings(files, {"drafts": FolderStanding(FileState.CONFLICT, 1)}))

    def said(path: str) -> object:
        return model.index_of(path).siblingAtColumn(folder_tree.STATE).data()

    assert [said(path) for path in ("a.md", "b.md", "drafts/x.md", "drafts", "notes")] == [
        "unsaved",
        "loaded",
        "conflict",
        "1 conflict",
        "",
    ]
    model.start_over(is_open=True)
    model.set_listing("", listing(*NAMES))
    assert said("a.md") == ""
