"""One place of the form: its name, what is asked of it, its field or its parts, its help, its fault and its menu."""

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QFrame, QLineEdit, QMenu, QWidget

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.call_form import CallForm
from gatewright_gui.pages.trial.field import PARTED, Body, FieldHost, SimpleField, field_name, simple_of
from gatewright_gui.pages.trial.field_value import Editor, View, value_line
from gatewright_gui.pages.trial.json_value import NOTHING, Path, path_words
from gatewright_gui.pages.trial.schema_shape import Shape
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import Gap, column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.plaintext import button_text, tip_text
from gatewright_gui.qt.prose import ProseLabel
from gatewright_gui.qt.widget import IconButton
from gatewright_gui.qt.widget.label import Label

Act = tuple[str, Callable[[], object], str]


def place_menu(parent: QWidget, form: CallForm, path: Path, shift: Callable[[int], None]) -> QMenu:
    """The menu of a place. `shift` moves an item, 0 removes it; the form itself is changed by the rest."""
    menu = QMenu(parent)
    menu.setAccessibleName(tr("More for this argument"))
    for words, act, keys in _acts(form, path, shift):
        action = add_action(menu, button_text(words), act)
        if keys:
            action.setShortcut(QKeySequence(keys))
    return menu


def _acts(form: CallForm, path: Path, shift: Callable[[int], None]) -> Iterator[Act]:
    view = form.view(path)
    default = view.shape.default
    is_item = isinstance(path[-1], int)
    if view.is_given and not is_item:
        yield tr("Leave out"), partial(form.unset, path), ""
    if default is not NOTHING:
        words = tr("Send the default, {value}", value=value_line(default, 30))
        yield words, partial(form.set, path, default), ""
    empties: dict[str, JsonValue] = {"text": "", "lines": "", "object": {}, "array": [], "checklist": []}
    empty = empties.get(view.shape.kind)
    if empty is not None and view.value != empty:
        words = tr("Send it empty, as {value}", value=value_line(empty)) if empty != "" else tr("Send an empty text")
        yield words, partial(form.set, path, empty), ""
    if view.value is not None:
        yield tr("Send null"), partial(form.set, path, None), ""
    if not view.is_raw and view.shape.kind != "json":
        yield tr("Edit as JSON"), partial(form.edit_as_json, path, raw=True), ""
    elif view.is_raw and form.can_be_field(path):
        yield tr("Edit in its own field"), partial(form.edit_as_json, path, raw=False), ""
    if is_item:
        yield tr("Move up"), partial(shift, -1), "Alt+Up"
        yield tr("Move down"), partial(shift, 1), "Alt+Down"
        yield tr("Remove"), partial(shift, 0), "Alt+Del"


MAX_HELP = 260
HEAD_HEIGHT = 22


