"""Folding, finding and colouring in a code view, by keys and mouse."""

import json
import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.fold import Foldable, Folded
from gatewright_gui.qt.widget.code_view import CodeView
from tests.gui.session.opened import turn_until
from tests.gui.watchdog.watching import LIMIT_S
from tests.support.patience import in_time

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
LEFT, PLAIN = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
SCHEMA = {"name": "file", "inputSchema": {"type": "object", "properties": {"op": {"type": "string"}, "é😀": {"a": 1}}}}
TEXT = json.dumps(SCHEMA, indent=2, ensure_ascii=False)
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("get", "put")]


@pytest.fixture
def view(qtbot: QtBot, theme: object) -> CodeView:
    del theme
    made = CodeView("Schema")
    qtbot.addWidget(made)
    made.resize(420, 320)
    made.show()
    made.set_json(TEXT)
    return made


def line_with(view: CodeView, words: str) -> int:
    return next(number for number, line in enumerate(view.editor.lines) if words in line)


def put_cursor(view: CodeView, words: str) -> None:
    view.go_to_line(line_with(view, words) + 1)


def rows(view: CodeView) -> list[str]:
    return view.editor.toPlainText().split("\n")


def test_keys_fold_what_the_cursor_is_in_and_unfold_it_again(view: CodeView) -> None:
    put_cursor(view, '"op"')
    QTest.keyClick(view.editor, Qt.Key.Key_BracketLeft, CTRL | SHIFT)
    assert '      "op": {… 1 line},' in rows(view)
    QTest.keyClick(view.editor, Qt.Key.Key_BraceLeft, CTRL | SHIFT)
    assert '    "properties": {… 6 lines}' in rows(view)
    QTest.keyClick(view.editor, Qt.Key.Key_BracketRight, CTRL | SHIFT)
    assert '      "op": {… 1 line},' in rows(view)
    put_cursor(view, '"op"')
    QTest.keyClick(view.editor, Qt.Key.Key_Minus, CTRL)
    assert view.editor.toPlainText() == TEXT
    QTest.keyClick(view.editor, Qt.Key.Key_Minus, CTRL)
    assert '      "op": {… 1 line},' in rows(view)


def test_arrow_and_the_words_of_a_fold_take_clicks(view: CodeView) -> None:
    numbers = view.editor.numbers

    QTest.mouseClick(numbers, LEFT, PLAIN, numbers.arrow_rect(line_with(view, '"properties"')).center())

    assert '    "properties": {… 6 lines}' in rows(view)
    cursor = view.editor.textCursor()
    cursor.movePosition(cursor.MoveOperation.EndOfBlock)
    assert cursor.block().text() == '    "properties": {… 6 lines}'
    rect = view.editor.cursorRect(cursor)
    QTest.mouseClick(view.editor.viewport(), LEFT, PLAIN, rect.center() - QPoint(12, 0))
    assert view.editor.toPlainText() == TEXT


def test_all_is_folded_and_unfolded_and_lines_keep_their_numbers(view: CodeView) -> None:
    QTest.keyClick(view.editor, Qt.Key.Key_Underscore, CTRL | SHIFT)
    assert rows(view) == ["{", '  "name": "file",', '  "inputSchema": {… 9 lines}', "}"]
    view.go_to_line(TEXT.count("\n") + 1)
    assert view.editor.current_line == TEXT.count("\n")
    assert view.editor.textCursor().blockNumber() == 3
    QTest.keyClick(view.editor, Qt.Key.Key_Plus, CTRL | SHIFT)
    assert view.editor.toPlainText() == TEXT


def test_fold_stays_when_lines_before_it_change_and_copying_takes_all_of_it(view: CodeView) -> None:
    put_cursor(view, '"op"')
    QTest.keyClick(view.editor, Qt.Key.Key_BracketLeft, CTRL | SHIFT)
    new = json.dumps({"title": "t", "description": "d", **SCHEMA}, indent=2, ensure_ascii=False)

    view.set_json(new)

    assert '      "op": {… 1 line},' in rows(view)
    QTest.mouseClick(view.copy_button, LEFT)
    assert QGuiApplication.clipboard().text() == new
    view.editor.selectAll()
    view.editor.copy()
    assert QGuiApplication.clipboard().text() == new


def test_parts_of_a_list_fold_by_name_so_that_one_that_goes_changes_no_other() -> None:
    text = Foldable.json(json.dumps(TOOLS, indent=2))
    put = next(fold for fold in text.folds.values() if fold.name == "put")
    alone = Foldable.json(json.dumps(TOOLS[1:], indent=2))

    assert Folded(alone, {put.path}).rows == ["[", '  { "put" … 7 lines }', "]"]


def test_find_opens_what_it_finds_and_f3_goes_on(view: CodeView) -> None:
    QTest.keyClick(view.editor, Qt.Key.Key_Underscore, CTRL | SHIFT)
    QTest.keyClick(view.editor, Qt.Key.Key_F, CTRL)
    QTest.keyClicks(view.find_bar.field, "TYPE")
    assert view.find_bar.count.text() == "1 of 2"
    QTest.keyClick(view.find_bar.field, Qt.Key.Key_F3)
    assert view.find_bar.count.text() == "2 of 2"
    assert '"type": "string"' in view.editor.textCursor().block().text()
    QTest.keyClick(view.editor, Qt.Key.Key_F3, SHIFT)
    assert view.find_bar.count.text() == "1 of 2"
    assert len(view.editor.extraSelections()) == 2


