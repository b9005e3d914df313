"""Places with parts: the properties of an object, the items of a list, the branches of a union.

Parts are made when they are looked at, a screenful at a time: a schema of any size opens at once.
"""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from gatewright_gui.pages.trial.call_form import CallForm
from gatewright_gui.pages.trial.field import PARTED, Body, FieldHost, SimpleField, StillCombo, field_name, simple_of
from gatewright_gui.pages.trial.field_row import FieldRow, retire
from gatewright_gui.pages.trial.field_value import View
from gatewright_gui.pages.trial.json_value import NOTHING, Path, path_words
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text, tip_text
from gatewright_gui.qt.widget import ElidedLabel, IconButton
from gatewright_gui.qt.widget.button import text_button

AT_ONCE = 16
"""Parts that are made when a group is opened; the button below makes as many again."""


def body_of(host: FieldHost, view: View) -> Body:
    """The body that a place with parts holds."""
    match view.editor:
        case "array":
            return ArrayBody(host, view.path)
        case "union":
            return UnionBody(host, view.path)
        case _:
            return ObjectBody(host, view.path)


class Rows(Body):
    """Rows in order, of which only the first ones are made; a button makes more."""

    def __init__(self, host: FieldHost, path: Path) -> None:
        super().__init__()
        self._host = host
        self._path = path
        self.rows: dict[Path, FieldRow] = {}
        self._limit = AT_ONCE
        self._column = column_of(into=self, space=2)
        self.more_button = text_button("", field_name(path, "more"), self._show_more, kind="link")
        self.more_button.hide()
        self._column.addWidget(self.more_button, 0, Qt.AlignmentFlag.AlignLeft)

    @property
    def path(self) -> Path:
        """The place whose parts these are."""
        return self._path

    def row(self, path: Path) -> FieldRow:
        """The row of a part, made if it was not yet."""
        found = self.rows.get(path)
        if found is None:
            found = self.rows[path] = FieldRow(self._host, path, partial(body_of, self._host))
            found.hide()
            self._column.insertWidget(self._column.indexOf(self.more_button), found)
            self._refresh_row(found)
        return found

    def tab_parts(self) -> list[QWidget]:
        """Through the rows in order."""
        items = [self._column.itemAt(at) for at in range(self._column.count())]
        parts: list[QWidget] = []
        for widget in [item.widget() for item in items if item is not None]:
            if isinstance(widget, FieldRow) and not widget.isHidden():
                parts += widget.tab_parts()
        return parts if self.more_button.isHidden() else [*parts, self.more_button]

    def _lay_rows(self, wanted: list[Path], given: set[Path]) -> None:
        """Show these, in this order; beyond the first ones only those that hold something."""
        first, rest = wanted[: self._limit], wanted[self._limit :]
        shown = [*first, *[path for path in rest if path in given][: self._limit]]
        kept = set(shown)
        for path in [path for path in self.rows if path not in kept]:
            self._refresh_row(self.rows[path])
            self.rows[path].hide()
        for at, path in enumerate(shown):
            if path in self.rows:
                self._refresh_row(self.rows[path])
            row = self.row(path)
            if self._column.indexOf(row) != at:
                self._column.insertWidget(at, row)
            row.show()
        left = len(wanted) - len(shown)
        self.more_button.setText(tr("Show {count} more of {all:,}", count=min(left, self._limit), all=left))
        self.more_button.setVisible(left > 0)

    def _refresh_row(self, row: FieldRow) -> None:
        row.refresh()

    def _show_more(self) -> None:
        before = len([row for row in self.rows.values() if not row.isHidden()])
        self._limit += self._limit
        self._host.reshape(self._path)
        parts = self.tab_parts()
        if self.more_button.isHidden() and parts:
            parts[min(before, len(parts) - 1)].setFocus(Qt.FocusReason.OtherFocusReason)


