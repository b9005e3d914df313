"""The columns of the agents in view, kept current: what each may do with every operation."""

from collections.abc import Iterable, Mapping

from PySide6.QtCore import QObject, Signal

from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import ChangeSet, Document
from gatewright_gui.session.right_columns import (
    Basis,
    Column,
    GridLayout,
    column_under,
    columns_of,
    layout_of,
    source_ids_of,
)
from gatewright_gui.session.selection import Selection
from gatewright_gui.session.tool_groups import ToolGroup, group_of


class RightGrid(QObject):
    """Say which agents are looked at with `want`; their columns come, and are kept current from then on."""

    layout_changed = Signal()
    """Other tools or operations, and no column is known."""
    columns_changed = Signal(object)
    """frozenset of agent ids: their columns came, changed, or are not known any more."""

    def __init__(
        self,
        document: Document,
        selection: Selection,
        deriver: Deriver,
        tasks: TaskOwner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._selection, self._deriver, self._tasks = document, selection, deriver, tasks
        self.layout = GridLayout()
        self._columns: dict[str, Column] = {}
        self._current: set[str] = set()
        """Those of the known columns that are of the policy as it is now."""
        self._basis: dict[str, Basis] = {}
        """Of the chosen agent."""
        self._wanted: tuple[str, ...] = ()
        document.closed.connect(self._start_anew)
        document.policy_changed.connect(self._follow)
        selection.agent_changed.connect(self._note_basis)

    def want(self, agent_ids: Iterable[str]) -> None:
        """Look at these agents, the first ones first; the former ones are not worked out any more."""
        self._wanted = tuple(agent_ids)
        if self._wanted and not self.layout.tools and self._lay_out():
            self.layout_changed.emit()  # whoever hears it may want other agents; then it is their work that goes on
        self._work_out()

    def group_of(self, origin: str) -> ToolGroup:
        """The origin of tools, in words."""
        return group_of(origin, self._document.policy.catalogs)

    def column(self, agent_id: str) -> Column | None:
        """The column known of an agent; None while it is not."""
        return self._columns.get(agent_id)

    @property
    def progress(self) -> tuple[int, int]:
        """The number of agents that are looked at, and of those whose columns are known."""
        wanted = [agent_id for agent_id in self._wanted if agent_id in self._document.policy.agents]
        return len(wanted), sum(agent_id in self._columns for agent_id in wanted)

    @property
    def known(self) -> Mapping[str, Column]:
        """The columns that are known."""
        return self._columns

    def _start_anew(self) -> None:
        self._tasks.cancel("agents.matrix")
        self.layout = GridLayout()
        self._columns.clear()
        self._current.clear()
        self._wanted = ()
        self.layout_changed.emit()

    def _lay_out(self) -> bool:
        """Tell whether the rows are others than before."""
        found = layout_of(self._document.catalog, self._document.policy.catalogs)
        if found == self.layout:
            return False
        self.layout = found
        self._columns.clear()
        self._current.clear()
        return True

    def _follow(self, changes: ChangeSet) -> None:
        """Work out anew what was edited; a column of an agent that is edited stays until the new one comes."""
        if not self.layout.tools:
            return
        if changes.everything and self._lay_out():
            self.layout_changed.emit()
        elif changes.everything or changes.sources:
            known = frozenset(self._columns)
            self._columns.clear()
            self._current.clear()
            self.columns_changed.emit(known)
        else:
            document, chosen = self._document, self._selection.agent_id
            self._current -= changes.agents
            for gone in changes.agents - document.policy.agents.keys():
                self._columns.pop(gone, None)
            # the edit of one agent costs the tools it concerns; several agents or many tools are the worker's
            basis = self._basis.get(chosen) if chosen else None
            if chosen and basis and changes.agents == frozenset({chosen}) and document.has_rights(chosen):
                rights, enforced = document.rights(chosen), document.rights_if_enforced(chosen)
                self._take({chosen: column_under(self.layout, document.policy, chosen, rights, basis, enforced)})
        self._work_out()

    def _lacking(self) -> list[str]:
        agents = self._document.policy.agents
        return [agent_id for agent_id in self._wanted if agent_id not in self._current and agent_id in agents]

    def _work_out(self) -> None:
        if self._lacking() and "agents.matrix" not in self._tasks.names:
            self._tasks.start(self._ask(), "agents.matrix")

    async def _ask(self) -> None:
        while self._document.is_open and (lacking := self._lacking()):
            layout = self.layout
            found = await self._deriver.derive(columns_of, lacking)
            if found is not None and layout is self.layout:
                self._take(found)

    def _take(self, found: Mapping[str, Column]) -> None:
        changed = frozenset(name for name, column in found.items() if self._columns.get(name) != column)
        self._columns.update(found)
        self._current |= found.keys()
        self._note_basis()
        if changed:
            self.columns_changed.emit(changed)

    def _note_basis(self, _why: object = None) -> None:
        """Keep what the column of the chosen agent is made of, so that an edit costs the tools that it concerns."""
        chosen, document = self._selection.agent_id, self._document
        self._basis.clear()
        if chosen in self._current and document.has_rights(chosen):
            self._basis[chosen] = Basis(
                source_ids_of(document.policy, chosen),
                document.rights(chosen),
                self._columns[chosen],
                document.rights_if_enforced(chosen),
            )
