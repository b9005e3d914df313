"""The right side of the place Servers: facts of the chosen row in plain words, what can be done, definitions last."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import ToolFacts
from gatewright_gui.pages.servers.room_pane import RoomPane
from gatewright_gui.pages.servers.tools import ToolsPart
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.item_view import Delegate, TableView, put_icon, tint
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.splitter import SizeStore, split_of
from gatewright_gui.session.catalogs import CatalogRow
from gatewright_gui.session.document import Document
from gatewright_gui.session.servers import Fact, Row

_WEIGHTS = {"allow": mark("fine"), "ask": mark("look at it"), "deny": mark("not safe")}
FACTS_SHARE = (300, 380)


class FactModel(RowModel[Fact]):
    """A sentence a row."""

    def key(self, row: Fact) -> object:
        """The icon: times in a sentence change."""
        return row.icon, row.text[:24]

    def text(self, row: Fact, _column: int) -> str:
        """The sentence; places below the home folder in short."""
        return plain(row.text).replace(f"{Path.home()}/", "~/")

    def tip(self, row: Fact, column: int) -> str:
        """The sentence, which may be longer than its place."""
        return self.text(row, column)

    def spoken(self, row: Fact, column: int) -> str:
        """The sentence with its weight."""
        weight = _WEIGHTS.get(row.role)
        return f"{tr(weight)}: {self.text(row, column)}" if weight else self.text(row, column)


class _Delegate(Delegate):
    """The icon of a fact, and red words for what is not safe."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        fact = index.data(ROW)
        if isinstance(fact, Fact):
            put_icon(option, fact.icon, fact.role)
            if fact.role == "deny":
                tint(option, "deny")


class DetailPane(QWidget):
    """Shows one row. The page gives the buttons of what can be done."""

    def __init__(self, sizes: SizeStore, document: Document, tasks: TaskOwner, verbs: Iterable[QWidget]) -> None:
        super().__init__()
        self.setObjectName("servers.detail")
        self._row: Row | None = None
        self._stderr = ""
        self.header = SectionHeader("")
        self.state = named(Chip(""), "servers.state")
        self.header.add_control(self.state)
        self.facts = FactModel()
        self.facts_view = named(TableView(tr("What is known of it")), "servers.facts")
        self.facts_view.setItemDelegate(_Delegate(self.facts_view))
        self.facts_view.show_model(self.facts, {}, wide=0)
        self.facts_view.horizontalHeader().hide()
        self.facts_view.setWordWrap(True)
        self.facts_view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.facts_view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.facts_view.horizontalHeader().sectionResized.connect(self.facts_view.resizeRowsToContents)
        space = current_look().tokens.space_2
        buttons = QWidget()
        flow = FlowLayout(buttons, spacing=space)
        flow.setContentsMargins(space, space // 2, space, space)
        for button in verbs:
            flow.addWidget(button)
        self.part = named(Segmented(tr("What to show of it")), "servers.part")
        for key, words, tip in (
            ("tools", tr("Tools"), ""),
            ("sees", tr("What it sees"), tr("The folders, hosts and programs that it gets")),
            ("server", tr("Definition"), ""),
            ("stderr", tr("Its messages"), tr("The end of what it wrote on standard error")),
        ):
            self.part.add_segment(key, words, tooltip=tip)
        self.tools = ToolsPart(sizes, document)
        self.no_tools = EmptyState("package", tr("No tools yet"), "")
        self.definition = named(CodeView(tr("Definition of the server")), "servers.definition")
        self.stderr = named(CodeView(tr("What the server wrote on standard error")), "servers.stderr")
        self.sees = RoomPane(document, tasks, sizes, "servers.sees")
        self._stack = stack_of(self.tools, self.no_tools, self.definition, self.sees, self.stderr)
        self._parts = holding(column_of(row_of(self.part, stretch(), margins=(2, 1)), stretch(self._stack)))
        top = holding(column_of(stretch(self.facts_view), buttons))
        panes = top, self._parts
        self._split = split_of(Qt.Orientation.Vertical, "servers.detail", sizes, panes, FACTS_SHARE)
        column_of(self.header, stretch(self._split), into=self)
        self.part.current_changed.connect(self._show_part)

    def show_row(self, row: Row | None, facts: Iterable[Fact]) -> None:
        """Show the facts of a row; of a server `show_server` shows the rest."""
        is_other = self._row is None or row is None or self._row.key != row.key
        self._row = row
        self.header.setVisible(row is not None)
        self._split.setVisible(row is not None)
        if row is None:
            return
        self.header.set_title(row.name)
        self.state.set_chip(row.state, row.icon or None, row.role)
        self.facts.set_rows(facts)
        self.facts_view.resizeRowsToContents()  # a sentence may have become longer
        self._parts.setVisible(isinstance(row.subject, CatalogRow))
        if is_other:
            self.facts_view.scrollToTop()

    def show_server(self, row: CatalogRow, facts: Mapping[str, ToolFacts], definition: str, stderr: str) -> None:
        """Show the tools of a server, its definition, what it sees and what it wrote."""
        self.tools.show_row(row, facts)
        self.definition.set_plain(definition)
        self.sees.show_subject(row.catalog_id)
        for key in ("sees", "stderr"):  # nothing of it is here
            self.part.set_segment_enabled(key, row.is_run_here)
        nothing = tr("The server has written nothing.")
        if not row.is_server:
            nothing = tr("It has no server: each call is run by itself.")
        self.stderr.set_plain(stderr or nothing)
        self._show_part()

    def _show_part(self, _key: object = None) -> None:
        part, row = self.part.current or "tools", self._row
        part = part if self.part.button(part).isEnabled() else "tools"
        subject = row.subject if row is not None else None
        if part == "tools" and isinstance(subject, CatalogRow) and not self.tools.model.rows:
            words, action = _way_to_tools(subject)
            self.no_tools.set_state("package", tr("No tools yet"), words, action=action)
            self._stack.setCurrentWidget(self.no_tools)
            return
        parts = {"tools": self.tools, "server": self.definition, "sees": self.sees, "stderr": self.stderr}
        self._stack.setCurrentWidget(parts[part])


def _way_to_tools(row: CatalogRow) -> tuple[str, str | None]:
    """Say how its tools come, with the words of the button that does it."""
    if row.is_run_here and not row.is_trusted:
        return tr("Look at what it is; once you trust it, it says what it offers."), tr("Trust...")
    if not row.is_server:
        return tr("Its file says which tools it has."), None
    if row.is_up:
        return tr("It runs, and has named none so far."), None
    if row.waits_for_places:
        return tr("Say which folders it gets; then it starts and says what it offers."), tr("Places...")
    return tr("Start it to see what it offers."), tr("Start")


def definition_words(row: CatalogRow, digest: str) -> str:
    """The words that a person trusts: the exact command or address, the names of its variables, the digest."""
    return definition_text(row, digest).split("\n\n", maxsplit=1)[0]


def definition_text(row: CatalogRow, digest: str) -> str:
    """The definition of a server, a line each, and what it calls itself."""
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
