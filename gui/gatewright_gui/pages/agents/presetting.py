"""Presets, copied rights, resets: opens the dialog, has its lines worked out beside the window, makes the edit.

It knows no rights: the verbs do.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from gatewright.base.errors import EditRefused
from gatewright.policy.preset import Preset
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import tie_icon

if TYPE_CHECKING:
    from gatewright_gui.pages.agents.rights_dialog import RightsDialog
    from gatewright_gui.session.verbs import presets as verbs


TASK, WORK = "agents.rights", "agents.rights.lines"


class Presetting(QObject):
    """One dialog at a time."""

    def __init__(self, context: PageContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._window = parent

    def fill(self, menu: QMenu, agent_ids: Sequence[str]) -> None:
        """Rows for presets of these agents, and for copying the rights of a single one."""
        from gatewright_gui.pages.agents.preset_dialog import PRESETS

        chosen = tuple(agent_ids)
        for preset, text, says in PRESETS:
            action = menu.addAction(f"{text}…")
            action.setObjectName(f"agents.preset.{preset.name.lower()}")
            action.setToolTip(says)
            action.triggered.connect(partial(self._preset, chosen, preset))
        menu.addSeparator()
        copy = menu.addAction("&Copy rights to agents…")
        copy.setObjectName("agents.copy_rights")
        tie_icon(copy, "users")
        copy.setEnabled(len(chosen) == 1 and len(self._context.document.agents) > 1)
        if len(chosen) == 1:
            copy.triggered.connect(partial(self._copy, chosen[0]))

    def open_presets(self, agent_ids: Sequence[str], preset: Preset = Preset.STANDARD) -> None:
        """Ask which preset, for these agents at first."""
        from gatewright_gui.models.agentchoice import AgentChoiceModel
        from gatewright_gui.pages.agents.preset_dialog import PresetDialog

        agents = AgentChoiceModel(self._context.document.agents, agent_ids)
        self._open(PresetDialog(self._window.window(), agents, preset))

    def open_copy(self, agent_id: str) -> None:
        """Ask to whom the rights of an agent are to be copied."""
        from gatewright.policy.copyrights import rules_by_name
        from gatewright_gui.models.agentchoice import AgentChoiceModel
        from gatewright_gui.pages.agents.copy_dialog import CopyDialog

        others = [agent for agent in self._context.document.agents if agent.agent_id != agent_id]
        stay = [rule.name for rule in rules_by_name(self._context.document.policy, agent_id)]
        self._open(CopyDialog(self._window.window(), agent_id, AgentChoiceModel(others, ()), stay))

    def open_reset(self, agent_id: str, tools: Sequence[str]) -> None:
        """Ask whether tools of an agent are to be as they are by themselves."""
        from gatewright_gui.models.agentchoice import AgentChoiceModel
        from gatewright_gui.pages.agents.reset_dialog import ResetDialog

        one = [agent for agent in self._context.document.agents if agent.agent_id == agent_id]
        if one and tools:
            self._open(ResetDialog(self._window.window(), AgentChoiceModel(one, (agent_id,)), tools))

    def _preset(self, agent_ids: Sequence[str], preset: Preset, _checked: bool = False) -> None:
        self.open_presets(agent_ids, preset)

    def _copy(self, agent_id: str, _checked: bool = False) -> None:
        self.open_copy(agent_id)

    def _open(self, dialog: "RightsDialog") -> None:
        self._context.tasks.start(self._ask(dialog), TASK, replace=True)

    async def _ask(self, dialog: "RightsDialog") -> None:
        from gatewright_gui.qt.dialog import shown
        from gatewright_gui.session.verbs import presets as verbs

        again = partial(self._work, dialog)
        dialog.plan_changed.connect(again)
        self._context.document.policy_changed.connect(again)
        try:
            dialog.choose()
            accepted = await shown(dialog)
        finally:
            self._context.document.policy_changed.disconnect(again)
            self._context.tasks.cancel(WORK)
        if accepted and dialog.edit is not None:
            verbs.make(self._context.document, dialog.edit)

    def _work(self, dialog: "RightsDialog", _why: object = None) -> None:
        self._context.tasks.start(self._work_out(dialog), WORK, replace=True)

    async def _work_out(self, dialog: "RightsDialog") -> None:
        """Agent by agent, so that lines come early and another choice ends it soon."""
        from gatewright_gui.session.verbs import presets as verbs

        plan = dialog.plan()
        dialog.begin()
        if not plan.agent_ids:
            dialog.finish(None)
            return
        try:
            await self._show_lines(dialog, plan)
        except EditRefused as error:  # an agent of the plan is gone
            dialog.finish(verbs.Planned(verbs.NO_EDIT, str(error)))

    async def _show_lines(self, dialog: "RightsDialog", plan: "verbs.Plan") -> None:
        from gatewright_gui.models.rightchanges import lines_of
        from gatewright_gui.session.verbs import presets as verbs

        deriver = self._context.deriver
        for done, agent_id in enumerate(plan.agent_ids, 1):
            lines = await deriver.derive(
                lambda workspace, name=agent_id, room=dialog.changes.room: lines_of(
                    verbs.difference(workspace, plan, name), room
                ),
                aside=True,
            )
            if lines is None:
                return  # the policy is another one: it is worked out anew
            dialog.add(lines, done, len(plan.agent_ids))
        planned = await deriver.derive(lambda workspace: verbs.planned(workspace, plan), aside=True)
        if planned is not None:
            dialog.finish(planned)
