"""How many operations the models of agents see, for those agents that one looks at. It draws nothing."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import ChangeSet, Document
from gatewright_gui.session.rightsbeside import count_beside

TASK = "agents.counts"


class AgentCounts(QObject):
    """Asks for one agent at a time; `wanted` says which are looked at now, and is asked again after every answer."""

    counted = Signal(object, object, object)
    """Agent, operations that are on, operations in all: str, int, int."""

    def __init__(
        self,
        document: Document,
        deriver: Deriver,
        tasks: TaskOwner,
        wanted: Callable[[], Sequence[str]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._deriver, self._tasks, self._wanted = document, deriver, tasks, wanted
        self._known: set[str] = set()
        document.opened.connect(self._forget)
        document.policy_changed.connect(self._changed)

    def look(self) -> None:
        """Others may be looked at now."""
        if self._next() is not None and TASK not in self._tasks.names:
            self._tasks.start(self._count(), TASK)

    def _next(self) -> str | None:
        return next((name for name in self._wanted() if name not in self._known), None)

    async def _count(self) -> None:
        while (agent_id := self._next()) is not None:
            if agent_id not in self._document.policy.agents:
                self._known.add(agent_id)
                continue
            found = await self._deriver.derive(
                lambda workspace, name=agent_id: count_beside(workspace, name), aside=True
            )
            if found is not None:
                self._known.add(agent_id)
                self.counted.emit(agent_id, *found)
            elif not self._document.is_open:
                return

    def _forget(self) -> None:
        self._known.clear()
        self.look()

    def _changed(self, changes: ChangeSet) -> None:
        if changes.everything or changes.sources:
            self._known.clear()
        self._known -= changes.agents
        self.look()
