"""The lazily read tree, by itself."""

import pytest
from PySide6.QtCore import QPersistentModelIndex
from PySide6.QtTest import QAbstractItemModelTester

from gatewright.policy.permission import Permission
from gatewright_gui.models import foldertree
from gatewright_gui.models.foldertree import FolderTreeModel
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
    return str(model.index_of(path).siblingAtColumn(foldertree.LEVEL).data())


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
    assert level_word(model, "drafts") == "read_only"
    assert level_word(model, "a.md") == "read_only"
    assert {"drafts/", "a.md"} >= set(levels.asked)


def test_recolouring_keeps_every_row(model: FolderTreeModel, levels: Levels) -> None:
    watched = QPersistentModelIndex(model.index_of("b.md"))
    assert level_word(model, "b.md") == "read_only"
    levels.level = Permission.ADMIN
    model.recolour()
    assert level_word(model, "b.md") == "admin"
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


def test_answer_for_a_folder_that_is_gone_is_dropped(model: FolderTreeModel) -> None:
    model.set_listing("", listing("b.md"))
    model.set_listing("drafts", listing("x.md", under="drafts"))
    assert model.rowCount() == 1
