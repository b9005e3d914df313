"""Text of strangers as widgets show it: plain, what is unprintable as `\\uXXXX`, never endlessly long."""

import unicodedata

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from gatewright.workspace.api import printable

LONGEST = 10_000
LONGEST_LINE = 1_000
LONGEST_TIP = 2_000
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignVCenter
"""The place where a line is drawn: at the left, whichever way its letters run, below names that stand there."""
LEFT_TO_RIGHT = "\u200e"
"""A mark without width: a sentence of ours that begins with a name in Arabic or Hebrew runs from left to right."""
_RIGHT_TO_LEFT = "\u200f"
"""A mark without width: in a row that runs from left to right, the dots before it belong to the words before them."""


def label_text(text: str, limit: int = LONGEST, *, keep: str = "\n\t") -> str:
    """`text` for a label: of more than `limit` characters its beginning and end; `keep`: what is not escaped."""
    return printable(_cut(text, limit), keep=keep)


def line_text(
    metrics: QFontMetrics, text: str, width: int, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
) -> str:
    """The part of one line that fits into `width` pixels; a line break in it is escaped too.

    Qt would also cut what is wider only by a part of a pixel than its metrics say, which is the room that asks for it.
    """
    line = label_text(text, LONGEST_LINE, keep="")
    if metrics.horizontalAdvance(line) <= width:
        return line
    cut = metrics.elidedText(line, mode, width)
    return f"{cut}{_RIGHT_TO_LEFT}" if cut.endswith("\u2026") and _runs_left(cut) else cut


def _runs_left(text: str) -> bool:
    """Tell whether the first letter with a direction goes from right to left."""
    ways = (unicodedata.bidirectional(letter) for letter in text)
    return next((way for way in ways if way in {"L", "R", "AL"}), "L") != "L"


def tip_text(text: str) -> str:
    """`text` for a tooltip."""
    return label_text(text, LONGEST_TIP)


def button_text(text: str) -> str:
    """`text` for a button, a menu or a box: an `&` in it is no key."""
    return label_text(text, LONGEST_LINE, keep="\t").replace("&", "&&")


def title_text(text: str) -> str:
    """`text` for the title of a window: a `[*]` in it is no mark of unsaved changes."""
    return label_text(text, LONGEST_LINE, keep="").replace("[*]", "[*][*]")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail]} \u2026 {text[-tail:]}"
