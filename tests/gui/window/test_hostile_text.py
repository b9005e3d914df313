"""A workspace whose every name and text is HTML and turns its line around: the window shows just that text."""

import html
import json
import re
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractItemModel, QBuffer, QByteArray, QEvent, QIODevice, QModelIndex, QPoint, QSize, Qt
from PySide6.QtGui import QAction, QFontMetrics, QHelpEvent, QPainter, QPixmap, QTextLayout, QTextLine, QTextOption
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QLabel, QLineEdit, QToolTip, QWidget

from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.plaintext import LEFT_TO_RIGHT, LONGEST_TIP, line_text
from gatewright_gui.qt.prose import ProseLabel
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from gatewright_gui.window.palette import CommandPalette
from tests.gui.session.opened import opened_window, settled, until
from tests.support.hostile import hostile_workspace

CONTROL = Qt.KeyboardModifier.ControlModifier
ESCAPED = "\\u202e"
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
EMPTY = "\u3164\u2800\u115f\ufe01"


def hostile_policy(folder: Path) -> Path:
    """A workspace that loads, with a picture of one colour that every text would show."""
    picture = QPixmap(64, 64)
    picture.fill(Qt.GlobalColor.magenta)
    assert picture.save(str(folder / "pic.png"))
    text = f"\u202e<b>MARK</b><img src='file:{folder}/pic.png' width=200 height=200>&lt;\x9b2J{EMPTY} & more"
    policy = hostile_workspace(folder, text, description=text + " long" * 2_000, pattern="<b>MARK</b>\u202e*")
    (folder / "d/<b>MARK<").mkdir()
    (folder / f"d/<img src=x>\u202eMARK{EMPTY}&amp.txt").write_text(text, "utf-8")
    return policy


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(hostile_policy(tmp_path), tmp_path) as opened:
        yield opened


def unseen(text: str) -> list[str]:
    """The characters that nobody sees, or that turn others around, but for our mark where a sentence begins."""
    text = re.sub(f"^(<p [^>]*>)?{LEFT_TO_RIGHT}", "", text)
    kept = "\n\t\N{PARAGRAPH SEPARATOR}"
    return [hex(ord(c)) for c in text if c not in kept and (unicodedata.category(c) in UNSEEN or c in EMPTY)]


def painted(window: QWidget) -> list[str]:
    """Every text that a window draws."""
    content = QByteArray()
    device = QBuffer(content)
    device.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(device)
    generator.setSize(QSize(window.width(), window.height()))
    painter = QPainter(generator)
    window.render(painter, QPoint())
    painter.end()
    drawn = bytes(content.data()).decode("utf-8", "replace")
    return [html.unescape(one) for one in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]


def cells(model: QAbstractItemModel, parent: QModelIndex, depth: int = 0) -> list[QModelIndex]:
    """The first cells of a model, three levels deep."""
    found: list[QModelIndex] = []
    for row in range(min(model.rowCount(parent), 12)):
        found += [index for column in range(10) if (index := model.index(row, column, parent)).isValid()]
        if depth < 2:
            found += cells(model, model.index(row, 0, parent), depth + 1)
    return found


def has_rows(view: QAbstractItemView) -> bool:
    return bool(view.model()) and view.model().rowCount(QModelIndex()) > 0


def hover(view: QAbstractItemView, index: QModelIndex) -> QLabel | None:
    """The tooltip of a cell, as the mouse brings it up."""
    at = view.visualRect(index).center()
    if view.indexAt(at) != index:
        return None
    QToolTip.hideText()
    QApplication.sendEvent(view.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, view.viewport().mapToGlobal(at)))
    return shown_tip()


def shown_tip() -> QLabel | None:
    for one in QApplication.topLevelWidgets():
        if isinstance(one, QLabel) and one.metaObject().className() == "QTipLabel" and one.isVisible():
            return one
    return None


def check_labels(window: QWidget) -> None:
    for label in window.findChildren(QLabel):
        if isinstance(label, ProseLabel):
            assert "<img" not in QLabel.text(label)
        else:
            assert label.textFormat() is Qt.TextFormat.PlainText, (label.objectName(), label.text())
        assert not unseen(label.text() if not isinstance(label, ProseLabel) else QLabel.text(label)), label.objectName()
    for button in window.findChildren(QAbstractButton):
        assert not unseen(button.text()), button.objectName()
        assert "& " not in button.text().replace("&&", ""), button.objectName()
    for action in window.findChildren(QAction):
        assert not unseen(action.text()), action.text()
    assert not unseen(window.windowTitle())