def test_new_text_counts_the_hits_anew_without_scrolling(view: CodeView) -> None:
    view.open_find()
    QTest.keyClicks(view.find_bar.field, "type")
    QTest.keyClick(view.find_bar.field, Qt.Key.Key_F3)
    place = view.editor.textCursor().position()

    view.set_json(TEXT.replace('"a": 1', '"a": "type"'))

    assert view.find_bar.count.text() == "2 of 3"
    assert view.editor.textCursor().position() == place


def long_json(tools: int = 1_100, *, without: int = -1) -> str:
    properties = {f"p{n}": {"type": "string", "description": "x"} for n in range(6)}
    named = [f"t{n}" for n in range(tools) if n != without]
    return json.dumps([{"name": name, "inputSchema": {"properties": properties}} for name in named], indent=2)


def whole(view: CodeView) -> list[str]:
    turn_until(lambda: not view.editor.is_filling, "the whole text")
    return rows(view)


def test_long_json_comes_folded_and_is_coloured_where_it_is_seen(view: CodeView, qtbot: QtBot) -> None:
    text = Foldable.json(long_json())
    assert len(text.lines) > 30_000

    view.set_json(text)

    assert rows(view)[1].startswith('  { "t0" …')
    assert len(whole(view)) == 1_102
    view.editor.grab()
    first, last = (view.editor.document().findBlockByNumber(row) for row in (1, 1_000))
    assert first.layout().formats()
    assert not last.layout().formats()


def test_nothing_that_one_does_with_a_long_text_holds_up_the_window(view: CodeView, qtbot: QtBot) -> None:
    text, other = Foldable.json(long_json()), Foldable.json(long_json(without=700))
    bar = view.editor.verticalScrollBar()
    doings: dict[str, Callable[[], None]] = {
        "show it": lambda: view.set_json(text),
        "unfold all": view.editor.unfold_all,
        "scroll": lambda: bar.setValue(bar.maximum() // 2),
        "show another": lambda: view.set_json(other),
        "close one": view.editor.fold_here,
        "open one": view.editor.unfold_here,
        "find": lambda: view.find_bar.field.setText("type"),
        "fold all": view.editor.fold_all,
        "unfold it again": view.editor.unfold_all,
    }
    view.open_find()
    for name, do in doings.items():
        began = time.thread_time()
        do()
        took = time.thread_time() - began
        whole(view)
        assert in_time(took, LIMIT_S), name
    assert rows(view) == list(other.lines)


def test_rows_that_come_later_are_numbered_and_reached_at_once(view: CodeView, qtbot: QtBot) -> None:
    text = Foldable.json(long_json())
    view.set_json(text)
    whole(view)
    view.editor.unfold_all()
    assert view.editor.is_filling

    view.go_to_line(9_000)
    assert view.editor.textCursor().selectedText() == text.lines[8_999]
    assert view.editor.current_line == 8_999
    assert view.editor.is_filling
    view.editor.moveCursor(QTextCursor.MoveOperation.End)
    assert view.editor.current_line == len(text.lines) - 1
    view.editor.selectAll()
    view.editor.copy()
    assert QGuiApplication.clipboard().text() == text.text
    assert whole(view) == list(text.lines)


def test_a_text_that_changes_while_it_still_comes_is_right_at_the_end(view: CodeView, qtbot: QtBot) -> None:
    texts = [Foldable.json(long_json(400, without=gone)) for gone in (-1, 5, 350)]
    view.set_json(texts[0])
    view.editor.unfold_all()
    for text in texts[1:]:
        assert view.editor.is_filling
        view.set_json(text)
    assert whole(view) == list(texts[-1].lines)


def test_cursor_far_below_follows_when_its_line_has_come(view: CodeView, qtbot: QtBot) -> None:
    text = Foldable.json(long_json())
    view.set_json(text)
    view.go_to_line(len(text.lines) - 40)
    place = view.editor.current_line
    whole(view)
    view.editor.unfold_all()
    assert view.editor.is_filling
    assert view.editor.current_line == place
    whole(view)
    assert view.editor.textCursor().block().text() == text.lines[place]
    assert view.editor.viewport().rect().contains(view.editor.cursorRect())


@pytest.mark.parametrize("letter", ["\u2029", "\u2028", "\ufdd0", "\ufdd1"])
def test_separators_within_strings_do_not_shift_the_numbers_nor_the_folds(view: CodeView, letter: str) -> None:
    text = f'{{\n "a": "x{letter}y",\n "b": {{\n  "c": 1\n }}\n}}'
    view.set_json(text)
    put_cursor(view, '"c"')
    assert '"c"' in view.editor.textCursor().block().text()
    assert view.editor.current_line == text[: text.index('"c"')].count("\n")
    view.editor.fold_here()
    assert view.editor.textCursor().block().text() == ' "b": {… 1 line}'
    assert view.text == text
