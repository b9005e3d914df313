"""Fields of one value: a line, a text, a choice, a list to tick, a piece of JSON."""

from functools import partial
from typing import Protocol, TypeAlias

from PySide6.QtCore import QSignalBlocker, QStringListModel, Qt
from PySide6.QtGui import QAction, QFocusEvent, QKeyEvent, QKeySequence, QWheelEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QCompleter, QLineEdit, QWidget

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.call_example import example_of
from gatewright_gui.pages.trial.call_form import CallForm
from gatewright_gui.pages.trial.field_value import View, placeholder, same, value_line
from gatewright_gui.pages.trial.json_value import NOTHING, Path
from gatewright_gui.pages.trial.schema_shape import Shape
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import LONGEST_LINE, button_text, label_text
from gatewright_gui.qt.widget.text_field import LargeTextEdit, completer_of

_LEAST_LETTERS = 8


class FieldHost(Protocol):
    """The form around the fields."""

    @property
    def form(self) -> CallForm:
        """The arguments."""
        ...

    def type_text(self, path: Path, text: str) -> None:
        """Take a text that was typed at a place."""
        ...

    def choose_value(self, path: Path, value: object) -> None:
        """Take a value that was chosen at a place; `NOTHING` leaves it out."""
        ...

    def reshape(self, path: Path) -> None:
        """Follow a place that has other parts now: items, keys, another branch, another editor."""
        ...

    def is_open(self, path: Path) -> bool:
        """Tell whether a group is unfolded."""
        ...

    def set_open(self, path: Path, *, is_open: bool) -> None:
        """Remember that a group is unfolded."""
        ...

    def files_for(self, path: Path) -> QStringListModel | None:
        """The files that can be named at a place; None where no file is named."""
        ...

    def want_files(self) -> None:
        """A field that names a file has the keys."""
        ...

    def browse(self, path: Path) -> None:
        """Let a file be chosen for a place."""
        ...

    def offer_more(self, path: Path, near: QWidget) -> None:
        """Open the menu of a place."""
        ...


class Body(QWidget):
    """The widget that fills a place with parts in."""

    def refresh(self) -> None:
        """Show what the place holds now."""
        raise NotImplementedError

    def show_view(self, _view: View) -> None:
        """Show what the place holds now, as every field does."""
        self.refresh()

    def tab_parts(self) -> list[QWidget]:
        """The widgets that the Tab key goes through, in order."""
        raise NotImplementedError


def field_name(path: Path, *part: str) -> str:
    """The object name of the field of a place, or of a part of it."""
    return ".".join(["console.form", *map(str, path), *part])


