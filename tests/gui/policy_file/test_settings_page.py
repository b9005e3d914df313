"""The settings of the policy file: what the search leaves, and what the choices say that they do."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QWidget

from gatewright_gui.pages.policy_file.settings_pane import SettingsPage
from gatewright_gui.qt.language import tr
from gatewright_gui.session.settings_table import SECTIONS
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import settled, until


async def page_of(window: MainWindow) -> SettingsPage:
    window.show_page("settings")
    await settled(window)
    page = window.shelf.page("settings")
    assert isinstance(page, SettingsPage)
    return page


def is_seen(page: SettingsPage, name: str) -> bool:
    found = page.findChild(QWidget, f"settings.{name}")
    assert found is not None
    return found.isVisible()


async def test_the_search_leaves_the_settings_that_have_all_words_and_leads_to_the_first(window: MainWindow) -> None:
    page = await page_of(window)
    page.focus_search()
    await until(page.search.hasFocus)
    QTest.keyClicks(page.search, "time limit")
    assert is_seen(page, "defaults.timeout_s")
    assert not is_seen(page, "defaults.max_output_bytes")
    assert not is_seen(page, "workspace.name")

    QTest.keyClick(page.search, Qt.Key.Key_Down)
    field = page.findChild(QWidget, "settings.defaults.timeout_s")
    assert field is not None
    assert field.hasFocus()

    page.search.setText("no such words")
    assert is_seen(page, "nothing")
    page.search.clear()
    assert is_seen(page, "workspace.name")
    assert is_seen(page, "shell.room")
    assert not is_seen(page, "nothing")


async def test_what_only_reads_has_one_row_and_a_label_names_its_key(window: MainWindow) -> None:
    page = await page_of(window)
    labels = [one for one in page.findChildren(QLabel) if one.isVisible() and "that only read" in one.text()]
    assert [one.text() for one in labels] == ["Calls that only read"]
    assert labels[0].toolTip() == "In the policy file: read_only"
    assert page.reading.isVisible()
    page.search.setText("only read")
    assert page.reading.isVisible()
    page.search.setText("time limit")
    assert not page.reading.isVisible()


@pytest.mark.parametrize(
    ("at", "effect"),
    [(0, "You are asked before each."), (1, "They run without asking."), (3, "They are refused.")],
)
async def test_a_choice_says_what_it_does(window: MainWindow, at: int, effect: str) -> None:
    page = await page_of(window)
    choice = page.findChild(QComboBox, "settings.defaults.privileged")
    told = page.findChild(QLabel, "settings.defaults.privileged.effect")
    assert choice is not None
    assert told is not None
    choice.setCurrentIndex(at)
    choice.activated.emit(at)
    await settled(window)
    assert told.text() == effect


async def test_the_list_of_sections_leads_to_each_and_follows_the_scroll(window: MainWindow) -> None:
    page = await page_of(window)
    titles = [tr(section.title) for section in SECTIONS]
    assert [page.sections.item(at).text() for at in range(page.sections.count())] == titles
    assert page.sections.currentRow() == 0

    page.sections.setFocus()
    for _ in range(3):
        QTest.keyClick(page.sections, Qt.Key.Key_Down)
    bar, field = page.area.verticalScrollBar(), page.findChild(QWidget, "settings.shell.allow")
    assert field is not None
    assert page.sections.currentItem().text() == "Shell commands"
    assert 0 <= field.mapTo(page.area.viewport(), QPoint()).y() < page.area.viewport().height() // 2
    bar.setValue(0)
    assert page.sections.currentRow() == 0
    bar.setValue(bar.maximum())
    assert page.sections.currentItem().text() == titles[-1]

    page.search.setText("bot")
    assert [not page.sections.isRowHidden(at) for at in range(len(titles))] == [
        title.endswith("Discord") for title in titles
    ]
    window.resize(820, 700)
    await until(lambda: not page.sections.isVisible())


async def test_a_value_that_is_the_default_stands_in_its_field(window: MainWindow) -> None:
    page = await page_of(window)
    field = page.findChild(QLineEdit, "settings.defaults.max_output_bytes")
    told = page.findChild(QLabel, "settings.defaults.max_output_bytes.effect")
    assert field is not None
    assert told is not None
    assert (field.text(), told.text()) == ("16,384", "bytes (default: 16,384)")
    field.setText("20000")
    field.editingFinished.emit()
    assert window.document.policy.defaults.max_output_bytes == 20_000
    field.setText("")
    field.editingFinished.emit()
    assert (field.text(), window.document.policy.defaults.max_output_bytes) == ("16,384", 16_384)