class ObjectBody(Rows):
    """The properties that are declared, those that are given besides, and a way to add one."""

    def __init__(self, host: FieldHost, path: Path) -> None:
        super().__init__(host, path)
        self._key: QLineEdit | None = None
        self._add: QPushButton | None = None
        self._none: ElidedLabel | None = None
        self.refresh()

    def refresh(self) -> None:
        """Show what the object holds."""
        form = self._host.form
        names = [(*self._path, name) for name in (*form.fields(self._path), *form.extras(self._path))]
        self._lay_rows(
            names, {path for path in names if form.view(path).is_given} if len(names) > self._limit else set()
        )
        self._offer_keys(form, is_empty=not names)

    def tab_parts(self) -> list[QWidget]:
        """The rows, then what adds a property."""
        added = [part for part in (self._key, self._add) if part is not None and not part.isHidden()]
        return [*super().tab_parts(), *added]

    def _offer_keys(self, form: CallForm, *, is_empty: bool) -> None:
        takes = self._takes_keys(form)
        if takes and self._key is None:
            where = path_words(self._path) or tr("the arguments")
            spoken = tr("Name of another property of {place}", place=where)
            self._key = named(QLineEdit(), field_name(self._path, "key"), spoken=spoken)
            self._key.setPlaceholderText(tr("name of another property"))
            self._key.setFont(current_look().mono_font)
            self._key.returnPressed.connect(self._add_key)
            spoken = tr("Add the property to {place}", place=where)
            self._add = text_button(tr("Add"), field_name(self._path, "addkey"), self._add_key, spoken=spoken)
            self._column.addLayout(row_of(stretch(self._key), self._add, space=2))
        for part in (self._key, self._add):
            if part is not None:
                part.setVisible(takes)
        if is_empty and not takes and self._none is None:
            self._none = ElidedLabel(tr("no properties"), role="muted")
            self._column.addWidget(self._none)

    def _takes_keys(self, form: CallForm) -> bool:
        """A declared list of properties is enough where the schema only forgot to close it."""
        shape = form.inner(self._path)
        is_said = "additionalProperties" in shape.schema or "patternProperties" in shape.schema
        return form.takes_extras(self._path) and (is_said or not form.shapes.fields(shape))

    def _add_key(self) -> None:
        name = self._key.text() if self._key is not None else ""
        path = (*self._path, name)
        if self._key is None or not name or self._host.form.value(path) is not NOTHING:
            return
        self._key.clear()
        self._host.form.set(path, self._host.form.blank(path))
        self._limit = max(self._limit, len(self.rows) + 1)
        self._host.reshape(self._path)
        field = self.row(path).field
        if field is not None:
            field.setFocus(Qt.FocusReason.OtherFocusReason)


