"""The faces and sizes of text: a family for the window, a monospaced one for code, paths and data; both are bundled."""

from functools import cache

from PySide6.QtGui import QFont, QFontDatabase

from gatewright_gui.qt.look import Tokens
from gatewright_resources import fonts

_UI = "Inter"
_MONO = "JetBrains Mono"


@cache
def _load_bundled() -> None:
    for data in fonts():
        QFontDatabase.addApplicationFontFromData(data)


def _font(family: str, fallback: QFontDatabase.SystemFont, pixels: int) -> QFont:
    """The family, and behind it what the system has for letters that the family lacks."""
    _load_bundled()
    font = QFont()
    font.setFamilies([family, *QFontDatabase.systemFont(fallback).families()])
    font.setPixelSize(pixels)
    # Names and values are shown letter by letter: no arrow drawn for `->`.
    font.setFeature(QFont.Tag("calt"), 0)
    return font


def ui_font(tokens: Tokens) -> QFont:
    """The face of the window; its figures are all equally wide, so that columns of numbers line up."""
    return _window_face(tokens.text_size)


def small_font(tokens: Tokens) -> QFont:
    """The face of the window, in the smaller size."""
    return _window_face(tokens.small_text_size)


def _window_face(pixels: int) -> QFont:
    font = _font(_UI, QFontDatabase.SystemFont.GeneralFont, pixels)
    font.setFeature(QFont.Tag("tnum"), 1)
    font.setFeature(QFont.Tag("cv05"), 1)  # a small L that is no capital I
    return font


def mono_font(tokens: Tokens) -> QFont:
    """The face of code, paths and data."""
    font = _font(_MONO, QFontDatabase.SystemFont.FixedFont, tokens.text_size)
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFixedPitch(True)
    return font
