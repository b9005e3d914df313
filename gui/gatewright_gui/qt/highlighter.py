"""Colours for the spans of a document, taken from the theme that is on.

A long text is coloured where it comes into view only.
"""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject
from PySide6.QtGui import (
    QColor,
    QFont,
    QSyntaxHighlighter,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLayout,
)

from gatewright_gui.qt.linediff import ChangedLetters
from gatewright_gui.qt.look import Palette, current_look
from gatewright_gui.qt.syntax import NORMAL, TOKENISERS, Kind, Language, toml_state

IN_VIEW: frozenset[Language] = frozenset({"plain", "json", "toml", "diff", "quiet", "readable"})
"""Languages in which a line needs none of those before it, or only to know in which TOML string it begins."""
STRONGER = 0.16
"""How much of the words' colour goes into the ground of changed letters; more would cost contrast."""

MAX_LINE = 20_000
"""Longer lines stay plain, so that one huge line cannot hold up the window."""


def _format(colour: str, ground: str | None = None, *, bold: bool = False) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(QColor(colour))
    if ground is not None:
        made.setBackground(QColor(ground))
    if bold:
        made.setFontWeight(QFont.Weight.DemiBold)
    return made


def formats(palette: Palette) -> dict[Kind, QTextCharFormat]:
    """One text format for each kind of span."""
    syntax, gone = palette.syntax, _format(palette.muted)
    gone.setFontStrikeOut(True)
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
        "gone": gone,
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

    def rest(self) -> None:
        """Let go of the document: something else colours it."""
        self.setDocument(None)  # pyright: ignore[reportArgumentType] Qt takes none, the stubs do not

    def wake(self, document: QTextDocument) -> None:
        """Colour the document again, all of it, now."""
        if self.document() is not document:
            self.setDocument(document)
            self.rehighlight()

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


class ViewHighlighter(QObject):
    """Colours the lines that are in view, when they come into view; `colour` is to be called before they are painted.

    A line keeps the number of the colours it has as its state; every change of text, language or theme is a new number.
    """

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._document = document
        self._language: Language = "plain"
        self._letters: dict[int, list[ChangedLetters]] = {}
        self._formats = formats(current_look().palette)
        self._round = 1000  # beyond the states of any tokeniser
        self._is_colouring = False
        document.contentsChange.connect(self._forget_states)
        current_look().changed.connect(self._retint)

    def set_language(self, language: Language) -> None:
        """One of IN_VIEW."""
        if language != self._language:
            self._language = language
            self._round += 1

    def mark_letters(self, letters: Mapping[int, list[ChangedLetters]]) -> None:
        """Letters, by line, on a stronger ground."""
        if self._letters or letters:
            self._letters = dict(letters)
            self._round += 1

    def colour(self, block: QTextBlock, count: int, above: Sequence[str]) -> None:
        """Colour so many lines from this one, those that are not yet."""
        blocks: list[QTextBlock] = []
        while block.isValid() and count > 0:
            blocks.append(block)
            block, count = block.next(), count - 1
        todo = [one for one in blocks if one.userState() != self._round]
        if not todo:
            return
        state = NORMAL
        if self._language == "toml":
            todo, state = blocks, toml_state(above)
        self._is_colouring = True
        together = QTextCursor(self._document)
        together.beginEditBlock()
        for one in todo:
            ranges, state = self._ranges(one, state)
            one.layout().setFormats(ranges)
            one.setUserState(self._round)
        together.endEditBlock()
        self._is_colouring = False

    def _ranges(self, block: QTextBlock, state: int) -> tuple[list[QTextLayout.FormatRange], int]:
        text = block.text()
        if len(text) > MAX_LINE:
            return [], NORMAL
        units = _utf16_offsets(text)
        spans, state = TOKENISERS[self._language](text, state)
        pieces = [(span.start, span.start + span.length, self._formats[span.kind]) for span in spans]
        pieces += [(part.start, part.end, self._ground(part)) for part in self._letters.get(block.blockNumber(), ())]
        made: list[QTextLayout.FormatRange] = []
        for start, end, form in pieces:
            one = QTextLayout.FormatRange()
            first, last = (units[start], units[end]) if units is not None else (start, end)
            one.start, one.length, one.format = first, last - first, form
            made.append(one)
        return made, state

    @staticmethod
    def _ground(part: ChangedLetters) -> QTextCharFormat:
        palette = current_look().palette
        pair = palette.diff_added if part.is_added else palette.diff_removed
        return _format(pair.fg, mix(pair.soft, pair.fg, STRONGER))

    def _forget_states(self, start: int, _removed: int, added: int) -> None:
        """New lines have no state; those at both ends of a change may have kept theirs."""
        if not self._is_colouring:
            self._round += self._language == "toml"  # a string may go on further than what was typed
            for position in (start, start + added):
                self._document.findBlock(position).setUserState(-1)

    def _retint(self) -> None:
        self._formats = formats(current_look().palette)
        self._round += 1


def mix(ground: str, colour: str, share: float) -> str:
    """`#rrggbb` between two colours; `share` of the second."""
    one, two = QColor(ground), QColor(colour)
    parts = zip((one.red(), one.green(), one.blue()), (two.red(), two.green(), two.blue()), strict=True)
    return QColor(*(round(a + (b - a) * share) for a, b in parts)).name()


def _utf16_offsets(text: str) -> list[int] | None:
    """The start of each code point as Qt counts; None when both count alike."""
    if text.isascii() or max(text) <= "\uffff":
        return None
    offsets = [0]
    for letter in text:
        offsets.append(offsets[-1] + (2 if letter > "\uffff" else 1))
    return offsets
