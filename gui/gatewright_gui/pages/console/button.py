"""Buttons of the Console: with words, as a link, or only an icon."""

from collections.abc import Callable

from PySide6.QtWidgets import QPushButton

from gatewright_gui.qt.layout import named
from gatewright_gui.qt.widget import IconButton

Act = Callable[[], object]


def text_button(text: str, name: str, act: Act, tip: str = "", *, spoken: str = "", kind: str = "") -> QPushButton:
    """`name`: of the object; `spoken`: its accessible name where the text alone says too little; `kind`: its style."""
    button = named(QPushButton(text), name, spoken=spoken or text, tip=tip, kind=kind)
    button.setAutoDefault(False)
    button.clicked.connect(lambda _=False: act())
    return button


def icon_button(icon: str, words: str, name: str, act: Act) -> IconButton:
    """A flat button without text; `words` are its tooltip and its accessible name."""
    button = named(IconButton(icon, words), name)
    button.clicked.connect(lambda _=False: act())
    return button
