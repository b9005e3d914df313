"""Verbs on many tools of one agent: few are edited at once, more are worked out beside the window. They know no row.

What is asked for while another is worked out waits for it, so that edits come in the order of the keys.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gatewright.base.errors import EditRefused
from gatewright.workspace import Workspace
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import rights
from gatewright_gui.session.verbs.rights import Target, Tick, Wish, Worked

AT_ONCE = 40
"""So many tools are edited without leaving the window's thread."""
TASK = "agents.many"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of which tools of an agent."""

    agent_id: str
    targets: Sequence[Target]
    wanted: Wish | Tick
    told: bool = False


class ManyRights:
    """Of one document; one edit after the other."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self._waiting: deque[Asked] = deque()

    def wish(self, agent_id: str, targets: Sequence[Target], wanted: Wish) -> None:
        """Allow, ask first or deny everything that is targeted, as one edit."""
        asked = Asked(agent_id, targets, wanted)
        self._do(asked, lambda: rights.wish(self._document, agent_id, targets, wanted))

    def tick_all(self, agent_id: str, targets: Sequence[Target], wanted: Tick, *, told: bool = False) -> None:
        """Turn everything that is targeted on or off, as one edit; what asks goes on asking. `told`: say what came."""
        asked = Asked(agent_id, targets, wanted, told)
        self._do(asked, lambda: rights.tick_all(self._document, agent_id, targets, wanted, told=told))

    def _do(self, asked: Asked, at_once: Callable[[], object]) -> None:
        is_busy = TASK in self._tasks.names
        if len(asked.targets) <= AT_ONCE and not is_busy:
            at_once()
            return
        if not is_busy:
            self._waiting.clear()  # what a closed policy left
        self._waiting.append(asked)
        if not is_busy:
            self._tasks.start(self._work(), TASK)

    async def _work(self) -> None:
        while self._waiting:
            asked = self._waiting.popleft()
            try:
                await self._make(asked)
            except EditRefused as error:
                self._document.say("warning", str(error))

    async def _make(self, asked: Asked) -> None:
        worked: Worked | None = None
        while worked is None and self._document.is_open:  # another edit meanwhile makes it another question
            worked = await self._deriver.derive(partial(_worked_out, asked), ahead=True)
        if worked is not None:
            edit = worked.edit
            if self._document.push(lambda _policy, _catalog: edit) and asked.told:
                self._document.say("info", worked.said)
            rights.tell_held_off(self._document, asked.agent_id, worked.held_off)


def _worked_out(asked: Asked, workspace: Workspace) -> Worked:
    return rights.worked_out(workspace, asked.agent_id, asked.targets, asked.wanted)
