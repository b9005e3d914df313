"""The arguments themselves: the operation first, then what it takes; what it does not take is one line that unfolds."""

from functools import partial

from PySide6.QtWidgets import QHBoxLayout, QWidget

from gatewright_gui.models.jsonpath import NOTHING, Path
from gatewright_gui.pages.console.fields.group import ObjectBody, UnionBody
from gatewright_gui.pages.console.fields.host import FieldHost
from gatewright_gui.pages.console.fields.row import FieldRow
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import ElidedLabel, IconButton


class _Untaken(QWidget):
    """One quiet line for the arguments that the chosen operation does not take."""

    def __init__(self) -> None:
        super().__init__()
        self.button = IconButton("chevron-right", "Show the arguments that are not taken")
        self.button.setObjectName("console.form.untaken")
        self._said = ElidedLabel(role="muted")
        self._said.setFont(current_look().small_font)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(current_look().tokens.space_1)
        row.addWidget(self.button)
        row.addWidget(self._said, 1)
        self.hide()

    def show_names(self, operation: str, names: list[str], *, unfolded: bool) -> None:
        """Say which they are; nothing is shown where there are none."""
        self.setVisible(bool(names))
        verb = "Hide" if unfolded else "Show"
        icon = "chevron-down" if unfolded else "chevron-right"
        self.button.set_icon(icon, f"{verb} the arguments that are not taken")
        self._said.set_text(f"not taken by {operation}: {', '.join(names)}")


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
        mark = "required" if form.is_needed(name) else ""
        if not taken:
            mark = "not taken, but sent" if given else "not taken"
        row.refresh(mark=mark, enabled=taken or given)

    def _unfold(self) -> None:
        self._is_unfolded = not self._is_unfolded
        self._host.reshaped(())


class RootUnion(UnionBody):
    """The arguments of a tool with several kinds of call."""

    def __init__(self, host: FieldHost) -> None:
        super().__init__(host, ())
        union = host.form.union(())
        self.branch.setObjectName(f"console.form.{union.tag if union is not None and union.tag else 'branch'}")