class ArrayBody(Rows):
    """The items in order, each with what moves and removes it, and a way to add one."""

    def __init__(self, host: FieldHost, path: Path) -> None:
        super().__init__(host, path)
        spoken = tr("Add an item to {place}", place=path_words(path))
        self.add_button = text_button(tr("Add item"), field_name(path, "add"), self.add, spoken=spoken)
        tie_icon(self.add_button, "plus")
        self._column.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.refresh()

    def refresh(self) -> None:
        """Show the items."""
        value = self._host.form.value(self._path)
        count = len(value) if isinstance(value, list) else 0
        for path in [path for path in self.rows if isinstance(at := path[-1], int) and at >= count]:
            gone = self.rows.pop(path)
            retire(gone)
        self._lay_rows([(*self._path, at) for at in range(count)], set())

    def add(self) -> None:
        """Add an item at the end, and begin to fill it in."""
        item = self._host.form.add_item(self._path)
        index = item[-1]
        self._limit = max(self._limit, index + 1 if isinstance(index, int) else 0)
        self._host.set_open(item, is_open=True)
        self._host.reshape(self._path)
        self.focus_item(item)

    def focus_item(self, item: Path) -> None:
        """Give the keys to an item."""
        row = self.rows.get(item)
        parts = row.tab_parts() if row is not None else []
        target = parts[0] if parts else self.add_button
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    def tab_parts(self) -> list[QWidget]:
        """The items, then what adds one."""
        return [*super().tab_parts(), self.add_button]

    def row(self, path: Path) -> FieldRow:
        """The row of an item, with what moves and removes it."""
        is_new = path not in self.rows
        row = super().row(path)
        if is_new:
            self._add_buttons(row)
        return row

    def _add_buttons(self, row: FieldRow) -> None:
        for icon, words, what in (
            ("arrow-up", tr("Move up (Alt+Up)"), -1),
            ("arrow-down", tr("Move down (Alt+Down)"), 1),
            ("x", tr("Remove (Alt+Del)"), 0),
        ):
            button = IconButton(icon, words)
            button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            button.setAccessibleName(f"{words}: {path_words(row.path)}")
            button.setObjectName(field_name(row.path, {-1: "up", 1: "down", 0: "remove"}[what]))
            button.clicked.connect(partial(self.shift, row.path, what))
            row.add_button(button)

    def shift(self, item: Path, what: int) -> None:
        """Move an item by a step; 0 removes it."""
        form = self._host.form
        if what:
            to = form.move_item(item, what)
            if to is None:
                return
            was = {path: self._host.is_open(path) for path in (item, to)}
            self._host.set_open(to, is_open=was[item])
            self._host.set_open(item, is_open=was[to])
        else:
            form.remove_item(item)
            value = form.value(self._path)
            last = len(value) - 1 if isinstance(value, list) else -1
            at = item[-1]
            to = (*self._path, min(at, last)) if isinstance(at, int) and last >= 0 else self._path
        self._host.reshape(self._path)
        self.focus_item(to)


class UnionBody(Body):
    """A choice of the branch, and what that branch wants."""

    def __init__(self, host: FieldHost, path: Path) -> None:
        super().__init__()
        self._host = host
        self._path = path
        self._kind: tuple[object, ...] = ()
        self.inner: Body | SimpleField | None = None
        self.branch = StillCombo()
        self.branch.setObjectName(field_name(path, "branch"))
        union = host.form.union(path)
        tag = union.tag if union is not None else None
        kind, where = tag or tr("kind"), path_words(path) or tr("the call")
        self.branch.setAccessibleName(tr("{kind} of {place}", kind=kind, place=where))
        for row in union.branches if union is not None else ():
            self.branch.addItem(label_text(row.label, LONGEST_LINE, keep=""))
            described = str(row.schema.get("description") or "")
            self.branch.setItemData(self.branch.count() - 1, tip_text(described), Qt.ItemDataRole.ToolTipRole)
        self.branch.currentIndexChanged.connect(self._take_branch)
        label = ElidedLabel(tag or tr("kind"))
        label.setFont(current_look().mono_font)
        self._column = column_of(row_of(label, stretch(self.branch), space=2), into=self, space=2)
        self.refresh()

    def refresh(self) -> None:
        """Show the branch that is filled in, and its parts."""
        form = self._host.form
        chosen = form.branch(self._path)
        self.branch.show_choice(chosen)
        view = form.inner_view(self._path)
        editor = "none" if chosen is None else view.editor
        if (chosen, editor) != self._kind:
            self._kind = (chosen, editor)
            if self.inner is not None:
                retire(self.inner)
            self.inner = None if chosen is None else self._make(view)
            if self.inner is not None:
                self._column.addWidget(self.inner)
        elif self.inner is not None:
            self.inner.show_view(view)

    def tab_parts(self) -> list[QWidget]:
        """The choice, then the parts of the branch."""
        return [self.branch, *(self.inner.tab_parts() if self.inner is not None else [])]

    def _make(self, view: View) -> Body | SimpleField:
        if view.editor in PARTED:
            return ArrayBody(self._host, self._path) if view.editor == "array" else ObjectBody(self._host, self._path)
        field = simple_of(self._host, view)
        field.setObjectName(field_name(self._path, "value"))
        field.setAccessibleName(path_words(self._path))
        return field

    def _take_branch(self, _row: int) -> None:
        self._host.form.choose_branch(self._path, self.branch.choice)
        self._host.reshape(self._path)


