"""The tools of a server: those that wait to be accepted, with a box each, and those that were; the definition below.

`ToolsPart` shows those of one server, `AcceptDialog` all that wait of several.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QComboBox, QHeaderView, QPushButton, QWidget

from gatewright.workspace.api import Schema, ToolFacts, frozen
from gatewright_gui.pages.access.tools.results_dialog import basis_words
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, keep_room, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import ElidedLabel, Label, SectionHeader
from gatewright_gui.qt.widget.splitter import SizeStore, split_of
from gatewright_gui.session.calls import visible
from gatewright_gui.session.catalogs import CatalogRow, SafetyTier, Waiting
from gatewright_gui.session.document import Document
from gatewright_gui.session.servers import effects_of, tool_effects

HEADINGS = (mark("Tool"), mark("Does"), mark("State"), mark("Counts as"), mark("Because"))
WAITING_HEADINGS = (mark("Tool"), mark("Does"), mark("Server"), mark("Counts as"), mark("Because"))
TOOL, DOES, STATE, TIER, WHY = range(5)
NAME_WIDTH = 190
_CHANGES = {"new": mark("new"), "changed": mark("changed"), "vanished": mark("vanished")}
_TIERS = {"read_only": mark("read-only"), "side_effecting": mark("side effects"), "privileged": mark("privileged")}


@frozen
class ToolLine:
    """A tool of a server, with its effects in words. `waiting` None: it was accepted, with the `definition`.

    `note`: the words in the place of a definition; `policy_name`: empty for a tool that cannot be called.
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
    does: str = ""


def lines_of(row: CatalogRow, facts: Mapping[str, ToolFacts] = MappingProxyType({})) -> tuple[ToolLine, ...]:
    """List the tools of a server: what waits first. `facts`: by the names of the policy."""
    return tuple(replace(line, does=_does(facts.get(line.policy_name), line.waiting)) for line in _lines_of(row))


def _does(facts: ToolFacts | None, waits: Waiting | None) -> str:
    return "" if facts is None else tool_effects(effects_of(facts, waits))


def _lines_of(row: CatalogRow) -> Sequence[ToolLine]:
    state, pin = row.state, row.state.pin
    names = dict(zip(state.listed_names, state.tool_names, strict=True))
    if pin is None:
        return [ToolLine(name, "", policy_name=names[name]) for name in names]
    lines = [
        ToolLine(
            one.name,
            tr("{change}, to accept", change=tr(_CHANGES.get(one.change, one.change))),
            _tier(one.after.tier) if one.after is not None else tr("is forgotten"),
            one.why,
            one,
            policy_name=names.get(one.name, ""),
            catalog_id=row.catalog_id,
        )
        for one in row.waiting
    ]
    if not row.waiting:  # what they would count as is still being worked out
        lines = [ToolLine(name, tr("to accept"), "...", policy_name=names.get(name, "")) for name in pin.held]
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
    return lines


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
        """The number of ticked tools that wait."""
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
        return (row.name, row.does, row.state, row.tier, row.why)[column]

    def tip(self, row: ToolLine, _column: int) -> str:
        """The tool in words."""
        return f"{row.name}: " + "; ".join(filter(None, (row.does, row.state, row.tier, row.why)))

    def cell(self, row: ToolLine, column: int, role: int) -> Any:
        """Add the boxes."""
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
    view.show_model(model, {TOOL: name_width, DOES: 100}, wide=WHY)
    for column in (STATE, TIER):
        view.setColumnWidth(column, max(110, view.horizontalHeader().sectionSizeHint(column)))
    return view


TIERS = (
    (mark("as proposed"), None),
    (mark("all read-only"), SafetyTier.READ_ONLY),
    (mark("all with side effects"), SafetyTier.SIDE_EFFECTING),
    (mark("all privileged"), SafetyTier.PRIVILEGED),
)


