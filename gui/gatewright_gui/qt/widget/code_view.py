"""Code to look at: highlighted text with line numbers and folds, a find bar, buttons to find, fold, wrap and copy."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, Qt, SignalInstance
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from gatewright_gui.qt.fold import Foldable
from gatewright_gui.qt.highlighter import IN_VIEW, Highlighter, ViewHighlighter
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.linediff import ChangedLetters, letter_changes, line_numbers
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.syntax import Language
from gatewright_gui.qt.textfind import Hit
from gatewright_gui.qt.widget.button import CopyButton, IconButton
from gatewright_gui.qt.widget.code_edit import CodeEdit
from gatewright_gui.qt.widget.find_bar import FindBar

MAX_HIGHLIGHTED = 1_000_000
"""Longer texts are shown plain, so that the window does not wait for colours."""
AT_ONCE = 8_000
"""Longer texts are coloured where they come into view only."""
FOLDED_LINES = 2_000
"""JSON of more lines comes folded: its parts are there at once, and what is in them after a click."""
_GAP = 6
_CTRL, _SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
_NO_KEYS = Qt.KeyboardModifier.KeypadModifier


class WrapStore(Protocol):
    """Keeps whether long lines are wrapped, under a key."""

    @property
    def changed(self) -> SignalInstance:
        """Something that it keeps was chosen anew."""
        ...

    def wraps_lines(self, key: str) -> bool:
        """Tell whether they are."""
        ...

    def set_wraps_lines(self, key: str, wraps: bool) -> None:
        """Keep it."""
        ...


class CodeView(QWidget):
    """Read-only, unless its editor is another. Setting another text keeps the place in view, and what was folded
    in a text of the same key.

    Keys: Ctrl+F finds, F3 and Shift+F3 go on; Ctrl+Shift+[ and ] fold and unfold, Ctrl+Minus does either.
    """

    def __init__(self, name: str = "Code", parent: QWidget | None = None, *, editor: CodeEdit | None = None) -> None:
        super().__init__(parent)
        self.editor = editor or CodeEdit(name)
        self._may_grow = editor is not None
        """A short text may become a long one."""
        self.find_bar = FindBar(self.editor)
        self.find_button = IconButton("search", tr("Find (Ctrl+F)"), parent=self)
        self.fold_button = IconButton("chevrons-down-up", tr("Fold all (Ctrl+Shift+-)"), parent=self)
        self.unfold_button = IconButton("chevrons-up-down", tr("Unfold all (Ctrl+Shift++)"), parent=self)
        self.wrap_button = IconButton("wrap-text", tr("Wrap long lines"), parent=self)
        self.wrap_button.setCheckable(True)
        self.copy_button = CopyButton(tr("Copy all"), self._text_to_copy, parent=self)
        self._floating: tuple[IconButton, ...] = (self.copy_button, self.wrap_button)
        for button in self._floating:
            button.setProperty("kind", "floating")
        for button in (self.find_button, self.fold_button, self.unfold_button):
            button.hide()
        self._highlighter = Highlighter(self.editor.document())
        self._in_view = ViewHighlighter(self.editor.document())
        self._language: Language = "plain"
        self._shown: str = ""
        self._text: str = ""
        """What copying copies, which is more where only a part of it is shown."""
        self._key = ""
        self._closed: dict[str, frozenset[str]] = {}
        self._kept: tuple[WrapStore, str] | None = None
        """Where it is kept whether lines are wrapped, and under which key."""
        self.setAccessibleName(name)
        self.setFocusProxy(self.editor)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.find_bar)
        column.addWidget(self.editor, 1)
        self.setTabOrder(self.editor, self.copy_button)  # behind what the keys are given to, or Tab passes them
        self.setTabOrder(self.copy_button, self.wrap_button)
        self.find_button.clicked.connect(self.open_find)
        self.fold_button.clicked.connect(self.editor.fold_all)
        self.unfold_button.clicked.connect(self.editor.unfold_all)
        self.wrap_button.clicked.connect(self._wrap_pressed)
        self.editor.folding_changed.connect(self._folding_changed)
        self.editor.installEventFilter(self)
        self.editor.viewport().installEventFilter(self)
        self._place_buttons()

    def put_buttons_in(self, row: QBoxLayout) -> None:
        """Line the buttons up in a bar of the caller's, with those to find and fold; nothing floats over the text."""
        for button in (self.find_button, self.fold_button, self.unfold_button, self.wrap_button, self.copy_button):
            button.setProperty("kind", None)
            row.addWidget(button)
        self._floating = ()
        self.find_button.show()
        self._place_buttons()
        self.show_fold_buttons(True)

    def keep_find(self) -> None:
        """Keep the find bar in sight, with the buttons beside it; nothing floats over the text."""
        self.put_buttons_in(self.find_bar.keep_open())
        for one, other in pairwise((self.editor, *self.find_bar.controls, self.copy_button)):
            self.setTabOrder(one, other)  # as above
        self.find_button.hide()

    @property
    def text(self) -> str:
        """The whole text, as it was set or typed."""
        return self._text

    def take_typed(self) -> None:
        """Take what the editor holds as the text now: it was typed there."""
        self._shown = self._text = "\n".join(self.editor.lines)
        self.find_bar.refresh()

    @property
    def language(self) -> Language:
        """The language it is coloured as."""
        return self._language

    @property
    def is_wrapping(self) -> bool:
        """Tell whether long lines go on in the next row."""
        return self.wrap_button.isChecked()

    def set_wrapping(self, on: bool) -> None:
        """Let long lines go on in the next row, or run off to the right."""
        self.wrap_button.setChecked(on)
        mode = QPlainTextEdit.LineWrapMode.WidgetWidth if on else QPlainTextEdit.LineWrapMode.NoWrap
        self.editor.setLineWrapMode(mode)
        self._place_buttons()

    def keep_wrapping(self, key: str, store: WrapStore) -> None:
        """Wrap as it was chosen the last time, here or elsewhere, and remember it from now on."""
        self._kept = store, key
        store.changed.connect(self._follow_wrapping)
        self._follow_wrapping()

    def _follow_wrapping(self) -> None:
        if self._kept is not None:
            store, key = self._kept
            self.set_wrapping(store.wraps_lines(key))

    def set_json(
        self, text: str | Foldable, *, key: str = "", whole: str | None = None, is_quiet: bool = False
    ) -> None:
        """Show JSON text; it is the caller's to indent it. A long one is best made `Foldable` beside the window.

        What is folded is kept for each `key`. `whole`: what copying copies, where the text is only a part of it.
        `is_quiet`: without colours, as something that is not so.
        """
        language: Language = "quiet" if is_quiet else "json"
        if isinstance(text, Foldable):
            self._set(text.text, language, text, key)
        elif not self._shows(text, language, key):
            self._set(text, language, Foldable.json(text), key)
        self._text = self._shown if whole is None else whole

    def set_toml(self, text: str) -> None:
        """Show TOML text."""
        self._set(text, "toml")

    def set_markdown(self, text: str) -> None:
        """Show Markdown source."""
        self._set(text, "markdown")

    def set_diff(self, text: str, letters: Sequence[ChangedLetters] | None = None) -> None:
        """Show a unified diff; where a line takes the place of another, what changed in it stands out.

        `letters`: what changed, where that is known already.
        """
        self._set(text, "diff")
        if letters is None:
            letters = letter_changes(text) if len(text) <= MAX_HIGHLIGHTED else ()
        if self._is_in_view(text, "diff"):
            self._in_view.mark_letters({line: list(part) for line, part in groupby(letters, lambda one: one.line)})
        else:
            self.editor.mark_letters(letters)

    def set_readable(self, text: str, *, is_quiet: bool = False) -> None:
        """Show text whose headings stand at the edge, and whose rows stand behind a mark."""
        self._set(text, "quiet" if is_quiet else "readable")

    def set_plain(self, text: str) -> None:
        """Show text without colours."""
        self._set(text, "plain")

    def mark_lines(self, marks: dict[int, Role]) -> None:
        """Give lines (from 1) the soft ground of a role."""
        self.editor.mark_lines(marks)

    def show_marked(self, lines: Sequence[int]) -> None:
        """Mark these lines (from 1) and bring the first of them into view."""
        self.mark_lines(dict.fromkeys(lines, "accent"))
        if lines:
            self.editor.go_to_hit(Hit(lines[0] - 1, 0, 0))

    def go_to_line(self, line: int) -> None:
        """Select a line (from 1) and bring it into view."""
        self.editor.go_to_line(line)

    def open_find(self) -> None:
        """Open the find bar."""
        self.find_bar.open()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Our keys go before those of the window; the buttons stay in their corner."""
        if event.type() == QEvent.Type.Resize:
            self._place_buttons()
        return self.take_key(event) or super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """The same keys where the find bar or a button has them."""
        return self.take_key(event) or super().event(event)

    def take_key(self, event: QEvent) -> bool:
        """Do what a key of ours asks for; whether it was one. Whoever puts this view into a pane may pass keys on."""
        if not isinstance(event, QKeyEvent) or not self.isVisible():
            return False
        act = self._act_of(event)
        if act is None:
            return False
        if event.type() == QEvent.Type.KeyPress:
            act()
        elif event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
        return event.type() in {QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride}

    def _act_of(self, event: QKeyEvent) -> Callable[[], None] | None:
        if event.matches(QKeySequence.StandardKey.Find):
            return self.open_find
        held, key, editor = event.modifiers() & ~_NO_KEYS, event.key(), self.editor
        if key == Qt.Key.Key_F3 and held in {Qt.KeyboardModifier.NoModifier, _SHIFT}:
            return partial(self.find_bar.step, -1 if held else 1)
        if not editor.has_folds or not held & _CTRL or held & ~(_CTRL | _SHIFT):
            return None
        if not held & _SHIFT:
            return editor.toggle_here if key == Qt.Key.Key_Minus else None
        match Qt.Key(key):
            case Qt.Key.Key_BracketLeft | Qt.Key.Key_BraceLeft:
                return editor.fold_here
            case Qt.Key.Key_BracketRight | Qt.Key.Key_BraceRight:
                return editor.unfold_here
            case Qt.Key.Key_Minus | Qt.Key.Key_Underscore:
                return editor.fold_all
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                return editor.unfold_all
            case _:
                return None

    def _is_in_view(self, text: str, language: Language) -> bool:
        return (len(text) > AT_ONCE or self._may_grow) and language in IN_VIEW

    def _shows(self, text: str, language: Language, key: str) -> bool:
        return (text, language, key) == (self._shown, self._language, self._key)

    def _set(self, text: str, language: Language, foldable: Foldable | None = None, key: str = "") -> None:
        if self._shows(text, language, key):
            return
        is_other = (key, language) != (self._key, self._language)
        self._shown = self._text = text
        self._key, self._language = key, language
        self.editor.mark_letters(())
        self._in_view.mark_letters({})
        is_diff = language == "diff" and len(text) <= MAX_HIGHLIGHTED
        self.editor.numbers.set_names(line_numbers(text) if is_diff else ())
        foldable = foldable or Foldable.plain(text)
        closed = self._closed.get(key)
        if closed is None:  # of a long text that was not folded by hand, all parts
            is_long = foldable.folds and len(foldable.lines) > FOLDED_LINES
            closed = foldable.first_level if is_long else frozenset[str]()
        if self._is_in_view(text, language):
            self._highlighter.rest()
            self._in_view.set_language(language)
            self.editor.set_text(foldable, closed, from_top=is_other)
            self.editor.set_colour(self._in_view.colour)
        else:
            self.editor.set_colour(None)
            self._highlighter.set_language(language if len(text) <= MAX_HIGHLIGHTED else "plain")
            self.editor.set_text(foldable, closed, from_top=is_other)
            self._highlighter.wake(self.editor.document())
        self.find_bar.refresh()
        self._place_buttons()
        self.show_fold_buttons(True)

    def _folding_changed(self, closed: frozenset[str]) -> None:
        self._closed[self._key] = closed

    def show_fold_buttons(self, wanted: bool) -> None:
        """Show the buttons to fold and unfold, where something can be folded."""
        for button in (self.fold_button, self.unfold_button):
            button.setVisible(wanted and not self._floating and self.editor.has_folds)

    def _text_to_copy(self) -> str:
        return self._text

    def _wrap_pressed(self, on: bool) -> None:
        self.set_wrapping(on)
        if self._kept is not None:
            store, key = self._kept
            store.set_wraps_lines(key, on)

    def _place_buttons(self) -> None:
        inside = self.editor.viewport()
        right = inside.mapTo(self, inside.rect().topRight()).x() + 1 + self.editor.viewportMargins().right()
        top = self.editor.y() + _GAP - 1
        for button in self._floating:
            button.adjustSize()
            button.move(right - button.width() - _GAP, top)
            button.raise_()
            top += button.height() + 2
        self.editor.set_corner_room(self.copy_button.width() + _GAP if self._floating else 0)
