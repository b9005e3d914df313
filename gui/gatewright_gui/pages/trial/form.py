"""A form made from the schema that the agent sees: one row for each argument, made as it is looked at."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QStringListModel, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QWidget

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.argument_check import ArgumentCheck, ArgumentChecker, Fault, FaultLine, PlaceFault
from gatewright_gui.pages.trial.call_example import ANY_TEXT, carry_form, example_values
from gatewright_gui.pages.trial.call_form import CallForm, FieldFault
from gatewright_gui.pages.trial.field_group import ArrayBody, ObjectBody, RootBody, RootUnion, Rows, UnionBody
from gatewright_gui.pages.trial.field_row import FieldRow, place_menu
from gatewright_gui.pages.trial.json_value import NOTHING, Path
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import SearchField
from gatewright_gui.session.calls import ShownTool

MANY = 16
"""More arguments than this can be filtered."""
FEW = 3
"""Of a list of more groups than this all begin folded."""


class _Holder(QWidget):
    """Holds the rows; the keys that no field took are the form's before they scroll."""

    def __init__(self, pane: "FormPane") -> None:
        super().__init__()
        self._pane = pane

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        if not self._pane.take_key(event):
            super().keyPressEvent(event)


class FormPane(QWidget):
    """Blank fields are not given. Nothing is refused: what does not fit is marked, and sent all the same."""

    changed = Signal()
    touched = Signal()
    """Somebody filled something in."""
    files_wanted = Signal()
    """A field that names a file has the keys."""
    browse_requested = Signal(object)
    """The place that wants a file: its path."""

    def __init__(self, tasks: TaskOwner | None = None, name: str = "console.form", spoken: str = "") -> None:
        super().__init__()
        named(self, name, spoken=spoken or tr("Arguments"))
        self.form = CallForm(ShownTool("", "", {}, None, ()))
        self.files = QStringListModel(self)
        self._tool: ShownTool | None = None
        self._open: dict[Path, bool] = {}
        self._root: RootBody | RootUnion | None = None
        self._is_putting = False
        self._faults: tuple[PlaceFault, ...] = ()
        self._check = ArgumentCheck(tasks, name, partial(FormPane._check_of, self), self)
        self._check.found.connect(self._take_faults)
        self._tabs = QTimer(self, singleShot=True, interval=0)
        self._tabs.timeout.connect(self._order_tabs)
        self.search = named(SearchField(tr("Filter")), f"{name}.search")
        self.search.search_changed.connect(self._filter)
        self.search.leave_requested.connect(self._to_first)
        self.search.results_requested.connect(self._to_first)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._lay_out()

    # what the request asks

    @property
    def operation(self) -> str | None:
        """The chosen operation; None where there is none."""
        return self.form.operation

    def set_tool(self, tool: ShownTool | None, operation: str | None = None) -> None:
        """Make the form of another tool; arguments that fit it stay. It begins with the operation, or with one that
        changes nothing.
        """
        if tool == self._tool:
            return
        old, was = self.form, self._tool
        is_same = tool is not None and was is not None and tool.name == was.name
        self._tool = tool
        self._faults = ()
        self._check.set_tool(tool)
        if tool is None:
            self.form = CallForm(ShownTool("", "", {}, None, ()))
        elif is_same:
            self.form = CallForm(tool)
            self.form.set_values(old.values_as_far())
            first = tool.first_operation(operation) if self.form.operation is None else None
            if first is not None:
                self.form.choose_operation(first)
        else:
            self.form = carry_form(tool, old, operation)
        if not is_same:
            self._open = {}
        self._rebuild()

    def choose_operation(self, operation: str) -> None:
        """Begin with an operation that the tool has; another name changes nothing."""
        if self._tool is not None and self._tool.first_operation(operation) == operation != self.form.operation:
            self.form.choose_operation(operation)
            self._refresh()

    def set_values(self, values: Mapping[str, JsonValue]) -> None:
        """Fill the form in; what is not named becomes blank, except the operation."""
        selector, operation = self.form.selector, self.form.operation
        self.form.set_values(values)
        if selector is not None and operation is not None and selector not in values:
            self.form.choose_operation(operation)
        self._refresh()

    def values(self) -> dict[str, JsonValue]:
        """The values that the form sends. Raises FieldFault."""
        return self.form.values()

    def values_as_far(self) -> dict[str, JsonValue]:
        """The values of the form that can be sent, broken JSON left out."""
        return self.form.values_as_far()

    def text(self) -> str:
        """The arguments as JSON, broken JSON as it stands."""
        return self.form.text()

    def fill_example(self, known: Mapping[str, str] | None = None) -> None:
        """Arguments that the chosen operation would take. `known`: by `path` and `label` what is really there."""
        values = example_values(self.form)
        is_begun = self.form.is_begun
        for name in values:
            kind = "path" if self.files_for((name,)) is not None else name
            is_open = values[name] == ANY_TEXT or kind == name  # what a tool's author names is not there
            if known is not None and is_open and known.get(kind):
                values[name] = known[kind]
        self.set_values({**values, **self.form.values_as_far()} if is_begun else values)

    def clear(self) -> None:
        """Nothing is given but the operation."""
        self.set_values({})

    def put_file(self, path: Path, name: str, source: str | None) -> None:
        """Name a file at a place, and the source that has it where that is asked."""
        self.form.set(path, name)
        if source is not None:
            self.form.set(("source",), source)
        self._refresh()

    @property
    def has_fields(self) -> bool:
        """Tell whether there is anything to fill in, or filled in."""
        form = self.form
        is_open = "additionalProperties" in form.shapes.root().schema and form.takes_extras(())
        return form.union(()) is not None or bool(form.fields(()) or form.extras(())) or is_open

    def check(self) -> str | None:
        """The first fault of the arguments as they are known to be wrong, or None."""
        try:
            self.form.values()
        except FieldFault as fault:
            return str(fault)
        return str(self._faults[0]) if self._faults else None

    def editor(self, name: str) -> QWidget | None:
        """The field of an argument."""
        root = self._root
        if isinstance(root, RootUnion):
            union = self.form.union(())
            if union is not None and union.tag == name:
                return root.branch
        rows = self._rows_of(root)
        if rows is None or name not in (*self.form.fields(()), *self.form.extras(())):
            return None
        return rows.row((name,)).field

    @property
    def wanted_height(self) -> int:
        """Pixels in which nothing has to be scrolled."""
        held = self._scroll.widget()
        rest = sum(part.sizeHint().height() for part in (self.search, self._foot) if not part.isHidden())
        return rest + (held.sizeHint().height() if held is not None else 0) + 2

    @property
    def first(self) -> QWidget | None:
        """The widget that is filled in first."""
        parts = self._root.tab_parts() if self._root is not None else []
        return parts[0] if parts else None

    # what the fields ask

    def type_text(self, path: Path, text: str) -> None:
        """Take a text that was typed at a place."""
        if not self._is_putting:
            self.touched.emit()
            self.form.set_text(path, text)
            self._follow_edit(path)

    def choose_value(self, path: Path, value: object) -> None:
        """Take a value that was chosen at a place."""
        self.touched.emit()
        if path == (self.form.selector,):
            self.form.choose_operation(value if isinstance(value, str) else None)
            self._refresh()
        elif value is NOTHING:
            self.form.unset(path)
            self._follow_edit(path)
        else:
            self.form.set(path, value)  # pyright: ignore[reportArgumentType]  # choices of the schema are JSON values
            self._follow_edit(path)

    def reshape(self, path: Path) -> None:
        """Follow a place that has other parts now."""
        del path
        self.touched.emit()
        self._refresh()

    def is_open(self, path: Path) -> bool:
        """Groups that hold something, or are needed, begin unfolded; of a list only where there are few."""
        known = self._open.get(path)
        if known is not None:
            return known
        held = self.form.value(path[:-1]) if isinstance(path[-1], int) else ()
        if isinstance(held, list) and len(held) > FEW:
            return False
        view = self.form.view(path)
        is_needed = view.required or (len(path) == 1 and self.form.is_needed(str(path[0])))
        return len(path) < 4 and (view.value not in (NOTHING, {}, []) or is_needed)

    def set_open(self, path: Path, *, is_open: bool) -> None:
        """Remember that a group is unfolded."""
        self._open[path] = is_open

    def files_for(self, path: Path) -> QStringListModel | None:
        """The files that can be named at a place."""
        files = self._tool.files if self._tool is not None else "nothing"
        is_path = len(path) == 1 and (path[0] == "path" or str(path[0]).endswith("_path"))
        return self.files if is_path and files != "nothing" else None

    def want_files(self) -> None:
        """A field that names a file has the keys."""
        self.files_wanted.emit()

    def browse(self, path: Path) -> None:
        """Let a file be chosen for a place."""
        self.browse_requested.emit(path)

    def offer_more(self, path: Path, near: QWidget) -> None:
        """Open the menu of a place; what is chosen there is shown."""
        menu = place_menu(self, self.form, path, partial(self._shift, path))
        menu.triggered.connect(partial(self._chose_more, path))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(near.mapToGlobal(near.rect().bottomLeft()))

    # keys

    def take_key(self, event: QKeyEvent) -> bool:
        """Alt with Up, Down, Delete moves and removes an item; with Return opens the menu of the argument."""
        row = self._row_of(QApplication.focusWidget())
        if event.modifiers() != Qt.KeyboardModifier.AltModifier or row is None:
            return False
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Delete: 0}.get(Qt.Key(event.key()))
        if step is not None:
            self._shift(row.path, step)
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            row.open_menu()
        else:
            return False
        return True

    def row_at(self, path: Path) -> FieldRow | None:
        """The row of a place, where it was made."""
        found: FieldRow | None = None
        for row in self.findChildren(FieldRow):
            if row.is_live and path[: len(row.path)] == row.path and (found is None or len(row.path) > len(found.path)):
                found = row
        return found

    def _shift(self, path: Path, step: int) -> None:
        """Move or remove the nearest item around a place."""
        for size in range(len(path), 0, -1):
            if isinstance(path[size - 1], int):
                bodies = self.findChildren(ArrayBody)
                shown = (one for one in bodies if one.path == path[: size - 1] and not one.isHidden())
                if (body := next(shown, None)) is not None:
                    body.shift(path[:size], step)
                return

    def _chose_more(self, path: Path, _action: object) -> None:
        self._refresh()
        row = self.row_at(path)
        if row is not None and row.field is not None:
            row.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def _row_of(self, widget: QWidget | None) -> FieldRow | None:
        while widget is not None and widget is not self:
            if isinstance(widget, FieldRow):
                return widget
            widget = widget.parentWidget()
        return None

    # inside

    def _follow_edit(self, path: Path) -> None:
        """A place holds something else: the words around it follow, its field is left alone."""
        row = self.row_at(path)
        while row is not None:
            row.refresh_words()
            row = self._row_of(row.parentWidget())
        self._check.start()
        self.changed.emit()

    def _refresh(self) -> None:
        if self._root is not None:
            self._is_putting = True
            self._root.refresh()
            self._is_putting = False
        self._mark()
        self._tabs.start()
        self._check.start()
        self.changed.emit()

    def _rebuild(self) -> None:
        holder = _Holder(self)
        self.search.blockSignals(True)
        self.search.clear()
        self.search.blockSignals(False)
        self.search.setVisible(len(self.form.fields(())) > MANY)
        is_union = self.form.union(()) is not None
        self._root = RootUnion(self) if is_union else RootBody(self)
        column_of(self._root, stretch(), into=holder, margins=(2, 1, 2, 2))
        self._scroll.setWidget(holder)
        self._tabs.start()
        self._check.start()
        self._foot.show_faults(self._faults, is_begun=self.form.is_begun)
        self.changed.emit()

    def _filter(self, text: object) -> None:
        if isinstance(self._root, RootBody):
            self._root.filter = str(text).casefold()
            self._root.refresh()
            self._tabs.start()

    def _to_first(self) -> None:
        first = self.first
        if first is not None:
            first.setFocus(Qt.FocusReason.OtherFocusReason)

    @staticmethod
    def _rows_of(root: RootBody | RootUnion | None) -> Rows | None:
        if isinstance(root, UnionBody):
            return root.inner if isinstance(root.inner, ObjectBody) else None
        return root

    def _order_tabs(self) -> None:
        """The Tab key goes down the form, however late its parts were made."""
        before: QWidget = self.search
        for part in self._root.tab_parts() if self._root is not None else []:
            self.setTabOrder(before, part)
            before = part

    # faults

    @property
    def verdict(self) -> str:
        """The words on all arguments: the first thing that is wrong, or that nothing is."""
        return self._foot.text

    def _check_of(self, checker: ArgumentChecker | None) -> Callable[[], Sequence[Fault]] | None:
        return partial(checker.faults, self.values_as_far()) if checker is not None else None

    def _take_faults(self, faults: tuple[PlaceFault, ...]) -> None:
        self._faults = faults
        self._mark()

    def _mark(self) -> None:
        """Put each fault beside its field, or into the line below."""
        told: dict[FieldRow, str] = {}
        for fault in self._faults:
            row = self.row_at(fault.path) if fault.path else None
            if row is not None and not row.isHidden():
                words = fault.message if row.path == fault.path else str(fault)
                told[row] = f"{told[row]}; {words}" if row in told else words
        for row in self.findChildren(FieldRow):
            if row.is_live:
                row.show_fault(told.get(row) or self.form.view(row.path).fault)
        self._foot.show_faults(self._faults, is_begun=self.form.is_begun)

    def _lay_out(self) -> None:
        self._foot = FaultLine("console.formfault")
        self.search.hide()
        column_of(row_of(self.search, margins=(2, 0, 2, 1)), stretch(self._scroll), self._foot, into=self)
