"""The parts of the policy file as a list beside its text: agents, tools, sources, catalogs, policy rules.

A part in which something is wrong has a mark.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, cast

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import label_text, tip_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.item_view import Delegate, RowList, put_icon
from gatewright_gui.session.filetext import OutlineRow


class OutlineModel(RowModel[OutlineRow]):
    """A heading over the parts of each kind, which come kind by kind."""

    headers = (mark("Outline"),)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wrong: dict[int, Role] = {}
        """How bad the worst problem of a part is, by the line of the part."""

    def mark_lines(self, marks: Mapping[int, Role]) -> None:
        """Mark the parts in which these lines are."""
        starts = sorted({row.line for row in self.rows if row.name})
        wrong: dict[int, Role] = {}
        for line, role in marks.items():
            at = bisect_right(starts, line)
            if at and wrong.get(starts[at - 1]) != "deny":
                wrong[starts[at - 1]] = role
        if wrong != self._wrong:
            self._wrong = wrong
            if count := self.count():
                self.dataChanged.emit(self.index(0, 0), self.index(count - 1, 0))

    def role_of(self, row: OutlineRow) -> Role | None:
        """The role of the worst problem of a part; None where there is none."""
        return self._wrong.get(row.line) if row.name else None

    def set_rows(self, rows: Iterable[OutlineRow]) -> None:
        """Show these parts."""
        shown: list[OutlineRow] = []
        for row in rows:
            if not shown or shown[-1].kind != row.kind:
                shown.append(OutlineRow(row.kind, "", row.line))
            shown.append(row)
        super().set_rows(shown)

    def text(self, row: OutlineRow, _column: int) -> str:
        """The name, or the kind as a heading."""
        return label_text(row.name or row.kind, 80)

    def tip(self, row: OutlineRow, _column: int) -> str:
        """With the line, and how bad what is wrong there is."""
        told = tr("{part}: line {line}", part=row.name or row.kind, line=row.line)
        role = self.role_of(row)
        return tip_text(told if role is None else f"{told}, {tr('an error') if role == 'deny' else tr('a warning')}")

    def spoken(self, row: OutlineRow, column: int) -> str:
        """The same."""
        return self.tip(row, column)

    def cell(self, row: OutlineRow, column: int, role: int) -> Any:
        """A heading in bold."""
        if role != Qt.ItemDataRole.FontRole or row.name:
            return super().cell(row, column, role)
        font = QFont()
        font.setWeight(QFont.Weight.DemiBold)
        return font


class _Delegate(Delegate):
    """Marks parts with problems."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        cast(Any, option).textElideMode = Qt.TextElideMode.ElideMiddle
        model, row = index.model(), index.data(ROW)
        if isinstance(model, OutlineModel) and isinstance(row, OutlineRow) and (role := model.role_of(row)) is not None:
            put_icon(option, "circle-alert" if role == "deny" else "triangle-alert", role)


class OutlineList(RowList):
    """A click or Enter asks for the line."""

    line_requested = Signal(object)
    """int."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "toml.outline", spoken=tr("Outline of the policy file"))
        self.rows = OutlineModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(_Delegate(self))
        self.setMinimumWidth(120)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self._ask)
        self.activated.connect(self._ask)

    def _ask(self, index: QModelIndex) -> None:
        self.line_requested.emit(index.data(ROW).line)