class StillCombo(QComboBox):
    """Its first row stands for nothing chosen."""

    def __init__(self, nothing: str = "") -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_LEAST_LETTERS)
        self.addItem(nothing or tr("(not given)"))

    def show_choice(self, index: int | None) -> None:
        """Show which is chosen, None for nothing, without telling it."""
        with QSignalBlocker(self):
            self.setCurrentIndex(0 if index is None else index + 1)

    @property
    def choice(self) -> int | None:
        """Which is chosen, from 0; None for nothing."""
        return self.currentIndex() - 1 if self.currentIndex() > 0 else None

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """The wheel scrolls the form; it changes a choice only where the keys are."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


EMPTY = mark("(empty text)")


class LineField(QLineEdit):
    """One line of text or a number; with files to name, Down lists what fits and F4 lets one be chosen."""

    def __init__(self, host: FieldHost, view: View) -> None:
        super().__init__()
        self._host, self._path = host, view.path
        self._is_text = view.shape.kind == "text"
        self.setFont(current_look().mono_font)
        files = host.files_for(view.path) if self._is_text else None
        self._has_files = files is not None
        self.offered: QCompleter | None = None
        if files is not None:
            self.offered = _completer(self, files)
            self.offered.activated.connect(self.setText)
            self.setToolTip(tr("Down lists the files that the agent may see; F4 lets one be chosen"))
            browse = QAction(tr("Choose a file (F4)"), self)
            tie_icon(browse, "folder-open", "muted")
            browse.triggered.connect(partial(host.browse, view.path))
            self.addAction(browse, QLineEdit.ActionPosition.TrailingPosition)
        self.show_view(view)
        self.textChanged.connect(self._tell_text)

    def show_view(self, view: View) -> None:
        """Show what the place holds."""
        is_empty = view.value == ""
        self.setPlaceholderText(tr(EMPTY) if is_empty else placeholder(view.shape))
        if self.text() != view.text:
            with QSignalBlocker(self):
                self.setText(view.text)
                self.setCursorPosition(0)

    def tab_parts(self) -> list[QWidget]:
        """Itself."""
        return [self]

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """F4 chooses a file; several lines that are pasted make it a field of several lines."""
        key, held = event.key(), event.modifiers()
        is_plain = held in {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}
        is_ctrl = held == Qt.KeyboardModifier.ControlModifier
        asks_for_list = (key == Qt.Key.Key_Down and is_plain) or (key == Qt.Key.Key_Space and is_ctrl)
        if key == Qt.Key.Key_F4 and self._has_files and not held:
            self._host.browse(self._path)
        elif self.offered is not None and asks_for_list:
            self.offer()
        elif event.matches(QKeySequence.StandardKey.Paste) and "\n" in (text := QApplication.clipboard().text()):
            self._paste_lines(text)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """The files are listed when they are first wanted."""
        super().focusInEvent(event)
        if self._has_files:
            self._host.want_files()

    def offer(self) -> None:
        """List the files whose path holds what is typed. Typing alone opens no list, which would take the keys."""
        if self.offered is not None:
            self.offered.setCompletionPrefix(self.text())
            self.offered.complete()

    def _paste_lines(self, text: str) -> None:
        if not self._is_text:
            self.insert(" ".join(text.split()))
            return
        start = self.selectionStart() if self.hasSelectedText() else self.cursorPosition()
        end = start + len(self.selectedText())
        self._host.type_text(self._path, self.text()[:start] + text.replace("\r\n", "\n") + self.text()[end:])
        self._host.reshape(self._path)

    def _tell_text(self, text: str) -> None:
        self._host.type_text(self._path, text)
        popup = self.offered.popup() if self.offered is not None else None
        if popup is not None and popup.isVisible():
            self.offer()


class TextField(LargeTextEdit):
    """Several lines of text, or a value as JSON."""

    def __init__(self, host: FieldHost, view: View) -> None:
        self._is_json = view.editor == "json"
        lines = 5 if not self._is_json else min(max(view.text.count("\n") + 1, 2), 10)
        super().__init__(view.name, lines=lines)
        self._host, self._path = host, view.path
        if self._is_json:
            Highlighter(self.document()).set_language("json")
        self.show_view(view)
        self.edited.connect(self._tell_text)

    def show_view(self, view: View) -> None:
        """Show what the place holds."""
        wanted = placeholder(view.shape)
        if self._is_json:
            wanted = wanted or example_of(view.shape.schema) or "JSON"
        self.setPlaceholderText(tr(EMPTY) if view.value == "" and not self._is_json else wanted)
        if self.text != view.text:
            with QSignalBlocker(self):
                self.set_text(view.text)

    def tab_parts(self) -> list[QWidget]:
        """Itself."""
        return [self]

    def _tell_text(self) -> None:
        self._host.type_text(self._path, self.text)


class ChoiceField(StillCombo):
    """One of a list of values, or none."""

    def __init__(self, host: FieldHost, view: View) -> None:
        default = view.shape.default
        super().__init__("" if default is NOTHING else tr("(default: {value})", value=value_line(default)))
        self._host, self._path = host, view.path
        self._values = _choices(view.shape)
        for value in self._values:
            words = value if isinstance(value, str) and value else value_line(value, 400)
            self.addItem(label_text(words, LONGEST_LINE, keep=""))
        self.show_view(view)
        self.currentIndexChanged.connect(self._tell_choice)

    def show_view(self, view: View) -> None:
        """Show what the place holds."""
        is_given = view.value is not NOTHING
        self.show_choice(next((at for at, one in enumerate(self._values) if is_given and same(one, view.value)), None))

    def tab_parts(self) -> list[QWidget]:
        """Itself."""
        return [self]

    def _tell_choice(self, _row: int) -> None:
        self._host.choose_value(self._path, NOTHING if self.choice is None else self._values[self.choice])


class ChecklistField(QWidget):
    """Values to tick; they are sent in the order in which they were ticked."""

    def __init__(self, host: FieldHost, view: View) -> None:
        super().__init__()
        self._host, self._path = host, view.path
        self._boxes: list[QCheckBox] = []
        column = column_of(into=self)
        for value in view.shape.choices:
            box = QCheckBox(button_text(value_line(value)))
            box.setAccessibleName(f"{view.name}: {value_line(value)}")
            box.toggled.connect(partial(self._tell_choice, value))
            self._boxes.append(box)
            column.addWidget(box)
        self._choices = view.shape.choices
        self.show_view(view)

    def show_view(self, view: View) -> None:
        """Show what the place holds."""
        held = view.value if isinstance(view.value, list) else []
        for box, value in zip(self._boxes, self._choices, strict=True):
            with QSignalBlocker(box):
                box.setChecked(any(same(value, one) for one in held))

    def tab_parts(self) -> list[QWidget]:
        """Every box."""
        return list(self._boxes)

    def _tell_choice(self, value: JsonValue, on: bool) -> None:
        held = self._host.form.value(self._path)
        rest = [one for one in held if not same(one, value)] if isinstance(held, list) else []
        made: list[JsonValue] = [*rest, value] if on else rest
        self._host.choose_value(self._path, made or NOTHING)


def _completer(field: QLineEdit, files: QStringListModel) -> QCompleter:
    made = completer_of(field, files)
    made.setWidget(field)
    return made


def _choices(shape: Shape) -> tuple[JsonValue, ...]:
    listed: tuple[JsonValue, ...] = (True, False) if shape.kind == "boolean" else shape.choices
    return (*listed, None) if shape.nullable and None not in listed else listed


SimpleField: TypeAlias = LineField | TextField | ChoiceField | ChecklistField
PARTED = frozenset({"object", "array", "union"})
"""Editors of places with parts."""


def simple_of(host: FieldHost, view: View) -> SimpleField:
    """The field of one value."""
    match view.editor:
        case "line":
            return LineField(host, view)
        case "choice" | "boolean":
            return ChoiceField(host, view)
        case "checklist":
            return ChecklistField(host, view)
        case _:
            return TextField(host, view)
