"""The room of a server or of shell commands: places drawn, hosts, programs, variables, bounds, and what confines it."""

import asyncio

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QSizePolicy, QWidget
from shiboken6 import isValid

from gatewright_gui.pages.servers.room_browser import RoomBrowser, fitting_height
from gatewright_gui.qt.dialog import FormDialog, run_dialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.qt.widget.splitter import SizeStore, split_of
from gatewright_gui.session.confinement import (
    Fact,
    agents_of,
    confinements,
    facts_of,
    room_of,
    standing_of,
    why_not_run,
)
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import catalogs as verbs

FACT, VALUE = range(2)
GIVEN_AWAY = (
    mark("read every file that you can read: your home folder, keys and passwords, other projects"),
    mark("change and delete every file that you can change, this policy too"),
    mark("connect to every host that this computer reaches, and send there what it read"),
    mark("start any program with your rights"),
)


class UnconfineDialog(FormDialog):
    """Says what is given away; accepted only once its box is ticked. `catalog_id` None: it is about shell commands."""

    def __init__(self, parent: QWidget | None, catalog_id: str | None) -> None:
        is_shell = catalog_id is None
        title = tr("Stop confining shell commands?") if is_shell else tr("Stop confining {server}?", server=catalog_id)
        super().__init__(parent, "unconfine", title, tr("Stop confining"), tr("Keep confined"))
        told = tr("Levels and hosts of the policy no longer hold for what shell commands start. They may:")
        if not is_shell:
            told = tr(
                "Levels, places and hosts of the policy no longer hold for what {server} does. It may:",
                server=catalog_id,
            )
        after = tr("Calls are still read and asked about. What a program does beyond their words, nobody sees.")
        self.setAccessibleDescription("\n".join((told, *map(tr, GIVEN_AWAY), after)))
        rows = [
            row_of(IconLabel("circle-x", "deny"), stretch(Label(tr(one), wraps=True)), space=2) for one in GIVEN_AWAY
        ]
        words = column_of(Label(told, wraps=True), *rows, Gap(1), Label(after, wraps=True), space=2)
        agree = tr("Shell commands may do all that I may") if is_shell else tr("This server may do all that I may")
        self.box = named(QCheckBox(agree), "unconfine.agree")
        self.box.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        head = row_of(column_of(IconLabel("shield-x", "deny", size=24), stretch()), stretch(words), space=3)
        self.lay_out(head, self.box, stretch(), space=3)
        self.accept_button.setProperty("kind", "danger")
        self.accept_button.setAutoDefault(False)
        self.accept_button.setEnabled(False)
        self.cancel_button.setDefault(True)
        self.box.toggled.connect(self.accept_button.setEnabled)
        self.resize(560, self.sizeHint().height())
        self.cancel_button.setFocus()


class ConfineBand(QWidget):
    """Shows how it is held, the way to the question above, the way back. `name` begins the names of what is in it."""

    def __init__(self, document: Document, tasks: TaskOwner, name: str) -> None:
        super().__init__()
        named(self, name)
        self._document, self._tasks, self._name = document, tasks, name
        self._catalog_id: str | None = None
        self._icon = IconLabel("info", "muted")
        self.words = named(Label(wraps=True), f"{name}.words")
        self.free_button = named(
            QPushButton(tr("Stop confining...")), f"{name}.free", tip=tr("See what that gives away, and decide")
        )
        self.confine_button = named(
            QPushButton(tr("Confine again")), f"{name}.again", tip=tr("Have the policy hold for it again")
        )
        tie_icon(self.free_button, "lock-open")
        tie_icon(self.confine_button, "lock")
        row_of(
            self._icon, stretch(self.words), self.free_button, self.confine_button, into=self, space=2, margins=(2, 1)
        )
        self.free_button.clicked.connect(self._ask)
        self.confine_button.clicked.connect(lambda: verbs.confine(self._document, self._catalog_id))

    def show_standing(self, catalog_id: str | None, why_not: str = "") -> None:
        """Tell it of the server of a catalog, or (None) of shell commands, as the policy is edited now.

        `why_not`: why nothing can be confined on this system.
        """
        self._catalog_id = catalog_id
        standing = standing_of(self._document, catalog_id, why_not)
        self._icon.set_icon(standing.icon, standing.tone)
        self.words.setText(standing.words)
        self.setAccessibleName(standing.words)
        self.free_button.setVisible(standing.can_unconfine)
        self.confine_button.setVisible(standing.can_confine)

    def _ask(self) -> None:
        self._tasks.start(self._unconfine(self._catalog_id), f"{self._name}.unconfine", replace=True)

    async def _unconfine(self, catalog_id: str | None) -> None:
        if await run_dialog(UnconfineDialog(self, catalog_id)):
            verbs.unconfine(self._document, catalog_id)


class FactModel(RowModel[Fact]):
    """The other things that a process gets, a line each."""

    headers = (mark("It"), mark("What"))

    def text(self, row: Fact, column: int) -> str:
        """Cells."""
        return row.name if column == FACT else row.value

    def tip(self, row: Fact, _column: int) -> str:
        """The whole value, however long it is."""
        return row.value

    def spoken(self, row: Fact, column: int) -> str:
        """Each line with its name."""
        if column == VALUE:
            return ""
        at = list(self.rows).index(row)
        name = next((one.name for one in reversed(self.rows[: at + 1]) if one.name), "")
        return f"{name}: {row.value}"


