"""The words of the line after an edit have the room that they ask for."""

import pytest
from PySide6.QtGui import QFont, QFontMetrics
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.window.impact_strip import StripText


@pytest.mark.parametrize("word", ["Undo", "Redo", "Rückgängig", "Wiederholen"])
def test_a_word_fits_the_room_that_it_asks_for(qtbot: QtBot, word: str) -> None:
    text = StripText("word")
    qtbot.addWidget(text)
    text.set_pieces([(0, word)], word)
    font = text.font()
    font.setWeight(QFont.Weight.DemiBold)
    room = text.sizeHint().width() - 2 * current_look().tokens.space_2
    assert line_text(QFontMetrics(font), word, room) == word
