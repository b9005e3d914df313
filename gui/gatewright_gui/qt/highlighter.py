"""Colours for the spans of a document, taken from the theme that is on.

It does not know any language; the tokenisers do.
"""

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from gatewright_gui.qt.look import Palette, current_look
from gatewright_gui.qt.syntax import NORMAL, TOKENISERS, Kind, Language

MAX_LINE = 20_000
"""Longer lines stay plain, so that one huge line cannot hold up the window."""


def _format(colour: str, ground: str | None = None, *, bold: bool = False) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(QColor(colour))
    if ground is not None:
        made.setBackground(QColor(ground))
    if bold:
        made.setFontWeight(QFont.Weight.Bold)
    return made


def formats(palette: Palette) -> dict[Kind, QTextCharFormat]:
    """One text format for each kind of span."""
    syntax = palette.syntax
    return {
        "key": _format(syntax.key),
        "string": _format(syntax.string),
        "number": _format(syntax.number),
        "keyword": _format(syntax.keyword),
        "punctuation": _format(syntax.punctuation),
        "comment": _format(syntax.comment),
        "heading": _format(palette.text, bold=True),
        "code": _format(syntax.string),
        "added": _format(palette.diff_added.fg, palette.diff_added.soft),
        "removed": _format(palette.diff_removed.fg, palette.diff_removed.soft),
        "hunk": _format(palette.accent.fg),
    }


class Highlighter(QSyntaxHighlighter):
    """Follows the theme; set `language` to choose the tokeniser."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._language: Language = "plain"
        self._formats = formats(current_look().palette)
        current_look().changed.connect(self._retint)

    @property
    def language(self) -> Language:
        """The language of the text."""
        return self._language

    def set_language(self, language: Language) -> None:
        """Colour the text as another language."""
        if language != self._language:
            self._language = language
            self.rehighlight()

    def _retint(self) -> None:
        self._formats = formats(current_look().palette)
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:  # noqa: N802
        """Colour one line."""
        if len(text) > MAX_LINE:
            self.setCurrentBlockState(NORMAL)
            return
        spans, state = TOKENISERS[self._language](text, max(self.previousBlockState(), NORMAL))
        self.setCurrentBlockState(state)
        units = _utf16_offsets(text)
        for span in spans:
            start, end = span.start, span.start + span.length
            if units is not None:
                start, end = units[start], units[end]
            self.setFormat(start, end - start, self._formats[span.kind])


def _utf16_offsets(text: str) -> list[int] | None:
    """Where each code point begins as Qt counts; None when both count alike."""
    if text.isascii() or max(text) <= "\uffff":
        return None
    offsets = [0]
    for letter in text:
        offsets.append(offsets[-1] + (2 if letter > "\uffff" else 1))
    return offsets
