"""One catalog: its state and what to do about it, its tools, how it is defined, what its server wrote."""

import json
import time

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QComboBox, QHeaderView, QPushButton, QWidget

from gatewright.workspace.api import ToolFacts
from gatewright_gui.pages.access.tools.results_dialog import basis_words
from gatewright_gui.pages.servers.observe_dialog import mode_words
from gatewright_gui.pages.servers.room_pane import RoomPane
from gatewright_gui.pages.servers.tool_table import TIER, TOOL, WHY, ToolLine, ToolModel, lines_of, tool_view
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, keep_room, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.qt.widget.splitter import SizeStore, split_of
from gatewright_gui.session.calls import visible
from gatewright_gui.session.catalogs import CatalogRow, SafetyTier
from gatewright_gui.session.document import Document

TIERS = (
    (mark("as proposed"), None),
    (mark("all read-only"), SafetyTier.READ_ONLY),
    (mark("all with side effects"), SafetyTier.SIDE_EFFECTING),
    (mark("all privileged"), SafetyTier.PRIVILEGED),
)

_HELD = mark("Held: say which folders it gets. Until then it is not started, and no agent sees its tools.")
NAME_WIDTH = 220


class DetailPane(QWidget):
    """Shows one catalog; what is asked for goes out as signals with nothing in them."""

    trust_requested = Signal()
    start_requested = Signal()
    stop_requested = Signal()
    ask_requested = Signal()
    accept_requested = Signal()
    places_requested = Signal()
    """It is to be said which places its process gets."""
    observe_requested = Signal()
    """It is to be only observed until a moment, or enforced again."""
    remove_requested = Signal()
    try_requested = Signal(str)
    """A tool, by its name in the policy: somebody wants to make a call of it."""
    results_requested = Signal(object)
    """ToolFacts: it is to be said who writes the results of this tool."""

    def __init__(self, sizes: SizeStore, document: Document, tasks: TaskOwner) -> None:
        super().__init__()
        self._document = document
        self.setObjectName("catalogs.detail")
        self.row: CatalogRow | None = None
        self._stderr = ""
        self._state: tuple[str, str] | None = None
        self._read: tuple[str, str] | None = None
        """The state that somebody read and closed: it is not told again until another one came."""
        self.header = SectionHeader(tr("Catalog"))
        self.bar = named(MessageBar(), "catalogs.bar")
        self.trust_button = _button(
            tr("Trust..."), "lock-open", "trust", tr("See exactly what would be started, and trust it")
        )
        self.run_button = _button(tr("Start"), "play", "run", tr("Start the server and ask for its tools"))
        self.ask_button = _button(tr("Ask for tools"), "refresh-cw", "ask", tr("Ask the server for its tools again"))
        self.observe_button = _button(tr("Observe..."), "eye", "observe", "")
        self.remove_button = _button(tr("Remove..."), "trash", "remove", tr("Take the catalog out of the policy"))
        self.part = named(Segmented(tr("What to show of the catalog")), "catalogs.part")
        for key, words, tip in (
            ("tools", tr("Tools"), ""),
            ("server", tr("Definition"), ""),
            ("sees", tr("Sees"), tr("What its tools can see")),
            ("stderr", tr("Its messages"), ""),
        ):
            self.part.add_segment(key, words, tooltip=tip)
        # what comes and goes stands where it moves nothing else: *Ask for tools*, which comes with *Stop*, is the first
        always = self.observe_button, self.remove_button
        for control in (self.ask_button, self.part, self.trust_button, self.run_button, *always):
            self.header.add_control(control)
        for control in (self.trust_button, self.run_button, self.ask_button):
            control.hide()  # which of them there are is known with the first catalog; all at once are too wide
        self.model = ToolModel()
        self.view = named(tool_view(self.model, tr("Tools of the catalog"), NAME_WIDTH), "catalogs.tools")
        self.tool_header = SectionHeader(tr("Tool"))
        self.try_button = _button(tr("Try a call"), "terminal", "try", tr("Go to the Console with this tool"))
        tip = tr("Say who writes its results: you, or anybody outside")
        self.results_button = _button(tr("Results..."), "users", "results", tip)
        for control in (self.results_button, self.try_button):
            self.tool_header.add_control(control)
        self.code = named(CodeView(tr("Definition of the tool")), "catalogs.code")
        self.tier = named(QComboBox(), "catalogs.tier", spoken=tr("What accepted tools count as"))
        for words, tier in TIERS:
            self.tier.addItem(tr(words), tier)
        self.all_button = named(QPushButton(tr("None")), "catalogs.all", spoken=tr("Tick none of what waits"))
        self.accept_button = named(QPushButton(tr("Accept")), "catalogs.accept", kind="primary")
        self.accept_note = named(ElidedLabel(role="muted"), "catalogs.accept_note")
        accept = (stretch(self.accept_note), self.all_button, self.tier, self.accept_button)
        self._accept_bar = keep_room(holding(row_of(*accept, space=2, margins=(2, 1, 2, 1))))
        self.no_tools = EmptyState("package", tr("No tools yet"), "")
        self.definition = named(CodeView(tr("Definition of the catalog")), "catalogs.definition")
        self.stderr = named(CodeView(tr("What the server wrote on standard error")), "catalogs.stderr")
        self.sees = RoomPane(document, tasks, sizes, "catalogs.sees")
        panes = (self.view, holding(column_of(self.tool_header, stretch(self.code))))
        self._splitter = split_of(Qt.Orientation.Vertical, "catalogs.tools", sizes, panes, (260, 240))
        self._stack = stack_of(self._splitter, self.no_tools, self.definition, self.sees, self.stderr)
        column_of(self.header, stretch(self._stack), self._accept_bar, into=self)
        FootBars(self._stack, self.bar)
        self._connect()

    def show_row(self, row: CatalogRow, stderr: str, digest: str) -> None:
        """Show a catalog as it stands now."""
        is_other = self.row is None or self.row.catalog_id != row.catalog_id
        self.row, self._stderr = row, stderr
        self.header.set_title(row.catalog_id)
        observed = mode_words(row.state.catalog, time.time())
        self.header.set_note(", ".join(filter(None, (row.status[0], row.held_words, observed))))
        tie_icon(self.observe_button, "shield-check" if observed else "eye")
        self.observe_button.setText(tr("Enforce") if observed else tr("Observe..."))
        tip = tr("Deny and ask again as the policy says")
        tip = tip if observed else tr("Only note for a time what would be denied or asked of its tools")
        named(self.observe_button, spoken=self.observe_button.text().rstrip("."), tip=tip)
        self._tell_state(row)
        self.trust_button.setVisible(not row.is_trusted)
        self.run_button.setVisible(row.is_server and row.is_trusted)
        self.run_button.setText(tr("Stop") if row.is_up else tr("Start"))
        tie_icon(self.run_button, "circle-stop" if row.is_up else "play")
        self.ask_button.setVisible(row.is_up)
        self.header.refit()
        at = self.view.currentIndex().row()
        self.model.set_lines(lines_of(row), afresh=is_other)
        self._fit_columns()
        if self.model.rows and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(min(max(at, 0), len(self.model.rows) - 1), TOOL))
        self.definition.set_plain(_definition(row, digest))
        self.sees.show_subject(row.catalog_id)
        nothing = tr("The server has written nothing.")
        if not row.is_run_here:
            nothing = tr("It has no server: another program runs its tools.")
        elif not row.is_server:
            nothing = tr("It has no server: each call is run by itself.")
        self.stderr.set_plain(stderr or nothing)
        self._show_part()
        self._tell_ticks()

    @property
    def chosen_tier(self) -> SafetyTier | None:
        """What accepted tools are to count as; None: as it is proposed."""
        tier = self.tier.currentData()
        return None if tier is None else SafetyTier(tier)

    def _fit_columns(self) -> None:
        """A column that would be empty is not there; without reasons the names have its room."""
        lines, modes = self.model.rows, QHeaderView.ResizeMode
        has_why = any(line.why for line in lines)
        self.view.setColumnHidden(TIER, not any(line.tier for line in lines))
        self.view.setColumnHidden(WHY, not has_why)
        self.view.horizontalHeader().setSectionResizeMode(TOOL, modes.Interactive if has_why else modes.Stretch)
        if has_why:
            self.view.setColumnWidth(TOOL, NAME_WIDTH)

    def _connect(self) -> None:
        self.trust_button.clicked.connect(self.trust_requested)
        self.run_button.clicked.connect(self._run)
        self.ask_button.clicked.connect(self.ask_requested)
        self.observe_button.clicked.connect(self.observe_requested)
        self.remove_button.clicked.connect(self.remove_requested)
        self.accept_button.clicked.connect(self.accept_requested)
        self.all_button.clicked.connect(lambda: self.model.tick_all(not self.model.ticked))
        self.try_button.clicked.connect(self._try)
        self.results_button.clicked.connect(self._ask_results)
        self.sees.places_requested.connect(self.places_requested)
        self.part.current_changed.connect(self._show_part)
        self.part.current_changed.connect(self._tell_ticks)
        self.model.ticks_changed.connect(self._tell_ticks)
        self.view.selectionModel().currentChanged.connect(self._show_tool)
        self.bar.action_requested.connect(self._act)
        self.bar.closed.connect(self._keep_read)

    def _tell_state(self, row: CatalogRow) -> None:
        server = row.server
        text = ""
        if row.fault:
            text = _sentence(row.fault.replace("`", ""))
        elif row.waits_for_places and row.is_trusted:
            text = _HELD
        elif server is None and not row.is_trusted:
            text = tr("What runs its tools is not trusted yet: see what it is")
        elif server is not None and (server.reason or server.notes):
            advice = _advice(row) if server.reason else ""
            text = ". ".join(_sentence(part) for part in (server.reason, advice, *server.notes) if part)
        state = row.catalog_id, text
        if state == self._read:
            return
        self._read = None
        if not text:
            self.bar.hide()
        elif row.fault:
            self.bar.show_message("error", text)
        elif text is _HELD:
            self.bar.show_message("warning", tr(_HELD), action=tr("Places..."))
        elif row.has_failed or not row.is_trusted:
            tone = "error" if row.is_trusted else "warning"
            self.bar.show_message(tone, text, action=tr("Try again") if row.is_trusted else tr("Trust..."))
        else:
            self.bar.show_message("info", text)
        self._state = state

    def _keep_read(self) -> None:
        self._read = self._state

    def _act(self) -> None:
        row, self._read = self.row, None  # what comes of it is told, also where that is the same again
        if row is None or not row.is_trusted:
            self.trust_requested.emit()
        elif row.waits_for_places:
            self.places_requested.emit()
        else:
            self.start_requested.emit()

    def _run(self) -> None:
        row = self.row
        if row is not None and row.waits_for_places:
            self.places_requested.emit()
        elif row is not None:
            (self.stop_requested if row.is_up else self.start_requested).emit()

    def _try(self) -> None:
        line = self._line
        if line is not None and line.policy_name:
            self.try_requested.emit(line.policy_name)

    def _ask_results(self) -> None:
        if (facts := self._facts) is not None:
            self.results_requested.emit(facts)

    @property
    def _facts(self) -> ToolFacts | None:
        """The current tool as the policy knows it; None for one that is held."""
        name = self._line.policy_name if self._line is not None else ""
        return next((one for one in self._document.catalog if one.name == name), None) if name else None

    def _show_part(self, _key: object = None) -> None:
        part, row = self.part.current, self.row
        if part == "tools" and row is not None and not self.model.rows:
            if row.is_server:
                way = tr("Start it to see what it offers.") if row.is_trusted else tr("Trust it, then start it.")
                way = tr("It runs, and has listed none so far.") if row.is_up else way
            else:
                way = tr("Its program says in its manifest which tools it has.")
            self.no_tools.set_state("package", tr("No tools yet"), way)
            self._stack.setCurrentWidget(self.no_tools)
            return
        parts = {"tools": self._splitter, "server": self.definition, "sees": self.sees, "stderr": self.stderr}
        self._stack.setCurrentWidget(parts[part or "tools"])
        self._show_tool()

    @property
    def _line(self) -> ToolLine | None:
        """The current row of the table."""
        index, lines = self.view.currentIndex(), self.model.rows
        return lines[index.row()] if index.isValid() and index.row() < len(lines) else None

    def _show_tool(self, _index: QModelIndex | None = None, _before: object = None) -> None:
        line = self._line
        self.try_button.setEnabled(line is not None and bool(line.policy_name))
        if line is None:
            self.code.set_plain("")
            self.results_button.setEnabled(False)
            return
        self.tool_header.set_title(line.name)
        is_other, facts = line.policy_name not in ("", line.name), self._facts
        notes = [tr("{tool} in the policy", tool=line.policy_name)] if is_other else []
        notes += [basis_words(self._document, facts)] if facts is not None else []
        self.tool_header.set_note(", ".join(notes))
        self.results_button.setEnabled(facts is not None)
        definition = line.definition
        if self.row is not None and self.row.state.pin is None:
            definition = self._document.workspace.tool_definition(line.policy_name)
        if line.waiting is not None:
            self.code.set_diff(visible(line.waiting.difference))
        elif definition is not None:
            self.code.set_json(visible(json.dumps(definition, indent=2, ensure_ascii=False)))
        else:
            self.code.set_plain(visible(line.note))

    def _tell_ticks(self, _why: object = None) -> None:
        waits = sum(line.waiting is not None for line in self.model.rows)
        number = self.model.ticked_count
        self._accept_bar.setVisible(waits > 0 and self.part.current == "tools")
        self.accept_button.setText(tr("Accept {number}", number=number) if number else tr("Accept"))
        self.accept_button.setEnabled(number > 0)
        self.all_button.setText(tr("None") if number else tr("All"))
        self.all_button.setAccessibleName(tr("Tick none of what waits") if number else tr("Tick all that waits"))
        self.accept_note.set_text(
            tr("{number} of {waits} held tools ticked; no agent sees them before.", number=number, waits=waits)
        )


