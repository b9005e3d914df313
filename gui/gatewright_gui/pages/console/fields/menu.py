"""What else can be done with a place of the form: leave it out, send it empty or null, edit it as JSON, move it."""

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.callform import CallForm
from gatewright_gui.models.fieldtext import shown_value
from gatewright_gui.models.jsonpath import NOTHING, Path
from gatewright_gui.qt.plaintext import button_text

Act = tuple[str, Callable[[], object], str]


def place_menu(parent: QWidget, form: CallForm, path: Path, shift: Callable[[int], None]) -> QMenu:
    """The menu of a place. `shift` moves an item, 0 removes it; the form itself is changed by the rest."""
    menu = QMenu(parent)
    menu.setAccessibleName("More for this argument")
    for words, act, keys in _acts(form, path, shift):
        action = menu.addAction(button_text(words))
        action.triggered.connect(act)
        if keys:
            action.setShortcut(QKeySequence(keys))
    return menu


def _acts(form: CallForm, path: Path, shift: Callable[[int], None]) -> Iterator[Act]:
    view = form.view(path)
    default = view.shape.default
    is_item = isinstance(path[-1], int)
    if view.is_given and not is_item:
        yield "Leave out", partial(form.unset, path), ""
    if default is not NOTHING:
        yield f"Send the default, {shown_value(default, 30)}", partial(form.set, path, default), ""
    empties: dict[str, JsonValue] = {"text": "", "lines": "", "object": {}, "array": [], "checklist": []}
    empty = empties.get(view.shape.kind)
    if empty is not None and view.value != empty:
        words = "Send an empty text" if empty == "" else f"Send it empty, as {shown_value(empty)}"
        yield words, partial(form.set, path, empty), ""
    if view.value is not None:
        yield "Send null", partial(form.set, path, None), ""
    if not view.is_raw and view.shape.kind != "json":
        yield "Edit as JSON", partial(form.edit_as_json, path, raw=True), ""
    elif view.is_raw and form.can_be_field(path):
        yield "Edit in its own field", partial(form.edit_as_json, path, raw=False), ""
    if is_item:
        yield "Move up", partial(shift, -1), "Alt+Up"
        yield "Move down", partial(shift, 1), "Alt+Down"
        yield "Remove", partial(shift, 0), "Alt+Del"