class _Untaken(QWidget):
    """One quiet line for the arguments that the chosen operation does not take."""

    def __init__(self) -> None:
        super().__init__()
        self.button = named(
            IconButton("chevron-right", tr("Show the arguments that are not taken")), "console.form.untaken"
        )
        self._said = ElidedLabel(role="muted")
        self._said.setFont(current_look().small_font)
        row_of(self.button, stretch(self._said), into=self, space=1)
        self.hide()

    def show_names(self, operation: str, names: list[str], *, unfolded: bool) -> None:
        """Say which they are; nothing is shown where there are none."""
        self.setVisible(bool(names))
        if unfolded:
            self.button.set_icon("chevron-down", tr("Hide the arguments that are not taken"))
        else:
            self.button.set_icon("chevron-right", tr("Show the arguments that are not taken"))
        self._said.set_text(tr("not for {operation}: {names}", operation=operation, names=", ".join(names)))


class RootBody(ObjectBody):
    """The arguments of a tool whose properties are all in one list. `filter` shows those alone that hold its text."""

    def __init__(self, host: FieldHost) -> None:
        self.filter = ""
        self._is_unfolded = False
        self._untaken = _Untaken()
        super().__init__(host, ())
        self._untaken.button.clicked.connect(partial(RootBody._unfold, self))

    def refresh(self) -> None:
        """Show the arguments of the chosen operation."""
        form = self._host.form
        selector, shape = form.selector, form.shape_of_operation()
        declared = sorted(form.fields(()), key=lambda name: name != selector)
        given = [name for name in declared if form.value((name,)) is not NOTHING]
        untaken = [name for name in declared if not form.is_taken(name) and name not in given]
        found = [name for name in declared if self.filter in name.casefold() or name == selector]
        shown = [name for name in found if name not in untaken or self._is_unfolded]
        paths: list[Path] = [(name,) for name in (*shown, *form.extras(()))]
        self._lay_rows(paths, {(name,) for name in given})
        self._offer_keys(form, is_empty=False)
        if self._column.indexOf(self._untaken) < 0:
            self._column.insertWidget(self._column.indexOf(self.more_button) + 1, self._untaken)
        words = shape.name if shape is not None else ""
        self._untaken.show_names(words, untaken, unfolded=self._is_unfolded)

    def tab_parts(self) -> list[QWidget]:
        """The rows, then what unfolds the others."""
        return [*super().tab_parts(), *([] if self._untaken.isHidden() else [self._untaken.button])]

    def _refresh_row(self, row: FieldRow) -> None:
        form = self._host.form
        name = str(row.path[0])
        shape = form.shape_of_operation()
        if name == form.selector:
            said = shape.description if shape is not None else form.tool.description if form.operation is None else ""
            row.refresh(help_text=said)
            return
        if name not in form.shapes.fields(form.inner(())):
            row.refresh()
            return
        taken, given = form.is_taken(name), form.value((name,)) is not NOTHING
        mark = tr("required") if form.is_needed(name) else ""
        if not taken:
            mark = tr("not taken, but sent") if given else tr("not taken")
        row.refresh(mark=mark, enabled=taken or given)

    def _unfold(self) -> None:
        self._is_unfolded = not self._is_unfolded
        self._host.reshape(())


class RootUnion(UnionBody):
    """The arguments of a tool with several kinds of call."""

    def __init__(self, host: FieldHost) -> None:
        super().__init__(host, ())
        union = host.form.union(())
        self.branch.setObjectName(f"console.form.{union.tag if union is not None and union.tag else 'branch'}")