def _button(words: str, icon: str, name: str, tip: str) -> WordButton:
    button = named(WordButton(words), f"catalogs.{name}", spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button


def _advice(row: CatalogRow) -> str:
    if not row.is_trusted:
        return tr("see what it is, and trust it if that is what you want")
    return row.server.advice if row.server is not None else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".")


def _definition(row: CatalogRow, digest: str) -> str:
    catalog, pin = row.state.catalog, row.state.pin
    lines = [tr("type      {kind}", kind=catalog.kind)]
    if catalog.command is not None:
        lines.append(tr("command   {command}", command=catalog.command))
        lines += [tr("argument  {word}", word=word) for word in catalog.args]
        besides = tr("PATH and LANG besides") if catalog.is_confined else tr("PATH, HOME and LANG besides")
        lines.append(tr("variables {names}  ({besides})", names=", ".join(catalog.env) or tr("none"), besides=besides))
        lines.append(tr("folder    {folder}", folder=catalog.cwd or tr("the folder of the policy")))
    if catalog.url is not None:
        lines.append(tr("address   {url}", url=catalog.url))
        lines += [
            tr("header    {header} from the variable {variable}", header=header, variable=name)
            for header, name in catalog.headers_env.items()
        ]
        lines += [
            tr("query     {field} from the variable {variable}", field=field, variable=name)
            for field, name in catalog.query_env.items()
        ]
    if catalog.module:
        lines.append(tr("module    {module}", module=catalog.module))
    if catalog.manifest:
        lines.append(tr("manifest  {manifest}", manifest=catalog.manifest))
    if digest:
        lines.append(tr("digest    {digest}", digest=digest))
    if pin is not None:
        called = f"{pin.listing.name or '?'} {pin.listing.version}"
        lines += ["", tr("calls itself {name}", name=called), pin.listing.instructions]
    return "\n".join(lines).rstrip() + "\n"


def definition_words(row: CatalogRow, digest: str) -> str:
    """What a person trusts: the exact command or address, the names of its variables, the digest."""
    return _definition(row, digest).split("\n\n", maxsplit=1)[0]
