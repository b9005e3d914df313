"""The tools of servers: those that wait to be accepted, with a box each, and those that were accepted."""

from collections.abc import Collection, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal

from gatewright.workspace.api import Schema, frozen
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.session.catalogs import CatalogRow, Waiting

HEADINGS = (mark("Tool"), mark("State"), mark("Counts as"), mark("Because"))
TOOL, STATE, TIER, WHY = range(4)
_CHANGES = {"new": mark("new"), "changed": mark("changed"), "vanished": mark("vanished")}
_TIERS = {"read_only": mark("read-only"), "side_effecting": mark("side effects"), "privileged": mark("privileged")}


@frozen
class ToolLine:
    """A tool of a server. `waiting` None: it was accepted as it is listed, and `definition` is what was accepted.

    `note`: what is to be said in the place of a definition; `policy_name`: empty for what cannot be called.
    """

    name: str
    state: str
    tier: str = ""
    why: str = ""
    waiting: Waiting | None = None
    definition: Schema | None = None
    note: str = ""
    policy_name: str = ""
    catalog_id: str = ""


def lines_of(row: CatalogRow) -> tuple[ToolLine, ...]:
    """What waits first, then what was accepted."""
    state, pin = row.state, row.state.pin
    names = dict(zip(state.listed_names, state.tool_names, strict=True))
    if pin is None:
        return tuple(ToolLine(name, tr("listed"), policy_name=names[name]) for name in names)
    lines = [
        ToolLine(
            one.name,
            tr("{change}, held", change=tr(_CHANGES.get(one.change, one.change))),
            _tier(one.after.tier) if one.after is not None else tr("is forgotten"),
            one.why,
            one,
            policy_name=names.get(one.name, ""),
            catalog_id=row.catalog_id,
        )
        for one in row.waiting
    ]
    if not row.waiting:  # what they would count as is still being worked out
        lines = [ToolLine(name, tr("held"), "...", policy_name=names.get(name, "")) for name in pin.held]
    for name, accepted in pin.accepted.items():
        if name not in pin.held:
            effects = ", ".join(sorted(str(effect) for effect in accepted.side_effects))
            effects = tr("needs {capabilities}", capabilities=effects) if effects else ""
            definition, called = pin.definition(name), names.get(name, "")
            words = name, tr("accepted"), _tier(accepted.tier), effects
            lines.append(ToolLine(*words, definition=definition, policy_name=called))
    lines += [
        ToolLine(one.name, tr("cannot be used"), why=one.message, note=one.message) for one in pin.listing.left_out
    ]
    return tuple(lines)


def _key(line: ToolLine) -> tuple[str, str]:
    return line.catalog_id, line.name


def _tier(tier: object) -> str:
    return tr(_TIERS.get(str(tier), str(tier)))


class ToolModel(RowModel[ToolLine]):
    """One row per tool; a box before those that wait, ticked at first."""

    ticks_changed = Signal()

    def __init__(self, headings: tuple[str, ...] = HEADINGS) -> None:
        super().__init__()
        self.headers = headings
        self._off: set[tuple[str, str]] = set()

    @property
    def ticked(self) -> Mapping[str, Collection[str]]:
        """Names of the tools that wait and are ticked, by the catalogs that have any."""
        found: dict[str, list[str]] = {}
        for line in self.rows:
            if line.waiting is not None and _key(line) not in self._off:
                found.setdefault(line.catalog_id, []).append(line.name)
        return found

    @property
    def ticked_count(self) -> int:
        """How many tools wait and are ticked."""
        return sum(map(len, self.ticked.values()))

    def set_lines(self, lines: tuple[ToolLine, ...], *, afresh: bool) -> None:
        """Show these; ``afresh``: of another server, so that all that waits is ticked."""
        if afresh:
            self._off = set()
        self.set_rows(lines)
        self.ticks_changed.emit()

    def tick_all(self, on: bool) -> None:
        """Tick all that waits, or none of it."""
        self._off = set() if on else {_key(line) for line in self.rows if line.waiting is not None}
        self.tell_changed()
        self.ticks_changed.emit()

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Boxes can be ticked."""
        flags = super().flags(index)
        if index.isValid() and index.column() == TOOL and self.rows[index.row()].waiting is not None:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def text(self, row: ToolLine, column: int) -> str:
        """Cells."""
        return (row.name, row.state, row.tier, row.why)[column]

    def tip(self, row: ToolLine, _column: int) -> str:
        """The tool in words."""
        return f"{row.name}: {row.state}" + (f"; {row.why}" if row.why else "")

    def cell(self, row: ToolLine, column: int, role: int) -> Any:
        """With the boxes."""
        if role == Qt.ItemDataRole.CheckStateRole and column == TOOL and row.waiting is not None:
            return Qt.CheckState.Unchecked if _key(row) in self._off else Qt.CheckState.Checked
        return super().cell(row, column, role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Tick a box, or take the tick away."""
        if role != Qt.ItemDataRole.CheckStateRole or not self.flags(index) & Qt.ItemFlag.ItemIsUserCheckable:
            return False
        key = _key(self.rows[index.row()])
        if Qt.CheckState(value) == Qt.CheckState.Checked:
            self._off.discard(key)
        else:
            self._off.add(key)
        self.dataChanged.emit(index, index)
        self.ticks_changed.emit()
        return True


def tool_view(model: ToolModel, words: str, name_width: int) -> TableView:
    """A table of tools; the column of reasons takes the room that the others leave."""
    view = TableView(words)
    view.show_model(model, {TOOL: name_width}, wide=WHY)
    for column in (STATE, TIER):
        view.setColumnWidth(column, max(110, view.horizontalHeader().sectionSizeHint(column)))
    return view