def check_tips(window: MainWindow) -> int:
    told = 0
    for view in window.findChildren(QAbstractItemView):
        if not view.isVisible() or not has_rows(view):
            continue
        for index in cells(view.model(), QModelIndex()):
            if (tip := hover(view, index)) is not None:
                told += "MARK" in tip.text()
                assert tip.textFormat() is Qt.TextFormat.PlainText
                assert not unseen(tip.text())
                assert len(tip.text()) < 2 * LONGEST_TIP
    for one in window.findChildren(QWidget):
        assert not unseen(one.toolTip()), one.objectName()
        assert len(one.toolTip()) < 2 * LONGEST_TIP
    QToolTip.hideText()
    return told


async def test_no_page_draws_a_strangers_text_as_anything_else(window: MainWindow) -> None:
    assert not any(one.is_error for one in window.document.problems)
    assert window.width() == 1280, "a name makes the window wider"
    marks = told = 0
    for page in all_rows():
        window.show_page(page.key)
        await settled(window)
        for view in window.findChildren(QAbstractItemView):
            if view.isVisible() and has_rows(view):
                view.setCurrentIndex(view.model().index(0, 0, QModelIndex()))
                getattr(view, "expandAll", lambda: None)()
        await settled(window)
        check_labels(window)
        texts = painted(window)
        if page.key not in {"text", "settings"}:  # the cursor stands in a field there, which shows what one types
            assert [(text, page.key) for text in texts if unseen(text)] == []
        marks += sum("MARK" in text for text in texts)
        told += check_tips(window)
    assert marks > 10
    assert told > 4


async def test_a_call_with_hostile_arguments_is_told_as_plain_text(window: MainWindow) -> None:
    window.show_page("try")
    page = window.shelf.page("try")
    assert isinstance(page, TrialPage)
    await settled(window)
    text = "<b>MARK</b>\u202e\x9b2J"
    for tool, arguments in (
        ("t", {"op": text, text: text}),
        ("file", {"op": "read", "path": text}),
        ("file", {"op": text}),
    ):
        page.request.choose_tool(tool)
        page.request.mode.set_current("json")
        page.request.raw.set_text(json.dumps(arguments))
        count = len(page.console.records)
        page.decide()
        await until(lambda count=count: len(page.console.records) > count and not page.console.is_busy)
        await settled(window)
        check_labels(window)
        texts = painted(window)
        assert [one for one in texts if unseen(one)] == []
        check_tips(window)


async def test_the_palette_finds_a_strangers_name_as_plain_text(window: MainWindow) -> None:
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_K, CONTROL)
    field = window.findChild(QLineEdit, "palette.search")
    assert field is not None
    QTest.keyClicks(field, "MARK")
    await settled(window)
    palette = window.findChild(CommandPalette, "palette")
    assert palette is not None
    texts = painted(palette)
    assert any(ESCAPED in text for text in texts)
    assert [text for text in texts if unseen(text)] == []


def test_dots_of_a_name_from_right_to_left_stand_where_it_goes_on(qapp: QApplication) -> None:
    name = "\u0645\u0634\u063a\u0644_\u0627\u0644\u0646\u0638\u0627\u0645_\u0627\u0644\u0631\u0626\u064a\u0633\u064a"
    cut = line_text(QFontMetrics(qapp.font()), name, 60)
    layout, option = QTextLayout(cut, qapp.font()), QTextOption()
    option.setTextDirection(Qt.LayoutDirection.LeftToRight)
    layout.setTextOption(option)
    layout.beginLayout()
    line = layout.createLine()
    layout.endLayout()

    dots, letter = cut.index("\u2026"), 1
    assert x_of(line, dots) < x_of(line, letter)


def x_of(line: QTextLine, at: int) -> float:
    place: Any = line.cursorToX(at)  # with the place in the text
    return float(place[0])


async def test_names_of_hundreds_of_letters_leave_the_window_as_narrow_as_it_was(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(f'gatewright = 1\n[agents.{"x" * 300}]\n[agents."{"整" * 150}"]\n', "utf-8")
    async with opened_window(policy, tmp_path) as opened:
        for key in ("tools", "problems"):
            opened.show_page(key)
            await settled(opened)
            assert opened.minimumSizeHint().width() <= 1024, key