class RoomPane(QWidget):
    """Shows it for one agent or for all that have it, while somebody looks."""

    places_requested = Signal()

    def __init__(self, document: Document, tasks: TaskOwner, sizes: SizeStore, name: str) -> None:
        super().__init__()
        self._document, self._tasks, self._name = document, tasks, name
        self._catalog_id: str | None = None
        self._why_not = ""
        """The reason for which it is not run, as far as it was found out."""
        self.band = ConfineBand(document, tasks, f"{name}.confine")
        self.agents = named(QComboBox(), f"{name}.agents", spoken=tr("Agent whose calls it serves"))
        self.agents.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.places_button = named(QPushButton(tr("Places...")), f"{name}.places", tip=tr("Say which folders it gets"))
        tie_icon(self.places_button, "folder-open")
        self.browser = RoomBrowser(tasks, f"{name}.room")
        self.facts = FactModel()
        self.table = named(TableView(tr("What else it gets")), f"{name}.facts")
        self.table.show_model(self.facts, {FACT: 150}, wide=VALUE)
        self.table.horizontalHeader().hide()
        panes = (self.browser, self.table)
        self.split = split_of(Qt.Orientation.Vertical, name, sizes, panes, (300, 180))
        head = row_of(self.agents, stretch(), self.places_button, space=2, margins=(2, 1))
        column_of(self.band, head, stretch(self.split), into=self)
        self.agents.activated.connect(self._show)
        self.places_button.clicked.connect(self.places_requested)
        document.policy_changed.connect(self._refresh)
        document.closed.connect(self.browser.end)

    def show_subject(self, catalog_id: str | None, agent_id: str | None = None) -> None:
        """The server of a catalog, or (None) shell commands; for one agent, or for all that have it."""
        is_other = catalog_id != self._catalog_id
        self._catalog_id = catalog_id
        self._why_not = "" if is_other else self._why_not
        if is_other:
            self.agents.clear()
        if agent_id is not None:
            self._list_agents(agent_id)
        self._refresh()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """It is looked at."""
        super().showEvent(event)
        self.browser.refresh()
        self._refresh()

    @property
    def _chosen(self) -> tuple[str, ...]:
        agent_id = self.agents.currentData()
        return (str(agent_id),) if agent_id else agents_of(self._document, self._catalog_id)

    def _list_agents(self, chosen: str | None) -> None:
        with QSignalBlocker(self.agents):
            self.agents.clear()
            self.agents.addItem(tr("All agents that have it"), "")
            for agent_id in agents_of(self._document, self._catalog_id):
                self.agents.addItem(tr("For {agent}", agent=agent_id), agent_id)
            self.agents.setCurrentIndex(max(0, self.agents.findData(chosen or "")))

    def _refresh(self, _changes: object = None) -> None:
        if not self.isVisible() or not self._document.is_open:
            return
        self._list_agents(str(self.agents.currentData() or ""))
        self._tasks.start(self._try(), f"{self._name}.try", replace=True)
        self._show()

    async def _try(self) -> None:
        """Look whether it can be held on this system, and given its places."""
        catalog_id, agents = self._catalog_id, self._chosen
        why_not = await asyncio.to_thread(why_not_run, self._document, catalog_id, agents)
        if isValid(self) and catalog_id == self._catalog_id and why_not != self._why_not:
            self._why_not = why_not
            self._show()

    def _show(self, _index: int = 0) -> None:
        catalog_id, agents = self._catalog_id, self._chosen
        self.band.show_standing(catalog_id, self._why_not)
        found = confinements(self._document, catalog_id, agents)
        catalog = self._document.policy.catalog(catalog_id) if catalog_id is not None else None
        self.places_button.setVisible(catalog is not None and catalog.takes_places)
        self.agents.setVisible(bool(found) and self.agents.count() > 1)
        self.split.setVisible(bool(found))
        self.browser.set_rooms([room_of(self._document, catalog_id or "shell_exec", found)] if found else [])
        self.facts.set_rows(facts_of(found, catalog))


class RoomDialog(FormDialog):
    """Shows what the shell commands of an agent can see, to be looked at."""

    def __init__(
        self, parent: QWidget | None, document: Document, tasks: TaskOwner, sizes: SizeStore, agent_id: str | None
    ) -> None:
        title = tr("What shell commands can see")
        if agent_id is not None:
            title = tr("What shell commands of {agent} can see", agent=agent_id)
        super().__init__(parent, "room", title, tr("Close"))
        self.cancel_button.hide()
        self.pane = RoomPane(document, tasks, sizes, "room.pane")
        self.lay_out(stretch(self.pane))
        self.pane.show_subject(None, agent_id)
        self.accept_button.setDefault(True)
        self.resize(760, fitting_height(parent, 600))

    def done(self, result: int) -> None:
        """Nothing is counted any more."""
        self.pane.browser.end()
        super().done(result)
