"""The faces and sizes of text: one family for the window, a monospaced one for code, paths and numbers."""

from PySide6.QtGui import QFont, QFontDatabase

from gatewright_gui.qt.look import Tokens

UI_FAMILIES = ("Inter", "Segoe UI", "Noto Sans", "Cantarell", "Ubuntu", "DejaVu Sans")
MONO_FAMILIES = ("JetBrains Mono", "Cascadia Mono", "Menlo", "Consolas", "Noto Sans Mono", "DejaVu Sans Mono")


def _present(wanted: tuple[str, ...], fallback: QFontDatabase.SystemFont) -> list[str]:
    here = set(QFontDatabase.families())
    found = [family for family in wanted if family in here]
    return [*found, *QFontDatabase.systemFont(fallback).families()]


def _font(families: list[str], pixels: int) -> QFont:
    font = QFont()
    font.setFamilies(families)
    font.setPixelSize(pixels)
    return font


def ui_families() -> list[str]:
    """Families of window text that this machine has, best first."""
    return _present(UI_FAMILIES, QFontDatabase.SystemFont.GeneralFont)


def mono_families() -> list[str]:
    """Monospaced families that this machine has, best first."""
    return _present(MONO_FAMILIES, QFontDatabase.SystemFont.FixedFont)


def ui_font(tokens: Tokens) -> QFont:
    """The face of the window."""
    return _font(ui_families(), tokens.text_size)


def small_font(tokens: Tokens) -> QFont:
    """The face of the window, in the smaller size."""
    return _font(ui_families(), tokens.small_text_size)


def mono_font(tokens: Tokens) -> QFont:
    """The face of code, paths and numbers."""
    font = _font(mono_families(), tokens.text_size)
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setFixedPitch(True)
    return font
