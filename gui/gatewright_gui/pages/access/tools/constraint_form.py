"""The small form for a constraint: fields that fit the argument's kind, and what they say."""

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QFormLayout, QLabel, QLineEdit, QWidget

from gatewright_gui.pages.access.tools.constraint import ConstraintForm
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.argument import Argument, ArgumentKind
from gatewright_gui.session.condition import read_folder, read_number

FIELDS: dict[ArgumentKind, tuple[str, ...]] = {
    "text": ("one_of", "below", "pattern", "min_length", "max_length"),
    "number": ("minimum", "maximum", "multiple_of"),
    "whole": ("minimum", "maximum", "multiple_of"),
    "truth": ("truth",),
    "list": ("items_below", "min_items", "max_items"),
    "any": (),
}
_LABELS = {
    "one_of": (mark("&One of"), mark("values, separated by commas")),
    "below": (mark("Only &in"), mark("a folder, such as notes/; no path that leads out of it goes through")),
    "items_below": (mark("Each &in"), mark("a folder, such as notes/, that each path of the list lies in")),
    "pattern": (mark("&Matches"), mark("a regular expression; it may match anywhere in the text")),
    "min_length": (mark("A&t least"), mark("characters")),
    "max_length": (mark("At mo&st"), mark("characters")),
    "minimum": (mark("At &least"), mark("a number")),
    "maximum": (mark("At mo&st"), mark("a number")),
    "multiple_of": (mark("&Multiple of"), mark("a number")),
    "truth": (mark("Al&ways"), ""),
    "min_items": (mark("A&t least"), mark("items")),
    "max_items": (mark("At mo&st"), mark("items")),
}
LABEL_WIDTH = 76
_WHOLE = frozenset({"min_length", "max_length", "min_items", "max_items"})
_TRUTH = ((mark("either"), None), (mark("true"), True), (mark("false"), False))


class ConstraintFields(QWidget):
    """An empty field says nothing."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._edits: dict[str, QLineEdit] = {}
        self._labels: dict[str, QWidget] = {}
        self.truth = QComboBox()
        self._rows = QFormLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(current_look().tokens.space_2)
        for name, (label, hint) in _LABELS.items():
            self._add(name, tr(label), tr(hint))

    def show_form(self, argument: Argument, form: ConstraintForm) -> None:
        """The fields of a kind of argument, holding what the form says."""
        names = FIELDS[argument.kind]
        for name, edit in self._edits.items():
            edit.setText(_field_text(getattr(form, name)))
            self._rows.setRowVisible(edit, name in names)
        self._rows.setRowVisible(self.truth, "truth" in names)
        self.truth.setCurrentIndex([value for _, value in _TRUTH].index(form.truth))
        if argument.choices:
            hint = ", ".join(argument.choices)
            self._edits["one_of"].setPlaceholderText(tr("some of: {values}", values=hint))

    def form(self, kind: ArgumentKind) -> ConstraintForm:
        """The filled-in form. Raises ValueError naming the field that cannot be read, or what no value could meet."""
        found: dict[str, object] = {}
        for name in FIELDS[kind]:
            if name == "truth":
                found[name] = self.truth.currentData()
            elif text := self._edits[name].text().strip():
                found[name] = _read(name, text)
        for low, high in (("minimum", "maximum"), ("min_length", "max_length"), ("min_items", "max_items")):
            least, most = found.get(low), found.get(high)
            if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
                raise ValueError(tr("no value is at least {least:g} and at most {most:g}", least=least, most=most))
        if found.get("below") is not None and found.get("pattern") is not None:
            raise ValueError(tr("say either the folder or the expression; as JSON both can be said with `allOf`"))
        return ConstraintForm(**found)  # pyright: ignore[reportArgumentType]

    def edit(self, name: str) -> QLineEdit:
        """The field of that name."""
        return self._edits[name]

    def _add(self, name: str, label: str, hint: str) -> None:
        words = Label(label)
        if name == "truth":
            for text, value in _TRUTH:
                self.truth.addItem(tr(text), value)
            self.truth.currentIndexChanged.connect(self._tell)
            self._dress(self.truth, name, label, words)
            return
        edit = QLineEdit()
        edit.setPlaceholderText(hint)
        if name == "pattern":
            edit.setFont(current_look().mono_font)
        edit.textChanged.connect(self._tell)
        self._edits[name] = edit
        self._dress(edit, name, f"{label} {hint}", words)

    def _dress(self, field: QWidget, name: str, spoken: str, words: QLabel) -> None:
        field.setObjectName(f"constraint.{name}")
        field.setAccessibleName(spoken.replace("&", "").strip())
        words.setBuddy(field)
        words.setMinimumWidth(LABEL_WIDTH)
        self._rows.addRow(words, field)

    def _tell(self, _value: object = None) -> None:
        self.changed.emit()


def _field_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ", ".join(str(text) for text in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def _read(name: str, text: str) -> object:
    if name == "one_of":
        return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip())) or None
    if name == "pattern":
        return text
    if name in {"below", "items_below"}:
        return read_folder(text)
    read: Callable[[str], object] = int if name in _WHOLE else read_number
    label = tr(_LABELS[name][0]).replace("&", "").lower()
    try:
        return read(text)
    except ValueError:
        what = tr("a whole number") if name in _WHOLE else tr("a number")
        raise ValueError(tr("`{field}` is {kind}, not `{text}`", field=label, kind=what, text=text)) from None
