"""Files with blocks on the Files page: their states, and bringing block and disk into step by real clicks."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QPushButton

from gatewright_gui.pages.access.files import FilesPage, folder_tree
from gatewright_gui.qt.widget import CodeView
from tests.gui.files.support import SOURCE, Opened, until

PATH = "README.md"


def disk(demo: Opened) -> Path:
    return demo.folder / "workspace" / PATH


async def edit(demo: Opened, text: str) -> None:
    """Change the block past all levels, as if its file had been open to that before."""
    source = demo.document.workspace.sources.get(SOURCE)
    assert source is not None
    await asyncio.to_thread(source.append, PATH, text)


def said(page: FilesPage) -> str:
    return str(page.tree_model.index_of(PATH).siblingAtColumn(folder_tree.STATE).data())


async def conflict(demo: Opened, page: FilesPage) -> None:
    """The block got a line at its end, the disk one at its top."""
    await edit(demo, "from the block\n")
    disk(demo).write_text("from the disk\n" + disk(demo).read_text(encoding="utf-8"), encoding="utf-8")
    page.folder.refresh_button.click()
    await until(lambda: said(page) == "conflict")
    page.folder.select(PATH)


def click(page: FilesPage, strategy: str) -> None:
    button = page.decided.block.buttons[strategy]
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def block(demo: Opened) -> str:
    source = demo.document.workspace.sources.get(SOURCE)
    assert source is not None
    return source.read(PATH).content


async def dialog() -> QDialog:
    def found() -> list[QDialog]:
        return [w for w in QApplication.topLevelWidgets() if isinstance(w, QDialog) and w.isVisible()]

    await until(found)
    return found()[0]


async def test_states_are_said_as_they_come(demo: Opened, page: FilesPage) -> None:
    assert said(page) == ""
    await edit(demo, "more\n")
    page.folder.refresh_button.click()
    await until(lambda: said(page) == "unsaved")
    page.folder.select(PATH)
    assert page.decided.block.isVisible()
    assert "unsaved" in page.decided.block.accessibleName()
    assert not page.decided.block.buttons["merge"].isVisible()
    disk(demo).unlink()
    page.page_shown()
    await until(lambda: "gone" in page.decided.block.accessibleName())


async def test_block_of_a_conflict_stays_by_a_click(demo: Opened, page: FilesPage) -> None:
    await conflict(demo, page)
    click(page, "ours")
    await until(lambda: said(page) == "unsaved")
    assert "from the disk" not in block(demo)
    assert disk(demo).read_text(encoding="utf-8").startswith("from the disk")


async def test_disk_is_taken_only_after_a_question(demo: Opened, page: FilesPage) -> None:
    await conflict(demo, page)
    click(page, "theirs")
    asked = await dialog()
    asked.reject()
    await until(lambda: "files.reconcile" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    assert "from the block" in block(demo)
    click(page, "theirs")
    take = (await dialog()).findChild(QPushButton, "choice-take")
    assert take is not None
    take.click()
    await until(lambda: said(page) == "loaded")
    assert "from the block" not in block(demo)


async def settled_page(page: FilesPage) -> None:
    await until(lambda: not page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def agent_edits(demo: Opened) -> None:
    await edit(demo, "one more line\n")


async def somebody_writes(demo: Opened) -> None:
    disk(demo).write_text("all new\n", encoding="utf-8")


async def somebody_deletes(demo: Opened) -> None:
    disk(demo).unlink()


async def somebody_empties(demo: Opened) -> None:
    disk(demo).write_text("", encoding="utf-8")


@pytest.mark.parametrize("meanwhile", [agent_edits, somebody_writes, somebody_deletes, somebody_empties])
async def test_what_changed_while_the_question_was_open_is_not_taken(
    demo: Opened, page: FilesPage, meanwhile: Callable[[Opened], Awaitable[None]]
) -> None:
    await conflict(demo, page)
    click(page, "theirs")
    take = (await dialog()).findChild(QPushButton, "choice-take")
    assert take is not None
    await meanwhile(demo)
    before = block(demo)
    take.click()
    await until(lambda: any("changed meanwhile" in text for text in demo.said))
    assert block(demo) == before


@pytest.mark.parametrize("is_gone", [True, False])
async def test_edits_that_the_page_does_not_show_yet_are_not_thrown_away(
    demo: Opened, page: FilesPage, is_gone: bool
) -> None:
    shown = page.decided.block
    await edit(demo, "")
    page.folder.refresh_button.click()
    await until(lambda: said(page) == "loaded")
    page.folder.select(PATH)
    disk(demo).unlink() if is_gone else disk(demo).write_text("other\n", encoding="utf-8")
    page.page_shown()
    await until(lambda: ("gone:" if is_gone else "disk changed:") in shown.accessibleName())
    await settled_page(page)
    await edit(demo, "from the block\n")
    click(page, "theirs")
    await until(lambda: any("changed meanwhile" in text for text in demo.said))
    assert "from the block" in block(demo)

    page.page_shown()
    await settled_page(page)
    click(page, "theirs")  # now they are known, and asked about
    (await dialog()).reject()
    await settled_page(page)
    assert "from the block" in block(demo)


async def test_both_changes_are_merged_into_the_block_and_nothing_is_written(demo: Opened, page: FilesPage) -> None:
    await conflict(demo, page)
    click(page, "merge")
    await until(lambda: said(page) == "unsaved")
    assert block(demo).startswith("from the disk")
    assert block(demo).endswith("from the block\n")
    assert "from the block" not in disk(demo).read_text(encoding="utf-8")
    await until(lambda: any("merged" in text for text in demo.said))


async def test_both_changes_are_shown_side_by_side(demo: Opened, page: FilesPage) -> None:
    await conflict(demo, page)
    click(page, "ask")
    both = await dialog()
    views = {name: both.findChild(CodeView, name) for name in ("files.blockdiff", "files.diskdiff")}
    assert "+from the block" in getattr(views["files.blockdiff"], "text", "")
    assert "+from the disk" in getattr(views["files.diskdiff"], "text", "")
    both.accept()
    await until(lambda: "files.reconcile" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    assert said(page) == "conflict"


async def test_reading_of_a_folder_can_be_given_up(page: FilesPage) -> None:
    page.tree_model.fetchMore(page.tree_model.index_of("drafts"))
    page.folder.strip.cancel_requested.emit()
    drafts = page.tree_model.index_of("drafts")
    assert page.tree_model.index(0, 0, drafts).data() == "reading stopped; F5 reads again"
    page.folder.refresh_button.click()
    await until(lambda: page.tree_model.index_of("drafts/report.md").isValid())
