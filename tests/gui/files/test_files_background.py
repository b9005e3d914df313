"""What the Files page does beside the window: begun once the folder is seen, ended when nobody looks any more."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.access.files import FilesPage, folder_tree
from gatewright_gui.session.files import MAX_ENTRIES
from gatewright_gui.session.verbs import sources
from tests.gui.files.support import Opened, opened, until

COUNT = "files.count"
FOLDERS, FILES = 40, 50


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo") as made:
        for name in ("large", "other"):
            for folder in range(FOLDERS):
                below = made.folder / name / f"part{folder}"
                below.mkdir(parents=True)
                for file in range(FILES):
                    (below / f"{file}.md").touch()
            rules = (PermissionRule("part1/", Permission.NONE),)
            assert sources.add_source(made.document, Source(name, name, permission_rules=rules))
        yield made


class Painted(QObject):
    """Whether the tree was drawn with rows in it when counting began."""

    def __init__(self, page: FilesPage) -> None:
        super().__init__(page)
        self.page, self.rows_drawn, self.drawn_at_begin = page, 0, list[int]()
        page.folder.tree.viewport().installEventFilter(self)
        page.tree_model.modelReset.connect(self.forget)

    def forget(self) -> None:
        self.rows_drawn = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() == QEvent.Type.Paint:
            self.rows_drawn = self.page.tree_model.rowCount()
        return super().eventFilter(watched, event)

    def note(self) -> None:
        self.drawn_at_begin.append(self.rows_drawn)


def choose(page: FilesPage, source_id: str) -> None:
    row = page.rules.header.picker.findData(source_id)
    page.rules.header.picker.setCurrentIndex(row)
    page.rules.header.picker.activated.emit(row)


async def test_counting_begins_once_the_folder_was_drawn(
    demo: Opened, page: FilesPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Painted(page)
    real: Callable[..., Any] = demo.context.tasks.start

    def start(*asked: Any, **how: Any) -> Any:
        if asked[1] == COUNT:
            seen.note()
        return real(*asked, **how)

    monkeypatch.setattr(demo.context.tasks, "start", start)
    choose(page, "large")
    await until(lambda: page.rules.model.hits is not None)
    assert seen.drawn_at_begin == [FOLDERS]


async def test_count_of_a_source_that_is_left_is_given_up(demo: Opened, page: FilesPage) -> None:
    choose(page, "large")
    await until(lambda: COUNT in demo.context.tasks.names)
    choose(page, "other")
    await until(lambda: page.rules.model.hits is not None)
    hits = page.rules.model.hits
    assert hits is not None
    assert (hits.files, hits.rules) == (FOLDERS * FILES, (FILES,))
    assert page.rules.header.picker.currentData() == "other"


async def test_count_is_given_up_with_the_page_and_made_when_it_is_seen_again(demo: Opened, page: FilesPage) -> None:
    choose(page, "large")
    await until(lambda: COUNT in demo.context.tasks.names)
    page.hide()
    await until(lambda: not demo.context.tasks.names)
    assert page.rules.model.hits is None
    page.show()
    page.page_shown()
    await until(lambda: page.rules.model.hits is not None)
    assert page.rules.model.hits is not None
    assert page.rules.model.hits.files == FOLDERS * FILES


async def test_folder_that_is_read_while_the_page_is_hidden_is_not_counted(demo: Opened, page: FilesPage) -> None:
    page.hide()
    choose(page, "large")
    await until(lambda: not page.tree_model.is_reading and not demo.context.tasks.names)
    assert page.rules.model.hits is None
    page.show()
    page.page_shown()
    await until(lambda: page.rules.model.hits is not None)


async def test_folder_of_more_entries_than_are_listed_says_how_the_others_are_found(
    demo: Opened, page: FilesPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright_gui.session.files.MAX_ENTRIES", 10)
    assert MAX_ENTRIES > 10
    choose(page, "large")
    await until(lambda: not page.tree_model.is_reading)
    note = page.tree_model.index(10, 0)
    assert note.data(folder_tree.KIND) == "note"
    assert "the filter finds it" in str(note.data())
    await until(lambda: page.rules.model.hits is not None)


async def test_column_of_states_comes_with_the_first_thing_to_say_and_goes_with_the_source(
    demo: Opened, page: FilesPage
) -> None:
    choose(page, "large")
    await until(lambda: page.outside.is_on and not demo.context.tasks.names)
    assert page.outside.wait(3_600)
    tree = page.folder.tree
    assert tree.isColumnHidden(folder_tree.STATE)
    (demo.folder / "large" / "fresh.md").touch()
    await until(lambda: not tree.isColumnHidden(folder_tree.STATE))
    choose(page, "other")
    assert tree.isColumnHidden(folder_tree.STATE)
    await until(lambda: page.rules.model.hits is not None and not demo.context.tasks.names)


async def test_large_folder_is_shown_from_its_beginning_and_counted_once_it_is_read(
    demo: Opened, page: FilesPage
) -> None:
    for file in range(2 * folder_tree.PAGE + 10):
        (demo.folder / "large" / f"{file:05}.md").touch()
    shown: list[tuple[int, bool]] = []
    model = page.tree_model
    model.rearranged.connect(lambda: shown.append((model.rowCount(), COUNT in demo.context.tasks.names)))
    choose(page, "large")
    await until(lambda: page.rules.model.hits is not None and not demo.context.tasks.names)
    assert shown[0] == (folder_tree.PAGE + 1, False)
    assert "being looked at" not in str(model.index(folder_tree.PAGE, 0).data())
    assert page.rules.model.hits is not None
    assert page.rules.model.hits.files == FOLDERS * FILES + 2 * folder_tree.PAGE + 10