class ToolsPart(QWidget):
    """The tools of one server, the chosen one with its definition folded away, and the row that accepts."""

    accept_requested = Signal()
    try_requested = Signal(str)
    """A tool, by its name in the policy: somebody wants to make a call of it."""
    results_requested = Signal(object)
    """ToolFacts: it is to be said who writes the results of this tool."""

    def __init__(self, sizes: SizeStore, document: Document) -> None:
        super().__init__()
        self._document = document
        self._row: CatalogRow | None = None
        self._facts: dict[str, ToolFacts] = {}
        self._shown = ("", "")
        """The catalog and the name of the tool whose definition is shown."""
        self.model = ToolModel()
        self.view = named(tool_view(self.model, tr("Tools of the server"), NAME_WIDTH), "servers.tools")
        self.view.setColumnHidden(WHY, True)
        self.header = SectionHeader(tr("Tool"))
        self.fold_button = word_button(
            tr("JSON"), "chevron-right", "json", tr("Show how the tool defines itself, as JSON")
        )
        self.fold_button.setCheckable(True)
        self.try_button = word_button(tr("Try a call"), "terminal", "try", tr("Open Try with this tool"))
        tip = tr("Say who writes its results: you, or anybody outside")
        self.results_button = word_button(tr("Results..."), "users", "results", tip)
        for control in (self.fold_button, self.results_button, self.try_button):
            self.header.add_control(control)
        self.code = named(CodeView(tr("Definition of the tool")), "servers.code")
        self.code.hide()
        self.tier = named(QComboBox(), "servers.tier", spoken=tr("What accepted tools count as"))
        for words, tier in TIERS:
            self.tier.addItem(tr(words), tier)
        self.all_button = named(QPushButton(tr("None")), "servers.all", spoken=tr("Tick none of what waits"))
        self.accept_button = named(QPushButton(tr("Accept")), "servers.accept", kind="primary")
        self.accept_note = named(ElidedLabel(role="muted"), "servers.accept_note")
        accept = (stretch(self.accept_note), self.all_button, self.tier, self.accept_button)
        self._accept_bar = keep_room(holding(row_of(*accept, space=2, margins=(2, 1, 2, 1))))
        below = holding(column_of(self.header, stretch(self.code)))
        self._split = split_of(Qt.Orientation.Vertical, "servers.tools", sizes, (self.view, below), (260, 42))
        column_of(stretch(self._split), self._accept_bar, into=self)
        self.fold_button.toggled.connect(self._fold)
        self.accept_button.clicked.connect(self.accept_requested)
        self.all_button.clicked.connect(lambda: self.model.tick_all(not self.model.ticked))
        self.try_button.clicked.connect(self._try)
        self.results_button.clicked.connect(self._ask_results)
        self.model.ticks_changed.connect(self._tell_ticks)
        self.view.selectionModel().currentChanged.connect(self._show_tool)

    @property
    def chosen_tier(self) -> SafetyTier | None:
        """The tier of accepted tools; None: as it is proposed."""
        tier = self.tier.currentData()
        return None if tier is None else SafetyTier(tier)

    def show_row(self, row: CatalogRow, facts: Mapping[str, ToolFacts]) -> None:
        """Show the tools of a server as they are now. `facts`: of its tools, by their names in the policy."""
        is_other = self._row is None or self._row.catalog_id != row.catalog_id
        before = None if self._row is None else (self._row.state, self._row.waiting)
        if not is_other and before == (row.state, row.waiting) and self._facts == facts:
            self._show_tool()  # the policy may say something else of it
            return
        self._row, self._facts = row, dict(facts)
        at = self.view.currentIndex().row()
        self.model.set_lines(lines_of(row, facts), afresh=is_other)
        lines = self.model.rows
        for column, has in ((DOES, any(one.does for one in lines)), (STATE, any(one.state for one in lines))):
            self.view.setColumnHidden(column, not has)
        widest, header = TOOL if self.view.isColumnHidden(DOES) else DOES, self.view.horizontalHeader()
        if widest != TOOL and header.sectionResizeMode(TOOL) == QHeaderView.ResizeMode.Stretch:
            self.view.setColumnWidth(TOOL, NAME_WIDTH)  # not all of the room that it had alone
        for column in (TOOL, DOES):
            mode = QHeaderView.ResizeMode.Stretch if column == widest else QHeaderView.ResizeMode.Interactive
            header.setSectionResizeMode(column, mode)
        self.view.setColumnHidden(TIER, not any(line.tier for line in lines))
        if lines and (is_other or not self.view.currentIndex().isValid()):
            at = 0 if is_other else min(max(at, 0), len(lines) - 1)
            self.view.setCurrentIndex(self.model.index(at, TOOL))
        self._show_tool()
        self._tell_ticks()

    def _fold(self, is_open: bool) -> None:
        """Show the definition below the table, or fold it away."""
        tie_icon(self.fold_button, "chevron-down" if is_open else "chevron-right")
        self.code.setVisible(is_open)
        whole = sum(self._split.sizes())
        low = self.header.sizeHint().height()
        self._split.setSizes([whole // 2, whole - whole // 2] if is_open else [whole - low, low])

    @property
    def line(self) -> ToolLine | None:
        """The current row of the table."""
        return self.model.row_at(self.view.currentIndex().row())

    def _try(self) -> None:
        if (line := self.line) is not None and line.policy_name:
            self.try_requested.emit(line.policy_name)

    def _ask_results(self) -> None:
        if (line := self.line) is not None and line.policy_name in self._facts:
            self.results_requested.emit(self._facts[line.policy_name])

    def _show_tool(self, _index: QModelIndex | None = None, _before: object = None) -> None:
        line = self.line
        self.header.setVisible(line is not None)
        if line is None:
            self.code.set_plain("")
            return
        facts = self._facts.get(line.policy_name)
        is_new, self._shown = self._shown != _key(line), _key(line)
        self.try_button.setEnabled(bool(line.policy_name))
        self.results_button.setEnabled(facts is not None)
        self.header.set_title(line.name)
        is_other = line.policy_name not in ("", line.name)
        notes = [tr("{tool} in the policy", tool=line.policy_name)] if is_other else []
        notes += [line.why] if line.why and not line.note else []
        notes += [basis_words(self._document, facts)] if facts is not None else []
        self.header.set_note(", ".join(notes))
        definition = line.definition
        if self._row is not None and self._row.state.pin is None:
            definition = self._document.workspace.tool_definition(line.policy_name)
        if line.waiting is not None:
            self.code.set_diff(visible(line.waiting.difference))
            if is_new and line.waiting.change != "new":
                self.fold_button.setChecked(True)  # nobody accepts a change unseen
        elif definition is not None:
            self.code.set_json(visible(json.dumps(definition, indent=2, ensure_ascii=False)))
        else:
            self.code.set_plain(visible(line.note))

    def _tell_ticks(self, _why: object = None) -> None:
        waits = sum(line.waiting is not None for line in self.model.rows)
        number = self.model.ticked_count
        self._accept_bar.setVisible(waits > 0)
        self.accept_button.setText(tr("Accept {number}", number=number) if number else tr("Accept"))
        self.accept_button.setEnabled(number > 0)
        self.all_button.setText(tr("None") if number else tr("All"))
        self.all_button.setAccessibleName(tr("Tick none of what waits") if number else tr("Tick all that waits"))
        self.accept_note.set_text(tr("{number} of {waits} new or changed tools ticked", number=number, waits=waits))


def word_button(words: str, icon: str, name: str, tip: str) -> WordButton:
    """A button of the details, with an icon."""
    button = named(WordButton(words), f"servers.{name}", spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button


class AcceptDialog(FormDialog):
    """Accepted: `chosen` holds the names of the ticked tools, by catalog."""

    def __init__(self, parent: QWidget | None, rows: Iterable[CatalogRow], facts: Mapping[str, ToolFacts]) -> None:
        super().__init__(parent, "accept", tr("Accept the tools of all servers"), tr("Accept"))
        self.model = ToolModel(WAITING_HEADINGS)
        waiting = (line for row in rows for line in lines_of(row, facts) if line.waiting is not None)
        self.model.set_lines(tuple(replace(line, state=line.catalog_id) for line in waiting), afresh=True)
        self.view = named(tool_view(self.model, tr("Tools that wait to be accepted"), 270), "accept.tools")
        self.code = named(CodeView(tr("What the tool says of itself")), "accept.code")
        self.note = named(Label(), "accept.note", kind="muted")
        self.all_button = named(QPushButton(tr("None")), "accept.all", spoken=tr("Tick none"))
        self.lay_out(stretch(self.view, 3), stretch(self.code, 2), foot=(stretch(self.note), self.all_button))
        self.accept_button.setDefault(True)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.model.ticks_changed.connect(self._tell)
        self.all_button.clicked.connect(lambda: self.model.tick_all(not self.model.ticked))
        self.resize(860, 600)
        self.view.setCurrentIndex(self.model.index(0, TOOL))
        self._tell()

    @property
    def chosen(self) -> Mapping[str, Collection[str]]:
        """The ticked tools by catalog, as their servers name them."""
        return self.model.ticked

    def _show(self, index: QModelIndex, _before: QModelIndex) -> None:
        waiting = self.model.rows[index.row()].waiting if index.isValid() else None
        self.code.set_diff(visible(waiting.difference) if waiting is not None else "")

    def _tell(self) -> None:
        number = self.model.ticked_count
        self.accept_button.setText(tr("Accept {number}", number=number) if number else tr("Accept"))
        self.accept_button.setEnabled(number > 0)
        self.all_button.setText(tr("None") if number else tr("All"))
        self.all_button.setAccessibleName(tr("Tick none") if number else tr("Tick all"))
        tools = counted(len(self.model.rows), "tool", "tools")
        self.note.setText(tr("{number} of {tools} ticked; no agent sees them before.", number=number, tools=tools))
