"""Sentences with code in them: their parts, a line of them painted, a label."""

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QFont, QImage, QPainter

from gatewright_gui.qt.prose import ProseLabel, paint_prose, pieces, plain
from gatewright_gui.qt.widget import ProseLine
from gatewright_gui.theme import Theme


def painted(text: str, width: int) -> QImage:
    image = QImage(width, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setFont(QFont("DejaVu Sans", 10))
    paint_prose(painter, QRect(0, 0, width, 20), text)
    painter.end()
    return image


def inked(image: QImage) -> int:
    """The last column that is not white."""
    white = QColor("white").rgb()
    columns = [x for x in range(image.width()) for y in range(image.height()) if image.pixel(x, y) != white]
    return max(columns, default=-1)


def test_what_stands_in_backticks_is_code() -> None:
    assert list(pieces("`a` needs `b c`: no")) == [("a", True), (" needs ", False), ("b c", True), (": no", False)]
    assert list(pieces("an odd ` and a\n` line")) == [("an odd ` and a\n` line", False)]
    assert plain("`a` needs `b`") == "a needs b"
    assert list(pieces("")) == []


def test_code_is_painted_in_its_own_face_and_a_long_line_stays_in_its_room(theme: Theme) -> None:
    del theme
    assert painted("needs content", 300) != painted("needs `content`", 300)
    assert painted("needs `content`", 300) == painted("needs `content`", 300)
    long = painted("a call that leaves out `when` and then `some.thing` more", 90)
    assert inked(long) < 90
    at_the_seam = [inked(painted("abc `def` ghi jkl", width)) for width in range(20, 90)]
    assert all(end < width for end, width in zip(at_the_seam, range(20, 90), strict=True))


def test_label_shows_no_markup_of_what_it_is_given(theme: Theme) -> None:
    del theme
    label = ProseLabel()
    label.setText("`<b>x</b>` & <i>y</i>\nnext")
    assert label.text() == "`<b>x</b>` & <i>y</i>\nnext"
    assert label.accessibleName() == "<b>x</b> & <i>y</i>\nnext"
    shown = label.grab().toImage()
    label.setText("<b>x</b> & <i>y</i>\nnext")
    assert label.grab().toImage() != shown  # the face of code
    line = ProseLine()
    line.set_text("`op` is\nnot there")
    assert (line.text, line.accessibleName()) == ("`op` is not there", "op is not there")


@pytest.mark.parametrize("width", range(160, 420, 20))
def test_a_long_name_loses_its_middle_and_not_the_words_behind_it(theme: Theme, width: int) -> None:
    del theme
    name = "a_server_with_a_long_name." + "get_and_then_set_" * 5
    short = painted("`x` may", width)
    assert inked(painted(f"`{name}` may", width)) > inked(short)  # it is as long as there is room
    words = [painted(f"`{name}` {verb}", width) for verb in ("may", "can", "will")]
    assert len({bytes(image.constBits()) for image in words}) == 3
