"""Two questions about a server: is it trusted, and with which places; until when is it only observed.

The first shows exactly what would be started or reached before anything is.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QLineEdit, QMenu, QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import MOST_OBSERVE_S, Catalog, CatalogType, PlaceUse
from gatewright_gui.pages.servers.room_browser import RoomBrowser, fitting_height
from gatewright_gui.pages.servers.room_tree import USE_ICONS, USE_MEANINGS
from gatewright_gui.qt.dialog import CheckedDialog, FormDialog, choose_folder
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import aligned, column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.session.confinement import USE_WORDS, place_name, trial_room
from gatewright_gui.session.document import Document
from gatewright_gui.session.servers import FORM, install_words, moment_words, names
from gatewright_gui.session.verbs.operations import lists_tool


@dataclass(frozen=True, slots=True)
class ProposedServer:
    """A server that is to be trusted, words for what it is, a line each, and its places as they are proposed."""

    catalog: Catalog
    words: str
    places: Mapping[str, PlaceUse]


class TrustDialog(FormDialog):
    """Accepted: the servers may be started from now on, each with its `places`.

    `is_trusted`: they may already, only their places are asked about.
    """

    def __init__(
        self,
        parent: QWidget | None,
        document: Document,
        tasks: TaskOwner,
        servers: tuple[ProposedServer, ...],
        *,
        is_trusted: bool = False,
    ) -> None:
        is_one = len(servers) == 1
        ids = [server.catalog.catalog_id for server in servers]
        who = ids[0] if is_one else counted(len(ids), "server", "servers")
        title = tr("Places of {servers}", servers=who) if is_trusted else tr("Trust {servers}?", servers=who)
        accept = tr("Trust and start") if is_one else tr("Trust and start all")
        if is_trusted:
            accept = tr("Accept and start")
        if not any(one.catalog.kind is CatalogType.MCP for one in servers):  # nothing of it starts before a call
            accept = tr("Accept") if is_trusted else tr("Trust")
        super().__init__(parent, "trust", title, accept, tr("Not now"))
        self._document, self._tasks = document, tasks
        self._catalogs = {one.catalog.catalog_id: one.catalog for one in servers if one.catalog.takes_places}
        self.places = {
            one.catalog.catalog_id: dict(one.places) for one in servers if one.catalog.catalog_id in self._catalogs
        }
        """The places for each confined server and each module."""
        words = servers[0].words if is_one else "\n\n".join(_paragraph(one) for one in servers)
        told = trust_words([server.catalog for server in servers], is_trusted=is_trusted)
        self.setAccessibleDescription("\n".join([*(f"{name}: {said}" for name, said in told), words]))
        self.code = named(CodeView(tr("What is trusted")), "trust.definition")
        self.code.set_wrapping(True)
        self.code.set_plain(words)
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(current_look().tokens.space_3)
        form.setVerticalSpacing(current_look().tokens.space_1)
        for name, said in told:
            form.addRow(named(Label(name), kind="muted"), Label(said, wraps=True))
        says = column_of(named(Label(title), kind="heading"), form, space=2)
        shield = aligned(IconLabel("shield-alert", "ask", size=24), Qt.AlignmentFlag.AlignTop)
        head = row_of(shield, stretch(says), space=3)
        self.browser = RoomBrowser(tasks, "trust.places", self)
        self.use = named(Segmented(tr("What it may do in the place")), "trust.use")
        for use, marked in USE_WORDS.items():
            self.use.add_segment(str(use), tr(marked), icon=USE_ICONS[use], tooltip=tr(USE_MEANINGS[use]))
        self.meaning = named(Label(wraps=True), "trust.meaning", kind="muted")
        self.folder_button = _button(tr("Add folder..."), "folder-plus", "folder", tr("Give it a folder more"))
        self.source_button = _button(tr("Add source"), "plus", "source", tr("Give it the folder of a source"))
        self.remove_button = _button(
            tr("Remove"), "minus", "remove", tr("It does not get this place (Del in the list)")
        )
        self.source_menu = named(QMenu(self), "trust.sources")
        self.source_menu.setAccessibleName(tr("Sources"))
        self.source_button.setMenu(self.source_menu)
        if self._catalogs:
            tools = (self.folder_button, self.source_button, self.remove_button)
            row = row_of(self.use, stretch(), *tools, space=2)
            self.lay_out(head, stretch(self.code, 1), stretch(self.browser, 2), row, self.meaning, space=2)
        else:
            self.browser.hide()
            self.lay_out(head, stretch(self.code), space=3)
        self._connect()
        self.cancel_button.setDefault(True)
        self.resize(760, fitting_height(parent, 680 if self._catalogs else 400 if is_one else 600))
        self.cancel_button.setFocus()
        self._show()

    def done(self, result: int) -> None:
        """Nothing is counted any more."""
        self.browser.end()
        super().done(result)

    def _connect(self) -> None:
        self.browser.place_chosen.connect(self._show_place)
        self.browser.remove_requested.connect(self._remove)
        self.use.current_changed.connect(self._set_use)
        self.folder_button.clicked.connect(lambda: self._tasks.start(self._add_folder(), "trust.folder", replace=True))
        self.remove_button.clicked.connect(self._remove)
        self.source_menu.aboutToShow.connect(self._fill_sources)

    @property
    def _current(self) -> str:
        """The server that the current row belongs to."""
        ids = tuple(self._catalogs)
        number = self.browser.room
        return ids[number if number < len(ids) else 0]

    def _show(self) -> None:
        if self._catalogs:
            rooms = [trial_room(self._document, one, self.places[name]) for name, one in self._catalogs.items()]
            self.browser.set_rooms(rooms)
            self._show_place()

    def _show_place(self) -> None:
        place = self.browser.place
        self.remove_button.setEnabled(place is not None)
        self.use.setEnabled(place is not None)
        if place is not None:
            is_module = bool(self._catalogs[self._current].module)
            self.use.set_segment_enabled(str(PlaceUse.SNAPSHOT), not is_module)
            self.use.set_current(str(place[1].use))
            self.meaning.setText(tr(USE_MEANINGS[place[1].use]))
        else:
            self.meaning.setText("")

    def _set_use(self, key: object) -> None:
        place = self.browser.place
        if place is not None and str(place[1].use) != key:
            self.places[self._current][place[1].written] = PlaceUse(str(key))
            self._show()

    def _remove(self) -> None:
        place = self.browser.place
        if place is not None:
            self.places[self._current].pop(place[1].written, None)
            self._show()

    def add_place(self, server: str, written: str) -> None:
        """Give a server one more place, to be read, and go to its row."""
        self.places[server].setdefault(written, PlaceUse.READ)
        self._show()
        self.browser.choose(server, written)

    async def _add_folder(self) -> None:
        server = self._current
        found = await choose_folder(self, tr("A folder for {server}", server=server), self._document.workspace.folder)
        if found is not None and isValid(self):
            self.add_place(server, place_name(self._document, found))

    def _fill_sources(self) -> None:
        self.source_menu.clear()
        server = self._current
        for source in self._document.policy.file_sources:
            if source.source_id not in self.places[server]:
                action = self.source_menu.addAction(button_text(f"{source.source_id}  ({source.base_path})"))
                action.triggered.connect(partial(self.add_place, server, source.source_id))
        if self.source_menu.isEmpty():
            self.source_menu.addAction(tr("no other source")).setEnabled(False)


def trust_words(catalogs: Sequence[Catalog], *, is_trusted: bool = False) -> tuple[tuple[str, str], ...]:
    """Say what starts, what it reaches, and what follows from yes and no: a heading and a sentence each."""
    after = tr("You see its tools and accept them; no agent has one before.")
    no = tr("It stays off, and no agent can use it. You can come back to this.")
    installs = _of_each([catalog for catalog in catalogs if install_words(catalog)], install_words)
    return (
        (tr("Starts"), _of_each(catalogs, _start_words)),
        *(((tr("Installs"), installs),) if installs else ()),
        (tr("Reaches"), _of_each(catalogs, _reach_words)),
        *(() if is_trusted else ((tr("If yes"), after),)),
        (tr("If not now"), no),
        (tr("Asked again"), tr("When its command, folder, variables, address or module changes.")),
    )


def _of_each(catalogs: Sequence[Catalog], words: Callable[[Catalog], str]) -> str:
    """One sentence where it holds for all; else a line for each that says for which."""
    found: dict[str, list[str]] = {}
    for catalog in catalogs:
        found.setdefault(words(catalog), []).append(catalog.catalog_id)
    if len(found) < 2:
        return next(iter(found), "")
    return "\n".join(tr("{servers}: {words}", servers=names(ids), words=said) for said, ids in found.items())


def _start_words(catalog: Catalog) -> str:
    if catalog.url is not None:
        return tr("Nothing on this computer: the server at the address below is called.")
    if catalog.kind is CatalogType.MCP:
        return tr("The program below, on this computer, now and with later calls.")
    return tr("The program below, on this computer, with each call.")


def _reach_words(catalog: Catalog) -> str:
    if catalog.url is not None:
        return tr("What agents write into their calls goes to that address.")
    if catalog.module:
        return tr("Only the places below, and nothing else of this computer.")
    if catalog.is_confined:
        return tr("Of your files only the places below.")
    return tr("All that you can: your files, keys and networks. No policy limits what it does by itself.")


def _button(words: str, icon: str, name: str, tip: str) -> QPushButton:
    button = named(QPushButton(words), f"trust.{name}", spoken=words.rstrip("."), tip=tip)
    button.setAutoDefault(False)
    tie_icon(button, icon)
    return button


def _paragraph(server: ProposedServer) -> str:
    return "\n".join((server.catalog.catalog_id, *(f"  {line}" for line in server.words.splitlines())))


OBSERVE_SIZE = (560, 320)
DAYS = {"1": 1, "7": 7, "30": 30}
_DAY_S = 86_400.0
_MINUTE_S = 60.0
ABOUT = mark(
    "Until then its calls run although rules, levels or approvals would deny them or ask first; the log notes each. "
    "Closed places, confinement, the policy's own protection and the stop hold all the same."
)


def read_moment(text: str, now_s: float) -> tuple[float, str]:
    """Read the moment that the text names, with its fault; empty if it can be observed until then."""
    try:
        found_s = datetime.strptime(text.strip(), FORM).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0, tr("say the end as {form}", form=moment_words(now_s + 7 * _DAY_S))
    if found_s <= now_s:
        return 0.0, tr("this moment is over: take a later one")
    if found_s > now_s + MOST_OBSERVE_S:
        last = moment_words(now_s + MOST_OBSERVE_S)
        return 0.0, tr("nothing is observed for more than 30 days: take {last} or earlier", last=last)
    return found_s, ""


def holders_of(document: Document, catalog_id: str) -> tuple[str, ...]:
    """The agents that may have tools of a catalog."""
    tools = [facts for facts in document.catalog if facts.origin == catalog_id]
    agents = document.policy.agents.values()
    return tuple(one.agent_id for one in agents if any(lists_tool(one.tools, facts) for facts in tools))


class ObserveDialog(CheckedDialog):
    """Accepted: `until_s` holds the end, in seconds since 1970."""

    def __init__(self, parent: QWidget | None, document: Document, catalog_id: str) -> None:
        super().__init__(parent, "observe", tr("Only observe {catalog}", catalog=catalog_id), tr("Observe"))
        self.until_s = 0.0
        self.span = named(Segmented(tr("For how long")), "observe.span")
        for key, days in DAYS.items():
            self.span.add_segment(key, counted(days, "day", "days"))
        self.until = named(QLineEdit(), "observe.until", spoken=tr("Until"))
        self.until.setMaxLength(40)
        agents = holders_of(document, catalog_id)
        named_agents = tr("Agents that may have its tools: {agents}.", agents=", ".join(agents))
        whom = named_agents if agents else tr("No agent has a tool of it.")
        self.lay_out(
            self.heading,
            named(Label(tr(ABOUT), wraps=True), "observe.about", kind="muted"),
            named(Label(whom, wraps=True), "observe.agents"),
            Label(tr("&Until"), buddy=self.until),
            row_of(stretch(self.until), self.span, space=2),
            self.fault,
            stretch(),
        )
        self.span.current_changed.connect(self._take_span)
        self.until.textChanged.connect(self._check)
        self.span.set_current("7")
        self.until.setFocus()
        self.until.selectAll()
        self.resize(*OBSERVE_SIZE)

    def accept(self) -> None:
        """Close, unless the moment cannot be taken any more."""
        self._check()
        if self.accept_button.isEnabled():
            super().accept()

    def _take_span(self, key: str) -> None:
        until_s = time.time() + DAYS[key] * _DAY_S
        self.until.setText(moment_words(until_s - until_s % _MINUTE_S))

    def _check(self, _text: str = "") -> None:
        self.until_s, fault = read_moment(self.until.text(), time.time())
        self.say(fault)
        self.accept_button.setEnabled(not fault)
