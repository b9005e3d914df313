from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView, QToolButton

from gatewright_gui.models.palette import MAX_ROWS, PaletteEntry, PaletteModel
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.palette import CommandPalette
from tests.gui.session.opened import settled

CONTROL = Qt.KeyboardModifier.ControlModifier


def entry(text: str, kind: str = "tool", detail: str = "") -> PaletteEntry:
    return PaletteEntry(kind, text, detail, "wrench", "", text)


def shown(model: PaletteModel) -> list[str]:
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def open_palette(window: MainWindow) -> CommandPalette:
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_K, CONTROL)
    palette = window.findChild(CommandPalette, "palette")
    assert palette is not None
    assert palette.isVisible()
    return palette


def type_in(window: MainWindow, text: str) -> None:
    field = window.findChild(QLineEdit, "palette.search")
    assert field is not None
    assert field.hasFocus()
    QTest.keyClicks(field, text)


def press(window: MainWindow, key: Qt.Key) -> None:
    field = window.findChild(QLineEdit, "palette.search")
    assert field is not None
    QTest.keyClick(field, key)


def test_best_rows_come_first() -> None:
    model = PaletteModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_entries([entry("web_file"), entry("profile"), entry("notes", detail="a file of notes"), entry("file")])

    model.set_search("file")

    assert shown(model) == ["file", "web_file", "profile", "notes"]


def test_every_word_has_to_be_there_and_the_list_is_bounded() -> None:
    model = PaletteModel()
    model.set_entries([entry(f"tool {number}") for number in range(3 * MAX_ROWS)])

    model.set_search("")
    assert model.rowCount() == MAX_ROWS
    model.set_search("tool 299")
    assert shown(model) == ["tool 299"]
    model.set_search("tool xyz")
    assert shown(model) == []


def test_sign_before_the_words_leaves_commands_only() -> None:
    model = PaletteModel()
    model.set_entries([entry("save"), entry("Save", kind="command")])

    model.set_search(">save")

    assert shown(model) == ["Save"]


async def test_typed_tool_is_shown_for_the_chosen_agent(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    window.show_page("text")
    open_palette(window)

    type_in(window, "file.delete")
    press(window, Qt.Key.Key_Return)
    await settled(window)

    assert window.shelf.current_key == "tools"
    assert (window.selection.agent_id, window.selection.tool, window.selection.operation) == (
        "operator",
        "file",
        "delete",
    )


async def test_command_runs_and_disabled_ones_are_not_listed(window: MainWindow) -> None:
    palette = open_palette(window)
    texts = shown(palette.model)
    assert "Save" not in texts
    assert any(text.startswith("Add agent") for text in texts)

    type_in(window, "go to files")
    press(window, Qt.Key.Key_Return)
    await settled(window)

    assert not palette.isVisible()
    assert window.shelf.current_key == "files"


async def test_arrows_move_and_escape_gives_the_keys_back(window: MainWindow) -> None:
    before = QApplication.focusWidget()
    palette = open_palette(window)
    view = palette.findChild(QListView, "palette.list")
    assert view is not None

    press(window, Qt.Key.Key_Down)
    assert view.currentIndex().row() == 1
    press(window, Qt.Key.Key_Escape)

    assert not palette.isVisible()
    assert QApplication.focusWidget() is before


async def test_button_opens_it_and_a_click_elsewhere_closes_it(window: MainWindow) -> None:
    button = window.findChild(QToolButton, "top.palette")
    assert button is not None
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    palette = window.findChild(CommandPalette, "palette")
    assert palette is not None
    assert palette.isVisible()

    window.shelf.focus_current()

    assert not palette.isVisible()