class FieldRow(QWidget):
    """Its field comes when the row is first refreshed. `parts_of` makes what a place with parts holds."""

    def __init__(self, host: FieldHost, path: Path, parts_of: Callable[[View], Body]) -> None:
        super().__init__()
        self.path = path
        self.setObjectName("console.form.row")
        self._host = host
        self._parts_of = parts_of
        self._editor: Editor | None = None
        self._field: SimpleField | None = None
        self._parts: Body | None = None
        self._frame: QWidget | None = None
        self._help = ""
        self._need: str | None = None
        self._is_raw = False
        self._label = Label()
        self._label.setFont(current_look().mono_font)
        self._mark = named(Label(), kind="small")
        self.more_button = IconButton("ellipsis", tr("More for this argument (Alt+Return)"))
        self.more_button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.more_button.setFixedHeight(HEAD_HEIGHT)
        self.more_button.clicked.connect(partial(self.open_menu))
        self._fold: IconButton | None = None
        self._head = row_of(self._label, Gap(1), self._mark, stretch(), self.more_button, space=1)
        self._note: ProseLabel | None = None
        self._fault: ProseLabel | None = None
        self._column = column_of(self._head, into=self)
        self._column.setSpacing(1)

    @property
    def field(self) -> QWidget | None:
        """The widget that is filled in; of a place with parts, what unfolds it."""
        return self._field or self._fold

    @property
    def parts(self) -> Body | None:
        """The body that a place with parts holds; None until it is unfolded."""
        return self._parts

    def refresh(self, *, help_text: str | None = None, mark: str | None = None, enabled: bool = True) -> None:
        """Show what the place holds now. `mark` stands for what is asked, `help_text` for the description."""
        view = self._host.form.view(self.path)
        if view.editor != self._editor or view.is_raw != self._is_raw:
            self._build(view)
        elif self._field is not None:
            self._field.show_view(view)
        if self._field is not None:
            self._field.setEnabled(enabled)
        self._label.setText(view.name)
        self._need = mark
        self._show_words(view)
        named = self._field or self._fold
        if named is not None:
            place = path_words(self.path)
            named.setAccessibleName(tr("{place}, required", place=place) if view.required else place)
            named.setAccessibleDescription(view.shape.description)
        self._show_help(view.shape.description if help_text is None else help_text)
        self.show_fault(view.fault)
        if view.editor in PARTED:
            self._show_parts(view)

    def refresh_words(self) -> None:
        """The words follow what is typed; the field is left alone."""
        view = self._host.form.view(self.path)
        self._show_words(view)
        self.show_fault(view.fault)

    @property
    def is_live(self) -> bool:
        """Tell whether it is shown, and not about to go."""
        return not self.isHidden() and self.objectName() != ""

    def _show_words(self, view: View) -> None:
        asked = self._need if self._need is not None else self._need_of(view)
        self._mark.setText(" · ".join(filter(None, (asked, self._kind(view)))))

    def show_fault(self, fault: str | None) -> None:
        """Say what is wrong with what is filled in."""
        if self._fault is None and fault:
            self._fault = named(ProseLabel(), kind="error")
            self._column.addWidget(self._fault)
        if self._fault is not None:
            self._fault.setText(fault or "")
            self._fault.setVisible(bool(fault))
        if isinstance(self._field, QLineEdit) and self._field.property("kind") != ("error" if fault else ""):
            self._field.setProperty("kind", "error" if fault else "")
            self._field.style().polish(self._field)

    def add_button(self, button: QWidget) -> None:
        """Put a button before the one for more."""
        button.setFixedHeight(HEAD_HEIGHT)
        self._head.insertWidget(self._head.count() - 1, button)

    @property
    def fault(self) -> str:
        """The fault, as it is said."""
        return self._fault.text() if self._fault is not None and not self._fault.isHidden() else ""

    def tab_parts(self) -> list[QWidget]:
        """The widgets that the Tab key goes through, in order."""
        if self._field is not None:
            return self._field.tab_parts()
        found: list[QWidget] = [self._fold] if self._fold is not None else []
        is_shown = self._parts is not None and not self._parts.isHidden()
        return [*found, *(self._parts.tab_parts() if is_shown and self._parts is not None else [])]

    def open_menu(self) -> None:
        """Offer what else can be done with the place."""
        self._host.offer_more(self.path, self.more_button)

    def toggle(self) -> None:
        """Fold the parts, or unfold them."""
        self._host.set_open(self.path, is_open=not self._host.is_open(self.path))
        self._show_parts(self._host.form.view(self.path))
        self._host.reshape(self.path)

    def _build(self, view: View) -> None:
        """Another field, as what is there now cannot be held by the one before."""
        for old in (self._field, self._parts, self._fold):
            if old is not None:
                retire(old)
        self._field, self._parts, self._fold = None, None, None
        self._editor, self._is_raw = view.editor, view.is_raw
        if view.editor in PARTED:
            self._fold = IconButton("chevron-right", tr("Unfold"))
            self._fold.setObjectName(field_name(self.path))
            self._fold.setFixedHeight(HEAD_HEIGHT)
            self._fold.clicked.connect(self.toggle)
            self._head.insertWidget(0, self._fold)
            return
        self._field = simple_of(self._host, view)
        self._field.setObjectName(field_name(self.path))
        self._column.insertWidget(1, self._field)
        self._field.show()

    def _show_parts(self, view: View) -> None:
        is_open = self._host.is_open(self.path)
        name = path_words(self.path)
        if self._fold is not None:
            words = tr("Fold {place}", place=name) if is_open else tr("Unfold {place}", place=name)
            self._fold.set_icon("chevron-down" if is_open else "chevron-right", words)
        if is_open and self._parts is None:
            self._parts = self._parts_of(view)
            self._set_in(self._parts)
        elif self._parts is not None and is_open:
            self._parts.show_view(view)
        if self._parts is not None and self._frame is not None:
            self._frame.setVisible(is_open)
            self._parts.setVisible(is_open)

    def _set_in(self, parts: Body) -> None:
        """Set in, with a line at the left that says how far the group goes."""
        row = row_of(named(QFrame(), kind="vline"), stretch(parts), space=2)
        row.setContentsMargins(current_look().tokens.space_2, 2, 0, 2)
        frame = holding(row)
        at = self._column.indexOf(self._fault) if self._fault is not None else -1
        self._column.insertWidget(at if at >= 0 else self._column.count(), frame)
        if self._frame is not None:
            retire(self._frame)
        self._frame = frame

    def _show_help(self, text: str) -> None:
        if text == self._help:
            return
        self._help = text
        if self._note is None:
            self._note = named(ProseLabel(), kind="small")
            at = 2 if self._field is not None else 1
            self._column.insertWidget(at, self._note)
        is_long = len(text) > MAX_HELP
        self._note.setText(f"{text[:MAX_HELP].rstrip()}..." if is_long else text)
        self._note.setToolTip(tip_text(text) if is_long else "")
        self._note.setVisible(bool(text))

    def _need_of(self, view: View) -> str:
        if not view.is_declared:
            return tr("not in the schema")
        return tr("required") if view.required else ""

    def _kind(self, view: View) -> str:
        """The words for what stands there, where the field does not show it."""
        if view.is_raw:
            return tr("as JSON")
        if view.editor == "object":
            held = view.value if isinstance(view.value, dict) else {}
            texts = (held.get(name) for name in (*self._host.form.fields(self.path), *held))
            told = next((one for one in texts if one and isinstance(one, str)), "")
            which = f": {value_line(told, 30)}" if told and isinstance(self.path[-1], int) else ""
            if held:
                return tr("{count} given", count=len(held)) + which
            return tr("empty, but sent") if view.value is not NOTHING else ""
        if view.editor == "array":
            held = len(view.value) if isinstance(view.value, list) else 0
            return f"{counted(held, 'item', 'items')}{_limits(view.shape)}"
        return ""


def retire(widget: QWidget) -> None:
    """Take a field away: nobody finds it any more, and it goes when the event that asked for it is over."""
    widget.hide()
    for part in (widget, *widget.findChildren(QWidget)):
        part.setObjectName("")
    widget.deleteLater()


def _limits(shape: Shape) -> str:
    low, high = shape.schema.get("minItems"), shape.schema.get("maxItems")
    if low and high:
        return tr(" of {low} to {high}", low=low, high=high)
    return tr(", at least {low}", low=low) if low else tr(", at most {high}", high=high) if high else ""
