"""A listing: what is chosen, sought and done in it, by mouse and keys."""

import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.listing import REST, Column, Listing, ListingModel, Verb
from gatewright_gui.qt.table_model import MOST_MOVES
from gatewright_gui.qt.widget.empty_state import EmptyState

COLUMNS: tuple[Column[str], ...] = (
    Column("Name", lambda row: row, REST, is_prose=True),
    Column("Letters", lambda row: str(len(row)), tip=lambda row: f"{len(row)} letters", is_number=True),
)
FRUITS = ("apple", "banana", "cherry", "damson")


class Fruits:
    """Fruits that can be eaten, one or several."""

    def __init__(self, qtbot: QtBot, *, is_many: bool = False, chooses: bool = False) -> None:
        self.model = ListingModel(COLUMNS)
        self.tester = QAbstractItemModelTester(self.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
        self.eaten: list[tuple[str, ...]] = []
        nothing = EmptyState("check", "No fruit", "")
        self.list = Listing(self.model, "fruits", "Fruits", nothing, self.offer, is_many=is_many, chooses=chooses)
        self.search, self.button = self.list.search_field("fruits.search"), self.list.button("eat")
        for part in (self.list, self.search, self.button):
            qtbot.addWidget(part)
        self.list.show()

    def offer(self) -> list[Verb]:
        chosen = self.list.chosen
        words = f"Eat {' & '.join(chosen)}"
        return [Verb("eat", words, lambda: self.eaten.append(chosen), keys="Del")] if chosen else []

    def choose(self, *fruits: str) -> None:
        selection = self.list.view.selectionModel()
        for fruit in fruits:
            index = self.model.index(self.model.find(fruit), 0)
            selection.select(index, selection.SelectionFlag.Select | selection.SelectionFlag.Rows)


@pytest.mark.parametrize(
    "after", [("banana", "cherry"), ("fig", *FRUITS, "grape"), ("cherry", "banana"), ("apricot", "banana")]
)
def test_what_is_chosen_stays_chosen_whatever_comes_and_goes(qtbot: QtBot, after: tuple[str, ...]) -> None:
    fruits = Fruits(qtbot, is_many=True)
    fruits.list.show_rows(FRUITS)
    fruits.choose("banana")
    fruits.list.show_rows(after)
    assert fruits.list.chosen == ("banana",)
    assert [fruits.model.index(row, 0).data() for row in range(fruits.model.rowCount())] == list(after)


def test_rows_that_stay_are_moved_and_not_made_anew(qtbot: QtBot) -> None:
    fruits = Fruits(qtbot)
    fruits.list.show_rows(FRUITS)
    kept = QPersistentModelIndex(fruits.model.index(2, 0))
    fruits.list.show_rows(("avocado", "banana", "cherry", "elder"))
    assert kept.data() == "cherry"
    assert kept.row() == 2


def test_many_changes_at_once_keep_the_current_row_too(qtbot: QtBot) -> None:
    every = tuple(f"fruit {at}" for at in range(4 * MOST_MOVES))
    fruits = Fruits(qtbot, chooses=True)
    fruits.list.show_rows(every)
    assert fruits.list.current == "fruit 0"
    fruits.list.choose(100)
    fruits.list.show_rows(every[::2])
    assert fruits.list.current == "fruit 100"
    fruits.list.show_rows(every[1::2])
    assert fruits.list.current == "fruit 101", "what stands in its place"


def test_search_shows_the_rows_that_have_every_word_and_down_leads_to_them(qtbot: QtBot) -> None:
    fruits = Fruits(qtbot)
    fruits.list.show_rows(FRUITS)
    QTest.keyClicks(fruits.search, "6 N")
    assert fruits.model.rows == ("banana", "damson")
    QTest.keyClicks(fruits.search, "o fruit")
    assert fruits.list.currentWidget() is fruits.list.view, "there are fruits, though none fits"
    QTest.keyClick(fruits.search, Qt.Key.Key_Escape)
    assert fruits.model.rows == FRUITS


def test_without_rows_it_says_that_there_are_none_once_that_is_known(qtbot: QtBot) -> None:
    fruits = Fruits(qtbot)
    fruits.list.show_rows((), is_known=False)
    assert fruits.list.currentWidget() not in {fruits.list.view, fruits.list.empty}
    fruits.list.show_rows(())
    assert fruits.list.currentWidget() is fruits.list.empty
    fruits.list.show_rows(FRUITS)
    assert fruits.list.currentWidget() is fruits.list.view


def test_a_verb_is_a_button_a_key_and_a_row_of_the_menu_while_it_is_offered(qtbot: QtBot) -> None:
    fruits = Fruits(qtbot, is_many=True)
    fruits.list.show_rows(FRUITS)
    view = fruits.list.view
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert not fruits.button.isVisible()
    assert fruits.eaten == []

    fruits.choose("apple", "cherry")
    assert fruits.button.text() == "Eat apple && cherry"
    QTest.mouseClick(fruits.button, Qt.MouseButton.LeftButton)
    QTest.keyClick(view, Qt.Key.Key_Delete)
    view.customContextMenuRequested.emit(view.visualRect(fruits.model.index(0, 0)).center())
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert [action.text() for action in menu.actions()] == ["Eat apple && cherry\tDel"]
    menu.actions()[0].trigger()
    menu.close()
    assert fruits.eaten == [("apple", "cherry")] * 3


def test_a_cell_tells_what_its_column_says_else_the_row_in_whole(qtbot: QtBot) -> None:
    fruits = Fruits(qtbot)
    fruits.list.show_rows(FRUITS)
    name, letters = (fruits.model.index(0, column) for column in range(2))
    assert [one.data(Qt.ItemDataRole.ToolTipRole) for one in (name, letters)] == ["apple, 5", "5 letters"]
    assert name.data(Qt.ItemDataRole.AccessibleTextRole) == "apple, 5"
    assert letters.data(Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight.value
