"""Lines that the app draws by itself stand at the left, whichever way their letters run."""

import ast
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QColor, QImage, QPainter

import gatewright_gui
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.theme import Theme

HERE = Path(gatewright_gui.__file__).parent


@pytest.mark.parametrize("text", ["words", "كلمات", "מילים", "كلمات and words", "单词"])
def test_a_line_is_drawn_at_the_left_whichever_way_its_letters_run(theme: Theme, text: str) -> None:
    del theme
    image = QImage(QSize(600, 24), QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.drawText(QRect(0, 0, 600, 24), LEFT, line_text(painter.fontMetrics(), text, 600))
    painter.end()
    white = QColor("white").rgb()
    inked = [x for x in range(600) for y in range(24) if image.pixel(x, y) != white]
    assert min(inked) < 20
    assert max(inked) < 300


def test_no_line_is_drawn_at_the_left_of_its_own_way() -> None:
    found: list[str] = []
    for path in sorted(HERE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "drawText":
                said = ast.unparse(call)
                if "AlignLeft" in said and "AlignAbsolute" not in said:
                    found.append(f"{path.relative_to(HERE)}:{call.lineno}")
    assert found == []
