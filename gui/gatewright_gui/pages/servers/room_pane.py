"""All that the tools of a catalog, or shell commands, can see: places drawn, hosts, programs, variables, bounds."""

import asyncio

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QPushButton, QWidget
from shiboken6 import isValid

from gatewright_gui.pages.servers.confine import ConfineBand
from gatewright_gui.pages.servers.room_browser import RoomBrowser, fitting_height
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.splitter import SizeStore, split_of
from gatewright_gui.session.confinement import Fact, agents_of, confinements, facts_of, room_of, why_not_run
from gatewright_gui.session.document import Document

FACT, VALUE = range(2)


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
    """For one agent or for all that have it; looks at nothing while nobody sees it."""

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
        if is_other or agent_id is not None:
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
